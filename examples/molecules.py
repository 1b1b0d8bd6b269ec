"""Check whether a dipole model is equivariant: positions rotate, atomic numbers do not.

Run: python examples/molecules.py (needs the extra `chemistry`)
"""

import numpy as np
import torch
from ase.build import molecule

import orbical as ob


class Dipole(torch.nn.Module):
    """Sum of positions times charges that depend on distances: equivariant by construction."""

    def __init__(self, broken: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.charge = torch.nn.Sequential(
            torch.nn.Linear(9, 16), torch.nn.SiLU(), torch.nn.Linear(16, 1)
        )
        self.broken = broken

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        pos, numbers = batch["pos"], batch["numbers"]
        present = (numbers > 0).to(pos)[..., None]
        decay = torch.exp(-torch.cdist(pos, pos)[..., None] * torch.linspace(0.2, 2, 8))
        near = (decay * present[:, None]).sum(2)
        charge = self.charge(torch.cat([near, numbers[..., None] / 10], -1)) * present
        if self.broken:
            charge = charge + 0.1 * pos[..., :1]  # depends on the x coordinate
        return (charge * pos).sum(1)


names = ["H2O", "CH4", "CH3CH2OH", "C6H6", "NH3", "CO2"]
atoms = [molecule(name) for name in names]
size = max(map(len, atoms))
pos, numbers = np.zeros((len(atoms), size, 3), np.float32), np.zeros((len(atoms), size), int)
for row, one in enumerate(atoms):
    pos[row, : len(one)] = one.positions - one.get_center_of_mass()
    numbers[row, : len(one)] = one.numbers

task = ob.tasks.Regression(
    input={"pos": ob.actions.Points(), "numbers": ob.actions.Rows()}, representation="vector"
)
scan = ob.scan(
    {"sound": Dipole(), "broken": Dipole(broken=True)},
    {"pos": pos, "numbers": numbers},
    group="rotations3d:128",
    task=task,
)
gap = scan.data["invariance_gap"]
for model in scan.models:
    worst = int(np.asarray(gap.sel(model=model)).argmax())
    print(f"{model}: largest gap {float(gap.sel(model=model)[worst]):.2g}, {names[worst]}")
