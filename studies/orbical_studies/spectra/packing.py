"""Labelled molecules in one small file, for a machine that has no quantum chemistry."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError
from orbical.groups import rotations3d
from orbical_studies.data import qm9, spectra
from orbical_studies.data.bars import counted
from orbical_studies.data.infrared_spectra import Spectra

from .settings import EXAMPLE, FEWEST, MOST_HEAVY, TEST, VALIDATION

CHUNK = 50
TURNED = 20
"""Molecules whose labels are calculated once more in another orientation."""


class Pack(NamedTuple):
    """Molecules with their spectra on a device.

    Attributes:
        pos: `[n, a, 3]` in Å, relaxed: the geometry whose spectrum it is.
        numbers: `[n, a]`, 0 for padding.
        spectra: `[n, points]` in km/mol per cm^-1.
        wavenumbers: `[points]` in cm^-1.
        smiles: names of the molecules. The last molecule is `EXAMPLE`.
        noise: mean square, at each wavenumber, of the change of a target when its molecule is
            turned before it is labelled: what is not exact in the labels.
        failed: how many molecules have no label.
    """

    pos: Tensor
    numbers: Tensor
    spectra: Tensor
    wavenumbers: Tensor
    smiles: tuple[str, ...]
    noise: Tensor
    failed: int

    @property
    def targets(self) -> Tensor:
        """What is learnt, `[n, points]`: `amplitude` of the spectra."""
        return amplitude(self.spectra)

    def rows(self, split: str) -> slice:
        """Give the molecules of a split: the first for the test, then validation, then training.

        Their order is drawn by a seed, so that the first are a fair sample, however many there are.
        """
        last = len(self.pos) - 1
        tested = int(TEST * last)
        checked = tested + int(VALIDATION * last)
        return {
            "test": slice(0, tested),
            "validation": slice(tested, checked),
            "train": slice(checked, last),
            "example": slice(last, last + 1),
        }[split]


def amplitude(spectra: Tensor) -> Tensor:
    """The root of an absorption, in (km/mol per cm^-1)^1/2.

    Absorption goes with the square of how far a vibration moves the dipole, and spreads over four
    decades: a likelihood would hold its peaks for outliers.

    >>> amplitude(torch.tensor([4.0]))
    tensor([2.])
    """
    return spectra.sqrt()


def pack(path: Path, cache: Path | None, minutes: float, count: int | None = None) -> Path:
    """Label molecules of QM9 for some minutes, in the data set's seeded order, and write them.

    Args:
        path: where the file goes.
        cache: of the data sets; labels that are there take no time.
        minutes: after which no further molecules are labelled.
        count: of molecules at most; None for all of the size that the study takes.
    """
    molecules = qm9("all", [], cache=cache)
    heavy = (molecules.inputs["numbers"] > 1).sum(1)
    rows = (heavy <= MOST_HEAVY).nonzero()[:count, 0]
    names = [molecules.smiles[int(row)] for row in rows]
    inputs = _trimmed({name: values[rows] for name, values in molecules.inputs.items()})
    parts = list(_labelled(inputs, names, cache, time.monotonic() + 60 * minutes))
    labelled = sum(len(part.rows) for part in parts)
    if labelled < FEWEST:
        raise InputError(
            f"label-minutes: {labelled} molecules were labelled, at least {FEWEST} expected; "
            "the same command goes on from there"
        )
    place = molecules.smiles.index(EXAMPLE)
    one = {name: values[place : place + 1] for name, values in molecules.inputs.items()}
    example = spectra(_trimmed(one), [EXAMPLE], cache=cache, progress=False)
    kept = [
        names[CHUNK * place + int(row)] for place, part in enumerate(parts) for row in part.rows
    ]
    every = (*parts, example)
    arrays = {
        "sizes": np.concatenate([_sizes(part) for part in every]),
        "numbers": np.concatenate([_numbers(part) for part in every]),
        "positions": np.concatenate([_relaxed(part) for part in every]),
        "spectra": np.concatenate([part.spectra.numpy() for part in every]).astype(np.float32),
        "wavenumbers": example.wavenumbers.numpy(),
        "smiles": np.frombuffer("\n".join([*kept, EXAMPLE]).encode(), np.uint8),
        "noise": _noise(inputs, parts[0], cache),
        "failed": np.array(sum(len(part.failed) for part in parts)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type] # its keywords are arrays
    return path


def _labelled(
    inputs: dict[str, Tensor], names: list[str], cache: Path | None, deadline: float
) -> Iterator[Spectra]:
    """Label molecules a chunk at a time, at least one chunk."""
    with counted(f"spectra, {CHUNK} at a time", -(-len(names) // CHUNK), shown=True) as advance:
        for start in range(0, len(names), CHUNK):
            if start and time.monotonic() > deadline:
                return
            chunk = {name: values[start : start + CHUNK] for name, values in inputs.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those left out are counted on the page
                yield spectra(chunk, names[start : start + CHUNK], cache=cache, progress=False)
            advance()


def _trimmed(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Leave out places that no molecule fills."""
    most = int(inputs["mask"].sum(1).max())
    return {name: values[:, :most] for name, values in inputs.items()}


def _sizes(part: Spectra) -> np.ndarray:
    return part.inputs["mask"].sum(1).numpy().astype(np.uint8)


def _numbers(part: Spectra) -> np.ndarray:
    return part.inputs["numbers"][part.inputs["mask"]].numpy().astype(np.int8)


def _relaxed(part: Spectra) -> np.ndarray:
    return part.relaxed[part.inputs["mask"]].numpy().astype(np.float32)


def _noise(inputs: dict[str, Tensor], first: Spectra, cache: Path | None) -> np.ndarray:
    """Label some molecules again in another orientation; give the mean square of the change."""
    chosen = {name: values[first.rows[:TURNED]] for name, values in inputs.items()}
    turn = torch.as_tensor(rotations3d(2).parts["space"][1, :3, :3]).double()
    turned = chosen | {"pos": chosen["pos"].double() @ turn.T}
    again = spectra(turned, cache=cache, progress=False)
    change = amplitude(again.spectra) - amplitude(first.spectra[:TURNED][again.rows])
    return change.square().mean(0).numpy()


def unpack(path: Path, device: torch.device) -> Pack:
    """Read the packed molecules onto a device."""
    if not path.is_file():
        raise InputError(f"pack: there is no file {str(path)!r}; run the step 'pack' first")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    sizes = arrays["sizes"].astype(np.int64)
    mask = np.arange(sizes.max()) < sizes[:, None]
    pos = np.zeros((*mask.shape, 3), np.float32)
    numbers = np.zeros(mask.shape, np.int64)
    pos[mask], numbers[mask] = arrays["positions"], arrays["numbers"]
    return Pack(
        pos=torch.from_numpy(pos).to(device),
        numbers=torch.from_numpy(numbers).to(device),
        spectra=torch.from_numpy(arrays["spectra"]).to(device),
        wavenumbers=torch.from_numpy(arrays["wavenumbers"]).to(device),
        smiles=tuple(arrays["smiles"].tobytes().decode().split("\n")),
        noise=torch.from_numpy(arrays["noise"]).to(device),
        failed=int(arrays["failed"]),
    )
