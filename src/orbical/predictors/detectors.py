"""Detectors in files: letterbox, decoding and non-maximum suppression around the network.

A decoding reads raw outputs as candidates: boxes `[N, n, 4]` (left, top, right, bottom, in pixels
of what the network saw), scores and labels `[N, n]`; a label of -1 is no detection.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from .._trees import Tree
from ..errors import InputError, ModelError, check_name, real_number, whole_number
from ..tasks import iou
from .model_files import OnnxPredictor, TflitePredictor
from .predictor import Predictor, Shape, Wrapper

RAW = "raw"
_GRAY = 114 / 255  # what YOLO networks are trained with
_USUAL_SIZE = (640, 640)
_MOST_CANDIDATES = 300
Candidates = tuple[Tensor, Tensor, Tensor]
Outputs = Mapping[str, Tensor]
STRIDES = ((8, 16, 32), (8, 16, 32, 64), (16, 32))
"""The grids of usual heads, in pixels of the input."""
_ANCHORS = 3  # of each cell, in heads with anchors


@dataclass(frozen=True)
class Decoding:
    """A way to read outputs, and what the network expects around it.

    Attributes:
        read: from outputs by name and the height and width of the input to candidates.
        overlap: the IoU from which the less confident of two boxes of a class is dropped; None if
            the network did that itself.
        letterbox: whether images keep their proportions, with gray borders; else they are
            stretched.
    """

    read: Callable[[Outputs, tuple[int, int]], Candidates]
    overlap: float | None
    letterbox: bool = True


def yolov5(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, n, 5 + classes]`: center, width, height, objectness, scores of the classes."""
    rows = _first(outputs, "[N, boxes, 5 + classes]", 6)
    scores, labels = (rows[..., 4:5] * rows[..., 5:]).max(-1)
    return _detector_box_corners(rows, size), scores, labels


def yolov8(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, 4 + classes, n]`: center, width, height, scores of the classes."""
    columns = _first(outputs, "[N, 4 + classes, boxes]", 1)
    rows = columns.transpose(1, 2)
    if rows.shape[-1] < 5:
        raise _unreadable("[N, 4 + classes, boxes]", columns)
    scores, labels = rows[..., 4:].max(-1)
    return _detector_box_corners(rows, size), scores, labels


def yolov10(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, n, 6]`: left, top, right, bottom, confidence, class."""
    rows = _first(outputs, "[N, boxes, 6]", 6)
    if rows.shape[-1] != 6:
        raise _unreadable("[N, boxes, 6]", rows)
    return rows[..., :4], rows[..., 4], rows[..., 5]


def ssd(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read boxes `[N, n, 4]` (top, left, bottom, right in 0..1), classes, scores and a count."""
    boxes, labels, scores, count = _ssd_parts(outputs)
    height, width = size
    sides = torch.tensor([width, height] * 2, device=boxes.device)
    if count is not None:
        beyond = torch.arange(labels.shape[1], device=labels.device) >= count.reshape(-1, 1)
        labels = labels.masked_fill(beyond, -1)
    return boxes[..., [1, 0, 3, 2]] * sides, scores, labels


DECODINGS = {
    "yolov5": Decoding(yolov5, 0.45),
    "yolov8": Decoding(yolov8, 0.7),
    "yolov10": Decoding(yolov10, None),
    "ssd": Decoding(ssd, None, letterbox=False),
}
"""The decodings by name, with the thresholds that their authors use."""


def _guessed_detector_decoding(
    shapes: Mapping[str, Sequence[object]], size: tuple[int, int] | None, classes: int | None
) -> str | None:
    """Return the decoding that the shapes of outputs leave no doubt about, None if there is one.

    The number of boxes of a YOLO head follows from the size of its input; where that is free, the
    number of classes that the file names decides.

    Args:
        shapes: the declared shapes; anything but a whole number is free.
        size: height and width of the input, if they are fixed.
        classes: the number of classes that the file names.

    Example:
        >>> _guessed_detector_decoding({"output0": [1, 84, 8400]}, (640, 640), None)
        'yolov8'
        >>> _guessed_detector_decoding({"output": [1, 25200, 85]}, (640, 640), None)
        'yolov5'
        >>> _guessed_detector_decoding({"text": [1, 40, 6625]}, (48, 320), None)
    """
    ranks = sorted(len(shape) for shape in shapes.values())
    if ranks == [1, 2, 2, 3] and any([*shape][2:] == [4] for shape in shapes.values()):
        return "ssd"
    if {"detection_boxes", "detection_classes", "detection_scores"} <= {*_plain_names(shapes)}:
        return "ssd"
    first = [*next(iter(shapes.values()), ())]
    if len(first) != 3:
        return None
    _, middle, last = first
    cells = set() if size is None else {_cells(size, strides) for strides in STRIDES}
    if middle in {_ANCHORS * count for count in cells} and _may_be(last, 6):
        return "yolov5"
    if len(shapes) == 1 and last in cells and _may_be(middle, 5):
        return "yolov8"
    if classes is not None and len(shapes) == 1:
        known = {(1, 4 + classes): "yolov8", (2, 5 + classes): "yolov5", (2, 6): "yolov10"}
        return next((name for (at, side), name in known.items() if first[at] == side), None)
    return None


def _survivors(boxes: Tensor, scores: Tensor, labels: Tensor, overlap: float) -> Tensor:
    """Mark the boxes `[N, n]` that non-maximum suppression keeps, class by class.

    From the most confident on, a box that is kept drops every later one of its class whose IoU with
    it is larger than `overlap`. Boxes must be sorted by falling scores.
    """
    close = iou(boxes[:, :, None], boxes[:, None]) > overlap
    close &= labels[:, :, None] == labels[:, None]
    kept = torch.ones_like(scores, dtype=torch.bool)
    for place in range(boxes.shape[1] - 1):
        kept[:, place + 1 :] &= ~(close[:, place, place + 1 :] & kept[:, place, None])
    return kept


def _cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    return sum((size[0] // stride) * (size[1] // stride) for stride in strides)


def _may_be(side: object, least: int) -> bool:
    """Check whether a declared side is free, or large enough."""
    return not isinstance(side, int) or side >= least


def _first(outputs: Outputs, expected: str, least: int) -> Tensor:
    rows = next(iter(outputs.values()))
    if rows.ndim != 3 or rows.shape[-1] < least:
        raise _unreadable(expected, rows)
    return rows


def _unreadable(expected: str, found: Tensor) -> ModelError:
    return ModelError(
        f"model output: expected {expected} for this decoding, got {[*found.shape]}; name another "
        f"one: {', '.join(DECODINGS)}"
    )


def _detector_box_corners(rows: Tensor, size: tuple[int, int]) -> Tensor:
    """Return corners of boxes given by center, width and height, in pixels or as shares."""
    center, half = rows[..., :2], rows[..., 2:4] / 2
    boxes = torch.cat([center - half, center + half], -1)
    # TensorFlow Lite exports give shares of the input. In pixels, some of the thousands of centers
    # of a head lie farther from the corner than 2.
    if rows.numel() and float(center.max()) <= 2:
        boxes = boxes * torch.tensor([size[1], size[0]] * 2, device=rows.device)
    return boxes


def _ssd_parts(outputs: Outputs) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Find boxes, classes, scores and the count, by their names or by shape and values."""
    plain = dict(zip(_plain_names(outputs), outputs.values(), strict=True))
    boxes = plain.get("detection_boxes")
    if boxes is None:
        boxes = next((one for one in plain.values() if one.ndim == 3 and one.shape[-1] == 4), None)
    flat = {name: one for name, one in plain.items() if one.ndim == 2}
    scores = next((one for name, one in flat.items() if "score" in name), None)
    labels = next((one for name, one in flat.items() if "class" in name), None)
    if (scores is None or labels is None) and len(flat) == 2:
        labels, scores = flat.values()  # the usual order
        if bool((labels % 1 != 0).any()):  # a class is a whole number
            labels, scores = scores, labels
    if boxes is None or labels is None or scores is None:
        shapes = {name: [*one.shape] for name, one in outputs.items()}
        raise ModelError(
            "model output: expected boxes [N, n, 4], classes [N, n] and scores [N, n] for the "
            f"decoding ssd, got {shapes}"
        )
    count = next((one for one in plain.values() if one.ndim == 1), None)
    return boxes, labels, scores, count


def _plain_names(outputs: Mapping[str, object]) -> list[str]:
    """Return the names of outputs without what TensorFlow adds, such as `:0`."""
    return [name.partition(":")[0] if name.startswith("detection") else name for name in outputs]


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

    See Also:
        HuggingFacePredictor: Detectors of transformers.

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
        network = _network_of(model)
        given, kind = _image_input(network)
        self._channels_last = given[-1] in (1, 3) and given[1] not in (1, 3)
        self._bytes = "int" in kind
        sides = given[1:3] if self._channels_last else given[2:]
        height, width = (side if isinstance(side, int) and side > 0 else None for side in sides)
        declared = None if height is None or width is None else (height, width)
        self.decoding = _known_detector_decoding(network, decoding, declared)
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
        images, grown, offset = _images_fitted_to_detector(batch, wanted, self._how.letterbox)
        if self._bytes:
            images = (images * 255).round().clamp(0, 255)
        if self._channels_last:
            images = images.permute(0, 2, 3, 1).contiguous()
        raw = self.network(images)
        names = [*self.network.declared_outputs]
        outputs = dict(zip(names, raw if isinstance(raw, tuple) else (raw,), strict=True))
        boxes, scores, labels = self._how.read(outputs, wanted)
        boxes, scores, labels = self._most_confident(boxes.float(), scores.float(), labels)
        shift, scale = (torch.tensor([*pair] * 2, device=boxes.device) for pair in (offset, grown))
        return {"boxes": (boxes - shift) / scale, "scores": scores, "labels": labels}

    def _most_confident(self, boxes: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """Keep the most confident boxes that no other of their class covers."""
        count = min(_MOST_CANDIDATES, scores.shape[1])
        scores, places = scores.masked_fill(labels < 0, 0).topk(count)
        boxes = boxes.gather(1, places[..., None].expand(-1, -1, 4))
        labels = labels.gather(1, places)
        kept = scores >= max(self.confidence, torch.finfo(scores.dtype).tiny)
        if self.overlap is not None:
            kept &= _survivors(boxes, scores, labels, self.overlap)
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
        expected = f"an ONNX or TensorFlow Lite file before :{decoding}"
        raise InputError("model", expected, repr(network.source))
    if decoding is not None:
        check_name("decoding", decoding, [*DECODINGS, RAW])
    if decoding == RAW:
        return network
    try:
        return DetectorPredictor(network, decoding)
    except _NoDetector:
        if decoding is None:
            return network
        raise


class _NoDetector(InputError):
    """The network takes no images, or its decoding cannot be guessed."""


def _network_of(model: object) -> OnnxPredictor | TflitePredictor:
    if isinstance(model, OnnxPredictor | TflitePredictor):
        return model
    if not isinstance(model, str) or not model.endswith((".onnx", ".tflite")):
        raise InputError("model", "a file ending in .onnx or .tflite", repr(model))
    return OnnxPredictor(model) if model.endswith(".onnx") else TflitePredictor(model)


def _image_input(network: OnnxPredictor | TflitePredictor) -> tuple[Shape, str]:
    inputs = [*network.declared_inputs.values()]
    if len(inputs) != 1 or len(inputs[0][0]) != 4:
        shapes = [shape for shape, _ in inputs]
        raise _NoDetector("model", "one input of images for a detector", shapes)
    return inputs[0]


def _known_detector_decoding(
    network: OnnxPredictor | TflitePredictor, given: str | None, size: tuple[int, int] | None
) -> str:
    if given is not None:
        check_name("decoding", given, DECODINGS)
        return given
    names, shapes = _class_names(network), network.declared_outputs
    found = _guessed_detector_decoding(shapes, size, None if names is None else len(names))
    if found is None:
        why = f"because the outputs {[*shapes.values()]} leave it open"
        raise _NoDetector("decoding", f"one of {', '.join(DECODINGS)}, {why}", "None")
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


def _images_fitted_to_detector(
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
