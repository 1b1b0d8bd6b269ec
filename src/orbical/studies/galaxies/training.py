"""One training: a network of a group on blurred galaxies, measured along the circle."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from orbical import calibration
from orbical.actions import Images
from orbical.datasets import point_spread
from orbical.groups import rotations
from orbical.zoo.group_cnn import GroupCNN

from .packing import Split
from .settings import ANGLES, Trial

RATE = 5e-3
DECAY = 1e-3
BATCH = 128
WARM_UP = 50
BINS = 15
DEFECT_SAMPLES = 64


def run(splits: dict[str, Split], trial: Trial) -> dict[str, Any]:
    """Train one network and measure it: scores, logits of the test images, curves over angles."""
    start = time.time()
    (images, labels), (tested, truth) = (
        (_prepared(images, trial.blur), labels)
        for images, labels in (splits[f"{trial.data}-{part}"] for part in ("train", "test"))
    )
    scale = images.std((0, 2, 3), keepdim=True)  # no mean is taken off, so that the sky stays 0
    model = _trained(trial, images / scale, labels)
    probabilities = _along_the_circle(model, tested / scale)
    logits = _answers(model, tested / scale)
    confidence, correct = calibration.top_label(logits=logits, labels=truth)
    return {
        "scores": {
            "accuracy": float(correct.double().mean()),
            "ece": float(calibration.ece(confidence, correct, bins=BINS)),
            "esd": float(calibration.esd(confidence, correct)),
            "nll": float(functional.cross_entropy(logits, truth)),
            "confidence": float(confidence.mean()),
            "defect_group": model.defect(tested[:DEFECT_SAMPLES] / scale),
            "gap_circle": _gap(probabilities),
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": time.time() - start,
        },
        "logits": logits.cpu().numpy(),
        "curves": _curves(probabilities, truth).cpu().numpy(),
    }


def _prepared(images: Tensor, blur: float) -> Tensor:
    """Blur each image once, and keep the disc that stays in the image however it is turned."""
    size = images.shape[-1]
    axis = (torch.arange(size, device=images.device) - (size - 1) / 2) / (size / 2)
    radius = (axis[:, None].square() + axis.square()).sqrt()
    return point_spread(images, blur) * ((1 - radius) * size / 8).clamp(0, 1)


def _trained(trial: Trial, images: Tensor, labels: Tensor) -> GroupCNN:
    torch.manual_seed(trial.seed)
    device = images.device
    classes = int(labels.max()) + 1
    model = GroupCNN(trial.group, classes=classes, channels=images.shape[1]).to(device)
    steps = trial.epochs * (len(labels) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(step / steps * math.pi)),
    )
    draw = torch.Generator(device).manual_seed(trial.seed)
    model.train()
    for _ in range(trial.epochs):
        order = torch.randperm(len(labels), device=device, generator=draw)
        for rows in order.split(BATCH)[: len(labels) // BATCH]:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = functional.cross_entropy(model(images[rows]), labels[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


@torch.inference_mode()
def _answers(model: GroupCNN, images: Tensor) -> Tensor:
    return torch.cat([model(part) for part in images.split(256)]).float()


@torch.inference_mode()
def _along_the_circle(model: GroupCNN, images: Tensor) -> Tensor:
    """Give the class probabilities at each angle, `[angles, n, classes]`."""
    group, action = rotations(ANGLES), Images()
    turned = (action.apply(group[k : k + 1], images)[0] for k in range(ANGLES))
    return torch.stack([_answers(model, moved).softmax(-1) for moved in turned])


def _gap(probabilities: Tensor) -> float:
    """Give the mean over samples of the root mean square distance from the mean answer."""
    distance = (probabilities - probabilities.mean(0)).square().sum(-1)
    return float(distance.mean(0).sqrt().mean())


def _curves(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Give accuracy, confidence and ECE at each angle, `[3, angles]`."""
    confidence, predicted = probabilities.max(-1)
    correct = predicted == labels
    ece = calibration.ece(confidence, correct, bins=BINS)
    return torch.stack([correct.double().mean(-1), confidence.double().mean(-1), ece.double()])
