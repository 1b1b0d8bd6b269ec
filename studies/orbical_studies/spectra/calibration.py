"""Calibration of the whole predictive distribution, beside what chance and heavy tails make of it.

GENCE and ENCE compare errors with predicted variances. For few molecules, and for a Student t whose
variance comes from its tails, they are not those of a Gaussian even where nothing is wrong. So each
value has a floor: its median over errors drawn from the network's own Student t. A mean over draws,
or the expectation, would consist of errors that hardly any draw contains.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbical.calibration import ence, gence, gence_fiber
from orbical.training import Evidence

from ..student_t import student_errors, student_scale

BINS, DRAWS = 10, 20


def calibration(values: Tensor, found: Evidence) -> dict[str, Tensor]:
    """Measure predictions against spectra `[n, points]`.

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
    """Compute the measures of `calibration` for a calibrated network with the same predictions."""
    draws = student_errors(*_parameters(found), DRAWS, np.random.default_rng(0))
    every = [calibration(found.gamma + torch.from_numpy(errors), found) for errors in draws]
    return {name: torch.stack([one[name] for one in every]).quantile(0.5, 0) for name in every[0]}


def calibration_scores(values: Tensor, found: Evidence) -> dict[str, float]:
    """Return every measure as one number, beside its floor, and the coverage of two intervals."""
    row: dict[str, float] = {}
    for end, measured in (("", calibration(values, found)), ("_floor", floors(found))):
        numbers = {name: measured[name] for name in ("gence", "gence_fiber", "square")}
        numbers["gence_point"] = measured["gence_point"].quantile(0.5)
        numbers["ence"] = measured["ence"].mean()
        row |= {f"{name}{end}": float(number) for name, number in numbers.items()}
    return row | {f"inside_{share}": inside(values, found, share / 100) for share in (50, 90)}


def inside(values: Tensor, found: Evidence, share: float) -> float:
    """Compute the share of truths inside the central interval of the predicted Student t."""
    from scipy import stats

    reach = stats.t.ppf((1 + share) / 2, (2 * found.alpha).numpy())
    error = np.abs((values - found.gamma).numpy())
    return float(np.mean(error <= reach * student_scale(*_parameters(found))))


def _parameters(found: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return found.nu.numpy(), found.alpha.numpy(), found.beta.numpy()


def likeliest_variance(values: Tensor, found: Evidence) -> Tensor:
    """Compute the likeliest variances `[n, points]` beside a network's own centers.

    At each wavenumber the molecules are sorted by the network's own variance into ten bins; the
    likeliest variance of a bin is its mean squared error. Its mean square over molecules, summed
    over wavenumbers, is the NLL-optimal bleed: that of a network which calls all of its error
    noise.
    """
    error = (found.gamma - values).square()
    best = torch.empty_like(error)
    for places in found.variance.argsort(0).tensor_split(BINS):
        best.scatter_(0, places, error.gather(0, places).mean(0).expand_as(places))
    return best
