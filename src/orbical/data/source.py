"""What every kind of data offers: samples by number, put together as batches, and facts."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._ragged import padding_mask
from .._trees import Tree
from ..errors import InputError, WithUsage
from ..tasks import read_class_names

Batch = tuple[Tree, Any]
"""Inputs and targets of some samples; the targets are None where there are none."""


class Source(WithUsage, ABC):
    """A data set that a scan can read: subclass it for your own data.

    A source is cheap to make and to pickle; samples are read when they are needed, each once in a
    scan. Only `__len__` and `read` are required.

    Attributes:
        labels: the targets of all samples, where they are known without reading the samples.
        names: the names of the samples. A scan reads some names at a time, as it does columns and,
            of millions of samples, labels: a sequence that makes or reads them when it is sliced
            takes no memory.
        classes: the names of the classes, in the order of their indices.
        columns: further facts about the samples, one array each, by name.
        in_order: whether samples can only be read one after the other.
        in_memory: whether samples can be read again at no cost.
        workers: the processes that read ahead, where the data say so themselves.
        action: the action on the inputs, where the data say so themselves, as texts do.
        usual_task: the name of the task of these data, if classes that stay make no sense for them.

    Example:
        >>> import orbical as ob, torch
        >>> class Noise(ob.data.Source):
        ...     def __len__(self):
        ...         return 20
        ...     def read(self, start, stop):
        ...         return torch.rand(stop - start, 1, 8, 8), None
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> ob.scan(net, Noise(), group="rotations:8", task="classification", progress=False)
        Scan(classification, rotations:8: 1 model x 20 samples x 8 elements, complete)
        >>> Noise()
        Noise(20 samples)
    """

    labels: Any = None
    names: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    columns: Mapping[str, np.ndarray] = MappingProxyType({})
    in_order: bool = False
    in_memory: bool = False
    workers: int = 0
    action: Any = None
    usual_task: str | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", {len(self.classes):,} classes"
        return f"{type(self).__name__}({len(self):,} samples{classes})"

    @abstractmethod
    def read(self, start: int, stop: int) -> Batch:
        """Return the inputs and the targets (or None) of samples `start` to `stop - 1`.

        Inputs are an array or a tensor with a leading sample dimension, or a dictionary or tuple of
        these.
        """

    def check(self) -> None:
        """Check that samples can be read, as far as that is seen without reading them all."""

    def stamp(self) -> str | None:
        """Return a text that changes with the data and is known without reading them, if any.

        Files have one: their names, sizes and times of change.
        """
        return None


class Relabeled(Source):
    """A source with other targets, or with none: `(source, labels)`."""

    def __init__(self, source: Source, labels: object) -> None:
        self._source, self.labels = source, labels
        self.names, self.columns = source.names, {**source.columns}
        self.in_order, self.workers, self.action = source.in_order, source.workers, source.action

    def __len__(self) -> int:
        return len(self._source)

    def read(self, start: int, stop: int) -> Batch:
        """Return inputs, and the targets that were given."""
        inputs, _ = self._source.read(start, stop)
        return inputs, None if self.labels is None else self.labels[start:stop]

    def check(self) -> None:
        """Check the source."""
        self._source.check()

    def stamp(self) -> str | None:
        """Return the stamp of the source and a hash of the labels."""
        inner = self._source.stamp()
        labels = [] if self.labels is None else [np.asarray(self.labels).tobytes()]
        return inner and data_hash([inner, str(self.labels is None), *labels])


def data_hash(parts: Iterable[str | bytes]) -> str:
    """Return a short hash of texts and bytes.

    >>> data_hash(["a", b"b"]) == data_hash(["a", "b"]) != data_hash(["ab"])
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def data_stamp(files: Mapping[str, str | Path], settings: Iterable[object] = ()) -> str:
    """Return a hash of the names, sizes and times of files, and of how they are read."""
    parts = [repr(setting) for setting in settings]
    for name, path in files.items():
        about = Path(path).stat()
        parts.append(f"{name} {about.st_size} {about.st_mtime_ns}")
    return data_hash(parts)


def stacked_source_samples(values: Sequence[Any], start: int) -> Tree:
    """Stack values, or each field of dictionaries and tuples, and name a sample that differs."""
    first = values[0]
    if isinstance(first, dict):
        return {key: stacked_source_samples([one[key] for one in values], start) for key in first}
    if isinstance(first, tuple):
        return tuple(stacked_source_samples(part, start) for part in zip(*values, strict=True))
    arrays: list[Any] = [one if isinstance(one, Tensor) else np.asarray(one) for one in values]
    shape = tuple(arrays[0].shape)
    for place, array in enumerate(arrays):
        if tuple(array.shape) != shape:
            raise InputError(
                "data",
                f"samples of shape {shape}, the shape of sample {start}",
                f"{tuple(array.shape)} for sample {start + place}",
                remedy="resize or crop images to one size, and pad point clouds of different "
                "sizes with orbical.datasets.padded",
            )
    if all(isinstance(array, Tensor) for array in arrays):
        return torch.stack(arrays)
    return np.stack([np.asarray(array) for array in arrays])


def data_source_class_indices(
    given: Sequence[str], classes: Sequence[str] | None, where: str
) -> tuple[np.ndarray, list[str]]:
    """Return class names as indices, sorted or in the order of `classes`, and the names.

    >>> data_source_class_indices(["dog", "cat", "dog"], None, "photos")
    (array([1, 0, 1]), ['cat', 'dog'])
    """
    named = read_class_names(classes)
    names = sorted(set(given)) if named is None else named
    places = {name: place for place, name in enumerate(names)}
    unknown = sorted(set(given) - places.keys())
    if unknown:
        raise InputError(
            "classes",
            f"the names of all classes in {where!r}",
            f"none for {', '.join(map(repr, unknown[:3]))}",
        )
    return np.array([places[name] for name in given]), names


def is_lazy(values: object) -> bool:
    """Check for a sequence of the user's own, which makes or reads values when it is sliced.

    >>> is_lazy(range(3)), is_lazy(["a", "b"])
    (True, False)
    """
    return isinstance(values, Sequence) and not isinstance(values, list | tuple | str | bytes)


def padded(clouds: Sequence[object], argument: str = "clouds") -> dict[str, Tensor]:
    """Pad clouds of unequal sizes to one batch.

    Args:
        clouds: Arrays `[points, 3]` (or `[points, 2]`), each with at least one point.
        argument: The name of the argument in error messages.

    Returns:
        `pos`, `[n, most, 3]`, padded with zeros at the end, and `mask`, `[n, most]`, true for
        points and false for padding.

    Raises:
        InputError: If there is no cloud, or one is empty, of another shape or not finite.

    Example:
        >>> import numpy as np
        >>> batch = padded([np.zeros((2, 3)), np.ones((5, 3))])
        >>> batch["pos"].shape, batch["mask"].sum(1).tolist()
        (torch.Size([2, 5, 3]), [2, 5])
    """
    if not len(clouds):
        raise InputError(argument, "at least one cloud", "none")
    each = [torch.as_tensor(cloud, dtype=torch.float32) for cloud in clouds]
    for place, cloud in enumerate(each):
        if cloud.ndim != 2 or len(cloud) == 0 or cloud.shape[1] != each[0].shape[-1]:
            raise InputError(
                argument,
                f"shape (points, {each[0].shape[-1]}), at least one point",
                f"{tuple(cloud.shape)} for cloud {place}",
            )
        if not bool(torch.isfinite(cloud).all()):
            raise InputError(argument, "finite numbers", f"NaN or infinity in cloud {place}")
    pos = pad_sequence(each, batch_first=True)
    return {"pos": pos, "mask": padding_mask(torch.tensor([len(cloud) for cloud in each]))}


def samples_differ_in_length(samples: Sequence[object]) -> bool:
    """Check for arrays `[points, features]` that differ in the number of points only."""
    shapes = {tuple(getattr(one, "shape", ())) for one in samples}
    alike = {(len(shape), shape[1:]) for shape in shapes}
    return len(shapes) > 1 and len(alike) == 1 and len(next(iter(shapes))) == 2
