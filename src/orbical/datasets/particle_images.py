"""Particle image velocimetry: pairs of particle images with the flow between them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError

from .folders import data_file

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
