"""README and docs are true: links and paths lead somewhere, the walk's names exist, tables equal the schema."""

import glob
import itertools
import re
import unittest

import house

DOCUMENTS = sorted(
    path.relative_to(house.ROOT)
    for pattern in ("*.md", "*/README.md", "docs/*.md", "clients/*/README.md", "deploy/*.md")
    for path in house.ROOT.glob(pattern)
    if not path.is_relative_to(house.ROOT / "build")
)
TOP_FOLDERS = ("proto", "server", "solvers", "gpu", "clients", "tests", "deploy", "docs", ".ci")
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.M | re.S)


def prose(path):
    """A document without its fenced blocks; lines keep their numbers."""
    return FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), house.read(path))


def anchor_of(heading):
    """The anchor that a Markdown viewer makes of a heading."""
    heading = re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", ""))
    return heading.replace(" ", "-")


def anchors(path):
    return {anchor_of(match) for match in re.findall(r"^#+ +(.*)$", prose(path), re.M)}


def braces(text):
    """`a/{b,c}` -> `a/b`, `a/c`."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
    if not match:
        return [text]
    return [
        whole
        for part in match.group(1).split(",")
        for whole in braces(text[: match.start()] + part.strip() + text[match.end() :])
    ]


def table(path, heading):
    """Rows of the first table after a heading, as lists of cells without backticks, header left out."""
    text = house.read(path)
    lines = text[text.index(f"## {heading}\n") :].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = [line.strip().strip("|").split("|") for line in itertools.takewhile(lambda line: line.startswith("|"), lines[begin:])]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        faults = []
        for path in DOCUMENTS:
            text = prose(path)
            for match in re.finditer(r"\]\(([^)\s]+)\)", text):
                target, _, anchor = match.group(1).partition("#")
                if "://" in target:
                    continue
                file = (house.ROOT / path).parent / target if target else house.ROOT / path
                where = f"{path}:{house.line_of(text, match.start())}: {match.group(1)}"
                if not file.exists():
                    faults.append(where)
                elif anchor and anchor not in anchors(file.resolve().relative_to(house.ROOT)):
                    faults.append(where + " (no such heading)")
        self.assertEqual(faults, [])

    def test_paths_in_backticks_exist(self):
        faults = []
        for path in DOCUMENTS:
            text = prose(path)
            for match in re.finditer(r"`([^`\n]+)`", text):
                name = match.group(1)
                if not re.fullmatch(r"[\w.*/{},-]+", name) or not name.startswith(
                    tuple(folder + "/" for folder in TOP_FOLDERS)
                ):
                    continue
                for each in braces(name):
                    # Relative to the root, or, in a folder's README, to that folder.
                    places = (house.ROOT / each, (house.ROOT / path).parent / each)
                    if "NAME" not in each and not any(glob.glob(str(place)) for place in places):
                        faults.append(f"{path}:{house.line_of(text, match.start())}: {each}")
        self.assertEqual(faults, [])

    def test_every_top_level_folder_has_a_readme(self):
        faults = [
            folder
            for folder in ("proto", "server", "solvers", "gpu", "clients", "tests", "deploy")
            if not (house.ROOT / folder / "README.md").is_file()
        ]
        self.assertEqual(faults, [])

    def test_folder_readmes_name_only_files_that_exist(self):
        faults = []
        for path in DOCUMENTS:
            if path.name != "README.md" or len(path.parts) < 2:
                continue
            folder = house.ROOT / path.parent
            for name in re.findall(r"`([\w./*-]+\.(?:c|h|py|proto|options|md|cu))`", prose(path)):
                found = list(folder.rglob(name)) or list(house.ROOT.glob(name))
                # `scene.proto` after `ropewalk/v1/command.proto` means the same folder.
                if not found and not list(folder.glob("**/" + name)):
                    faults.append(f"{path}: {name}")
        self.assertEqual(faults, [])

    def test_status_numbers_are_the_same_in_schema_code_and_docs(self):
        schema = dict(
            re.findall(r"^\s+([A-Z_]+) = (\d+);", house.read("proto/ropewalk/v1/status.proto"), re.M)
        )
        code = dict(re.findall(r"\b[A-Z]\((?:RW_STATUS_)?([A-Z_]+), *(\d+)", house.read("solvers/base/status.h")))
        docs = {row[1]: row[0] for row in table("docs/protocol.md", "Status")}
        self.assertGreaterEqual(len(schema), 16)
        self.assertEqual(code, schema)
        self.assertEqual(docs, schema)

    def test_the_table_of_commands_lists_every_command_of_the_schema(self):
        text = house.read("proto/ropewalk/v1/command.proto")
        oneof = re.search(r"message Request \{.*?oneof command \{(.*?)\n  \}", text, re.S).group(1)
        schema = set(re.findall(r"^\s+\w+ (\w+) = \d+;", oneof, re.M))
        rows = table("docs/protocol.md", "What is served")
        listed = [snake(name) for row in rows for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual(sorted(listed), sorted(schema))

    def test_the_table_of_options_equals_the_daemons(self):
        code = house.read("server/config.c")
        options = re.findall(r'\{"([\w-]+)", OPTION_\w+, [^"]*?"[^"]*", "([^"]*)",', code)
        listed = [(row[0].strip("`"), row[1].strip("`")) for row in table("docs/operations.md", "Configuration")]
        self.assertGreater(len(options), 5)
        self.assertEqual(listed, options)

    def test_the_table_of_metrics_equals_the_daemons(self):
        metrics = re.findall(r'X\((\w+), \w+, "([^"]*)"', house.read("server/metrics.h"))
        listed = [(row[0].strip("`").removeprefix("ropewalk_"), row[1]) for row in table("docs/operations.md", "Metrics")]
        self.assertGreater(len(metrics), 5)
        self.assertEqual(listed, metrics)

    def test_deployment_files_use_options_that_exist(self):
        options = set(re.findall(r'\{"([\w-]+)", OPTION_', house.read("server/config.c")))
        used = {"conf": re.findall(r"^([\w-]+) *=", house.read("deploy/ropewalkd.conf"), re.M)}
        for name in ("Dockerfile", "ropewalkd.service", "kubernetes.yaml", "slurm.sbatch"):
            lines = "\n".join(
                line for line in house.read(f"deploy/{name}").splitlines()
                if re.search(r"ropewalkd\b.*--|CMD|args:", line) and not line.lstrip().startswith("#")
            )
            used[name] = re.findall(r"--([a-z][\w-]+)", lines)
            variables = re.findall(r"\bROPEWALK_([A-Z_]+)=", house.read(f"deploy/{name}"))
            used[name] += [one.lower().replace("_", "-") for one in variables if one not in ("TOKEN", "SOCKET")]
        faults = [f"{name}: {option}" for name, found in used.items() for option in found if option not in options]
        self.assertEqual(faults, [])
        self.assertTrue(all(used.values()), used)


class Walk(unittest.TestCase):
    def names(self):
        text = house.read("README.md")
        section = text[text.index("## The walk") :].split("\n## ", 1)[0]
        return re.findall(r"`([^`\n]+)`", section)

    def test_every_file_and_function_of_the_walk_exists(self):
        sources = house.c_files("proto", "server", "solvers")
        code = "\n".join(house.without_comments(house.read(path)) for path in sources)
        faults = []
        for name in self.names():
            if "/" in name or name.endswith((".c", ".h")):
                if not (house.ROOT / name).exists():
                    faults.append(f"no such file: {name}")
            elif re.fullmatch(r"rw_\w+", name.rstrip("()")):
                # Defined, not only mentioned: a body follows the parameters, or a static function pointer table names it.
                if not re.search(rf"^[\w*\s]*\b{name.rstrip('()')}\s*\([^;{{]*\)\s*\{{", code, re.M):
                    faults.append(f"no such function: {name}")
            else:
                faults.append(f"neither a file nor a function: {name}")
        self.assertEqual(faults, [])

    def test_the_walk_passes_through_the_whole_house(self):
        text = " ".join(self.names())
        for room in ("server/net/", "proto/", "server/session/", "server/dispatch/", "solvers/world/", "server/stream/"):
            self.assertIn(room, text)


if __name__ == "__main__":
    unittest.main()
