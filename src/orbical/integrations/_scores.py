"""A scan as a flat dictionary of scores, as loggers take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

import torch

from ..calibration import MEASURES, calibration_kinds, measure_entry
from ..errors import InputError, check_name
from ..groups import Group, as_group
from ..store import Scan
from ..tasks import Task


@dataclass(eq=False)
class CallbackScores:
    """What the callbacks share: a sample, and the scores of a model along its orbits.

    All arguments are checked at once, since a callback is first used after an epoch of training.
    """

    data: object = field(repr=False)
    _: KW_ONLY
    group: Group | str
    task: Task | str = "classification"
    measures: str | Sequence[str] | None = None
    every_n_epochs: int = 1
    prefix: str = "orbit/"

    def __post_init__(self) -> None:
        if self.every_n_epochs < 1:
            raise InputError("every_n_epochs", "a whole number >= 1", self.every_n_epochs)
        from ..data import Samples
        from ..scanning import checked_recipe_data
        from ..tasks import as_task

        self.group, self.task = as_group(self.group), as_task(self.task)
        taken = self.task.take(self.data)
        samples = Samples(taken, self.task.names(taken))
        samples.source.check()
        self.task = self.task.for_inputs(samples.first(1)[0], samples.source.action)
        _, target, _ = checked_recipe_data(samples, self.group, self.task)
        kinds = _kinds(self.task, labeled=target is not None)
        if self.measures is None:
            self.measures = ["ece"] if "pair" in kinds else []
        self.measures = [self.measures] if isinstance(self.measures, str) else list(self.measures)
        for name in self.measures:
            check_name("measures", name, MEASURES)
            if not kinds:
                lack = "labels" if _kinds(self.task, labeled=True) else "confidence or uncertainty"
                raise InputError("measures", f"none without {lack}", repr(name))
            entry = measure_entry(name, *kinds)
            if entry.one_target and target is not None and target.shape[-1] > 1:
                raise InputError("measures", "those of vectors", repr(name))

    def _is_due(self, epoch: int) -> bool:
        """Check whether this epoch, counted from 1, is one to scan in."""
        return epoch % self.every_n_epochs == 0

    def _check_callable(self, model: torch.nn.Module) -> None:
        """Refuse at the start what could not be scanned after an epoch: weights in pieces."""
        from torch.distributed.fsdp import FullyShardedDataParallel

        flat = any(isinstance(part, FullyShardedDataParallel) for part in model.modules())
        if flat or any(hasattr(weight, "ds_id") for weight in model.parameters()):
            raise InputError(
                "model",
                "weights that are whole in each process, or sharded by fully_shard (FSDP2)",
                "FullyShardedDataParallel (FSDP1)" if flat else "DeepSpeed ZeRO-3",
                remedy="train with DDP or FSDP2, or leave out OrbitCallback",
            )

    def _scores(self, model: torch.nn.Module) -> dict[str, float]:
        """Scan a model in memory, on its own device, and return its scores.

        All processes do so at the same time: those that share a model wait for each other's weights
        in each pass.
        """
        from ..scanning import scan

        device = next((str(weight.device) for weight in model.parameters()), "cpu")
        result = scan(
            model, self.data, group=self.group, task=self.task, device=device, progress=False
        )
        scores = summary_scores(result) | measure_scores(result, self.measures or ())
        return {self.prefix + name: value for name, value in scores.items()}


def _kinds(task: Task, *, labeled: bool) -> tuple[str, ...]:
    declared = task.variables(labeled).items()
    return calibration_kinds(name for name, variable in declared if not variable.optional)


def summary_scores(scan: Scan) -> dict[str, float]:
    """Return accuracy, confidence and score at three places, and the invariance gap.

    >>> import orbical as ob
    >>> images, labels = ob.datasets.digits()
    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    >>> found = ob.scan(net, (images[:9], labels[:9]), group="cyclic:4", task="classification",
    ...                 progress=False)
    >>> [name for name in summary_scores(found) if name.startswith("accuracy")]
    ['accuracy_identity', 'accuracy_mean', 'accuracy_worst']
    """
    from .. import nero

    table = nero.summary(scan).isel(model=0)
    scores = {
        f"{name}_{place}": float(table[name].sel(place=place))
        for name in ("accuracy", "confidence", "score")
        if name in table
        for place in table["place"].values
    }
    return scores | {"invariance_gap": float(table["invariance_gap"])}


def measure_scores(scan: Scan, measures: Sequence[str]) -> dict[str, float]:
    """Return calibration measures at the identity, on average, and at the worst element."""
    from ..calibration import at_places

    return {
        f"{name}_{place}": float(value)
        for name in measures
        for value in at_places(scan, name)["value"].isel(model=0)
        if (place := str(value["place"].values)) != "pooled"
    }
