"""Read samples chunk by chunk, each once, with a hash of each chunk, ahead of the computation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, Dataset

from .._trees import Tree
from .samples import Samples, hash_of_rows


@dataclass(frozen=True)
class Rows:
    """Some samples: their inputs, their targets, and a hash of both, which may be on its way."""

    inputs: Tree
    targets: Any
    hash: str | Future[str] | None

    @property
    def digest(self) -> str | None:
        """The hash, once it is known."""
        return self.hash.result() if isinstance(self.hash, Future) else self.hash


def read_rows(samples: Samples, rows: slice) -> Rows:
    """Read some samples and hash them."""
    inputs, targets = samples.read(rows.start, rows.stop)
    return Rows(inputs, targets, hash_of_rows(inputs, targets))


def read_ahead(samples: Samples, chunks: Sequence[slice], workers: int = 0) -> Iterator[Rows]:
    """Yield chunks in order; `workers` processes read the next ones meanwhile.

    Without workers only the hash is computed meanwhile, in a thread.
    """
    workers = min(workers or samples.source.workers, len(chunks))
    if workers and samples.source.in_order:
        workers = 1  # each process would read the whole stream
    if workers:
        given = _Chunks(samples, chunks)
        yield from DataLoader(given, None, num_workers=workers, collate_fn=_unchanged)
        return
    with ThreadPoolExecutor(1, "orbical-hash") as thread:
        for rows in chunks:
            inputs, targets = samples.read(rows.start, rows.stop)
            yield Rows(inputs, targets, thread.submit(hash_of_rows, inputs, targets))


class _Chunks(Dataset[Rows]):
    """Chunks of samples by their number, for the processes of a loader."""

    def __init__(self, samples: Samples, chunks: Sequence[slice]) -> None:
        self._samples, self._chunks = samples, chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, number: int) -> Rows:
        return read_rows(self._samples, self._chunks[number])


def _unchanged(rows: Any) -> Any:
    return rows
