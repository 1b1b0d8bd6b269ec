"""NIfTI files as data: volumes with the sides of their voxels, and label maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._imports_and_paths import existing_file, import_extra, reading
from ..actions import Volumes
from ..errors import InputError
from .array_source import check_array_source_labels, to_numpy, whole_array
from .source import Batch, Source, data_hash, data_source_class_indices, data_stamp

SUFFIXES = (".nii", ".nii.gz")


class Nifti(Source):
    """Volumes in NIfTI files, `[channel, depth, row, column]`, with the sides of their voxels.

    Files are brought to the axes of the body: columns go to the right of the patient, rows up to
    the front, and depth to the head, so that x, y and z of the group are right, front and head in
    mm. All must have the same shape and spacing. Needs the extra `medical`.

    Args:
        files: a folder, a file, or a list of files; subfolders are classes.
        labels: a class or value for each file; or label maps, as a folder with files of the same
            names, a file, or a list of files.
        classes: the names of the classes in the order of their indices.

    Raises:
        InputError: if a file cannot be read, or differs in shape or spacing.

    Example:
        >>> import nibabel, tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     image = nibabel.Nifti1Image(np.zeros((5, 4, 3), np.float32), np.diag([1, 1, 3, 1]))
        ...     nibabel.save(image, f"{there}/scan.nii.gz")
        ...     scans = Nifti(there)
        ...     scans.read(0, 1)[0].shape, scans.action.spacing
        ((1, 1, 3, 4, 5), [3.0, 1.0, 1.0])
    """

    def __init__(
        self,
        files: str | Path | Sequence[str | Path],
        labels: Any = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        self._maps: dict[str, Path] = {}
        self._given, self._files = files, _nifti_files_by_name(files)
        self.names, self.classes = [*self._files], None if classes is None else [*classes]
        folders = [name.partition("/")[0] for name in self._files if "/" in name]
        if _are_files(labels):
            self._maps = _nifti_files_by_name(labels)
            of_folder = isinstance(labels, str | Path) and Path(labels).is_dir()
            if [*self._maps] != self.names if of_folder else len(self._maps) != len(self):
                raise InputError("labels", "a label map for each file", [*self._maps])
        elif labels is not None:
            self.labels = whole_array(labels, "labels")
            check_array_source_labels(self.labels, len(self))
        elif len(folders) == len(self):
            self.labels, self.classes = data_source_class_indices(folders, classes, str(files))
        self._shape, spacing = _shape_and_spacing(*next(iter(self._files.items())))
        self.action = Volumes(spacing=spacing)

    def labeled(self, labels: object) -> Nifti:
        """Return the same files with other labels or label maps."""
        return Nifti(self._given, labels)

    def __len__(self) -> int:
        return len(self._files)

    def read(self, start: int, stop: int) -> Batch:
        """Return some volumes, and their label maps or labels."""
        some = slice(start, stop)
        volumes = np.stack([self._volume(*one) for one in [*self._files.items()][some]])
        if not self._maps:
            return volumes, None if self.labels is None else self.labels[some]
        maps = [self._volume(*one)[0] for one in [*self._maps.items()][some]]
        return volumes, np.rint(np.stack(maps)).astype(np.int16)

    def _volume(self, name: str, path: Path) -> np.ndarray:
        values = _voxels(name, path)
        if values.shape[1:] != self._shape:
            raise InputError(
                "data", f"volumes of {self._shape} voxels", f"{values.shape[1:]} in {name!r}"
            )
        return values

    def check(self) -> None:
        """Refuse files that differ in shape or spacing, from their headers."""
        for name, path in [*self._files.items(), *self._maps.items()]:
            shape, spacing = _shape_and_spacing(name, path)
            if shape != self._shape or not np.allclose(spacing, self.action.spacing, rtol=1e-3):
                raise InputError(
                    "data",
                    f"volumes of {self._shape} voxels of {self.action.spacing} mm, as the first",
                    f"{shape} of {[round(side, 4) for side in spacing]} in {name!r}",
                    remedy="resample them to one grid, such as with nibabel.processing.conform",
                )

    def stamp(self) -> str | None:
        """Return a hash of the names, sizes and times of the files, and of the labels."""
        labels = b"" if self.labels is None else to_numpy(self.labels).tobytes()
        return data_hash([data_stamp(self._files), data_stamp(self._maps), labels])


def _are_files(given: object) -> bool:
    first = given[0] if isinstance(given, list | tuple) and given else given
    return isinstance(first, str | Path) and (Path(first).is_dir() or is_nifti(first))


def is_nifti(path: str | Path) -> bool:
    """Check the suffix of a file."""
    return str(path).lower().endswith(SUFFIXES)


def _nifti_files_by_name(files: Any) -> dict[str, Path]:
    """Return files by name, in alphabetical order for a folder."""
    if isinstance(files, str | Path) and (folder := Path(files).expanduser()).is_dir():
        paths = sorted(path for path in folder.rglob("*") if is_nifti(path))
        if not paths:
            raise InputError("data", "NIfTI files (.nii, .nii.gz)", f"none in {str(files)!r}")
        return {path.relative_to(folder).as_posix(): path for path in paths}
    listed = [files] if isinstance(files, str | Path) else [*files]
    paths = [existing_file("data", Path(one).expanduser()) for one in listed]
    short = {path.name: path for path in paths}
    return short if len(short) == len(paths) else {path.as_posix(): path for path in paths}


def _open_nifti(name: str, path: Path) -> Any:
    """Open a file, with its axes to the right, to the front and to the head."""
    nibabel = import_extra("nibabel", "medical", "a NIfTI file")
    with reading("data", name, "NIfTI"):
        return nibabel.as_closest_canonical(nibabel.load(path))


def _shape_and_spacing(name: str, path: Path) -> tuple[tuple[int, ...], list[float]]:
    """Return the numbers of voxels (depth, row, column) and the sides of a voxel."""
    image = _open_nifti(name, path)
    if len(image.shape) not in (3, 4):
        raise InputError("data", "volumes", f"{len(image.shape)} dimensions in {name!r}")
    return image.shape[2::-1], [float(side) for side in image.header.get_zooms()[2::-1]]


def _voxels(name: str, path: Path) -> np.ndarray:
    """Return `[channel, depth, row, column]`; rows count from the front, where y is up."""
    image = _open_nifti(name, path)
    with reading("data", name, "NIfTI"):
        values = np.asarray(image.get_fdata(dtype=np.float32))
    values = values[..., None] if values.ndim == 3 else values
    return np.ascontiguousarray(values.T[:, :, ::-1])
