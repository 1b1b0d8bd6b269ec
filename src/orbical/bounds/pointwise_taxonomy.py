"""Where a symmetry is correct, incorrect or extrinsic, point by point and element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.spatial import cKDTree

from .._arrays import ArrayLike, as_numpy
from ..actions import ActionTree
from ..errors import InputError, real_number
from ..groups import Group
from . import table_checks as checks
from ._near_points import Nearest
from .matching import Mover

__all__ = ["Density", "Taxonomy", "confidence_density", "taxonomy"]

Array = np.ndarray
KINDS = ("correct", "incorrect", "extrinsic")


@dataclass(frozen=True)
class Density:
    """The support where the density of the data reaches a threshold.

    The density at x is the share of samples within `bandwidth` of x, over the volume of that ball.

    Args:
        threshold: the least density inside the support, > 0.
        bandwidth: the radius of the balls, > 0.

    Example:
        >>> Density(threshold=0.1, bandwidth=0.5)
        Density(threshold=0.1, bandwidth=0.5)
    """

    threshold: float
    bandwidth: float

    def __post_init__(self) -> None:
        for name in ("threshold", "bandwidth"):
            value = getattr(self, name)
            if not real_number(name, value) > 0:
                raise InputError("support", f"a {name} > 0", repr(value))


Support = float | Density | Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """The kind of equivariance at each element and sample: correct, incorrect or extrinsic.

    Attributes:
        shares: `[K, N, 3]`, how much of each kind; each 0 or 1 unless several samples lie where
            the element carries the sample and only some of them agree with it.
        weights: `[K]`, of the group's elements.
        mass: `[N]`, of the samples.
    """

    shares: Array
    weights: Array
    mass: Array

    def totals(self) -> dict[str, float]:
        """Return the share of each kind over samples and elements; they sum to 1."""
        return dict(zip(KINDS, (self.mass @ self.by_sample()).tolist(), strict=True))

    def by_sample(self) -> Array:
        """Return `[N, 3]`, the share of each kind along the orbit of each sample."""
        return np.asarray(np.einsum("k,kns->ns", self.weights, self.shares))

    def by_element(self) -> Array:
        """Return `[K, 3]`, the share of each kind over the samples, for each element."""
        return np.asarray(np.einsum("n,kns->ks", self.mass, self.shares))


def taxonomy(
    x: object,
    truth: ArrayLike,
    group: Group | str,
    *,
    support: Support,
    action: ActionTree | None = None,
    function: Callable[[Array], Array] | None = None,
    representation: object | None = None,
    tolerance: float | None = None,
    mass: ArrayLike | None = None,
) -> Taxonomy:
    """Classify equivariance at each sample x and element g: correct, incorrect or extrinsic.

    With f the truth (P1 Definition 2, after Wang et al.): extrinsic where g x is outside the
    support; otherwise correct where f(g x) = g f(x), incorrect elsewhere. The support must be
    stated, since a finite sample does not define one.

    Args:
        x: `[N, d]` points (or whatever `action` moves).
        truth: `[N]` labels, or `[N, D]` values.
        group: the symmetry, or its text such as `"cyclic:4"`.
        support: a distance (g x is inside when a sample is that near), a `Density`, or a function
            from points `[M, ...]`, shaped as x is, to booleans `[M]`.
        action: how the group moves `x`; `orbical.actions.Points()` by default.
        function: f itself, from points `[M, ...]` to `[M]` or `[M, D]`; by default f(g x) is that
            of the samples nearest to g x, by their mass. Under the identity these are the sample
            itself and its twins: those with another label are incorrect, whatever the symmetry.
        representation: `[K, D, D]`, how the elements move values; labels stay as they are.
        tolerance: how far f(g x) may be from g f(x) for values; None means 1e-6 of the largest.
            Labels must be equal.
        mass: `[N]`, the probability of each sample; equal by default.

    Returns:
        The shares of each kind at each element and sample.

    Raises:
        InputError: if an argument or the result of a function does not fit the samples.

    Example:
        >>> from orbical.groups import cyclic
        >>> x = [[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]
        >>> taxonomy(x, [0, 1, 0], cyclic(2), support=0.1).shares.argmax(-1)
        array([[0, 0, 0],
               [1, 1, 2]])
    """
    mover = Mover(x, group, action)
    size = len(mover)
    weight = checks.sample_mass(mass, size)
    values, moved = _pointwise_truth(truth, representation, size, len(mover.group))
    if tolerance is None:
        whole = as_numpy("truth", truth).dtype.kind in "iub"
        tolerance = 0.0 if whole else 1e-6 * float(np.abs(values).max())
    inside = _pointwise_support(support, mover)
    radius = float(support) if isinstance(support, Real) else np.inf
    search = Nearest(mover.points, radius) if function is None or inside is None else None
    shares = np.empty((len(mover.group), size, 3))
    for rows, images in mover.blocks():
        flat = images.reshape(-1, images.shape[-1])
        target = np.broadcast_to(moved(rows), (*images.shape[:2], values.shape[1]))
        target = target.reshape(len(flat), -1)
        distance, query, sample = np.full(len(flat), np.inf), *np.zeros((2, 0), np.int64)
        if search is not None:  # truth or support needs neighbors
            distance, query, sample = search(flat)
        if function is not None:
            there = _taxonomy_answers(function, flat.reshape(-1, *mover.shape), values.shape[1])
            agree = (np.abs(there - target).max(-1) <= tolerance).astype(np.float64)
        else:
            agrees = np.abs(values[sample] - target[query]).max(-1) <= tolerance
            near = np.bincount(query, weights=weight[sample], minlength=len(flat))
            right = np.bincount(query, weights=weight[sample] * agrees, minlength=len(flat))
            agree = right / np.where(near > 0, near, 1)
        present = np.isfinite(distance) if inside is None else inside(flat)
        kinds = np.stack([present * agree, present * (1 - agree), ~present], axis=-1)
        shares[:, rows] = kinds.reshape(*images.shape[:2], 3)
    return Taxonomy(shares, np.asarray(mover.group.weights), weight)


def _taxonomy_answers(function: Callable[[Array], Array], points: Array, width: int) -> Array:
    """Evaluate the function at points, `[M, D]`, and check the shape of the result."""
    answer = np.asarray(function(points), dtype=np.float64)
    expected = (len(points), width)
    if answer.shape != expected and not (width == 1 and answer.shape == expected[:1]):
        raise InputError(
            "function",
            f"results of shape {list(expected)} for {len(points)} points, as the truth has",
            answer,
        )
    return answer.reshape(expected)


def _pointwise_truth(
    truth: ArrayLike, representation: object | None, size: int, elements: int
) -> tuple[Array, Callable[[slice], Array]]:
    values = as_numpy("truth", truth, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != size:
        raise InputError(
            "truth",
            f"[sample] labels or [sample, D] values for {size} samples",
            truth,
        )
    if representation is None:
        return values, lambda rows: values[rows][None]
    matrices = as_numpy("representation", representation, np.float64)
    if matrices.shape != (elements, values.shape[1], values.shape[1]):
        raise InputError(
            "representation", f"shape [{elements}, {values.shape[1]}, {values.shape[1]}]", matrices
        )
    return values, lambda rows: np.einsum("kij,nj->kni", matrices, values[rows])


def _pointwise_support(support: Support, mover: Mover) -> Callable[[Array], Array] | None:
    """Return a support as a function from points `[M, D]` to booleans; None for a distance."""
    if callable(support):
        shape = mover.shape

        def given(flat: Array) -> Array:
            answer = np.asarray(support(flat.reshape(-1, *shape)))
            if answer.shape != (len(flat),) or answer.dtype != bool:
                raise InputError(
                    "support",
                    "the function to return a boolean for each point",
                    f"shape {list(answer.shape)} and dtype {answer.dtype}",
                )
            return answer

        return given
    if isinstance(support, Density):
        tree = cKDTree(mover.points)
        size, dimensions = mover.points.shape
        ball = math.pi ** (dimensions / 2) / math.gamma(dimensions / 2 + 1)
        least = support.threshold * size * ball * support.bandwidth**dimensions

        def dense(flat: Array) -> Array:
            count = tree.query_ball_point(flat, support.bandwidth, return_length=True)
            return np.asarray(np.asarray(count) >= least)

        return dense
    if isinstance(support, bool) or not isinstance(support, Real) or not support > 0:
        raise InputError(
            "support", "a distance > 0, a Density or a function of points", repr(support)
        )
    return None


def confidence_density(
    confidence: ArrayLike,
    at: ArrayLike,
    *,
    window: float,
    mass: ArrayLike | None = None,
    correct: ArrayLike | None = None,
) -> tuple[Array, Array | None]:
    """Return the windowed density r(p) of the confidence, and Acc_p in the same window.

    P1 Eq. 2 with a finite epsilon: the mass with `|h_P - p| < window`, over the length of that
    window inside [0, 1]; Acc_p is the share of it that is correct, NaN in an empty window.

    Args:
        confidence: `[N]` in [0, 1].
        at: `[P]` values p.
        window: epsilon, in (0, 1].
        mass: `[N]`; equal by default.
        correct: `[N]`, to compute the accuracy.

    Returns:
        The density `[P]`, and the accuracy `[P]` or None.

    Example:
        >>> sure, at = [0.1, 0.9], [0.1, 0.5]
        >>> density, accuracy = confidence_density(sure, at, window=0.2, correct=[1, 0])
        >>> density.round(3), accuracy
        (array([1.667, 0.   ]), array([ 1., nan]))
    """
    values = checks.checked_table_numbers("confidence", confidence, "sample")
    checks.probabilities("confidence", values)
    p = checks.checked_table_numbers("at", at, "value")
    checks.probabilities("at", p)
    if not 0 < window <= 1:
        raise InputError("window", "a half-width in (0, 1]", repr(window))
    weight = checks.sample_mass(mass, len(values))
    order = np.argsort(values, kind="stable")
    low = np.searchsorted(values[order], p - window, side="right")
    high = np.searchsorted(values[order], p + window, side="left")

    def within(weights: Array) -> Array:
        total = np.concatenate([[0.0], np.cumsum(weights[order])])
        return np.asarray(total[high] - total[low])

    length = np.minimum(1, p + window) - np.maximum(0, p - window)
    inside = within(weight)
    if correct is None:
        return inside / length, None
    right = checks.checked_table_numbers("correct", correct, "sample", len(values))
    filled = inside > 0
    accuracy = np.full(len(p), np.nan)
    accuracy[filled] = within(weight * right)[filled] / inside[filled]
    return inside / length, accuracy
