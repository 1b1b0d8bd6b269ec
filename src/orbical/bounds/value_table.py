"""Value tables: the points on which every regression bound is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import ArrayLike, as_numpy
from ..actions import ActionTree
from ..calibration import model_index
from ..errors import InputError
from ..groups import Group
from ..store import arrays_of
from . import matching
from . import table_checks as checks

__all__ = ["ValueTable"]

Array = np.ndarray
_FORMS = {1: "scalar", 2: "diagonal", 3: "full"}


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Points with their values and orbits, and the predictions of an equivariant regressor.

    Each point is a group element times the representative of its orbit. A point with a stabilizer
    is so in several ways, and all of them are listed: `point[r] = element[r] * representative`.
    Summing over them keeps the best fit an equivariant function.

    Variances have one of three forms: an invariant scalar `[N]` (that is s times the identity), a
    diagonal `[N, D]`, which only signed permutations (times scales) can move, or a full covariance
    `[N, D, D]`, which rotates as R Sigma R^T.

    Args:
        orbit: `[N]` whole numbers, the orbit of each point.
        value: `[N, D]` (or `[N]`), the truth f.
        mass: `[N]`, each point's probability; equal by default.
        mean: `[N, D]`, the prediction h_mu of a model.
        variance: its predicted variance, in one of the three forms.
        aleatoric: the true variance, in one of the three forms; 0 by default.
        point: `[R]`, with `element`: the pairs described above.
        element: `[R]`, indices into the representation that is passed to `regression`.
        undone: `[R]`, where given, `point[r] = undone[r]^-1 * element[r] * representative`, for
            samples of a group that do not contain the products of their elements.
        tolerance: as in `OrbitTable`.
        closed: as in `OrbitTable`.
        invariance_gap: the measured equivariance defect of a scanned model.

    Raises:
        InputError: if a size or a value does not fit.

    Example:
        >>> table = ValueTable(orbit=[0, 0, 1], value=[1.0, 3.0, 5.0], variance=[2.0, 2.0, 1.0])
        >>> table.value.shape
        (3, 1)
    """

    orbit: Array
    value: Array
    mass: Array = None  # type: ignore[assignment] # equal masses are filled in
    mean: Array | None = None
    variance: Array | None = None
    aleatoric: Array | None = None
    point: Array | None = None
    element: Array | None = None
    undone: Array | None = None
    tolerance: float | None = None
    closed: bool = True
    invariance_gap: float | None = None

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the dataclass is frozen for its users, not for its own making
        value = checks.columns("value", self.value)
        size, dimension = value.shape
        keep(self, "value", value)
        ids = checks.checked_table_integers("orbit", checks.partition("orbit", self.orbit), size)
        keep(self, "orbit", np.unique(ids, return_inverse=True)[1])
        keep(self, "mass", checks.sample_mass(self.mass, size))
        if self.mean is not None:
            mean = checks.columns("mean", self.mean)
            if mean.shape != value.shape:
                raise InputError("mean", f"shape {list(value.shape)}, as the values have", mean)
            keep(self, "mean", mean)
        if self.variance is not None:
            variance = _value_table_variance("variance", self.variance, size, dimension)
            if _least(variance) <= 0:
                raise InputError(
                    "variance",
                    "positive variances (positive definite covariances)",
                    f"{_least(variance):g}",
                )
            keep(self, "variance", variance)
        if self.aleatoric is not None:
            aleatoric = _value_table_variance("aleatoric", self.aleatoric, size, dimension)
            if _least(aleatoric) < -1e-12 * np.abs(aleatoric).max():
                raise InputError("aleatoric", "variances >= 0", "a negative one")
            keep(self, "aleatoric", aleatoric)
        if (self.point is None) != (self.element is None):
            raise InputError("point, element", "both or neither", "one")
        if self.point is not None and self.element is not None:
            pairs = len(np.asarray(self.point))
            point = checks.checked_table_integers("point", self.point, pairs, below=size)
            keep(self, "point", point)
            keep(self, "element", checks.checked_table_integers("element", self.element, pairs))
            if self.undone is not None:
                keep(self, "undone", checks.checked_table_integers("undone", self.undone, pairs))
            if len(np.unique(point)) != size:
                raise InputError("point", "an element for every point", "none for some")

    @property
    def form(self) -> str | None:
        """The form of the predicted variance: `scalar`, `diagonal`, `full`, or None."""
        return None if self.variance is None else _FORMS[self.variance.ndim]

    def covariances(self, variance: Array | None) -> Array:
        """Return a variance of any form as full covariances `[N, D, D]`; None is 0."""
        size, dimension = self.value.shape
        if variance is None:
            return np.zeros((size, dimension, dimension))
        if variance.ndim == 3:
            return variance
        wide = variance[:, None] if variance.ndim == 1 else variance
        return np.asarray(np.eye(dimension) * wide[:, None, :])

    @classmethod
    def from_data(
        cls,
        x: Any,
        value: ArrayLike,
        group: Group | str,
        *,
        tolerance: float | None = None,
        action: ActionTree | None = None,
        **predictions: ArrayLike,
    ) -> ValueTable:
        """Make a table by matching points under a group.

        The element indices are those of `group`, so that `group.linear("plane")` is the
        representation of vectors. Samples of a group that do not contain their products, such as
        those of `rotations3d`, link points by products of two elements; where a point is linked to
        the first of its orbit only through others, the table has no elements, and `regression`
        takes no representation.

        Args:
            x: as in `match_orbits`.
            value: `[N, D]` (or `[N]`).
            group: as in `match_orbits`.
            tolerance: as in `match_orbits`.
            action: as in `match_orbits`.
            predictions: `mass`, `mean`, `variance` and `aleatoric`.

        Returns:
            The table.

        Example:
            >>> from orbical.groups import cyclic
            >>> x = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
            >>> ValueTable.from_data(x, x, cyclic(4)).element
            array([0, 1, 2])
        """
        orbits = matching.match_orbits(x, group, tolerance=tolerance, action=action)
        found = matching.match_elements(x, group, orbits, action=action)
        elements: dict[str, Any] = dict(zip(("point", "element", "undone"), found, strict=True))
        if len(np.unique(elements["point"])) < len(orbits.orbit):
            elements = {}  # some points are linked only through others
        ids, facts = matching.ids_and_facts(orbits)
        return cls(ids, value, **facts, **elements, **predictions)

    @classmethod
    def from_scan(cls, scan: Any, model: str | None = None, *, orbit: Any) -> ValueTable:
        """Make a table from a scan: the truth, and the predictions of a model for the samples.

        Args:
            scan: an `orbical.Scan` of a regression task with one output for each sample, or its
                dataset.
            model: the name of the model, if the scan has several.
            orbit: `[N]` ids, one for each sample, `Orbits`, or a table of the same samples, such as
                `ValueTable.from_data(x, value, scan.group)`, whose group elements are kept.

        Returns:
            The table, with the measured invariance gap. The model need not be equivariant.

        Raises:
            InputError: if the scan is unfinished or not of such a task, or an id is missing.

        Example:
            >>> import torch
            >>> import orbical as ob
            >>> x = torch.tensor([[[1.0, 0.0]], [[-1.0, 0.0]]])
            >>> scan = ob.scan(lambda x: x[:, 0] + 1, (x, x[:, 0]), group="cyclic:2",
            ...                task=ob.tasks.Regression(ob.actions.Points(), "vector"),
            ...                progress=False)
            >>> table = ValueTable.from_scan(scan, orbit=[0, 0])
            >>> table.mean[:, 0], round(table.invariance_gap, 6)
            (array([2., 0.]), 1.414214)
        """
        from ._scan_outputs import invariance_gap, outputs_at_identity

        arrays = arrays_of(scan)
        number = model_index(arrays, model)
        missing = [name for name in ("mean", "target") if name not in arrays]
        if missing or len(arrays.dims["mean"]) != 4:
            raise InputError(
                "scan",
                "the scan of a regression task with values and one output for each sample",
                f"no {' or '.join(missing) or 'such output'}",
            )
        found: dict[str, Any] = {
            "value": arrays.read("target"),
            "mean": outputs_at_identity(arrays, "mean", number),
        }
        if "covariance" in arrays:
            found["variance"] = outputs_at_identity(arrays, "covariance", number)
        elif "variance" in arrays:
            variance = outputs_at_identity(arrays, "variance", number)
            found["variance"] = variance[:, 0] if variance.shape[1] == 1 else variance
        found = {name: values.astype(np.float64) for name, values in found.items()}
        if not all(np.isfinite(values).all() for values in found.values()):
            raise InputError("scan", "a finished scan", "missing results", remedy="finish it first")
        gap = invariance_gap(arrays, number)
        if isinstance(orbit, ValueTable):
            return replace(orbit, **found, invariance_gap=gap)
        ids, facts = matching.ids_and_facts(orbit)
        return cls(ids, **found, **facts, invariance_gap=gap)

    @classmethod
    def from_permutations(
        cls, permutations: ArrayLike, value: ArrayLike, **predictions: ArrayLike
    ) -> ValueTable:
        """Make a table from a finite group that acts on a finite set.

        Args:
            permutations: `[K, N]`, the index of g x_i for each element g and point i.
            value: `[N, D]` (or `[N]`).
            predictions: `mass`, `mean`, `variance` and `aleatoric`.

        Returns:
            The table.

        Example:
            >>> table = ValueTable.from_permutations([[0, 1, 2], [1, 0, 2]], [1.0, 3.0, 5.0])
            >>> table.point, table.element
            (array([0, 1, 2, 2]), array([0, 1, 0, 1]))
        """
        moves = np.asarray(permutations)
        orbit = matching.orbits_of_permutations(moves)
        representative = np.unique(orbit, return_index=True)[1]
        reached = moves[:, representative]
        element = np.indices(reached.shape)[0].ravel()
        point = reached.ravel()
        order = np.lexsort((element, point))
        return cls(orbit, value, point=point[order], element=element[order], **predictions)


def _value_table_variance(name: str, value: ArrayLike, size: int, dimension: int) -> Array:
    array = as_numpy(name, value, np.float64)
    shapes = {1: (size,), 2: (size, dimension), 3: (size, dimension, dimension)}
    if array.shape != shapes.get(array.ndim):
        raise InputError(
            name,
            f"shape [{size}] (scalar), [{size}, {dimension}] (diagonal) or [{size}, "
            f"{dimension}, {dimension}] (full)",
            array,
        )
    if not np.isfinite(array).all():
        raise InputError(name, "finite numbers", "NaN or infinite values")
    if array.ndim == 3 and size:
        apart = np.abs(array - array.transpose(0, 2, 1)).max((1, 2))
        if (apart > 1e-5 * np.abs(array).max((1, 2))).any():
            raise InputError(name, "symmetric covariances", "others")
    return array


def _least(variance: Array) -> float:
    return float(np.linalg.eigvalsh(variance).min() if variance.ndim == 3 else variance.min())
