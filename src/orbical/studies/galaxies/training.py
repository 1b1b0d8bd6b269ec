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
    blurred = {
        part: (_normalised(point_spread(images, trial.blur)), labels)
        for part, (images, labels) in (
            (part, splits[f"{trial.data}-{part}"]) for part in ("train", "test")
        )
    }
    model = _trained(trial, *blurred["train"])
    images, labels = blurred["test"]
    logits = _answers(model, images)
    curves = _along_the_circle(model, images, labels)
    own = model.defect(images[:DEFECT_SAMPLES].float())
    circle = model.defect(images[:DEFECT_SAMPLES].float(), f"rotations:{ANGLES}")
    confidence, correct = calibration.top_label(logits=logits, labels=labels)
    return {
        "scores": {
            "accuracy": float(correct.double().mean()),
            "ece": float(calibration.ece(confidence, correct, bins=BINS)),
            "esd": float(calibration.esd(confidence, correct)),
            "nll": float(functional.cross_entropy(logits, labels)),
            "confidence": float(confidence.mean()),
            "defect_group": own,
            "defect_circle": circle,
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": time.time() - start,
        },
        "logits": logits.cpu().numpy(),
        "curves": curves.cpu().numpy(),
    }


def _normalised(images: Tensor) -> Tensor:
    mean, deviation = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    return (images - mean) / deviation


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
def _along_the_circle(model: GroupCNN, images: Tensor, labels: Tensor) -> Tensor:
    """Give accuracy, confidence and ECE at each angle, `[3, angles]`.

    Turning images standardised to mean zero would fill the corners with grey, so that these images
    are shifted to their darkest value first.
    """
    floor = images.amin((0, 2, 3), keepdim=True)
    group, action = rotations(ANGLES), Images()
    curves = []
    for k in range(ANGLES):
        turned = action.apply(group[k : k + 1], images - floor)[0] + floor
        pair = calibration.top_label(logits=_answers(model, turned), labels=labels)
        ece = calibration.ece(*pair, bins=BINS)
        curves.append(torch.stack([pair[1].double().mean(), pair[0].double().mean(), ece.double()]))
    return torch.stack(curves, 1)
