"""One training: a network on spectra with evidential outputs, and its answers to the test set."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.groups import rotations3d
from orbical.losses import nig_nll, nig_regularizer
from orbical.training.heads import Evidence

from .network import SpectrumNet
from .packing import Pack
from .settings import BATCH, BEST, LAST, SQUARES, Trial

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
    """Train one network, and let it answer with the weights of two places of the training.

    Returns:
        `scores`: words and numbers; `test`: for the place of the best validation likelihood and
        for the end, gamma, nu, alpha and beta `[4, n + 1, points]` in scaled units, of the test
        molecules and of the paper's molecule after them; `curve [epochs done, 3]`: training loss,
        validation likelihood and validation squared error.
    """
    session = Session(data, trial)
    start = time.time()
    curve: list[tuple[float, float, float]] = []
    best, kept, best_epoch = float("inf"), session.state(), 0
    for epoch in range(trial.epochs):
        loss = session.epoch()
        likelihood, square = session.judged("validation")
        curve.append((loss, likelihood, square))
        if likelihood < best:
            best, kept, best_epoch = likelihood, session.state(), epoch + 1
        if session.share() >= 1:
            break
    seconds = time.time() - start
    scores: dict[str, Any] = {
        "parameters": sum(p.numel() for p in session.model.parameters()),
        "backbone": sum(p.numel() for p in session.model.backbone.parameters()),
        "train": session.count,
        "steps": session.done,
        "best_epoch": best_epoch,
        "validation_nll": best,
        "seconds": seconds,
    }
    test = {LAST: session.tested()}
    scores["train_nll_last"], scores["train_mse_last"] = session.judged("train")
    session.model.load_state_dict(kept)
    test[BEST] = session.tested()
    scores["train_nll"], scores["train_mse"] = session.judged("train")
    scores["defect"] = session.defect()
    return {"scores": scores, "test": test, "curve": torch.tensor(curve).numpy()}


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
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=RATE, weight_decay=DECAY, fused=self.device.type == "cuda"
        )
        means = [*self.model.backbone.parameters(), *self.model.decoders[0].parameters()]
        others = [*self.model.decoders[1:].parameters()]
        self.groups = [means, others] if trial.means == SQUARES else [means + others]
        every = torch.arange(len(data.pos))[data.rows("train")]
        self.train = every[: len(every) // trial.parts]
        self.count = len(self.train)
        self.steps = trial.epochs * math.ceil(self.count * trial.parts / BATCH)
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
        """Take as many steps as there are batches of all molecules; return the mean loss."""
        self.model.train()
        losses = []
        drawn = [torch.randperm(self.count, generator=self.draw) for _ in range(self.trial.parts)]
        order = self.train[torch.cat(drawn)]
        for rows in order.to(self.device).split(BATCH):
            self.optimizer.param_groups[0]["lr"] = self.rate()
            loss = self.loss(rows)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            for group in self.groups:
                torch.nn.utils.clip_grad_norm_(group, LARGEST_SLOPE)
            self.optimizer.step()
            self.done += 1
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    def loss(self, rows: Tensor) -> Tensor:
        """The loss of some molecules, for one wavenumber, in the mean.

        Likelihood and penalty; where means are learnt by squares, their squared error beside it,
        the two of them with slopes of their own.
        """
        batch, target = self.batch(rows), self.targets[rows]
        if self.trial.means == SQUARES:
            gamma, found = self.model.apart(batch)
            return (gamma - target).square().mean() + self.evidential(found, target)
        return self.evidential(self.model(batch), target)

    def evidential(self, found: Evidence, target: Tensor) -> Tensor:
        """Likelihood, and the penalty where there is one."""
        loss = nig_nll(found.gamma, found.nu, found.alpha, found.beta, target)
        if self.trial.penalty:
            penalty = nig_regularizer(found.gamma, found.nu, found.alpha, target)
            loss = loss + self.trial.penalty * penalty
        return loss / target.shape[1]

    def batch(self, rows: Tensor | slice) -> dict[str, Tensor]:
        """Some molecules, without places that none of them fills."""
        numbers = self.data.numbers[rows]
        most = int((numbers > 0).sum(1).max())
        return {"pos": self.data.pos[rows][:, :most], "numbers": numbers[:, :most]}

    def state(self) -> dict[str, Tensor]:
        """A copy of the weights."""
        return {name: values.clone() for name, values in self.model.state_dict().items()}

    def rows(self, split: str) -> Tensor:
        """The molecules of a split; for training those that it learns from."""
        every = torch.arange(len(self.data.pos))
        return (self.train if split == "train" else every[self.data.rows(split)]).to(self.device)

    @torch.no_grad()
    def answers(self, split: str) -> Tensor:
        """Gamma, nu, alpha and beta of a split, `[4, n, points]`."""
        self.model.eval()
        parts = self.rows(split).split(TOGETHER)
        return torch.cat([torch.stack(self.model(self.batch(some))) for some in parts], 1)

    def tested(self) -> np.ndarray:
        """Answers to the test molecules, and to the paper's molecule after them."""
        return torch.cat([self.answers(split) for split in ("test", "example")], 1).cpu().numpy()

    def judged(self, split: str) -> tuple[float, float]:
        """Negative log-likelihood and squared error, means over molecules and wavenumbers."""
        gamma, nu, alpha, beta = self.answers(split).double()
        targets = self.targets[self.rows(split)].double()
        likelihood = nig_nll(gamma, nu, alpha, beta, targets) / targets.shape[1]
        return float(likelihood), float((gamma - targets).square().mean())

    @torch.no_grad()
    def defect(self) -> float:
        """How far a turned molecule's answer is from its own, beside the answers' size."""
        batch = self.batch(slice(0, 64))
        turn = torch.as_tensor(rotations3d(2).parts["space"][1, :3, :3]).to(batch["pos"])
        here = self.model(batch).gamma
        there = self.model(batch | {"pos": batch["pos"] @ turn.T}).gamma
        return float((here - there).abs().max() / here.abs().max())
