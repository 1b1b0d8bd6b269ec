"""Frames between server and page: a JSON header and raw little-endian arrays.

A frame is the length of its header as an unsigned 32-bit number, the header as JSON in UTF-8,
padded with spaces to a multiple of four bytes, and the buffers in the order of `header["arrays"]`,
each padded likewise, so that a page can lay typed arrays over them without a copy.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError

DTYPES = {"u1": np.uint8, "i4": np.int32, "u4": np.uint32, "f4": np.float32}
PNG = "png"
_NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}


def encode(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray | bytes]) -> bytes:
    """Encode a frame. Numbers in the header that JSON does not have (NaN, infinity) become null.

    >>> frame = encode({"kind": "subset"}, {"mask": np.array([1, 0], np.uint8)})
    >>> len(frame) % 4, [*frame[-4:]]
    (0, [1, 0, 0, 0])
    """
    entries, buffers = [], []
    for name, array in arrays.items():
        if isinstance(array, bytes):
            entries.append({"name": name, "dtype": PNG, "shape": [len(array)]})
            buffers.append(array)
        else:
            plain = as_wire_array(array)
            entries.append({"name": name, "dtype": _NAMES[plain.dtype], "shape": list(plain.shape)})
            buffers.append(plain.tobytes())
    text = json.dumps(to_plain_json({**header, "arrays": entries}), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    padded = [part for buffer in buffers for part in (buffer, b"\0" * (-len(buffer) % 4))]
    return b"".join([struct.pack("<I", len(text)), text, *padded])


def as_wire_array(array: np.ndarray) -> np.ndarray:
    """Return a contiguous array of one of the four types of the format.

    >>> as_wire_array(np.array([True])).dtype, as_wire_array(np.arange(2.0)).dtype
    (dtype('uint8'), dtype('float32'))
    """
    array = np.asarray(array)
    if array.dtype not in _NAMES:
        kinds = {"b": np.uint8, "f": np.float32, "i": np.int32, "u": np.uint32}
        if array.dtype.kind not in kinds:
            raise InputError("array", "numbers", array.dtype)
        array = array.astype(kinds[array.dtype.kind])
    return np.ascontiguousarray(array)


def to_plain_json(value: Any) -> Any:
    """Convert numbers and containers to types that JSON has.

    >>> to_plain_json({"a": float("nan"), "b": (np.int64(1), np.float32(0.5))})
    {'a': None, 'b': [1, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(part) for part in value]
    if isinstance(value, np.ndarray):
        return to_plain_json(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
