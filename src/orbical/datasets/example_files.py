"""Readers of the public data sets that examples and tests use, and the folder of their files."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError

VARIABLE = "ORBICAL_DATA"


def data_folder() -> Path:
    """Return the folder with one subfolder for each data set.

    It is the value of the environment variable `ORBICAL_DATA`, if set. Otherwise it is
    `../shared/data` beside the checkout, the nearest folder with a `pyproject.toml` from the
    current one upwards (or the current one if there is none).

    Returns:
        The path of an existing folder.

    Raises:
        InputError: If that folder does not exist.

    Example:
        >>> import os, tempfile
        >>> from unittest import mock
        >>> with tempfile.TemporaryDirectory() as there:
        ...     with mock.patch.dict(os.environ, {"ORBICAL_DATA": there}):
        ...         str(data_folder()) == there
        True
    """
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise InputError(VARIABLE, "an existing folder", repr(given))
        return folder
    here = Path.cwd()
    checkout = next((f for f in (here, *here.parents) if (f / "pyproject.toml").is_file()), here)
    folder = checkout.parent / "shared" / "data"
    if not folder.is_dir():
        raise InputError(
            VARIABLE,
            "the folder of the data sets",
            f"no value, and {folder} does not exist",
            remedy="set the variable",
        )
    return folder


def data_file(name: str, folder: str | Path | None, default: str) -> Path:
    """Return the path of one file of a data set.

    Args:
        name: Name of the file.
        folder: Folder of the data set. By default, `data_folder() / default`.
        default: Subfolder of the data set in `data_folder()`.

    Returns:
        The path of an existing file.

    Raises:
        InputError: If the file does not exist.

    Example:
        >>> data_file("missing.npz", folder=".", default="piv")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'missing.npz', ...
    """
    place = Path(folder).expanduser() if folder is not None else data_folder() / default
    path = place / name
    if not path.is_file():
        raise InputError(
            "folder",
            f"a folder with the file {name!r}",
            repr(str(place)),
            remedy=f"pass it, or set {VARIABLE} to the folder that contains {default!r}",
        )
    return path


LEAST_CONTRAST = 20


def nuclei(
    folder: str | Path | None = None, count: int | None = None, kind: str = "fluorescence"
) -> tuple[Tensor, Tensor]:
    """Read images of cell nuclei with their masks, from the Data Science Bowl 2018 (BBBC038, CC0).

    Args:
        folder: Contains `dsb2018_256.zip` with `images/ID.webp` and `masks/ID.png` (0 is the
            background, 1 .. n the nuclei), and `meta.json` with `id` and `kind` of each image. By
            default, `data_folder() / "nuclei"`.
        count: The number of images, in the order of their names; all by default.
        kind: How they were taken, as `meta.json` says: "fluorescence" for example.

    Returns:
        Images `[n, 1, 256, 256]`, gray in 0..1, from the darkest pixel of each to its 99th
        percentile (at least 20 of 255 levels), and label maps `[n, 256, 256]`: 1 in a nucleus, 0
        elsewhere.

    Raises:
        InputError: If a file does not exist, or there are no images of that kind.

    Example:
        >>> nuclei(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'dsb2018_256.zip', ...
    """
    from PIL import Image

    archive = data_file("dsb2018_256.zip", folder, "nuclei")
    entries = json.loads(data_file("meta.json", folder, "nuclei").read_text(encoding="utf-8"))
    names = sorted(entry["id"] for entry in entries if entry["kind"] == kind)[:count]
    if not names:
        known = ", ".join(sorted({entry["kind"] for entry in entries}))
        raise InputError("kind", f"one of {known}", repr(kind))
    with zipfile.ZipFile(archive) as file:

        def picture(path: str, mode: str) -> np.ndarray:
            return np.array(Image.open(io.BytesIO(file.read(path))).convert(mode))

        images = np.stack([picture(f"images/{name}.webp", "L") for name in names])
        masks = np.stack([picture(f"masks/{name}.png", "L") for name in names])
    low, high = np.percentile(images, (0, 99), axis=(1, 2), keepdims=True)
    gray = ((images - low) / np.maximum(high - low, LEAST_CONTRAST)).clip(0, 1)
    return torch.from_numpy(gray).float()[:, None], torch.from_numpy(masks > 0).long()


MARGIN = 1.25


def coco_persons(
    folder: str | Path | None = None,
    size: int = 64,
    least: int = 8,
    margin: float = MARGIN,
    most: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Read persons of COCO val2017 with their key points, cut out as squares.

    Args:
        folder: Contains `coco_val_400px.zip` with the images and `annotations.json`, which has for
            each image the `keypoints`: `box` (center, width, height) and 17 `kp` (x, y, visibility)
            of each person, in shares of the image. By default, `data_folder() / "coco_val2017"`.
        size: The side of the squares in pixels.
        least: The least number of labeled points of a person.
        margin: The side of a square over the longer side of the box in its middle.
        most: The largest number of persons of one photograph, those with the largest boxes; all by
            default. With 1, samples are photographs, and independent.

    Returns:
        Images `[n, 3, size, size]` in 0..1, the box of a person with a margin, black outside of the
        photograph, and key points `[n, 17, 3]`: x, y in pixels of the square, and visibility (0
        unlabeled, 1 hidden, 2 visible).

    Raises:
        InputError: If a file does not exist.

    Example:
        >>> coco_persons(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'coco_val_400px.zip', ...
    """
    from PIL import Image

    archive = data_file("coco_val_400px.zip", folder, "coco_val2017")
    entries = json.loads(data_file("annotations.json", folder, "coco_val2017").read_text("utf-8"))
    images, points = [], []
    with zipfile.ZipFile(archive) as file:
        for name, entry in sorted(entries.items()):
            persons = [
                person
                for person in entry.get("keypoints", ())
                if sum(point[2] > 0 for point in person["kp"]) >= least
            ]
            if most is not None:
                persons.sort(key=lambda person: -person["box"][2] * person["box"][3])
                persons = persons[:most]
            if not persons:
                continue
            photo = Image.open(io.BytesIO(file.read(f"{name}.jpg"))).convert("RGB")
            for person in persons:
                x, y, width, height = np.array(person["box"]) * [*photo.size, *photo.size]
                side = margin * max(width, height)
                corner = np.array([x, y]) - side / 2
                square = photo.crop((*corner, *(corner + side))).resize((size, size))
                images.append(np.asarray(square, np.float32).transpose(2, 0, 1) / 255)
                found = np.array(person["kp"], np.float32)
                found[:, :2] = (found[:, :2] * photo.size - corner) * size / side
                points.append(found)
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(points))


def notes(folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Read recorded notes of cello, violin and flute, with their pitch.

    The notes are those of tonejs-instruments (CC BY 3.0).

    Args:
        folder: Contains `notes16k.npz` with `audio` `[n, 16000]`, one second of each note at 16
            kHz, and `notes.json` with the `midi` number of each. By default,
            `data_folder() / "pitch"`.

    Returns:
        Signals `[n, 1, 16000]` in -1..1, and pitches `[n]` in semitones, 69 for 440 Hz.

    Raises:
        InputError: If a file does not exist.

    Example:
        >>> notes(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'notes16k.npz', ...
    """
    with np.load(data_file("notes16k.npz", folder, "pitch")) as arrays:
        sound = torch.from_numpy(arrays["audio"].astype(np.float32) / 2**15)
    about = json.loads(data_file("notes.json", folder, "pitch").read_text(encoding="utf-8"))
    return sound[:, None], torch.tensor([float(note["midi"]) for note in about])


SHAPES = ("chair", "monitor")
"""The classes of `voxel_shapes`."""

TISSUES = ("other", "gray matter", "white matter")
"""The classes of the label map of `brain_template`."""


def voxel_shapes(
    folder: str | Path | None = None, count: int | None = None
) -> tuple[Tensor, Tensor]:
    """Read chairs and monitors of ModelNet10 as volumes of 32 x 32 x 32 voxels.

    Args:
        folder: Contains `chair.npz` and `monitor.npz`, each with `packed`, the bits of its shapes
            (the first one empty), and `shape`. By default, `data_folder() / "modelnet10vox"`.
        count: The number of shapes, in a fixed random order; all by default.

    Returns:
        Volumes `[n, 1, 32, 32, 32]` of 0 and 1, upright (the rows go down), and labels `[n]`, the
        index in `SHAPES`.

    Raises:
        InputError: If a file does not exist.

    Example:
        >>> voxel_shapes(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'chair.npz', ...
    """
    files = [data_file(f"{name}.npz", folder, "modelnet10vox") for name in SHAPES]
    packed = [np.load(file)["packed"][1:] for file in files]
    labels = np.repeat(np.arange(len(SHAPES)), [len(bits) for bits in packed])
    order = np.random.default_rng(0).permutation(len(labels))[:count]
    bits = np.unpackbits(np.concatenate(packed)[order], axis=1).reshape(-1, 32, 32, 32)
    upright = bits.transpose(0, 2, 3, 1)[:, :, ::-1]  # x, y, z with z up in the files
    return torch.tensor(upright.copy()).float()[:, None], torch.tensor(labels[order]).long()


def brain_template(folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Read the MNI ICBM 2009a symmetric template: a T1 image of a mean brain, and its tissues.

    The brain equals its own mirror image exactly, so that one half is no test of a model that was
    fitted to the other.

    Args:
        folder: Contains `mni152_2mm.npz` with `t1` and `tissue`, in voxels of 2 mm along x (right),
            y (forward) and z (up). By default, `data_folder() / "volumes"`.

    Returns:
        The image `[1, 1, 94, 116, 99]` in 0..1, from the lowest slice to the highest, each with the
        front of the head up, and the label map `[1, 94, 116, 99]`, the index in `TISSUES`.

    Raises:
        InputError: If the file does not exist.

    Example:
        >>> brain_template(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'mni152_2mm.npz', ...
    """
    with np.load(data_file("mni152_2mm.npz", folder, "volumes")) as file:
        t1, tissue = (file[name].transpose(2, 1, 0)[:, ::-1].copy() for name in ("t1", "tissue"))
    return torch.tensor(t1 / t1.max()).float()[None, None], torch.tensor(tissue).long()[None]


KINDS = {
    "DNS_turbulence": "turbulence",
    "JHTDB_isotropic": "isotropic",
    "SQG": "surface quasi-geostrophic",
    "backstep": "backstep",
    "uniform": "uniform",
}


class ParticlePairs(TypedDict):
    """Pairs of particle images with their flows, names and kinds."""

    pair: Tensor
    flow: Tensor
    names: list[str]
    kinds: list[str]


def piv(folder: str | Path | None = None) -> ParticlePairs:
    """Read particle-image pairs with their true displacements, as in the NERO paper.

    Args:
        folder: Contains `piv_pairs.npz` with `NAME/img1`, `NAME/img2` (bytes `[h, w]`) and
            `NAME/flow` (`[h, w, 2]`). By default, `data_folder() / "piv"`.

    Returns:
        `pair` `[n, 2, 1, h, w]`, float32 in 0..1, first image first; `flow` `[n, 2, h, w]`,
        float32, the displacement (dx, dy) in pixels from the first image to the second, x to the
        right and y down; `names` of the pairs, in alphabetical order; and their `kinds` of flow
        (turbulence, isotropic, surface quasi-geostrophic, backstep, uniform).

    Raises:
        InputError: If the file does not exist or is not complete.

    Example:
        >>> piv(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'piv_pairs.npz', ...
    """
    path = data_file("piv_pairs.npz", folder, "piv")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            "folder", problem=f"{path.name!r} is not a readable npz file ({error})"
        ) from error
    names = sorted({key.rsplit("/", 1)[0] for key in arrays})
    expected = [f"{name}/{part}" for name in names for part in ("img1", "img2", "flow")]
    missing = [key for key in expected if key not in arrays]
    if missing or not names:
        raise InputError(
            "folder",
            "NAME/img1, NAME/img2 and NAME/flow for each pair",
            f"a file without {missing or 'any pair'}, {path.name!r}",
        )
    pairs = np.stack([[arrays[f"{name}/img1"], arrays[f"{name}/img2"]] for name in names])
    flows = np.stack([arrays[f"{name}/flow"] for name in names]).transpose(0, 3, 1, 2)
    return ParticlePairs(
        pair=torch.as_tensor(pairs.astype(np.float32) / 255)[:, :, None],
        flow=torch.as_tensor(np.ascontiguousarray(flows, dtype=np.float32)),
        names=names,
        kinds=[_kind(name) for name in names],
    )


def _kind(name: str) -> str:
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), "other")
