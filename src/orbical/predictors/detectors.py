"""Detectors in files: letterbox, decoding and non-maximum suppression around the network."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from .._trees import Tree
from ..errors import InputError, check_name, real_number, whole_number
from . import _decodings
from ._decodings import DECODINGS
from .model_files import OnnxPredictor, TflitePredictor
from .predictor import Predictor, Shape, Wrapper

RAW = "raw"
_GRAY = 114 / 255  # what YOLO networks are trained with
_USUAL_SIZE = (640, 640)
_MOST_CANDIDATES = 300


class DetectorPredictor(Wrapper):
    """A detector in an ONNX or TensorFlow Lite file that returns boxes in pixels of the view.

    Images `[N, 3, H, W]` with values in 0..1 are brought to the size of the network: with gray
    borders for YOLO heads, stretched for SSD. Outputs are decoded, overlapping boxes of a class are
    dropped, and what remains is returned as `boxes [N, n, 4]` (left, top, right, bottom in pixels
    of the given images), `scores` and `labels`, as the task detection takes it. A network that
    wants another scale than 0..1 gets it from `preprocess=` of the scan; one that takes integers
    gets 0..255.

    | decoding | output of the network |
    |---|---|
    | `yolov5` | `[N, n, 5 + classes]`: center, size, objectness, class scores |
    | `yolov8` | `[N, 4 + classes, n]`: center, size, class scores |
    | `yolov10` | `[N, n, 6]`: corners, confidence, class |
    | `ssd` | boxes (top, left, bottom, right in 0..1), classes, scores, count |

    Args:
        model: the file, or its predictor.
        decoding: how outputs are read; None guesses it from their shapes.
        size: height and width of the network's input, where the file leaves them free; 640 x 640 by
            default for YOLO heads, and the size of the images for SSD.
        confidence: the least confidence of a detection.
        overlap: the IoU from which the less confident of two boxes of a class is dropped; by
            default 0.45 for `yolov5` and 0.7 for `yolov8`, the values of their authors.
        most: the number of detections kept for each image.

    Raises:
        InputError: If the decoding is unknown or cannot be guessed, or a number is out of range.

    Example:
        >>> import orbical as ob
        >>> ob.predictors.DetectorPredictor("yolo.onnx", "yolov8")  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | OnnxPredictor | TflitePredictor,
        decoding: str | None = None,
        size: Sequence[int] | None = None,
        confidence: float = 0.01,
        overlap: float | None = None,
        most: int = 100,
    ) -> None:
        network = _opened(model)
        given, kind = _image_input(network)
        self._channels_last = given[-1] in (1, 3) and given[1] not in (1, 3)
        self._bytes = "int" in kind
        sides = given[1:3] if self._channels_last else given[2:]
        height, width = (side if isinstance(side, int) and side > 0 else None for side in sides)
        declared = None if height is None or width is None else (height, width)
        self.decoding = _known_decoding(network, decoding, declared)
        self._how = DECODINGS[self.decoding]
        self.network = network
        self.size = declared or _two_sides(size)
        for name, value in (("confidence", confidence), ("overlap", overlap)):
            if value is not None:
                real_number(name, value, "in [0, 1]")
        self.confidence, self.most = float(confidence), whole_number("most", most)
        self.overlap = self._how.overlap if overlap is None else float(overlap)
        self.takes_unit_images = self._how.letterbox or self._bytes
        self.classes = _class_names(network)
        settings = (self.decoding, self.size, self.confidence, self.overlap, self.most)
        super().__init__(network, str(settings))
        self.source += f":{decoding}" if decoding else ""

    @property
    def declared_inputs(self) -> dict[str, tuple[Shape, str]]:
        """The images that need no border: those of the network's own size."""
        sides = self.size or (None, None)
        return {"images": ([None, 3, *sides], "tensor(float)")}

    def __call__(self, batch: Tree) -> dict[str, Tensor]:
        """Return the detections of a batch of images."""
        if not isinstance(batch, Tensor) or batch.ndim != 4:
            got = [*batch.shape] if isinstance(batch, Tensor) else type(batch).__name__
            raise InputError("data", "images [N, 3, H, W] for a detector", got)
        usual = _USUAL_SIZE if self._how.letterbox else (batch.shape[2], batch.shape[3])
        wanted = self.size or usual
        images, grown, offset = _fitted(batch, wanted, self._how.letterbox)
        if self._bytes:
            images = (images * 255).round().clamp(0, 255)
        if self._channels_last:
            images = images.permute(0, 2, 3, 1).contiguous()
        raw = self.network(images)
        names = [*self.network.declared_outputs]
        outputs = dict(zip(names, raw if isinstance(raw, tuple) else (raw,), strict=True))
        boxes, scores, labels = self._how.read(outputs, wanted)
        boxes, scores, labels = self._chosen(boxes.float(), scores.float(), labels)
        shift, scale = (torch.tensor([*pair] * 2, device=boxes.device) for pair in (offset, grown))
        return {"boxes": (boxes - shift) / scale, "scores": scores, "labels": labels}

    def _chosen(self, boxes: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """Keep the most confident boxes that no other of their class covers."""
        count = min(_MOST_CANDIDATES, scores.shape[1])
        scores, places = scores.masked_fill(labels < 0, 0).topk(count)
        boxes = boxes.gather(1, places[..., None].expand(-1, -1, 4))
        labels = labels.gather(1, places)
        kept = scores >= max(self.confidence, torch.finfo(scores.dtype).tiny)
        if self.overlap is not None:
            kept &= _decodings.suppress(boxes, scores, labels, self.overlap)
        scores, order = scores.masked_fill(~kept, 0).topk(min(self.most, count))
        labels = labels.gather(1, order).masked_fill(scores == 0, -1)
        return boxes.gather(1, order[..., None].expand(-1, -1, 4)), scores, labels


def as_detector(network: Predictor, decoding: str | None = None) -> Predictor:
    """Return a network whose decoding is named or beyond doubt as a detector, others as they are.

    The name `raw` keeps a network as it is.
    """
    if not isinstance(network, OnnxPredictor | TflitePredictor):
        if decoding is None:
            return network
        raise InputError(
            "model", f"an ONNX or TensorFlow Lite file before :{decoding}", repr(network.source)
        )
    if decoding is not None:
        check_name("decoding", decoding, [*DECODINGS, RAW])
    images = [*network.declared_inputs.values()]
    if decoding == RAW or (decoding is None and (len(images) != 1 or len(images[0][0]) != 4)):
        return network
    try:
        return DetectorPredictor(network, decoding)
    except _Doubtful:
        return network


class _Doubtful(InputError):
    """The decoding cannot be guessed."""


def _opened(model: object) -> OnnxPredictor | TflitePredictor:
    if isinstance(model, OnnxPredictor | TflitePredictor):
        return model
    if not isinstance(model, str) or not model.endswith((".onnx", ".tflite")):
        raise InputError("model", "a file ending in .onnx or .tflite", repr(model))
    return OnnxPredictor(model) if model.endswith(".onnx") else TflitePredictor(model)


def _image_input(network: OnnxPredictor | TflitePredictor) -> tuple[Shape, str]:
    inputs = [*network.declared_inputs.values()]
    if len(inputs) != 1 or len(inputs[0][0]) != 4:
        shapes = [shape for shape, _ in inputs]
        raise InputError("model", "one input of images for a detector", shapes)
    return inputs[0]


def _known_decoding(
    network: OnnxPredictor | TflitePredictor, given: str | None, size: tuple[int, int] | None
) -> str:
    if given is not None:
        check_name("decoding", given, DECODINGS)
        return given
    names = _class_names(network)
    shapes = network.declared_outputs
    found = _decodings.guessed_detector_decoding(
        shapes, size, None if names is None else len(names)
    )
    if found is None:
        raise _Doubtful(
            f"decoding: expected one of {', '.join(DECODINGS)}, because the outputs "
            f"{[*shapes.values()]} leave it open, got None"
        )
    return found


def _class_names(network: OnnxPredictor | TflitePredictor) -> list[str] | None:
    """Return the names of classes as the exporters of YOLO write them into a file."""
    text = network.metadata.get("names", "") if isinstance(network, OnnxPredictor) else ""
    with suppress(ValueError, SyntaxError):
        names = ast.literal_eval(text)
        return [str(name) for name in (names.values() if isinstance(names, dict) else names)]
    return None


def _two_sides(size: object) -> tuple[int, int] | None:
    match size:
        case None:
            return None
        case (int(height), int(width)) if height > 0 and width > 0:
            return height, width
    raise InputError("size", "height and width in whole pixels", repr(size))


def _fitted(
    images: Tensor, size: tuple[int, int], letterbox: bool
) -> tuple[Tensor, tuple[float, float], tuple[int, int]]:
    """Bring images to a size; return them, the growth in x and y, and where they begin."""
    given = (images.shape[2], images.shape[3])
    if given == size:
        return images, (1.0, 1.0), (0, 0)
    inner = size
    if letterbox:
        ratio = min(size[0] / given[0], size[1] / given[1])
        inner = (max(1, round(given[0] * ratio)), max(1, round(given[1] * ratio)))
    if inner != given:
        images = interpolate(images, inner, mode="bilinear", align_corners=False, antialias=True)
    top, left = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    edges = (left, size[1] - inner[1] - left, top, size[0] - inner[0] - top)
    grown = (inner[1] / given[1], inner[0] / given[0])
    return pad(images, edges, value=_GRAY), grown, (left, top)
