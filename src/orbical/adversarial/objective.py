"""The score of a model at an element for each sample, and its derivative along the group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree, leaves, tree_map
from ..errors import ModelError
from ..groups import Chart, Elements
from ..groups.group_parts import Array
from ..scanning.sweep import Sweep

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
        return np.concatenate(
            [
                self._host(self._score(self.chart.elements(coords[rows], base[rows]), sample[rows]))
                for rows in _slices(len(sample), self.sweep.batch_size)
            ]
        )

    def predicted(self, sample: Array, coords: Array, base: Array) -> Array:
        """Return the predicted classes `[N]` of a classification."""
        elements = self.chart.elements(coords, base)
        inputs, _ = self._moved(elements, sample)
        outputs = self._outputs(inputs)
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
            for rows in _slices(len(sample), max(1, self.sweep.batch_size // 4))
        ]
        return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])

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

    def _score(self, elements: Elements, sample: Array) -> Tensor:
        return self._scored(elements, *self._moved(elements, sample))

    def _scored(self, elements: Elements, inputs: Tree, reference: Tensor) -> Tensor:
        task = self.sweep.task
        answers = task.primary(self._outputs(inputs))
        shown = reference if self.labeled else answers  # the truth may reach beyond the answers
        valid = task.output.valid(elements, shown)
        return task.score(answers, reference, valid)[:, 0]

    def _outputs(self, inputs: Tree) -> Tree:
        raw = self.sweep.answer(self.model, self.sweep.prepared(inputs))
        return self.sweep.read(self.model, raw, inputs)

    def _host(self, score: Tensor) -> Array:
        """Return values to minimize; where there is no score, none is worse."""
        values = self.sign * score.double().cpu().numpy()
        return np.where(np.isnan(values), np.inf, values)


def _slices(count: int, size: int) -> Iterator[slice]:
    yield from (slice(start, start + size) for start in range(0, count, size))


def _recorded(leaf: Tensor) -> Tensor:
    """Return a copy whose use can be recorded, and is for what is not a whole number."""
    return leaf.clone().requires_grad_(leaf.is_floating_point())


def _floating(tree: Tree) -> list[Tensor]:
    return [leaf for leaf in leaves(tree) if leaf.is_floating_point()]
