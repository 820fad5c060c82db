"""Compiles the schema into the package when a wheel is made; everything else is in pyproject.toml.

An editable installation needs nothing of this: the client compiles the schema of its source tree
by itself and keeps it fresh (see ropewalk/_schema.py).
"""

import importlib.util
import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent


class BuildWithSchema(build_py):
    def run(self) -> None:
        spec = importlib.util.spec_from_file_location("_schema_files", HERE / "src/ropewalk/_schema_files.py")
        files = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(files)
        files.compile_schema()
        super().run()


setup(cmdclass={"build_py": BuildWithSchema})
