"""Scores of classifiers at each element: kappa of ordered classes, and rates of two classes."""

from __future__ import annotations

import numpy as np

from .._lazy import xr
from ..calibration import bounded_mean_interval, checked_level
from ..errors import InputError, whole_number
from ..store import Scan, ScanArrays, arrays_of, responses
from .sums_and_means import with_ends

Array = np.ndarray

_OF_ALL = {"statistic": "", "higher_is_better": True, "reference": "truth"}
"""Attributes of what is a number of all samples, and not a mean of numbers of each."""


def quadratic_kappa(scan: Scan | xr.Dataset) -> xr.DataArray:
    """Compute the quadratically weighted kappa of predicted classes at each element.

        kappa = 1 - E (p - y)^2 / E (p - y')^2

    where p is the predicted and y the true class of a sample, and y' that of another one drawn at
    random: 1 for perfect agreement, 0 for that of chance. Classes must have an order, as those of
    `tasks.Ordinal`. NaN where all predicted and all true classes are the same.

    Args:
        scan: a labeled scan of classes, or its `data`.

    Returns:
        `[model, element]`, with the attributes that figures need.

    Raises:
        InputError: if the scan has no labels, or no predicted classes.

    See Also:
        binary_rates: Rates of two classes at each element.

    References:
        Cohen, Weighted kappa: nominal scale agreement with provision for scaled disagreement or
        partial credit, Psychological Bulletin 1968.

    Example:
        >>> import orbical as ob, torch
        >>> def steps(images):
        ...     rank = (3 * images.mean((1, 2, 3))).long().clamp(max=2)
        ...     return 9.0 * torch.nn.functional.one_hot(rank, 3)
        >>> images = torch.linspace(0, 1, 30)[:, None, None, None].expand(-1, 1, 4, 4)
        >>> scan = ob.scan(steps, (images, torch.arange(30) // 10), group="cyclic:2",
        ...                task="ordinal", progress=False)
        >>> ob.nero.quadratic_kappa(scan).values.round(2).tolist()
        [[1.0, 1.0]]
    """
    arrays = arrays_of(scan)
    if "label" not in arrays or "predicted" not in arrays:
        missing = "labels" if "predicted" in arrays else "predicted classes"
        raise InputError("scan", "a labeled scan of ordered classes", f"one without {missing}")
    like, label = responses(scan, "predicted"), arrays.read("label").astype(float)[:, None]
    sums = np.zeros((6, len(arrays.models), len(arrays.group)))
    for rows in arrays.blocks("predicted"):
        for model in range(len(arrays.models)):
            predicted = arrays.responses("predicted", rows, model).astype(float)
            true = np.where(np.isnan(predicted), np.nan, label[rows])
            terms = (np.ones_like(true), predicted, true, predicted**2, true**2, predicted * true)
            sums[:, model] += [np.nansum(np.where(np.isnan(true), np.nan, one), 0) for one in terms]
    with np.errstate(invalid="ignore", divide="ignore"):
        p, y, pp, yy, py = sums[1:] / sums[0]
        by_chance = pp - 2 * p * y + yy
        kappa = 1 - (pp - 2 * py + yy) / np.where(by_chance > 1e-12, by_chance, np.nan)
    coords = {name: one for name, one in like.coords.items() if "sample" not in one.dims}
    name = "quadratic_kappa"
    about = {**like.attrs, **_OF_ALL, "metric": name, "meaning": "quadratically weighted kappa"}
    return xr.DataArray(kappa, coords, ("model", "element"), name=name, attrs=about)


_TINY = 1e-12  # at 1 the variance is 0 too, which is no end of an interval
RATES = {
    "auroc": "area under the ROC curve",
    "sensitivity": "share of the positive samples that are predicted to be positive",
    "specificity": "share of the negative samples that are predicted to be negative",
}


def binary_rates(scan: Scan | xr.Dataset, *, positive: int = 1, level: float = 0.95) -> xr.Dataset:
    """Compute AUROC, sensitivity and specificity of two classes at each element, with intervals.

    AUROC is the probability that a positive sample has a larger probability of its class than a
    negative one, where ties count half. Sensitivity and specificity are those of the predicted
    class.

    Args:
        scan: a labeled scan of two classes, or its `data`.
        positive: the class, 0 or 1, of positive samples.
        level: the probability with which the ends of an interval hold.

    Returns:
        A dataset of `auroc`, `sensitivity` and `specificity` `[model, element]`, each with `_low`
        and `_high`; NaN where a class has no sample. Intervals of shares are exact (Clopper and
        Pearson), that of the AUROC is Newcombe's, a score interval that also holds near 1; of
        classes of different sizes with the larger of the variances that either may have.

    Raises:
        InputError: if the scan has no labels, or other than two classes.

    See Also:
        quadratic_kappa: Agreement of classes that have an order.
        summary: The rates at three places.

    References:
        Newcombe, Confidence intervals for an effect size measure based on the Mann-Whitney
        statistic, part 2, Statistics in Medicine 2006, method 5.

    Example:
        >>> import orbical as ob, torch
        >>> images = torch.rand(40, 1, 4, 4)
        >>> def upper(images):
        ...     return 9 * (images[:, 0, :2].mean((1, 2)) - 0.5)
        >>> labels = (images[:, 0, :2].mean((1, 2)) > 0.5).long()
        >>> scan = ob.scan(upper, (images, labels), group="flips", task="classification",
        ...                progress=False)
        >>> ob.nero.binary_rates(scan)["auroc"].values[0, :2].tolist()
        [1.0, 1.0]
    """
    arrays = arrays_of(scan)
    if not has_two_classes(arrays):
        raise InputError("scan", "a labeled scan of two classes", "another one")
    if whole_number("positive", positive, 0) > 1:
        raise InputError("positive", "0 or 1", positive)
    label = arrays.read("label") == positive
    empty = np.full((3, len(arrays.models), len(arrays.group)), np.nan)
    columns: dict[str, Array] = {}
    for name in RATES:
        columns |= with_ends(name, empty.copy())
    for model in range(len(arrays.models)):
        for run, (sure, predicted) in arrays.element_blocks("confidence", "predicted", model=model):
            yes = predicted == positive
            known = np.isfinite(sure)
            rates = {
                "sensitivity": _shares(yes, known & label, level),
                "specificity": _shares(~yes, known & ~label, level),
            }
            score = np.where(yes, sure, 1 - sure)
            rates["auroc"] = areas_under_roc(score, np.where(known, label, -1), level)
            for name, parts in rates.items():
                for column, values in with_ends(name, parts).items():
                    columns[column][model, run] = values
    like = responses(scan, "predicted")
    coords = {name: one for name, one in like.coords.items() if "sample" not in one.dims}
    table = {name: (("model", "element"), values) for name, values in columns.items()}
    result = xr.Dataset(table, coords, {"group": like.attrs["group"], "positive": positive})
    for name, meaning in RATES.items():
        about = {"metric": name, "meaning": meaning, "limits": (0.0, 1.0)}
        result[name].attrs = {**like.attrs, **_OF_ALL, **about}
    return result


def has_two_classes(arrays: ScanArrays) -> bool:
    """Check for a labeled scan in which each sample has one of two classes."""
    known = {"label", "confidence", "predicted", "consensus"}
    return all(name in arrays for name in known) and arrays.shape("consensus")[2:] == (2,)


def _shares(right: Array, among: Array, level: float) -> tuple[Array, Array, Array]:
    """Return the shares of what is right among some, `[K, N]`, and their ends."""
    each = [bounded_mean_interval(one[some], level) for one, some in zip(right, among, strict=True)]
    share, low, high = np.array(each).T
    return share, low, high


def areas_under_roc(score: Array, label: Array, level: float) -> tuple[Array, Array, Array]:
    """Return areas under ROC curves of scores `[K, N]` and labels 0, 1 or -1, and their ends."""
    from scipy.stats import rankdata

    area, low, high = np.full((3, len(score)), np.nan)
    for row, (values, classes) in enumerate(zip(score, label, strict=True)):
        ranks, yes = rankdata(values[classes >= 0]), classes[classes >= 0] == 1
        sizes = int(yes.sum()), int((~yes).sum())
        if min(sizes):
            below = ranks[yes].sum() - sizes[0] * (sizes[0] + 1) / 2
            area[row] = below / (sizes[0] * sizes[1])
            low[row], high[row] = _roc_area_ends(area[row], sizes, checked_level(level))
    return area, low, high


def _roc_area_ends(area: float, sizes: tuple[int, int], level: float) -> tuple[float, float]:
    """Return the areas from which the one of two samples is as far as chance may carry it."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    wide = norm.ppf(0.5 + level / 2)

    def beyond(true: float) -> float:
        less, more = sorted([(1 - true) / (2 - true), true / (1 + true)])
        spread = 1 + (min(sizes) - 1) * less + (max(sizes) - 1) * more
        chance = true * (1 - true) * spread / (sizes[0] * sizes[1])
        return float((area - true) ** 2 - wide**2 * chance)

    low = brentq(beyond, 0, area - _TINY) if area > 0 else 0.0
    return low, brentq(beyond, area + _TINY, 1) if area < 1 else 1.0
