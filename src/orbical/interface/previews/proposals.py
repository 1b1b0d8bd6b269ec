"""What a first look would scan, and how: a proposal from the files and from a few images."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data import (
    ChosenSamples,
    ImageFiles,
    ImageFolder,
    ImagePreprocessing,
    Source,
    open_path,
    spread_samples,
)
from ...errors import InputError, check_name
from ...predictors import Predictor
from ...tasks import TASKS, task_takes
from . import model_inputs, settings
from .settings import Setting

TRIED, FEWEST_TRIED, SECONDS_TO_TRY = 8, 4, 1.0


@dataclass(frozen=True)
class Proposal:
    """What a first look would scan, and how.

    Attributes:
        settings: the settings by name.
        source: the whole data set, at the size of the models.
        size: pixels, or (height, width); None for arrays.
        seconds: what one forward pass of one image takes, all models together.
        classes: the names of the models' classes, if they are known.
    """

    settings: dict[str, Setting]
    source: Source
    size: int | tuple[int, int] | None
    seconds: float
    classes: list[str] | None

    def __getitem__(self, name: str) -> str:
        return self.settings[name].value

    @property
    def preprocess(self) -> ImagePreprocessing | None:
        """What is applied to images before the models."""
        made = ImagePreprocessing(self["scale"], self["channels"], self["layout"])
        return None if made == ImagePreprocessing() else made

    def changed(self, changes: Mapping[str, str]) -> Proposal:
        """Return the proposal with settings that the reader chose."""
        own = dict(self.settings)
        for name, value in changes.items():
            check_name("settings", name, own)
            check_name(name, value, own[name].choices)
            own[name] = replace(own[name], value=value, why="chosen on the page", guessed=False)
        return replace(self, settings=own)

    def chosen(self, wanted: int) -> ChosenSamples:
        """Return some samples of the data, those of all classes in turn."""
        labels = self.source.labels
        rows = spread_samples(len(self.source), wanted, labels)
        columns: dict[str, np.ndarray] = {}
        if isinstance(self.source, ImageFiles) and labels is not None:
            names = np.array([str(name) for name in self.source.classes or ()])
            columns = {"folder": names[np.asarray(labels)[rows]]}
        if self["labels"] == settings.NONE:
            return ChosenSamples(self.source, rows, None, self.classes, columns)
        kept = np.asarray(labels)[rows]
        if isinstance(self.source, ImageFiles) and self.classes:
            places = {name: place for place, name in enumerate(self.classes)}
            kept = np.array([places[str(name)] for name in columns["folder"]])
        return ChosenSamples(self.source, rows, kept, self.classes, columns)


def proposed_preview(
    predictors: Mapping[str, Predictor], data: str, given: Mapping[str, Any], **images: Any
) -> Proposal:
    """Propose how models and data are scanned, from their files and from a few images.

    Args:
        predictors: the models by name.
        data: the path of the data.
        given: settings that the command line fixed: `group`, `task`, `preprocess`.
        images: options for images in files, such as `size` and `classes`.

    Returns:
        The proposal.

    Raises:
        InputError: if the data have no images, or the models take none.
    """
    classes = images.pop("classes", None)
    whole = open_path(data, **images)
    forms = {name: model_inputs.declared_form(name, one) for name, one in predictors.items()}
    name, form = next(iter(forms.items()))
    for other, its in forms.items():
        if (its.height, its.width) != (form.height, form.width):
            expected = f"images of {form.height} x {form.width}, as {name!r} takes"
            got, remedy = f"{its.height} x {its.width}", "look at one model at a time"
            raise InputError(f"model {other!r}", expected, got, remedy=remedy)
    predictor = predictors[name]
    files = isinstance(whole, ImageFiles)
    if isinstance(whole, ImageFiles):
        size, channels, size_setting = settings.image_size_setting(
            name, predictor, form, whole, images.get("size")
        )
        source = open_path(data, **{**images, "size": size})
    else:
        source, size = whole, None
        channels, size_setting = settings.array_form_setting(name, form, whole)
    layout = settings.layout_setting(form)
    inputs, count = source.read(0, min(len(source), 2))[0], len(source)
    if not hasattr(inputs, "shape"):
        raise InputError("data", "one array of images", type(inputs))
    rows = spread_samples(count, TRIED, source.labels)
    wanted = ImagePreprocessing("unit", channels, layout.value)
    some = ChosenSamples(source, rows[:2], None, None, {}).read(0, len(rows[:2]))[0]
    outputs, seconds, dense = _tried_proposal(name, predictor, wanted(some))
    tried = rows[: max(FEWEST_TRIED, min(TRIED, int(SECONDS_TO_TRY / 4 / max(seconds, 1e-4))))]
    some = ChosenSamples(source, tried, None, None, {}).read(0, len(tried))[0]
    task = settings.task_setting(outputs, given.get("task"), dense)
    names = classes or model_inputs.class_names(predictor, outputs.shape[-1])
    if TASKS[task.value].truth_kind == "boxes":
        names = classes or predictor.classes
    labels, names = settings.labels_setting(source, outputs, names, task.value, bool(classes))
    known = None
    if labels.value == settings.FOLDERS and TASKS[task.value].truth_kind == "class":
        given_labels = np.asarray(source.labels)[tried]
        if names and isinstance(source, ImageFiles):
            own = [str(one) for one in source.classes or ()]
            given_labels = np.array([names.index(own[label]) for label in given_labels])
        known = torch.from_numpy(given_labels)
    prepared = settings.given_preprocessing(given.get("preprocess"))
    proposed = [
        task,
        settings.group_setting(given.get("group"), some, task.value),
        size_setting,
        layout,
        settings.channels_setting(channels, form, prepared),
        settings.scale_setting(predictor, some, wanted, form, known, files, prepared, task.value),
        settings.outputs_setting(outputs, task.value),
        labels,
    ]
    each = seconds * len(predictors)
    return Proposal({one.name: one for one in proposed}, source, size, each, names)


def _tried_proposal(
    name: str, predictor: Predictor, inputs: Tensor
) -> tuple[Tensor, float, str | None]:
    """Return outputs `[N, values]`, the seconds of one input, and the task of a dense output."""
    from ..._imports_and_paths import words_of

    try:
        sides = [side for side in inputs.shape[1:] if side not in (1, 3)]
        size = (sides[0], sides[1]) if len(sides) == 2 else (inputs.shape[2], inputs.shape[3])
        raw = model_inputs.raw_answers_to_model_inputs(predictor, inputs)
        dense = model_inputs.task_by_input_size(raw, size)
        outputs, _ = model_inputs.answers_to_model_inputs(predictor, inputs)
        _, seconds = model_inputs.answers_to_model_inputs(
            predictor, inputs
        )  # the first call is slower
    except Exception as error:  # whatever a model raises
        problem = f"it cannot be evaluated on images {[*inputs.shape]}: {words_of(error)}"
        raise InputError(f"model {name!r}", problem=problem) from error
    if dense is not None:  # class scores of the whole image, or whatever number each box has
        return outputs.flatten(2).mean(-1), seconds, dense
    if outputs.ndim > 2 and outputs[0].numel() == max(outputs.shape[1:]):
        outputs = outputs.flatten(1)
    if outputs.ndim not in (1, 2):
        remedy = "evaluate it with orbical scan, or name the decoding of a detector: "
        remedy += "detector.onnx:yolov8"
        expected = "an output [N, classes] or [N, values]"
        raise InputError(f"model {name!r}", expected, outputs, remedy=remedy)
    return outputs.reshape(len(outputs), -1), seconds, None


def full_command(
    proposal: Proposal, models: Mapping[str, str], data: str, classes: str | None = None
) -> str:
    """Return the `orbical scan` command that evaluates all samples at the full group."""
    words = ["orbical", "scan"]
    for name, source in models.items():
        words += ["-m", f"{name}={source}"]
    words += ["-d", data, "-t", proposal["task"], "-g", proposed_groups(proposal["group"])[2]]
    size = proposal.size
    if size is not None:
        words += ["--size", str(size) if isinstance(size, int) else f"{size[0]}x{size[1]}"]
    if isinstance(proposal.source, ImageFiles) and proposal.source.unreadable == "skip":
        words += ["--unreadable", "skip"]
    if proposal.preprocess is not None:
        words += ["--preprocess", str(proposal.preprocess)]
    if task_takes(proposal["task"], "size"):
        words += ["--input", "images"]
    if proposal["outputs"] == "probabilities":
        words += ["--outputs", "probabilities"]
    nested = any("/" in name for name in proposal.source.names or ())
    unlabeled = proposal["labels"] != settings.FOLDERS and nested
    if classes is not None and task_takes(proposal["task"], "classes"):
        words += ["--classes", classes]
    if isinstance(proposal.source, ImageFolder) and unlabeled:
        words.append("--unlabeled")
    out = Path(data).name.removesuffix(".npz") or "run"
    return shlex.join([*words, "-o", f"{out}.zarr"])


def proposed_groups(name: str) -> tuple[str, str, str]:
    """Return a group of the choices, or one given by its text: coarse, fine and full.

    >>> proposed_groups("dihedral")[0], proposed_groups("rotations:24")[1]
    ('dihedral:4', 'rotations:24')
    """
    return settings.PREVIEW_GROUPS.get(name, (name, name, name))
