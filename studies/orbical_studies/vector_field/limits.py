"""What O(3) makes possible for a vector field on a plane: exact limits on a finite set of points.

An equivariant network is bound at every point by the rotations that keep the point. They are
listed beside those that lead to it, so that an equivariant function can attain the best fit of
`orbical.bounds`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical import calibration
from orbical.bounds import ValueTable, best_equivariant, nll_optimal_variance, regression
from orbical.training import positive_definite

from ..data.planar_fields import FIELDS, REACH

Array = np.ndarray
Row = dict[str, Any]
KEEPING = 4
"""Rotations about the point's own axis; quarter turns average every quadratic form exactly."""
WAYS = ("outward", "along", "up")


def frames(x: Array) -> Array:
    """Return rotations `[N, 3, 3]` whose columns point outward, along the ring, and up.

    >>> frames(np.array([[0.0, 2.0, 0.0]]))[0, :, 0]
    array([0., 1., 0.])
    """
    outward = x / np.linalg.norm(x, axis=1, keepdims=True)
    up = np.broadcast_to([0.0, 0.0, 1.0], x.shape)
    return np.stack([outward, np.cross(up, outward), up], axis=2)


def turns(angles: Array) -> Array:
    """Return rotations `[N, 3, 3]` about the z axis by angles in radians."""
    return frames(np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1))


def variances(x: Array, covariance: Array) -> Array:
    """Return the variances `[N, 3]` outward, along the ring and up."""
    basis = frames(x)
    return np.diagonal(basis.transpose(0, 2, 1) @ covariance @ basis, axis1=1, axis2=2)


def value_table(x: Array, value: Array, **predictions: Any) -> tuple[ValueTable, Array]:
    """Return the table of a field at points of the plane, and the matrices that reach them.

    Points of one length share an orbit, whose representative lies on the first axis. Each is
    reached by `KEEPING` elements.

    Args:
        x: `[N, 3]`, none at the origin.
        value: `[N, 3]`.
        predictions: A model's `mean` and `variance`.

    Returns:
        The table, and matrices `[4 N, 3, 3]` to pass to `bounds.regression`.

    >>> x = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> table, matrices = value_table(x, np.array([[0.0, 1.0, 0.0], [-2.0, 0.0, 0.0]]))
    >>> regression(table, matrices)["thm3"].value  # nothing across the point's axis can be fitted
    2.5
    """
    orbit = np.unique(np.linalg.norm(x, axis=1).round(9), return_inverse=True)[1]
    about_z = turns(2 * np.pi * np.arange(KEEPING) / KEEPING)
    about_x = about_z[:, [2, 0, 1]][:, :, [2, 0, 1]]
    matrices = np.einsum("nij,kjl->nkil", frames(x), about_x).reshape(-1, 3, 3)
    element = np.arange(len(matrices))
    table = ValueTable(orbit, value, point=element // KEEPING, element=element, **predictions)
    return table, matrices


def limits(x: Array, value: Array) -> Row:
    """Compute what an equivariant model can reach, and what maximum likelihood leads it to.

    Returns:
        `error`, the least squared error (Thm 3); `linear_error`, that of the maps `c x`;
        `bleed_floor`, the paper's structural bound; for scalar and for full variances, under
        `scalar_` and `full_`, the `scores` at the optimum of the likelihood; `full_head_bleed`,
        see `head_optimum`.
    """
    table, matrices = value_table(x, value)
    bounds = regression(table, matrices)
    covariance = nll_optimal_variance(table, matrices)[table.orbit]
    fit = best_equivariant(table, matrices)
    slope = (x * value).sum() / (x * x).sum()
    found: Row = {
        "error": bounds["thm3"].value,
        "linear_error": float(np.square(value - slope * x).sum(1).mean()),
        "bleed_floor": bounds["bleed_floor"].value,
    }
    mean_variance = np.trace(covariance, axis1=1, axis2=2) / 3
    basis = frames(x)
    forms = {"scalar": mean_variance[:, None, None] * np.eye(3), "full": covariance}
    for form, local in forms.items():
        optimum = scores(x, value, fit, basis @ local @ basis.transpose(0, 2, 1))
        del optimum["error"], optimum["xy_mse"]
        found |= {f"{form}_{name}": number for name, number in optimum.items()}
    reached = head_optimum(covariance[:, 1, 1], float(np.square(value).mean()))
    found["full_head_bleed"] = float(np.square(reached).sum(1).mean())
    return found


def head_optimum(across: Array, unit: float) -> Array:
    """Compute the likeliest variances that `VectorCovarianceHead` can predict here.

    Where a direction is free of error the likelihood drives its variance down to the share of the
    trace that single precision needs, and the others give way a little to let it fall. Where all
    are free of error, they fall to the floor together.

    Args:
        across: `[N]`, the mean squared error in each of the two directions across the point; there
            is none in the radial direction.
        unit: The square of the head's scale.

    Returns:
        Variances `[N, 3]` outward, along, and up.

    >>> found = head_optimum(np.array([1.0, 0.0]), 1.0)
    >>> bool(found[0, 0] < 1e-5), bool(0.7 < found[0, 1] < 1.0), bool(found[1].max() < 2e-6)
    (True, True, True)
    """
    # At every size, the shape that is as flat as the head allows is the likeliest.
    size = torch.linspace(-25.0, 3.0, 4001)
    flattest = 1e4 * torch.tensor([-2.0, 1.0, 1.0])
    possible = positive_definite(torch.diag_embed(size[:, None] + flattest))
    variance = unit * possible.diagonal(dim1=-2, dim2=-1).double().numpy()
    loss = np.log(variance).sum(1) + across[:, None] * (1 / variance[:, 1:]).sum(1)
    return variance[loss.argmin(1)]


def scores(x: Array, value: Array, mean: Array, covariance: Array) -> Row:
    """Measure Gaussian predictions at points of the plane.

    Args:
        x: `[N, 3]`.
        value: `[N, 3]`, the truth.
        mean: `[N, 3]`.
        covariance: `[N, 3, 3]`.

    Returns:
        `error`, the mean squared length of the error; `xy_mse` and `xy_beta_nll`, the paper's
        means over the plane's coordinates; `trace`, the mean sum of the variances; `bleed` and its
        parts `bleed_outward`, `bleed_along`, `bleed_up`; where every variance is positive `gence`,
        `gence_fiber`, `mahalanobis` (mean squared distance) and `nll`.
    """
    off = value - mean
    own = np.diagonal(covariance, axis1=1, axis2=2)
    parts = np.square(variances(x, covariance)).mean(0)
    found: Row = {
        "error": float(np.square(off).sum(1).mean()),
        "xy_mse": float(np.square(off[:, :2]).mean()),
        "xy_beta_nll": float(beta_nll_terms(off[:, :2], own[:, :2]).mean()),
        "trace": float(own.sum(1).mean()),
        "bleed": float(calibration.covariance_bleed(covariance).total),
        **{f"bleed_{way}": float(part) for way, part in zip(WAYS, parts, strict=True)},
    }
    predicted, truth = torch.from_numpy(mean), torch.from_numpy(value)
    if own.min() > 1e-12:
        variance = torch.from_numpy(own.copy())
        found["gence"] = float(calibration.gence(predicted, variance, truth))
        found["gence_fiber"] = float(calibration.gence_fiber(predicted, variance, truth))
    if np.linalg.eigvalsh(covariance).min() > 1e-12:
        white = np.linalg.solve(covariance, off[..., None])[..., 0]
        found["mahalanobis"] = float((off * white).sum(1).mean())
        whole = torch.from_numpy(covariance)
        found["nll"] = float(calibration.gaussian_nll(predicted, whole, truth))
    return found


def beta_nll_terms(error: Array, variance: Array) -> Array:
    """Compute the paper's beta-NLL at beta = 1 without its constant, `(s log s + e^2) / 2`.

    As a score it is not proper: without any error it is smallest at `s = 1/e`, not at 0.

    >>> float(beta_nll_terms(np.zeros(1), np.exp([-1.0]))[0]).__round__(4)
    -0.1839
    """
    return (variance * np.log(np.maximum(variance, 1e-300)) + np.square(error)) / 2


def symmetry_defects(field: str, x: Tensor) -> Row:
    """Measure which symmetries a field has: `E |f(g x) - g f(x)|^2`, and how far g leaves the data.

    Returns:
        For a rotation by 30 degrees in the plane, a mirror in the plane, half a turn about an axis
        in the plane, a tilt by 30 degrees, and a shift by 1: the defect of the field, and
        `NAME_outside`, the share of points that leave the square of side 2 REACH in the plane.

    >>> found = symmetry_defects("spiral", torch.tensor([[1.0, 2.0, 0.0]]))
    >>> round(found["turn"], 9), found["mirror"]
    (0.0, 20.0)
    """
    turn = turns(np.array([np.pi / 6]))[0]
    moves = {
        "turn": (turn, 0.0),
        "mirror": (np.diag([1.0, -1.0, 1.0]), 0.0),
        "half_turn": (np.diag([1.0, -1.0, -1.0]), 0.0),
        "tilt": (turn[[2, 0, 1]][:, [2, 0, 1]], 0.0),
        "shift": (np.eye(3), 1.0),
    }
    f, found = FIELDS[field], {}
    for name, (rows, step) in moves.items():
        matrix = torch.as_tensor(rows, dtype=x.dtype)
        moved = x @ matrix.T + torch.tensor([step, 0.0, 0.0], dtype=x.dtype)
        inside = (moved[:, :2].abs().amax(1) <= REACH) & (moved[:, 2].abs() < 1e-6)
        found[name] = float((f(moved) - f(x) @ matrix.T).square().sum(-1).mean())
        found[f"{name}_outside"] = float(1 - inside.double().mean())
    return found
