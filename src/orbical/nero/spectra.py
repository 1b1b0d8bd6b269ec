"""Spectra along orbits: how many elements are enough, and what may lie between sampled ones."""

from __future__ import annotations

import numpy as np

from .._lazy import xr
from ..errors import InputError, real_number
from ..groups import Group, exact_degree, so3_quadrature
from ..store import Scan, ScanArrays, arrays_of

Array = np.ndarray

HELD = 0.99
"""The share of the variance along an orbit up to the degree that a score is said to have."""
_MEANINGS = {
    "power": "variance along the orbit at each degree, mean over samples",
    "error": "root mean square error of a sample's mean over so many elements",
    "degree": f"degree up to which {HELD:.0%} of the variance lies",
    "enough": "least number of elements whose error is within the tolerance",
}


def enough_elements(
    scan: Scan | xr.Dataset, metric: str = "score", *, tolerance: float | None = None
) -> xr.Dataset:
    """Estimate how many elements are enough to average a response over its orbit.

    A response along a circle is a Fourier series, along all rotations one of Wigner matrices. The
    mean over n equally spaced elements is wrong by the terms whose degree is a multiple of n, the
    mean over a quadrature of degree d by some of those beyond d. The power at each degree is
    measured at the scanned elements; beyond them it is taken to be at most that of their highest
    degrees, which is an assumption.

    Args:
        scan: a scan of equally spaced rotations of the plane (`rotations:N`), or of rotations in
            space that are exact to a degree (`so3_quadrature:N`, `icosahedral`); or its `data`.
        metric: as in `responses`.
        tolerance: the largest root mean square error of a sample's mean, in the unit of the
            responses; by default 1 % of their root mean square.

    Returns:
        A dataset of `power` `[model, degree]`; `error` `[model, elements]`; `degree_held`
        `[model]`, up to which 99 % of the variance lies; and `enough` `[model]`, the least number
        of elements with an error within the tolerance, or -1 if that is more than were scanned.

    Raises:
        InputError: if the group is another one, or a metric is not known.

    See Also:
        orbical.worst_case: What lies between the elements.
        averaging: How many elements a model has to be averaged over.

    References:
        Kostelec and Rockmore, FFTs on the rotation group, J. Fourier Anal. Appl. 2008.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="rotations:24",
        ...                task="classification", progress=False)
        >>> int(ob.nero.enough_elements(scan)["enough"][0]) <= 24
        True
    """
    arrays = arrays_of(scan)
    kernels = _spectral_kernels(arrays.group)
    name = arrays.response_name(metric)
    moments = np.stack([_second_moment(arrays, name, place) for place in range(len(arrays.models))])
    weights = arrays.group.weights
    power = np.einsum("dgh,g,h,mgh->md", kernels, weights, weights, moments).clip(0)
    numbers, aliased = _aliases(arrays.group, len(kernels) - 1)
    beyond = power[:, -max(1, (len(kernels) - 1) // 4) :].max(1, keepdims=True)
    error = np.sqrt(power @ aliased.T + beyond)
    scale = np.sqrt(np.einsum("mgg,g->m", moments, weights))
    if tolerance is not None:
        real_number("tolerance", tolerance, "> 0")
    within = error <= (0.01 * scale[:, None] if tolerance is None else tolerance)
    held = power[:, 1:].cumsum(1) >= HELD * power[:, 1:].sum(1, keepdims=True)
    variables = {
        "power": (("model", "degree"), power),
        "error": (("model", "elements"), error),
        "degree_held": (("model",), 1 + held.argmax(1)),
        "enough": (("model",), np.where(within.any(1), numbers[within.argmax(1)], -1)),
    }
    coords = {"model": arrays.models, "degree": np.arange(len(kernels)), "elements": numbers}
    table = xr.Dataset(variables, coords, {"group": arrays.group.spec, "metric": name})
    for key, variable in table.data_vars.items():
        variable.attrs = {"meaning": _MEANINGS[str(key).partition("_")[0]]}
    return table


def _second_moment(arrays: ScanArrays, name: str, model: int) -> Array:
    """Return the mean over samples of the products of responses at pairs of elements, `[K, K]`."""
    total, count = np.zeros((len(arrays.group), len(arrays.group))), 0
    for rows in arrays.blocks(name):
        values = arrays.responses(name, rows, model).astype(np.float64)
        known = values[np.isfinite(values).all(1)]
        total, count = total + known.T @ known, count + len(known)
    return total / count if count else np.full_like(total, np.nan)


def _spectral_kernels(group: Group) -> Array:
    """Return dim(l) times the character of `g^-1 h` for pairs of elements, `[degree, K, K]`.

    Their quadratic forms in a response are its power at each degree.
    """
    order = order_for_spectra(group)
    size = len(group)
    if order is not None and size > 1:  # one element knows no wave
        apart = 2 * np.pi / size * np.subtract.outer(np.argsort(order), np.argsort(order))
        degrees = np.arange(size // 2 + 1)
        both = np.where(2 * degrees % size, 2.0, 1.0)  # a wave and its mirror image
        return both[:, None, None] * np.cos(np.multiply.outer(degrees, apart))
    rotations = group.linear("space") if [*group.parts] == ["space"] else -np.eye(3)[None]
    degree = exact_degree(group) if np.linalg.det(rotations).min() > 0 else None
    if degree is None or degree < 2:
        exact = "rotations in space that are exact to a degree of at least 2"
        expected = f"equally spaced rotations of the plane, or {exact}"
        raise InputError(
            "scan", expected, group.spec, remedy="scan rotations:72, or so3_quadrature:8"
        )
    cosine = (np.einsum("gij,hij->gh", rotations, rotations) - 1) / 2
    angle = np.arccos(cosine.clip(-1, 1))
    waves = 2 * np.cos(np.multiply.outer(np.arange(degree // 2 + 1), angle))
    waves[0] /= 2
    return np.asarray((2 * np.arange(len(waves)) + 1)[:, None, None] * waves.cumsum(0))


def _aliases(group: Group, degree: int) -> tuple[Array, Array]:
    """Return numbers of elements `[n]`, and whether their mean has a wrong part of a degree."""
    degrees = np.arange(degree + 1)
    if order_for_spectra(group) is not None:
        numbers = np.arange(1, len(group) + 1)
        return numbers, (degrees > 0) & (degrees % numbers[:, None] == 0)
    exact = np.arange(1, degree + 1)
    sizes = np.array([len(so3_quadrature(int(one))) for one in exact])
    return sizes, degrees > exact[:, None]


def order_for_spectra(group: Group) -> Array | None:
    """Return elements in the order of their angle, if they are equally spaced on a whole circle.

    >>> from orbical import groups
    >>> order_for_spectra(groups.rotations(4)), order_for_spectra(groups.flips())
    (array([0, 1, 2, 3]), None)
    """
    if [*group.coords] != ["angle"] or [*group.parts] != ["plane"]:
        return None
    angle = np.asarray(group.coords["angle"], float) % 360
    order = np.argsort(angle)
    spaced = np.allclose(angle[order], np.arange(len(angle)) * 360 / len(angle))
    return order if spaced and np.allclose(group.weights, group.weights[0]) else None


def circle_bracket(values: Array) -> tuple[Array, Array, Array]:
    """Return between what values on a circle lie, from K equally spaced ones, and the degree.

    Let m < K / 2 be the least degree up to which 99 % of the variance of the samples lies, and rho
    the largest of what is beyond it. A series of degree m that differs from the response by at most
    rho everywhere bounds the response by

        |f - c| <= (max |f - c| over the samples + rho) / cos(pi m / K) + rho

    with c the middle of the range of the samples (Ehlich and Zeller; `docs/theory.md` has the
    proof). That rho holds between the samples too is an assumption.

    Args:
        values: `[B, K]`, in the order of angles.

    Returns:
        Lower and upper end, `[B]`, NaN where no degree below K / 2 is enough; and the degree, -1
        there.

    Example:
        >>> t = np.arange(12) * np.pi / 6
        >>> low, high, degree = circle_bracket(np.cos(2 * t + 0.3)[None])
        >>> bool(low[0] <= -1 and high[0] >= 1), int(degree[0]), bool(high[0] < 1.2)
        (True, 2, True)
    """
    size, complete = values.shape[1], np.isfinite(values).all(1)
    values = np.where(complete[:, None], values, 0.0)
    waves = np.fft.rfft(values, axis=1)
    power = np.square(np.abs(waves))
    power[:, 0] = 0.0
    if size % 2 == 0:
        power[:, -1] /= 2
    # Rounding is no variance.
    scale = size * 1e-14 * np.square(values).sum(1, keepdims=True)
    held = power.cumsum(1) >= HELD * power.sum(1, keepdims=True) - scale
    degree = held.argmax(1)
    waves[np.arange(waves.shape[1]) > degree[:, None]] = 0.0
    rest = np.abs(values - np.fft.irfft(waves, size, axis=1)).max(1)
    middle, reach = (values.max(1) + values.min(1)) / 2, np.ptp(values, axis=1) / 2
    known = (2 * degree < size) & complete
    factor = np.where(known, np.cos(np.pi * degree / size), np.nan)
    reach = (reach + rest) / factor + rest
    return middle - reach, middle + reach, np.where(known, degree, -1)
