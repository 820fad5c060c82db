"""Nothing in solvers/ may let the machine, the clock or chance decide a bit of the state.

libm's transcendental functions differ between processors and versions, so state paths use ours
(solvers/math/trig.h); sqrt, fma, floor and their like are exact everywhere and allowed.
"""

import re
import unittest

import house

INEXACT = (
    "sin cos tan asin acos atan atan2 sincos sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 "
    "log1p pow cbrt hypot erf erfc tgamma lgamma j0 j1 y0 y1"
).split()
INEXACT = {name + suffix for name in INEXACT for suffix in ("", "f", "l")}
CHANCE_AND_TIME = set(
    "rand srand rand_r random srandom drand48 erand48 lrand48 mrand48 getrandom getentropy arc4random time clock "
    "gettimeofday clock_gettime localtime gmtime".split()
)
# The one place that reads a clock: for measuring, never for the state.
CLOCK_FILES = {"solvers/base/clock.c"}
# Waiting with a time limit needs the clock of the condition variable.
WAITING_FILES = {"solvers/base/thread.c", "solvers/sched/worker_pool.c"}
CALL = re.compile(r"(?<![\w.>])([a-z]\w*)\s*\(")


class ReproducibleSources(unittest.TestCase):
    def test_solvers_call_no_inexact_or_chance_function(self):
        faults = []
        for path in house.c_files("solvers", "gpu"):
            text = house.without_comments(house.read(path))
            for match in CALL.finditer(text):
                name = match.group(1)
                clock_allowed = path.as_posix() in CLOCK_FILES | WAITING_FILES
                if name in INEXACT or (name in CHANCE_AND_TIME and not clock_allowed):
                    faults.append(f"{path}:{house.line_of(text, match.start())}: {name}")
        self.assertEqual(faults, [])

    def test_solver_objects_refer_to_no_inexact_or_chance_function(self):
        # Sees what a macro, a builtin or the optimiser made of the source.
        faults, seen = [], 0
        for entry in house.compile_commands():
            path = entry["file"]
            if path.parts[0] not in ("solvers", "gpu") or not entry["object"].exists():
                continue
            seen += 1
            clock_allowed = path.as_posix() in CLOCK_FILES | WAITING_FILES
            for letter, name in house.symbols(entry["object"]):
                name = name.split("@")[0]
                if letter == "U" and (name in INEXACT or (name in CHANCE_AND_TIME and not clock_allowed)):
                    faults.append(f"{path}: {name}")
        self.assertEqual(faults, [])
        self.assertGreater(seen, 3, "no objects were looked at")

    def test_every_source_is_built_without_contraction_and_fast_math(self):
        faults = []
        for entry in house.compile_commands():
            arguments = entry["arguments"]
            if "-ffp-contract=off" not in arguments:
                faults.append(f"{entry['file']}: -ffp-contract=off is missing")
            for flag in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-march=native"):
                if flag in arguments:
                    faults.append(f"{entry['file']}: {flag}")
        self.assertEqual(faults, [])

    def test_physics_never_runs_on_the_pool_of_libuv(self):
        faults = []
        for path in house.c_files("server", "solvers"):
            if re.search(r"\buv_queue_work\s*\(", house.without_comments(house.read(path))):
                faults.append(str(path))
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
