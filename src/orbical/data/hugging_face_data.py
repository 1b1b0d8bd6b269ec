"""Data sets of the package `datasets` by Hugging Face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, check_name
from .image_files import ImageReader
from .source import Batch, Source, data_hash, stacked_source_samples
from .tables import table_column

_INPUTS = ("image", "img", "pixel_values", "x")
_LABELS = ("label", "labels", "y")
_KINDS = ("Dataset", "DatasetDict")


class HuggingFace(Source):
    """A data set of Hugging Face's `datasets`, for example from `load_dataset(..., split="test")`.

    The class names come from its features; columns of text and numbers are stored as metadata.

    Args:
        dataset: a `datasets.Dataset`.
        input: the column of the inputs; by default the only image column, or one named `image`,
            `img`, `pixel_values` or `x`.
        label: the column of the targets; by default the only column of classes, or one named
            `label`, `labels` or `y`.
        size, transform, mode: how images are read, as for `ImageFolder`.

    Raises:
        InputError: if there is no such column.

    Example:
        >>> import datasets, orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> rows = {"x": images[:20].tolist(), "label": labels[:20].tolist()}
        >>> data = ob.data.HuggingFace(datasets.Dataset.from_dict(rows))
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> ob.scan(net, data, group="rotations:8", task="classification", progress=False)
        Scan(classification, rotations:8: 1 model x 20 samples x 8 elements, complete)
    """

    def __init__(
        self,
        dataset: Any,
        input: str | None = None,
        label: str | None = None,
        size: int | tuple[int, int] | None = None,
        transform: Callable[[Any], Any] | None = None,
        mode: str = "RGB",
    ) -> None:
        if isinstance(dataset, dict):
            raise InputError(
                "data",
                "one split",
                ", ".join(map(str, dataset)),
                remedy=f"pass one of them, such as data[{next(iter(dataset), 'test')!r}]",
            )
        if len(dataset) == 0:
            raise InputError("data", "at least one sample", "none")
        self._input = _column_named_or_usual(dataset, "input", input, "Image", _INPUTS)
        self._label = _column_named_or_usual(dataset, "label", label, "ClassLabel", _LABELS)
        if self._input is None:
            raise InputError(
                "data",
                f"an image column or one named {', '.join(_INPUTS)}",
                ", ".join(dataset.column_names),
                remedy="pass input=",
            )
        self.classes = getattr(dataset.features.get(self._label), "names", None)
        used = [name for name in (self._input, self._label) if name is not None]
        plain = dataset.with_format(None)
        kinds = {name: type(feature).__name__ for name, feature in dataset.features.items()}
        self.columns = {
            name: table_column(plain[name][:])
            for name in dataset.column_names
            if name not in used and kinds[name] in ("Value", "ClassLabel")
        }
        own = dataset.format["type"] == "custom"  # a transform of the user's sees all columns
        self._dataset = dataset if own else dataset.select_columns(used)
        self._reader = ImageReader(size, transform, mode)

    def __len__(self) -> int:
        return len(self._dataset)

    def read(self, start: int, stop: int) -> Batch:
        """Return some rows, of the two columns only."""
        rows = self._dataset[start:stop]
        inputs = stacked_source_samples([self._converted(one) for one in rows[self._input]], start)
        return inputs, None if self._label is None else np.asarray(rows[self._label])

    def stamp(self) -> str | None:
        """Return the fingerprint that the package itself keeps, of the data and all operations."""
        known = getattr(self._dataset, "_fingerprint", None)
        settings = (self._input, self._label, self._reader.settings)
        return None if known is None else data_hash([str(known), repr(settings)])

    def _converted(self, value: Any) -> Any:
        return self._reader.convert(value) if hasattr(value, "convert") else value


def source_from_hugging_face(data: object) -> Source | None:
    """Return the source of a data set of `datasets`, which is not imported for it."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__}
    if ("datasets", "IterableDataset") in kinds:
        raise InputError(
            "data",
            "a data set of known length",
            "a streaming one",
            remedy="pass orbical.data.Stream(data, length)",
        )
    return HuggingFace(data) if {("datasets", name) for name in _KINDS} & kinds else None


def _column_named_or_usual(
    dataset: Any, argument: str, given: str | None, kind: str, usual: tuple[str, ...]
) -> str | None:
    """Return the column that is given, the only one of a kind, or one of a usual name."""
    names = dataset.column_names
    if given is not None:
        check_name(argument, given, names)
        return given
    typed = [name for name in names if type(dataset.features[name]).__name__ == kind]
    return typed[0] if len(typed) == 1 else next((name for name in usual if name in names), None)
