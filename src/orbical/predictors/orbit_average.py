"""A model averaged over the orbits of its inputs: test-time augmentation with a group."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._trees import Tree, as_tensors, concatenate, tree_map
from ..errors import InputError
from ..groups import Group, as_group
from .predictor import PartialOutputs, Raw, Wrapper

if TYPE_CHECKING:
    from ..tasks import Task


class OrbitAverage(Wrapper):
    """A model whose output is the mean over the orbit of its input.

        h_G(x) = sum_g w_g g^-1 h(g x)

    Inputs are moved as the task moves them, and outputs are moved back before they are averaged:
    class probabilities, numbers, vectors, flow fields. Over a closed group the average is
    equivariant whatever the model is, up to the loss of the transformation itself. A model that
    predicts a variance has the spread of its answers along the orbit added to it, as epistemic
    variance. It costs one pass of the model for each element.

    Args:
        model: any model that `orbical.scan` takes.
        group: the group, or its text such as `"rotations:8"`.
        task: what the model predicts, a task or its name; `Classification()` by default.

    Raises:
        InputError: if the task's outputs have no mean of this kind, such as detections.

    See Also:
        orbical.nero.averaging: How many elements are enough, from a scan.

    Example:
        >>> import orbical as ob
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> average = ob.predictors.OrbitAverage(net, "cyclic:4")
        >>> images, labels = ob.datasets.digits()
        >>> scan = ob.scan({"net": net, "average": average}, (images[:50], labels[:50]),
        ...                group="cyclic:4", task="classification", progress=False)
        >>> net_gap, average_gap = ob.nero.invariance_gap(scan)["total"].values
        >>> bool(net_gap > 0.01), bool(average_gap < 1e-6)
        (True, True)
    """

    def __init__(self, model: object, group: Group | str, task: Task | str | None = None) -> None:
        from . import as_predictor

        self.group, self.task = as_group(group), _task_with_mean(task)
        about = f"{self.group.fingerprint()} {self.task.describe()}"
        super().__init__(as_predictor(model), about)
        self.outputs = "probabilities" if hasattr(self.task, "outputs") else None
        self.source = f"{self.model.source}, averaged over {self.group.spec}"

    def __call__(self, batch: Tree) -> Raw:
        """Return the averages for a batch, as the task reads them."""
        batch = self.task.input.encode(as_tensors(batch))
        return self._for_inputs(batch)._averaged(batch)

    def _for_inputs(self, batch: Tree) -> OrbitAverage:
        """Return a copy whose task moves inputs of this shape, where it was given no action."""
        suited = copy.copy(self)
        suited.task = self.task.for_inputs(batch)
        suited.task.check_group(self.group, batch)
        suited.group = suited.task.on_outputs(self.group)
        return suited

    def _averaged(self, batch: Tree) -> Raw:
        outputs = self._outputs_along_orbit(batch)
        if isinstance(outputs, Tensor):
            return self._mean(outputs)
        mean = self._mean(self.task.primary(outputs))
        backward = self.group.inverse()
        means = {
            name: self._weighted(move(backward, values))
            for name, (values, move) in self.task.companions(outputs).items()
        }
        if not means:
            return mean
        spread = self._weighted((self._moved_back(outputs["mean"]) - mean).square())
        if means["variance"].shape[-1] == 1:
            spread = spread.mean(-1, keepdim=True)
        if "aleatoric" in means:
            return mean, means["aleatoric"], means["epistemic"] + spread
        return mean, means["variance"] + spread

    def spread(self, batch: Tree) -> Tensor:
        """Return how far the un-transformed outputs for each input lie from their mean.

        Args:
            batch: inputs with a leading dimension N, as the model takes them.

        Returns:
            `sum_g w_g ||g^-1 h(g x) - h_G(x)||^2`, `[N]`: an epistemic uncertainty without labels.
        """
        batch = self.task.input.encode(as_tensors(batch))
        return self._for_inputs(batch)._deviation(batch)

    def _deviation(self, batch: Tree) -> Tensor:
        answers = self.task.primary(self._outputs_along_orbit(batch))
        home = self._moved_back(answers)
        valid = self.task.output.valid(self.group.inverse(), answers)
        return self._weighted(self.task.deviation(home, self._mean(answers), valid))

    def _outputs_along_orbit(self, batch: Tree) -> Raw:
        """Return the outputs along the orbit, `[K, N, ...]`; one element at a time is in memory."""
        answers = []
        for place in range(len(self.group)):
            element = self.group[place : place + 1]
            moved = self.task.input.apply(element, batch)
            raw = self.model(self.task.input.decode(tree_map(lambda leaf: leaf[0], moved)))
            raw = raw.outputs if isinstance(raw, PartialOutputs) else raw
            answer = tree_map(lambda leaf: leaf[None], self.task.read(raw, self.model.outputs))
            answers.append(self.task.at_home(answer, element))
        return concatenate(answers)

    def _moved_back(self, answers: Tensor) -> Tensor:
        home: Tensor = self.task.output.move(self.group.inverse(), answers)
        return home

    def _mean(self, answers: Tensor) -> Tensor:
        valid = self.task.output.valid(self.group.inverse(), answers)
        weights = torch.as_tensor(self.group.weights).to(answers.device)
        return self.task.average(self._moved_back(answers), weights, valid)

    def _weighted(self, values: Tensor) -> Tensor:
        return torch.einsum("k,k...->...", torch.as_tensor(self.group.weights).to(values), values)


def _task_with_mean(task: Task | str | None) -> Task:
    """Return the task if its outputs have a mean."""
    from ..tasks import Classification, as_task

    chosen = Classification() if task is None else as_task(task)
    if chosen.has_mean:
        return chosen
    form = getattr(chosen, "uncertainty", None)
    if form is None:
        remedy = "a scan has their consensus"
        raise InputError("task", "outputs with a mean", chosen.name, remedy=remedy)
    expected, got = "outputs with a mean and variances", f"{chosen.name} with {form}"
    remedy = "average regression with uncertainty='variance' or 'parts'"
    raise InputError("task", expected, got, remedy=remedy)
