"""Selective prediction: how many errors are avoided by not answering the least trusted inputs.

`risk_coverage` sorts samples by a score of trust and gives the error rate among the most trusted
share of them; `aurc` is the mean of that curve. `rejection` compares, for a scan, the confidence
with scores that need no probabilities: how much the answers disagree along the orbit. `along_orbit`
gives the AURC of the confidence at each position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import calibration
from ._arrays import ArrayLike, as_array
from ._lazy import xr
from .errors import InputError
from .store import Scan

__all__ = ["RiskCoverage", "along_orbit", "aurc", "rejection", "risk_coverage"]


@dataclass(frozen=True, repr=False)
class RiskCoverage:
    """A risk-coverage curve and the area under it.

    Attributes:
        coverage: `[N]`, the share of samples that are answered, ascending.
        risk: `[N]`, the error rate among them.
        aurc: the mean of the risk over all coverages.
        low: lower end of the interval of the AURC.
        high: upper end.
        best: the AURC of an order that has all errors last: what no score can go below.
        level: nominal coverage of the interval.
    """

    coverage: Tensor
    risk: Tensor
    aurc: float
    low: float
    high: float
    best: float
    level: float

    def __repr__(self) -> str:
        ends = f"[{self.low:.4g}, {self.high:.4g}]"
        return f"RiskCoverage(AURC {self.aurc:.4g} {ends}, at best {self.best:.4g})"

    def risk_at(self, coverage: float) -> float:
        """Return the error rate if this share of the samples, the most trusted, is answered.

        Args:
            coverage: the share, above 0 and up to 1.

        Returns:
            The risk.
        """
        if not 0 < coverage <= 1:
            raise InputError("coverage", "a number in (0, 1]", repr(coverage))
        place = int(np.ceil(coverage * len(self.risk) - 1e-9)) - 1
        return float(self.risk[max(place, 0)])


def risk_coverage(score: ArrayLike, correct: ArrayLike, *, level: float = 0.95) -> RiskCoverage:
    """Return the error rate among the most trusted samples, for every share of them.

        risk(k / N) = errors among the k samples of the largest score / k
        AURC        = mean of the risk over k = 1 .. N
                    = mean over samples of wrong_i (1 / k_i + ... + 1 / N),   k_i the rank of i

    Samples of equal score share their errors, as if drawn in random order. The terms of the second
    form lie between 0 and the harmonic number of N, and are independent given the scores, so the
    interval is that of `orbical.calibration.bounded_mean_interval`, which holds at every number of
    samples for the expected area of these scores. In simulations it covers that of the population
    as well, also where errors are so rare that the sample has none.

    Args:
        score: `[N]`, larger for predictions to be trusted more, such as the confidence.
        correct: `[N]` boolean, or 0 and 1.
        level: nominal coverage of the interval.

    Returns:
        The curve with its area.

    See Also:
        rejection: Scores of trust of a scan.

    References:
        Geifman and El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.

    Example:
        >>> found = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
        >>> [round(float(risk), 3) for risk in found.risk], round(found.aurc, 3)
        ([0.0, 0.0, 0.333, 0.25], 0.146)
    """
    wrong, ties = _ranked_by_confidence(score, correct)
    size = len(wrong)
    steps = torch.arange(1, size + 1, dtype=torch.float64)
    reach = (1 / steps).flip(0).cumsum(0).flip(0)
    terms = wrong * _mean_by(ties, reach)
    area, low, high = calibration.bounded_mean_interval(terms, level, low=0.0, high=float(reach[0]))
    best = float((reach * (steps > size - wrong.sum())).mean())
    risk = _mean_by(ties, wrong).cumsum(0) / steps
    return RiskCoverage(
        steps / size, risk, float(area), float(low), min(1.0, float(high)), best, level
    )


def aurc(score: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: lower is better, 0 without errors.

    Args:
        score: `[N]`, larger for predictions to be trusted more.
        correct: `[N]` boolean, or 0 and 1.

    Returns:
        The area.

    See Also:
        risk_coverage: The whole curve, and an interval of the area.

    References:
        Geifman and El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.

    Example:
        >>> round(aurc([0.9, 0.8, 0.7, 0.6], [True, True, False, True]), 3)
        0.146
    """
    wrong, ties = _ranked_by_confidence(score, correct)
    steps = torch.arange(1, len(wrong) + 1, dtype=torch.float64)
    return float((_mean_by(ties, wrong).cumsum(0) / steps).mean())


def rejection(
    scan: Scan | xr.Dataset, model: str | None = None, *, level: float = 0.95
) -> dict[str, RiskCoverage]:
    """Compare scores of trust for the predictions at the identity, for one model of a scan.

    `confidence` is that of the upright prediction. `agreement` is the share of pairs of elements
    whose predicted classes agree, and `stability` the invariance gap with its sign changed: both
    need the answers along the orbit, and neither labels nor calibrated probabilities. `orbit
    confidence` is the largest probability of the consensus.

    Args:
        scan: a labeled classification scan, or its `data`.
        model: the name of a model; optional if the scan has only one.
        level: nominal coverage of the intervals.

    Returns:
        A curve for each score.

    See Also:
        risk_coverage: The curve of any score of trust.
        along_orbit: The area under the curve of the confidence at each element.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> list(ob.selective.rejection(scan))
        ['confidence', 'orbit confidence', 'agreement', 'stability']
    """
    from .nero import consistency

    _, arrays = calibration.pair_arrays_at_positions(scan)
    number = calibration.model_index(arrays, model)
    sure, hit = calibration.pairs_at_element(arrays, number, arrays.group.identity)
    done = ~np.isnan(sure)
    scores = {"confidence": sure}
    if "class" in arrays.dims.get("consensus", ()):
        scores["orbit confidence"] = arrays.read("consensus", model=number).max(-1)
    scores["agreement"] = 1 - consistency(scan)["pairs_per_sample"].values[number]
    scores["stability"] = -arrays.read("invariance_gap", model=number)
    return {
        name: risk_coverage(np.asarray(values, dtype=float)[done], hit[done], level=level)
        for name, values in scores.items()
    }


def along_orbit(scan: Scan | xr.Dataset, *, level: float = 0.95) -> xr.DataArray:
    """Return the AURC of the confidence at each position of the orbit, with intervals.

    Args:
        scan: a labeled classification scan, or its `data`.
        level: nominal coverage of the intervals.

    Returns:
        `[model, element]`, with the coordinates `low`, `high` and `calibrated`: the AURC of the
        best order of samples at this accuracy.

    See Also:
        rejection: Other scores of trust than the confidence.
        orbical.calibration.along_orbit: A measure of calibration at each element.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> found = ob.selective.along_orbit(scan)
        >>> dict(found.sizes), bool((found["calibrated"] <= found).all())
        ({'model': 1, 'element': 4}, True)
    """
    confidence, arrays = calibration.pair_arrays_at_positions(scan)
    shape = (confidence.sizes["model"], confidence.sizes["element"])
    ends = {name: np.full(shape, np.nan) for name in ("aurc", "low", "high", "best")}
    for model in range(shape[0]):
        for run, sure, hit in calibration.pair_blocks(arrays, model):
            for place, (score, right) in enumerate(zip(sure, hit, strict=True), run.start):
                known = ~np.isnan(score)
                if known.any():
                    curve = risk_coverage(score[known], right[known] > 0, level=level)
                    for name, values in ends.items():
                        values[model, place] = getattr(curve, name)
    about = confidence.attrs | {
        "metric": "aurc",
        "meaning": "area under the risk-coverage curve",
        "statistic": "",
        "higher_is_better": False,
        "band": "band: interval of the AURC; dotted: the best order of the samples",
    }
    about.pop("limits", None)
    more = {"low": ends["low"], "high": ends["high"], "calibrated": ends["best"]}
    return calibration.labeled_along_elements("aurc", confidence, ends["aurc"], more, about)


def _ranked_by_confidence(score: ArrayLike, correct: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return errors `[N]` from the most trusted to the least, and which of them are tied."""
    given = as_array("score", score).detach().double().cpu()
    hit = as_array("correct", correct).detach().double().cpu()
    if given.ndim != 1 or not len(given) or hit.shape != given.shape:
        got = f"{tuple(given.shape)} and {tuple(hit.shape)}"
        raise InputError("score, correct", "two arrays of shape [N]", got)
    if bool(given.isnan().any()) or bool(((hit != 0) & (hit != 1)).any()):
        expected = "numbers and booleans (or 0 and 1)"
        raise InputError("score, correct", expected, "NaN or other values")
    ordered, order = given.sort(descending=True, stable=True)
    _, ties = torch.unique_consecutive(ordered, return_inverse=True)
    return 1 - hit[order], ties


def _mean_by(ties: Tensor, values: Tensor) -> Tensor:
    """Return values `[N]` with the mean of their tie in place of each."""
    return (torch.bincount(ties, values) / torch.bincount(ties))[ties]
