"""Read a scan a block at a time, as plain arrays: the way from the disk to every analysis.

A chunk on disk holds some samples at all elements. A block of samples is therefore read once; each
block of elements reads the whole store, so it is as large as memory allows. Nothing here needs
xarray, so that a picture need not wait for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import xr
from ..errors import InputError, unknown_name
from ..groups import Group, parse
from .record import Json
from .scan_result import Scan

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Array = np.ndarray

FINISHED = "score_vs_consensus"
"""The array that every scan has; it is missing where a sample is unfinished."""
AGREES = "agrees"
"""Whether the predicted class is that of the consensus: a response made from two arrays."""
BLOCK_ROWS = 1 << 16
BLOCK_BYTES = 1 << 23
"""The most samples, and the most bytes of one array, that are read at once."""
HELD_VALUES = 1 << 24
"""Values of one array that a block of elements holds."""
_ALL = slice(None)


class ScanArrays(ABC):
    """The arrays of a scan as plain numbers, read a block of samples at a time.

    Attributes:
        models: The names of the models.
        samples: The number of samples.
        group: The sampled group.
        weights: The weights of its elements, `[K]`; the data of a scan may state others.
        chunk: The number of samples that lie together.
        dims: The dimensions of each array, by its name.
        settings: Those of the task, if the scan itself is read and not its data.
        task: The name of the task.
        score: The meaning of the score, in words.
    """

    models: list[str]
    samples: int
    group: Group
    weights: Array
    chunk: int
    dims: dict[str, tuple[str, ...]]
    settings: Mapping[str, object] = MappingProxyType({})
    task: str
    score: str
    _arrays: Mapping[Any, Any]
    """By name, as zarr or xarray has them."""

    def attributes(self, name: str) -> Json:
        """Return the attributes of an array; empty if there is none of this name."""
        return dict(self._arrays[name].attrs) if name in self._arrays else {}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self._arrays[name].shape)

    def dtype(self, name: str) -> np.dtype:
        """Return the data type of an array."""
        kind: np.dtype = np.dtype(self._arrays[name].dtype)
        return kind

    @abstractmethod
    def read(
        self, name: str, rows: slice = _ALL, model: int | None = None, keep: bool = True
    ) -> Array:
        """Read `[rows, element, ...]` of a model, which is ignored where models share an array.

        With `keep=False` a reader that has a cache does not add what it reads.
        """

    def __contains__(self, name: object) -> bool:
        return name in self.dims

    def by_model(self, name: str) -> bool:
        """Check whether an array has a model dimension."""
        return "model" in self.dims[name]

    def has_responses(self, name: str) -> bool:
        """Check whether an array has one number for each sample and element."""
        every = {"model", "sample", "element"}
        return {"sample", "element"} <= {*self.dims.get(name, ())} <= every

    def response_name(self, metric: str) -> str:
        """Return the array of a metric: without labels the score is that against the consensus."""
        if metric == "score" and not self.has_responses("score"):
            return FINISHED
        if not self.has_responses(metric):
            raise unknown_name("metric", metric, filter(self.has_responses, self.dims))
        return metric

    def rows_of_block(self, name: str) -> int:
        """Return the number of samples in a block: whole chunks of a few megabytes at most."""
        row = self._values_of(name, "model", "sample") * self.dtype(name).itemsize
        most = min(BLOCK_ROWS, BLOCK_BYTES // max(1, row))
        return self.chunk * max(1, most // self.chunk)

    def _values_of(self, name: str, *without: str) -> int:
        sizes = zip(self.dims[name], self.shape(name), strict=True)
        return prod(size for dim, size in sizes if dim not in without)

    def blocks(self, name: str) -> Iterator[slice]:
        """Iterate over the blocks of an array: the samples that each holds."""
        yield from row_runs(
            self.samples, self.rows_of_block("predicted" if name == AGREES else name)
        )

    def responses(self, name: str, rows: slice, model: int, keep: bool = True) -> Array:
        """Read the responses `[rows, K]` of a model as numbers, NaN where there are none."""
        return self.as_numbers(name, lambda stored: self.read(stored, rows, model, keep))

    def outcomes(self, name: str, read: Callable[[str], Array]) -> Array:
        """Return responses as they are stored; `read` returns those of an array."""
        if name == AGREES:
            return np.asarray(read("predicted") == read("consensus").argmax(-1)[..., None])
        return read(name)

    def as_numbers(self, name: str, read: Callable[[str], Array]) -> Array:
        """Return responses as numbers.

        Classes, and what is right or wrong, cannot be NaN: they are missing where the score is.
        """
        values = self.outcomes(name, read)
        if values.dtype.kind == "f":
            return values
        values = values.astype(np.float32)
        values[np.isnan(read(FINISHED))] = np.nan
        return values

    def sample_blocks(
        self, *names: str, model: int | None = None
    ) -> Iterator[tuple[slice, list[Array]]]:
        """Yield runs of samples, of whole chunks, and what the arrays of a model hold there."""
        for rows in row_runs(self.samples, min(map(self.rows_of_block, names))):
            yield rows, [self.read(name, rows, model, keep=False) for name in names]

    def element_blocks(
        self, *names: str, model: int | None = None
    ) -> Iterator[tuple[slice, list[Array]]]:
        """Yield runs of elements, and what the arrays of a model hold there, `[K, N, ...]`."""
        each = max(self._values_of(name, "model", "element") for name in names)
        for run in row_runs(len(self.group), max(1, HELD_VALUES // max(1, each))):
            held: list[Array] = []
            for rows, parts in self.sample_blocks(*names, model=model):
                for place, part in enumerate(parts):
                    chosen = np.moveaxis(part[:, run], 0, 1)
                    if len(held) == place:
                        shape = (chosen.shape[0], self.samples, *chosen.shape[2:])
                        held.append(np.empty(shape, chosen.dtype))
                    held[place][:, rows] = chosen
            yield run, held


def row_runs(count: int, step: int) -> Iterator[slice]:
    """Split a number of rows into runs of at most `step`.

    >>> [(run.start, run.stop) for run in row_runs(5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


class StoredArrays(ScanArrays):
    """The arrays of a stored scan."""

    def __init__(self, scan: Scan) -> None:
        self.scan, self.settings = scan, scan.record.task.settings
        self.task, self.score = scan.record.task.name, scan.record.score.meaning
        self.models, self.group, self.weights = scan.models, scan.group, scan.group.weights
        self.samples, self.chunk = scan.record.data.samples, scan.record.run.chunk
        arrays: Json = dict(scan.arrays)  # zarr types both versions of its format
        self._arrays = arrays
        self.dims = {name: tuple(one.metadata.dimension_names) for name, one in arrays.items()}

    def read(
        self, name: str, rows: slice = _ALL, model: int | None = None, keep: bool = True
    ) -> Array:
        """Read `[rows, element, ...]` of a model, which is ignored where models share an array."""
        return self.scan.read_rows(name, rows, model if self.by_model(name) else None)


class LabeledArrays(ScanArrays):
    """The arrays of a labeled data set: the `data` of a scan, or a selection of it."""

    def __init__(self, data: xr.Dataset, group: Group) -> None:
        self.data, self._arrays, self.group = data, data, group
        self.task, self.score = (str(data.attrs.get(name, name)) for name in ("task", "score"))
        stated = data.variables.get("weight")
        self.weights = group.weights if stated is None else stated.values.astype(np.float64)
        self.models = [str(name) for name in np.atleast_1d(data["model"].values)]
        self.samples = data.sizes["sample"]
        self.chunk = max(data.chunksizes.get("sample", (1,)))
        self.dims = {str(name): tuple(map(str, one.dims)) for name, one in data.variables.items()}

    def read(
        self, name: str, rows: slice = _ALL, model: int | None = None, keep: bool = True
    ) -> Array:
        """Read `[rows, element, ...]` of a model, which is ignored where models share an array."""
        chosen = self.data[name].isel(sample=rows, model=model, missing_dims="ignore")
        return chosen.transpose("sample", "element", ..., missing_dims="ignore").values


def arrays_of(scan: Scan | xr.Dataset | ScanArrays) -> ScanArrays:
    """Return the arrays of a scan, or of its `data`, to be read a block at a time."""
    if isinstance(scan, ScanArrays):
        return scan
    return StoredArrays(scan) if is_scan(scan) else LabeledArrays(scan, _group_of_scan_arrays(scan))


def is_scan(scan: object) -> TypeIs[Scan]:
    """Check whether an object is a scan, and not its data."""
    return isinstance(scan, Scan)


def _group_of_scan_arrays(scan: Scan | xr.Dataset) -> Group:
    """Return the group of a scan; a data set names its group in its attributes."""
    if is_scan(scan):
        return scan.group
    if "group" not in getattr(scan, "attrs", ()) or FINISHED not in getattr(scan, "data_vars", ()):
        remedy = f"pass orbical.load({str(scan)!r})" if isinstance(scan, str | Path) else ""
        raise InputError(
            "scan", "the result of orbical.scan or its data", type(scan), remedy=remedy
        )
    try:
        group = parse(scan.attrs["group"])
    except InputError as error:
        raise InputError(
            "scan",
            "a group that its name describes",
            repr(scan.attrs["group"]),
            remedy="pass the scan instead of its data",
        ) from error
    if scan.sizes.get("element") != len(group):
        raise InputError(
            "scan",
            f"all {len(group)} elements of {group.spec}",
            scan.sizes.get("element", "none"),
            remedy="select elements in the result instead",
        )
    return group


_SCORES = {"score": "truth", FINISHED: "consensus"}


def opened_scan(scan: Scan | xr.Dataset) -> tuple[xr.Dataset, Group]:
    """Return the labeled data and the group of a scan."""
    group = _group_of_scan_arrays(scan)
    return (scan.data if is_scan(scan) else scan), group


def responses(scan: Scan | xr.Dataset, metric: str = "score") -> xr.DataArray:
    """Return the response of every sample along its orbit, lazily.

    Args:
        scan: a scan, or its `data`.
        metric: a stored variable with one number for each sample and element, such as `"score"`,
            `"confidence"`, `"correct"` or `"action_defect"` (which has no model). Without labels
            `"score"` is the score against the consensus; `attrs["reference"]` states which.

    Returns:
        `[model, sample, element]`.

    Raises:
        InputError: if there is no such metric.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification",
        ...                progress=False)
        >>> found = ob.nero.responses(scan)
        >>> dict(found.sizes), found.attrs["reference"]
        ({'model': 1, 'sample': 20, 'element': 8}, 'consensus')
    """
    data, group = opened_scan(scan)
    name = LabeledArrays(data, group).response_name(metric)
    values = data[name]
    if values.dtype.kind != "f":  # without NaN, missing values are masked by those of the score
        values = values.astype(np.float32).where(data[FINISHED].notnull())
    values = values.transpose("model", "sample", "element", missing_dims="ignore")
    values.name = name
    values.attrs = _about_block_variable(data, group, name)
    return values


def _about_block_variable(data: xr.Dataset, group: Group, name: str) -> Json:
    """Return the attributes that a figure of these responses needs."""
    about: Json = {
        "metric": name,
        "meaning": data[name].attrs.get("meaning", name),
        "task": data.attrs["task"],
        "models": [str(model) for model in np.atleast_1d(data["model"].values)],
        "group": group.spec,
        "identity": group.identity,
        "layout": group.layout.kind,
        "layout_index": group.layout.index.tolist(),
        "layout_axes": {axis: values.tolist() for axis, values in group.layout.axes.items()},
    }
    if name in _SCORES:
        about["reference"] = _SCORES[name]
        about["meaning"] = data.attrs["score"] + (
            ", with the consensus as truth" if about["reference"] == "consensus" else ""
        )
    stored = data[name].attrs
    if "higher_is_better" in stored:
        about["higher_is_better"] = bool(stored["higher_is_better"])
    if unit := stored.get("units"):
        about["units"] = unit
    if unit == "share":
        about["limits"] = [0.0, 1.0]
    return about
