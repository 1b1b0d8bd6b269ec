"""The map of samples by their responses, in [-1, 1]^2, and its colors.

A sample is one point: its scores along the orbit, for several models side by side, as
`orbical.embedding` places it. The map is of the scores whatever metric is shown, so that a subset
drawn on it does not change with the metric.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np

from ... import embedding
from ...errors import InputError, check_name
from ...store import Json
from ..background import BackgroundProgress
from .filter_columns import (
    filter_column_ends,
    filter_column_values,
    filter_keys,
    filter_title,
    sample_columns,
)
from .scan_view import ScanView
from .subset_request import Answer, SubsetRequest

Array = np.ndarray

REPRESENTATIVES = 5_000
"""The number of samples that nonlinear methods embed; the others follow their neighbors."""
COARSE = 400
"""The number of samples of the first impression of a map."""
_GROWTH = 1.3  # of the time with the number of samples, about


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


def available_map_methods() -> list[str]:
    """List the methods that are available with the installed packages."""
    return [name for name in embedding.METHODS if name != "umap" or find_spec("umap") is not None]


def map_answer(request: SubsetRequest) -> Answer:
    """Answer the map of a selection, `xy [N, 2]`."""
    points = sample_map(request)
    about = {**_stated(request), "explained": points.explained, "note": points.note}
    return about, {"xy": points.xy}


def sample_map(request: SubsetRequest) -> SampleMap:
    """Return the map of a selection, computed once; its progress comes with a coarse map."""
    return request.view.cache.get_or_compute(_key(request), partial(_make_sample_map, request))


def map_is_cached(request: SubsetRequest) -> bool:
    """Check whether a map is in the cache."""
    return request.view.cache.get(_key(request)) is not None


def _stated(request: SubsetRequest) -> Json:
    """Return what a map depends on, as the page states it."""
    selection = request.selection
    return {"method": selection.method, "of": selection.of, "reference": request.reference}


def _key(request: SubsetRequest) -> tuple[str, str, tuple[int, ...], str]:
    check_name("selection method", request.selection.method, embedding.METHODS)
    return "map", request.selection.method, tuple(request.embedded), request.reference


def _make_sample_map(request: SubsetRequest) -> SampleMap:
    view, method, progress = request.view, request.selection.method, request.progress
    variable = view.variable(view.metrics["score"], request.reference)
    found = _components(view, request.embedded, variable, embedding.embedding_components(method, 2))
    finished = np.isfinite(found.scores[0]).all(1)
    count = int(finished.sum())
    if count < 4:
        raise InputError("embedding", "4 or more finished samples", count)
    note = "" if found.used >= count else f"axes from {found.used:,} of {count:,} samples"
    points = found.scores[0, finished]

    def spread(placed: Array) -> Array:
        xy = np.full((view.samples, 2), np.nan, np.float32)
        xy[finished] = _framed(placed)
        return xy

    if method == "pca" or not points.size:
        placed = embedding.embedded_positions(points, "pca", 2, 0)
    else:
        some = min(count, REPRESENTATIVES)
        if request.watched and count > 2 * COARSE:
            coarse = _first_impression(points, method, some, progress)
            progress.tell(0.0, "", (_stated(request), {"xy": spread(coarse)}))
        with progress.interruptible():
            if some == count:
                placed = embedding.embedded_positions(points, method, 2, 0)
            else:
                placed = _map_by_representatives(points, method, some)
                note = f"{some:,} of {count:,} samples embedded, the rest by their neighbors"
    return SampleMap(spread(placed), found.explained if method == "pca" else None, note)


def _components(
    view: ScanView, models: list[int], variable: str, most: int
) -> embedding.PrincipalComponents:
    """Return the principal components of the samples, computed once."""
    sums = view.moments(variable)

    def compute() -> embedding.PrincipalComponents:
        with view.passes.turn():
            return embedding.principal_components(view.reader, variable, [models], sums, most)

    return view.cache.get_or_compute(("components", tuple(models), variable, most), compute)


def _first_impression(
    points: Array, method: str, wanted: int, progress: BackgroundProgress
) -> Array:
    """Embed a few samples, and tell from their time how long `wanted` ones will take."""
    start = time.monotonic()
    with progress.interruptible():
        placed = _map_by_representatives(points, method, COARSE)
    progress.expect((time.monotonic() - start) * (wanted / COARSE) ** _GROWTH)
    return placed


def _map_by_representatives(points: Array, method: str, most: int) -> Array:
    """Embed some samples by the method, and the others by the mean of their nearest."""
    from scipy.spatial import cKDTree

    chosen = np.unique(np.linspace(0, len(points) - 1, most).astype(int))
    some = embedding.embedded_positions(points[chosen], method, 2, 0)
    if method == "ica":  # linear, so the representatives determine it
        flat = points[chosen, :2] - points[chosen, :2].mean(0)
        turn, *_ = np.linalg.lstsq(flat, some - some.mean(0), rcond=None)
        return np.asarray((points[:, :2] - points[chosen, :2].mean(0)) @ turn + some.mean(0))
    near = min(3, embedding.NEIGHBORS, len(chosen))
    distance, index = cKDTree(points[chosen, :10]).query(points[:, :10], k=near)
    share = 1 / (distance + 1e-9)
    share /= share.sum(1, keepdims=True)
    return np.asarray((some[index] * share[..., None]).sum(1))


def _framed(placed: Array) -> Array:
    """Scale positions into [-1, 1]^2, with one scale for both axes to preserve distances."""
    low, high = placed.min(0), placed.max(0)
    reach = float((high - low).max()) / 2
    return np.asarray((placed - (low + high) / 2) / (reach if reach > 0 else 1.0))


MOMENTS = ("mean", "variance")


def available_map_colors(view: ScanView) -> list[str]:
    """List the colorings that these samples have: moments of the metric, and columns."""
    columns = sample_columns(view).values()
    return [*MOMENTS, *(column.name for column in columns if column.kind != "text")]


def map_color(request: SubsetRequest) -> Answer:
    """Answer one number for each sample: a moment of the metric over the orbit, or a column."""
    view, name, of = request.view, request.selection.color, request.selection.of
    check_name("selection color", name, available_map_colors(view))
    if name in MOMENTS:
        metric = request.sample_metric
        values, title = request.over_orbits(name)
        low, high = filter_column_ends(values)
        if name == "variance":
            low = 0.0
        elif metric.unit == "share":
            low, high = 0.0, 1.0
        about: Json = {"scale": "sequential", "range": [low, high], "title": title}
        about["higher_is_better"] = False if name == "variance" else metric.higher_is_better
        return about, {"values": values}
    column = sample_columns(view)[name]
    values = filter_column_values(view, column, of)
    about = {"title": filter_title(view, column, of)}
    if column.kind == "category":
        about |= {"scale": "classes", "range": [0, len(filter_keys(view, column)) - 1]}
        about["names"] = column.keys  # None for classes, which the page knows
        return about, {"values": values.astype(np.float32)}
    low, high = column.ends or filter_column_ends(values)
    about |= {"scale": "diverging" if low == -1.0 else "sequential", "range": [low, high]}
    shown = np.where(np.isposinf(values), high, values)  # what never fails is beyond the last
    return about | {"unit": column.unit}, {"values": shown.astype(np.float32)}
