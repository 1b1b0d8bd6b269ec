"""Which source reads what a user passed as data, or a path."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from inspect import isroutine, signature
from pathlib import Path
from typing import Any

from .._codecs import check_codecs
from .._imports_and_paths import as_path, import_extra, local_file, name_of, reading
from ..errors import InputError
from ..tasks import STRUCTURE_SUFFIXES, batch_structures, read_structure_file
from . import tables
from .array_files import read_npy, read_npz
from .array_source import Arrays, check_array_source_labels, whole_array
from .graphs import from_graphs
from .hugging_face_data import HuggingFace, source_from_hugging_face
from .image_files import ImageFolder
from .item_sources import from_dataset
from .named_arrays import NamedArrays, from_xarray, from_zarr
from .nifti_files import SUFFIXES as NIFTI_SUFFIXES
from .nifti_files import Nifti, is_nifti
from .source import Batch, Relabeled, Source
from .tables import Frame, Table, from_frame, table_has_images
from .texts import Questions, is_questions, source_from_texts

ARRAY_SUFFIXES = (".npz", ".npy")
SUFFIXES = (*ARRAY_SUFFIXES, ".zarr", *tables.SUFFIXES, *NIFTI_SUFFIXES, *STRUCTURE_SUFFIXES)
"""The suffixes of paths that are recognized as data."""

_OF_TABLES = ("path", "label", "columns", "root")
_WANTED = dict.fromkeys(_OF_TABLES, "a table of image files") | {"labeled": "a folder of images"}
_ZARR = ("zarr.json", ".zarray", ".zgroup")
_METADATA = (*_ZARR, ".zmetadata")


def open_path(given: str | os.PathLike[str], **images: object) -> Source:
    """Open the data set at a path.

    Args:
        given: a folder of images; a table `.csv`, `.tsv` or `.parquet` of numbers, of image files
            (in a column `path`), or of questions with options (also `.jsonl`, `.json`); `.npz`;
            `.npy`; a Zarr array or group; NIfTI files or a folder of them; a folder that
            `datasets.save_to_disk` wrote; molecules, such as `.xyz`. Of a URL: a file, or
            Zarr.
        **images: how images are read, such as `size=224` or `unreadable="skip"`; the arguments of
            `ImageFolder`, `Table` or `HuggingFace`.

    Returns:
        The source.

    Raises:
        InputError: if there is nothing at the path, or nothing that can be read.

    Example:
        >>> import numpy as np, orbical as ob, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     path = pathlib.Path(there) / "digits.npz"
        ...     np.savez(path, x=np.zeros((3, 1, 8, 8)), y=[0, 1, 2])
        ...     len(ob.data.open_path(path))
        3
    """
    path = as_path("data", given)
    if not isinstance(path, Path) and not _is_zarr(path):
        path = local_file("data", given)
    if not path.exists():
        raise InputError("data", "a file or a folder", f"{str(given)!r}, which does not exist")
    with reading("data", given, "data"):
        return _open_recognized_data(path, given, images)


def _open_recognized_data(path: Path, given: object, images: Mapping[str, object]) -> Source:
    opener = _data_opener(path, of_images="path" in images)
    if opener is None:
        raise InputError(
            "data", f"a folder of images or a file {', '.join(SUFFIXES)}", repr(str(given))
        )
    _, *taken = signature(HuggingFace if opener is _open_saved else opener).parameters
    for name in images:
        if name not in taken:
            kind = _WANTED.get(name, "data with images in files")
            raise InputError(name, kind, repr(str(given)))
    return opener(path, **images)


def _data_opener(path: Path, of_images: bool = False) -> Callable[..., Source] | None:
    if path.is_dir():
        if _is_zarr(path):
            return OpenedZarrData
        if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
            return _open_saved
        return Nifti if any(map(is_nifti, path.rglob("*"))) else ImageFolder
    if is_nifti(path):
        return Nifti
    if is_questions(path):
        return Questions
    suffix = path.suffix.lower()
    if suffix in STRUCTURE_SUFFIXES:
        return _open_structures
    if suffix in tables.SUFFIXES:
        return Table if of_images or table_has_images(path) else Frame
    return {".npz": _open_npz, ".npy": _open_npy}.get(suffix)


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in _ZARR)


def _open_npz(path: Path) -> Source:
    return NamedArrays(read_npz(path, "data"), str(path), path)


def _open_npy(path: Path) -> Source:
    return Arrays(read_npy(path, "data", mapped=True))


def _open_structures(path: Path) -> Source:
    inputs, truth = batch_structures(read_structure_file(path))
    return Arrays(inputs, truth)


class OpenedZarrData(NamedArrays):
    """A Zarr array, or a group of arrays by name; it is opened again when unpickled."""

    def __init__(self, path: Path) -> None:
        import zarr

        with reading("data", path, "a Zarr array"):
            for file in path.rglob("*"):
                if file.name in _METADATA:
                    check_codecs(json.loads(file.read_bytes()))
            options = dict(getattr(path, "storage_options", {}))
            found = zarr.open(str(path), mode="r", storage_options=options or None)
            arrays = dict(found.arrays()) if isinstance(found, zarr.Group) else {"x": found}
            super().__init__(arrays, str(path), path)

    def read(self, start: int, stop: int) -> Batch:
        """Read some samples; a chunk may be damaged."""
        with reading("data", self._path, "a Zarr array"):
            return super().read(start, stop)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._path,)


def _open_saved(path: Path, **images: Any) -> Source:
    datasets = import_extra("datasets", "huggingface", "a data set saved by Hugging Face")
    return HuggingFace(datasets.load_from_disk(str(path)), **images)


_RECOGNIZED = (
    source_from_texts,
    from_graphs,
    from_frame,
    source_from_hugging_face,
    from_dataset,
    from_xarray,
    from_zarr,
)
"""Each returns a source for the data of its kind, and None for any other."""


def as_source(data: object) -> Source:
    """Return the source of any data; a tuple of two is `(x, y)`, a list is a list of samples.

    >>> len(as_source([[1.0, 2.0], [3.0, 4.0]])), as_source(([[1.0, 2.0]], [3])).labels.tolist()
    (2, [3])
    """
    if isinstance(data, tuple) and len(data) == 2:
        inputs, labels = data
        known = _open_source_of_kind(inputs)
        if isinstance(known, Nifti):
            return known.labeled(labels)
        if isinstance(labels, str | os.PathLike):
            labels = read_npy(local_file("labels", labels), "labels")
        if known is None:
            return Arrays(inputs, labels)
        labels = None if labels is None else whole_array(labels, "labels")
        check_array_source_labels(labels, len(known))
        return Relabeled(known, labels)
    return _open_source_of_kind(data) or Arrays(data)


def _open_source_of_kind(data: object) -> Source | None:
    """Return the source of anything but arrays and trees of them."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return open_path(data)
    if isinstance(data, Iterator):
        raise InputError(
            "data",
            "samples of known number",
            f"a {type(data).__name__}",
            remedy="pass orbical.data.Stream(items, length)",
        )
    known = next((found for kind in _RECOGNIZED if (found := kind(data)) is not None), None)
    if known is None and isroutine(data):
        raise InputError(
            "data",
            "samples",
            f"the function {name_of(data)}",
            remedy="pass what it returns, or, if it yields samples, "
            "orbical.data.Stream(function, length)",
        )
    return known
