"""Agreement of predicted and true ranks along the orbit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..store import arrays_of, responses

if TYPE_CHECKING:
    import xarray as xr

    from ..store import Scan


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
    import xarray as xr

    arrays = arrays_of(scan)
    if "label" not in arrays or "predicted" not in arrays:
        raise InputError(
            "scan",
            "a labeled scan of ordered classes",
            f"one without {'labels' if 'predicted' in arrays else 'predicted classes'}",
        )
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
    about = {
        **like.attrs,
        "statistic": "",  # of all samples, not a mean of them
        "metric": "quadratic_kappa",
        "meaning": "quadratically weighted kappa",
        "higher_is_better": True,
        "reference": "truth",
    }
    return xr.DataArray(kappa, coords, ("model", "element"), name="quadratic_kappa", attrs=about)
