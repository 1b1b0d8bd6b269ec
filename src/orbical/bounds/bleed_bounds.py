"""Aleatoric bleed: fitting error that a model reports as noise of the data.

Bleed is the mean squared norm of (predicted aleatoric variance - true aleatoric variance).

P1 bounds it by applying Theorem 3 to the true variance (`bleed_floor`). That bound is 0 whenever
the truth is 0, however wrong the symmetry. A model trained by likelihood is different: at the
optimum its variance is the mean squared residual of f around the best equivariant fit, taken in the
frame of the orbit's representative, plus the true variance. Its bleed is `nll_bleed_*`, one for
each form of variance, and `nll_optimal_variance` returns it by coordinate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._arrays import ArrayLike
from ..errors import InputError
from . import table_checks as checks
from .bound import OPEN, Bound, inapplicable_bound, lower_bound
from .equivariant_fit import (
    Frames,
    best_fit,
    covariances_pulled_back,
    equivariant_frames,
    pulled_back,
    sum_by,
)
from .value_table import ValueTable

__all__ = ["nll_optimal_bleed", "nll_optimal_variance"]

Array = np.ndarray
FORMS = ("scalar", "diagonal", "full")


def nll_optimal_variance(table: ValueTable, representation: object = "invariant") -> Array:
    """Return the covariance that a likelihood-optimal equivariant model reports.

    In the frame of each orbit's representative: the mean of (rho^-1 residual)(rho^-1 residual)^T
    plus the true variance. A diagonal model reports its diagonal, a scalar one its trace over D.
    Needs an orthogonal representation, for which the best fit is that of the likelihood.

    Args:
        table: the values.
        representation: `"invariant"`, or matrices `[K, D, D]` for the elements of the table.

    Returns:
        Covariances `[O, D, D]`, one for each orbit.

    Example:
        >>> table = ValueTable(orbit=[0, 0], value=[[1.0, 0.0], [3.0, 0.0]])
        >>> nll_optimal_variance(table)[0]
        array([[1., 0.],
               [0., 0.]])
    """
    return _optimal(table, equivariant_frames(table, representation))[0]


def nll_optimal_bleed(table: ValueTable, *, fit: ArrayLike = None) -> Array:
    """Return the bleed, by coordinate, that a symmetric model trained by likelihood settles at.

        v_o = mean over orbit o of (value - fit)^2, by coordinate
        bleed = sum_o share_o (v_o + mean true variance - true variance)^2

    A model that is constrained by a symmetry cannot follow a noise-free target along an orbit where
    the target breaks that symmetry. Its best mean is the best equivariant fit, and the variance of
    the highest likelihood is the squared residual that remains, averaged over the orbit if each
    coordinate has an invariant variance. Its sum, for an invariant model, is `nll_bleed_diagonal`
    of `regression`.

    Args:
        table: the values.
        fit: `[N, D]` (or `[N]`), the best equivariant fit at each point, such as `best_equivariant`
            has; None for the best invariant fit, the mean over the orbit.

    Returns:
        Bleed `[D]`, whose sum is the total.

    Raises:
        InputError: if the fit has another shape than the values.

    See Also:
        nll_optimal_variance: The full covariance of the same model, in the frame of each orbit.
        orbical.calibration.aleatoric_bleed: The bleed of a model's predictions.

    Example:
        >>> nll_optimal_bleed(ValueTable(orbit=[0, 0, 1, 1], value=[1.0, 3.0, 5.0, 5.0]))
        array([0.5])
    """
    checks.of_kind(table, ValueTable)
    mean = _orbit_means(table.orbit, table.mass, table.value)[table.orbit]
    best = mean if fit is None else checks.columns("fit", fit)
    if best.shape != table.value.shape:
        raise InputError("fit", f"shape {list(table.value.shape)}", best)
    spread = _orbit_means(table.orbit, table.mass, np.square(table.value - best))[table.orbit]
    if table.aleatoric is not None:
        truth = table.covariances(table.aleatoric).diagonal(axis1=1, axis2=2)
        spread = spread + _orbit_means(table.orbit, table.mass, truth)[table.orbit] - truth
    return np.asarray(table.mass @ np.square(spread))


def bleed_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    """Evaluate the bleed of the table's variances, its floor, and the likelihood-optimal bleeds."""
    return {
        "bleed": _own(table),
        "bleed_floor": _floor(table, frame),
        **{f"nll_bleed_{form}": _likelihood(table, frame, form) for form in FORMS},
    }


def _optimal(table: ValueTable, frame: Frames) -> tuple[Array, Array]:
    """Return the optimal covariance at the representatives, and the true one of each pair."""
    fit = best_fit(table.value, table.mass, table.orbit, frame)
    key = table.orbit[frame.point]
    residual = pulled_back(frame, table.value) - fit.at_representative[key]
    truth = covariances_pulled_back(frame, table.covariances(table.aleatoric))
    spread = np.einsum("ri,rj->rij", residual, residual) + truth
    return _orbit_means(key, table.mass[frame.point] * frame.share, spread), truth


def _orbit_means(key: Array, weight: Array, values: Array) -> Array:
    """Return the weighted mean of rows `[R, ...]` on each orbit, 0 where it has no mass."""
    count = int(key.max()) + 1
    q = np.bincount(key, weights=weight, minlength=count)
    total = sum_by(key, (weight * values.T).T, count)
    return np.asarray((total.T / np.where(q > 0, q, 1)).T)


def _likelihood(table: ValueTable, frame: Frames, form: str) -> Bound:
    quantity = "bleed_of_likelihood_optimum"
    if not table.closed:
        return inapplicable_bound(quantity, "exact", OPEN)
    if not frame.orthogonal:
        return inapplicable_bound(quantity, "exact", "needs an orthogonal representation")
    if form == "diagonal" and not frame.monomial:
        return inapplicable_bound(
            quantity, "exact", "the representation mixes coordinates: no variance vector can rotate"
        )
    if form != "full" and table.aleatoric is not None and table.aleatoric.ndim == 3:
        return inapplicable_bound(quantity, "exact", "the true variance is a full covariance")
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
        return inapplicable_bound("bleed", "exact", "needs predicted variances; the table has none")
    off = table.covariances(table.variance) - table.covariances(table.aleatoric)
    return Bound(float(table.mass @ np.square(off).sum((1, 2))), "bleed", "exact")


def _floor(table: ValueTable, frame: Frames) -> Bound:
    """Apply Theorem 3 with the true variance as the function to be fitted (P1 section 6)."""
    if table.aleatoric is None:
        return lower_bound(0.0, "bleed", reason="the true variance is 0 everywhere")
    size, dimension = table.value.shape
    flat = table.covariances(table.aleatoric).reshape(size, -1)
    # A scalar variance is invariant under every representation.
    single = np.eye(dimension)[None] if table.aleatoric.ndim == 1 else frame.matrix
    square = np.einsum("rij,rkl->rikjl", single, single).reshape(-1, dimension**2, dimension**2)
    turned = replace(frame, matrix=np.broadcast_to(square, (len(frame.point), *square.shape[1:])))
    fit = best_fit(flat, table.mass, table.orbit, turned)
    scale = float(table.mass @ np.square(flat).sum(1))
    return lower_bound(float(table.mass @ fit.residual), "bleed", scale)
