"""Aleatoric bleed: error of the fit that a model reports as noise of the data.

Bleed is the mean squared norm of (predicted aleatoric variance - true aleatoric variance).

P1 bounds it by applying Theorem 3 to the true variance (`bleed_floor`). That bound is 0 whenever
the truth is 0, however wrong the symmetry. What a model trained by likelihood reports is another
matter: at the optimum its variance is the mean squared residual of f around the best equivariant
fit, taken in the frame of the orbit's representative, plus the true variance. Its bleed is
`nll_bleed_*`, one for each form of variance, and `nll_optimal_variance` gives it by coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._equivariant_fit import (
    Frames,
    best_fit,
    covariances_pulled_back,
    frames,
    pulled_back,
    sum_by,
)
from .bound import Bound, not_applicable
from .value_table import ValueTable

Array = np.ndarray
FORMS = ("scalar", "diagonal", "full")


def nll_optimal_variance(table: ValueTable, representation: Any = "invariant") -> Array:
    """Return `[O, D, D]`, the covariance a likelihood-optimal equivariant model reports.

    In the frame of each orbit's representative: the mean of (rho^-1 residual)(rho^-1 residual)^T
    plus the true variance. Its diagonal is what a diagonal model reports, a D-th of its trace what
    a scalar one does. Needs an orthogonal representation, where the best fit is the likelihood's.

    Example:
        >>> table = ValueTable(orbit=[0, 0], value=[[1.0, 0.0], [3.0, 0.0]])
        >>> nll_optimal_variance(table)[0]
        array([[1., 0.],
               [0., 0.]])
    """
    return _optimal(table, frames(table, representation))[0]


def bleed_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    """Evaluate the bleed of the table's variances, its floor, and the likelihood-optimal bleeds."""
    return {
        "bleed": _own(table),
        "bleed_floor": _floor(table, frame),
        **{f"nll_bleed_{form}": _likelihood(table, frame, form) for form in FORMS},
    }


def _optimal(table: ValueTable, frame: Frames) -> tuple[Array, Array]:
    """Return the optimal covariance at the representatives, and the true one of each pair."""
    assert table.mass is not None
    count = int(table.orbit.max()) + 1
    fit = best_fit(table.value, table.mass, table.orbit, frame)
    key = table.orbit[frame.point]
    residual = pulled_back(frame, table.value) - fit.at_representative[key]
    truth = covariances_pulled_back(frame, table.covariances(table.aleatoric))
    weight = table.mass[frame.point] * frame.share
    q = np.bincount(key, weights=weight, minlength=count)
    spread = np.einsum("ri,rj->rij", residual, residual) + truth
    total = sum_by(key, weight[:, None, None] * spread, count)
    return total / np.where(q > 0, q, 1)[:, None, None], truth


def _likelihood(table: ValueTable, frame: Frames, form: str) -> Bound:
    quantity = "bleed_of_likelihood_optimum"
    if not frame.orthogonal:
        return not_applicable(quantity, "exact", "needs an orthogonal representation")
    if form == "diagonal" and not frame.monomial:
        return not_applicable(
            quantity, "exact", "the representation mixes coordinates: no variance vector can turn"
        )
    if form != "full" and table.aleatoric is not None and table.aleatoric.ndim == 3:
        return not_applicable(quantity, "exact", "the true variance is a full covariance")
    assert table.mass is not None
    optimal, truth = _optimal(table, frame)
    dimension = table.value.shape[1]
    if form == "scalar":
        optimal = np.trace(optimal, axis1=1, axis2=2)[:, None, None] / dimension * np.eye(dimension)
    elif form == "diagonal":
        optimal = optimal * np.eye(dimension)
    off = np.square(optimal[table.orbit[frame.point]] - truth).sum((1, 2))
    weight = table.mass[frame.point] * frame.share
    return Bound(float(weight @ off), quantity, "exact")


def _own(table: ValueTable) -> Bound:
    if table.variance is None:
        return not_applicable("bleed", "exact", "needs predicted variances; the table has none")
    assert table.mass is not None
    off = table.covariances(table.variance) - table.covariances(table.aleatoric)
    return Bound(float(table.mass @ np.square(off).sum((1, 2))), "bleed", "exact")


def _floor(table: ValueTable, frame: Frames) -> Bound:
    """P1 section 6: Theorem 3 with the true variance as the function to be fitted."""
    if table.aleatoric is None:
        return Bound(
            0.0, "bleed", "lower", reason="the true variance is 0 everywhere", vacuous=True
        )
    assert table.mass is not None
    size, dimension = table.value.shape
    flat = table.covariances(table.aleatoric).reshape(size, -1)
    if table.aleatoric.ndim == 1:
        turned = frame.with_matrices(
            np.broadcast_to(np.eye(dimension**2), (len(frame.point), dimension**2, dimension**2))
        )
    else:
        square = np.einsum("rij,rkl->rikjl", frame.matrix, frame.matrix)
        turned = frame.with_matrices(square.reshape(-1, dimension**2, dimension**2))
    floor = float(table.mass @ best_fit(flat, table.mass, table.orbit, turned).residual)
    return Bound(floor, "bleed", "lower", vacuous=floor <= 0)
