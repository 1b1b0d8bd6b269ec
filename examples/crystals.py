"""Check energies, forces and stress of crystals under rotations and mirrors, and each other.

Run: python examples/crystals.py (needs the extra `chemistry`)

Three potentials: EMT as ASE has it; EMT with forces that are 5 % too weak, which turn with the
crystal as they should and are still not the gradient of the energy; and a torch network that takes
all crystals in one batch without padding and cannot tell a vector from its mirror image. The
crystals are a strained one and, where the data are at hand, surfaces of copper and nickel with
energies and forces from DFT (Zuo et al. 2020).
"""

from itertools import pairwise

import numpy as np
import torch
from ase import Atoms
from ase.build import bulk
from ase.calculators.calculator import all_changes
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from torch import Tensor

import orbical as ob

GROUP = ob.groups.product(ob.groups.rotations3d(4), ob.groups.inversion())
TASK = ob.tasks.Atoms(["energy", "forces", "stress"])


class Weak(EMT):
    """EMT with forces of their own, as of a network that predicts them directly."""

    def calculate(self, atoms=None, properties=None, system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"] = 0.95 * self.results["forces"]


class Handed(torch.nn.Module):
    """Pair energies by distance, and a term that only a left or a right hand has."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        pos = batch["pos"].requires_grad_()
        strain = torch.zeros_like(batch["cell"]).requires_grad_()
        stretch = torch.eye(3).to(strain) + (strain + strain.mT) / 2
        moved = torch.einsum("ni,nij->nj", pos, stretch[batch["batch"]])
        graphs = [slice(*ends) for ends in pairwise(batch["ptr"].tolist())]
        energy = torch.stack([self.energy(moved[graph]) for graph in graphs])
        slope, strained = torch.autograd.grad(energy.sum(), (pos, strain))
        volume = torch.linalg.det(batch["cell"]).abs()[:, None, None]
        return {"energy": energy, "forces": -slope, "stress": strained / volume}

    def energy(self, pos: Tensor) -> Tensor:
        apart = pos[1:] - pos[:-1]
        near = torch.exp(-self.decay * torch.pdist(pos)).sum()
        handed = torch.linalg.det(torch.stack([apart[:-2], apart[1:-1], apart[2:]], 1))
        return near + 1e-3 * handed.sum()


def from_dft(element: str, most: int) -> list[Atoms]:
    """Read crystals of at most so many atoms, with energies and forces from DFT."""
    path = ob.datasets.data_file(f"mlearn_{element}_test.npz", None, "atoms")
    stored = dict(np.load(path))
    ends = np.cumsum(stored["n_atoms"])
    crystals = []
    for row in np.flatnonzero(stored["n_atoms"] <= most):
        atoms = slice(ends[row] - stored["n_atoms"][row], ends[row])
        crystal = Atoms(
            f"{element}{stored['n_atoms'][row]}",
            stored["positions"][atoms].astype(float),
            cell=stored["cell"][row],
            pbc=True,
        )
        known = {"energy": stored["energy"][row], "forces": stored["forces"][atoms]}
        crystal.calc = SinglePointCalculator(crystal, **known)
        crystal.info["name"] = f"{element} {str(stored['group'][row]).lower()}"
        crystals.append(crystal)
    return crystals


def rattled(element: str) -> Atoms:
    """Return a strained crystal with displaced atoms."""
    crystal = bulk(element, cubic=True)
    crystal.rattle(0.05, seed=1)
    crystal.set_cell(crystal.cell @ np.array([[1, 0.02, 0], [0, 1, 0], [0, 0, 1.01]]), True)
    crystal.info["name"] = f"strained {element}"
    return crystal


def crystals() -> list[Atoms]:
    """Return a strained crystal, and surfaces with the truth of DFT where the data are at hand."""
    try:
        surfaces = [*from_dft("Cu", 20), *from_dft("Ni", 18)]
    except ob.errors.InputError:
        surfaces = []
    return [rattled("Cu"), *surfaces]


def scanned() -> tuple[dict[str, object], ob.Scan]:
    """Scan the three potentials."""
    models = {
        "EMT": EMT(),
        "weak forces": Weak(),
        "handed": ob.predictors.RaggedPredictor(Handed()),
    }
    scan = ob.scan(models, crystals(), group=GROUP, task=TASK, keep="inputs", progress=False)
    return models, scan


def main() -> None:
    """Print how far each potential is from equivariant, and from conservative."""
    models, scan = scanned()
    for name, model in models.items():
        apart = scan.data.sel(model=name)
        error = ob.testing.conservativity_error(model, crystals()[:1], task=TASK, directions=4)
        handed = float(apart["energy_per_atom_vs_consensus"].max()) * 2e3
        print(
            f"{name:>11}: energies of mirror images differ by {handed:.2g} meV per atom; forces by "
            f"{float(apart['forces_vs_consensus'].max()):.1g} eV/Å, stress by "
            f"{float(apart['stress_vs_consensus'].max()):.1g} eV/Å³ along the orbit; forces are "
            f"{error.largest('forces'):.2g} ± {error.limits['forces'].max():.0g} eV/Å from the "
            "gradient of the energy"
        )
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
