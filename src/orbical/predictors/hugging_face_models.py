"""Predictors from Hugging Face transformers: image models, with their image processors."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.nn.modules.module import register_module_parameter_registration_hook

from .._imports_and_paths import import_extra, reading
from .._trees import Tree
from ..errors import InputError
from .model_files import reading_model
from .model_objects import TorchPredictor, unwrapped_model
from .predictor import Raw

_CONFIG, _PROCESSOR = "config.json", "preprocessor_config.json"
_MARGIN = 0.5  # bicubic resampling overshoots 0 .. 1 by less; normalized images by more


class HuggingFacePredictor(TorchPredictor):
    """A model of transformers, with the image processor that prepares its images.

    With a processor, batches are images `[N, 3, H, W]` with values in 0..1, which the processor
    resizes and normalizes after the group has moved them; without one, they are passed as they are.
    Outputs refer to the pixels of the given images: maps of class scores are interpolated to
    `[N, classes, H, W]`, as the library does, and the boxes of detectors (DETR and related models)
    become a dictionary of `boxes` (left, top, right, bottom), `scores` and `labels`, for the task
    detection. Every other output is returned as it is.

    Args:
        model: a `PreTrainedModel`; it may be compiled or wrapped in `DataParallel`.
        processor: its image processor, such as `AutoImageProcessor.from_pretrained(...)`.

    Raises:
        InputError: If the processor is not one.

    See Also:
        CausalLM: Language models of transformers.

    Example:
        >>> import orbical as ob
        >>> from transformers import AutoImageProcessor, AutoModelForImageClassification
        >>> name = "google/vit-base-patch16-224"
        >>> model = AutoModelForImageClassification.from_pretrained(name)  # doctest: +SKIP
        >>> processor = AutoImageProcessor.from_pretrained(name)  # doctest: +SKIP
        >>> ob.predictors.HuggingFacePredictor(model, processor)  # doctest: +SKIP
    """

    def __init__(self, model: torch.nn.Module, processor: Any = None) -> None:
        super().__init__(model)
        if processor is not None and not hasattr(processor, "image_mean"):
            expected = "an image processor, such as AutoImageProcessor.from_pretrained(...)"
            raise InputError("processor", expected, type(processor))
        self.processor = processor
        self.takes_unit_images = processor is not None
        config: Any = self._inner.config
        self._labels: Mapping[int, str] = config.id2label
        self.classes = _class_names(self._labels)

    @classmethod
    def load(cls, folder: str) -> HuggingFacePredictor:
        """Read a folder that `save_pretrained` wrote; no code in the folder is run.

        Args:
            folder: the folder of the model and, if it has one, of its image processor.

        Returns:
            The predictor.

        Raises:
            ModelError: If the folder has no model that transformers knows.
            InputError: If the configuration asks for a larger model than the files can hold, or
                for weights that they do not have.
        """
        library = import_extra("transformers", "transformers", f"the model {folder!r}")
        here = {"local_files_only": True, "trust_remote_code": False}
        with loading_model(Path(folder), "a folder that save_pretrained wrote"):
            names = library.AutoConfig.from_pretrained(folder, **here).architectures or ["none"]
            model = with_all_weights(getattr(library, names[0]), folder, **here)
            processor = None
            if (Path(folder) / _PROCESSOR).is_file():
                processor = library.AutoImageProcessor.from_pretrained(folder, **here)
        predictor = cls(model, processor)
        predictor.source = folder
        return predictor

    def __call__(self, batch: Tree) -> Raw:
        """Return the model's output for a batch, in pixels of its images."""
        raw = super().__call__(
            batch if self.processor is None else processed_for_model(self.processor, batch)
        )
        images = batch.get("pixel_values") if isinstance(batch, dict) else batch
        if not isinstance(images, Tensor) or images.ndim != 4 or not isinstance(raw, Mapping):
            return raw
        size = (images.shape[-2], images.shape[-1])
        if "pred_boxes" in raw:
            return _hugging_face_detections(
                raw["logits"], raw["pred_boxes"], len(self._labels), size
            )
        if "logits" in raw and raw["logits"].ndim == 4:
            maps = interpolate(raw["logits"], size, mode="bilinear", align_corners=False)
            return type(raw)(**{**raw, "logits": maps})
        return raw

    def fingerprint(self) -> str | None:
        """Return a hash of the weights, and of the processor's settings if there is one."""
        weights = super().fingerprint()
        if self.processor is None:
            return weights
        settings = sorted((name, str(one)) for name, one in self.processor.to_dict().items())
        return hashlib.sha256(f"{weights} {settings}".encode()).hexdigest()[:16]


@contextmanager
def loading_model(path: Path, kind: str) -> Iterator[None]:
    """Raise what transformers raises as a `ModelError`; no model may outgrow its files.

    A configuration may ask for any number of layers or labels, which would fill the memory before
    the weights are looked at, so the parameters are counted while they are made, and labels before
    they get names. A parameter takes a bit at least, however the weights are quantized.
    """
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    room = 8 * sum(one.stat().st_size for one in files)
    thread, made = get_ident(), 0

    def count(module: torch.nn.Module, name: str, parameter: Tensor) -> None:
        nonlocal made
        new = module._parameters.get(name) is None  # loaded weights are registered once more
        made += parameter.numel() if new and get_ident() == thread else 0
        check(made)

    def check(asked: object) -> None:
        if isinstance(asked, int) and asked > room:
            expected = f"a {_CONFIG} that fits the weights (at most {room:,} parameters)"
            got = f"{str(path)!r}, whose model has {asked:,} or more"
            raise InputError("model", expected, got, remedy="copy the folder again")

    hook = register_module_parameter_registration_hook(count)
    try:
        with reading_model(kind, str(path)):
            if path.is_dir():
                config = (path / _CONFIG).read_text("utf-8")
                json.loads(config, object_hook=lambda part: check(part.get("num_labels")))
            yield
    finally:
        hook.remove()


def with_all_weights(kind: Any, folder: str | Path, **options: Any) -> Any:
    """Load a model of a class of transformers, which would fill in missing weights at random."""
    model, report = kind.from_pretrained(folder, output_loading_info=True, **options)
    counts = "num_batches_tracked"  # of batch normalization, which only training reads
    missing = sorted(key for key in report["missing_keys"] if not key.endswith(counts))
    if missing:
        path = Path(folder) / options.get("gguf_file", "")
        others = f" and {len(missing) - 1:,} more" if missing[1:] else ""
        expected = f"all weights of {type(model).__name__}"
        pass_it = "load the model with transformers and pass it as an object"
        remedy = f"copy the folder again; if they are not needed, {pass_it}"
        got = f"{str(path)!r} without {missing[0]}{others}"
        raise InputError("model", expected, got, remedy=remedy)
    return model


def processed_for_model(processor: Any, batch: Tree) -> Tensor:
    """Return images `[N, 3, H, W]` in 0..1 as an image processor prepares them."""
    if not isinstance(batch, Tensor) or batch.ndim != 4 or batch.shape[1] != 3:
        got = [*batch.shape] if isinstance(batch, Tensor) else type(batch).__name__
        raise InputError("data", "images [N, 3, H, W] for the processor", got)
    low, high = float(batch.min()), float(batch.max())
    if not -_MARGIN <= low <= high <= 1 + _MARGIN:
        expected = "images with values in 0..1, which the processor normalizes"
        remedy = "pass images as they are, divided by 255"
        raise InputError("data", expected, f"{low:.3g} .. {high:.3g}", remedy=remedy)
    images = [*batch.float().clamp(0, 1)]
    made = processor(images=images, do_rescale=False, return_tensors="pt")
    pixels: Tensor = made["pixel_values"]
    return pixels.to(batch.device)


def _class_names(given: Mapping[int, str]) -> list[str] | None:
    """Return the names of classes, None for the names that every model has.

    >>> _class_names({0: "cat", 1: "dog"}), _class_names({0: "LABEL_0", 1: "LABEL_1"})
    (['cat', 'dog'], None)
    """
    names = [str(name) for _, name in sorted(given.items())]
    return None if names == [f"LABEL_{place}" for place in range(len(names))] else names


def _hugging_face_detections(
    logits: Tensor, boxes: Tensor, classes: int, size: tuple[int, int]
) -> dict[str, Tensor]:
    """Decode queries as the library's `post_process_object_detection` does.

    A model with one output more than it has classes (DETR, YOLOS) learned "no object" as the last;
    the others (Deformable DETR, RT-DETR) have an independent probability for each class.
    """
    if logits.shape[-1] == classes + 1:
        scores, labels = logits.softmax(-1)[..., :-1].max(-1)
    else:
        queries = logits.shape[1]
        scores, places = logits.sigmoid().flatten(1).topk(queries)
        labels = places % logits.shape[-1]
        query = places // logits.shape[-1]
        boxes = boxes.gather(1, query[..., None].expand(-1, -1, 4))
    height, width = size
    center, half = boxes[..., :2], boxes[..., 2:] / 2
    sides = torch.tensor([width, height] * 2, device=boxes.device)
    return {
        "boxes": torch.cat([center - half, center + half], -1) * sides,
        "scores": scores,
        "labels": labels,
    }


def hugging_face_predictor(model: Any) -> HuggingFacePredictor | None:
    """Adapt a model or a pipeline of transformers; None for anything else.

    Nothing is imported: without the module there is no such object.
    """
    pipeline = getattr(sys.modules.get("transformers.pipelines.base"), "Pipeline", ())
    if isinstance(model, pipeline):
        return HuggingFacePredictor(model.model, getattr(model, "image_processor", None))
    pretrained = getattr(sys.modules.get("transformers.modeling_utils"), "PreTrainedModel", ())
    if isinstance(model, torch.nn.Module) and isinstance(unwrapped_model(model), pretrained):
        return HuggingFacePredictor(model)
    return None


def is_model_folder(path: str) -> bool:
    """Check for a folder that `save_pretrained` wrote."""
    try:
        return (Path(path).expanduser() / _CONFIG).is_file()
    except RuntimeError:  # the home of a user that there is not
        return False


def is_causal_model(path: str) -> bool:
    """Check for a folder with a causal language model.

    Not all are named so, as `GPT2LMHeadModel` and `Gemma3ForConditionalGeneration`: transformers
    lists them.
    """
    if not is_model_folder(path):
        return False
    with reading("model", path, "a folder that save_pretrained wrote"):
        config = json.loads((Path(path).expanduser() / _CONFIG).read_text("utf-8"))
        names = [str(name) for name in config.get("architectures") or ()]
    if any(name.endswith("ForCausalLM") for name in names) or not names:
        return bool(names)
    table = import_extra(
        "transformers.models.auto.modeling_auto", "transformers", f"the model {path!r}"
    )
    return not {*names}.isdisjoint(table.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
