"""Frames between server and page: a JSON header and raw little-endian arrays.

A frame is the length of its header as an unsigned 32-bit number, the header as JSON in UTF-8,
padded with spaces to a multiple of four bytes, and the buffers in the order of `header["arrays"]`,
each padded likewise, so that a page can lay typed arrays over them without a copy.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._text import json_values
from ..errors import InputError
from ..store import Json

Array = np.ndarray

DTYPES = {"u1": np.uint8, "i4": np.int32, "u4": np.uint32, "f4": np.float32}
PNG = "png"
_NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}


def encode_frame(header: Mapping[str, object], arrays: Mapping[str, np.ndarray | bytes]) -> bytes:
    """Encode a frame. Numbers in the header that JSON does not have (NaN, infinity) become null.

    >>> frame = encode_frame({"kind": "subset"}, {"mask": np.array([1, 0], np.uint8)})
    >>> len(frame) % 4, [*frame[-4:]]
    (0, [1, 0, 0, 0])
    """
    entries, buffers = [], []
    for name, array in arrays.items():
        if isinstance(array, bytes):
            entries.append({"name": name, "dtype": PNG, "shape": [len(array)]})
            buffers.append(array)
        else:
            plain = _as_wire_array(array)
            entries.append({"name": name, "dtype": _NAMES[plain.dtype], "shape": list(plain.shape)})
            buffers.append(plain.tobytes())
    text = json.dumps(json_values({**header, "arrays": entries}), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    padded = [part for buffer in buffers for part in (buffer, b"\0" * (-len(buffer) % 4))]
    return b"".join([struct.pack("<I", len(text)), text, *padded])


def _as_wire_array(array: np.ndarray) -> np.ndarray:
    """Return a contiguous array of one of the four types of the format.

    >>> _as_wire_array(np.array([True])).dtype, _as_wire_array(np.arange(2.0)).dtype
    (dtype('uint8'), dtype('float32'))
    """
    array = np.asarray(array)
    if array.dtype not in _NAMES:
        kinds = {"b": np.uint8, "f": np.float32, "i": np.int32, "u": np.uint32}
        if array.dtype.kind not in kinds:
            raise InputError("array", "numbers", array.dtype)
        array = array.astype(kinds[array.dtype.kind])
    return np.ascontiguousarray(array)


_ODDS = 18.0
"""Largest log odds that differ from certainty: beyond, single precision is 1."""
_LAST_ODDS = 65_534


@dataclass(frozen=True)
class Quantized:
    """Numbers stored as `low + step * code`, or their log odds; the code `missing` is NaN.

    For log odds the first and the last code are exactly 0 and 1.
    """

    codes: Array
    low: float
    step: float
    missing: int | None
    odds: bool = False

    @property
    def bits(self) -> int:
        """The number of bits of a code, 8 or 16."""
        return 8 * self.codes.dtype.itemsize


def quantize(
    values: Array, bits: int, low: float | None = None, high: float | None = None
) -> Quantized:
    """Quantize numbers to `2^bits` steps between `low` and `high`, by default their range.

    >>> quantize(np.array([0.0, 0.25, np.nan, 1.0]), 8, 0.0, 1.0).codes.tolist()
    [0, 64, 255, 254]
    """
    values = np.asarray(values, np.float64)
    seen = np.isfinite(values)
    whole = bool(seen.all())
    if low is None or high is None:
        known = values[seen]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    largest = 2**bits - (1 if whole else 2)
    step = (high - low) / largest if high > low else 1.0
    codes = np.rint((np.where(seen, values, low).clip(low, high) - low) / step)
    codes[~seen] = 2**bits - 1
    kind = {8: np.uint8, 16: np.uint16}[bits]
    return Quantized(codes.astype(kind), low, step, None if whole else 2**bits - 1)


def quantize_log_odds(shares: Array) -> Quantized:
    """Quantize numbers between 0 and 1 in steps of their log odds, to 0.0001 or better.

    >>> quantize_log_odds(np.array([0.0, 0.5, 1.0])).codes.tolist()
    [0, 32767, 65534]
    """
    shares = np.asarray(shares, np.float64)
    seen = np.isfinite(shares)
    filled = np.where(seen, shares, 0.5)
    with np.errstate(divide="ignore"):
        odds = np.log(filled) - np.log1p(-filled)
    step = 2 * _ODDS / (_LAST_ODDS - 2)
    low = -_ODDS - step  # the codes 1 and _LAST_ODDS - 1 are the ends
    codes = np.rint((odds.clip(-_ODDS, _ODDS) - low) / step)
    codes[filled <= 0] = 0
    codes[filled >= 1] = _LAST_ODDS
    codes[~seen] = 65_535
    return Quantized(codes.astype(np.uint16), low, step, 65_535, odds=True)


def encode_report_part(
    header: Mapping[str, object], arrays: Mapping[str, Array | Quantized]
) -> bytes:
    """Return one part of a report, compressed; the same numbers give the same bytes.

    Neighbors are alike, so codes of 16 bits are stored as differences, all low bytes before all
    high ones. An array that repeats an earlier one is its name under `same`: the window of gzip is
    shorter than a curve.
    """
    plain: Json = {}
    steps: Json = {}
    same: dict[str, str] = {}
    first: dict[object, str] = {}
    for name, array in arrays.items():
        about: Json = {}
        if isinstance(array, Quantized):
            about = {"bits": array.bits, "low": array.low, "step": array.step}
            about |= {"missing": array.missing, "shape": list(array.codes.shape)}
            about |= {"last": _LAST_ODDS} if array.odds else {}
            values = _bytes_of_codes(array.codes)
        else:
            values = _as_wire_array(array)
        known = first.setdefault((values.shape, values.dtype, values.tobytes(), str(about)), name)
        if known != name:
            same[name] = known
            continue
        plain[name] = values
        if about:
            steps[name] = about
    frame = encode_frame({**header, "quantised": steps, "same": same}, plain)
    return gzip.compress(frame, compresslevel=6, mtime=0)


def _bytes_of_codes(codes: Array) -> Array:
    flat = codes.reshape(-1)
    if codes.dtype == np.uint8:
        return flat
    changes = np.diff(flat, prepend=np.uint16(0)).astype("<u2")
    return changes.view(np.uint8).reshape(-1, 2).T.reshape(-1)


def as_base64(data: bytes) -> str:
    """Encode bytes as base64 text for a page."""
    return base64.b64encode(data).decode("ascii")
