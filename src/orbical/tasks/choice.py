"""Choice: a question with options, of which a model chooses one, in any order of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree
from ..actions import ActionTree, Classes, Texts
from ..errors import InputError, ModelError
from ..groups import Elements
from .classification import Classification
from .task import Reader, Variable, per_element

__all__ = ["Choice"]


class Choice(Classification):
    """Choose one of the options of a question; each keeps its name in any order of the options.

    A model is a function of the texts, `model(question, options)` with N questions and N lists of
    n options, that returns a score for each option at the position where it is shown, `[N, n]`; one
    column more is a tie, or an answer that refuses. A model without scores may return the letter of
    the position that it chooses, which has then all of the probability. The group reorders the
    options: `permutations:4` by all orders, `permutations:5:24` by some, `cyclic_orders:5` by those
    that bring each option once to each position, and `reversal:2` exchanges the two answers that a
    judge compares. Stored besides what `Classification` stores are

    - `probabilities`, `predicted` and `correct`, of the option itself, wherever it is shown;
    - `position`, where the chosen option is shown, from 0.

    Args:
        input: the action on the inputs; by default `{"question": Texts(), "options": Texts()}`.
        outputs: what the model returns, `"logits"` (or any log-likelihoods) or `"probabilities"`.
        read: a function that picks the scores `[N, n]` from a raw model output.
        classes: the names of the options in the order of the data, for display; A, B, ... unless
            given.

    Example:
        >>> import orbical as ob
        >>> def longest(question, options):  # and fond of what comes first
        ...     return [[len(text) + 2.0 * (place == 0) for place, text in enumerate(row)]
        ...             for row in options]
        >>> data = [("Which is a fruit?", ["an apple", "a stone"], "A"),
        ...         ("Which is a metal?", ["wood", "iron"], "B")]
        >>> scan = ob.scan(longest, data, group="permutations:2", task="choice", progress=False)
        >>> scan.data["predicted"].values[0].tolist(), scan.data["position"].values[0].tolist()
        ([[0, 1], [0, 1]], [[0, 0], [0, 0]])
    """

    name: ClassVar[str] = "choice"

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        usual = {"question": Texts(), "options": Texts()} if input is None else input
        super().__init__(usual, outputs, read, classes, "options")

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read a probability for each option, from their scores or from letters of positions."""
        given = self.picked(raw)
        texts = [*given] if isinstance(given, tuple | list | np.ndarray) else [None]
        if not all(isinstance(text, str) for text in texts):
            return super().read(raw, outputs)
        names = [str(name).lower() for name in self.classes or ()]
        letters = [chr(97 + place) for place in range(len(names))]
        said = [str(text).strip().rstrip(".").lower() for text in texts]
        for text in said:
            if text not in letters and text not in names:
                known = ", ".join(letters).upper()
                raise ModelError(
                    f"model output: expected a score for each option, or one of {known} for each "
                    f"question, got {text!r}"
                )
        chosen = [(letters if text in letters else names).index(text) for text in said]
        return torch.eye(len(names), dtype=torch.float64)[chosen]

    def usual_group(self, x: Tree) -> str:
        """Return all orders of up to four options, and 24 orders of more."""
        if not isinstance(x, dict) or "options" not in x:
            raise InputError(
                "data",
                "questions with options",
                "other data",
                remedy="a table needs the columns question, A, B, ... and answer",
            )
        count = x["options"].shape[1]
        return f"permutations:{count}" if count <= 4 else f"permutations:{count}:24"

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the position of the chosen option, and all probabilities."""
        return super().variables(labeled) | {
            "probabilities": per_element("probability of each option", "class"),
            "position": per_element("position of the chosen option, from 0"),
        }

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Add the position of the chosen option."""
        extras = super().extras(outputs, target, elements)
        shown = Classes("rows").move(elements, extras["predicted"])
        return extras | {"position": shown.to(torch.int32)}
