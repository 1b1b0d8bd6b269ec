"""One training: a network of a group on blurred galaxies, measured along the circle."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from orbical import calibration
from orbical.actions import Images
from orbical.groups import rotations
from orbical.zoo.group_cnn import GroupCNN
from orbical_studies.data import point_spread

from .packing import Split
from .settings import ANGLES, Trial

RATE = 5e-3
DECAY = 1e-3
BATCH = 128
WARM_UP = 50
BINS = 15
FIELDS = (8, 16, 32)
DEFECT_SAMPLES = 64


def run(splits: dict[str, Split], trial: Trial) -> dict[str, Any]:
    """Train one network and measure it: scores, logits of the test images, curves over angles."""
    start = time.time()
    (images, labels), (tested, truth) = (
        (prepared(images, trial.blur), labels)
        for images, labels in (splits[f"{trial.data}-{part}"] for part in ("train", "test"))
    )
    scale = images.std((0, 2, 3), keepdim=True)  # no mean is taken off, so that the sky stays 0
    images, tested = images / scale, tested / scale
    model = _trained(trial, images, labels)
    trained = time.time() - start
    with _full_precision():
        logits = _answers(model, tested)
        features = _answers(lambda part: model.classify[:-1](model.pooled(part)), tested)
        defect = model.defect(tested[:DEFECT_SAMPLES])
    probabilities, action_defect = _along_the_circle(model, tested)
    refitted = _refitted(features, truth)
    return {
        "scores": {
            **_scores(logits, truth),
            **{f"refitted_{name}": value for name, value in _scores(refitted, truth).items()},
            "train_nll": float(functional.cross_entropy(_answers(model, images), labels)),
            "defect_group": defect,
            "gap_circle": _gap(probabilities),
            "action_defect": action_defect,
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds_training": trained,
            "seconds": time.time() - start,
        },
        "logits": logits.cpu().numpy(),
        "curves": _curves(probabilities, truth).cpu().numpy(),
    }


def _scores(logits: Tensor, truth: Tensor) -> dict[str, float]:
    confidence, correct = calibration.top_label(logits=logits, labels=truth)
    return {
        "accuracy": float(correct.double().mean()),
        "confidence": float(confidence.mean()),
        "ece": float(calibration.ece(confidence, correct, bins=BINS)),
        "esd": float(calibration.esd(confidence, correct)),
        "nll": float(functional.cross_entropy(logits, truth)),
    }


def prepared(images: Tensor, blur: float) -> Tensor:
    """Blur each image once, and keep the disc that stays in the image however it is turned."""
    size = images.shape[-1]
    axis = (torch.arange(size, device=images.device) - (size - 1) / 2) / (size / 2)
    radius = (axis[:, None].square() + axis.square()).sqrt()
    return point_spread(images, blur) * ((1 - radius) * size / 8).clamp(0, 1)


def _trained(trial: Trial, images: Tensor, labels: Tensor) -> GroupCNN:
    torch.manual_seed(trial.seed)
    device = images.device
    classes = int(labels.max()) + 1
    fields = [trial.width * each for each in FIELDS]
    model = GroupCNN(trial.group, classes, channels=images.shape[1], fields=fields).to(device)
    steps = trial.epochs * (len(labels) // BATCH)
    on_gpu = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(step / steps * math.pi)),
    )
    draw = torch.Generator(device).manual_seed(trial.seed)
    model.train()
    for _ in range(trial.epochs):
        order = torch.randperm(len(labels), device=device, generator=draw)
        for rows in order.split(BATCH)[: len(labels) // BATCH]:
            with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
                loss = functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@contextmanager
def _full_precision() -> Iterator[None]:
    """Let no convolution round its inputs to ten bits, as a GPU does by default."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@torch.inference_mode()
def _answers(model: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return torch.cat([model(part) for part in images.split(256)]).float()


@torch.inference_mode()
def _along_the_circle(model: GroupCNN, images: Tensor) -> tuple[Tensor, float]:
    """Give class probabilities at each angle, `[angles, n, classes]`, and the action defect."""
    group, action = rotations(ANGLES), Images("bicubic")
    answers, lost = [], []
    for k in range(ANGLES):
        moved = action.apply(group[k : k + 1], images)[0]
        answers.append(_answers(model, moved).softmax(-1))
        some = (images[:DEFECT_SAMPLES], moved[None, :DEFECT_SAMPLES])
        lost.append(action.defect(group[k : k + 1], *some).mean())
    return torch.stack(answers), float(torch.stack(lost).mean())


def _refitted(features: Tensor, truth: Tensor) -> Tensor:
    """Give the logits of a logistic regression fitted to the test features and their labels.

    The published numbers are those of such a regression (unit penalty); it has seen every label
    that it is scored on. Measured to show how far this lies from the network's own answers.
    """
    features = features.double()
    count = int(truth.max()) + 1
    weights = features.new_zeros(features.shape[1] + 1, count, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def logits() -> Tensor:
        return features @ weights[:-1] + weights[-1]

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = weights[:-1].square().sum() / 2
        value = functional.cross_entropy(logits(), truth, reduction="sum") + penalty
        value.backward()
        return value

    optimizer.step(loss)
    return logits().detach()


def _gap(probabilities: Tensor) -> float:
    """Give the invariance gap: root mean square distance from the mean answer of the orbit."""
    distance = (probabilities - probabilities.mean(0)).square().sum(-1)
    return float(distance.mean().sqrt())


def _curves(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Give accuracy, confidence and ECE at each angle, `[3, angles]`."""
    confidence, predicted = probabilities.max(-1)
    correct = predicted == labels
    ece = calibration.ece(confidence, correct, bins=BINS)
    return torch.stack([correct.double().mean(-1), confidence.double().mean(-1), ece.double()])
