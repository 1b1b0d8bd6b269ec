"""Smooth ECE: the calibration error after smoothing over confidence, with its own bandwidth."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import errors_with_usage, real_number
from ..pairs.pairs_and_weights import pair

__all__ = ["smooth_ece"]


GRID = 4096
"""Cells of the grid on [0, 1] that residuals are split over; its error is of order GRID^-2."""

_STEPS = 14
"""Most steps of the search for the bandwidth: they end within 3e-14 of the fixed point."""

_FOUND = 1e-15
"""A bandwidth this near to its error is the fixed point, up to rounding."""


def residual_masses(
    confidence: Tensor, correct: Tensor, grid: int = GRID, mass: Tensor | None = None
) -> Tensor:
    """Return the residuals `[..., N]` split linearly over the points of a grid, `[..., grid+1]`.

    The masses of two sets of samples add up to those of their union.

    Example:
        >>> residual_masses(torch.tensor([0.25]), torch.tensor([True]), grid=2)
        tensor([0.3750, 0.3750, 0.0000], dtype=torch.float64)
    """
    z = confidence.detach().double()
    residual = correct.detach().double() - z
    return smooth_ece_masses_on_grid(z, residual if mass is None else residual * mass, grid)


def smooth_ece_masses_on_grid(places: Tensor, masses: Tensor, grid: int) -> Tensor:
    """Return masses `[..., N]` at places in [0, 1] split linearly over a grid, `[..., grid+1]`."""
    place = places.clamp(0, 1) * grid
    left = place.floor().clamp_(max=grid - 1)
    right_part = masses * (place - left)
    index = left.long().expand(masses.shape)
    found = masses.new_zeros(*masses.shape[:-1], grid + 1)
    found.scatter_add_(-1, index, masses - right_part)
    return found.scatter_add_(-1, index + 1, right_part)


def _spectrum(masses: Tensor) -> Tensor:
    """Return the cosine coefficients `sum_g mass_g cos(pi k g / grid)` for k = 0 .. grid."""
    # The masses mirrored at both ends; an end point is its own mirror image and counts twice.
    inner = masses[..., 1:-1] / 2
    ends = masses[..., :1], masses[..., -1:]
    even = torch.cat([ends[0], inner, ends[1], inner.flip(-1)], dim=-1)
    spectrum: Tensor = torch.fft.rfft(even).real
    return spectrum


def _smooth_ece_of_spectrum(spectrum: Tensor, bandwidth: Tensor) -> Tensor:
    """Return the integral over [0, 1] of the absolute smoothed residual density."""
    grid = spectrum.shape[-1] - 1
    waves = torch.arange(grid + 1, dtype=torch.float64, device=spectrum.device) * math.pi
    weight = torch.ones_like(waves)
    weight[0] = weight[-1] = 0.5
    # Beyond nine deviations a Gaussian is below rounding, so these waves are left out.
    reach = 9 / (math.pi * max(float(bandwidth.min()), 1e-9)) if bandwidth.numel() else 0
    waves = waves[: min(grid, math.ceil(reach)) + 1]
    # A Gaussian reflected at 0 and 1 without end is the heat kernel of the interval: it multiplies
    # each cosine by a Gaussian in its wave number.
    damping = torch.exp(-(bandwidth[..., None] * waves).square() / 2)
    damped = spectrum[..., : len(waves)] * damping
    density: Tensor = torch.fft.irfft(damped, n=2 * grid)[..., : grid + 1] * (2 * grid)
    return (density.abs() * weight).sum(-1) / grid


def smooth_ece_from_masses(masses: Tensor, total: Tensor | int, bandwidth: float | None) -> Tensor:
    """Return smooth ECE from `residual_masses` of so much weight; `None` chooses the bandwidth.

    Example:
        >>> masses = residual_masses(torch.tensor([0.9]), torch.tensor([False]))
        >>> smooth_ece_from_masses(masses, 1, 0.05)
        tensor(0.9000, dtype=torch.float64)
    """
    total = torch.as_tensor(total, device=masses.device)
    spectrum = _spectrum(masses) / total[..., None]
    shape = spectrum.shape[:-1]
    if bandwidth is not None:
        return _smooth_ece_of_spectrum(spectrum, spectrum.new_full(shape, bandwidth))
    # The Illinois method: false position that halves the value of an end kept twice in a row. Rows
    # leave the search as their bandwidths are found.
    spectrum = spectrum.reshape(-1, spectrum.shape[-1])
    over = (masses.abs().sum(-1) / total).reshape(-1)  # without smoothing
    found, rows = torch.zeros_like(over), torch.arange(len(over), device=over.device)
    low, high = torch.zeros_like(over), torch.ones_like(over)
    under = _smooth_ece_of_spectrum(spectrum, high) - high
    rose, fell = torch.zeros_like(over, dtype=torch.bool), torch.zeros_like(over, dtype=torch.bool)
    for _ in range(_STEPS):
        apart = over - under
        place = torch.where(apart > 0, (high * over - low * under) / apart, low)
        error = _smooth_ece_of_spectrum(spectrum, place)
        found[rows] = error
        above = error > place
        over, under = (
            torch.where(above, error - place, torch.where(fell, over / 2, over)),
            torch.where(above, torch.where(rose, under / 2, under), error - place),
        )
        low, high = torch.where(above, place, low), torch.where(above, high, place)
        left = (error - place).abs() > _FOUND
        if not bool(left.any()):
            break
        rows, spectrum, rose, fell = rows[left], spectrum[left], above[left], ~above[left]
        low, high, over, under = low[left], high[left], over[left], under[left]
    return found.reshape(shape)


@errors_with_usage()
def smooth_ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bandwidth: float | None = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the smooth calibration error of Blasiok and Nakkiran (2023).

        r_s(t) = sum_i w_i (correct_i - z_i) K_s(z_i, t) / sum_i w_i
        smECE_s = integral over [0, 1] of |r_s(t)| dt,    smECE = smECE_s at the s with smECE_s = s

    with K_s the Gaussian of standard deviation s, reflected at 0 and 1. smECE_s falls as s grows,
    so that the automatic bandwidth is unique, and the measure is continuous in the confidences,
    which a binned ECE is not. O(N) time: residuals are split over a grid of 4,097 points, and the
    smoothing is a multiplication in its cosine transform. Not differentiable.

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].
        bandwidth: s; chosen automatically if not given.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        ece: Over bins.
        reliability_curve: The curve that belongs to it.

    References:
        Blasiok and Nakkiran, Smooth ECE: principled reliability diagrams via kernel
        smoothing, ICLR 2024.

    Example:
        >>> smooth_ece([0.9, 0.9, 0.9, 0.9], [True, True, False, False])
        tensor(0.4000, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    if bandwidth is not None:
        real_number("bandwidth", bandwidth, "> 0")
    total = confidence.shape[-1] if mass is None else mass.sum(-1)
    return smooth_ece_from_masses(residual_masses(confidence, correct, mass=mass), total, bandwidth)
