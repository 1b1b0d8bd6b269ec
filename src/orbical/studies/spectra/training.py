"""One training: a network on spectra by evidential likelihood, and its answers to the test set."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor

from orbical.groups import rotations3d
from orbical.losses import nig_nll, nig_regulariser

from .network import SpectrumNet
from .packing import Pack
from .settings import BATCH, Trial

RATE = 1e-3
DECAY = 1e-2
WARM_UP = 200
LARGEST_SLOPE = 1.0
TOGETHER = 250
"""Molecules that are answered at once."""


def scale_of(data: Pack) -> tuple[Tensor, Tensor]:
    """Where training targets lie and how wide: the mean `[points]`, and one width for all points.

    The width is the root of the variance, averaged over wavenumbers. One unit for all of them keeps
    a strong line strong: z-scored by itself, a wavenumber where almost no molecule absorbs would
    weigh as much in a squared norm as one where all do.
    """
    train = data.targets[data.rows("train")].double()
    return train.mean(0), train.var(0, correction=0).mean().sqrt()


def run(data: Pack, trial: Trial) -> dict[str, Any]:
    """Train one network, take it where validation likelihood was best, and let it answer.

    Returns:
        `scores`: words and numbers; `test [4, n + 1, points]`: gamma, nu, alpha and beta in
        scaled units, of the test molecules and of the paper's molecule after them; `curve
        [epochs done, 2]`: training loss and validation likelihood.
    """
    session = Session(data, trial)
    start = time.time()
    curve: list[tuple[float, float]] = []
    best, kept, best_epoch = float("inf"), session.state(), 0
    for epoch in range(trial.epochs):
        loss = session.epoch()
        checked = session.validation()
        curve.append((loss, checked))
        if checked < best:
            best, kept, best_epoch = checked, session.state(), epoch + 1
        if session.share() >= 1:
            break
    seconds = time.time() - start
    session.model.load_state_dict(kept)
    found = [session.answers(split) for split in ("test", "example")]
    return {
        "scores": {
            "parameters": sum(p.numel() for p in session.model.parameters()),
            "backbone": sum(p.numel() for p in session.model.backbone.parameters()),
            "train": session.count,
            "steps": session.done,
            "best_epoch": best_epoch,
            "validation_nll": best,
            "train_nll": session.likelihood("train"),
            "defect": session.defect(),
            "seconds": seconds,
        },
        "test": torch.cat(found, 1).cpu().numpy(),
        "curve": torch.tensor(curve).numpy(),
    }


class Session:
    """A model with its data on the device."""

    def __init__(self, data: Pack, trial: Trial) -> None:
        self.data, self.trial = data, trial
        self.device = data.pos.device
        centre, width = scale_of(data)
        self.targets = ((data.targets.double() - centre) / width).float()
        torch.manual_seed(trial.seed)
        self.model = SpectrumNet(trial.network, data.spectra.shape[1]).to(self.device)
        self.draw = torch.Generator().manual_seed(trial.seed)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, weight_decay=DECAY)
        self.train = torch.arange(len(data.pos))[data.rows("train")]
        self.count = len(self.train)
        self.steps = trial.epochs * math.ceil(self.count / BATCH)
        self.done = 0
        self.started = time.time()

    def share(self) -> float:
        """How much of the training is over: of its steps or of its time, whichever is more."""
        return max(self.done / self.steps, (time.time() - self.started) / self.trial.seconds)

    def rate(self) -> float:
        """The learning rate: a short rise, then half a cosine down to 0."""
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, self.share())))
        rise = min(WARM_UP, self.steps // 10 + 1)
        return RATE * min(1.0, (self.done + 1) / rise) * fall

    def epoch(self) -> float:
        """Take a step for each batch; return the mean loss."""
        self.model.train()
        losses = []
        order = self.train[torch.randperm(self.count, generator=self.draw)]
        for rows in order.to(self.device).split(BATCH):
            self.optimiser.param_groups[0]["lr"] = self.rate()
            loss = self.loss(rows)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_SLOPE)
            self.optimiser.step()
            self.done += 1
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    def loss(self, rows: Tensor) -> Tensor:
        """Likelihood, and the penalty where there is one; for one wavenumber, in the mean."""
        found = self.model(self.batch(rows))
        loss = nig_nll(found.gamma, found.nu, found.alpha, found.beta, self.targets[rows])
        if self.trial.penalty:
            penalty = nig_regulariser(found.gamma, found.nu, found.alpha, self.targets[rows])
            loss = loss + self.trial.penalty * penalty
        return loss / self.targets.shape[1]

    def batch(self, rows: Tensor | slice) -> dict[str, Tensor]:
        """Some molecules, without places that none of them fills."""
        numbers = self.data.numbers[rows]
        most = int((numbers > 0).sum(1).max())
        return {"pos": self.data.pos[rows][:, :most], "numbers": numbers[:, :most]}

    def state(self) -> dict[str, Tensor]:
        """A copy of the weights."""
        return {name: values.clone() for name, values in self.model.state_dict().items()}

    @torch.no_grad()
    def answers(self, split: str) -> Tensor:
        """Gamma, nu, alpha and beta of a split, `[4, n, points]`."""
        self.model.eval()
        rows = torch.arange(len(self.data.pos), device=self.device)[self.data.rows(split)]
        parts = [torch.stack(self.model(self.batch(some))) for some in rows.split(TOGETHER)]
        return torch.cat(parts, 1)

    def likelihood(self, split: str) -> float:
        """Negative log-likelihood of a split, in the mean over molecules and wavenumbers."""
        gamma, nu, alpha, beta = self.answers(split).double()
        targets = self.targets[self.data.rows(split)].double()
        return float(nig_nll(gamma, nu, alpha, beta, targets)) / targets.shape[1]

    def validation(self) -> float:
        """Mean negative log-likelihood of the validation molecules."""
        return self.likelihood("validation")

    @torch.no_grad()
    def defect(self) -> float:
        """How far a turned molecule's answer is from its own, beside the answers' size."""
        batch = self.batch(slice(0, 64))
        turn = torch.as_tensor(rotations3d(2).parts["space"][1, :3, :3]).to(batch["pos"])
        here = self.model(batch).gamma
        there = self.model(batch | {"pos": batch["pos"] @ turn.T}).gamma
        return float((here - there).abs().max() / here.abs().max())
