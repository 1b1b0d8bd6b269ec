"""Train networks on spectra with evidential outputs, and keep their test predictions."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.groups import rotations3d
from orbical.losses import nig_nll, nig_regularizer
from orbical.training import Evidence

from ..framework import Results
from ..framework import training as framework
from ..networks import parameters_of
from .network import SpectrumNet
from .packing import FILE, Pack, unpack
from .settings import Settings, Trial, trials

RATE, DECAY, WARM_UP, LARGEST_GRADIENT = 1e-3, 1e-2, 200, 1.0
BATCH, TOGETHER = 256, 250
STEP = 1 / 1024
"""Stored predictions are whole multiples of this: gamma, and the logarithms of the others."""


def train(settings: Settings, results: Results) -> None:
    """Train every network that is not trained yet."""
    setup = partial(unpack, results.work / FILE, framework.device())
    framework.train(trials(settings), settings, results.work, setup, run)


def run(data: Pack, trial: Trial) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Train one network, and predict with the weights of the best validation likelihood.

    Returns:
        Scores, and arrays: `answers [4, n + 1, points]`, what `stored` makes of the predictions for
        the test molecules and for the paper's molecule after them; `curve [epochs done, 3]`:
        training loss, validation likelihood and validation squared error.
    """
    session = Session(data, trial)
    start = time.time()
    curve: list[tuple[float, float, float]] = []
    best, kept, best_epoch = math.inf, session.state(), 0
    for epoch in range(session.epochs):
        loss = session.epoch()
        likelihood, square = session.judged("validation")
        curve.append((loss, likelihood, square))
        if likelihood < best:
            best, kept, best_epoch = likelihood, session.state(), epoch + 1
        if session.share() >= 1:
            break
    scores: dict[str, Any] = {
        "parameters": parameters_of(session.model),
        "backbone": parameters_of(session.model.backbone),
        "train": session.count,
        "steps": session.done,
        "best_epoch": best_epoch,
        "validation_nll": best,
        "validation_last": likelihood,
        "seconds": time.time() - start,
    }
    session.model.load_state_dict(kept)
    scores["train_nll"], scores["train_mse"] = session.judged("train")
    scores["defect"] = session.defect()
    return scores, {"curve": np.array(curve), "answers": stored(session.tested())}


def stored(answers: np.ndarray) -> np.ndarray:
    """Round gamma, and the logarithms of nu, alpha - 1 and beta, to multiples of `STEP`.

    >>> answers = np.array([0.5, 2.0, 1.1, 1e-3]).reshape(4, 1, 1)
    >>> bool(np.allclose(restored(stored(answers)), answers, rtol=STEP))
    True
    """
    gamma, nu, alpha, beta = answers.astype(np.float64)
    whole = np.stack([gamma, np.log(nu), np.log(alpha - 1), np.log(beta)]) / STEP
    return np.clip(whole.round(), -(2**15), 2**15 - 1).astype(np.int16)


def restored(whole: np.ndarray) -> np.ndarray:
    """Undo `stored`, up to rounding."""
    gamma, nu, alpha, beta = STEP * whole.astype(np.float64)
    return np.stack([gamma, np.exp(nu), 1 + np.exp(alpha), np.exp(beta)])


class Session:
    """A model with its data on the device."""

    def __init__(self, data: Pack, trial: Trial) -> None:
        self.data, self.trial, self.device = data, trial, data.pos.device
        center, width = data.scale()
        self.targets = ((data.targets.double() - center) / width).float()
        torch.manual_seed(trial.seed)
        self.model = SpectrumNet(trial.network, data.spectra.shape[1]).to(self.device)
        self.draw = torch.Generator().manual_seed(trial.seed)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=RATE, weight_decay=DECAY, fused=self.device.type == "cuda"
        )
        means = [*self.model.backbone.parameters(), *self.model.decoders[0].parameters()]
        others = [*self.model.decoders[1:].parameters()]
        self.groups = [means, others] if trial.how.apart else [means + others]
        self.epochs = trial.how.longer * trial.epochs
        self.seconds = trial.how.longer * trial.seconds
        every = torch.arange(len(data.pos))[data.rows("train")]
        self.train = every[: len(every) // trial.parts]
        self.count = len(self.train)
        self.steps = self.epochs * math.ceil(self.count * trial.parts / BATCH)
        self.done, self.started = 0, time.time()

    def share(self) -> float:
        """Return how much of the training is over: of its steps or its time, whichever is more."""
        return max(self.done / self.steps, (time.time() - self.started) / self.seconds)

    def rate(self) -> float:
        """Return the learning rate: a short rise, then half a cosine down to 0."""
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
                torch.nn.utils.clip_grad_norm_(group, LARGEST_GRADIENT)
            self.optimizer.step()
            self.done += 1
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    def loss(self, rows: Tensor) -> Tensor:
        """Compute the loss of some molecules, averaged over wavenumbers.

        Likelihood and penalty; where means are learned by squares, also their squared error, the
        two with gradients of their own.
        """
        batch, target, how = self.batch(rows), self.targets[rows], self.trial.how
        gamma, found = self.model.parted(batch, how.squares, how.apart)
        loss = self.evidential(found, target)
        return loss + (gamma - target).square().mean() if how.squares else loss

    def evidential(self, found: Evidence, target: Tensor) -> Tensor:
        """Compute the negative log-likelihood plus the penalty."""
        penalty = nig_regularizer(found.gamma, found.nu, found.alpha, target)
        return (nig_nll(*found, target) + self.trial.penalty * penalty) / target.shape[1]

    def batch(self, rows: Tensor | slice) -> dict[str, Tensor]:
        """Return some molecules, without padding that none of them needs."""
        numbers = self.data.numbers[rows]
        most = int((numbers > 0).sum(1).max())
        return {"pos": self.data.pos[rows][:, :most], "numbers": numbers[:, :most]}

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the weights."""
        return {name: values.clone() for name, values in self.model.state_dict().items()}

    def rows(self, split: str) -> Tensor:
        """Return the molecules of a split; for training those that it learns from."""
        every = torch.arange(len(self.data.pos))
        return (self.train if split == "train" else every[self.data.rows(split)]).to(self.device)

    @torch.no_grad()
    def predict(self, split: str) -> Tensor:
        """Predict gamma, nu, alpha and beta of a split, `[4, n, points]`."""
        self.model.eval()
        parts = self.rows(split).split(TOGETHER)
        return torch.cat([torch.stack(self.model(self.batch(some))) for some in parts], 1)

    def tested(self) -> np.ndarray:
        """Predict the test molecules, and the paper's molecule after them."""
        return torch.cat([self.predict(split) for split in ("test", "example")], 1).cpu().numpy()

    def judged(self, split: str) -> tuple[float, float]:
        """Return NLL and squared error, means over molecules and wavenumbers."""
        gamma, nu, alpha, beta = self.predict(split).double()
        targets = self.targets[self.rows(split)].double()
        likelihood = nig_nll(gamma, nu, alpha, beta, targets) / targets.shape[1]
        return float(likelihood), float((gamma - targets).square().mean())

    @torch.no_grad()
    def defect(self) -> float:
        """Return the largest change under a rotation, relative to the largest prediction."""
        batch = self.batch(slice(0, 64))
        turn = torch.as_tensor(rotations3d(2).parts["space"][1, :3, :3]).to(batch["pos"])
        here = self.model(batch).gamma
        there = self.model(batch | {"pos": batch["pos"] @ turn.T}).gamma
        return float((here - there).abs().max() / here.abs().max())
