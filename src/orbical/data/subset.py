"""Some samples of a data set, in an order of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import torch

from .._trees import tree_map
from .array_source import as_tensor, to_numpy
from .source import Batch, Source, hash_of


class Chosen(Source):
    """Some samples of a source.

    Args:
        source: the source.
        rows: the numbers of the samples.
        labels: labels of these samples in place of those of the source; None for none.
        classes: the names of the classes of `labels`.
        columns: metadata of these samples, beside that of the source.
    """

    def __init__(
        self,
        source: Source,
        rows: Sequence[int],
        labels: object,
        classes: Sequence[str] | None,
        columns: Mapping[str, np.ndarray],
    ) -> None:
        self._source, self._rows = source, [int(row) for row in rows]
        self.labels, self.classes = labels, classes
        names = source.names or [str(row) for row in range(len(source))]
        self.names = [names[row] for row in self._rows]
        own = {name: np.asarray(values)[self._rows] for name, values in source.columns.items()}
        self.columns = {**own, **columns}

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> Batch:
        """Read the chosen samples one by one."""
        some = [self._source.read(row, row + 1)[0] for row in self._rows[start:stop]]
        inputs = tree_map(lambda *parts: torch.cat([as_tensor(one) for one in parts]), *some)
        return inputs, None if self.labels is None else self.labels[start:stop]

    def stamp(self) -> str | None:
        """Return the stamp of the source and of the choice."""
        inner = self._source.stamp()
        labels = b"" if self.labels is None else to_numpy(self.labels).tobytes()
        return inner and hash_of([inner, repr(self._rows), labels])


def spread_rows(count: int, wanted: int, labels: Any = None) -> list[int]:
    """Choose samples at random, always the same; with labels, the classes in turn.

    >>> spread_rows(6, 3, [0, 0, 0, 0, 0, 1])[1], len(spread_rows(4, 9))
    (5, 4)
    """
    order = np.random.default_rng(0).permutation(count)
    whole = labels is None or np.ndim(labels) != 1  # maps and boxes are no classes
    given = np.zeros(count) if whole else np.asarray(labels)[order]
    piles = [order[given == label].tolist() for label in np.unique(given)]
    return [row for row in chain(*zip_longest(*piles)) if row is not None][:wanted]
