"""One configuration: train, scale, and measure on clean and on shifted images."""

from __future__ import annotations

import time
import warnings
from typing import Any, TypeVar

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn import functional

from orbical import calibration, training
from orbical.errors import InputError
from orbical.recalibrate import Temperature, VectorScaling
from orbical_studies.networks.classifiers import CompactResNet, LeNet5

from . import shifts
from .batches import Batches, Split, as_images, partition
from .settings import BASELINE, BATCH, BINS, LOSSES, Configuration

LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-2
CURVE_POINTS = 15
CURVE_IMAGES = 10_000
CHUNK = 2_500

Scores = dict[str, float]
Scaling = TypeVar("Scaling", Temperature, VectorScaling)


def network(data: str, device: torch.device) -> nn.Module:
    """The network of a data set: LeNet-5 for digits, the compact ResNet for photographs."""
    model = LeNet5() if data == "mnist" else CompactResNet()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model.to(device)


def precision(data: str, device: torch.device) -> torch.dtype | None:
    """Mixed precision where it pays: the ResNet on a GPU."""
    return torch.bfloat16 if device.type == "cuda" and data == "cifar10" else None


def optimiser_of(model: nn.Module) -> torch.optim.AdamW:
    """The paper's optimizer."""
    fused = next(model.parameters()).device.type == "cuda"
    return torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=fused
    )


def logits_of(
    model: nn.Module, split: Split, shift: tuple[str, float] | None = None, count: int | None = None
) -> Tensor:
    """Logits `[n, classes]`, float32, in evaluation mode, of clean or of shifted images.

    Args:
        model: the network.
        split: the images.
        shift: name and strength, or None.
        count: only the first so many images.
    """
    model.eval()
    parts = []
    with torch.no_grad():
        for pixels in split.pixels[:count].split(CHUNK):
            images = as_images(pixels)
            if shift is not None:
                images = shifts.SHIFTS[shift[0]](images, shift[1])
                images = images.contiguous(memory_format=torch.channels_last)
            parts.append(model(images).float())
    return torch.cat(parts)


def scores(labels: Tensor, **outputs: Tensor) -> Scores:
    """Accuracy, ECE with the paper's 20 bins, and ESD.

    Args:
        labels: `[n]`.
        outputs: `logits=` or `probs=`, `[n, classes]`.
    """
    confidence, correct = calibration.top_label(labels=labels, **outputs)
    return {
        "accuracy": float(correct.double().mean()),
        "ece": float(calibration.ece(confidence, correct, bins=BINS)),
        "esd": float(calibration.esd(confidence, correct)),
    }


def objective_and_batches(
    configuration: Configuration, parts: dict[str, Split], generator: torch.Generator
) -> tuple[Any, Any]:
    """What `fit` minimises, and on which batches.

    The baseline's likelihood has the images that the other losses hold out for calibration too.

    Args:
        configuration: of the run.
        parts: from `partition`.
        generator: shuffles and crops.
    """
    crop = configuration.data == "cifar10"

    def batches(split: Split) -> Batches:
        return Batches(split, configuration.batch, generator, crop)

    if configuration.loss == BASELINE:
        both = Split(
            torch.cat([parts["fit"].pixels, parts["calibration"].pixels]),
            torch.cat([parts["fit"].labels, parts["calibration"].labels]),
        )
        return training.likelihood, batches(both)
    pairs = training.interleave(batches(parts["fit"]), batches(parts["calibration"]))
    return training.interleaved(LOSSES[configuration.loss], configuration.weight), pairs


def run(
    configuration: Configuration, splits: dict[str, Split], device: torch.device
) -> tuple[dict[str, Any], Tensor]:
    """Train one configuration and measure it.

    Args:
        configuration: what to train.
        splits: `train` and `test` of its data set, on the device.
        device: where.

    Returns:
        the result line, and the logits of the test images.
    """
    started = time.perf_counter()
    parts, test = partition(splits["train"]), splits["test"]
    torch.manual_seed(configuration.seed)
    model = network(configuration.data, device)
    generator = torch.Generator(device).manual_seed(configuration.seed)
    objective, batches = objective_and_batches(configuration, parts, generator)
    every = max(1, configuration.epochs // CURVE_POINTS)

    def curve(model: nn.Module, epoch: int) -> Scores:
        if epoch % every and epoch != configuration.epochs:
            return {}
        seen = parts["fit"]
        own = scores(seen.labels[:CURVE_IMAGES], logits=logits_of(model, seen, count=CURVE_IMAGES))
        new = scores(test.labels, logits=logits_of(model, test))
        return {f"train_{k}": own[k] for k in ("accuracy", "ece")} | {
            f"test_{k}": new[k] for k in ("accuracy", "ece")
        }

    history = training.fit(
        model,
        batches,
        optimizer=optimiser_of(model),
        epochs=configuration.epochs,
        objective=objective,
        validate=curve,
        autocast=precision(configuration.data, device),
    )
    trained = time.perf_counter() - started
    row, logits = measured(model, parts["validation"], test, shifted=configuration.batch == BATCH)
    images = configuration.epochs * len(batches) * configuration.batch
    return {
        "key": configuration.key(),
        **configuration.settings(),
        **row,
        "curve": [
            {"epoch": point["epoch"], "training_loss": point["loss"]}
            | {k: v for k, v in point.items() if k not in ("epoch", "loss")}
            for point in history.rows
            if "test_ece" in point
        ],
        "images": images * (1 if configuration.loss == BASELINE else 2),
        "seconds_training": round(trained, 3),
        "seconds": round(time.perf_counter() - started, 3),
    }, logits


def measured(
    model: nn.Module, validation: Split, test: Split, *, shifted: bool
) -> tuple[dict[str, Any], Tensor]:
    """Scores before and after scaling fitted on validation images, and on shifted test images.

    Args:
        model: trained.
        validation: for the scaling.
        test: for the scores.
        shifted: whether to measure shifted images too.

    Returns:
        the scores, and the logits of the test images. Where a scaling cannot be fitted, because
        the network has learnt nothing, the scores after it are those before.
    """
    held, labels = logits_of(model, validation).cpu().double(), validation.labels.cpu()
    logits, truth = logits_of(model, test).cpu().double(), test.labels.cpu()
    temperature, vector = _fitted(Temperature, held, labels), _fitted(VectorScaling, held, labels)
    row: dict[str, Any] = {
        "temperature": None if temperature is None else float(temperature.temperature_),
        "nll": float(functional.cross_entropy(logits, truth)),
        "validation": scores(labels, logits=held),
        "test": scores(truth, logits=logits),
        "test_ts": _after(temperature, logits, truth),
        "test_vs": _after(vector, logits, truth),
    }
    if shifted:
        row["shifts"] = []
        for name, strengths in shifts.STRENGTHS.items():
            for strength in strengths:
                moved = logits_of(model, test, (name, strength)).cpu().double()
                scaled = _after(temperature, moved, truth)
                row["shifts"].append(
                    {"shift": name, "strength": strength, **scores(truth, logits=moved)}
                    | {"ece_ts": scaled["ece"], "esd_ts": scaled["esd"]}
                )
    return row, logits


def _fitted(kind: type[Scaling], logits: Tensor, labels: Tensor) -> Scaling | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return kind().fit(logits, labels)
    except (InputError, ConvergenceWarning):
        return None  # a network that has learnt nothing has no best scaling


def _after(scaling: Temperature | VectorScaling | None, logits: Tensor, labels: Tensor) -> Scores:
    if scaling is None:
        return scores(labels, logits=logits)
    return scores(labels, probs=scaling.predict_proba(logits))
