"""Whether errors along the orbit come from the training data or from the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .._arrays import as_array
from .._text import percent
from ..calibration import bounded_mean_interval, checked_level
from ..errors import InputError, whole_number
from ..groups import Group, as_group, identity_of
from ..scanning import scan
from ..store import arrays_of
from ..tasks import Task, as_task

Array = np.ndarray


@dataclass(frozen=True)
class Cause:
    """Whether errors along the orbit come from the training data or from the network.

    Attributes:
        verdict: "no failure", "data", "architecture" or "generalization"; see `cause`.
        sentence: The verdict with its numbers.
        failing: The elements at which new samples are shown to be worse than at the identity.
        wrong: `[K]`, the share of wrong predictions of new samples.
        wrong_in_training: `[K]`, that of the training samples nearest to those new samples that
            are covered; NaN if none is.
        covered: `[K]`, the share of moved new samples that have a training sample as near as
            nine of ten new samples have at the identity.
    """

    verdict: str
    sentence: str
    failing: tuple[int, ...]
    wrong: Array
    wrong_in_training: Array
    covered: Array

    def to_dict(self) -> dict[str, object]:
        """Return the fields in plain values."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found.items()}


def cause(
    model: object,
    train: object,
    data: object,
    *,
    group: Group | str,
    task: Task | str = "classification",
    samples: int = 500,
    preprocess: object = None,
    level: float = 0.95,
    seed: int = 0,
) -> Cause:
    """Determine whether errors along the orbit come from the training data or from the network.

    Three causes have three cures. At the elements at which new samples fail:

    | verdict | moved new samples | these training samples | what helps |
    |---|---|---|---|
    | `data` | are like no training sample | | augmentation, or such data |
    | `architecture` | are like training samples | are wrong too | another network, more training |
    | `generalization` | are like training samples | are right | more data, regularization |

    A moved sample is like a training sample if one is as near, by the root mean square difference
    of inputs, as for nine of ten new samples at the identity. Half of the samples decide on `data`;
    training samples count as wrong too if at least half as many are wrong as of the new ones.

    Args:
        model: any model that `orbical.scan` takes.
        train: the training data, `(inputs, labels)`, as the model saw them, with augmentation.
        data: new samples, `(inputs, labels)`.
        group: the sampled group, or its text.
        task: the task, or its name; one with predicted classes.
        samples: how many new samples to use at most.
        preprocess: as for `orbical.scan`.
        level: probability that no element is said to fail by chance.
        seed: seed of the choice of samples.

    Returns:
        The cause.

    Example:
        >>> import orbical as ob
        >>> from sklearn.linear_model import LogisticRegression
        >>> images, labels = ob.datasets.digits()
        >>> x = images.flatten(1).numpy()
        >>> net = LogisticRegression(max_iter=500).fit(x[:900], labels[:900])
        >>> def model(images):
        ...     return torch.as_tensor(net.predict_log_proba(images.flatten(1).numpy()))
        >>> train, new = (images[:900], labels[:900]), (images[900:], labels[900:])
        >>> ob.advice.cause(model, train, new, group="cyclic:4").verdict
        'data'
    """
    group, task = as_group(group), as_task(task)
    checked_level(level)
    parts = []
    for name, given in (("train", train), ("data", data)):
        if not isinstance(given, tuple) or len(given) != 2:
            raise InputError(name, "(inputs, labels)", type(given))
        inputs, labels = (as_array(name, part).detach().cpu() for part in given)
        parts.append((inputs, labels))
    (known, truth), (inputs, labels) = parts
    random = np.random.default_rng(whole_number("seed", seed, 0))
    chosen = np.sort(random.permutation(len(inputs))[: whole_number("samples", samples, 10)])

    def wrong_at(inputs: torch.Tensor, labels: torch.Tensor, group: Group) -> Array:
        """Return whether predictions are wrong, `[N, K]`."""
        given = inputs, labels
        found = scan(model, given, group=group, task=task, preprocess=preprocess, progress=False)
        arrays = arrays_of(found)
        if not arrays.has_responses("correct"):
            raise InputError("task", "one with predicted classes", arrays.task)
        return np.asarray(1 - arrays.responses("correct", slice(None), 0))

    wrong = wrong_at(inputs[chosen], labels[chosen], group)
    nearest, covered = _nearest_training_samples(known, inputs[chosen], group, task)
    there = np.unique(nearest[covered])
    trained = np.full(len(known), np.nan)
    trained[there] = wrong_at(known[there], truth[there], identity_of(group))[:, 0]
    of_neighbors = np.where(covered, trained[nearest], np.nan)
    lost = wrong - wrong[:, [group.identity]]
    error = (1 - level) / max(1, len(group) - 1)
    low = bounded_mean_interval(lost.T, 1 - 2 * error, low=-1.0, high=1.0)[1]
    failing = np.flatnonzero(low > 0)
    counts = covered.sum(1)
    mean = np.nansum(of_neighbors, 1) / np.where(counts > 0, counts, np.nan)
    curves = wrong.mean(0), mean, covered.mean(1)
    return Cause(*_cause(curves, failing, group), tuple(map(int, failing)), *curves)


def _nearest_training_samples(
    train: torch.Tensor, x: torch.Tensor, group: Group, task: Task
) -> tuple[Array, Array]:
    """Return the nearest training input of moved inputs, and whether it is near, `[K, N]` each."""
    known = train.flatten(1).double()
    action = task.for_inputs(x).input
    found = []
    for element in range(len(group)):
        moved = action.apply(group[np.array([element])], x)[0].flatten(1).double()
        found.append(torch.cdist(moved, known).min(1))
    apart = torch.stack([one.values for one in found]).numpy()
    near = apart <= np.quantile(apart[group.identity], 0.9)
    return torch.stack([one.indices for one in found]).numpy(), near


def _cause(curves: tuple[Array, Array, Array], failing: Array, group: Group) -> tuple[str, str]:
    """Return the verdict and its sentence."""
    if not len(failing):
        return "no failure", f"at no element of {group.spec} is the model shown to be worse"
    wrong, _, covered = (float(part[failing].mean()) for part in curves)
    where = f"at {len(failing)} of {len(group)} elements {percent(wrong)} of new samples are wrong"
    like = f"{percent(covered)} of them have a training sample that is like them"
    if covered < 0.5:
        return "data", f"{where}, and {like}: augment, or collect such data"
    trained = float(np.nanmean(curves[1][failing]))  # of no sample where none is covered
    seen = f"{percent(trained)} of these training samples are wrong too"
    if trained >= wrong / 2:
        return "architecture", f"{where}; {like}, and {seen}: the network does not fit what it saw"
    return "generalization", f"{where}; {like}, but only {seen}: more data or regularization"
