"""Orbit tables: the label masses on which every classification bound is computed.

Bounds work on finite orbit masses, not on densities: P1 integrates densities over orbits of
different dimensions, which mixes units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import ArrayLike, as_array, as_numpy
from .._text import number
from ..actions import ActionTree
from ..errors import InputError
from ..groups import Group
from . import matching
from . import table_checks as checks
from .any_model import ModelOutputs, model_outputs_by_orbit, own_model_outputs
from .fibers import Fibers, fiber_index, fibers_are_single

__all__ = ["OrbitTable"]

Array = np.ndarray
INVARIANCE_LIMIT = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class OrbitTable:
    """Orbits with their label masses, and the predictions of an invariant classifier.

    | symbol | attribute | value |
    |---|---|---|
    | q(o) | `orbit_mass` | `mass[o].sum()` |
    | k(o) | `dissent` | `mass[o].sum() - mass[o].max()` |
    | kappa(o) | `minority_dissent` | `mass[o].sum() - mass[o].min()`, over all labels |

    An orbit that omits a label has kappa = q (P1 Note 1 says 0, which is wrong): predicting the
    absent label is always an error. For values instead of labels see `ValueTable`, for constraints
    other than a symmetry `fibers_from_errors`.

    Args:
        mass: `[O, C]`, the probability that a point lies in orbit o and has label y; sums to 1.
        confidence: `[O]` in [0, 1], h_P, constant on an orbit.
        predicted: `[O]`, h_Y, the label that an invariant classifier predicts for the orbit.
        samples: how many samples the masses were counted from, if they were counted.
        invariance_gap: the measured invariance defect of the model.
        averaged: whether the predictions are those of the orbit-averaged model.
        tolerance: the distance within which samples were joined, if it is more than rounding.
            Nothing computed from such a table is a bound; `classification` marks all as estimates.
        closed: whether the orbits are whole orbits of a group, not parts that a sample of a larger
            one found (see `Orbits`). Otherwise nothing says what an invariant model can attain.
        outputs: what the model itself answers, if it is not invariant.
        broken_along_orbits: the share of a scan's elements and samples at which the model does not
            answer as it does at most elements.

    Raises:
        InputError: if masses do not sum to 1, or a size or a value does not fit.

    Example:
        >>> table = OrbitTable([[0.5, 0.0], [0.2, 0.3]], confidence=[0.9, 0.6], predicted=[0, 1])
        >>> table.dissent
        array([0. , 0.2])
        >>> table.accuracy_ceiling, round(table.accuracy_floor, 6)
        (0.8, 0.2)
        >>> table
        OrbitTable(2 orbits, 2 labels, with predictions; accuracy of an invariant model 0.2 to 0.8)
    """

    mass: Array
    confidence: Array | None = None
    predicted: Array | None = None
    samples: int | None = None
    invariance_gap: float | None = None
    averaged: bool = False
    tolerance: float | None = None
    closed: bool = True
    outputs: ModelOutputs | None = None
    broken_along_orbits: float | None = None
    orbit_mass: Array = field(init=False)
    dissent: Array = field(init=False)
    minority_dissent: Array = field(init=False)

    def __post_init__(self) -> None:
        mass = checks.checked_table_numbers("mass", self.mass, "orbit label")
        orbits, labels = mass.shape
        if labels < 2:
            raise InputError("mass", "at least 2 labels (columns)", labels)
        rows = as_array("mass", np.ascontiguousarray(mass))  # torch is fastest on short rows
        largest, smallest, total = rows.amax(1).numpy(), rows.amin(1).numpy(), rows.sum(1).numpy()
        checks.check_table_masses("mass", smallest.min(), total.sum())
        keep = object.__setattr__  # the dataclass is frozen for its users, not for its own making
        keep(self, "mass", mass)
        keep(self, "orbit_mass", total)
        keep(self, "dissent", np.maximum(0, total - largest))
        keep(self, "minority_dissent", total - smallest)
        if self.confidence is not None:
            confidence = checks.checked_table_numbers(
                "confidence", self.confidence, "orbit", orbits
            )
            checks.probabilities("confidence", confidence)
            keep(self, "confidence", confidence)
        if self.predicted is not None:
            predicted = checks.checked_table_integers(
                "predicted", self.predicted, orbits, below=labels
            )
            keep(self, "predicted", predicted)

    def __repr__(self) -> str:
        counted = "" if self.samples is None else f" of {self.samples} samples"
        known = "" if self.confidence is None and self.predicted is None else ", with predictions"
        about = f"{len(self.mass)} orbits{counted}, {self.mass.shape[1]} labels{known}"
        if self.tolerance is not None:
            return f"OrbitTable({about}; samples joined within {self.tolerance:.3g}: no bounds)"
        return (
            f"OrbitTable({about}; accuracy of an invariant model {number(self.accuracy_floor)} to "
            f"{number(self.accuracy_ceiling)})"
        )

    @property
    def accuracy_ceiling(self) -> float:
        """1 - sum k: no invariant classifier is more accurate (P1 Theorem 1)."""
        return float(min(1.0, max(0.0, 1 - self.dissent.sum())))

    @property
    def accuracy_floor(self) -> float:
        """1 - sum kappa: no invariant classifier is less accurate (P1 Proposition 3)."""
        return float(min(1.0, (self.orbit_mass - self.minority_dissent).sum()))

    @property
    def accuracy(self) -> float:
        """The accuracy of the classifier in the table."""
        if self.predicted is None and self.outputs is not None:
            return self.outputs.accuracy
        return float(self._right.sum())

    @cached_property
    def _right(self) -> Array:
        """The mass of the predicted label of each orbit."""
        if self.predicted is None:
            raise InputError("predicted", "predictions in the table", "none")
        # torch gathers in a third of NumPy's time
        rows, columns = as_array("mass", self.mass), as_array("predicted", self.predicted)
        return rows.gather(1, columns[:, None])[:, 0].numpy()

    def with_predictions(
        self, confidence: ArrayLike, predicted: ArrayLike | None = None
    ) -> OrbitTable:
        """Return a table of the same orbits with the predictions of another classifier.

        Args:
            confidence: `[O]`.
            predicted: `[O]`.

        Returns:
            The new table.
        """
        return OrbitTable(
            self.mass,
            confidence,
            predicted,
            samples=self.samples,
            tolerance=self.tolerance,
            closed=self.closed,
        )

    def fibers(self, bins: int | None = None) -> Fibers:
        """Gather orbits into fibers: equal confidences, or the bins of the ECE.

        For real-valued confidences a fiber is a bin and its p the mass-weighted mean. The ECE and
        its interval must use the same fibers: an interval from single values does not hold for an
        ECE over bins.

        Args:
            bins: the number of bins; None makes each distinct confidence a fiber.

        Returns:
            The fibers of positive mass.

        Example:
            >>> table = OrbitTable([[0.3, 0.1], [0.1, 0.1], [0.4, 0.0]], [0.8, 0.8, 0.5], [0, 0, 0])
            >>> table.fibers().best.round(3)
            array([1.   , 0.667])
        """
        if self.confidence is None:
            raise InputError("confidence", "confidences in the table", "none")
        return self._by_fiber(fiber_index(self.confidence, bins), bins)

    def unordered_fibers(self, bins: int | None = None) -> Fibers:
        """Return `fibers` in any order: where every confidence is one, nothing has to be moved."""
        if self.confidence is None or bins is not None or not fibers_are_single(self.confidence):
            return self.fibers(bins)
        return self._by_fiber(None, bins)

    def _by_fiber(self, index: Array | None, bins: int | None) -> Fibers:
        """Gather orbits by the fiber `[O]` of each, which is None if each orbit is its own."""
        assert self.confidence is not None
        size = len(self.orbit_mass) if index is None else int(index.max()) + 1

        def gathered(values: Array) -> Array:
            return values if index is None else np.bincount(index, weights=values, minlength=size)

        held = gathered(self.orbit_mass) > 0
        whole = bool(held.all())
        kept = slice(None) if whole else held  # a slice copies nothing
        mass = gathered(self.orbit_mass)[kept]

        def share(values: Array) -> Array:
            found = gathered(values)[kept] / mass
            return np.asarray(np.minimum(found, 1, out=found))

        if index is None:
            sure = self.confidence[kept]
        elif bins is None:  # the value itself, free of the rounding a mean would add
            sure = np.zeros(size)
            sure[index] = self.confidence
            sure = sure[kept]
        else:
            sure = share(self.orbit_mass * self.confidence)
        place = np.arange(size) if whole else np.where(held, np.cumsum(held) - 1, -1)
        return Fibers(
            mass=mass,
            confidence=sure,
            best=1 - share(self.dissent),
            worst=1 - share(self.minority_dissent),
            accuracy=None if self.predicted is None else share(self._right),
            index=place if index is None else place[index],
        )

    @classmethod
    def from_labels(
        cls,
        orbit: Any,
        label: ArrayLike,
        *,
        mass: ArrayLike | None = None,
        labels: int | None = None,
        confidence: ArrayLike | None = None,
        predicted: ArrayLike | None = None,
    ) -> OrbitTable:
        """Make a table from samples with orbit ids.

        Args:
            orbit: `[N]` whole numbers, the orbit of each sample, or the `Orbits` that
                `match_orbits` found. Ids need not be consecutive; orbits of the table are in
                ascending order of id.
            label: `[N]` whole numbers from 0.
            mass: `[N]`, each sample's probability; equal by default.
            labels: the number of labels C; one more than the largest by default. State it: a label
                that never occurs still counts for the accuracy floor.
            confidence: `[N]`.
            predicted: `[N]`. If these differ within an orbit, the classifier is not invariant; the
                table has its `outputs`, and only what holds for any model can be said of it.

        Example:
            >>> OrbitTable.from_labels(orbit=[7, 7, 3], label=[0, 1, 1]).mass.round(3)
            array([[0.   , 0.333],
                   [0.333, 0.333]])
        """
        ids, facts = matching.ids_and_facts(orbit)
        ids = as_numpy("orbit", ids)
        if ids.ndim != 1 or len(ids) == 0:
            raise InputError("orbit", "shape [sample]", ids)
        ids = checks.checked_table_integers("orbit", checks.partition("orbit", ids), len(ids))
        label = checks.checked_table_integers("label", label, len(ids), below=labels)
        count = max(2, int(label.max()) + 1) if labels is None else int(labels)
        first, index = np.unique(ids, return_index=True, return_inverse=True)[1:]
        weight = checks.sample_mass(mass, len(ids))
        cells = np.bincount(index * count + label, weights=weight, minlength=len(first) * count)
        return cls(
            mass=cells.reshape(len(first), count),
            **model_outputs_by_orbit(index, first, label, weight, count, confidence, predicted),
            samples=len(ids) if mass is None else None,
            **facts,
        )

    @classmethod
    def from_orbits(
        cls, orbits: Sequence[Sequence[int]], label: ArrayLike, **predictions: ArrayLike
    ) -> OrbitTable:
        """Make a table from orbits given as lists of sample indices.

        Args:
            orbits: the samples of each orbit; together they must partition the data.
            label: `[N]`.
            predictions: `confidence` and `predicted`, as in `from_labels`.

        Returns:
            The table.

        Example:
            >>> OrbitTable.from_orbits([[0, 2], [1]], label=[0, 1, 1]).accuracy_ceiling
            0.666...
        """
        size = len(as_numpy("label", label))
        if len(orbits) == 0:
            raise InputError("orbits", "lists of sample indices", "none")
        members = np.concatenate([np.asarray(some, dtype=np.int64) for some in orbits])
        if len(members) and (members.min() < 0 or members.max() >= size):
            raise InputError("orbits", f"sample indices in [0, {size})", "others")
        times = np.bincount(members, minlength=size)
        if (times != 1).any():
            missing, twice = int((times == 0).sum()), int((times > 1).sum())
            raise InputError(
                "orbits",
                "a partition of the samples, each in exactly one orbit",
                f"{missing} samples in none and {twice} in more than one",
            )
        ids = np.repeat(np.arange(len(orbits)), [len(some) for some in orbits])
        return cls.from_labels(ids[np.argsort(members)], label, **predictions)

    @classmethod
    def from_scan(
        cls,
        scan: object,
        model: str | None = None,
        *,
        orbit: Any | None = None,
        limit: float = INVARIANCE_LIMIT,
    ) -> OrbitTable:
        """Make a table from a scan: confidences, predictions and the invariance defect of a model.

        A scan does not know which samples share an orbit; that comes from matching, or from ids.
        The bounds of invariant models do not hold for other models: if the model is not invariant,
        its orbit average is bounded by them instead, and the table is marked `averaged`. Its own
        answers are in `outputs`, for the statements that hold for any model.

        Args:
            scan: an `orbical.Scan` of a classification task, or its dataset.
            model: the name of the model, if the scan has several.
            orbit: `[N]` ids, one for each sample, or `Orbits`; by default the scan's coordinate
                `orbit`.
            limit: the invariance gap up to which the model counts as invariant.

        Returns:
            The table.

        Raises:
            InputError: if the scan is unfinished or not of a classification task with labels, or
                the orbits are not known.

        Example:
            >>> import torch
            >>> import orbical as ob
            >>> images, labels = ob.datasets.digits()
            >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
            >>> scan = ob.scan(net, (images[:20], labels[:20]), group="cyclic:4",
            ...                task="classification", progress=False)
            >>> table = OrbitTable.from_scan(scan, orbit=np.arange(20))
            >>> table.averaged, table.mass.shape
            (True, (20, 10))
        """
        from ._scan_outputs import invariant_outputs

        found, own, measured = invariant_outputs(scan, model, orbit, limit)
        itself = cls.from_labels(**{**found, **own})
        return replace(cls.from_labels(**found), outputs=own_model_outputs(itself), **measured)

    @classmethod
    def from_permutations(
        cls, permutations: ArrayLike, label: ArrayLike, **predictions: ArrayLike
    ) -> OrbitTable:
        """Make a table from a finite group that acts on a finite set.

        Args:
            permutations: `[K, N]`, the index of g x_i for each element g and point i.
            label: `[N]`.
            predictions: `confidence` and `predicted`, as in `from_labels`.

        Returns:
            The table.

        Example:
            >>> swap = [[0, 1, 2], [1, 0, 2]]
            >>> OrbitTable.from_permutations(swap, label=[0, 1, 1]).dissent.round(3)
            array([0.333, 0.   ])
        """
        return cls.from_labels(matching.orbits_of_permutations(permutations), label, **predictions)

    @classmethod
    def from_data(
        cls,
        x: Any,
        label: ArrayLike,
        group: Group | str,
        *,
        tolerance: float | None = None,
        action: ActionTree | None = None,
        representation: str | Mapping[str, Mapping[str | int, str | int]] = "trivial",
        classes: Sequence[str] | None = None,
        **predictions: ArrayLike,
    ) -> OrbitTable:
        """Make a table from labeled data and a group, by matching points across the data.

        Args:
            x: `[N, ...]` points (or whatever `action` moves).
            label: `[N]`.
            group: the symmetry, or its text such as `"cyclic:2"`.
            tolerance: two points match when an image of one lies within this distance of the
                other; None means equal up to rounding. A larger one gives estimates, not bounds.
            action: how the group moves `x`; `orbical.actions.Points()` by default.
            representation: how classes move with `x`, as for `orbical.tasks.Classification`; the
                bounds are then those of equivariant classifiers, and the labels of the table those
                of the first point of each orbit.
            classes: the names of the classes, where `representation` has them.
            predictions: `confidence` and `predicted`, as in `from_labels`.

        Returns:
            The table.

        Example:
            >>> x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]]
            >>> OrbitTable.from_data(x, [0, 1, 1], "cyclic:2").accuracy_ceiling
            0.666...
            >>> exchanged = {"angle 180": {0: 1}}
            >>> OrbitTable.from_data(x, [0, 1, 1], "cyclic:2",
            ...                      representation=exchanged).accuracy_ceiling
            1.0
        """
        orbits = matching.match_orbits(x, group, tolerance=tolerance, action=action)
        if representation == "trivial":
            return cls.from_labels(orbits, label, **predictions)
        stated = {"label": label, "predicted": predictions.pop("predicted", None)}
        rows, pulled, mass, point = matching.in_frame_of_orbits(
            x,
            {name: each for name, each in stated.items() if each is not None},
            group,
            orbits,
            representation,
            classes,
            action,
        )
        if predictions.get("confidence") is not None:
            predictions["confidence"] = as_numpy("confidence", predictions["confidence"])[point]
        if classes is not None:
            predictions.setdefault("labels", len(classes))
        return cls.from_labels(rows, mass=mass, **{**pulled, **predictions})
