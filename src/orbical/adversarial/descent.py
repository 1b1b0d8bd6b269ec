"""Search for a minimum near elements of a sample, for many samples at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from .._trees import Tree, leaves, tree_map
from ..errors import ModelError
from ..groups import Array, Chart, Elements
from ..scanning import Sweep
from ..store import row_runs

Values = Callable[[Array, Array, Array], Array]
Gradients = Callable[[Array, Array, Array], tuple[Array, Array]]
GOLDEN = (5**0.5 - 1) / 2
_NEIGHBORS = 1.5  # elements within so many steps lie in the same valley


def lowest_elements(values: Array, chart: Chart, count: int) -> Array:
    """Return for each row of `values[B, K]` the lowest elements `[B, count]`, apart from another.

    Once an element is taken, its neighbors are left out; where none is left, the lowest is
    repeated.
    """
    left = values.copy()
    lowest = left.argmin(1)
    found = []
    for _ in range(count):
        best = left.argmin(1)
        rest = np.isfinite(left[np.arange(len(left)), best])
        best = np.where(rest, best, lowest)
        found.append(best)
        left[_neighbors_of_descent_starts(chart, best)] = np.inf
    return np.stack(found, 1)


def _neighbors_of_descent_starts(chart: Chart, chosen: Array) -> Array:
    """Return which elements `[B, K]` are neighbors of the chosen ones `[B]`, or these themselves.

    Coordinates are compared by the elements they stand for, so that a circle closes.
    """
    every = np.arange(len(chart.start))
    maps = _flat(chart, chart.start, every)
    reach = np.zeros(len(chosen))
    for axis in range(len(chart.step)):
        aside = chart.add(
            chart.start[chosen], np.eye(len(chart.step))[[axis]] * chart.step * _NEIGHBORS
        )
        apart = _flat(chart, aside, chosen) - maps[chosen]
        reach = np.maximum(reach, np.linalg.norm(apart, axis=-1))
    return np.asarray(cdist(maps[chosen], maps) <= reach[:, None])


def nearest_elements(chart: Chart, coords: Array, base: Array) -> Array:
    """Return the sampled elements `[N]` nearest to those at coordinates `[N, d]`."""
    every = np.arange(len(chart.start))
    apart = cdist(_flat(chart, coords, base), _flat(chart, chart.start, every))
    return np.asarray(apart.argmin(1))


def _flat(chart: Chart, coords: Array, base: Array) -> Array:
    parts = chart.parts(coords, base)
    return np.concatenate(
        [np.asarray(parts[name], float).reshape(len(coords), -1) for name in sorted(parts)], 1
    )


def descend_to_worst(
    gradients: Gradients, chart: Chart, sample: Array, base: Array, rounds: int
) -> tuple[Array, Array]:
    """Follow the gradient from sampled elements `[N]`; return coordinates `[N, d]` and values.

    Each step has a length of its own, at first half a step of the sample: longer after a success
    and shorter after a failure, which is undone. So no value ever rises.
    """
    coords = chart.start[base]
    value, slope = gradients(sample, coords, base)
    length = np.full(len(sample), 0.5)
    for _ in range(rounds):
        downhill = _inward(chart, coords, -slope)
        norm = np.linalg.norm(downhill, axis=1, keepdims=True)
        direction = downhill / np.where(norm > 0, norm, 1.0)
        tried = chart.moved(coords, length[:, None] * direction)
        reached, steepness = gradients(sample, tried, base)
        better = reached < value
        coords = np.where(better[:, None], tried, coords)
        slope = np.where(better[:, None], steepness, slope)
        value = np.where(better, reached, value)
        length = np.where(better, np.minimum(1.5 * length, 1.0), 0.4 * length)
    return coords, value


def _inward(chart: Chart, coords: Array, direction: Array) -> Array:
    """Remove what would leave the window."""
    blocked = ((coords <= chart.low) & (direction < 0)) | ((coords >= chart.high) & (direction > 0))
    return np.where(blocked, 0.0, direction)


def golden_section(
    values: Values, chart: Chart, sample: Array, base: Array, rounds: int
) -> tuple[Array, Array]:
    """Search along each coordinate within a step of sampled elements `[N]`, in turn.

    Return coordinates `[N, d]` and values `[N]`, the best seen. With several coordinates there are
    two turns, the second within half a step.
    """
    coords = chart.start[base]
    best = values(sample, coords, base)
    units = np.eye(len(chart.step))
    for reach in (1.0,) if len(units) == 1 else (1.0, 0.5):
        for unit in units:

            def seen(places: Array, unit: Array = unit, home: Array = coords) -> Array:
                nonlocal coords, best
                tried = chart.moved(home, places[:, None] * unit)
                reached = values(sample, tried, base)
                coords = np.where((reached < best)[:, None], tried, coords)
                best = np.minimum(best, reached)
                return reached

            low, high = np.full(len(sample), -reach), np.full(len(sample), reach)
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            of_left, of_right = seen(left), seen(right)
            for _ in range(rounds):
                lower = of_left < of_right
                low, high = np.where(lower, low, left), np.where(lower, right, high)
                fresh = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
                of_fresh = seen(fresh)
                # The inner place that is kept becomes the other one.
                left, right = np.where(lower, fresh, right), np.where(lower, left, fresh)
                of_left, of_right = (
                    np.where(lower, of_fresh, of_right),
                    np.where(lower, of_left, of_fresh),
                )
    return coords, best


NEAR = 1e-2
"""The half width of differences of moved data, in steps of the sample."""


@dataclass(frozen=True)
class Objective:
    """One model's scores of some samples, each at elements of its own.

    Attributes:
        sweep: the models, the task and the device.
        model: the name of the model.
        chart: the coordinates of the elements.
        batch: the samples `[B, ...]`, on the device.
        reference: what outputs are scored against, `[B, ...]`: the truth or the consensus.
        labeled: whether it is the truth.
        sign: 1 where a high score is good, otherwise -1; the search minimizes `sign * score`.
    """

    sweep: Sweep
    model: str
    chart: Chart
    batch: Tree
    reference: Tensor
    labeled: bool
    sign: float

    def values(self, sample: Array, coords: Array, base: Array) -> Array:
        """Return `sign * score` `[N]` of samples `[N]` at coordinates `[N, d]`."""
        found = []
        for rows in row_runs(len(sample), self.sweep.batch_size):
            elements = self.chart.elements(coords[rows], base[rows])
            moved = self._moved(elements, sample[rows])
            found.append(self._host(self._scored(elements, *moved)))
        return np.concatenate(found)

    def predicted(self, sample: Array, coords: Array, base: Array) -> Array:
        """Return the predicted classes `[N]` of a classification."""
        elements = self.chart.elements(coords, base)
        inputs, _ = self._moved(elements, sample)
        outputs = self._outputs(elements, inputs)
        found = self.sweep.task.extras(outputs, None, elements)["predicted"]
        return np.asarray(found[:, 0].cpu())

    def gradients(self, sample: Array, coords: Array, base: Array) -> tuple[Array, Array]:
        """Return values `[N]` as above, and their derivatives `[N, d]` by steps of the sample.

        Automatic differentiation gives the derivative by the moved inputs and the moved reference.
        These are differenced along each coordinate, without another pass of the model: so every
        action can be differentiated, and the kinks of interpolation are smoothed.
        """
        found = [
            self._gradient(sample[rows], coords[rows], base[rows])
            # What the model remembers for its derivative takes several times the memory.
            for rows in row_runs(len(sample), max(1, self.sweep.batch_size // 4))
        ]
        values, slopes = zip(*found, strict=True)
        return np.concatenate(values), np.concatenate(slopes)

    @property
    def has_gradient(self) -> bool:
        """Whether the score depends on the moved inputs in a way that torch has recorded."""
        one = np.zeros(1, int)
        try:
            _, slope = self._gradient(one, self.chart.start[one], one)
        except (ModelError, RuntimeError):  # a model that runs outside of torch, or only without
            return False
        return bool(np.isfinite(slope).all())

    def _gradient(self, sample: Array, coords: Array, base: Array) -> tuple[Array, Array]:
        elements = self.chart.elements(coords, base)
        with torch.inference_mode(False), torch.enable_grad():
            inputs, reference = tree_map(_recorded, self._moved(elements, sample))
            score = self._scored(elements, inputs, reference)
            followed = [leaf for leaf in leaves((inputs, reference)) if leaf.requires_grad]
            slopes = torch.autograd.grad(score.sum(), followed, allow_unused=True)
        # A moved truth alone would show only part of the derivative.
        if all(slope is None for slope, _ in zip(slopes, _floating(inputs), strict=False)):
            raise ModelError("expected outputs that torch can differentiate, got constants")
        slope = np.zeros(coords.shape)
        for axis in range(coords.shape[1]):
            change = NEAR * np.eye(coords.shape[1])[[axis]] * self.chart.step
            ends = [
                self._moved(
                    self.chart.elements(self.chart.add(coords, side * change), base), sample
                )
                for side in (1.0, -1.0)
            ]
            each = [
                ((ahead - behind) * along).flatten(1).double().nansum(1)
                for along, ahead, behind in zip(
                    slopes, *(_floating(end) for end in ends), strict=True
                )
                if along is not None
            ]
            slope[:, axis] = torch.stack(each).sum(0).cpu().numpy() / (2 * NEAR)
        return self._host(score.detach()), self.sign * slope

    def _moved(self, elements: Elements, sample: Array) -> tuple[Tree, Tensor]:
        """Return inputs and reference `[N, 1, ...]`, each moved by its own element."""
        rows = torch.as_tensor(sample, device=self.sweep.device)
        task = self.sweep.task
        inputs = tree_map(lambda leaf: leaf[rows][:, None], self.batch)
        reference = task.output.move(elements, self.reference[rows][:, None])
        return task.input.move(elements, inputs), reference

    def _scored(self, elements: Elements, inputs: Tree, reference: Tensor) -> Tensor:
        task = self.sweep.task
        answers = task.primary(self._outputs(elements, inputs))
        shown = reference if self.labeled else answers  # the truth may reach beyond the answers
        valid = task.output.valid(elements, shown)
        return task.score(answers, reference, valid)[:, 0]

    def _outputs(self, elements: Elements, inputs: Tree) -> Tree:
        raw = self.sweep.answer(self.model, self.sweep.prepared(inputs))
        return self.sweep.read(self.model, raw, inputs, elements)

    def _host(self, score: Tensor) -> Array:
        """Return values to minimize; where there is no score, none is worse."""
        values = self.sign * score.double().cpu().numpy()
        return np.where(np.isnan(values), np.inf, values)


def _recorded(leaf: Tensor) -> Tensor:
    """Return a copy whose use can be recorded, and is for what is not a whole number."""
    return leaf.clone().requires_grad_(leaf.is_floating_point())


def _floating(tree: Tree) -> list[Tensor]:
    return [leaf for leaf in leaves(tree) if leaf.is_floating_point()]
