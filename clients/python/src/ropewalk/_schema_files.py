"""Where the compiled schema comes from.

The schema's sources are `proto/ropewalk/v1/*.proto` at the root of the source tree. They are compiled with protoc to one
FileDescriptorSet, `_proto/schema.binpb` in this package, which is never checked in. In a source tree it is made again
whenever a source is newer; an installed wheel carries it. Standard library only: setup.py uses this file too.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parent
COMPILED = PACKAGE / "_proto" / "schema.binpb"


def source_folder() -> pathlib.Path | None:
    """The tree's `proto` folder, or None when this package is not in a source tree."""
    for parent in PACKAGE.parents[:6]:
        if (parent / "proto" / "ropewalk" / "v1" / "command.proto").is_file():
            return parent / "proto"
    return None


def compile_schema() -> bytes:
    """Compiles the tree's schema into the package (where that can be written) and returns it."""
    folder = source_folder()
    if folder is None:
        raise RuntimeError("the schema's sources (proto/ropewalk/v1) are not beside this package")
    protoc = shutil.which("protoc")
    if protoc is None:
        raise RuntimeError("protoc is missing: install protobuf-compiler (it compiles the schema once)")
    sources = sorted((folder / "ropewalk" / "v1").glob("*.proto"))
    with tempfile.TemporaryDirectory(prefix="ropewalk-") as temporary:
        target = pathlib.Path(temporary) / "schema.binpb"
        command = [protoc, f"--proto_path={folder}", "--include_imports", f"--descriptor_set_out={target}"]
        done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"protoc failed: {done.stderr.strip()}")
        data = target.read_bytes()
    try:
        COMPILED.parent.mkdir(exist_ok=True)
        # Several processes may do this at once: each writes its own file and renames it into place.
        handle, name = tempfile.mkstemp(dir=COMPILED.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, COMPILED)
    except OSError:
        pass  # A read-only tree: compiled again next time.
    return data


def load_schema() -> bytes:
    """The compiled schema, made anew when a source changed since."""
    folder = source_folder()
    if folder is None:
        return COMPILED.read_bytes()
    try:
        made = COMPILED.stat().st_mtime_ns
        if all(made > path.stat().st_mtime_ns for path in (folder / "ropewalk" / "v1").glob("*.proto")):
            return COMPILED.read_bytes()
    except OSError:
        pass
    return compile_schema()
