"""Maps of samples by how models respond along their orbits.

A sample's response at K elements is a point in K dimensions; an embedding shows these points in
two. Samples that lie near each other respond in the same way. Every method starts from the distance
`sqrt(sum_g w_g (r_g - s_g)^2)`, the weighted root mean square difference of two responses.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, section 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._imports_and_paths import import_extra
from ._lazy import xr
from .errors import InputError, check_name, whole_number
from .nero import ROWS, Sums, mean_over_models, moments
from .store import Scan, ScanArrays, arrays_of, responses, row_runs

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["embed", "representatives"]

Array = np.ndarray

EXACT_SAMPLES = 5_000
"""ISOMAP uses all distances up to this many points, and landmarks beyond."""
LANDMARKS = 500
NEIGHBORS = 15
MOST_COMPONENTS = 50
"""Principal components that methods start from; the others hold next to no variance."""
MOST_PRODUCTS = 5e9
"""Multiplications spent on the principal axes; of more samples every n-th is used."""
POINTS = ("samples", "responses")
_TINY = 1e-9


def embed(
    scan: Scan | xr.Dataset,
    method: str = "pca",
    metric: str = "score",
    model: str | None = None,
    dims: int = 2,
    seed: int = 0,
    points: str = "samples",
) -> xr.DataArray:
    """Embed the responses of all samples in a few dimensions.

    A sample is one point: its response, or with `model=None` those of all models side by side, so
    that samples near each other are treated alike by every model. This is the map of the view and
    of reports. With `points="responses"` every response of every model is a point of its own in one
    common map: where a sample lies for one model, and where for another.

    No method needs memory quadratic in the samples: all start from at most 50 principal components,
    summed over blocks of samples; t-SNE uses nearest neighbors (Barnes-Hut), UMAP likewise, ISOMAP
    the distances from 500 landmarks where there are more than 5,000 points.

    A response may have gaps, for example where a detector's key object leaves the view. A gap is
    filled with the mean of the other points at that element.

    Args:
        scan: a scan, or its `data`.
        method: `"pca"`, `"ica"`, `"isomap"`, `"tsne"` or `"umap"` (extra `umap`).
        metric: as in `orbical.nero.responses`.
        model: one model's name, or None for all.
        dims: the number of components; at most 3 for t-SNE.
        seed: of everything random; the same seed gives the same map.
        points: `"samples"`, or `"responses"`.

    Returns:
        `[sample, component]`, or `[model, sample, component]` for responses, with the coordinates
        `label` (if there are labels), and `mean` and `variance` of each response over the elements
        at which it is known (of several, their means). Samples without a response of each model
        keep their place, with missing coordinates; `attrs["missing"]` counts them.

    Raises:
        InputError: if a name is unknown, or there are too few finished samples.
        MissingExtra: if UMAP is not installed.

    See Also:
        representatives: Samples that are spread over a map.
        orbical.nero.responses: What is embedded.

    References:
        Zhao et al., Evaluating Machine Learning Models with NERO, section 2.4.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan({"untrained": net}, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> found = ob.embedding.embed(scan, "pca")
        >>> found.dims, sorted(found.coords)
        (('sample', 'component'), ['label', 'mean', 'sample', 'variance'])
    """
    check_name("method", method, METHODS)
    check_name("points", points, POINTS)
    dims, seed = whole_number("dims", dims, 1), whole_number("seed", seed, 0)
    if method == "tsne" and dims > 3:
        raise InputError("dims", "at most 3 for t-SNE", dims)
    arrays, like = arrays_of(scan), responses(scan, metric)
    if "model" not in like.dims:
        raise InputError("metric", "a response of a model", repr(metric))
    if model is not None:
        check_name("model", model, arrays.models)
    chosen = [*range(len(arrays.models))] if model is None else [arrays.models.index(model)]
    apart = points == "responses"
    name, most = str(like.name), embedding_components(method, dims)
    sums = moments(arrays, name)
    sets = [[place] for place in chosen] if apart else [chosen]
    components = principal_components(arrays, name, sets, sums, most)
    finished = np.isfinite(components.scores).all(-1)
    least = max(4, dims + 1)
    if finished.sum() < least:
        raise InputError("scan", f"{least} or more finished samples to embed", finished.sum())
    placed = np.full((*finished.shape, dims), np.nan)
    placed[finished] = embedded_positions(components.scores[finished], method, dims, seed)
    shown = [sums.orbit_mean[chosen], sums.orbit_variance[chosen]]
    lead: tuple[str, ...] = ("model", "sample") if apart else ("sample",)
    if not apart:
        placed, shown = placed[0], [mean_over_models(values) for values in shown]
    coords = {
        name: coord.isel(model=chosen, missing_dims="ignore")
        for name, coord in like.coords.items()
        if coord.dims and {*coord.dims} <= {*lead}
    }
    if model is not None and not apart:
        coords["model"] = like["model"][chosen[0]]
    coords.setdefault("sample", xr.DataArray(np.arange(arrays.samples), dims="sample"))
    about = {
        key: like.attrs[key]
        for key in ("metric", "meaning", "units", "limits", "models", "group", "higher_is_better")
        if key in like.attrs
    }
    about |= {"method": method, "seed": seed, "explained": components.explained}
    about["missing"] = int((~finished).sum())
    coords |= {"mean": (lead, shown[0]), "variance": (lead, shown[1])}
    return xr.DataArray(placed, coords, (*lead, "component"), name=method, attrs=about)


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

    See Also:
        embed: The map.

    Example:
        >>> import xarray as xr
        >>> places = [[0.0, 0], [1, 1], [2, 2], [1.1, 1]]
        >>> representatives(xr.DataArray(places, dims=("sample", "component")), 3).tolist()
        [1, 0, 2]
    """
    count = whole_number("count", count, 1)
    if not {"sample", "component"} <= {*getattr(embedding, "dims", ())}:
        expected = "[sample, component] from orbical.embedding.embed"
        raise InputError("embedding", expected, type(embedding))
    first = embedding.isel(model=0) if "model" in embedding.dims else embedding
    places = first.transpose("sample", "component").values
    known = np.flatnonzero(np.isfinite(places).all(1))
    if len(known) < count:
        raise InputError("count", f"at most {len(known)} samples", count)
    return np.asarray(known[spread_points(places[known], count)])


def spread_points(points: Array, count: int) -> Array:
    """Return the places of `count` of points `[n, d]`: the middle one, then always the farthest.

    >>> spread_points(np.array([[0.0], [1.0], [4.0], [1.5]]), 3).tolist()
    [1, 2, 0]
    """
    chosen = [int(((points - np.median(points, 0)) ** 2).sum(1).argmin())]
    columns = np.ascontiguousarray(points.T)
    nearest = np.full(len(points), np.inf)
    while len(chosen) < count:
        last = chosen[-1]
        np.minimum(nearest, sum(np.square(one - one[last]) for one in columns), out=nearest)
        nearest[last] = -1.0  # so that equal points are not chosen twice
        chosen.append(int(nearest.argmax()))
    return np.array(chosen)


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components of points, largest first.

    Attributes:
        scores: `[sets, N, P]`, NaN for samples without a response of each model of a set.
        explained: Fractions of the variance of the first two.
        used: The number of samples that the axes were computed from.
    """

    scores: Array
    explained: list[float]
    used: int


def principal_components(
    arrays: ScanArrays, name: str, sets: Sequence[Sequence[int]], sums: Sums, most: int
) -> PrincipalComponents:
    """Return points in the frame of their principal components, the `most` largest.

    All methods start from there, which keeps distances and removes rounding errors. The covariance
    is summed over blocks of samples, so that memory is that of the result.

    Args:
        arrays: The arrays of a scan.
        name: The array of responses.
        sets: Sets of models. The responses of a set lie side by side in one point; those of
            different sets are different points of one map.
        sums: Sums of the responses over all samples, which give the center.
        most: The most components; see `embedding_components`.
    """
    whole, across = sums[:], len(sets[0])
    size = across * len(arrays.group)
    stride = max(1, int(np.ceil(arrays.samples * len(sets) * size**2 / MOST_PRODUCTS)))
    with np.errstate(invalid="ignore"):
        total, count = (part[np.array(sets), 0].sum(0) for part in (whole.total, whole.count))
        center = np.nan_to_num(total / count).reshape(-1)
    roots = np.tile(np.sqrt(arrays.weights), across)

    def points() -> Iterator[tuple[int, slice, Array]]:
        """Yield centered points, 0 where a response is missing; NaN without any of a model."""
        for block in arrays.blocks(name):
            for number, models in enumerate(sets):
                each = [arrays.responses(name, block, model) for model in models]
                for rows in row_runs(len(each[0]), ROWS):
                    some = np.concatenate([one[rows] for one in each], axis=1, dtype=np.float64)
                    some -= center
                    if not np.isfinite(some.sum()):
                        seen: Array = np.isfinite(some)
                        by_model = seen.reshape(len(some), across, -1)
                        begun: Array = np.all(np.any(by_model, axis=2), axis=1)
                        some[~seen & begun[:, None]] = 0
                        some[~begun] = np.nan
                    yield number, slice(block.start + rows.start, block.start + rows.stop), some

    second, first, used = np.zeros((size, size)), np.zeros(size), 0
    for _, rows, some in points():
        some = some[-rows.start % stride :: stride]
        if np.isnan(some[:, 0]).any():
            some = some[~np.isnan(some[:, 0])]
        second += some.T @ some
        first += some.sum(0)
        used += len(some)
    if not used:
        return PrincipalComponents(np.full((len(sets), arrays.samples, 1), np.nan), [], 0)
    shift = first / used
    covariance = (second / used - np.outer(shift, shift)) * np.outer(roots, roots)
    variances, axes = np.linalg.eigh(covariance)
    variances, axes = variances[::-1].clip(0), axes[:, ::-1]
    rounding = _TINY * float(np.square(roots * center).sum())
    kept = (variances > _TINY * max(variances[0], rounding)) & (np.arange(size) < most)
    axes = axes[:, kept]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]) * roots[:, None]
    scores = np.empty((len(sets), arrays.samples, axes.shape[1]))
    for number, rows, some in points():
        np.matmul(some, axes, out=scores[number, rows])
    scores -= shift @ axes
    explained = variances[:2] / (float(variances.sum()) or 1.0)
    return PrincipalComponents(scores, explained.tolist(), used)


def embedding_components(method: str, dims: int) -> int:
    """Return how many principal components a method starts from; a linear one returns them."""
    return dims if method in ("pca", "ica") else MOST_COMPONENTS


def embedded_positions(points: Array, method: str, dims: int, seed: int) -> Array:
    """Return the positions `[n, dims]` of points by a method; zeros where nothing differs."""
    scores = points.astype(np.float64)
    return _first(METHODS[method](scores, dims, seed) if scores.size else scores, dims)


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
    ica = FastICA(kept.shape[1], whiten="unit-variance", random_state=seed, max_iter=1000)
    return np.asarray(ica.fit_transform(kept))


def _tsne(scores: Array, dims: int, seed: int) -> Array:
    """Keep neighbors together (t-SNE by Barnes-Hut: bounded memory and time for each point)."""
    from sklearn.manifold import TSNE

    start = _first(scores, dims)
    start = (start / start[:, 0].std() * 1e-4).astype(np.float32)
    perplexity = min(30.0, (len(scores) - 1) / 3)
    tsne = TSNE(dims, perplexity=perplexity, init=start, random_state=seed)
    return np.asarray(tsne.fit_transform(scores.astype(np.float32)), np.float64)


def _umap(scores: Array, dims: int, seed: int) -> Array:
    """Keep neighbors together (UMAP; approximate neighbors for many points)."""
    umap = import_extra("umap", "umap", "the embedding 'umap'", "umap-learn")
    start = _first(scores, dims)
    start = start / np.abs(start).max() * 10
    neighbors = min(NEIGHBORS, len(scores) - 1)
    mapper = umap.UMAP(neighbors, dims, init=start, random_state=seed, n_jobs=1)
    return np.asarray(mapper.fit_transform(scores.astype(np.float32)), np.float64)


def _isomap(scores: Array, dims: int, seed: int) -> Array:
    """Keep distances along the cloud of points (ISOMAP, with landmarks for many points).

    Distances are lengths of shortest paths over nearest neighbors. They are computed from L
    landmarks to all n points (all points are landmarks up to `EXACT_SAMPLES`); classical scaling
    places the landmarks, and each other point follows from its distances to them (de Silva and
    Tenenbaum, 2004). Equal points are used once.
    """
    from scipy.sparse.csgraph import dijkstra

    points, place = np.unique(scores, axis=0, return_inverse=True)
    if len(points) <= EXACT_SAMPLES:
        landmarks = np.arange(len(points))
    else:
        landmarks = np.random.default_rng(seed).choice(len(points), LANDMARKS, replace=False)
    graph = _connected_for_isomap(points, _neighbor_graph(points))
    kernel = np.empty((len(landmarks), len(points)), np.float32)
    for rows in row_runs(len(landmarks), LANDMARKS):
        kernel[rows] = -0.5 * np.square(dijkstra(graph, directed=False, indices=landmarks[rows]))
    whole = len(landmarks) == len(points)
    positions = kernel.T @ _scaled_embedding_axes(
        kernel if whole else kernel[:, landmarks], dims, seed
    )
    positions -= positions[landmarks].mean(0)
    return np.asarray(positions[place.reshape(-1)])


def _scaled_embedding_axes(kernel: Array, dims: int, seed: int) -> Array:
    """Return what a kernel `[L, L]` is multiplied by in classical scaling, without a copy of it.

    These are the main axes of the kernel once rows and columns are centered, each divided by its
    length. Of an axis without a length it is zeros.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    def centered(columns: Array) -> Array:
        found = kernel @ (columns - columns.mean(0))
        return np.asarray(found - found.mean(0))

    size = len(kernel)
    if size <= 10 * dims:
        squares, axes = np.linalg.eigh(centered(np.eye(size)))
    else:
        operator = LinearOperator((size, size), centered, dtype=kernel.dtype)
        start = np.random.default_rng(seed).uniform(-1, 1, size).astype(kernel.dtype)
        squares, axes = eigsh(operator, dims, v0=start)
    largest = np.argsort(squares)[::-1][:dims]
    squares, axes = squares[largest], axes[:, largest]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    known = squares > _TINY * max(squares[0], 0)
    return np.where(known, axes / np.sqrt(np.where(known, squares, 1)), 0)


def _neighbor_graph(points: Array) -> csr_matrix:
    from scipy.sparse import csr_matrix
    from sklearn.neighbors import NearestNeighbors

    count = min(NEIGHBORS, len(points) - 1)
    finder = NearestNeighbors(n_neighbors=count).fit(points)
    return csr_matrix(finder.kneighbors_graph(mode="distance"))


def _connected_for_isomap(points: Array, graph: csr_matrix) -> csr_matrix:
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
