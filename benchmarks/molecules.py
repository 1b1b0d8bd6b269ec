"""The cost of auditing a potential beside that of its bare forward passes.

Run: python benchmarks/molecules.py (needs the extra `chemistry`)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import timing
import torch
from passes import beside_bare_passes
from timing import Row
from torch import Tensor, nn

import orbical as ob

MOLECULES, ROTATIONS = 100, 256


class Potential(nn.Module):
    """Two rounds of messages over all pairs, 64 channels; energy, and forces along the pairs."""

    def __init__(self, channels: int = 64, radial: int = 16) -> None:
        super().__init__()
        self.kind = nn.Embedding(119, channels)
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(radial, channels), nn.SiLU(), nn.Linear(channels, channels))
            for _ in range(2)
        )
        self.updates = nn.ModuleList(nn.Linear(channels, channels) for _ in range(2))
        self.energy, self.push = nn.Linear(channels, 1), nn.Linear(channels, 1)
        self.register_buffer("centers", torch.linspace(0, 6, radial))

    def answers(self, pos: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Give energies `[N]` and direct forces `[N, n, 3]`."""
        there = batch["mask"][..., None]
        apart = pos[:, :, None] - pos[:, None]
        distance = (apart.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        near = torch.exp(-((distance - self.centers) ** 2) * 4)
        pair = (there[:, :, None] & there[:, None]).to(pos)
        state = self.kind(batch["numbers"])
        for make, update in zip(self.filters, self.updates, strict=True):
            message = make(near) * pair * state[:, None]
            state = state + nn.functional.silu(update(message.sum(2)))
        forces = (self.push(message) * apart / distance).sum(2)
        return (self.energy(state) * there).sum((1, 2)), forces

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Answer a batch `{pos, numbers, mask}`."""
        energy, forces = self.answers(batch["pos"], batch)
        return {"energy": energy, "forces": forces}


class Conservative(Potential):
    """The same energy, with its slope as forces."""

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Answer a batch, and take the derivative."""
        pos = batch["pos"].requires_grad_()
        energy, _ = self.answers(pos, batch)
        (slope,) = torch.autograd.grad(energy.sum(), pos)
        return {"energy": energy, "forces": -slope}


def audit() -> Iterator[Row]:
    """Scan 100 molecules of ASE's G2 set over 256 rotations onto disk, against bare passes."""
    timing.keep_freed_memory()
    yield _row(Conservative(), "forces by differentiation")
    yield _row(Potential(), "direct forces")


def _row(net: nn.Module, kind: str) -> Row:
    from ase.build import molecule
    from ase.collections import g2

    found = sorted((molecule(name) for name in g2.names), key=len)[-MOLECULES:]
    inputs, _ = ob.datasets.molecules(found)
    task, group = ob.tasks.Atoms(), ob.groups.rotations3d(ROTATIONS)

    def scan(asked: nn.Module, out: Path) -> None:
        ob.scan(asked, inputs, group=group, task=task, out=out, progress=False)

    ours, theirs = beside_bare_passes(net, scan)
    work = f"audit of {MOLECULES} molecules x {ROTATIONS} rotations, {kind}"
    return timing.at_most(work, ours, "bare forward", theirs, 1.10)


if __name__ == "__main__":
    timing.run([audit], __doc__ or "")
