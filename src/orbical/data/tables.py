"""A table of image files, with labels and metadata: CSV, TSV, Parquet or a pandas data frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._imports import existing_file, import_extra, words_of
from ..errors import InputError
from .image_files import ImageFiles, ImageReader, numbered

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet")


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
        transform: Callable[[Any], Any] | None = None,
        mode: str = "RGB",
        classes: Sequence[str] | None = None,
        unreadable: str = "raise",
    ) -> None:
        frame, where, folder = _opened(table)
        folder = folder if root is None else Path(root).expanduser()
        chosen = "label" if label is None and "label" in frame else label
        used = [path, *([] if chosen is None else [chosen])]
        extra = [name for name in frame if name not in used] if columns is None else [*columns]
        for name in [*used, *extra]:
            if name not in frame:
                known = ", ".join(map(str, frame.columns)) or "none"
                raise InputError(
                    "data",
                    f"a column {name!r} in {where!r}",
                    known,
                    remedy="pass path= or label= (--path-column, --label-column) with the names of "
                    "your columns; questions have the columns question, A, B, ... and answer",
                )
        if len(frame) == 0:
            raise InputError("data", f"at least one row in {where!r}", "none")
        files = _files(frame[path], folder, where)
        labels, names = None, None if classes is None else [*classes]
        if chosen is not None:
            labels, names = _labels(frame[chosen], classes, where)
        facts = {str(name): column_of(frame[name]) for name in extra}
        reader = ImageReader(size, transform, mode)
        super().__init__(where, files, reader, labels, names, facts, unreadable)


def _opened(table: Any) -> tuple[pd.DataFrame, str, Path]:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table, "the data frame", Path()
    path = existing_file("data", Path(table).expanduser())
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            import_extra("pyarrow", "parquet", "a Parquet table")
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, sep=_separator(path))
    except (ValueError, OSError, UnicodeError) as error:
        raise InputError(
            "data", problem=f"{str(table)!r} cannot be read as a table ({words_of(error)})"
        ) from error
    return frame, str(table), path.parent


def _separator(path: Path) -> str:
    """Return what separates the columns: spreadsheets write `;` where a comma is for decimals."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    return max(",;\t|", key=header.count)  # the first, a comma, where there is only one column


def _files(paths: pd.Series, folder: Path, where: str) -> dict[str, Path]:
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


def _labels(
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
    return numbered([str(one) for one in values], classes, where)


def column_of(values: pd.Series) -> np.ndarray:
    """Return a column as numbers or text, which every store can hold; missing text is empty."""
    import pandas as pd

    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufb":
        return np.asarray(values)
    if pd.api.types.is_bool_dtype(values.dtype) and not values.isna().any():
        return np.asarray(values, bool)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return np.asarray(values.to_numpy(float, na_value=np.nan))
    return np.array(["" if pd.isna(one) else str(one) for one in values])
