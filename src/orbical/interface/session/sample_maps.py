"""The map of samples by their responses, in [-1, 1]^2, computed in passes over blocks of samples.

A sample is one point: its scores along the orbit, for several models side by side. A missing score
(an object may leave the view) is replaced by the mean over samples at that element. The map is of
the scores whatever metric is shown, so that a subset drawn on it does not change with the metric.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...embedding import METHODS, NEIGHBORS
from ...errors import InputError, check_name
from ..selection import Selection
from .long_work import Progress
from .moments import Moments, moments_of
from .scan_view import ScanView

Array = np.ndarray

REPRESENTATIVES = 5_000
"""The number of samples that nonlinear methods embed; the others follow their neighbors."""
COARSE = 400
"""The number of samples of the first impression of a map."""
_GROWTH = 1.3  # of the time with the number of samples, about
MOST_PRODUCTS = 5e9
"""Multiplications spent on the principal axes; of more samples every n-th is used."""
_KEPT_COMPONENTS = 50
_TINY = 1e-9


@dataclass(frozen=True)
class SampleMap:
    """The position of each sample.

    Attributes:
        xy: `[N, 2]`, NaN for unfinished samples, which have no score of some model.
        explained: Fractions of the variance, for PCA.
        note: How many samples the map was computed from, if not all.
    """

    xy: Array
    explained: list[float] | None
    note: str


@dataclass(frozen=True)
class Components:
    """Principal components of the samples, `scores [N, P]`, largest first.

    `explained` holds the fractions of variance of the first two, `used` the number of samples that
    the axes were computed from.
    """

    scores: Array
    explained: list[float]
    used: int


def available_methods() -> list[str]:
    """List the methods that are available with the installed packages."""
    from importlib.util import find_spec

    return [name for name in METHODS if name != "umap" or find_spec("umap") is not None]


def sample_map(
    view: ScanView,
    selection: Selection,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
) -> SampleMap:
    """Return the map of a selection, computed once.

    `progress` is told how far it is, with a coarse map described by `about`.
    """
    method, models, variable = _asked_for(view, selection)

    def compute() -> SampleMap:
        told = progress or Progress()
        return _make(view, method, [*models], variable, told, dict(about or {}))

    return view.cache.get_or_compute(("map", method, models, variable), compute)


def is_cached(view: ScanView, selection: Selection) -> bool:
    """Check whether a map is in the cache."""
    return view.cache.get(("map", *_asked_for(view, selection))) is not None


def _asked_for(view: ScanView, selection: Selection) -> tuple[str, tuple[int, ...], str]:
    check_name("selection method", selection.method, METHODS)
    variable = view.variable(view.metrics["score"], view.reference(selection))
    return selection.method, tuple(view.of(selection)), variable


def _make(
    view: ScanView,
    method: str,
    models: list[int],
    variable: str,
    progress: Progress,
    about: dict[str, Any],
) -> SampleMap:
    found = _components(view, models, variable)
    finished = np.isfinite(found.scores).all(1)
    count = int(finished.sum())
    if count < 4:
        raise InputError("embedding", "4 or more finished samples", count)
    note = "" if found.used >= count else f"axes from {found.used:,} of {count:,} samples"
    placed = np.zeros((count, 2))
    points = found.scores[finished].astype(np.float64)

    def spread(placed: Array) -> Array:
        xy = np.full((view.samples, 2), np.nan, np.float32)
        xy[finished] = _framed(placed)
        return xy

    if points.shape[1]:
        if method == "pca":
            placed[:, : min(2, points.shape[1])] = points[:, :2]
        elif count <= REPRESENTATIVES:
            if count > 2 * COARSE:
                coarse = _first_impression(points, method, count, progress)
                progress.tell(0.0, "", (about, {"xy": spread(coarse)}))
            with progress.interruptible():
                placed = _two(METHODS[method](points, 2, 0))
        else:
            coarse = _first_impression(points, method, REPRESENTATIVES, progress)
            progress.tell(0.0, "", (about, {"xy": spread(coarse)}))
            with progress.interruptible():
                placed = _by_representatives(points, method, REPRESENTATIVES)
            note = f"{REPRESENTATIVES:,} of {count:,} samples embedded, the rest by their neighbors"
    return SampleMap(spread(placed), found.explained if method == "pca" else None, note)


def _components(view: ScanView, models: list[int], variable: str) -> Components:
    """Return the principal components of the samples, `[N, P]`, largest first."""
    sums = moments_of(view, variable)

    def compute() -> Components:
        with view.passes.turn():
            return _principal(view, models, variable, sums)

    return view.cache.get_or_compute(("components", tuple(models), variable), compute)


def _principal(view: ScanView, models: list[int], variable: str, sums: Moments) -> Components:
    size = len(models) * len(view.group)
    stride = max(1, int(np.ceil(view.samples * size**2 / MOST_PRODUCTS)))
    roots = np.tile(np.sqrt(view.group.weights), len(models)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        each = sums.total[models].sum(1) / sums.count[models].sum(1)
    center = np.nan_to_num(each).reshape(-1).astype(np.float32)
    second, first, used = np.zeros((size, size)), np.zeros(size), 0
    for rows in view.blocks(variable):
        start = -rows.start % stride
        points = _centered(view, models, variable, rows, center)[start::stride]
        points = points[np.isfinite(points).all(1)] * roots
        second += points.T @ points
        first += points.sum(0, dtype=np.float64)
        used += len(points)
    if used == 0:
        return Components(np.full((view.samples, 1), np.nan, np.float32), [], 0)
    shift = first / used
    covariance = second / used - np.outer(shift, shift)
    variances, axes = np.linalg.eigh(covariance)
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = (variances > _TINY * max(variances[0], _TINY)) & (np.arange(size) < _KEPT_COMPONENTS)
    axes = axes[:, kept]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    scores = np.empty((view.samples, axes.shape[1]), np.float32)
    turned = (roots[:, None] * axes).astype(np.float32)
    home = (shift @ axes).astype(np.float32)
    for rows in view.blocks(variable):
        scores[rows] = _centered(view, models, variable, rows, center) @ turned - home
    whole = max(float(variances.clip(0).sum()), _TINY)
    return Components(scores, [float(part) / whole for part in variances[:2].clip(0)], used)


def _centered(
    view: ScanView, models: list[int], variable: str, rows: slice, center: Array
) -> Array:
    """Return a block of centered points, 0 where a score is missing; NaN without any of a model.

    The center is the mean over samples of each score, `[M K]`.
    """
    each = [view.responses(variable, rows, model) for model in models]
    points: Array = np.concatenate(each, axis=1) - center
    seen = np.isfinite(points)
    if not seen.all():
        begun = seen.reshape(len(points), len(models), -1).any(2).all(1)
        points[~seen & begun[:, None]] = 0
    return points


def _first_impression(points: Array, method: str, wanted: int, progress: Progress) -> Array:
    """Embed a few samples, and tell from their time how long `wanted` ones will take."""
    start = time.monotonic()
    with progress.interruptible():
        placed = _by_representatives(points, method, COARSE)
    progress.expect((time.monotonic() - start) * (wanted / COARSE) ** _GROWTH)
    return placed


def _by_representatives(points: Array, method: str, most: int) -> Array:
    """Embed some samples by the method, and the others by the mean of their nearest."""
    from scipy.spatial import cKDTree

    chosen = np.unique(np.linspace(0, len(points) - 1, most).astype(int))
    some = _two(METHODS[method](points[chosen], 2, 0))
    if method == "ica":  # linear, so the representatives determine it
        flat = points[chosen, :2] - points[chosen, :2].mean(0)
        turn, *_ = np.linalg.lstsq(flat, some - some.mean(0), rcond=None)
        return np.asarray((points[:, :2] - points[chosen, :2].mean(0)) @ turn + some.mean(0))
    near = min(3, NEIGHBORS, len(chosen))
    distance, index = cKDTree(points[chosen, :10]).query(points[:, :10], k=near)
    share = 1 / (distance + 1e-9)
    share /= share.sum(1, keepdims=True)
    return np.asarray((some[index] * share[..., None]).sum(1))


def _two(placed: Array) -> Array:
    return np.pad(placed, ((0, 0), (0, 2 - placed.shape[1])))


def _framed(placed: Array) -> Array:
    """Scale positions into [-1, 1]^2, with one scale for both axes to preserve distances."""
    low, high = placed.min(0), placed.max(0)
    reach = float((high - low).max()) / 2
    return np.asarray((placed - (low + high) / 2) / (reach if reach > 0 else 1.0))
