"""Ordinal classification: one of C classes that have an order, such as grades or stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..errors import check_name
from ..groups import Elements
from .base import Reader, Variable, per_element
from .classification import Classification

__all__ = ["Ordinal"]

SCORES = {
    "rps": "ranked probability score",
    "rank_error": "distance of the predicted from the true rank",
}


class Ordinal(Classification):
    """Predict one of C ordered classes; the class does not change when the input moves.

    As `Classification`, but an answer that is one rank off is better than one that is two off.
    Stored besides are `rank_error`, the distance of the predicted (most probable) class from the
    true one in ranks, and `rps`, the ranked probability score

        rps = sum_k (P(class <= k) - [true class <= k])^2 / (C - 1),   k = 0 .. C - 2

    which is 0 for a certain and correct, and 1 for a certain answer at the other end.
    `orbical.nero.quadratic_kappa` measures agreement, and `orbical.calibration.pairs_within` makes
    every `P(class <= k)` a pair for the measures of calibration.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed.
        read: a function that picks the outputs `[N, C]` from a raw model output.
        classes: the names of the classes, from the lowest to the highest.
        score: `"rps"` or `"rank_error"`.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> def middle(images):
        ...     return torch.tensor([0.25, 0.5, 0.25]).expand(len(images), -1)
        >>> scan = ob.scan(middle, (torch.ones(2, 1, 4, 4), [1, 2]), group="cyclic:4",
        ...                task=ob.tasks.Ordinal(outputs="probabilities"), progress=False)
        >>> scan.data["rps"].mean("element").values.tolist()
        [[0.0625, 0.3125]]
    """

    name: ClassVar[str] = "ordinal"
    higher_is_better: ClassVar[bool] = False
    score_unit = ""

    def __init__(
        self,
        input: Any = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        score: str = "rps",
    ) -> None:
        check_name("score", score, SCORES)
        super().__init__(input, outputs, read, classes)
        self.chosen, self.score_meaning = score, SCORES[score]

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {**super().settings(), "score": self.chosen}

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the scores by rank, and all probabilities."""
        about = super().variables(labeled)
        about["probabilities"] = per_element("class probabilities", "class")
        if labeled:
            about |= {
                name: per_element(meaning, higher_is_better=False)
                for name, meaning in SCORES.items()
            }
        return about

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score probabilities `[K, B, C]` against classes."""
        return _by_rank(outputs, reference)[self.chosen]

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Add the scores by rank."""
        extras = super().extras(outputs, target, elements)
        return extras if target is None else extras | _by_rank(outputs, target[None])


def _by_rank(probabilities: Tensor, label: Tensor) -> dict[str, Tensor]:
    """Return both scores `[K, B]` of probabilities `[K, B, C]` against classes `[K or 1, B]`."""
    steps = probabilities.shape[-1] - 1
    reached = probabilities.cumsum(-1)[..., :-1]
    passed = torch.arange(steps, device=label.device) >= label.long()[..., None]
    return {
        "rps": (reached - passed.to(reached)).square().sum(-1) / steps,
        "rank_error": (probabilities.argmax(-1) - label).abs().to(reached.dtype),
    }
