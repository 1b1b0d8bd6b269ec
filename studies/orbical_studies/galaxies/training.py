"""One training: a network of a group on blurred galaxies, measured along the circle."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical import calibration
from orbical.actions import Images
from orbical.groups import rotations
from orbical.zoo.group_cnn import GroupCNN

from ..data import point_spread
from ..framework import Results, training
from ..framework.training_loop import WholeBatches, fit_epochs
from ..networks import parameters_of
from .packing import Split, unpack
from .settings import PHOTOGRAPHS, Settings, Trial, trials

RATE, DECAY, BATCH, WARM_UP = 5e-3, 1e-3, 128, 50
BINS, ANGLES, DEFECT_SAMPLES = 15, 36, 64


def train(settings: Settings, results: Results) -> None:
    """Train all networks on the packed data that are not trained yet."""
    setup = partial(unpack, results, training.device())
    packed = setup()
    wanted = [trial for trial in trials(settings) if f"{trial.data}-train" in packed]
    training.train(wanted, settings, results.work, setup, run)


@dataclass(frozen=True)
class Recipe:
    """How a network is made and trained.

    Attributes:
        network: `network(group, classes, channels=, fields=)` returns a new one.
        rate: The highest learning rate.
        height: The share of the rate at a step, of the number of steps, in an epoch from 0.
    """

    network: Callable[..., GroupCNN]
    rate: float
    height: Callable[[int, int, int], float]


def _rise_and_cosine(step: int, steps: int, epoch: int) -> float:
    """Return a short rise, then half a cosine down to 0."""
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(step / steps * math.pi))


OURS = Recipe(GroupCNN, RATE, _rise_and_cosine)


def run(
    splits: dict[str, Split], trial: Trial, recipe: Recipe = OURS
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Train one network and measure it.

    Returns:
        Scores, and arrays: `logits` of the test images, `elsewhere`, those of the other catalog's
        test images where there is one, and `curves` over the angles.
    """
    start = time.time()
    (images, labels), (tested, truth) = (
        (prepared(images, trial.blur), labels)
        for images, labels in (splits[f"{trial.data}-{part}"] for part in ("train", "test"))
    )
    scale = images.std((0, 2, 3), keepdim=True)  # the mean is not subtracted: the sky stays 0
    images, tested = images / scale, tested / scale
    model = _trained(trial, recipe, images, labels)
    arrays = {}
    # By default a GPU rounds the inputs of a convolution to ten bits.
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        logits = _outputs(model, tested)
        if other := splits.get(f"{PHOTOGRAPHS.get(trial.data)}-test"):
            moved = prepared(other[0], trial.blur) / scale
            arrays["elsewhere"] = _outputs(model, moved).cpu().numpy()
        features = _outputs(lambda part: model.classify[:-1](model.pooled(part)), tested)
        defect = model.defect(tested[:DEFECT_SAMPLES])
    probabilities, action_defect = _along_the_circle(model, tested)
    refitted = scores(refit(features, truth), truth)
    measured = {
        **scores(logits, truth),
        **{f"refitted_{name}": value for name, value in refitted.items()},
        "train_nll": float(functional.cross_entropy(_outputs(model, images), labels)),
        "defect_group": defect,
        "gap_circle": invariance_gap(probabilities),
        "action_defect": action_defect,
        "parameters": parameters_of(model),
        "seconds": time.time() - start,
    }
    curves = _curves(probabilities, truth)
    return measured, arrays | {"logits": logits.cpu().numpy(), "curves": curves.cpu().numpy()}


def scores(logits: Tensor, truth: Tensor) -> dict[str, float]:
    """Measure accuracy, ECE and negative log-likelihood."""
    confidence, correct = calibration.top_label(logits=logits, labels=truth)
    return {
        "accuracy": float(correct.double().mean()),
        "ece": float(calibration.ece(confidence, correct, bins=BINS)),
        "nll": float(functional.cross_entropy(logits, truth)),
    }


def prepared(images: Tensor, blur: float) -> Tensor:
    """Blur each image once, and keep the disc that stays in the image at every rotation."""
    size = images.shape[-1]
    axis = (torch.arange(size, device=images.device) - (size - 1) / 2) / (size / 2)
    radius = (axis[:, None].square() + axis.square()).sqrt()
    return point_spread(images, blur) * ((1 - radius) * size / 8).clamp(0, 1)


def coarse(images: Tensor, side: int) -> Tensor:
    """Return gray images of few pixels, `[n, 1, side, side]`."""
    gray = prepared(images, 0.0).mean(1, keepdim=True)
    return functional.avg_pool2d(gray, gray.shape[-1] // side)


def _trained(trial: Trial, recipe: Recipe, images: Tensor, labels: Tensor) -> GroupCNN:
    torch.manual_seed(trial.seed)
    device, classes = images.device, int(labels.max()) + 1
    fields = [trial.fields, 2 * trial.fields, 4 * trial.fields]
    made = recipe.network(trial.group, classes, channels=images.shape[1], fields=fields)
    model = made.to(device)
    batches = WholeBatches(len(labels), BATCH, torch.Generator(device).manual_seed(trial.seed))
    steps = trial.epochs * len(batches)

    def objective(model: nn.Module, rows: Tensor) -> Tensor:
        return functional.cross_entropy(model(images[rows]), labels[rows])

    def height(progress: float) -> float:
        step = round(progress * steps)
        return recipe.height(step, steps, step // len(batches))

    fit_epochs(
        model,
        batches,
        trial.epochs,
        recipe.rate,
        objective,
        decay=DECAY,
        schedule=height,
        autocast=torch.bfloat16 if device.type == "cuda" else None,
    )
    return model


@torch.inference_mode()
def _outputs(model: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return torch.cat([model(part) for part in images.split(256)]).float()


@torch.inference_mode()
def _along_the_circle(model: GroupCNN, images: Tensor) -> tuple[Tensor, float]:
    """Return class probabilities at each angle, `[angles, n, classes]`, and the action defect."""
    group, action = rotations(ANGLES), Images("bicubic")
    outputs, lost = [], []
    for k in range(ANGLES):
        moved = action.apply(group[k : k + 1], images)[0]
        outputs.append(_outputs(model, moved).softmax(-1))
        some = (images[:DEFECT_SAMPLES], moved[None, :DEFECT_SAMPLES])
        lost.append(action.defect(group[k : k + 1], *some).mean())
    return torch.stack(outputs), float(torch.stack(lost).mean())


def refit(features: Tensor, truth: Tensor) -> Tensor:
    """Return the logits of a logistic regression fitted to the test features and their labels.

    The published numbers are those of such a regression (unit penalty), which has seen every label
    it is scored on. Measured to show how far it lies from the network's own predictions.
    """
    features = features.double()
    weights = features.new_zeros(features.shape[1] + 1, int(truth.max()) + 1, requires_grad=True)
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


def invariance_gap(probabilities: Tensor) -> float:
    """Compute the root mean square distance from the mean prediction over the orbit."""
    distance = (probabilities - probabilities.mean(0)).square().sum(-1)
    return float(distance.mean().sqrt())


def _curves(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Compute accuracy, confidence and ECE at each angle, `[3, angles]`."""
    confidence, predicted = probabilities.max(-1)
    correct = predicted == labels
    ece = calibration.ece(confidence, correct, bins=BINS)
    return torch.stack([correct.double().mean(-1), confidence.double().mean(-1), ece.double()])
