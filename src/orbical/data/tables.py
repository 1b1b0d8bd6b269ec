"""Tables of numbers and texts, or of image files: CSV, TSV, Parquet or a pandas data frame."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._imports_and_paths import existing_file, import_extra, reading
from .._lazy import pd
from .._text import common_beginning, first_names, number
from ..actions import Columns
from ..errors import InputError
from .image_files import SUFFIXES as IMAGE_SUFFIXES
from .image_files import ImageFiles, ImageReader
from .source import Batch, Source, data_source_class_indices

SUFFIXES = (".csv", ".tsv", ".parquet")
_ROWS_FOR_FORMAT = 1000


class Table(ImageFiles):
    """A table with one row for each image: its path, its label, and metadata columns.

    Args:
        table: a CSV, TSV or Parquet file, or a pandas data frame.
        path: the column with the paths of the images, relative to `root`.
        label: the column with the labels: class names, class indices, or values for regression. By
            default `label`, if there is one.
        columns: the metadata columns to store with the scan; by default all that remain.
        root: the folder that paths are relative to; by default that of the table.
        size, transform, mode, unreadable: as for `ImageFolder`.
        classes: the names of the classes in the order of their indices.

    Raises:
        InputError: if a column or a file is missing, or a value of the label.

    Example:
        >>> import orbical as ob, pandas as pd, pathlib, tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as there:
        ...     for name in ("1.png", "2.png"):
        ...         Image.new("RGB", (8, 8)).save(pathlib.Path(there) / name)
        ...     frame = pd.DataFrame({"path": ["1.png", "2.png"], "label": ["dog", "cat"],
        ...                           "site": ["north", "south"]})
        ...     photos = ob.data.Table(frame, root=there)
        >>> photos.labels.tolist(), photos.classes, photos.columns["site"].tolist()
        ([1, 0], ['cat', 'dog'], ['north', 'south'])
    """

    def __init__(
        self,
        table: str | Path | pd.DataFrame,
        path: str = "path",
        label: str | None = None,
        columns: Sequence[str] | None = None,
        root: str | Path | None = None,
        size: int | tuple[int, int] | None = None,
        transform: Callable[[object], object] | None = None,
        mode: str = "RGB",
        classes: Sequence[str] | None = None,
        unreadable: str = "raise",
    ) -> None:
        frame, where, folder = _read_table(table)
        folder = folder if root is None else Path(root).expanduser()
        chosen = "label" if label is None and "label" in frame else label
        used = [path, *([] if chosen is None else [chosen])]
        extra = [name for name in frame if name not in used] if columns is None else [*columns]
        _check_table_columns(frame, [*used, *extra], where)
        files = _image_files_of_table(frame[path], folder, where)
        labels, names = None, None if classes is None else [*classes]
        if chosen is not None:
            labels, names = _label_values_of_table(frame[chosen], classes, where)
        facts = {str(name): table_column(frame[name]) for name in extra}
        reader = ImageReader(size, transform, mode)
        super().__init__(where, files, reader, labels, names, facts, unreadable)


class Frame(Source):
    """A table whose columns are the inputs of a model: numbers, booleans, texts or categories.

    Models receive data frames with these columns. A pandas data frame as data is read like this,
    and so is a table file without image files.

    Args:
        table: a pandas data frame, or a CSV, TSV or Parquet file.
        label: the column with the labels: class names, class indices, or values for regression. By
            default `label`, if a file has one.
        columns: metadata columns, which are stored with the scan and are no inputs.
        classes: the names of the classes in the order of their indices.

    Raises:
        InputError: if a column is missing, or holds something else.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"dx": [1, -2], "site": ["north", "south"], "side": ["r", "l"]})
        >>> frame = Frame(table, label="side", columns=["site"])
        >>> frame.action.names, frame.labels.tolist(), frame.classes
        (['dx'], [1, 0], ['l', 'r'])
    """

    def __init__(
        self,
        table: str | Path | pd.DataFrame,
        label: str | None = None,
        columns: Sequence[str] = (),
        classes: Sequence[str] | None = None,
    ) -> None:
        frame, where, _ = _read_table(table)
        of_file = isinstance(table, str | Path) and "label" in frame
        label = "label" if label is None and of_file else label
        _check_table_columns(frame, [*([] if label is None else [label]), *columns], where)
        self.classes = None if classes is None else [*classes]
        if label is not None:
            self.labels, self.classes = _label_values_of_table(frame[label], classes, where)
        self.columns = {str(name): table_column(frame[name]) for name in columns}
        inputs = frame[[name for name in frame if name != label and name not in columns]]
        self.action = _action_on_table_columns(inputs, where)
        if type(frame.index).__name__ != "RangeIndex":
            self.names = [str(name) for name in frame.index]
        self._rows = self.action.encode(inputs.rename(columns=str))

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> Batch:
        """Return some rows."""
        return self._rows[start:stop], None if self.labels is None else self.labels[start:stop]


def from_frame(data: object) -> Source | None:
    """Return the source of a pandas data frame, which is not imported for it."""
    named = type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pandas")
    return Frame(data) if named else None


def table_has_images(path: Path) -> bool:
    """Check whether a table file has the column `path`, or one of names of image files."""
    frame = _read_table(path)[0]
    first = [str(one).lower() for one in frame.iloc[0]] if len(frame) else []
    return "path" in frame or any(word.endswith(IMAGE_SUFFIXES) for word in first)


def read_probability_table(path: Path) -> dict[str, np.ndarray]:
    """Read `probs` and `labels` from a table with a column for each class and one of labels.

    Labels are names of columns, with or without what all of these begin and end with, as `cat` is
    of `prob_cat`; if they are not, they are class indices in the order of the columns.
    Probabilities that were rounded, so that rows do not sum to 1, are divided by their sum.
    """
    frame, where, _ = _read_table(path)
    if "label" not in frame:
        raise InputError(
            path,
            "a header row that names a column for each class, with its probabilities, and 'label'",
            ", ".join(map(str, frame.columns[:8])),
        )
    if not len(frame):
        raise InputError(path, "a row for each sample", "a header alone")
    nameless = [name for name in frame if _is_nameless(name)]  # an index, which may repeat
    labels, classes = frame["label"], frame.drop(columns=["label", *nameless])
    if labels.dtype.kind == "f" and (labels.dropna() % 1 == 0).all():
        labels = labels.astype("Int64")  # as 1.0, where a table once lacked a value
    remedy = "leave out columns that are no class, such as an index or names of files"
    odd = [str(name) for name, kind in classes.dtypes.items() if kind.kind not in "iuf"]
    if odd:
        raise InputError(
            path, "numbers in every column but 'label'", f"others in {odd[0]!r}", remedy=remedy
        )
    outside = [str(name) for name in classes if ((classes[name] < 0) | (classes[name] > 1)).any()]
    if outside:
        raise InputError(
            path,
            "probabilities from 0 to 1 in every column but 'label'",
            f"others in {', '.join(map(repr, outside[:3]))}",
            remedy=remedy if len(outside) < classes.shape[1] else "save logits as an .npz file",
        )
    given = {*map(str, labels.dropna())}
    names = _columns_as_labeled([str(name) for name in classes], given)
    if given <= {*names}:
        labels = labels.map(str, na_action="ignore")
    elif labels.dtype.kind not in "iufb":
        of_columns, of_labels = (first_names(each) for each in (names, sorted(given)))
        raise InputError(
            "labels",
            f"names of columns in {where!r}, or these without what all begin or end with",
            f"none for {first_names(sorted(given - {*names}))}",
            remedy=f"columns are named {of_columns}; labels are {of_labels}",
        )
    probs = _normalized_table_if_rounded(classes.to_numpy(np.float64))
    wrong = np.flatnonzero(abs(probs.sum(1) - 1) > _ROUNDED)
    if len(wrong) and len(names) > 1:
        expected = f"rows that sum to 1 over the columns {first_names(names, 12)}"
        given_sum = f"{number(probs[wrong[0]].sum())} in row {wrong[0]}"
        raise InputError(path, expected, given_sum, remedy=remedy)
    return {"probs": probs, "labels": _label_values_of_table(labels, names, where)[0]}


def _columns_as_labeled(names: list[str], labels: set[str]) -> list[str]:
    """Return the names of columns without what all begin or end with, if labels are without it.

    >>> _columns_as_labeled(["prob_d0", "prob_d1"], {"d1"})
    ['d0', 'd1']
    """
    begin, end = (common_beginning([name[::way] for name in names or [""]]) for way in (1, -1))
    for first, last in itertools.product(range(begin + 1), range(end + 1)):
        written = [name[first : len(name) - last] for name in names]
        if labels <= {*written}:
            return written
    return names


_ROUNDED = 0.05
"""Sums of rounded probabilities are farther from 1 by less."""


def _normalized_table_if_rounded(probs: np.ndarray) -> np.ndarray:
    """Divide rows by their sum, if that is 1 up to the decimals that all values were rounded to.

    >>> _normalized_table_if_rounded(np.array([[0.33, 0.33, 0.33], [0.5, 0.3, 0.3]]))[1]
    array([0.5, 0.3, 0.3])
    """
    sums = probs.sum(1, keepdims=True)
    decimals = next((some for some in range(2, 7) if (probs == probs.round(some)).all()), 16)
    off = min(_ROUNDED, probs.shape[1] * 10.0**-decimals / 2)  # each by half of its last decimal
    return probs / sums if (abs(sums - 1) < off + 1e-9).all() else probs


def _action_on_table_columns(frame: pd.DataFrame, where: str) -> Columns:
    """Return the action on a table; columns of text share what their numbers stand for."""
    if not len(frame) or not len(frame.columns):
        raise InputError("data", f"rows and columns in {where!r}", frame)
    texts = frame.select_dtypes(["object", "string"])
    for name in texts:
        odd = next((one for one in texts[name] if isinstance(one, list | dict | np.ndarray)), None)
        if odd is not None:
            kind = type(odd).__name__
            raise InputError("data", f"a number or a text in each row of column {name!r}", kind)
    words = sorted({one for name in texts for one in texts[name].dropna()}, key=str)
    levels: dict[str, list[object]] = {}
    for name, kind in frame.dtypes.items():
        if isinstance(kind, pd.CategoricalDtype):
            levels[str(name)] = kind.categories.tolist()
        elif name in texts:
            levels[str(name)] = words
        elif kind.kind not in "iufb":
            raise InputError("data", f"numbers or texts in column {name!r}", str(kind))
    return Columns([str(name) for name in frame], [str(kind) for kind in frame.dtypes], levels)


def _check_table_columns(frame: pd.DataFrame, wanted: Sequence[str], where: str) -> None:
    for name in wanted:
        if name not in frame:
            raise InputError(
                "data",
                f"a column {name!r} in {where!r}",
                ", ".join(map(str, frame.columns)) or "none",
                remedy="pass path= or label= (--path-column, --label-column) with the names of "
                "your columns; questions have the columns question, A, B, ... and answer",
            )
    if len(frame) == 0:
        raise InputError("data", f"at least one row in {where!r}", "none")


def _read_table(table: Any) -> tuple[pd.DataFrame, str, Path]:
    if isinstance(table, pd.DataFrame):
        return table, "the data frame", Path()
    path = existing_file("data", Path(table).expanduser())
    with reading("data", table, "a table"):
        if path.suffix.lower() == ".parquet":
            import_extra("pyarrow", "parquet", "a Parquet table")
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, **_csv_table_format(path))

    def is_index(name: object) -> bool:
        values = frame[name]
        return _is_nameless(name) and values.dtype.kind != "f" and values.is_unique

    index = [*itertools.takewhile(is_index, frame)]  # which to_csv writes without a name
    return frame.drop(columns=index), str(table), path.parent


def _is_nameless(column: object) -> bool:
    """Check for the name that pandas gives to a column without one, as it writes an index."""
    return re.fullmatch(r"Unnamed: [\d.]+", str(column)) is not None


def _csv_table_format(path: Path) -> dict[str, str]:
    """Return what separates columns and decimals; spreadsheets write `;` if that is a comma."""
    with path.open(encoding="utf-8-sig") as file:
        header, *rows = [*itertools.islice(file, _ROWS_FOR_FORMAT)] or [""]
    # The first, a comma, where there is only one column.
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=header.count)
    cells = [cell.strip(' "\r\n') for row in rows for cell in row.split(separator)]
    by_comma, by_point = (
        any(re.fullmatch(rf"[-+]?\d*{mark}\d+", cell) for cell in cells) for mark in (",", r"\.")
    )
    comma = separator != "," and by_comma and not by_point
    return {"sep": separator, "decimal": "," if comma else "."}


def _image_files_of_table(paths: pd.Series, folder: Path, where: str) -> dict[str, Path]:
    """Return the files by name; a file in several rows has the row in its name."""
    found: dict[str, Path] = {}
    missing: list[str] = []
    for row, text in enumerate(paths):
        if not isinstance(text, str) or not text:
            raise InputError("data", f"a path in each row of {where!r}", f"{text!r} in row {row}")
        file = folder / text
        found[text if text not in found else f"{text} (row {row})"] = file
        if not file.is_file():
            missing.append(text)
    if missing:
        some = ", ".join(map(repr, missing[:3]))
        raise InputError(
            "data",
            f"existing files in {where!r}",
            f"{len(missing)} of {len(found)} that do not exist in {str(folder)!r}: {some}",
            remedy="pass root= (--root), the folder of the images",
        )
    return found


def _label_values_of_table(
    values: pd.Series, classes: Sequence[str] | None, where: str
) -> tuple[np.ndarray, list[str] | None]:
    missing = np.flatnonzero(values.isna())
    if len(missing):
        raise InputError(
            "labels",
            f"a value in each row of {where!r}",
            f"none in {len(missing)} of {len(values)}, first in row {missing[0]}",
        )
    if values.dtype.kind in "iufb":
        return values.to_numpy(), None if classes is None else [*classes]
    return data_source_class_indices([str(one) for one in values], classes, where)


def table_column(given: pd.Series | Sequence[object]) -> np.ndarray:
    """Return a column as numbers or text, which every store can hold; missing text is empty."""
    values = pd.Series(given)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufb":
        return np.asarray(values)
    if pd.api.types.is_bool_dtype(values.dtype) and not values.isna().any():
        return np.asarray(values, bool)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return np.asarray(values.to_numpy(float, na_value=np.nan))
    return np.array(["" if pd.isna(one) else str(one) for one in values])
