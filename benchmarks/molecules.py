"""The cost of auditing a potential beside that of its bare forward passes.

Run: python benchmarks/molecules.py (needs the extra `chemistry`)
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import timing
import torch
from timing import Row
from torch import Tensor, nn

import orbical as ob

MOLECULES, ROTATIONS, BATCH = 100, 256, 256  # the batch that "auto" chooses
TURNS = 5  # of bare passes and a scan, one after the other, so that both meet the same machine


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
        self.register_buffer("centres", torch.linspace(0, 6, radial))

    def answers(self, pos: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Give energies `[N]` and direct forces `[N, n, 3]`."""
        there = batch["mask"][..., None]
        apart = pos[:, :, None] - pos[:, None]
        distance = (apart.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        near = torch.exp(-((distance - self.centres) ** 2) * 4)
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
    yield _row(Conservative(), "forces by differentiation", torch.inference_mode(False))
    yield _row(Potential(), "direct forces", torch.inference_mode())


def _row(net: nn.Module, kind: str, mode: Any) -> Row:
    from ase.build import molecule
    from ase.collections import g2

    found = sorted((molecule(name) for name in g2.names), key=len)[-MOLECULES:]
    inputs, _ = ob.datasets.molecules(found)
    task, group = ob.tasks.Atoms(), ob.groups.rotations3d(ROTATIONS)

    folder = tempfile.TemporaryDirectory()
    outs = (Path(folder.name) / f"{turn}.zarr" for turn in itertools.count())

    def scan() -> None:
        ob.scan(net, inputs, group=group, task=task, out=next(outs), progress=False)

    single = {key: one.float() if key in ("pos", "cell") else one for key, one in inputs.items()}
    flat = {key: one.flatten(0, 1) for key, one in task.input.apply(group, single).items()}
    batches = [
        {key: one[start : start + BATCH] for key, one in flat.items()}
        for start in range(0, MOLECULES * ROTATIONS, BATCH)
    ]

    def bare() -> None:
        with mode:
            for batch in batches:
                net(batch | {"pos": batch["pos"].detach()})

    net.eval()
    with folder:
        theirs, ours = timing.in_turns(bare, scan, TURNS)
    work = f"audit of {MOLECULES} molecules x {ROTATIONS} rotations, {kind}"
    return timing.at_most(work, ours, "bare forward", theirs, 1.10)


if __name__ == "__main__":
    timing.run([audit], __doc__ or "")
