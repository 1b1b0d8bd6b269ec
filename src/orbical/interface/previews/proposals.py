"""The settings of a first look: what was given, what the files say, what was guessed and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data.chosen import Chosen, spread_rows
from ...data.files import open_path
from ...data.images import ImageFiles
from ...data.preprocessing import CHANNELS, LAYOUTS, SCALES, ImagePreprocessing
from ...data.source import Source
from ...errors import InputError, check_name
from ...predictors import Predictor
from . import model_inputs
from .guesses import best_scale, is_probability

FOLDERS, NONE = "folders", "none"
TRIED, FEWEST_TRIED, SECONDS_TO_TRY = 8, 4, 1.0
OUTPUTS = {"logits": "logits", "probabilities": "probabilities"}
TASKS = {"classification": "classification", "multilabel": "multilabel", "regression": "regression"}
DENSE = {"detection": "detection", "segmentation": "segmentation"}
"""Tasks that only the form of the outputs decides on."""
GROUPS = {
    "rotations": ("rotations:12", "rotations:36", "rotations:72"),
    "dihedral": ("dihedral:4",) * 3,
    "flips": ("flips",) * 3,
    "translations": ("translations:16:8", "translations:32:8", "translations:32:4"),
    "scales": ("scales:0.5:2:5", "scales:0.5:2:9", "scales:0.5:2:17"),
}
"""Groups by the name of the choice: coarse, fine, and as a full scan would take it."""
_GROUP_TITLES = {
    "rotations": "rotations",
    "dihedral": "quarter turns and mirrors",
    "flips": "mirrors",
    "translations": "shifts",
    "scales": "scales",
}


@dataclass(frozen=True)
class Setting:
    """One setting: its value, what else it could be, where it comes from and why."""

    name: str
    title: str
    value: str
    choices: Mapping[str, str]
    why: str
    guessed: bool = True

    def as_json(self) -> dict[str, Any]:
        """Describe it for the page."""
        return {**vars(self), "choices": [[key, text] for key, text in self.choices.items()]}


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
        settings = dict(self.settings)
        for name, value in changes.items():
            check_name("settings", name, settings)
            check_name(name, value, settings[name].choices)
            settings[name] = replace(
                settings[name], value=value, why="chosen on the page", guessed=False
            )
        return replace(self, settings=settings)

    def chosen(self, wanted: int) -> Chosen:
        """Return some samples of the data, those of all classes in turn."""
        labels = self.source.labels
        rows = spread_rows(len(self.source), wanted, labels)
        columns: dict[str, np.ndarray] = {}
        if isinstance(self.source, ImageFiles) and labels is not None:
            names = np.array([str(name) for name in self.source.classes or ()])
            columns = {"folder": names[np.asarray(labels)[rows]]}
        if self["labels"] == NONE:
            return Chosen(self.source, rows, None, self.classes, columns)
        kept = np.asarray(labels)[rows]
        if isinstance(self.source, ImageFiles) and self.classes:
            places = {name: place for place, name in enumerate(self.classes)}
            kept = np.array([places[str(name)] for name in columns["folder"]])
        return Chosen(self.source, rows, kept, self.classes, columns)


def proposed(
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
            raise InputError(
                f"model {other!r}: expected images of {form.height} x {form.width}, as "
                f"{name!r} takes, got {its.height} x {its.width}; look at one model at a time"
            )
    predictor = predictors[name]
    if isinstance(whole, ImageFiles):
        size, channels, size_setting = _size(name, predictor, form, whole, images.get("size"))
        source = open_path(data, **{**images, "size": size})
    else:
        source, size = whole, None
        channels, size_setting = _array_form(name, form, whole)
    layout = _layout(form, predictor)
    inputs, count = source.read(0, min(len(source), 2))[0], len(source)
    if not hasattr(inputs, "shape"):
        raise InputError(f"data: expected one array of images, got {type(inputs).__name__}")
    rows = spread_rows(count, TRIED, source.labels)
    wanted = ImagePreprocessing("unit", channels, layout.value)
    some = Chosen(source, rows[:2], None, None, {}).read(0, len(rows[:2]))[0]
    outputs, seconds, dense = _tried(name, predictor, wanted(some))
    tried = rows[: max(FEWEST_TRIED, min(TRIED, int(SECONDS_TO_TRY / 4 / max(seconds, 1e-4))))]
    some = Chosen(source, tried, None, None, {}).read(0, len(tried))[0]
    task = _task(outputs, given.get("task"), dense)
    names = classes or model_inputs.class_names(predictor, outputs.shape[-1])
    if dense == "detection":
        names = classes or predictor.classes
    labels, names = _labels(source, outputs, names, task.value)
    known = None
    if labels.value == FOLDERS and task.value == "classification":
        given_labels = np.asarray(source.labels)[tried]
        if names and isinstance(source, ImageFiles):
            own = [str(one) for one in source.classes or ()]
            given_labels = np.array([names.index(own[label]) for label in given_labels])
        known = torch.from_numpy(given_labels)
    prepared = _prepared(given.get("preprocess"))
    settings = [
        task,
        _group(given.get("group"), some, dense),
        size_setting,
        layout,
        _channels(channels, form, prepared),
        _scale(predictor, some, channels, layout.value, form, known, source, prepared, task.value),
        _outputs(outputs, task.value, predictor, wanted(some)),
        labels,
    ]
    each = seconds * len(predictors)
    return Proposal({one.name: one for one in settings}, source, size, each, names)


def _tried(name: str, predictor: Predictor, inputs: Tensor) -> tuple[Tensor, float, str | None]:
    """Return outputs `[N, values]`, the seconds of one input, and the task of a dense output."""
    from ..._imports import words_of

    try:
        sides = [side for side in inputs.shape[1:] if side not in (1, 3)]
        size = (sides[0], sides[1]) if len(sides) == 2 else (inputs.shape[2], inputs.shape[3])
        dense = model_inputs.task_of(model_inputs.raw_answers(predictor, inputs), size)
        outputs, _ = model_inputs.answers(predictor, inputs)
        _, seconds = model_inputs.answers(predictor, inputs)  # the first call is slower
    except Exception as error:  # whatever a model raises
        raise InputError(
            f"model {name!r}: it cannot be evaluated on images {[*inputs.shape]}: {words_of(error)}"
        ) from error
    if dense is not None:  # class scores of the whole image, or whatever number each box has
        return outputs.flatten(2).mean(-1), seconds, dense
    if outputs.ndim > 2 and outputs[0].numel() == max(outputs.shape[1:]):
        outputs = outputs.flatten(1)
    if outputs.ndim not in (1, 2):
        raise InputError(
            f"model {name!r}: expected an output [N, classes] or [N, values], got "
            f"{[*outputs.shape]}; evaluate it with orbical scan, or name the decoding of a "
            "detector: detector.onnx:yolov8"
        )
    return outputs.reshape(len(outputs), -1), seconds, None


def _size(
    name: str,
    predictor: Predictor,
    form: model_inputs.InputForm,
    files: ImageFiles,
    given: int | tuple[int, int] | None,
) -> tuple[int | tuple[int, int], str, Setting]:
    """Return the size of the images, their channels, and the setting that says so."""
    channels = {1: ["gray"], 3: ["rgb"], None: ["rgb", "gray"]}[form.channels]
    if given is not None:
        size: int | tuple[int, int] = given
        why, guessed = "given by --size", False
    elif form.height is not None and form.width is not None:
        size = form.height if form.height == form.width else (form.height, form.width)
        why, guessed = "the model's file says so", False
    else:
        own = files.read(0, 1)[0].shape[-2:]
        small = [int(own[0])] if own[0] == own[1] < model_inputs.USUAL_SIZES[0] else []
        sizes = [*small, *model_inputs.USUAL_SIZES]
        size, kind = model_inputs.first_that_runs(name, predictor, sizes, channels)
        channels, guessed = [kind], True
        why = "the images have this size" if size in small else "a usual size that the model takes"
    text = f"{size} x {size}" if isinstance(size, int) else f"{size[0]} x {size[1]}"
    setting = Setting("size", "Image size", text, {text: f"{text} pixels"}, why, guessed)
    return size, channels[0], setting


def _array_form(name: str, form: model_inputs.InputForm, source: Source) -> tuple[str, Setting]:
    """Check arrays of images against what the model declares."""
    shape = [*getattr(source.read(0, 1)[0], "shape", ())]
    if len(shape) != 4 or shape[1] not in (1, 3):
        raise InputError(
            f"data: expected images [N, 3, H, W] or [N, 1, H, W], got {['N', *shape[1:]]}; "
            "evaluate other data with orbical scan"
        )
    if form.channels not in (None, shape[1]) and shape[1] != 3:
        raise InputError(
            f"data: expected images of {form.channels} channels for the model {name!r}, got "
            f"{shape[1]}"
        )
    declared = (form.height or shape[2], form.width or shape[3])
    if declared != (shape[2], shape[3]):
        raise InputError(
            f"data: expected images of {declared[0]} x {declared[1]} for the model {name!r}, got "
            f"{shape[2]} x {shape[3]}"
        )
    text = f"{shape[2]} x {shape[3]}"
    setting = Setting("size", "Image size", text, {text: text}, "the size of the arrays", False)
    return "gray" if form.channels == 1 and shape[1] == 3 else "rgb", setting


def _layout(form: model_inputs.InputForm, predictor: Predictor) -> Setting:
    why = "the model's file says so" if form.layout else "as torch has it; the model does not say"
    value = form.layout or "nchw"
    choices = LAYOUTS if form.layout is None else {value: LAYOUTS[value]}
    return Setting("layout", "Layout", value, choices, why, form.layout is None)


def _task(outputs: Tensor, given: str | None, dense: str | None) -> Setting:
    if dense is not None:
        check_name("--task", given or dense, [dense])
        what = "boxes" if dense == "detection" else f"maps of {outputs.shape[-1]} classes"
        why = f"the model returns {what} for each image"
        return Setting("task", "Task", dense, {dense: DENSE[dense]}, why)
    if given is not None:
        check_name("--task", given, TASKS)
        return Setting("task", "Task", given, TASKS, "given by --task", False)
    columns = outputs.shape[-1]
    value = "classification" if columns > 1 else "regression"
    why = f"the model returns {columns} number{'s' if columns > 1 else ''} for each image"
    return Setting("task", "Task", value, TASKS, why)


def _group(given: str | None, images: Tensor, dense: str | None) -> Setting:
    square = images.shape[-1] == images.shape[-2]
    offered = [name for name in GROUPS if name != ("flips" if square else "dihedral")]
    choices = {name: _GROUP_TITLES[name] for name in offered}
    if given is not None:
        choices = {given: _GROUP_TITLES.get(given, given), **choices}
        return Setting("group", "Group", given, choices, "given by --group", False)
    if dense == "detection":
        why = "boxes stay upright, and no pixel is made up"
        return Setting("group", "Group", "dihedral" if square else "flips", choices, why)
    why = "the question asked most; corners that turn into view are black"
    return Setting("group", "Group", "rotations", choices, why)


def _prepared(given: Any) -> ImagePreprocessing | None:
    if given is None or isinstance(given, ImagePreprocessing):
        return given
    raise InputError(
        "--preprocess: expected names such as imagenet,bgr for a first look, got a function; "
        "evaluate it with orbical scan"
    )


def _channels(
    value: str, form: model_inputs.InputForm, given: ImagePreprocessing | None
) -> Setting:
    title = "Channels"
    if value == "gray":
        why = "the model takes one channel"
        return Setting(
            "channels", title, value, {value: CHANNELS[value]}, why, form.channels is None
        )
    choices = {name: CHANNELS[name] for name in ("rgb", "bgr")}
    if given is not None:
        return Setting("channels", title, given.channels, choices, "given by --preprocess", False)
    return Setting("channels", title, value, choices, "the usual order; no file says it")


def _scale(
    predictor: Predictor,
    images: Tensor,
    channels: str,
    layout: str,
    form: model_inputs.InputForm,
    labels: Tensor | None,
    source: Source,
    given: ImagePreprocessing | None,
    task: str,
) -> Setting:
    title = "Scale"
    if given is not None:
        return Setting("scale", title, given.scale, SCALES, "given by --preprocess", False)
    if predictor.takes_unit_images:
        choices = {"unit": SCALES["unit"]}
        return Setting("scale", title, "unit", choices, "the model prepares images itself", False)
    if form.integers:
        return Setting("scale", title, "bytes", SCALES, "the model takes integers", False)
    unit = bool(images.min() >= 0 and images.max() <= 1)
    if not isinstance(source, ImageFiles) and not (unit and images.shape[1] == 3):
        choices = {"unit": "as they are"}
        return Setting("scale", title, "unit", choices, "arrays are passed as they are", False)
    if task == "detection":
        return Setting("scale", title, "unit", SCALES, "the usual one of detectors")
    if task != "classification":
        return Setting("scale", title, "imagenet", SCALES, "the usual one")

    def run(inputs: Tensor) -> Tensor:
        found, _ = model_inputs.answers(predictor, inputs)
        return found.flatten(1)

    value, why = best_scale(images, run, channels, layout, labels)
    return Setting("scale", title, value, SCALES, why)


def _outputs(outputs: Tensor, task: str, predictor: Predictor, inputs: Tensor) -> Setting:
    if task in ("regression", "detection"):
        kind = "values" if task == "regression" else "boxes"
        return Setting("outputs", "Outputs", kind, {kind: kind}, "", False)
    shares = is_probability(outputs)
    if task == "multilabel":
        shares = bool((outputs >= 0).all() and (outputs <= 1).all())
    value = "probabilities" if shares else "logits"
    why = "they are positive and sum to 1" if shares else "they do not sum to 1"
    return Setting("outputs", "Outputs", value, OUTPUTS, why)


def _labels(
    source: Source, outputs: Tensor, names: list[str] | None, task: str
) -> tuple[Setting, list[str] | None]:
    """Return where labels come from, and the names of the classes if they are known."""
    title, none = "Labels", {NONE: "none"}
    files = isinstance(source, ImageFiles)
    if source.labels is None or task in DENSE:
        why = "the images lie in no folders of classes" if files else "the data have no y"
        why = why if source.labels is None else "a first look at boxes and maps compares with none"
        return Setting("labels", title, NONE, none, why, False), names
    both = {FOLDERS: "folder names" if files else "y of the data", **none}
    if not files:
        return Setting("labels", title, FOLDERS, both, "the data have them", False), names
    if task != "classification":
        why = "folders are classes, which this task does not have"
        return Setting("labels", title, NONE, none, why), names
    folders, count = [str(name) for name in source.classes or ()], outputs.shape[-1]
    if names and {*folders} <= {*names}:
        why = "the folders have names of the model's classes"
        return Setting("labels", title, FOLDERS, both, why), names
    if len(folders) == count:
        why = f"as many folders as the model has outputs, {count}, in alphabetical order"
        return Setting("labels", title, FOLDERS, both, why), folders
    why = (
        f"{len(folders)} folders, but the model has {count} outputs; pass --classes with the names "
        "of all its classes"
    )
    return Setting("labels", title, NONE, none, why), names
