"""The settings of a first look one by one: given, read from a file, or guessed, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ... import data
from ..._text import percent
from ...errors import InputError, check_name
from ...predictors import Predictor
from ...store import Json
from ...tasks import TASKS, task_takes
from . import model_inputs

FOLDERS, NONE = "folders", "none"
OUTPUTS = {"logits": "logits", "probabilities": "probabilities"}
CHOICES = ("classification", "multilabel", "regression")
"""Tasks that the form of the outputs leaves open."""
PREVIEW_GROUPS = {
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
    value: str
    choices: Mapping[str, str]
    why: str
    guessed: bool = True

    def as_json(self) -> Json:
        """Describe it for the page."""
        title = "Image size" if self.name == "size" else self.name.capitalize()
        return {**vars(self), "title": title, "choices": [[*pair] for pair in self.choices.items()]}


def image_size_setting(
    name: str,
    predictor: Predictor,
    form: model_inputs.InputForm,
    files: data.ImageFiles,
    given: int | tuple[int, int] | None,
) -> tuple[int | tuple[int, int], str, Setting]:
    """Return the size of the images, their channels, and the setting that says so."""
    channels = {1: ["gray"], 3: ["rgb"], None: ["rgb", "gray"]}[form.channels]
    guessed = given is None and (form.height is None or form.width is None)
    if guessed:
        own = files.read(0, 1)[0].shape[-2:]
        small = [int(own[0])] if own[0] == own[1] < model_inputs.USUAL_SIZES[0] else []
        sizes = [*small, *model_inputs.USUAL_SIZES]
        size, kind = model_inputs.model_input_size(name, predictor, sizes, channels)
        channels = [kind]
        why = "the images have this size" if size in small else "a usual size that the model takes"
    elif given is not None:
        size, why = given, "given by --size"
    else:
        assert form.height is not None and form.width is not None  # noqa: PT018
        size = form.height if form.height == form.width else (form.height, form.width)
        why = "the model's file says so"
    text = f"{size} x {size}" if isinstance(size, int) else f"{size[0]} x {size[1]}"
    return size, channels[0], Setting("size", text, {text: f"{text} pixels"}, why, guessed)


def array_form_setting(
    name: str, form: model_inputs.InputForm, source: data.Source
) -> tuple[str, Setting]:
    """Check arrays of images against what the model declares; return their channels and size."""
    shape = [*getattr(source.read(0, 1)[0], "shape", ())]
    if len(shape) != 4 or shape[1] not in (1, 3):
        remedy = "evaluate other data with orbical scan"
        images = "images [N, 3, H, W] or [N, 1, H, W]"
        raise InputError("data", images, ["N", *shape[1:]], remedy=remedy)
    _, channels, height, width = shape
    text, wanted = f"{height} x {width}", f"{form.height or height} x {form.width or width}"
    if form.channels not in (None, channels) and channels != 3:
        expected = f"images of {form.channels} channels for the model {name!r}"
        raise InputError("data", expected, channels)
    if wanted != text:
        raise InputError("data", f"images of {wanted} for the model {name!r}", text)
    setting = Setting("size", text, {text: text}, "the size of the arrays", False)
    return "gray" if form.channels == 1 and channels == 3 else "rgb", setting


def layout_setting(form: model_inputs.InputForm) -> Setting:
    """Return whether channels come first, as the model file says or by default."""
    if form.layout is None:
        return Setting("layout", "nchw", data.LAYOUTS, "as torch has it; the model does not say")
    choices = {form.layout: data.LAYOUTS[form.layout]}
    return Setting("layout", form.layout, choices, "the model's file says so", False)


def task_setting(outputs: Tensor, given: str | None, dense: str | None) -> Setting:
    """Return the task that the form of the outputs suggests, or the given one."""
    columns = outputs.shape[-1]
    choices = {name: name for name in ([dense] if dense else CHOICES)}
    if given is not None:
        check_name("--task", given, choices)
    if dense is not None:
        boxes = TASKS[dense].truth_kind == "boxes"
        what = "boxes" if boxes else f"maps of {columns} classes"
        return Setting("task", dense, choices, f"the model returns {what} for each image")
    if given is not None:
        return Setting("task", given, choices, "given by --task", False)
    value = "classification" if columns > 1 else "regression"
    why = f"the model returns {columns} number{'s' if columns > 1 else ''} for each image"
    return Setting("task", value, choices, why)


def group_setting(given: str | None, images: Tensor, task: str) -> Setting:
    """Return the group that is asked about most, or the given one."""
    square = images.shape[-1] == images.shape[-2]
    mirrors, other = ("dihedral", "flips") if square else ("flips", "dihedral")
    choices = {name: title for name, title in _GROUP_TITLES.items() if name != other}
    if given is not None:
        choices = {given: _GROUP_TITLES.get(given, given), **choices}
        return Setting("group", given, choices, "given by --group", False)
    if TASKS[task].truth_kind == "boxes":
        why = "boxes stay upright, and no pixel is made up"
        return Setting("group", mirrors, choices, why)
    why = "the question asked most; corners that turn into view are black"
    return Setting("group", "rotations", choices, why)


def given_preprocessing(given: object) -> data.ImagePreprocessing | None:
    """Check the preprocessing of the command line."""
    prepared = data.as_preprocessing(given)
    if prepared is None or isinstance(prepared, data.ImagePreprocessing):
        return prepared
    names, remedy = "names such as imagenet,bgr for a first look", "evaluate it with orbical scan"
    raise InputError("--preprocess", names, "a function", remedy=remedy)


def channels_setting(
    value: str, form: model_inputs.InputForm, given: data.ImagePreprocessing | None
) -> Setting:
    """Return the order of the color channels."""
    if value == "gray":
        choices, why = {value: data.CHANNELS[value]}, "the model takes one channel"
        return Setting("channels", value, choices, why, form.channels is None)
    choices = {name: data.CHANNELS[name] for name in ("rgb", "bgr")}
    if given is not None:
        return Setting("channels", given.channels, choices, "given by --preprocess", False)
    return Setting("channels", value, choices, "the usual order; no file says it")


def scale_setting(
    predictor: Predictor,
    images: Tensor,
    wanted: data.ImagePreprocessing,
    form: model_inputs.InputForm,
    labels: Tensor | None,
    files: bool,
    given: data.ImagePreprocessing | None,
    task: str,
) -> Setting:
    """Return the scale of pixel values, the one whose answers tell images apart best."""
    if given is not None:
        return Setting("scale", given.scale, data.SCALES, "given by --preprocess", False)
    if predictor.takes_unit_images:
        choices = {"unit": data.SCALES["unit"]}
        return Setting("scale", "unit", choices, "the model prepares images itself", False)
    if form.integers:
        return Setting("scale", "bytes", data.SCALES, "the model takes integers", False)
    unit = bool(images.min() >= 0 and images.max() <= 1)
    if not files and not (unit and images.shape[1] == 3):
        choices = {"unit": "as they are"}
        return Setting("scale", "unit", choices, "arrays are passed as they are", False)
    truth = TASKS[task].truth_kind
    if truth == "boxes":
        return Setting("scale", "unit", data.SCALES, "the usual one of detectors")
    if truth != "class":
        return Setting("scale", "imagenet", data.SCALES, "the usual one")

    def run(inputs: Tensor) -> Tensor:
        return model_inputs.answers_to_model_inputs(predictor, inputs)[0].flatten(1)

    value, why = _best_preview_scale_setting(images, run, wanted, labels)
    return Setting("scale", value, data.SCALES, why)


def outputs_setting(outputs: Tensor, task: str) -> Setting:
    """Return whether outputs are logits, probabilities, values or boxes."""
    kind = TASKS[task].truth_kind
    if not task_takes(task, "outputs"):
        return Setting("outputs", kind, {kind: kind}, "", False)
    shares = _is_probability(outputs)
    if kind == "labels":
        shares = bool((outputs >= 0).all() and (outputs <= 1).all())
    value = "probabilities" if shares else "logits"
    why = "they are positive and sum to 1" if shares else "they do not sum to 1"
    return Setting("outputs", value, OUTPUTS, why)


def labels_setting(
    source: data.Source, outputs: Tensor, names: list[str] | None, task: str, given: bool
) -> tuple[Setting, list[str] | None]:
    """Return where labels come from, and the names of the classes if they are known.

    Names that the reader gave state the order of the classes: folders with other names get no
    number by their alphabetical order.
    """
    files = isinstance(source, data.ImageFiles)
    both = {FOLDERS: "folder names" if files else "y of the data", NONE: "none"}

    def without(why: str, guessed: bool = False) -> tuple[Setting, list[str] | None]:
        return Setting("labels", NONE, {NONE: "none"}, why, guessed), names

    if source.labels is None:
        return without("the images lie in no folders of classes" if files else "the data have no y")
    truth = TASKS[task].truth_kind
    if truth in ("boxes", "map"):
        return without("a first look at boxes and maps compares with none")
    if not files:
        return Setting("labels", FOLDERS, both, "the data have them", False), names
    if truth != "class":
        return without("folders are classes, which this task does not have", True)
    folders, count = [str(name) for name in source.classes or ()], outputs.shape[-1]
    strange = [name for name in folders if name not in (names or ())]
    if names and not strange:
        why = "the folders have names of the model's classes"
        return Setting("labels", FOLDERS, both, why), names
    if names and given:
        return without(
            f"{len(strange)} of {len(folders)} folders, such as {strange[0]!r}, are not among the "
            "names given with --classes"
        )
    if len(folders) == count:
        why = f"as many folders as the model has outputs, {count}, in alphabetical order"
        return Setting("labels", FOLDERS, both, why), folders
    return without(
        f"{len(folders)} folders, but the model has {count} outputs; pass --classes with the names "
        "of all its classes",
        True,
    )


PREFERRED = ("imagenet", "unit", "symmetric", "bytes")
"""Scales in the order in which they are taken if the images cannot tell them apart."""
_LEAST = 0.4
"""The least share of the possible information at which the answers decide on a scale."""
_CLOSE = 1.1
_SUM = 1e-3


def _is_probability(outputs: Tensor) -> bool:
    """Check whether outputs `[N, C]` are probabilities of classes.

    >>> _is_probability(torch.tensor([[0.2, 0.8]])), _is_probability(torch.tensor([[2.0, -1.0]]))
    (True, False)
    """
    return bool((outputs >= 0).all() and ((outputs.sum(-1) - 1).abs() < _SUM).all())


def preview_information(outputs: Tensor) -> float:
    """Compute how much the answers `[N, C]` tell about which image was shown, in bits.

    The entropy of the mean answer minus the mean entropy: 0 if all images get the same answer, or
    if all answers are undecided. Saturated nonsense is confident, but the same for every image.

    >>> preview_information(torch.eye(4)), preview_information(torch.full((4, 4), 0.25))
    (2.0, 0.0)
    """
    if not bool(torch.isfinite(outputs).all()):
        return 0.0
    shares = outputs if _is_probability(outputs) else outputs.softmax(-1)
    each = torch.special.entr(shares.double()).sum(-1).mean()
    whole = torch.special.entr(shares.double().mean(0)).sum()
    return round(float((whole - each) / np.log(2)), 3)


def _best_preview_scale_setting(
    images: Tensor,
    run: Callable[[Tensor], Tensor],
    wanted: data.ImagePreprocessing,
    labels: Tensor | None,
) -> tuple[str, str]:
    """Return the scale with the most informative answers, and the reason in words.

    With labels of the model's classes, accuracy decides where it differs.
    """
    told, right = {}, {}
    for scale in data.SCALES:
        outputs = run(replace(wanted, scale=scale)(images))
        told[scale] = preview_information(outputs)
        hits = None if labels is None else (outputs.argmax(-1) == labels).float()
        right[scale] = 0.0 if hits is None else float(hits.mean())
    best = max(PREFERRED, key=lambda scale: (right[scale], told[scale]))  # the first of equals
    tried = f"of {len(data.SCALES)} scales tried on {len(images)} images"
    most = max(value for scale, value in right.items() if scale != best)
    if right[best] > most:
        share = f"{percent(right[best])}; next {percent(most)}".replace("%", " %")
        return best, f"{tried}, the most predictions are correct with this one ({share})"
    possible = float(np.log2(min(len(images), outputs.shape[-1])))
    if told[best] < _LEAST * possible:
        return PREFERRED[0], f"the usual one; {tried}, no prediction depends on the image"
    most = max(value for scale, value in told.items() if scale != best)
    close = "; close, so check it" if most * _CLOSE > told[best] else ""
    return best, (
        f"{tried}, the predictions tell the images apart best with this one ({told[best]:.1f} of "
        f"{possible:.1f} bits; next {most:.1f}{close})"
    )
