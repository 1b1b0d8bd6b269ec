"""A Lightning callback that scans a small sample along its orbits in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import MissingExtra
from ._scores import CallbackScores

try:
    from lightning.pytorch import Callback
except ImportError:
    raise MissingExtra("lightning", "lightning", "OrbitCallback") from None

__all__ = ["OrbitCallback"]


@dataclass(eq=False)
class OrbitCallback(CallbackScores, Callback):  # type: ignore[misc, unused-ignore]
    """Log accuracy, confidence and calibration along the orbit after each training epoch.

    The sample is scanned in memory on the module's device; with several processes by all of them,
    as sharded weights (FSDP2) require, and the first one logs. Among the scores are
    `orbit/accuracy_identity`, `orbit/accuracy_mean` (over the group), `orbit/accuracy_worst`,
    `orbit/confidence_mean`, `orbit/ece_mean` and `orbit/invariance_gap`.

    Args:
        data: a small sample of inputs, or `(inputs, labels)`, as `orbical.scan` takes it.
        group: the sampled group, such as `"rotations:8"`.
        task: the task, or its name.
        measures: a measure of `orbical.calibration.along_orbit`, or several. The default is ECE
            where labels and confidences are known, and none elsewhere.
        every_n_epochs: scan in each n-th epoch only.
        prefix: the beginning of the names of scores.

    Example:
        >>> import torch
        >>> images, labels = torch.rand(16, 1, 8, 8), torch.arange(16) % 10
        >>> callback = OrbitCallback((images, labels), group="rotations:8")
        >>> # lightning.Trainer(callbacks=[callback])
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Check that the module can be scanned under the strategy of the trainer."""
        self._check_callable(trainer.strategy.model)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Scan the module and log its scores."""
        if self._is_due(trainer.current_epoch + 1):
            pl_module.log_dict(self._scores(pl_module), rank_zero_only=True)
