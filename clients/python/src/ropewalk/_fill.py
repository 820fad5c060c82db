"""Fills messages from what Python and JSON have: mappings, lists, numpy arrays, numbers, names.

Everything is checked on the way, and a fault is told with its path (`bodies[1].mass`), because the best message is the one
that comes before anything was sent. Ranges and meanings are the daemon's to check.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from .errors import InvalidArgument

_DOUBLE = FieldDescriptor.TYPE_DOUBLE
_BOOL = FieldDescriptor.TYPE_BOOL
_STRING = FieldDescriptor.TYPE_STRING
_BYTES = FieldDescriptor.TYPE_BYTES
_ENUM = FieldDescriptor.TYPE_ENUM
_MESSAGE = FieldDescriptor.TYPE_MESSAGE
# Integers of the schema: largest value, numpy type of their packed form (None where that is a varint).
_INTEGERS: dict[int, tuple[int, str | None]] = {
    FieldDescriptor.TYPE_UINT32: (2**32 - 1, None),
    FieldDescriptor.TYPE_UINT64: (2**64 - 1, None),
    FieldDescriptor.TYPE_FIXED32: (2**32 - 1, "<u4"),
    FieldDescriptor.TYPE_FIXED64: (2**64 - 1, "<u8"),
}
# Arrays from this many numbers on are copied as one block.
_BLOCK = 64


def fill(message: Any, value: Any, path: str = "", nested_arrays: bool = True) -> Any:
    """Writes a mapping into a message and returns the message.

    nested_arrays  whether `[[0, 0, 0], [1, 0, 0]]` may stand for packed rows (Python yes, scene files no)
    Raises InvalidArgument with the path of the fault.
    """
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"must be an object with fields, got {_show(value)}", path)
    fields = message.DESCRIPTOR.fields_by_name
    by_json = {field.json_name: field for field in fields.values()}
    for name, item in value.items():
        here = f"{path}.{name}" if path else str(name)
        field = fields.get(name) or by_json.get(name)
        if field is None:
            raise InvalidArgument(_unknown_field(message, str(name)), here)
        if item is None:
            continue
        group = field.containing_oneof
        if group is not None and len(group.fields) > 1 and message.WhichOneof(group.name) not in (None, field.name):
            names = ", ".join(other.name for other in group.fields)
            raise InvalidArgument(f"only one of {names} may be given", here)
        if field.is_repeated:
            _fill_list(message, field, item, here, nested_arrays)
        elif field.type == _MESSAGE:
            part = getattr(message, field.name)
            part.SetInParent()
            if hasattr(item, "DESCRIPTOR"):
                part.CopyFrom(_same_type(part, item, here))
            else:
                fill(part, item, here, nested_arrays)
        else:
            setattr(message, field.name, _scalar(field, item, here))
    return message


def set_array(message: Any, field: FieldDescriptor, array: np.ndarray) -> None:
    """Replaces a packed array field by an array's numbers, as one block."""
    message.ClearField(field.name)
    kind = "<f8" if field.type == _DOUBLE else _INTEGERS[field.type][1]
    if array.size >= _BLOCK and kind is not None:
        block = np.ascontiguousarray(array, dtype=kind).tobytes()
        message.MergeFromString(varint(field.number << 3 | 2) + varint(len(block)) + block)
    else:
        getattr(message, field.name).extend(array.ravel().tolist())


def varint(value: int) -> bytes:
    """A protobuf variable-length integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _unknown_field(message: Any, name: str) -> str:
    known = [field.name for field in message.DESCRIPTOR.fields]
    near = difflib.get_close_matches(name, known, n=1)
    what = message.DESCRIPTOR.full_name.removeprefix("ropewalk.v1.")
    if near:
        return f"{what} has no such field; did you mean {near[0]}?"
    return f"{what} has no such field; it has {', '.join(known)}"


def _show(value: Any) -> str:
    text = (
        repr(value) if not isinstance(value, (dict, list)) else ("an object" if isinstance(value, dict) else "a list")
    )
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = "true" if value else "false"
    return text if len(text) <= 60 else text[:57] + "..."


def _same_type(part: Any, item: Any, path: str) -> Any:
    if part.DESCRIPTOR.full_name != item.DESCRIPTOR.full_name:
        raise InvalidArgument(f"must be a {part.DESCRIPTOR.name} message, got {item.DESCRIPTOR.name}", path)
    # A message of another pool (generated code, say) is carried over by its bytes.
    return item if type(item) is type(part) else type(part).FromString(item.SerializeToString())


def _fill_list(message: Any, field: FieldDescriptor, value: Any, path: str, nested_arrays: bool) -> None:
    if field.type == _MESSAGE:
        if isinstance(value, Mapping) or not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
            raise InvalidArgument(f"must be a list of objects, got {_show(value)}", path)
        target = getattr(message, field.name)
        for index, item in enumerate(value):
            here = f"{path}[{index}]"
            if hasattr(item, "DESCRIPTOR"):
                target.add().CopyFrom(_same_type(field.message_type._concrete_class(), item, here))
            else:
                fill(target.add(), item, here, nested_arrays)
        return
    if field.type == _STRING and isinstance(value, str):
        value = [value]
    if isinstance(value, (Mapping, str, bytes)):
        raise InvalidArgument(f"must be a list, got {_show(value)}", path)
    if not isinstance(value, (Sequence, np.ndarray)):
        # A single number stands for a list of one; other iterables are read out.
        value = list(value) if isinstance(value, Iterable) else [value]
    if field.type == _DOUBLE or field.type in _INTEGERS:
        set_array(message, field, _numbers(field, value, path, nested_arrays))
    else:
        getattr(message, field.name).extend(
            [_scalar(field, item, f"{path}[{index}]") for index, item in enumerate(value)]
        )


def _numbers(field: FieldDescriptor, value: Any, path: str, nested_arrays: bool) -> np.ndarray:
    """A flat array of a field's numbers, checked one by one only when something is wrong."""
    if not isinstance(value, np.ndarray) and nested_arrays:
        value = _flattened(value)
    plain = isinstance(value, np.ndarray) or all(type(item) in (int, float) for item in value)
    array = None
    if plain:
        try:
            array = np.asarray(value).ravel()
        except (ValueError, OverflowError):
            array = None
    if array is not None and array.dtype.kind in "iuf":
        if field.type == _DOUBLE:
            array = array.astype(np.float64, copy=False)
            if np.isfinite(array).all():
                return array
        elif array.size == 0 or (
            (array.dtype.kind != "f" or (np.isfinite(array).all() and (array == np.floor(array)).all()))
            and array.min() >= 0
            and int(array.max()) <= _INTEGERS[field.type][0]
        ):
            return array.astype(np.uint64, copy=False)
    items = value.ravel().tolist() if isinstance(value, np.ndarray) else value
    checked = [_scalar(field, item, f"{path}[{index}]") for index, item in enumerate(items)]
    return np.array(checked, dtype=np.float64 if field.type == _DOUBLE else np.uint64)


def _flattened(value: Sequence[Any]) -> Sequence[Any]:
    """Rows one after the other: [[0, 0, 0], [1, 0, 0]] and lists of arrays become packed numbers."""
    if not any(isinstance(item, (list, tuple, np.ndarray)) for item in value):
        return value
    flat: list[Any] = []
    for item in value:
        if isinstance(item, np.ndarray):
            flat.extend(item.ravel().tolist())
        elif isinstance(item, (list, tuple)):
            flat.extend(_flattened(item))
        else:
            flat.append(item)
    return flat


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:
    if isinstance(value, (np.generic, np.ndarray)) and getattr(value, "size", 0) == 1:
        value = value.item()
    if field.type == _ENUM:
        return _enum(field, value, path)
    if field.type == _DOUBLE:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidArgument(f"must be a number, got {_show(value)}", path)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidArgument(f"must be finite, got {_show(value)}", path)
        return number
    if field.type in _INTEGERS:
        return _integer(field, value, path)
    if field.type == _BOOL:
        if not isinstance(value, bool):
            raise InvalidArgument(f"must be true or false, got {_show(value)}", path)
        return value
    if field.type == _STRING:
        if not isinstance(value, str):
            raise InvalidArgument(f"must be a string, got {_show(value)}", path)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgument("must be valid Unicode text", path) from None
        return value
    if field.type == _BYTES and isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise InvalidArgument(f"must be bytes, got {_show(value)}", path)


def _integer(field: FieldDescriptor, value: Any, path: str) -> int:
    limit = _INTEGERS[field.type][0]
    number: int | None = None
    if isinstance(value, str) and value.isascii() and value.isdigit() and limit > 2**32:
        number = int(value)  # JSON writes 64-bit integers as strings.
    elif isinstance(value, float) and math.isfinite(value) and value == math.floor(value):
        number = int(value)
    elif not isinstance(value, (bool, float, str)):
        try:
            number = operator.index(value)
        except TypeError:
            number = None
    if number is None:
        raise InvalidArgument(f"must be a whole number, got {_show(value)}", path)
    if not 0 <= number <= limit:
        raise InvalidArgument(f"must be in 0..{limit}, got {_show(value)}", path)
    return number


def _enum(field: FieldDescriptor, value: Any, path: str) -> int:
    known = field.enum_type.values_by_name
    if isinstance(value, str) and value in known:
        return int(known[value].number)
    if isinstance(value, int) and not isinstance(value, bool) and value in field.enum_type.values_by_number:
        return value
    raise InvalidArgument(f"must be one of {', '.join(known)}, got {_show(value)}", path)
