"""A callback of Hugging Face's Trainer that scans a small sample along its orbits in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import MissingExtra
from ._scores import CallbackScores

try:
    from transformers import TrainerCallback
except ImportError:
    raise MissingExtra("transformers", "transformers", "OrbitCallback") from None

__all__ = ["OrbitCallback"]


@dataclass(eq=False, kw_only=True)
class OrbitCallback(CallbackScores, TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Log accuracy, confidence and calibration along the orbit after each training epoch.

    A callback of transformers does not know its trainer, so add it afterwards:
    `trainer.add_callback(OrbitCallback(data, group="rotations:8", trainer=trainer))`. It logs with
    `trainer.log`, hence to every logger of `report_to`. The sample is scanned in memory on the
    model's device; with several processes by all of them, as sharded weights (FSDP2) require, and
    the first one logs. Among the scores are `orbit/accuracy_identity`, `orbit/accuracy_mean` (over
    the group), `orbit/accuracy_worst`, `orbit/confidence_mean`, `orbit/ece_mean` and
    `orbit/invariance_gap`.

    Args:
        data: a small sample of inputs, or `(inputs, labels)`, as `orbical.scan` takes it.
        group: the sampled group, such as `"rotations:8"`.
        task: the task, or its name.
        measures: a measure of `orbical.calibration.along_orbit`, or several. The default is ECE
            where labels and confidences are known, and none elsewhere.
        every_n_epochs: scan in each n-th epoch only.
        prefix: the beginning of the names of scores.
        trainer: the trainer to log with.
    """

    trainer: Any

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Check that the model can be scanned."""
        self._check_callable(self.trainer.model_wrapped)

    def on_epoch_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **others: Any
    ) -> None:
        """Scan the model and log its scores."""
        if self._is_due(round(state.epoch)):
            scores = self._scores(model)
            if state.is_world_process_zero:
                self.trainer.log(scores)
