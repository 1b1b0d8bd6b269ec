"""Selective prediction: how many errors are avoided by not answering the least trusted inputs.

`risk_coverage` sorts samples by a score of trust and gives the error rate among the most trusted
share of them; `aurc` is the mean of that curve. `rejection` compares, for a scan, the confidence
with scores that need no probabilities: how much the answers disagree along the orbit. `along_orbit`
gives the AURC of the confidence at each position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ._arrays import ArrayLike, as_array
from .calibration import check_draws
from .errors import InputError

if TYPE_CHECKING:
    import xarray as xr

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


def risk_coverage(
    score: ArrayLike,
    correct: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> RiskCoverage:
    """Return the error rate among the most trusted samples, for every share of them.

        risk(k / N) = errors among the k samples of the largest score / k
        AURC        = mean of the risk over k = 1 .. N

    Samples of equal score share their errors, as if drawn in random order. The interval is a
    percentile bootstrap of the samples. Geifman and El-Yaniv 2017.

    Args:
        score: `[N]`, larger for predictions to be trusted more, such as the confidence.
        correct: `[N]` boolean, or 0 and 1.
        level: nominal coverage of the interval.
        resamples: number of draws for the interval.
        seed: seed of these draws.

    Returns:
        The curve with its area.

    Example:
        >>> found = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
        >>> [round(float(risk), 3) for risk in found.risk], round(found.aurc, 3)
        ([0.0, 0.0, 0.333, 0.25], 0.146)
    """
    check_draws(level, resamples)
    wrong = _errors(score, correct)
    size = len(wrong)
    steps = torch.arange(1, size + 1, dtype=torch.float64)
    risk = wrong.cumsum(0) / steps
    rng = np.random.default_rng(seed)
    drawn = torch.from_numpy(rng.multinomial(size, np.full(size, 1 / size), resamples)).double()
    seen = drawn.cumsum(1).clamp(min=1.0)
    areas = (drawn * (drawn * wrong).cumsum(1) / seen).sum(1) / size
    outside = (1 - level) / 2
    low, high = areas.quantile(torch.tensor([outside, 1 - outside], dtype=torch.float64)).tolist()
    errors = round(float(wrong.sum()))
    last = torch.arange(1, errors + 1, dtype=torch.float64)
    best = float((last / (size - errors + last)).sum() / size)
    area = float(risk.mean())
    return RiskCoverage(steps / size, risk, area, min(low, area), max(high, area), best, level)


def aurc(score: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: lower is better, 0 without errors.

    Args:
        score: `[N]`, larger for predictions to be trusted more.
        correct: `[N]` boolean, or 0 and 1.

    Returns:
        The area.

    Example:
        >>> round(aurc([0.9, 0.8, 0.7, 0.6], [True, True, False, True]), 3)
        0.146
    """
    wrong = _errors(score, correct)
    steps = torch.arange(1, len(wrong) + 1, dtype=torch.float64)
    return float((wrong.cumsum(0) / steps).mean())


def rejection(
    scan: Scan | xr.Dataset, model: str | None = None, **options: Any
) -> dict[str, RiskCoverage]:
    """Compare scores of trust for the predictions at the identity, for one model of a scan.

    `confidence` is that of the upright prediction. `agreement` is the share of pairs of elements
    whose predicted classes agree, and `stability` the invariance gap with its sign changed: both
    need the answers along the orbit, and neither labels nor calibrated probabilities. `orbit
    confidence` is the largest probability of the consensus.

    Args:
        scan: a labeled classification scan, or its `data`.
        model: the name of a model; optional if the scan has only one.
        options: `level`, `resamples` and `seed` of `risk_coverage`.

    Returns:
        A curve for each score.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> list(ob.selective.rejection(scan))
        ['confidence', 'orbit confidence', 'agreement', 'stability']
    """
    from .calibration import model_index, pairs_at_element, pairs_of
    from .nero import consistency

    _, arrays = pairs_of(scan)
    number = model_index(arrays, model)
    sure, hit = pairs_at_element(arrays, number, arrays.group.identity)
    done = ~np.isnan(sure)
    scores = {"confidence": sure}
    if "class" in arrays.dims.get("consensus", ()):
        scores["orbit confidence"] = arrays.read("consensus", model=number).max(-1)
    scores["agreement"] = 1 - consistency(scan)["pairs_per_sample"].values[number]
    scores["stability"] = -arrays.read("invariance_gap", model=number)
    return {
        name: risk_coverage(np.asarray(values, dtype=float)[done], hit[done], **options)
        for name, values in scores.items()
    }


def along_orbit(scan: Scan | xr.Dataset, **options: Any) -> xr.DataArray:
    """Return the AURC of the confidence at each position of the orbit, with intervals.

    Args:
        scan: a labeled classification scan, or its `data`.
        options: `level`, `resamples` and `seed` of `risk_coverage`.

    Returns:
        `[model, element]`, with the coordinates `low`, `high` and `calibrated`: the AURC of the
        best order of samples at this accuracy.

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
    import xarray as xr

    from .calibration import pair_blocks, pairs_of

    confidence, arrays = pairs_of(scan)
    shape = (confidence.sizes["model"], confidence.sizes["element"])
    ends = {name: np.full(shape, np.nan) for name in ("aurc", "low", "high", "best")}
    for model in range(shape[0]):
        for run, sure, hit in pair_blocks(arrays, model):
            for place, (z, y) in enumerate(zip(sure, hit, strict=True), run.start):
                if (~np.isnan(z)).any():
                    found = risk_coverage(z[~np.isnan(z)], y[~np.isnan(z)] > 0, **options)
                    for name, values in ends.items():
                        values[model, place] = getattr(found, name)
    dims = ("model", "element")
    coords = {
        name: part
        for name, part in confidence.coords.items()
        if part.dims in (("model",), ("element",))
    }
    more = {"low": "low", "high": "high", "calibrated": "best"}
    about = {key: part for key, part in confidence.attrs.items() if key != "limits"}
    return xr.DataArray(
        ends["aurc"],
        dims=dims,
        coords=coords | {name: (dims, ends[end]) for name, end in more.items()},
        name="aurc",
        attrs={
            **about,
            "metric": "aurc",
            "meaning": "area under the risk-coverage curve",
            "statistic": "",
            "higher_is_better": False,
            "band": "band: interval of the AURC; dotted: the best order of the samples",
        },
    )


def _errors(score: ArrayLike, correct: ArrayLike) -> Tensor:
    """Return errors `[N]` from the most trusted to the least; equal scores have their mean."""
    given = as_array("score", score).detach().double().cpu()
    hit = as_array("correct", correct).detach().double().cpu()
    if given.ndim != 1 or not len(given) or hit.shape != given.shape:
        raise InputError(
            "score, correct",
            "two arrays of shape [N]",
            f"{tuple(given.shape)} and {tuple(hit.shape)}",
        )
    if bool(given.isnan().any()) or bool(((hit != 0) & (hit != 1)).any()):
        raise InputError(
            "score, correct", "numbers and booleans (or 0 and 1)", "NaN or other values"
        )
    ordered, order = given.sort(descending=True, stable=True)
    _, block = torch.unique_consecutive(ordered, return_inverse=True)
    count = torch.bincount(block).double()
    errors = torch.bincount(block, 1 - hit[order])
    return (errors / count)[block]
