"""Columns of text: as categories if many are alike, otherwise to be searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

MOST_CATEGORIES = 1_000
_END = b"\n"
_AT_ONCE = 16_384  # texts whose letters stay in the cache of a processor
_SOME = 65_536  # letters that tell which ones are rare


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
    sought = [_plain(word) for word in words]
    if not all(sought):
        return ~kept
    ends = np.append(texts.starts, len(texts.joined))
    frequency = np.bincount(texts.joined[:_SOME], minlength=256)
    for first in range(0, len(kept), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        starts = texts.starts[rows]
        letters = texts.joined[starts[0] : ends[min(rows.stop, len(kept))]]
        for word in sought:
            places = _places(letters, word, frequency)
            kept[first + np.searchsorted(starts, starts[0] + places, side="right") - 1] = True
    return kept


def _places(letters: Array, word: bytes, frequency: Array) -> Array:
    """Return where a word begins: its rarest letter is looked for first, the others only there."""
    rarest, *others = sorted(range(len(word)), key=lambda offset: frequency[word[offset]])
    count = max(0, len(letters) - len(word))
    places = np.flatnonzero(letters[rarest : rarest + count] == word[rarest])
    for offset in others:
        places = places[letters[places + offset] == word[offset]]
    return places


def _plain(text: str) -> bytes:
    return text.lower().encode().replace(_END, b" ")


def as_categories(texts: Array) -> tuple[Array, list[str]] | None:
    """Return codes `[N]` and the categories in alphabetical order; None if most texts differ."""
    import pandas as pd

    codes, keys = pd.factorize(texts, sort=True)
    few = len(keys) <= MOST_CATEGORIES and (2 * len(keys) <= len(texts) or len(keys) <= 12)
    return (codes.astype(np.int32), [*map(str, keys)]) if few else None
