"""Calibration of the whole predictive distribution, beside what chance and heavy tails make of it.

GENCE and ENCE compare errors with predicted variances. Of few molecules, and of a Student t whose
variance comes from its tails, they are not those of a Gaussian even where nothing is wrong. So each
value has its floor: its median over errors that are drawn from the network's own Student t. A mean
over draws, or the expectation, would consist of errors that hardly any draw contains.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbical.calibration import ence, gence, gence_fiber
from orbical.training.heads import Evidence

from ..pages import Row
from ..student import student_errors, student_scale
from .answers import Truth, middle
from .limits import BINS

DRAWS = 20


def calibration(values: Tensor, found: Evidence) -> dict[str, Tensor]:
    """Measure answers against spectra `[n, points]`.

    Returns:
        `gence`, `gence_fiber` and `square`, the squared error over the variance, one number each,
        of spectra as vectors; `gence_point [points]` and `ence [points]`, of each wavenumber by
        itself.
    """
    gamma, variance = found.gamma, found.variance
    squares = (values - gamma).square()
    return {
        "gence": gence(gamma, variance, values),
        "gence_fiber": gence_fiber(gamma, variance, values, bins=BINS),
        "square": (squares.sum(1) / variance.sum(1)).mean(),
        "gence_point": gence(gamma.T[..., None], variance.T[..., None], values.T[..., None]),
        "ence": ence(gamma.T, variance.T, values.T, bins=BINS),
    }


def floors(found: Evidence) -> dict[str, Tensor]:
    """The measures of `calibration` for a network that is calibrated and answers the same."""
    drawn = student_errors(*_parameters(found), DRAWS, np.random.default_rng(0))
    every = [calibration(found.gamma + torch.from_numpy(errors), found) for errors in drawn]
    return {
        name: torch.stack([one[name] for one in every]).quantile(0.5, dim=0) for name in every[0]
    }


def calibration_scores(truth: Truth, found: Evidence) -> Row:
    """Every measure as one number, beside its floor, and how many truths the intervals hold."""
    row: Row = {}
    for end, measured in (("", calibration(truth.values, found)), ("_floor", floors(found))):
        row |= {
            f"{name}{end}": float(measured[name]) for name in ("gence", "gence_fiber", "square")
        }
        row[f"gence_point{end}"] = middle(measured["gence_point"])
        row[f"ence{end}"] = float(measured["ence"].mean())
    for share in (50, 90):
        row[f"inside_{share}"] = inside(truth, found, share / 100)
    return row


def inside(truth: Truth, found: Evidence, share: float) -> float:
    """How many truths lie inside the central interval of the predicted Student t."""
    from scipy import stats

    reach = stats.t.ppf((1 + share) / 2, (2 * found.alpha).numpy())
    error = np.abs((truth.values - found.gamma).numpy())
    return float(np.mean(error <= reach * student_scale(*_parameters(found))))


def _parameters(found: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return found.nu.numpy(), found.alpha.numpy(), found.beta.numpy()
