"""Actions on texts and lists of texts, which a batch holds as bytes; and on prepared versions."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from .action import Exact
from .on_points_and_vectors import Rows, check_permuted_rows

Nested = Any
"""N texts, or N lists of texts, or N values of JSON such as the messages of a chat."""


def encode_texts(texts: Nested, length: int | None = None) -> np.ndarray:
    """Return texts, or lists of n texts each, as UTF-8 `[N, L]` or `[N, n, L]`, padded with zeros.

    Args:
        texts: the texts, or lists of as many each.
        length: the number of bytes L; by default those of the longest.

    Returns:
        The bytes.

    Raises:
        InputError: if the lists differ in length, or an entry is no text.

    Example:
        >>> encode_texts(["ab", "c"]).tolist()
        [[97, 98], [99, 0]]
    """
    shape = _shape_of_texts(texts)
    flat = texts if len(shape) == 1 else [text for row in texts for text in row]
    wrong = next((text for text in flat if not isinstance(text, str) or "\0" in text), None)
    if wrong is not None:
        raise InputError("data", "texts without the character 0", repr(wrong)[:60])
    rows = [text.encode("utf-8", "surrogatepass") for text in flat]
    longest = max(1, length or 0, *map(len, rows)) if rows else 1
    joined = b"".join(row.ljust(longest, b"\0") for row in rows)
    return np.frombuffer(joined, np.uint8).reshape(*shape, longest).copy()


def _shape_of_texts(texts: Nested) -> tuple[int, ...]:
    if not texts or isinstance(texts[0], str):
        return (len(texts),)
    sizes = sorted({len(row) if isinstance(row, list | tuple) else 0 for row in texts})
    if len(sizes) > 1 or not sizes[0]:
        raise InputError(
            "data",
            "lists of as many texts each",
            f"lists of {' and '.join(map(str, sizes))}",
            remedy="scan samples with another number of texts by themselves",
        )
    return len(texts), sizes[0]


def _decode_texts(codes: Tensor) -> Nested:
    """Return the texts that `encode_texts` turned to bytes, in the shape that they had.

    >>> _decode_texts(torch.as_tensor(encode_texts([["ä", ""], ["b", "c"]])))
    [['ä', ''], ['b', 'c']]
    """
    if codes.ndim > 2:
        return [_decode_texts(row) for row in codes]
    each = (bytes(row).rstrip(b"\0") for row in codes.cpu().numpy())
    return [row.decode("utf-8", "surrogatepass") for row in each]


class Texts(Exact):
    """Texts `[B, L]`, or lists of n texts `[B, n, L]` that permutations reorder, as bytes.

    Models receive lists of strings, or lists of lists.

    Args:
        parsed: whether each text is JSON, such as the messages of a chat, and models receive what
            it stands for.

    Example:
        >>> from orbical.groups import permutations
        >>> action = Texts()
        >>> swapped = action.apply(permutations(2), action.encode([["yes", "no"]]))[1]
        >>> action.decode(swapped)
        [['no', 'yes']]
    """

    parts: ClassVar[tuple[str, ...]] = ("rows",)
    drawn_as: ClassVar[str] = "texts"

    def __init__(self, parsed: bool = False) -> None:
        self.parsed = parsed

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Reorder lists `x[K or 1, B, n, L]`; single texts `[K or 1, B, L]` stay."""
        if x.ndim == 4:
            return Rows().move(elements, x)
        return x.expand(len(elements), *x.shape[1:])

    def moved_by(self, x: Tensor) -> frozenset[str]:
        """Return the rows of lists; nothing moves a single text."""
        return frozenset(self.parts if x.ndim == 3 else ())

    def check(self, group: Group, x: Tensor) -> None:
        """Check that these are bytes, and lists as long as the permutations."""
        super().check(group, x)
        if x.dtype != torch.uint8 or x.ndim not in (2, 3):
            raise InputError("data", "texts, or lists of texts", f"an array of {x.dtype}")
        if x.ndim == 3:
            check_permuted_rows(group, x, "options of each question, or texts of each list")

    def encode(self, given: Nested) -> Tensor:
        """Return texts, or the values of JSON, as bytes."""
        texts = [json.dumps(value) for value in given] if self.parsed else given
        return torch.as_tensor(encode_texts(texts))

    def decode(self, x: Tensor) -> Nested:
        """Return texts, or the values of JSON, from bytes `[N, L]` or `[N, n, L]`."""
        texts = _decode_texts(x)
        return [json.loads(text) for text in texts] if self.parsed else texts


class Versions(Exact):
    """Prepared versions `[B, V, ...]` of each sample, of which an element chooses one.

    Paraphrases of a question, its text in capitals, a name exchanged for another: the versions are
    made beforehand, and element k of `orbical.groups.variations` shows the k-th.

    Args:
        of_texts: whether versions are texts, and models receive strings.

    Example:
        >>> from orbical.groups import variations
        >>> action = Versions()
        >>> shown = action.apply(variations("as written", "capitals"), action.encode([["a", "A"]]))
        >>> [action.decode(each) for each in shown]
        [['a'], ['A']]
    """

    parts: ClassVar[tuple[str, ...]] = ("variation", "substitution")
    drawn_as: ClassVar[str] = "texts"

    def __init__(self, of_texts: bool = True) -> None:
        self.of_texts = of_texts

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Choose of `x[K or 1, B, V, ...]` the version of each element, `[K, B, ...]`."""
        chosen = _version(elements)
        if (chosen < 0).any():
            raise InputError(
                "group", "elements with an inverse", "variations, which claim to have none"
            )
        each = x.expand(len(elements), *x.shape[1:])
        return torch.stack(
            [one[:, int(version)] for one, version in zip(each, chosen, strict=True)]
        )

    def check(self, group: Group, x: Tensor) -> None:
        """Check that each sample has a version for each element."""
        super().check(group, x)
        needed = int(_version(group).max()) + 1
        if x.ndim < 3 or x.shape[1] < needed:
            raise InputError("data", f"{needed} versions of each sample, [sample, version, ...]", x)

    def encode(self, given: Nested) -> Tensor:
        """Return lists of versions as bytes, where they are texts."""
        return torch.as_tensor(encode_texts(given)) if self.of_texts else given

    def decode(self, x: Tensor) -> Nested:
        """Return chosen versions as texts, where they are."""
        return _decode_texts(x) if self.of_texts else x


def _version(elements: Elements) -> np.ndarray:
    """Return the number of the version that each element shows."""
    if "substitution" in elements.parts:
        return elements.parts["substitution"][:, 0]
    return elements.parts.get("variation", np.zeros(len(elements), int))
