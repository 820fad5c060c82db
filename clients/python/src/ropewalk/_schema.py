"""The protocol's messages, built at run time from the compiled schema (no generated code).

from ropewalk import messages
scene = messages.Scene(name="empty")
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import _schema_files

_PACKAGE = "ropewalk.v1."


def _load() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(_schema_files.load_schema())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_pool = _load()


def message_class(name: str) -> Any:
    """The class of a message, named as in the schema ("Scene", "Solver.Xpbd")."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(_PACKAGE + name))


def enum_numbers(name: str) -> dict[str, int]:
    """Names and numbers of an enum ("Status.Code")."""
    return {value.name: value.number for value in _pool.FindEnumTypeByName(_PACKAGE + name).values}


class _Messages:
    """Every message of the schema as an attribute: `messages.Scene`, `messages.Request`."""

    def __getattr__(self, name: str) -> Any:
        try:
            made = message_class(name)
        except KeyError:
            raise AttributeError(f"the schema has no message {name}") from None
        setattr(self, name, made)
        return made


messages = _Messages()
