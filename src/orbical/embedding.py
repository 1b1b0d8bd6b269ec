"""Maps of samples by how models respond along their orbits.

A sample's response at K elements is a point in K dimensions; an embedding shows these points in
two. Samples that lie near each other respond in the same way. Every method starts from the distance
`sqrt(sum_g w_g (r_g - s_g)^2)`, the weighted root mean square difference of two responses.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, section 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._imports import import_extra
from .errors import InputError, check_name, whole_number
from .store.blocks import sample_blocks
from .store.scan_result import Scan

if TYPE_CHECKING:
    import xarray as xr
    from scipy.sparse import csr_matrix

__all__ = ["embed", "representatives"]

Array = np.ndarray

EXACT_SAMPLES = 5_000
"""ISOMAP uses all distances up to this many points, and landmarks beyond."""
LANDMARKS = 500
NEIGHBORS = 15
_TINY = 1e-9


def embed(
    scan: Scan | xr.Dataset,
    method: str = "pca",
    metric: str = "score",
    model: str | None = None,
    dims: int = 2,
    seed: int = 0,
) -> xr.DataArray:
    """Embed the responses of all samples in a few dimensions.

    With `model=None` every response of every model is a point in one common map, so that positions
    can be compared: where a sample lies for one model, and where for another. With a model's name
    the map is made of that model's responses alone.

    No method needs memory quadratic in the samples: PCA and ICA work on moments of blocks of
    samples, t-SNE on nearest neighbors (Barnes-Hut), UMAP likewise, ISOMAP on the distances from
    500 landmarks where there are more than 5,000 points.

    A response may have gaps, for example where a detector's key object leaves the view. A gap is
    filled with the mean of the other points at that element.

    Args:
        scan: a scan, or its `data`.
        method: `"pca"`, `"ica"`, `"isomap"`, `"tsne"` or `"umap"` (extra `umap`).
        metric: as in `orbical.nero.responses`.
        model: one model's name, or None for all in one map.
        dims: the number of components; at most 3 for t-SNE.
        seed: of everything random; the same seed gives the same map.

    Returns:
        `[model, sample, component]`, or `[sample, component]` for one model, with the coordinates
        `label` (if there are labels), and `mean` and `variance` of each response over the elements
        at which it is known. Unfinished samples keep their place, with missing coordinates;
        `attrs["missing"]` counts them.

    Raises:
        InputError: if a name is unknown, or there are too few finished samples.
        MissingExtra: if UMAP is not installed.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan({"untrained": net}, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> found = ob.embedding.embed(scan, "pca")
        >>> found.dims, sorted(found.coords)
        (('model', 'sample', 'component'), ['label', 'mean', 'model', 'sample', 'variance'])
    """
    import xarray as xr

    from .nero import responses

    check_name("method", method, METHODS)
    dims, seed = whole_number("dims", dims, 1), whole_number("seed", seed, 0)
    if method == "tsne" and dims > 3:
        raise InputError("dims", "at most 3 for t-SNE", dims)
    values = responses(scan, metric)
    if "model" not in values.dims:
        raise InputError("metric", "a response of a model", repr(metric))
    if model is not None:
        check_name("model", model, values["model"].values.tolist())
        values = values.sel(model=[model])
    moments = _moments(values)
    finished = moments.finished
    least = max(4, dims + 1)
    if finished.sum() < least:
        raise InputError("scan", f"{least} or more finished samples to embed", finished.sum())
    scores = _principal_components(values, moments, dims if method in _LINEAR else None)
    placed = np.full((*finished.shape, dims), np.nan)
    # Directions in which nothing differs become zeros.
    placed[finished] = _first(METHODS[method](scores, dims, seed) if scores.size else scores, dims)
    lead = values.shape[:2]
    kept = {name: entry for name, entry in values.coords.items() if "element" not in entry.dims}
    kept.setdefault("sample", xr.DataArray(np.arange(lead[1]), dims="sample"))
    found = xr.DataArray(
        placed,
        dims=("model", "sample", "component"),
        coords={
            **kept,
            "mean": (("model", "sample"), moments.mean),
            "variance": (("model", "sample"), moments.variance),
        },
        name=method,
        attrs={
            "method": method,
            "seed": seed,
            "missing": int((~finished).sum()),
            **{
                key: values.attrs[key]
                for key in ("metric", "meaning", "limits", "models", "group", "higher_is_better")
                if key in values.attrs
            },
        },
    )
    return found if model is None else found.isel(model=0)


def representatives(embedding: xr.DataArray, count: int = 6) -> Array:
    """Select samples that are spread over a map, for example to draw them next to it.

    The first is nearest to the middle of the map, each next one farthest from all before it.

    Args:
        embedding: `[sample, component]`, from `embed`; of several models the first is used.
        count: the number of samples.

    Returns:
        Indices along `sample`, `[count]`.

    Raises:
        InputError: if the map has fewer samples.

    Example:
        >>> import xarray as xr
        >>> places = [[0.0, 0], [1, 1], [2, 2], [1.1, 1]]
        >>> representatives(xr.DataArray(places, dims=("sample", "component")), 3).tolist()
        [1, 0, 2]
    """
    count = whole_number("count", count, 1)
    if not {"sample", "component"} <= {*getattr(embedding, "dims", ())}:
        raise InputError(
            "embedding",
            "[sample, component] from orbical.embedding.embed",
            type(embedding).__name__,
        )
    one = embedding.isel(model=0) if "model" in embedding.dims else embedding
    places = one.transpose("sample", "component").values
    known = np.flatnonzero(np.isfinite(places).all(1))
    if len(known) < count:
        raise InputError("count", f"at most {len(known)} samples", count)
    points = places[known]
    chosen = [int(((points - np.median(points, 0)) ** 2).sum(1).argmin())]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(1))
        nearest[chosen] = -1.0  # so that equal points are not chosen twice
        chosen.append(int(nearest.argmax()))
    return known[chosen]


@dataclass(frozen=True)
class _Moments:
    """What one pass over responses finds.

    Attributes:
        finished: `[M, N]`, whether a response is known anywhere.
        mean: `[M, N]`, its mean over the elements at which it is known, weighted by the group.
        variance: `[M, N]`, its variance over them.
        center: `[K]`, the mean of all responses at each element, 0 where none is known.
    """

    finished: Array
    mean: Array
    variance: Array
    center: Array


def _moments(values: xr.DataArray) -> _Moments:
    weights = values["weight"].values
    lead = values.shape[:2]
    finished, mean, variance = np.zeros(lead, bool), np.full(lead, np.nan), np.full(lead, np.nan)
    total, count = np.zeros(len(weights)), np.zeros(len(weights))
    for rows, (part,) in sample_blocks(values):
        seen = np.isfinite(part)
        known = np.where(seen, part, 0.0).astype(np.float64)
        finished[:, rows] = seen.any(-1)
        total += known.sum((0, 1))
        count += seen.sum((0, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            mass = seen @ weights
            mean[:, rows] = known @ weights / mass
            apart = np.where(seen, known - mean[:, rows, None], 0.0)
            variance[:, rows] = np.square(apart) @ weights / mass
    return _Moments(finished, mean, variance, total / count.clip(1))


def _principal_components(values: xr.DataArray, moments: _Moments, most: int | None) -> Array:
    """Return finished responses in the frame of their principal components, largest first.

    All methods start from there, which keeps all distances and removes rounding errors. The
    covariance is summed over blocks of samples, so that memory is that of the result, `[n, rank]`
    or at most `most` columns.
    """
    weights = values["weight"].values
    covariance = np.zeros((len(weights), len(weights)))
    for _, points in _centered(values, moments):
        covariance += points.T @ points
    variances, axes = np.linalg.eigh(covariance / (moments.finished.sum() - 1))
    variances, axes = variances[::-1], axes[:, ::-1]
    axes = axes[:, variances > _TINY * max(variances[0], _TINY)][:, :most]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    scores = np.empty((*moments.finished.shape, axes.shape[1]))
    for rows, points in _centered(values, moments):
        scores[:, rows][moments.finished[:, rows]] = points @ axes
    return np.asarray(scores[moments.finished])


def _centered(values: xr.DataArray, moments: _Moments) -> Iterator[tuple[slice, Array]]:
    """Yield finished responses `[n, K]` less their center, 0 in gaps, scaled by the weights."""
    roots = np.sqrt(values["weight"].values)
    for rows, (part,) in sample_blocks(values):
        points = part[moments.finished[:, rows]].astype(np.float64) - moments.center
        points *= roots
        yield rows, np.where(np.isfinite(points), points, 0.0)


def _first(columns: Array, count: int) -> Array:
    """Return the first columns, filled up with zeros."""
    return np.pad(columns[:, :count], ((0, 0), (0, max(0, count - columns.shape[1]))))


def _pca(scores: Array, dims: int, seed: int) -> Array:
    """Keep the directions in which the responses differ most."""
    return scores[:, :dims]


def _ica(scores: Array, dims: int, seed: int) -> Array:
    """Rotate the principal directions to be as independent as possible (FastICA)."""
    from sklearn.decomposition import FastICA

    kept = scores[:, :dims]
    found = FastICA(
        n_components=kept.shape[1], whiten="unit-variance", random_state=seed, max_iter=1000
    ).fit_transform(kept)
    return np.asarray(found)


def _tsne(scores: Array, dims: int, seed: int) -> Array:
    """Keep neighbors together (t-SNE by Barnes-Hut: bounded memory and time for each point)."""
    from sklearn.manifold import TSNE

    start = _first(scores, dims)
    start = start / start[:, 0].std() * 1e-4
    found = TSNE(
        dims,
        perplexity=min(30.0, (len(scores) - 1) / 3),
        init=start.astype(np.float32),
        method="barnes_hut",
        random_state=seed,
    ).fit_transform(scores[:, :50].astype(np.float32))
    return np.asarray(found, np.float64)


def _umap(scores: Array, dims: int, seed: int) -> Array:
    """Keep neighbors together (UMAP; approximate neighbors for many points)."""
    umap = import_extra("umap", "umap", "the embedding 'umap'", "umap-learn")
    start = _first(scores, dims)
    found = umap.UMAP(
        n_neighbors=min(NEIGHBORS, len(scores) - 1),
        n_components=dims,
        init=start / np.abs(start).max() * 10,
        random_state=seed,
        n_jobs=1,
    ).fit_transform(scores.astype(np.float32))
    return np.asarray(found, np.float64)


def _isomap(scores: Array, dims: int, seed: int) -> Array:
    """Keep distances along the cloud of points (ISOMAP, with landmarks for many points).

    Distances are lengths of shortest paths over nearest neighbors. They are computed from L
    landmarks to all n points (all points are landmarks up to `EXACT_SAMPLES`); classical scaling
    places the landmarks, and each other point follows from its distances to them (de Silva and
    Tenenbaum, 2004). Equal points are used once.
    """
    from scipy.sparse.csgraph import dijkstra
    from sklearn.decomposition import KernelPCA

    points, place = np.unique(scores, axis=0, return_inverse=True)
    if len(points) <= EXACT_SAMPLES:
        landmarks = np.arange(len(points))
    else:
        landmarks = np.random.default_rng(seed).choice(len(points), LANDMARKS, replace=False)
    graph = _connected(points, _neighbor_graph(points))
    kernel = dijkstra(graph, directed=False, indices=landmarks)
    np.square(kernel, out=kernel)
    kernel *= -0.5
    # Classical scaling is kernel PCA of these; for other points, both project on the same axes.
    scaling = KernelPCA(dims, kernel="precomputed", random_state=seed, copy_X=False)
    scaling.fit(kernel[:, landmarks])
    return np.asarray(scaling.transform(kernel.T)[place.reshape(-1)])


def _neighbor_graph(points: Array) -> csr_matrix:
    from scipy.sparse import csr_matrix
    from sklearn.neighbors import NearestNeighbors

    count = min(NEIGHBORS, len(points) - 1)
    finder = NearestNeighbors(n_neighbors=count).fit(points)
    return csr_matrix(finder.kneighbors_graph(mode="distance"))


def _connected(points: Array, graph: csr_matrix) -> csr_matrix:
    """Connect the parts of a graph: each but the largest by its shortest edge, until one is left.

    The number of parts at least halves each time; distances are computed block by block.
    """
    from scipy.sparse import csr_matrix, lil_matrix
    from scipy.sparse.csgraph import connected_components
    from sklearn.metrics import pairwise_distances_argmin_min

    while True:
        islands, island = connected_components(graph, directed=False)
        if islands == 1:
            return graph
        largest = np.bincount(island).argmax()
        bridges = lil_matrix(graph.shape)
        for here in np.delete(np.arange(islands), largest):
            inside, outside = np.flatnonzero(island == here), np.flatnonzero(island != here)
            end, length = pairwise_distances_argmin_min(points[inside], points[outside])
            best = length.argmin()
            bridges[inside[best], outside[end[best]]] = length[best]
        graph = csr_matrix(graph + bridges)


METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    "pca": _pca,
    "ica": _ica,
    "isomap": _isomap,
    "tsne": _tsne,
    "umap": _umap,
}
_LINEAR = ("pca", "ica")
"""Methods that use as many principal components as they return."""
