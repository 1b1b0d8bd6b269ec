"""Particle image velocimetry: pairs of real-looking particle images with the flow between them."""

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
    """What `piv` returns: pairs, flows, and what each of them is."""

    pair: Tensor
    flow: Tensor
    names: list[str]
    kinds: list[str]


def piv(folder: str | Path | None = None) -> ParticlePairs:
    """Read particle-image pairs with their true displacement (the NERO paper's PIV data family).

    Args:
        folder: holds `piv_pairs.npz` with `NAME/img1`, `NAME/img2` (bytes `[h, w]`) and
            `NAME/flow` (`[h, w, 2]`); None looks in `piv` under `data_folder()`.

    Returns:
        `pair` `[n, 2, 1, h, w]`, float32 in 0..1, first image first; `flow` `[n, 2, h, w]`,
        float32, the displacement (dx, dy) in pixels from the first image to the second, x to the
        right and y DOWN as in the files; `names`, one a pair, in alphabetical order; and `kinds`,
        the flow each belongs to (turbulence, isotropic, surface quasi-geostrophic, backstep,
        uniform).

    Example:
        >>> piv(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no file 'piv_pairs.npz' in '.'; ...
    """
    path = data_file("piv_pairs.npz", folder, "piv")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as broken:
        raise InputError(f"folder: {path.name!r} is not a readable npz file ({broken})") from broken
    names = sorted({key.rsplit("/", 1)[0] for key in arrays})
    expected = [f"{name}/{part}" for name in names for part in ("img1", "img2", "flow")]
    missing = [key for key in expected if key not in arrays]
    if missing or not names:
        raise InputError(
            f"folder: {path.name!r} lacks {missing or 'any pair'}; "
            "expected NAME/img1, NAME/img2 and NAME/flow for each pair"
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
