"""Agreement of predicted and true ranks along the orbit."""

from __future__ import annotations

import xarray as xr

from ..errors import InputError
from ..store.scan_result import Scan
from .along_orbits import opened, responses


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
    data, _ = opened(scan)
    if "label" not in data.coords or "predicted" not in data:
        raise InputError(
            "scan",
            "a labeled scan of ordered classes",
            f"one without {'labels' if 'predicted' in data else 'predicted classes'}",
        )
    predicted = responses(scan, "predicted").astype(float)
    label = data["label"].astype(float).where(predicted.notnull())
    apart = ((predicted - label) ** 2).mean("sample")
    by_chance = predicted.var("sample") + label.var("sample")
    by_chance = by_chance + (predicted.mean("sample") - label.mean("sample")) ** 2
    kappa: xr.DataArray = (1 - apart / by_chance.where(by_chance > 0)).transpose("model", "element")
    kappa.name = "quadratic_kappa"
    kappa.attrs = {
        **predicted.attrs,
        "statistic": "",  # of all samples, not a mean of them
        "metric": "quadratic_kappa",
        "meaning": "quadratically weighted kappa",
        "higher_is_better": True,
        "reference": "truth",
    }
    return kappa.compute()
