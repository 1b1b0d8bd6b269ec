"""What answers could be at best, and what bleed would be if all of an error were called noise."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbical.calibration import nll_optimal_bleed
from orbical.training.heads import Evidence

from ..bond_graphs import bond_hashes
from ..pages import Row
from .answers import Truth, middle, squared_error, truth_of
from .packing import TURNED, Pack
from .signals import squares_explained
from .training import scale_of

BINS = 10
ALIKE = 1e-4
"""Two spectra whose mean square difference is a smaller share of the targets' variance are one."""


def likeliest_variance(truth: Truth, found: Evidence) -> Tensor:
    """The variances `[n, points]` that would be likeliest beside a network's own centres.

    At each wavenumber the molecules are sorted by the network's own variance into ten bins; the
    likeliest variance of a bin is its mean squared error. Its mean square over molecules, summed
    over wavenumbers, is the NLL-optimal bleed: that of a network which calls all of its error
    noise.
    """
    error = squared_error(truth, found)
    order = found.variance.argsort(0)
    best = torch.empty_like(error)
    for places in order.tensor_split(BINS):
        if len(places):
            mean = error.gather(0, places).mean(0, keepdim=True)
            best.scatter_(0, places, mean.expand_as(places))
    return best


def limits(data: Pack) -> Row:
    """What no network on bonds can know, how exact labels are, and what the mean spectrum scores.

    Twins are molecules that `bond_hashes` cannot tell apart, whose bonds are one to GIN: other
    isomers for the most part, and now and then one molecule that was written in two ways.
    """
    centre, width = scale_of(data)
    values = (data.targets[:-1].double() - centre) / width
    hashes = bond_hashes({"pos": data.pos[:-1], "numbers": data.numbers[:-1]})
    _, orbit, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    mean = np.zeros((len(counts), values.shape[1]))
    np.add.at(mean, orbit, values.numpy())
    residual = (values - torch.from_numpy((mean / counts[:, None])[orbit])).square()
    twin = torch.from_numpy(counts[orbit] > 1)
    bleed = nll_optimal_bleed(values, torch.from_numpy(orbit)).total if bool(twin.any()) else 0.0
    # Two spectra lie half of their difference from their mean, whose square is a quarter of it.
    alike = twin & (residual.mean(1) < ALIKE / 4)
    seen = np.isin(orbit[data.rows("test")], orbit[data.rows("train")])
    return {
        "molecules": len(values),
        "failed": data.failed,
        **{name: _count(data, name) for name in ("train", "validation", "test")},
        "twins": int(twin.sum()),
        "twins_alike": int(alike.sum()),
        "twins_seen": int(seen.sum()),
        "bonds_bleed": float(bleed),
        "bonds_mse": float(residual.mean()),
        "turned": TURNED,
        "label_mse": float((data.noise / width.square()).mean()),
        "label_bleed": float((data.noise / width.square()).square().sum()),
        "mean_r2": _mean_answer(data),
    }


def _count(data: Pack, split: str) -> int:
    return len(data.pos[data.rows(split)])


def _mean_answer(data: Pack) -> float:
    """R^2, median over test molecules, of answering the mean training spectrum always."""
    truth = truth_of(data)
    return middle(squares_explained(truth.physical, truth.centre[None]))
