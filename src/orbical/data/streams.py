"""Streams: samples that can only be read one after the other, in a number known before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .._imports import words_of
from ..errors import InputError
from .batching import batch_of_items
from .source import Batch, Source


class Stream(Source):
    """Samples from any iterable: an `IterableDataset`, a WebDataset, a generator.

    The length must be known, because a scan makes room for all samples before it starts. Longer
    streams, endless ones too, are cut there.

    Args:
        items: an iterable of `x` or `(x, y)`. A generator can be read once; what can be iterated
            again, such as a list or a data set, can be resumed. A function is called for each
            reading and returns an iterable.
        length: the number of samples.
        classes: the names of the classes, in the order of their indices.

    Raises:
        InputError: if there is nothing to iterate, or no length.

    Example:
        >>> import orbical as ob, torch
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> noise = ob.data.Stream(torch.rand(20, 1, 8, 8), length=20)
        >>> ob.scan(net, noise, group="rotations:8", task="classification", progress=False)
        Scan(classification, rotations:8: 1 model x 20 samples x 8 elements, complete)
    """

    in_order = True

    def __init__(
        self,
        items: Iterable[Any] | Callable[[], Iterable[Any]],
        length: int,
        classes: Sequence[str] | None = None,
    ) -> None:
        if not callable(items) and not hasattr(items, "__iter__"):
            raise InputError("items", "an iterable of samples", type(items).__name__)
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise InputError(
                "length",
                "the number of samples, at least 1",
                repr(length),
                remedy="count them once if it is not known",
            )
        self._items, self._count, self.classes = items, length, classes
        self._iterator: Iterator[Any] | None = None
        self._position = 0

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Batch:
        """Return the next samples; samples before `start` are skipped."""
        if self._iterator is None or start < self._position:
            self._open()
        assert self._iterator is not None
        for _ in self._taken(start - self._position):
            pass
        return batch_of_items(list(self._taken(stop - start)), start)

    def _open(self) -> None:
        fresh = iter(self._items() if callable(self._items) else self._items)
        if fresh is self._items and self._iterator is not None:
            raise InputError(
                "data",
                "a stream that can be read again",
                f"a {type(fresh).__name__} that has been read up to sample {self._position}",
                remedy="pass a function that returns it",
            )
        self._iterator, self._position = fresh, 0

    def _taken(self, count: int) -> Iterator[Any]:
        assert self._iterator is not None
        for _ in range(count):
            try:
                item = next(self._iterator)
            except StopIteration:
                raise InputError(
                    "data",
                    f"a stream of {self._count} samples",
                    f"the end after {self._position}",
                    remedy=f"pass length={self._position}",
                ) from None
            except Exception as error:
                raise InputError(
                    "data",
                    problem=f"the stream raised {type(error).__name__} for sample "
                    f"{self._position}: {words_of(error)}",
                ) from error
            self._position += 1
            yield item

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: a copy begins at the first sample."""
        return {**self.__dict__, "_iterator": None, "_position": 0}
