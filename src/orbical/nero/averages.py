"""What averaging over the orbit gains, by the number of elements, from stored probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .._lazy import xr
from ..calibration import bounded_mean_interval, compare_means, ece
from ..errors import InputError, real_number
from ..groups import Group
from ..store import Scan, ScanArrays, arrays_of
from .sums_and_means import table_of_models, with_ends

_MEANINGS = {
    "accuracy": "accuracy of the averaged model",
    "gain": "accuracy over the orbit less that of the model itself",
    "ece": "calibration error of the averaged model",
    "invariance_gap": "root mean square distance of the averaged outputs from their mean",
    "cost": "passes of the model for one prediction",
    "enough": "least number of elements that is at most the margin worse than all",
}


def averaging(
    scan: Scan | xr.Dataset,
    elements: Sequence[int] | None = None,
    *,
    bins: int = 15,
    level: float = 0.95,
    margin: float = 0.01,
) -> xr.Dataset:
    """Compute what averaging a classifier over part of its orbit gains, and what it costs.

        p_m(g x) = mean of p(h g x) over m evenly spaced elements h

    The averaged model, `orbical.predictors.OrbitAverage` with m elements, is evaluated along the
    whole orbit from the probabilities that a scan stored, so the model does not run again. Where
    images are resampled, the model itself moves an input twice and may differ a little.

    Args:
        scan: a labeled classification scan with `keep="probabilities"`, of a closed group; or its
            `data`.
        elements: numbers of elements to average; divisors of the size of the group, by default
            all of them.
        bins: bins of the calibration error.
        level: nominal coverage of the intervals.
        margin: how much less accurate a part of the orbit may be to count as enough.

    Returns:
        A dataset of `accuracy` and `ece` `[model, elements, place]`, at the places `identity`,
        `mean` (over the orbit) and `worst`; of `gain` with `gain_low` and `gain_high`, the change
        of the accuracy over the orbit from no averaging, sample by sample; `invariance_gap`
        `[model, elements]`; `cost` `[elements]`, the passes of the model for one prediction; and
        `enough` `[model]`, the least number of elements whose accuracy over the orbit is shown to
        be at most `margin` below that of all of them: the upper end of the interval of the
        difference is (`orbical.calibration.bounded_mean_interval`). Few samples show it of all
        elements only.

    Raises:
        InputError: if the scan has no labels or probabilities, or its group is not closed.

    See Also:
        orbical.predictors.OrbitAverage: The averaged model itself.
        enough_elements: How many elements a mean over the orbit needs.
        order_averages: The same for orders of options.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", keep="probabilities", progress=False)
        >>> found = ob.nero.averaging(scan)
        >>> found["elements"].values.tolist(), bool(found["invariance_gap"][0, -1] < 1e-6)
        ([1, 2, 4], True)
    """
    arrays = arrays_of(scan)
    group = arrays.group
    numbers = _numbers_of_averaged_elements(arrays, elements)
    real_number("margin", margin, "> 0")
    rows = []
    for model in range(len(arrays.models)):
        stored = arrays.read("probabilities", model=model).swapaxes(0, 1)
        probs = torch.from_numpy(stored).double()
        kept = probs.isfinite().all(-1).all(0)
        if int(kept.sum()) < 2:
            raise InputError("scan", "at least 2 finished samples", int(kept.sum()))
        labels = torch.as_tensor(arrays.read("label")).long()[kept]
        rows.append(_averages_of_model(probs[:, kept], labels, numbers, group, bins, level, margin))
    places = ["identity", "mean", "worst"]
    table = table_of_models(arrays, rows, {"elements": numbers, "place": places})
    table = table.assign(cost=("elements", numbers))
    for variable in table.data_vars.values():
        variable.attrs = {"meaning": _MEANINGS.get(str(variable.name), "end of the interval")}
    return table


def _numbers_of_averaged_elements(arrays: ScanArrays, elements: Sequence[int] | None) -> list[int]:
    """Return the numbers of elements, and refuse scans that cannot be averaged."""
    group = arrays.group
    for name in ("probabilities", "correct", "label"):
        if name not in arrays:
            expected = "a labeled classification with probabilities"
            remedy = "scan labeled data with keep='probabilities'"
            raise InputError("scan", expected, f"none of {name}", remedy=remedy)
    if not group.closed:
        raise InputError("scan", "a closed group", f"{group.spec}, whose elements do not compose")
    size = len(group)
    divisors = [number for number in range(1, size + 1) if size % number == 0]
    wrong = [number for number in elements or [] if number not in divisors]
    if wrong:
        raise InputError("elements", f"divisors of {size}, {divisors}", wrong[0])
    return sorted({1, size, *(divisors if elements is None else elements)})


def _averages_of_model(
    along: torch.Tensor,
    labels: torch.Tensor,
    numbers: Sequence[int],
    group: Group,
    bins: int,
    level: float,
    margin: float,
) -> dict[str, np.ndarray]:
    """Return the quantities of one model, for each number of elements, ascending from 1.

    `along` are its probabilities `[K, N, C]`.
    """
    weight, mass = np.asarray(group.weights), torch.as_tensor(group.weights)
    by_number: list[dict[str, object]] = []
    shares: dict[int, torch.Tensor] = {}
    for number in numbers:
        probs = averages_over_elements(along, group, number)
        confidence, predicted = probs.max(-1)
        correct = predicted == labels
        curve = correct.double().mean(-1).numpy()
        error = ece(confidence, correct, bins=bins).numpy()
        shares[number] = (correct.double() * mass[:, None]).sum(0)
        center = (probs * mass[:, None, None]).sum(0)
        apart = ((probs - center).square().sum(-1) * mass[:, None]).sum(0)
        worst = int(curve.argmin())
        gain = compare_means(shares[number], shares[1], level=level)
        by_number.append(
            {
                "accuracy": [curve[group.identity], curve @ weight, curve[worst]],
                "ece": [error[group.identity], error @ weight, error.max()],
                **with_ends("gain", map(float, (gain.difference, gain.low, gain.high))),
                "invariance_gap": float(apart.mean().sqrt()),
            }
        )
    all_elements = max(shares)
    lost = np.stack([(shares[all_elements] - share).numpy() for share in shares.values()])
    at_most = bounded_mean_interval(lost, level, low=-1.0, high=1.0)[2]
    enough = [n for n, end in zip(shares, at_most, strict=True) if end <= margin]
    table = {name: np.array([one[name] for one in by_number]) for name in by_number[0]}
    return {**table, "enough": np.array([*enough, all_elements][0])}


def evenly_spaced(group: Group, number: int) -> slice:
    """Choose a number of evenly spaced elements, the identity among them.

    >>> from orbical.groups import rotations
    >>> evenly_spaced(rotations(8), 2)
    slice(0, None, 4)
    """
    step = len(group) // number
    return slice(group.identity % step, None, step)


def averages_over_elements(probs: torch.Tensor, group: Group, number: int) -> torch.Tensor:
    """Average probabilities `[K, N, C]` along orbits over a number of evenly spaced elements.

    Args:
        probs: the probabilities at all elements.
        group: a closed group.
        number: a divisor of its size.

    Returns:
        Those of the averaged model at all elements, `[K, N, C]`.
    """
    size = len(group)
    if number == size:  # the same at all elements
        return probs.mean(0).expand_as(probs)
    every, total = np.arange(size), torch.zeros_like(probs)
    for h in every[evenly_spaced(group, number)]:
        composed = group[np.full(size, h)].compose(group[every])
        total += probs[torch.as_tensor(group.index_of(composed))]
    return total / number
