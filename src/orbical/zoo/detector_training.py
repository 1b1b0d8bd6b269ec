"""Training the detector on key objects: the view is centered on one, or moved away from it.

Of each sample only the key object is a target. Cells inside other objects are neither target nor
background, so that how far the key object strays from the center is the only thing in which two
trainings differ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from orbical.errors import InputError

from .detector import STRIDE, Detector, cell_centers

BATCH = 128
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 2e-2
AVERAGING = 0.998
REACH = 1.5 * STRIDE
"""Pixels around the center of an object within which cells answer for it."""


@dataclass(frozen=True)
class Crops:
    """Training material, in bytes: a square around each key object, and the objects in it.

    Attributes:
        pixels: `[n, s, s, 3]`, uint8, centered on the key object.
        objects: `[n, T, 5]`, boxes and classes in pixels of the un-moved view, the key first.
        known: `[n, classes]`, which classes were looked for in the image.
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
    channels: tuple[int, ...],
    steps: int,
    seed: int = 0,
    device: str = "cpu",
    window: int = 128,
    batch: int = BATCH,
    seconds: float = float("inf"),
    tell: Callable[[int, float], None] | None = None,
) -> Detector:
    """Train a detector with AdamW and a one-cycle schedule, and average its weights over time.

    Every sample is seen mirrored or not, in other light, and with its key object moved by a shift
    uniform on the whole pixels within `jitter` times the room that the crops leave.

    Args:
        crops: the material.
        jitter: 0 keeps the key object in the middle, 1 moves it as far as the crops allow.
        channels: widths of the network.
        steps: of the optimizer; fewer where the time is up, the schedule then ending early.
        seed: of weights, order, shifts and light.
        device: where to.
        window: pixels of the view.
        batch: views in one step.
        seconds: time after the first step, which wakes the device, after which to stop; the
            schedule follows the larger share of the two.
        tell: called with the number of steps done and the loss of the last, every 100 and at the
            end.

    Returns:
        The averaged network in evaluation mode, on the processor.
    """
    if not 0 <= jitter <= 1:
        raise InputError(f"jitter: {jitter!r} given, a share from 0 to 1 expected")
    if steps < 1:
        raise InputError(f"steps: {steps!r} given, at least 1 expected")
    where = torch.device(device)
    torch.manual_seed(seed)
    net = Detector(crops.known.shape[1], channels).to(where)
    average = Detector(crops.known.shape[1], channels).to(where)
    average.load_state_dict(net.state_dict())
    here = crops.to(where)
    random = torch.Generator(where).manual_seed(seed)
    room = round(jitter * (crops.pixels.shape[1] - window) / 2)
    on_gpu = where.type == "cuda"
    optimizer = torch.optim.AdamW(
        net.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=on_gpu
    )
    averaged, current = _numbers_of(average), _numbers_of(net)
    step, done, begun = 0, 0.0, math.inf
    while done < 1:
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * _warmed(done)
        images, objects, known = views(here, batch, room, window, random)
        with torch.autocast(where.type, torch.bfloat16, enabled=on_gpu):
            logits, boxes = net.maps(images)
        loss = loss_of(logits.float(), boxes.float(), objects, known, window)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        _blend(averaged, current, min(AVERAGING, step / (step + 10)))
        step += 1
        begun = time.monotonic() if step == 1 else begun
        done = max(step / steps, (time.monotonic() - begun) / seconds)
        if tell is not None and (step % 100 == 0 or done >= 1):
            tell(step, loss.item())
    return average.cpu().eval()


def _warmed(done: float) -> float:
    """Rise over the first twentieth, then fall as a half cosine."""
    if done < 0.05:
        return done / 0.05
    return 0.5 * (1 + math.cos(math.pi * (done - 0.05) / 0.95))


def _numbers_of(net: nn.Module) -> list[Tensor]:
    """List a network's weights and statistics; its counts of batches are left out."""
    return [value for value in net.state_dict().values() if value.is_floating_point()]


@torch.no_grad()
def _blend(old: list[Tensor], new: list[Tensor], share: float) -> None:
    """Keep a share of the old numbers, all at once: one by one, an accelerator waits for Python."""
    torch._foreach_lerp_(old, new, 1 - share)


def views(
    crops: Crops, count: int, room: int, window: int, random: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw views: images `[count, 3, w, w]`, objects `[count, T, 5]` in them, known classes.

    Args:
        crops: the material.
        count: how many views.
        room: pixels by which the key object is moved at most.
        window: pixels of the view, w.
        random: on the material's device.
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
    return _other_light(images, draw(count, 3, 1, 1, 1)), objects, crops.known[which]


def _other_light(images: Tensor, amount: Tensor) -> Tensor:
    """Change brightness, contrast and saturation by up to 40 %."""
    brightness, contrast, saturation = (0.6 + 0.8 * amount[:, k] for k in range(3))
    gray = images.mean(1, keepdim=True)
    images = gray + saturation * (images - gray)
    mean = images.mean((1, 2, 3), keepdim=True)
    return ((mean + contrast * (images - mean)) * brightness).clamp(0, 1)


def loss_of(logits: Tensor, boxes: Tensor, objects: Tensor, known: Tensor, window: int) -> Tensor:
    """Give the loss: confidence should be the IoU that the cell's own box reaches.

    Quality focal loss over all cells that count, `|y - p|^2 BCE(p, y)` with y the IoU of the cell's
    box at the key object's cells and class, 0 elsewhere; plus 1 - GIoU of the key's cells.

    Args:
        logits: `[n, cells, classes]`.
        boxes: `[n, cells, 4]`.
        objects: `[n, T, 5]`, the key object first.
        known: `[n, classes]`; other classes have no loss where they were not looked for.
        window: pixels of the view.
    """
    center = cell_centers(window, window, boxes.device)
    inside = _inside(center, objects[..., :4].nan_to_num(-1e6))  # [n, T, cells]
    key = objects[:, :1, :4]
    middle = (key[..., :2] + key[..., 2:]) / 2
    mine = ((center - middle).abs().amax(-1) <= REACH) & inside[:, 0]
    # An object smaller than a cell may hold no cell's center: the nearest cell answers for it.
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
    """Give IoU and generalized IoU of boxes `[n, cells, 4]` with one box a sample `[n, 1, 4]`."""
    low = torch.maximum(boxes[..., :2], target[..., :2])
    high = torch.minimum(boxes[..., 2:], target[..., 2:])
    both = (high - low).clamp_min(0).prod(-1)
    either = (
        (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        + (target[..., 2:] - target[..., :2]).prod(-1)
        - both
    )
    around = (
        torch.maximum(boxes[..., 2:], target[..., 2:])
        - torch.minimum(boxes[..., :2], target[..., :2])
    ).prod(-1)
    iou = both / either.clamp_min(1e-6)
    return iou, iou - (around - either) / around.clamp_min(1e-6)
