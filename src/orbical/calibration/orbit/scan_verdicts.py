"""Verdicts on a limit: pass, fail, or inconclusive where there are too few samples to tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import check_name
from ...store import Scan, opened_scan
from ..intervals.cautions import first_interval_caution
from ..intervals.levels import checked_level
from ..registry import MEASURES, RESAMPLES, Draws, Measure, MeasureLike
from ..verdicts import Verdict, judge, measure_limit
from .labeled_results import CAUTION
from .positions import along_orbit, equal_width_options
from .regression_orbit import holds_regression_calibration
from .whole_orbit import PLACES, mean_over_orbit, pooled_over_orbit

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["verdict"]


def verdict(
    scan: Scan | xr.Dataset,
    measure: MeasureLike = "ece",
    *,
    maximum: float | None = None,
    minimum: float | None = None,
    place: str = "worst",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: Any,
) -> dict[str, Verdict]:
    """Judge whether each model of a scan stays within a limit of a measure.

    At the worst of K positions the interval spans the largest lower and the largest upper end (for
    a minimum, the smallest) of intervals of level `1 - (1 - level) / K` at each: it contains the
    worst of the population's values at the level (Bonferroni). At the identity, in the mean and in
    the pool there is one value, and nothing to correct for.

    Args:
        scan: A labeled scan of classification, or of regression with uncertainty; or its `data`.
        measure: The name of a measure, an entry of `MEASURES`, or a function; see `along_orbit`.
        maximum: The largest value allowed; or
        minimum: the smallest. Pass one of the two.
        place: Where along the orbit, a key of `PLACES`: "worst", "mean", "identity" or "pooled".
            Pooled measures other than an ECE of equal width have no interval.
        level: Nominal coverage.
        resamples: Number of draws of each interval.
        seed: Seed of the draws.
        options: Options of the measure, such as `bins`.

    Returns:
        The verdict on each model, by its name.

    Raises:
        InputError: If not exactly one of `maximum` and `minimum` is given, or the measure cannot
            have such a value.

    Example:
        >>> import torch
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> found = verdict(scan, "ece", maximum=0.001, resamples=50)
        >>> [one.outcome != "pass" for one in found.values()]
        [True]
    """
    limits: dict[str, Any] = {"maximum": maximum, "minimum": minimum}
    entry = MEASURES.get(measure) if isinstance(measure, str) else measure
    for name, limit in limits.items():
        if limit is not None:
            measure_limit(name, limit, entry.bounds if isinstance(entry, Measure) else None)
    check_name("place", place, PLACES)
    checked_level(level)
    draws = Draws(level=level, resamples=resamples, seed=seed)
    positions = 1
    if place == "pooled":
        binned = (
            None if holds_regression_calibration(scan) else equal_width_options(measure, options)
        )
        known = binned is not None and binned["norm"] == "l1"
        found = pooled_over_orbit(scan, measure, interval=known, level=level, seed=seed, **options)
    elif place == "mean":
        found = mean_over_orbit(scan, measure, interval=True, **draws, **options)
    else:
        data, group = opened_scan(scan)
        positions = data.sizes["element"] if place == "worst" else 1
        draws["level"] = 1 - (1 - level) / positions
        found = along_orbit(scan, measure, interval=True, **draws, **options)
        found = found if place == "worst" else found.isel(element=group.identity)
    judged = {}
    for name in found["model"].values:
        one = found.sel(model=name)
        ends = [one[end] if end in one.coords else one * math.nan for end in ("low", "high")]
        value, low, high = (
            float(part.min() if minimum is not None else part.max()) for part in (one, *ends)
        )
        said = first_interval_caution(one[CAUTION].values) if CAUTION in one.coords else ""
        kept: dict[str, Any] = {"level": level, "positions": positions, "caution": said}
        judged[str(name)] = judge(value, low, high, **limits, **kept)
    return judged
