"""Encode the parts of a report: arrays, quantized where that is harmless, and compressed.

A part is a compressed frame (see `wire`). Scores and confidences between 0 and 1 are quantized to
65,534 equal steps of their log odds, that is within 0.0001 and finer toward 0 and 1, where
confidences crowd; pixels and class probabilities to 256 steps; maps and vector fields to 65,535
steps of their range. Labels, predicted classes and everything else are exact.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..wire import encode

Array = np.ndarray


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


def encode_part(header: Mapping[str, Any], arrays: Mapping[str, Array | Quantized]) -> bytes:
    """Return one part of a report, compressed; the same numbers give the same bytes."""
    plain: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    for name, array in arrays.items():
        if isinstance(array, Quantized):
            codes = np.ascontiguousarray(array.codes)
            steps[name] = {"bits": array.bits, "low": array.low, "step": array.step}
            steps[name] |= {"missing": array.missing, "shape": list(codes.shape)}
            steps[name] |= {"last": _LAST_ODDS} if array.odds else {}
            plain[name] = codes.reshape(-1).view(np.uint8)
        else:
            plain[name] = array
    frame = encode({**header, "quantised": steps}, plain)
    return gzip.compress(frame, compresslevel=9, mtime=0)


def as_text(data: bytes) -> str:
    """Encode bytes as base64 text for a page."""
    return base64.b64encode(data).decode("ascii")
