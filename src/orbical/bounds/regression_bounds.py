"""Bounds of error, calibration and aleatoric bleed of regressors with a symmetry.

Items are those of Berman et al., "On Uncertainty Calibration for Equivariant Functions" (P1).
With `a = sqrt(2 s / pi)` and `e = |h_mu - f|` by coordinate,

    GENCE = E[||a - e||^2 / ||a||^2],      GENCE_sq = E[||s - e^2||^2 / ||s||^2],

plain means over points: by the tower property no bins are needed. A perfectly calibrated Gaussian
scores pi/2 - 1 and 2, not 0. Neither is invariant under rotations; the Mahalanobis distance is.

Bleed is the mean squared norm of (predicted aleatoric variance - true aleatoric variance).

P1 bounds it by applying Theorem 3 to the true variance (`bleed_floor`). That bound is 0 whenever
the truth is 0, however wrong the symmetry. A model trained by likelihood is different: at the
optimum its variance is the mean squared residual of f around the best equivariant fit, taken in the
frame of the orbit's representative, plus the true variance. Its bleed is `nll_bleed_*`, one for
each form of variance, and `nll_optimal_variance` returns it by coordinate.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._arrays import ArrayLike
from ..calibration import gence_floor, gence_sq_floor
from ..errors import InputError
from . import table_checks as checks
from .bound import OPEN, Bound, Bounds, estimated_bounds, inapplicable_bound, lower_bound
from .equivariant_fit import Frames, best_fit, equivariant_frames, sum_by_orbit
from .value_table import ValueTable

__all__ = ["best_equivariant", "nll_optimal_bleed", "nll_optimal_variance", "regression"]

Array = np.ndarray
_FORMS = ("scalar", "diagonal", "full")
_GENCE = {
    "gence": ("gence", "exact"),
    "gence_sq": ("gence_sq", "exact"),
    "thm6": ("gence", "upper"),
    "thm6_minimized": ("gence_of_minimizer", "upper"),
    "thm7": ("gence", "upper"),
    "thm7_minimized": ("gence_of_minimizer", "upper"),
    "vector_lower": ("gence", "lower"),
    "vector_lower_whole": ("gence", "lower"),
    "thm8": ("gence_sq", "lower"),
    "thm8_fiberwise": ("gence_sq", "lower"),
}
"""The bounds of GENCE in their order, with their quantity and kind."""
_ANY = {
    "equivariance_gap": ("equivariance_gap", "exact"),
    "gap_at_least": ("equivariance_gap", "lower"),
    "any_rmse": ("rmse", "lower"),
}
_OF_EQUIVARIANT = (
    *("vector_lower", "vector_lower_whole", "thm8", "thm8_fiberwise"),
    *("mahalanobis_floor", "bleed_floor"),
)
"""The lower bounds that hold for equivariant predictions only."""
_NO_MEAN = "needs the model's mean predictions; the table has none"
_NO_VARIANCE = "needs predicted variances; the table has none"
_FULL = "a full covariance has no variance vector; see mahalanobis"
_NOT_INVARIANT = "the representation is not the trivial one; see thm3 and thm7"


def regression(table: ValueTable, representation: object = "invariant") -> Bounds:
    """Evaluate every regression bound on a table of values.

    V_s is the least mean error an equivariant model can have on a fiber of the variance, per unit
    of the fiber's mass r, E_G the best equivariant fit on whole orbits, W the least
    `E[norm(f - h)^2 / norm(a)^2]`:

    | key | value |
    |---|---|
    | `error` | E[norm(h - f)^2] |
    | `thm2`, `thm3` | least error of an invariant, of an equivariant model |
    | `equivariance_gap` | the distance of h from equivariant functions, in L2 of the data |
    | `gap_at_least` | sqrt(thm3) - RMSE, which a model of this error must reach |
    | `any_rmse` | RMSE >= (sqrt(thm3) - gap)_+, for any model, equivariant or not |
    | `gence`, `gence_sq` | as above |
    | `thm6`, `thm7` | GENCE <= 1 + E[norm(e)^2 / norm(a)^2], for the model at hand |
    | `thm6_minimized`, `thm7_minimized` | the same for the error-minimizing model E_G |
    | `vector_lower` | GENCE >= sum_s r (sqrt(V_s) / norm(a_s) - 1)_+^2 |
    | `vector_lower_whole` | GENCE >= (sqrt(W) - 1)_+^2, which sees orbits that cross fibers |
    | `thm8` | GENCE_sq >= sum over s < m of r (m - s)^2 / s^2, m = min V_s; one coordinate |
    | `thm8_fiberwise` | GENCE_sq >= sum_s r (V_s - sum s)_+^2 / (D norm(s)^2) |
    | `mahalanobis`, `mahalanobis_floor` | E[e^T S^-1 e] and its least value; D if calibrated |
    | `bleed`, `bleed_floor`, `nll_bleed_*` | see above and `nll_optimal_bleed` |

    Args:
        table: the values, with whatever predictions are known.
        representation: `"invariant"`, or matrices `[K, D, D]` for the elements of the table.

    Returns:
        The bounds by name.

    Raises:
        InputError: if the representation cannot act on a diagonal variance: a positive variance
            vector cannot rotate.

    See Also:
        classification: For labels.
        nll_optimal_variance: The noise that a symmetric model reports.

    Example:
        >>> table = ValueTable(orbit=[0, 0], value=[1.0, 3.0], variance=[0.25, 0.25])
        >>> bounds = regression(table)
        >>> bounds["thm2"].value, bounds["thm8"].value
        (1.0, 9.0)
    """
    frame = equivariant_frames(table, representation)
    _check_regression_forms(table, frame)
    bounds = _regression_error_bounds(table, frame) | _gence_bounds(table, frame)
    bounds |= _mahalanobis_bounds(table, frame) | _bleed_bounds(table, frame)
    spread = _departures_from_equivariance(table, frame)
    for name in _OF_EQUIVARIANT if spread else ():
        if bounds[name].applies:
            bounds[name] = inapplicable_bound(bounds[name].quantity, "lower", spread)
    if table.tolerance is not None:
        bounds = estimated_bounds(bounds, table.tolerance)
    about = {
        "points": len(table.value),
        "orbits": int(table.orbit.max()) + 1,
        "coordinates": table.value.shape[1],
        "variance": table.form,
        "gence_if_calibrated": gence_floor,
        "gence_sq_if_calibrated": gence_sq_floor,
        "mahalanobis_if_calibrated": table.value.shape[1],
        "invariance_gap": table.invariance_gap,
        "tolerance": table.tolerance,
    }
    return Bounds(bounds, about)


def best_equivariant(table: ValueTable, representation: object = "invariant") -> Array:
    """Return the best equivariant fit to the values at each point (P1 Theorems 2 and 3).

    Args:
        table: the values.
        representation: as in `regression`.

    Returns:
        The fit `[N, D]`.

    Example:
        >>> best_equivariant(ValueTable(orbit=[0, 0, 1], value=[1.0, 3.0, 5.0]))[:, 0]
        array([2., 2., 5.])
    """
    frame = equivariant_frames(table, representation)
    return best_fit(table.value, table.mass, table.orbit, frame).fitted


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
    return _optimal_covariance(table, equivariant_frames(table, representation))[0]


def nll_optimal_bleed(table: ValueTable, *, fit: ArrayLike = None) -> Array:
    """Return the bleed, by coordinate, that maximum likelihood gives a symmetric model.

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


def _check_regression_forms(table: ValueTable, frame: Frames) -> None:
    for name, variance in (("variance", table.variance), ("aleatoric", table.aleatoric)):
        if variance is not None and variance.ndim == 2 and not frame.monomial:
            raise InputError(
                name,
                "an invariant scalar [N] or a full covariance [N, D, D], as the "
                "representation mixes coordinates",
                "a diagonal variance",
            )


def _departures_from_equivariance(table: ValueTable, frame: Frames) -> str:
    """Return why the predictions are not those of an equivariant model; nothing if they are."""
    tensors = {}
    if table.mean is not None:
        tensors["means"] = frame.pulled_back(table.mean)
    if table.variance is not None and table.variance.ndim == 1:
        tensors["variances"] = table.variance[frame.point]
    elif table.variance is not None:
        tensors["variances"] = frame.covariances_pulled_back(table.covariances(table.variance))
    key = table.orbit[frame.point]
    first = np.unique(key, return_index=True)[1]
    for name, values in tensors.items():
        spread = float(np.abs(values - values[first][key]).max())
        if spread > 1e-5 * float(np.abs(values).max()):
            return (
                f"the predicted {name} are not equivariant: differences up to {spread:.3g} on an "
                "orbit; see any_rmse"
            )
    return ""


def _regression_error_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    fit = best_fit(table.value, table.mass, table.orbit, frame)
    floor = float(table.mass @ fit.residual)
    scale = float(table.mass @ np.square(table.value).sum(1))
    found = lower_bound(floor, "error", scale)
    bounds = {
        "error": inapplicable_bound("error", "exact", _NO_MEAN),
        "thm2": found if frame.trivial else inapplicable_bound("error", "lower", _NOT_INVARIANT),
        "thm3": found,
        **{name: inapplicable_bound(*of, _NO_MEAN) for name, of in _ANY.items()},
    }
    if table.mean is not None:
        error = float(table.mass @ np.square(table.mean - table.value).sum(1))
        away = best_fit(table.mean, table.mass, table.orbit, frame).residual
        gap, root = math.sqrt(table.mass @ away), math.sqrt(floor)
        needed = lower_bound(root - math.sqrt(error), "equivariance_gap", math.sqrt(scale))
        bounds["error"] = Bound(error, "error", "exact")
        bounds["equivariance_gap"] = Bound(gap, *_ANY["equivariance_gap"])
        bounds["gap_at_least"] = replace(needed, reason="for every model of this error")
        bounds["any_rmse"] = lower_bound(root - gap, "rmse", math.sqrt(scale))
    return bounds


def _gence_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    reason = _NO_VARIANCE if table.variance is None else _FULL if table.form == "full" else _NO_MEAN
    bounds = {name: inapplicable_bound(*of, reason) for name, of in _GENCE.items()}
    if table.variance is None or table.form == "full":
        return bounds
    mass = table.mass
    s = np.diagonal(table.covariances(table.variance), axis1=1, axis2=2)
    a_squared = 2 / math.pi * s.sum(1)
    fit = best_fit(table.value, mass, table.orbit, frame)
    bounds["thm7_minimized"] = Bound(
        1 + float(mass @ (fit.residual / a_squared)),
        *_GENCE["thm7_minimized"],
        reason="for the error-minimizing model with these variances",
    )
    if table.mean is not None:
        a, e = np.sqrt(2 * s / math.pi), np.abs(table.mean - table.value)
        values = {
            "gence": np.square(a - e).sum(1) / a_squared,
            "gence_sq": np.square(s - e**2).sum(1) / np.square(s).sum(1),
            "thm7": 1 + np.square(e).sum(1) / a_squared,
        }
        bounds |= {name: Bound(float(mass @ of), *_GENCE[name]) for name, of in values.items()}
    for invariant, general in (("thm6", "thm7"), ("thm6_minimized", "thm7_minimized")):
        bounds[invariant] = bounds[general]
        if not frame.trivial:
            bounds[invariant] = inapplicable_bound(*_GENCE[invariant], _NOT_INVARIANT)
    return bounds | _lower_gence_bounds(table, frame, s, a_squared)


def _lower_gence_bounds(
    table: ValueTable, frame: Frames, s: Array, a_squared: Array
) -> dict[str, Bound]:
    mass, dimension = table.mass, table.value.shape[1]
    _, first, fiber = np.unique(s, axis=0, return_index=True, return_inverse=True)
    fiber = fiber.reshape(-1)
    # An orbit may cross fibers; on a fiber only its part there is fitted.
    part = np.unique(np.stack([table.orbit, fiber]), axis=1, return_inverse=True)[1].reshape(-1)
    fit = best_fit(table.value, mass, part, frame)
    r = np.bincount(fiber, weights=mass)
    held = r > 0
    r, s_fiber, a_fiber = r[held], s[first][held], a_squared[first][held]
    least = np.bincount(fiber, weights=mass * fit.residual)[held] / r
    excess = np.maximum(0, np.sqrt(least / a_fiber) - 1)
    # A weight that varies along an orbit changes its best fit.
    whole = best_fit(table.value, mass / a_squared, table.orbit, frame)
    total = float((mass / a_squared) @ whole.residual)
    trace = s_fiber.sum(1)
    beyond = np.maximum(0, least - trace)
    if dimension == 1:
        m = float(least.min())
        theorem8 = lower_bound(float(r @ np.square(np.maximum(0, m - trace) / trace)), "gence_sq")
    else:
        reason = f"needs one coordinate, the table has {dimension}; see thm8_fiberwise"
        theorem8 = inapplicable_bound("gence_sq", "lower", reason)
    fiberwise = float(r @ (beyond**2 / (dimension * np.square(s_fiber).sum(1))))
    return {
        "vector_lower": lower_bound(float(r @ excess**2), "gence"),
        "vector_lower_whole": lower_bound(max(0.0, math.sqrt(total) - 1) ** 2, "gence"),
        "thm8": theorem8,
        "thm8_fiberwise": lower_bound(fiberwise, "gence_sq"),
    }


def _mahalanobis_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    exact = inapplicable_bound("mahalanobis", "exact", _NO_VARIANCE)
    if table.variance is None:
        floor = inapplicable_bound("mahalanobis", "lower", _NO_VARIANCE)
        return {"mahalanobis": exact, "mahalanobis_floor": floor}
    whiten = np.linalg.inv(np.linalg.cholesky(table.covariances(table.variance)))
    white = np.einsum("nij,nj->ni", whiten, table.value)
    turned = replace(frame, matrix=whiten[frame.point] @ frame.matrix)
    least = float(table.mass @ best_fit(white, table.mass, table.orbit, turned).residual)
    exact = replace(exact, reason=_NO_MEAN)
    if table.mean is not None:
        off = np.einsum("nij,nj->ni", whiten, table.mean - table.value)
        exact = Bound(float(table.mass @ np.square(off).sum(1)), "mahalanobis", "exact")
    scale = float(table.mass @ np.square(white).sum(1))
    return {"mahalanobis": exact, "mahalanobis_floor": lower_bound(least, "mahalanobis", scale)}


def _bleed_bounds(table: ValueTable, frame: Frames) -> dict[str, Bound]:
    """Evaluate the bleed of the table's variances, its floor, and the likelihood-optimal bleeds."""
    bleed = inapplicable_bound("bleed", "exact", _NO_VARIANCE)
    if table.variance is not None:
        off = table.covariances(table.variance) - table.covariances(table.aleatoric)
        bleed = Bound(float(table.mass @ np.square(off).sum((1, 2))), "bleed", "exact")
    return {
        "bleed": bleed,
        "bleed_floor": _bleed_floor_bound(table, frame),
        **{f"nll_bleed_{form}": _optimal_bleed_bound(table, frame, form) for form in _FORMS},
    }


def _optimal_covariance(table: ValueTable, frame: Frames) -> tuple[Array, Array]:
    """Return the optimal covariance at the representatives, and the true one of each pair."""
    fit = best_fit(table.value, table.mass, table.orbit, frame)
    key = table.orbit[frame.point]
    residual = frame.pulled_back(table.value) - fit.at_representative[key]
    truth = frame.covariances_pulled_back(table.covariances(table.aleatoric))
    spread = np.einsum("ri,rj->rij", residual, residual) + truth
    return _orbit_means(key, table.mass[frame.point] * frame.share, spread), truth


def _orbit_means(key: Array, weight: Array, values: Array) -> Array:
    """Return the weighted mean of rows `[R, ...]` on each orbit, 0 where it has no mass."""
    count = int(key.max()) + 1
    q = np.bincount(key, weights=weight, minlength=count)
    total = sum_by_orbit(key, (weight * values.T).T, count)
    return np.asarray((total.T / np.where(q > 0, q, 1)).T)


def _optimal_bleed_bound(table: ValueTable, frame: Frames, form: str) -> Bound:
    quantity, reason = "bleed_of_likelihood_optimum", ""
    if not table.closed:
        reason = OPEN
    elif not frame.orthogonal:
        reason = "needs an orthogonal representation"
    elif form == "diagonal" and not frame.monomial:
        reason = "the representation mixes coordinates: no variance vector can rotate"
    elif form != "full" and table.aleatoric is not None and table.aleatoric.ndim == 3:
        reason = "the true variance is a full covariance"
    if reason:
        return inapplicable_bound(quantity, "exact", reason)
    optimal, truth = _optimal_covariance(table, frame)
    dimension = table.value.shape[1]
    if form == "scalar":
        optimal = np.trace(optimal, axis1=1, axis2=2)[:, None, None] / dimension * np.eye(dimension)
    elif form == "diagonal":
        optimal = optimal * np.eye(dimension)
    off = np.square(optimal[table.orbit[frame.point]] - truth).sum((1, 2))
    weight = table.mass[frame.point] * frame.share
    return Bound(float(weight @ off), quantity, "exact")


def _bleed_floor_bound(table: ValueTable, frame: Frames) -> Bound:
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
