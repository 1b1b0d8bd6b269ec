"""Text: a model reads a line of characters from each input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree
from ..actions import ActionTree, Images, Trivial
from ..errors import InputError, whole_number
from ..groups import Elements
from .answers import ANSWER, answer_codes, majority_of_answer_codes
from .reading import described_value, is_real, read_precision, unreadable_output, wrong_output
from .task import SHARE, Reader, Results, Task, Variable, per_element, per_sample

SCORES = {"cer": "character error rate", "edit_distance": "edit distance"}
END = -1
"""What follows the last character of a row."""


class Text(Task):
    """Read a line of text; it does not change when the input moves a little.

    A model returns N strings, or (strings, confidences `[N]` in 0..1), or a dictionary of `text`
    and `confidence`. The truth is N strings. Stored for each sample and element are

    - `edit_distance`, the number of characters to insert, delete or replace, and `cer`, the
      character error rate: that number over the length of the truth (at least 1);
    - `correct`, whether the text is exactly right, and the `confidence` if the model has one, so
      that every measure of calibration says what it is worth;
    - `text`, the code points of the characters, -1 after the end.

    The consensus is the text that most elements agree on, by weight (the first of them where
    several are as frequent), and the invariance gap the root mean square edit distance from it.

    Args:
        input: the action on the inputs, or a tree of actions; `Images()` by default.
        read: a function that picks the outputs from a raw model output.
        length: the largest number of characters of a text.
        score: `"cer"` or `"edit_distance"`.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> def reader(images):
        ...     return ["upright" if image[0, 0] > 0 else "upside" for image in images[:, 0]]
        >>> images = torch.tensor([[1.0, 0.0], [0.0, 0.0]])[None, None]
        >>> scan = ob.scan(reader, (images, ["upright"]), group="cyclic:4", task="text",
        ...                progress=False)
        >>> scan.data["edit_distance"].values.ravel().tolist()
        [0.0, 4.0, 4.0, 4.0]
    """

    name: ClassVar[str] = "text"
    has_mean = False
    primary_output: ClassVar[str | None] = "text"
    higher_is_better: ClassVar[bool] = False
    truth_name: ClassVar[str] = "true_text"
    truth_kind: ClassVar[str] = "text"
    truth_dims = ("character",)
    detail_view: ClassVar[str] = "text"

    def __init__(
        self,
        input: ActionTree | None = None,
        read: Reader | None = None,
        length: int = 64,
        score: str = "cer",
    ) -> None:
        super().__init__(Images() if input is None else input, Trivial(), read)
        self.length = whole_number("length", length, 1)
        self.choose_score(score, SCORES)

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"text": [N, length]}`, and the `confidence [N]` if there is one."""
        texts, sure = _parts(self.picked(raw))
        codes = self._code_points(texts, wrong_output)
        if sure is None:
            return {"text": codes}
        if not is_real(sure) or sure.numel() != len(codes):
            expected = f"a confidence of each of {len(codes)} texts"
            raise wrong_output(expected, described_value(sure))
        return {"text": codes, "confidence": read_precision(sure).reshape(-1).cpu()}

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark confidences that are not between 0 and 1."""
        if "confidence" not in outputs:
            return {}
        sure = outputs["confidence"]
        return {"a confidence outside 0 .. 1": ~((sure >= 0) & (sure <= 1 + 1e-6))}

    def check_target(self, target: object, count: int) -> Tensor:
        """Check N strings, and return their code points `[N, length]`."""
        texts = np.asarray(target)
        words = texts.ravel().tolist()
        if texts.ndim != 1 or not all(isinstance(word, str) for word in words):
            raise InputError(
                "labels", "a string for each sample", f"{texts.dtype} of shape {texts.shape}"
            )
        if len(words) != count:
            raise InputError("labels", f"one for each of {count} samples", len(words))
        return self._code_points(words, partial(InputError, "labels"))

    def _code_points(self, texts: list[str], error: Callable[..., Exception]) -> Tensor:
        codes = text_code_points(texts, self.length)
        if codes is None:
            expected, longest = f"texts of at most {self.length} characters", max(map(len, texts))
            raise error(expected, longest, remedy="pass length=")
        return codes

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the text, its distance from the truth, and how sure the model is of it."""
        about = self.common_variables(labeled, ("character",))
        about["consensus"] = per_sample("text that most elements agree on", "character")
        about["invariance_gap"] = per_sample(
            "root mean square edit distance of the texts from their consensus"
        )
        about["text"] = per_element("code points of the characters", "character")
        about["confidence"] = per_element("confidence in the whole text", unit="share")
        about["answer"] = ANSWER
        if labeled:
            about["correct"] = per_element("whether the text is exactly right", **SHARE)
        return about

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Return the most frequent of the texts `[K, B, L]`, by weight."""
        chosen = majority_of_answer_codes(answer_codes(outputs), weights)
        return outputs[chosen, torch.arange(outputs.shape[1], device=outputs.device)]

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared edit distance of texts from the consensus."""
        return edit_distance(outputs, center[None]).double().square()

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score texts `[K, B, L]` against others."""
        return _compared(outputs, reference)[self.chosen]

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return texts, confidences and, with a truth, all scores."""
        codes = self.primary(outputs)
        extras = {"text": codes.to(torch.int32), "answer": answer_codes(codes)}
        if "confidence" in outputs:
            extras["confidence"] = outputs["confidence"]
        if target is not None:
            extras |= _compared(codes, target[None])
            extras["correct"] = extras["edit_distance"] == 0
        return extras


def _compared(codes: Tensor, truth: Tensor) -> Results:
    """Return both scores `[K, B]`."""
    away = edit_distance(codes, truth).float()
    return {"cer": away / text_lengths(truth).clamp_min(1), "edit_distance": away}


def _parts(given: object) -> tuple[list[str], object]:
    """Return the strings and the confidences of a raw output, None without any."""
    if isinstance(given, Mapping) and "text" in given:
        return _strings(given["text"]), given.get("confidence")
    if isinstance(given, tuple | list) and len(given) == 2 and not isinstance(given[0], str):
        return _strings(given[0]), given[1]
    return _strings(given), None


def _strings(given: object) -> list[str]:
    words = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(words, tuple | list) and all(isinstance(word, str) for word in words):
        return list(words)
    raise unreadable_output(given, "a string for each sample, or (strings, confidences)")


def text_code_points(texts: Iterable[str], length: int) -> Tensor | None:
    """Return texts as code points `[N, length]`, -1 after the end; None if one is too long.

    >>> text_code_points(["ab", ""], 3).tolist()
    [[97, 98, -1], [-1, -1, -1]]
    """
    rows = [[ord(letter) for letter in text] for text in texts]
    if any(len(row) > length for row in rows):
        return None
    full = [row + [END] * (length - len(row)) for row in rows]
    return torch.tensor(full, dtype=torch.int64).reshape(-1, length)


def text_lengths(codes: Tensor) -> Tensor:
    """Return the number of characters `[...]` of rows `[..., L]`."""
    return (codes >= 0).sum(-1)


def edit_distance(first: Tensor, second: Tensor) -> Tensor:
    """Return the Levenshtein distance `[...]` of texts `[..., L]` and `[..., M]`.

    A row of the table of distances of all beginnings takes a minimum over the row before it, for
    substitutions and deletions, and a running minimum, for insertions.

    >>> words = text_code_points(["kitten", "sitting"], 7)
    >>> int(edit_distance(words[0], words[1]))
    3
    """
    shape = torch.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    first, second = (codes.expand(*shape, codes.shape[-1]) for codes in (first, second))
    places = torch.arange(second.shape[-1] + 1, device=second.device)
    ended, columns = text_lengths(first), text_lengths(second)[..., None]
    row = places.expand(*shape, len(places))
    found = row.gather(-1, columns)[..., 0]
    for size in range(1, first.shape[-1] + 1):
        replaced = row[..., :-1] + (second != first[..., size - 1 : size])
        fresh = torch.cat([row[..., :1] + 1, torch.minimum(row[..., 1:] + 1, replaced)], -1)
        row = (fresh - places).cummin(-1).values + places
        found = torch.where(ended == size, row.gather(-1, columns)[..., 0], found)
    return found
