"""Training of the detector on key objects, with the view centered on them or shifted.

Only the key object of each sample is a target. Cells inside other objects are neither target nor
background, so that two trainings differ only in the distance of the key object from the center.

python -m orbical_studies.zoo_training.detectors --out FOLDER

Those that ship were trained with --scenes 4000 --steps 8000 --batch 128.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from orbical import datasets
from orbical.errors import InputError, whole_number
from orbical.zoo import detector
from orbical.zoo.detector import NAMES, STRIDE, Detector, cell_centers

from ..framework.training_loop import AfterStep, fit
from . import one_cycle, run_command, save

BATCH = 128
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 2e-2
AVERAGING = 0.998
REACH = 1.5 * STRIDE
"""Cells within this many pixels of the center of an object are responsible for it."""


@dataclass(frozen=True)
class Crops:
    """Training data: a square crop around each key object, and the objects in it.

    Attributes:
        pixels: Tensor `[n, s, s, 3]`, uint8, centered on the key object.
        objects: Tensor `[n, T, 5]`, boxes and classes in pixels of the centered view, key first.
        known: Tensor `[n, classes]`, the classes that were annotated in the image.
    """

    pixels: Tensor
    objects: Tensor
    known: Tensor

    def to(self, device: torch.device) -> Crops:
        """Move everything to a device."""
        return Crops(self.pixels.to(device), self.objects.to(device), self.known.to(device))


def train(
    crops: Crops,
    jitter: float,
    network: Callable[[int], Detector],
    steps: int,
    seed: int = 0,
    device: str = "cpu",
    window: int = 128,
    batch: int = BATCH,
    seconds: float = float("inf"),
    after_step: AfterStep | None = None,
) -> Detector:
    """Train a detector with AdamW and a one-cycle schedule, and average its weights over time.

    Samples are randomly mirrored and changed in brightness, contrast and saturation, and the key
    object is shifted by a uniform number of pixels within `jitter` times the margin of the crops.

    Args:
        crops: The training data.
        jitter: 0 keeps the key object centered, 1 shifts it as far as the crops allow.
        network: Returns a new network for a number of classes.
        steps: Largest number of optimizer steps.
        seed: Seed of the weights and the augmentation.
        device: Device to train on.
        window: Side of the view in pixels.
        batch: Number of views per step.
        seconds: Time limit, from the end of the first step, which initializes the device. The
            schedule follows the larger of the two shares done.
        after_step: Called with the number of finished steps and the loss.

    Returns:
        The averaged network in evaluation mode, on the CPU.

    Raises:
        InputError: If `jitter` is not in 0..1 or `steps` is less than 1.
    """
    if not 0 <= jitter <= 1:
        raise InputError("jitter", "a number from 0 to 1", repr(jitter))
    whole_number("steps", steps, 1)
    where = torch.device(device)
    torch.manual_seed(seed)
    net = network(crops.known.shape[1]).to(where)
    average = copy.deepcopy(net)
    here = crops.to(where)
    random = torch.Generator(where).manual_seed(seed)
    room = round(jitter * (crops.pixels.shape[1] - window) / 2)
    averaged, current = _numbers_of(average), _numbers_of(net)

    def loss(step: int) -> Tensor:
        images, objects, known = views(here, batch, room, window, random)
        with torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda"):
            logits, boxes = net.maps(images)
        return loss_of(logits.float(), boxes.float(), objects, known, window)

    def follow(taken: int, value: Tensor) -> None:
        step = taken - 1
        with torch.no_grad():  # all at once: one by one, a GPU would wait for Python
            torch._foreach_lerp_(averaged, current, 1 - min(AVERAGING, step / (step + 10)))
        if after_step is not None:
            after_step(taken, value)

    how = (steps, LEARNING_RATE, WEIGHT_DECAY, one_cycle)
    fit(net, loss, *how, seconds, clip=5.0, after_step=follow)
    return average.cpu().eval()


def _numbers_of(net: nn.Module) -> list[Tensor]:
    """Return the weights and statistics of a network, without the numbers of batches."""
    return [value for value in net.state_dict().values() if value.is_floating_point()]


def views(
    crops: Crops, count: int, room: int, window: int, random: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw random views of the crops.

    Args:
        crops: The training data.
        count: Number of views.
        room: Largest shift of the key object in pixels.
        window: Side of the view in pixels.
        random: Source of random numbers, on the device of the crops.

    Returns:
        Images `[count, 3, window, window]`, the objects `[count, T, 5]` in them, and the classes
        `[count, classes]` that were annotated.
    """
    device = crops.pixels.device

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random, device=device)

    which = (draw(count) * len(crops.pixels)).long()
    shift = (draw(count, 2) * (2 * room + 1)).long() - room
    corner = (crops.pixels.shape[1] - window) // 2 - shift
    line = torch.arange(window, device=device)
    rows, columns = corner[:, 1:, None] + line[None, :, None], corner[:, :1, None] + line
    images = crops.pixels[which[:, None, None], rows, columns].permute(0, 3, 1, 2).float() / 255
    objects = crops.objects[which].clone()
    objects[..., :4] += shift.repeat(1, 2)[:, None]
    mirrored = draw(count) < 0.5
    images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
    turned = objects.clone()
    turned[..., 0], turned[..., 2] = window - objects[..., 2], window - objects[..., 0]
    objects = torch.where(mirrored[:, None, None], turned, objects)
    return _jitter_colors(images, draw(count, 3, 1, 1, 1)), objects, crops.known[which]


def _jitter_colors(images: Tensor, amount: Tensor) -> Tensor:
    """Change brightness, contrast and saturation by up to 40 %."""
    brightness, contrast, saturation = (0.6 + 0.8 * amount[:, k] for k in range(3))
    gray = images.mean(1, keepdim=True)
    images = gray + saturation * (images - gray)
    mean = images.mean((1, 2, 3), keepdim=True)
    return ((mean + contrast * (images - mean)) * brightness).clamp(0, 1)


def loss_of(logits: Tensor, boxes: Tensor, objects: Tensor, known: Tensor, window: int) -> Tensor:
    """Compute the loss, in which the target of the confidence is the IoU of the cell's own box.

    Quality focal loss over all cells that count, `|y - p|^2 BCE(p, y)` with y the IoU of the cell's
    box at the key object's cells and class, 0 elsewhere; plus 2 (1 - GIoU) of the key's cells.

    Args:
        logits: Tensor `[n, cells, classes]`.
        boxes: Tensor `[n, cells, 4]`.
        objects: Tensor `[n, T, 5]`, the key object first.
        known: Tensor `[n, classes]`; classes that were not annotated have no loss.
        window: Side of the view in pixels.

    Returns:
        The loss, a scalar.
    """
    center = cell_centers(window, window, boxes.device)
    inside = _inside(center, objects[..., :4].nan_to_num(-1e6))  # [n, T, cells]
    key = objects[:, :1, :4]
    middle = (key[..., :2] + key[..., 2:]) / 2
    mine = ((center - middle).abs().amax(-1) <= REACH) & inside[:, 0]
    # A small object may contain no center of a cell: the nearest cell is responsible for it.
    nearest = (center - middle).square().sum(-1).argmin(-1, keepdim=True)
    mine = mine.scatter(1, nearest, True)
    blurred = inside[:, 1:].any(1) & ~mine
    overlap, generalized = _overlaps(boxes, key)
    kind = nn.functional.one_hot(objects[:, 0, 4].long(), logits.shape[-1])
    wanted = (mine[..., None] & kind[:, None].bool()) * overlap.detach()[..., None]
    given = logits.sigmoid()
    plain = nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    counts = known[:, None] & ~blurred[..., None]
    total = mine.sum().clamp_min(1)
    confidence = (plain * (wanted - given).square() * counts).sum() / total
    return confidence + 2 * ((1 - generalized) * mine).sum() / total


def _inside(center: Tensor, boxes: Tensor) -> Tensor:
    x, y = center.unbind(-1)
    left, top, right, bottom = (side[..., None] for side in boxes.unbind(-1))
    return (x > left) & (x < right) & (y > top) & (y < bottom)


def _overlaps(boxes: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Compute IoU and GIoU of boxes `[n, cells, 4]` with one box per sample, `[n, 1, 4]`."""
    low = torch.maximum(boxes[..., :2], target[..., :2])
    high = torch.minimum(boxes[..., 2:], target[..., 2:])
    both = (high - low).clamp_min(0).prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (boxes, target)]
    either = areas[0] + areas[1] - both
    outer_low = torch.minimum(boxes[..., :2], target[..., :2])
    outer_high = torch.maximum(boxes[..., 2:], target[..., 2:])
    around = (outer_high - outer_low).prod(-1)
    iou = both / either.clamp_min(1e-6)
    return iou, iou - (around - either) / around.clamp_min(1e-6)


def write(net: Detector, path: str | Path, metadata: dict[str, str]) -> Path:
    """Save a detector's weights in half precision.

    Args:
        net: The detector.
        path: The file; its folder is created.
        metadata: Further entries of the header.

    Returns:
        The path of the file.
    """
    weights = {
        key: value.half() for key, value in net.state_dict().items() if value.is_floating_point()
    }
    sizes = {"classes": str(net.classes), "channels": " ".join(map(str, net.channels))}
    return save(weights, path, {**metadata, **sizes})


def train_and_save(
    folder: str | Path,
    name: str,
    scenes: int = 1000,
    steps: int = 1500,
    batch: int = 32,
    seed: int = 0,
    device: str = "cpu",
    after_step: AfterStep | None = None,
) -> Path:
    """Train a detector on generated scenes and save its weights.

    Args:
        folder: Folder for the file; created if it does not exist.
        name: `"centered"` or `"jittered"`.
        scenes: Number of scenes.
        steps: Number of optimizer steps.
        batch: Number of views per step.
        seed: Seed of the training.
        device: Device to train on.
        after_step: Called with the number of finished steps and the loss.

    Returns:
        The path of the file.
    """
    made, jitter = datasets.scenes(scenes, seed=1), float(NAMES.index(name))
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    crops = Crops(pixels, made["objects"], torch.ones(len(pixels), 5, dtype=torch.bool))
    net = train(crops, jitter, Detector, steps, seed, device, batch=batch, after_step=after_step)
    facts = {"training set": f"orbical.datasets.scenes({scenes}, seed=1)", "jitter": str(jitter)}
    facts |= {"steps": str(steps), "seed": str(seed), "torch": torch.__version__}
    return write(net, Path(folder) / f"scenes-{name}.safetensors", facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the detectors from the command line.

    Args:
        arguments: Command-line arguments. By default, those of the process.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    budget = {"scenes": 1000, "steps": 1500, "batch": 32, "seed": 0}
    run_command(detector, arguments, train_and_save, 100, **budget, device=device)


if __name__ == "__main__":
    main()
