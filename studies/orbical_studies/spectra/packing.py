"""Labeled molecules in one small file, for a machine that has no quantum chemistry."""

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

from ..data import qm9, spectra
from ..data.bars import tracked
from ..data.infrared_spectra import Spectra
from ..data.qm9_molecules import padded_atoms
from ..framework import Results
from ..framework.packs import read_pack, write_pack
from .settings import Settings

FILE = "spectra.npz"
MOST_HEAVY = 8
"""Molecules with up to this many atoms other than hydrogen are labeled."""
EXAMPLE = "C#CC12CC(C1)C1CC21"
"""The molecule of the paper's Fig. 9. It has nine heavy atoms, more than any other molecule of the
study, and so shows how networks extrapolate."""
TEST, VALIDATION = (0.2, 500), (0.1, 300)
"""Shares of the molecules, and at most how many: the first are for the test, the next for choosing
when to stop."""
CHUNK = 50
TURNED = 20
"""Molecules that are labeled once more in another orientation."""


class Pack(NamedTuple):
    """Molecules with their spectra on a device.

    Attributes:
        pos: `[n, a, 3]` in Å, relaxed: the geometry whose spectrum it is.
        numbers: `[n, a]`, 0 for padding.
        spectra: `[n, points]` in km/mol per cm^-1.
        wavenumbers: `[points]` in cm^-1.
        smiles: Names of the molecules. The last molecule is `EXAMPLE`.
        noise: Mean square, at each wavenumber, of the change of a target when its molecule is
            rotated before it is labeled: the inexactness of the labels.
        failed: Number of molecules without a label.
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
        """What is learned, `[n, points]`: the root of the absorption, (km/mol per cm^-1)^1/2.

        Absorption is proportional to the square of how far a vibration moves the dipole, and spans
        four decades: a likelihood would treat its peaks as outliers.
        """
        return self.spectra.sqrt()

    def rows(self, split: str) -> slice:
        """Return the molecules of a split: the first for the test, then validation, then training.

        Their order is drawn by a seed, so that the first are a random sample of any size.
        """
        last = len(self.pos) - 1
        tested, chosen = (min(int(share * last), most) for share, most in (TEST, VALIDATION))
        checked = tested + chosen
        return {
            "test": slice(0, tested),
            "validation": slice(tested, checked),
            "train": slice(checked, last),
            "example": slice(last, last + 1),
        }[split]

    def scale(self) -> tuple[Tensor, Tensor]:
        """Return the mean `[points]` of the training targets, and one width for all points.

        The width is the root of the variance, averaged over wavenumbers. One unit for all of them
        keeps a strong line strong: scaled by its own deviation, a wavenumber where almost no
        molecule absorbs would weigh as much in a squared norm as one where all do.
        """
        train = self.targets[self.rows("train")].double()
        return train.mean(0), train.var(0, correction=0).mean().sqrt()


def pack(settings: Settings, results: Results) -> None:
    """Label molecules of QM9 in the data set's seeded order, and write them to one file."""
    molecules = qm9("all", [], cache=settings.cache)
    heavy = (molecules.inputs["numbers"] > 1).sum(1)
    rows = (heavy <= MOST_HEAVY).nonzero()[: settings.count, 0]
    names = [molecules.smiles[int(row)] for row in rows]
    inputs = _trimmed({name: values[rows] for name, values in molecules.inputs.items()})
    parts = list(_labeled(inputs, names, settings))
    place = molecules.smiles.index(EXAMPLE)
    one = {name: values[place : place + 1] for name, values in molecules.inputs.items()}
    every = [*parts, spectra(_trimmed(one), [EXAMPLE], cache=settings.cache, progress=False)]
    kept = [names[CHUNK * k + int(row)] for k, part in enumerate(parts) for row in part.rows]
    if len(kept) < settings.fewest:
        raise InputError(
            "label-minutes",
            f"at least {settings.fewest} labeled molecules",
            len(kept),
            remedy="run the same command again to label more",
        )
    masks = [part.inputs["mask"] for part in every]
    atoms = [part.inputs["numbers"][mask] for part, mask in zip(every, masks, strict=True)]
    relaxed = [part.relaxed[mask] for part, mask in zip(every, masks, strict=True)]
    arrays: dict[str, np.ndarray] = {
        "sizes": torch.cat([mask.sum(1) for mask in masks]).numpy().astype(np.uint8),
        "numbers": torch.cat(atoms).numpy().astype(np.int8),
        "positions": torch.cat(relaxed).numpy().astype(np.float32),
        "spectra": torch.cat([part.spectra for part in every]).numpy().astype(np.float32),
        "wavenumbers": every[-1].wavenumbers.numpy(),
        "smiles": np.frombuffer("\n".join([*kept, EXAMPLE]).encode(), np.uint8),
        "noise": _noise(inputs, parts[0], settings.cache),
        "failed": np.array(sum(len(part.failed) for part in parts)),
    }
    write_pack(results.work / FILE, arrays)


def _labeled(inputs: dict[str, Tensor], names: list[str], settings: Settings) -> Iterator[Spectra]:
    """Label molecules a chunk at a time, at least one chunk."""
    deadline = time.monotonic() + 60 * settings.label_minutes
    starts = range(0, len(names), CHUNK)
    for start in tracked(starts, f"spectra, {CHUNK} at a time", shown=True):
        if start and time.monotonic() > deadline:
            return
        some = slice(start, start + CHUNK)
        chunk = {name: values[some] for name, values in inputs.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # molecules left out are counted on the page
            yield spectra(chunk, names[some], cache=settings.cache, progress=False)


def _trimmed(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Remove padding that no molecule needs."""
    most = int(inputs["mask"].sum(1).max())
    return {name: values[:, :most] for name, values in inputs.items()}


def _noise(inputs: dict[str, Tensor], first: Spectra, cache: str | None) -> np.ndarray:
    """Label some molecules again in another orientation; return the mean square of the change."""
    chosen = {name: values[first.rows[:TURNED]] for name, values in inputs.items()}
    turn = torch.as_tensor(rotations3d(2).parts["space"][1, :3, :3]).double()
    turned = chosen | {"pos": chosen["pos"].double() @ turn.T}
    again = spectra(turned, cache=cache, progress=False)
    change = again.spectra.sqrt() - first.spectra[:TURNED][again.rows].sqrt()
    return change.square().mean(0).numpy()


def unpack(path: Path, device: torch.device | str = "cpu") -> Pack:
    """Read the packed molecules onto a device."""
    arrays = read_pack(path)
    pos, numbers, _ = padded_atoms(arrays)
    smiles = tuple(arrays["smiles"].tobytes().decode().split("\n"))
    found = (pos, numbers, arrays["spectra"], arrays["wavenumbers"], arrays["noise"])
    place, kind, values, grid, noise = (torch.from_numpy(part).to(device) for part in found)
    return Pack(place, kind, values, grid, smiles, noise, int(arrays["failed"]))
