"""Volumes in files: shapes as voxels, and a brain with its tissues."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .folders import data_file

SHAPES = ("chair", "monitor")
TISSUES = ("other", "gray matter", "white matter")


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
