"""What a report holds: arrays of a scan in parts, stored in steps where that is harmless, zipped.

A part is a frame (see `wire`), compressed. Shares (scores and confidences between 0 and 1) are kept
in 65,534 equal steps of their log odds, so within 0.0001, and ever finer towards 0 and 1, where
confidences crowd; pixels and class probabilities in 256 steps; maps and fields of vectors in 65,535
of their range; labels, predicted classes and everything else are exact.
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
"""Largest log odds that are told apart from certainty: beyond, single precision says 1."""


@dataclass(frozen=True)
class Quantized:
    """Numbers kept as `low + step * code`, or as log odds so; the code `missing` stands for NaN.

    As log odds the first and the last code are 0 and 1 themselves.
    """

    codes: Array
    low: float
    step: float
    missing: int | None
    odds: bool = False

    @property
    def bits(self) -> int:
        """Bits of a code: 8 or 16."""
        return 8 * self.codes.dtype.itemsize

    def values(self) -> Array:
        """Give the numbers again, as the page reads them."""
        found = self.low + self.step * self.codes.astype(np.float64)
        if self.odds:
            found = 1 / (1 + np.exp(-found))
            found[self.codes == 0] = 0.0
            found[self.codes == _LAST_ODDS] = 1.0
        if self.missing is not None:
            found[self.codes == self.missing] = np.nan
        return found.astype(np.float32)


_LAST_ODDS = 65_534


def quantize(
    values: Array, bits: int, low: float | None = None, high: float | None = None
) -> Quantized:
    """Keep numbers in `2^bits` steps between `low` and `high`, by default their own range.

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
    """Keep shares between 0 and 1 in steps of their log odds, to 0.0001 or better.

    >>> kept = quantize_log_odds(np.array([0.0, 0.3, 1 - 2.0**-20, 1.0, np.nan]))
    >>> np.abs(kept.values()[:4] - [0.0, 0.3, 1 - 2.0**-20, 1.0]).max() < 1e-4
    np.True_
    """
    shares = np.asarray(shares, np.float64)
    seen = np.isfinite(shares)
    filled = np.where(seen, shares, 0.5)
    with np.errstate(divide="ignore"):
        odds = np.log(filled) - np.log1p(-filled)
    step = 2 * _ODDS / (_LAST_ODDS - 2)
    low = -_ODDS - step  # the codes 1 and _LAST_ODDS - 1 are the ends of what is told apart
    codes = np.rint((odds.clip(-_ODDS, _ODDS) - low) / step)
    codes[filled <= 0] = 0
    codes[filled >= 1] = _LAST_ODDS
    codes[~seen] = 65_535
    return Quantized(codes.astype(np.uint16), low, step, 65_535, odds=True)


def encode_part(header: Mapping[str, Any], arrays: Mapping[str, Array | Quantized]) -> bytes:
    """Write one part of a report, compressed; the same numbers give the same bytes."""
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
    """Write bytes as text for a page."""
    return base64.b64encode(data).decode("ascii")
