"""Data to scan: any source as tensors, or some of its samples, read ahead of the computation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .._trees import Tree, leaves, tree_map
from .array_source import source_array_as_tensor, to_numpy
from .open_data import as_source
from .source import Batch, Source, data_hash, is_lazy


class Samples:
    """Inputs and targets, read a slice at a time, so that memory does not grow with the data.

    The first samples that are read are kept, unless they are in memory anyway: a scan looks at them
    before it starts, and each sample is read once.

    Args:
        data: `x`, `(x, y)`, a path, or any of the kinds of data that `orbical.scan` takes.
        names: the names of the samples, for display.
        fingerprint: a text that identifies the data, so that they need not be read for it.

    Example:
        >>> import numpy as np
        >>> samples = Samples((np.zeros((3, 1, 8, 8)), [0, 1, 2]))
        >>> len(samples), samples.inputs(0, 2).shape
        (3, torch.Size([2, 1, 8, 8]))
    """

    def __init__(
        self, data: object, names: Sequence[str] | None = None, fingerprint: str | None = None
    ) -> None:
        self.source: Source = data.source if isinstance(data, Samples) else as_source(data)
        given = self.source.names if names is None else names
        if given is not None and not is_lazy(given):
            given = [str(name) for name in given]
        self.names = given
        self.fingerprint = fingerprint
        self._kept: tuple[int, Tree, object] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def first(self, count: int) -> Batch:
        """Read the first samples and keep them."""
        known = self.source.in_memory or (self._kept is not None and self._kept[0] >= count)
        if not known:
            self._kept = (count, *self._read(0, min(count, len(self))))
        return self.read(0, min(count, len(self)))

    def read(self, start: int, stop: int) -> Batch:
        """Return inputs as tensors, and targets; NumPy arrays in double precision become single."""
        kept = 0 if self._kept is None else min(self._kept[0], len(self))
        if self._kept is None or start >= kept:
            return self._read(start, stop)
        inputs, targets = _slice_of_batch(self._kept[1:], start, min(stop, kept))
        if stop <= kept:
            return inputs, targets
        more, others = self._read(kept, stop)
        both = tree_map(lambda a, b: torch.cat([a, b]), inputs, more)
        return both, None if targets is None else _concatenated(targets, others)

    def inputs(self, start: int, stop: int) -> Tree:
        """Return some inputs as tensors."""
        return self.read(start, stop)[0]

    def whole(self) -> Tree:
        """Return all inputs as tensors in their own precision."""
        return tree_map(source_array_as_tensor, self.source.read(0, len(self))[0])

    @cached_property
    def stamp(self) -> str | None:
        """A text that changes with the data and is known without reading them, if any."""
        return self.source.stamp()

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: others read the first samples themselves and need no names."""
        return {**self.__dict__, "_kept": None, "names": None}

    def _read(self, start: int, stop: int) -> Batch:
        inputs, targets = self.source.read(start, stop)
        if self.source.labels is None:
            targets = None if targets is None else source_array_as_tensor(targets)
        elif targets is None:
            targets = self.source.labels[start:stop]
        return tree_map(lambda leaf: source_array_as_tensor(leaf, longest=4), inputs), targets


def _slice_of_batch(rows: Batch, start: int, stop: int) -> Batch:
    inputs, targets = rows
    some = tree_map(lambda leaf: leaf[start:stop], inputs)
    return some, None if targets is None else targets[start:stop]


def _concatenated(one: object, other: object) -> Any:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.cat([one, other])
    return np.concatenate([to_numpy(one), to_numpy(other)])


def hash_of_rows(inputs: Tree, targets: object) -> str:
    """Return a hash of some samples: of their numbers, however these are kept."""
    digest = hashlib.sha256()
    for leaf in [*leaves(inputs), *([] if targets is None else [targets])]:
        block = to_numpy(leaf)
        digest.update(repr((block.dtype.str, block.shape)).encode())
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class SampleRows:
    """Some samples: their inputs, their targets, and a hash of both, which may be on its way."""

    inputs: Tree
    targets: object
    hash: str | Future[str] | None

    @property
    def digest(self) -> str | None:
        """The hash, once it is known."""
        return self.hash.result() if isinstance(self.hash, Future) else self.hash


def read_rows(samples: Samples, rows: slice) -> SampleRows:
    """Read some samples and hash them."""
    inputs, targets = samples.read(rows.start, rows.stop)
    return SampleRows(inputs, targets, hash_of_rows(inputs, targets))


def read_samples_ahead(
    samples: Samples, chunks: Sequence[slice], workers: int = 0
) -> Iterator[SampleRows]:
    """Yield chunks in order; `workers` processes read the next ones meanwhile.

    Without workers only the hash is computed meanwhile, in a thread.
    """
    workers = min(workers or samples.source.workers, len(chunks))
    if workers and samples.source.in_order:
        workers = 1  # each process would read the whole stream
    if workers:
        given = _SampleChunks(samples, chunks)
        yield from DataLoader(given, None, num_workers=workers, collate_fn=_unchanged)
        return
    with ThreadPoolExecutor(1, "orbical-hash") as thread:
        for rows in chunks:
            inputs, targets = samples.read(rows.start, rows.stop)
            yield SampleRows(inputs, targets, thread.submit(hash_of_rows, inputs, targets))


class _SampleChunks(Dataset[SampleRows]):
    """Chunks of samples by their number, for the processes of a loader."""

    def __init__(self, samples: Samples, chunks: Sequence[slice]) -> None:
        self._samples, self._chunks = samples, chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, number: int) -> SampleRows:
        return read_rows(self._samples, self._chunks[number])


def _unchanged(rows: object) -> Any:
    return rows


class ChosenSamples(Source):
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
        inputs = tree_map(
            lambda *parts: torch.cat([source_array_as_tensor(one) for one in parts]), *some
        )
        return inputs, None if self.labels is None else self.labels[start:stop]

    def stamp(self) -> str | None:
        """Return the stamp of the source and of the choice."""
        inner = self._source.stamp()
        labels = b"" if self.labels is None else to_numpy(self.labels).tobytes()
        return inner and data_hash([inner, repr(self._rows), labels])


def spread_samples(count: int, wanted: int, labels: Any = None) -> list[int]:
    """Choose samples at random, always the same; with labels, the classes in turn.

    >>> spread_samples(6, 3, [0, 0, 0, 0, 0, 1])[1], len(spread_samples(4, 9))
    (5, 4)
    """
    order = np.random.default_rng(0).permutation(count)
    whole = labels is None or np.ndim(labels) != 1  # maps and boxes are no classes
    given = np.zeros(count) if whole else np.asarray(labels)[order]
    piles = [order[given == label].tolist() for label in np.unique(given)]
    return [row for row in chain(*zip_longest(*piles)) if row is not None][:wanted]
