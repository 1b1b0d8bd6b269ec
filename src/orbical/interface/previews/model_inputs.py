"""What a model takes and returns: read from its file, or tried on a few images."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..._imports_and_paths import words_of
from ...data import ImagePreprocessing
from ...errors import InputError
from ...predictors import OnnxPredictor, Predictor

USUAL_SIZES = (224, 256, 299, 384, 512, 128, 96, 64, 48, 32, 28)
_SCAN = "evaluate it with orbical scan, which takes any input"


@dataclass(frozen=True)
class InputForm:
    """The images that a model takes, as far as its file says so; None where it does not."""

    channels: int | None = None
    height: int | None = None
    width: int | None = None
    layout: str | None = None
    integers: bool = False


def declared_form(name: str, predictor: Predictor) -> InputForm:
    """Return the images that a model declares; refuse one whose input is no image."""
    if not hasattr(predictor, "declared_inputs"):
        return InputForm()
    declared: dict[str, tuple[list[object], str]] = predictor.declared_inputs
    refusal = partial(InputError, f"model {name!r}", remedy=_SCAN)
    if len(declared) != 1:
        raise refusal("one input of images", f"{len(declared)}: {', '.join(declared)}")
    (shape, kind), *_ = declared.values()
    if len(shape) != 4:
        images = "an input of images [N, C, H, W] or [N, H, W, C]"
        raise refusal(images, f"{shape} of {kind}")
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape]
    _, first, second, last = sides
    integers = "int" in kind
    if last in (1, 3) and first not in (1, 3):
        return InputForm(last, first, second, "nhwc", integers)
    if first not in (1, 3, None):
        raise refusal("images of 1 or 3 channels", f"an input {shape}")
    return InputForm(first, second, last, None if first is None else "nchw", integers)


def class_names(predictor: Predictor, count: int) -> list[str] | None:
    """Return the names of a model's classes that its file holds, if it has one for each."""
    if predictor.classes is not None and len(predictor.classes) == count:
        return predictor.classes
    about = predictor.metadata if isinstance(predictor, OnnxPredictor) else {}
    for text in about.values():
        names: object = text.splitlines()
        with suppress(ValueError, SyntaxError):
            names = ast.literal_eval(text) if text[:1] in "[{" else names
        names = [*names.values()] if isinstance(names, dict) else names
        if isinstance(names, list | tuple) and len(names) == count > 1:
            return [str(one) for one in names]
    return None


def task_by_input_size(raw: Any, size: tuple[int, int]) -> str | None:
    """Return the task that an output for images of a size leaves no doubt about.

    >>> outputs = torch.zeros(2, 5, 32, 32), torch.zeros(2, 300, 6)
    >>> [task_by_input_size(output, (32, 32)) for output in outputs]
    ['segmentation', 'detection']
    """
    if isinstance(raw, dict) and {"boxes", "scores", "labels"} <= {*raw}:
        return "detection"
    found = raw.get("logits") if isinstance(raw, dict) else raw
    shape = tuple(getattr(found, "shape", ()))
    if len(shape) == 4 and shape[2:] == size and size != (1, 1):
        return "segmentation"
    return "detection" if len(shape) == 3 and shape[-1] == 6 else None


def raw_answers_to_model_inputs(predictor: Predictor, inputs: Tensor) -> Any:
    """Run a model."""
    with predictor.ready(torch.device("cpu")):
        return predictor(inputs)


def answers_to_model_inputs(predictor: Predictor, inputs: Tensor) -> tuple[Tensor, float]:
    """Run a model; return its first output, and the seconds that one input took."""
    start = time.perf_counter()
    raw = raw_answers_to_model_inputs(predictor, inputs)
    took = (time.perf_counter() - start) / len(inputs)
    found = raw
    while isinstance(found, tuple | list) and found:
        found = found[0]
    if isinstance(found, dict):
        found = found.get("logits", next(iter(found.values()), None))
    if not isinstance(found, Tensor) or len(found) != len(inputs):
        raise InputError("model", "one output for each image", type(found))
    return found.float(), took


def model_input_size(
    name: str, predictor: Predictor, sizes: Iterable[int | tuple[int, int]], channels: list[str]
) -> tuple[int | tuple[int, int], str]:
    """Return the first size and kind of channels that a model takes."""
    why = "no size was tried"
    for kind in channels:
        for size in sizes:
            height, width = (size, size) if isinstance(size, int) else size
            blank = ImagePreprocessing("unit", kind)(torch.zeros(2, 3, height, width))
            try:
                answers_to_model_inputs(predictor, blank)
            except Exception as error:  # a model may raise anything for a size that it refuses
                why = words_of(error)
            else:
                return size, kind
    got = f"one that takes none of the usual sizes ({why})"
    remedy = "pass --size, or evaluate it with orbical scan"
    raise InputError(f"model {name!r}", "a model of images", got, remedy=remedy)
