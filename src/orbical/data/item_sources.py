"""Samples one by one: torch data sets and loaders, and streams of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from .._imports_and_paths import words_of
from .._trees import leaves, tree_map
from ..errors import InputError
from .image_files import ImageReader
from .source import Batch, Source, stacked_source_samples

LABELS = ("label", "labels", "y", "target", "targets")
"""Usual names of the field of the targets."""


class Items(Source):
    """A map-style torch `Dataset`, whose items are `x`, `(x, y)` or fields by name.

    Args:
        dataset: anything with a length and items.
        rows: the items to take; all by default.
        collate: makes a batch from a list of items, as in a `DataLoader`.
        workers: the processes that read ahead.
    """

    def __init__(
        self,
        dataset: Any,
        rows: Sequence[int] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        workers: int = 0,
    ) -> None:
        self._dataset, self._rows, self._collate = dataset, rows, collate
        self.workers = workers
        self._count = _length_of_item_source(dataset) if rows is None else len(rows)
        self.classes = _class_names(dataset)

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Batch:
        """Return some items as a batch."""
        items = [self._item(row) for row in range(start, stop)]
        if self._collate is None:
            return _batch_of_items(items, start)
        return _split_item(self._collate(items), leading=1)

    def _item(self, row: int) -> Any:
        """Return an item, and name the sample if reading it fails."""
        try:
            return self._dataset[row if self._rows is None else self._rows[row]]
        except Exception as error:
            raise InputError(
                "data",
                problem=f"{type(self._dataset).__name__} raised {type(error).__name__} for sample "
                f"{row}: {words_of(error)}",
            ) from error


def _split_item(item: object, leading: int = 0) -> tuple[Any, Any]:
    """Return the input and the target of an item: `x`, `(x,)`, `(x, y)`, or fields by name.

    Of fields, the one of a usual name is the target. If only one of the others is an array, beyond
    `leading` dimensions, it is the input, and the rest are facts about the sample.

    >>> _split_item((1.0, 3)), _split_item(1.0), _split_item({"image": [0.5], "label": 3, "id": 7})
    ((1.0, 3), (1.0, None), ([0.5], 3))
    """
    if isinstance(item, dict):
        named = [name for name in LABELS if name in item]
        if len(named) != 1:
            return item, None
        fields = {name: one for name, one in item.items() if name != named[0]}
        arrays = [one for one in fields.values() if _is_image(one) or _axes_of(one) > leading]
        return arrays[0] if len(arrays) == 1 else fields, item[named[0]]
    if not isinstance(item, tuple | list):
        return item, None
    return item[0], item[1] if len(item) > 1 else None


def _is_image(value: object) -> bool:
    return hasattr(value, "convert") and hasattr(value, "getbands")


def _axes_of(value: object) -> int:
    """Return the number of dimensions of an array or a list of numbers; 0 for anything else."""
    known = getattr(value, "ndim", None)
    return np.ndim(value) if known is None and isinstance(value, list) else known or 0


def _batch_of_items(items: Sequence[object], start: int) -> Batch:
    """Stack the inputs and the targets of items, of which the first is sample `start`."""
    inputs, targets = zip(*map(_split_item, items), strict=True)
    images = [_image_as_tensor(one) if _is_image(one) else one for one in inputs]
    given = None if targets[0] is None else stacked_source_samples(targets, start)
    return stacked_source_samples(images, start), given


def _image_as_tensor(image: Any) -> Any:
    """Return a PIL image as a folder of images does, but gray ones with one channel."""
    gray = len(image.getbands()) == 1 and image.mode != "P"
    return ImageReader(mode="L" if gray else "RGB").convert(image)


def from_dataset(data: object) -> Source | None:
    """Return the source of a torch data set or loader; None for anything else."""
    if isinstance(data, DataLoader):
        return _source_from_loader(data)
    if isinstance(data, IterableDataset):
        return Stream(data, _length_of_item_source(data))
    return Items(data) if isinstance(data, Dataset) or _is_list_of_pairs(data) else None


def _is_list_of_pairs(data: object) -> bool:
    """Check whether data is a list of `(array, label)`, as a list made of a data set is."""

    def is_pair(item: Any) -> bool:
        pair = isinstance(item, tuple) and len(item) == 2
        return pair and np.ndim(item[0]) > 0 and np.ndim(item[1]) == 0

    return isinstance(data, list) and bool(data) and all(map(is_pair, data))


def _source_from_loader(loader: DataLoader[object]) -> Source:
    """Return the samples of a loader, in its order, which must be the same each time."""
    collate = None if loader.collate_fn is default_collate else loader.collate_fn
    if isinstance(loader.dataset, IterableDataset):
        return Stream(ItemBatches(loader), _length_of_item_source(loader.dataset))
    rows = list(_order_of_loader(loader))
    looks = 1 if len(rows) > 20 else 8  # few samples may come in the same order by chance
    if any(rows != list(_order_of_loader(loader)) for _ in range(looks)):
        raise InputError(
            "data",
            "a DataLoader that does not shuffle",
            "one with another order each time",
            remedy="pass DataLoader(..., shuffle=False) or loader.dataset",
        )
    every = rows == list(range(len(loader.dataset)))  # type: ignore[arg-type]
    return Items(loader.dataset, None if every else rows, collate, loader.num_workers)


def _order_of_loader(loader: DataLoader[object]) -> Iterator[int]:
    if loader.batch_sampler is None:
        yield from loader.sampler
        return
    for batch in loader.batch_sampler:
        yield from batch


class ItemBatches:
    """The samples of a loader of a stream, taken out of its batches."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            if self._loader.batch_size is None and self._loader.batch_sampler is None:
                yield batch
                continue
            inputs, targets = _split_item(batch, leading=1)
            for row in range(len(next(leaves(inputs)))):
                one = tree_map(lambda leaf, row=row: leaf[row], inputs)
                yield one if targets is None else (one, targets[row])


def _length_of_item_source(dataset: Any) -> int:
    try:
        count = len(dataset)
    except (TypeError, NotImplementedError):  # torch defines __len__ of some as an error
        count = 0
    if count == 0:
        raise InputError(
            "data",
            "a data set with a length of at least 1",
            f"{type(dataset).__name__}, which is empty or has no length",
            remedy="pass a stream with orbical.data.Stream(items, length)",
        )
    return count


def _class_names(dataset: object) -> list[str] | None:
    """Return the class names that torchvision's data sets have."""
    names = getattr(dataset, "classes", None)
    named = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return [*names] if named and names else None


class Stream(Source):
    """Samples from any iterable: an `IterableDataset`, a WebDataset, a generator.

    The length must be known, because a scan makes room for all samples before it starts. Longer
    streams, endless ones too, are cut there.

    Args:
        items: an iterable of `x`, `(x, y)` or `{"image": x, "label": y}`. A generator can be read
            once; what can be iterated again, such as a list or a data set, can be resumed. A
            function is called for each reading and returns an iterable.
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
        items: Iterable[object] | Callable[[], Iterable[object]],
        length: int,
        classes: Sequence[str] | None = None,
    ) -> None:
        if not callable(items) and not hasattr(items, "__iter__"):
            raise InputError("items", "an iterable of samples", type(items))
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise InputError(
                "length",
                "the number of samples, at least 1",
                repr(length),
                remedy="count them once if it is not known",
            )
        self._items, self._count, self.classes = items, length, classes
        self._iterator: Iterator[object] | None = None
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
        return _batch_of_items(list(self._taken(stop - start)), start)

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

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: a copy begins at the first sample."""
        return {**self.__dict__, "_iterator": None, "_position": 0}
