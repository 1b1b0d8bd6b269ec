"""Sets of samples, each named by a hash of its contents.

A request names a set by its hash, so it means the same samples on any map, and a session that has
forgotten a set cannot mistake it for another. Whoever knows the samples can send them again, so
the session remembers nothing that matters.
"""

from __future__ import annotations

import numpy as np

from ...errors import InputError
from ..sidecar import bits_key
from .scan_view import ScanView

Array = np.ndarray

ALL = ""
"""The name of the set of all samples."""


class UnknownSet(InputError):
    """A set of samples that the session does not hold; the page may send its samples again."""

    code = "unknown-set"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"selection subset: expected a set of samples that is known here, got {name!r}; "
            "send its samples again, or choose them again"
        )
        self.set = name


def packed(mask: Array) -> Array:
    """Return a mask `[N]` as bits, the first sample lowest.

    >>> packed(np.array([True, False, True])).tolist()
    [5]
    """
    return np.packbits(mask, bitorder="little")


def keep_set(view: ScanView, mask: Array) -> str:
    """Keep a set of samples, given as a mask `[N]`, and return its name."""
    if mask.all():
        return ALL
    bits = packed(mask)
    name = bits_key(bits.tobytes())
    view.sets.get_or_compute(name, lambda: bits)
    return name


def mask_of_set(view: ScanView, name: str) -> Array:
    """Return the mask `[N]` of a set; raise `UnknownSet` if neither session nor folder has it."""
    if name == ALL:
        return np.ones(view.samples, bool)
    bits = view.sets.get(name)
    if bits is None:
        saved = view.sidecar.bits(name)
        if saved is None or len(saved) != -(-view.samples // 8):
            raise UnknownSet(name)
        bits = view.sets.get_or_compute(name, lambda: np.frombuffer(saved, np.uint8))
    return np.unpackbits(bits, count=view.samples, bitorder="little").view(bool)
