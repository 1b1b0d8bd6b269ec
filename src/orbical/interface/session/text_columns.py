"""Columns of text: as categories if many are alike, otherwise to be searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

MOST_CATEGORIES = 1_000
_END = b"\n"


@dataclass(frozen=True)
class Texts:
    """Texts in one run of lower-case bytes, which is searched faster than one after the other.

    Attributes:
        joined: The texts in UTF-8, each with a line break after it.
        starts: Where each begins, `[N]`.
    """

    joined: Array
    starts: Array

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Join texts; line breaks in them become blanks."""
        lines = [_plain(str(text)) for text in texts]
        lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        starts = np.cumsum(lengths) - lengths
        return cls(np.frombuffer(_END.join([*lines, b""]), np.uint8), starts)


def matching(texts: Texts, words: Sequence[str]) -> Array:
    """Return which texts contain one of the words, `[N]`, whatever their case.

    >>> matching(Texts.of(["A cat", "Dogs", "catfish"]), ["CAT"]).tolist()
    [True, False, True]
    """
    kept = np.zeros(len(texts.starts), bool)
    for word in words:
        sought = _plain(word)
        if not sought:
            return np.ones(len(kept), bool)
        count = len(texts.joined) - len(sought)
        found = np.ones(max(0, count), bool)
        for offset, letter in enumerate(sought):
            found &= texts.joined[offset : offset + len(found)] == letter
        kept[np.searchsorted(texts.starts, np.flatnonzero(found), side="right") - 1] = True
    return kept


def _plain(text: str) -> bytes:
    return text.lower().encode().replace(_END, b" ")


def as_categories(texts: Array) -> tuple[Array, list[str]] | None:
    """Return codes `[N]` and the categories in alphabetical order; None if most texts differ."""
    import pandas as pd

    codes, keys = pd.factorize(texts, sort=True)
    few = len(keys) <= MOST_CATEGORIES and (2 * len(keys) <= len(texts) or len(keys) <= 12)
    return (codes.astype(np.int32), [*map(str, keys)]) if few else None
