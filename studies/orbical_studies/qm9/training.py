"""One training: a network on QM9 by evidential likelihood, and its answers to the test set."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbical.losses import nig_nll, nig_regularizer

from ..framework import Results
from ..framework.training import device
from ..framework.training import train as train_all
from ..networks import parameters_of
from .network import Model, Shelf, answers, shelf
from .packing import Pack, training_scale, unpack
from .settings import COMPARED, LIKELIHOOD, PENALTIES, PROPERTIES, Settings, Trial, trials

RATE, WARM_UP, LARGEST_SLOPE = 2e-3, 500, 30.0
START = 0.2
"""The share of the steps in which the center is learned by squared error."""

LINEAR_FROM = 3.0
"""From here on errors count linearly in the start: tiny molecules lie hundreds of widths off."""

USUAL = 22
"""Most molecules, 93 of 100, have at most this many atoms."""

SEEN = 10_000
"""Training molecules on which a network is measured once more at the end."""


def train(settings: Settings, results: Results) -> None:
    """Train every network that is not finished yet."""
    setup = partial(unpack, results.work, device())
    train_all(trials(settings), settings, results.work, setup, run)


def run(data: Pack, trial: Trial) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Train one network, and evaluate it.

    Returns:
        Scores, and arrays: `test [4, n, targets]`, gamma, nu, alpha and beta of the test molecules
        in scaled units; `turned`, the same after a random rotation of each molecule, of a network
        that notices it; `curve [epochs, 3, targets]`, after each epoch likelihood and mean absolute
        error on the validation molecules, and the training loss.
    """
    session = Session(data, trial)
    session.warm()
    prepared = time.time()
    curve = torch.zeros(trial.epochs, 3, len(trial.properties), dtype=torch.float64)
    curve = curve.to(data.targets.device)
    for epoch in range(trial.epochs):
        losses = [session.step(*batch) for batch in session.batches()]
        curve[epoch, :2] = session.validation()
        curve[epoch, 2] = torch.stack(losses).mean()
    test = answers(session.model.eval(), session.shelf("test"))
    seen = session.shelf("train", SEEN)
    error = (answers(session.model, seen).gamma - seen.targets).abs().mean(0)
    turned = answers(session.model, session.shelf("test", turned=True))
    scores = {
        "parameters": parameters_of(session.model),
        "backbone": parameters_of(session.model.backbone),
        "train": len(session.train),
        "steps": session.done,
        "seen_mae": error.tolist(),
        "defect": (turned.gamma - test.gamma).abs().amax(0).tolist(),
        "seconds": time.time() - prepared,
    }
    found = {"test": torch.stack(test), "curve": curve}
    if trial.network not in COMPARED:
        found["turned"] = torch.stack(turned)
    return scores, {name: values.cpu().numpy() for name, values in found.items()}


class Session:
    """A model with its data on the device: nothing in a step waits for the device."""

    def __init__(self, data: Pack, trial: Trial) -> None:
        self.data, self.trial = data, trial
        self.columns = [PROPERTIES.index(name) for name in trial.properties]
        self.scale = training_scale(data.targets[data.rows("train")])
        where = data.targets.device
        torch.manual_seed(trial.seed)
        self.model = Model(trial.network, len(self.columns)).to(where)
        self.draw = torch.Generator(where).manual_seed(trial.seed)
        self.order = np.random.default_rng(trial.seed)
        fused = where.type == "cuda"
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE, fused=fused)
        self.train = self.shelf("train")
        self.checked = self.shelf("validation")
        large = self.train.sizes > USUAL
        self.large, self.others = (places.nonzero()[:, 0].to(where) for places in (large, ~large))
        self.done = 0

    def shelf(self, split: str, count: int | None = None, turned: bool = False) -> Shelf:
        """Return the molecules of a split with scaled targets, as stored or rotated at random."""
        rows = self.data.rows(split, count)
        pos = self.data.pos[rows]
        if turned:
            pos = pos @ rotations(len(pos)).to(pos)
        scaled = (self.data.targets[rows] - self.scale.center) / self.scale.width
        chosen = scaled[:, self.columns]
        return shelf(self.model, pos, self.data.numbers[rows], chosen)

    @property
    def parts(self) -> tuple[int, int]:
        """How many molecules of an epoch go into batches of all sizes, and of usual ones."""
        wide = min(len(self.train), 2 * len(self.large))
        return wide, len(self.train) - wide

    @property
    def steps_an_epoch(self) -> int:
        """Batches an epoch; what does not fill one is left for another epoch."""
        return max(1, sum(part // self.trial.batch for part in self.parts))

    def batches(self) -> Iterator[tuple[Tensor, int]]:
        """Draw the batches of an epoch in any order: molecules, and the atoms they are padded to.

        A large molecule makes all of its batch large, so the few large ones go together, with as
        many of the others. Batches of one size alone would need less padding, but size decides
        most properties, and networks learn three times slower from them.
        """
        wide, _ = self.parts
        large, others = (
            part[torch.randperm(len(part), generator=self.draw, device=part.device)]
            for part in (self.large, self.others)
        )
        mixed = torch.cat([large, others[: wide - len(large)]])
        mixed = mixed[torch.randperm(wide, generator=self.draw, device=mixed.device)]
        most = int(self.train.sizes.max())
        drawn = [(part, most) for part in mixed.split(self.trial.batch)]
        drawn += [(part, USUAL) for part in others[wide - len(large) :].split(self.trial.batch)]
        full = [batch for batch in drawn if len(batch[0]) == self.trial.batch] or drawn
        for place in self.order.permutation(len(full)):
            yield full[place]

    def rate(self) -> float:
        """The learning rate: a short rise, then half a cosine down to 0 at the last step."""
        steps = max(1, self.trial.epochs * self.steps_an_epoch)
        rise = min(WARM_UP, steps // 10 + 1)
        share = min(1.0, self.done / steps)
        return RATE * min(1.0, (self.done + 1) / rise) * 0.5 * (1 + math.cos(math.pi * share))

    def step(self, places: Tensor, most: int) -> Tensor:
        """Take one step of Adam; return the loss."""
        self.optimizer.param_groups[0]["lr"] = self.rate()
        loss = self.loss(places, most)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_SLOPE)
        self.optimizer.step()
        self.done += 1
        return loss.detach()

    @property
    def starting(self) -> bool:
        """Whether the center is still learned by squared error."""
        steps = self.trial.epochs * self.steps_an_epoch
        return self.trial.loss == LIKELIHOOD and self.done < START * steps

    def loss(self, places: Tensor, most: int) -> Tensor:
        """The loss of some molecules, in double precision.

        At the start the center is learned by squared error and the rest by likelihood about it,
        then all by likelihood. A Student t lets go of what it cannot reach: begun with likelihood
        alone, total energies stay at a fit of most molecules that gives up on the others.

        The slope of a likelihood grows as one over the predicted deviation, and a total energy is
        known a thousand times better than a dipole, in units of their own spread: alone it would
        steer the backbone they share. So the slopes of each property are weighted by its
        deviation. Its heads, which it shares with none, learn as before: Adam takes steps of the
        same size whatever the weight.
        """
        graph, target = self.train.take(places, most)
        found = torch.stack(self.model.on_graph(graph)).double()
        weighted = found.clone()
        gamma, nu, alpha, beta = weighted.unbind(0)
        scale = (beta * (1 + nu) / (alpha * nu)).detach().sqrt().mean(0)
        weighted.register_hook(lambda slope: slope * scale)
        if self.starting:
            square = functional.huber_loss(found[0], target, delta=LINEAR_FROM, reduction="none")
            return nig_nll(gamma.detach(), nu, alpha, beta, target) + square.sum(1).mean()
        loss = nig_nll(gamma, nu, alpha, beta, target)
        if weight := PENALTIES.get(self.trial.loss):
            loss = loss + weight * nig_regularizer(gamma, nu, alpha, target)
        return loss

    def warm(self) -> None:
        """Run forwards and backwards a few times; weights stay as they are."""
        for batch in list(self.batches())[:10]:
            self.loss(*batch).backward()
        self.optimizer.zero_grad(set_to_none=True)

    def validation(self) -> Tensor:
        """Mean likelihood and mean absolute error of each property, `[2, targets]`."""
        found = torch.stack(answers(self.model, self.checked)).double()
        terms = [
            nig_nll(*found[:, :, place].unbind(0), self.checked.targets[:, place])  # type: ignore[call-arg]
            for place in range(len(self.columns))
        ]
        return torch.stack([torch.stack(terms), (found[0] - self.checked.targets).abs().mean(0)])


def rotations(count: int) -> Tensor:
    """Draw rotations `[count, 3, 3]` evenly, always the same ones.

    >>> turn = rotations(4)
    >>> torch.allclose(turn @ turn.mT, torch.eye(3).double()), torch.det(turn).round().tolist()
    (True, [1.0, 1.0, 1.0, 1.0])
    """
    draw = torch.Generator().manual_seed(0)
    frame, corner = torch.linalg.qr(torch.randn(count, 3, 3, generator=draw, dtype=torch.float64))
    frame = frame * corner.diagonal(dim1=1, dim2=2).sign()[:, None]
    return frame * torch.det(frame)[:, None, None]
