"""Texts as rows of code points, and the edit distance of many pairs of them at once."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

END = -1
"""What follows the last character of a row."""


def encoded(texts: Iterable[str], length: int) -> Tensor | None:
    """Return texts as code points `[N, length]`, -1 after the end; None if one is too long.

    >>> encoded(["ab", ""], 3).tolist()
    [[97, 98, -1], [-1, -1, -1]]
    """
    rows = [[ord(letter) for letter in text] for text in texts]
    if any(len(row) > length for row in rows):
        return None
    full = [row + [END] * (length - len(row)) for row in rows]
    return torch.tensor(full, dtype=torch.int64).reshape(-1, length)


def decoded(codes: Tensor) -> list[str]:
    """Return the texts of rows of code points `[N, L]`.

    >>> decoded(torch.tensor([[97, 98, -1]]))
    ['ab']
    """
    return ["".join(chr(code) for code in row if code >= 0) for row in codes.tolist()]


def lengths(codes: Tensor) -> Tensor:
    """Return the number of characters `[...]` of rows `[..., L]`."""
    return (codes >= 0).sum(-1)


def edit_distance(first: Tensor, second: Tensor) -> Tensor:
    """Return the Levenshtein distance `[...]` of texts `[..., L]` and `[..., M]`.

    A row of the table of distances of all beginnings takes a minimum over the row before it, for
    substitutions and deletions, and a running minimum, for insertions.

    >>> words = encoded(["kitten", "sitting"], 7)
    >>> int(edit_distance(words[0], words[1]))
    3
    """
    shape = torch.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    first, second = (codes.expand(*shape, codes.shape[-1]) for codes in (first, second))
    places = torch.arange(second.shape[-1] + 1, device=second.device)
    ended, columns = lengths(first), lengths(second)[..., None]
    row = places.expand(*shape, len(places))
    found = row.gather(-1, columns)[..., 0]
    for size in range(1, first.shape[-1] + 1):
        replaced = row[..., :-1] + (second != first[..., size - 1 : size])
        fresh = torch.cat([row[..., :1] + 1, torch.minimum(row[..., 1:] + 1, replaced)], -1)
        row = (fresh - places).cummin(-1).values + places
        found = torch.where(ended == size, row.gather(-1, columns)[..., 0], found)
    return found
