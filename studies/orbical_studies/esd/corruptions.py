"""Networks on corrupted test images of CIFAR-10 (the paper's Fig. 6).

A fixed sample of test images, 19 corruptions at 5 severities. The networks are those of the fronts
at the paper's cost, whose weights are in the work folder; a processor is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pandas import DataFrame
from torch import Tensor, nn

from orbical import calibration
from orbical.errors import InputError
from orbical.recalibrate import Temperature

from ..data import cifar10
from ..data.corrupted_images import CORRUPTIONS, SEVERITIES, corrupted
from ..framework import Results, where
from ..framework.packs import arrays_under, read_pack, write_pack
from ..framework.training import arrays_file
from ..networks.classifiers import WhitenedNet
from . import fronts
from .batches import Split, as_images, partition
from .quick_training import CLASSES, WEIGHTS_KEPT, WIDTHS
from .scaling import BINS
from .settings import BASELINE, BATCH, INNER, Settings

FOLDER, CLEAN, DATA = "corruptions", "none", "cifar10"
EACH = 100
"""Test images of each class, the first ones: four networks take half an hour for them."""

RESAMPLES, LEVELS = 500, {"": 0.95, "_joint": 1 - 0.05 / 3}
"""Draws of the test images, and the levels of intervals: of one, and of three losses together."""


def pack_corruptions(settings: Settings, results: Results) -> None:
    """Corrupt the sample, one file a corruption; those that are there are kept."""
    pixels, labels = sample(settings.images or EACH)
    write_pack(results.work / FOLDER / f"{CLEAN}.npz", {"pixels": pixels[None], "labels": labels})
    for name in CORRUPTIONS:
        path = results.work / FOLDER / f"{name}.npz"
        if not path.is_file():
            each = [corrupted(pixels, name, severity) for severity in SEVERITIES]
            write_pack(path, {"pixels": np.stack(each)})
            print(f"{name}: {len(each)} x {len(pixels)} images", flush=True)


def sample(each: int) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Return the first test images of each class, in the order of the test set."""
    pixels, labels = cifar10(split="test")
    places = np.concatenate([np.flatnonzero(labels == c)[:each] for c in np.unique(labels)])
    places.sort()
    return pixels[places], labels[places]


def evaluate_corruptions(settings: Settings, results: Results) -> None:
    """Evaluate the network of every loss on every image; write scores and differences."""
    work = results.work / FOLDER
    labels = torch.from_numpy(read_pack(work / f"{CLEAN}.npz")["labels"].astype(np.int64))
    held, found = _validation(settings.images), {}
    for loss, name in chosen_networks(results["fronts"]).items():
        kept = work / f"logits-{loss}.npz"
        if not kept.is_file():
            network = read_network(arrays_file(results.work / fronts.FOLDER / DATA, name))
            write_pack(kept, dict(_answers(network, work, held)))
            print(f"{name}: done", flush=True)
        found[loss] = _pairs(kept, labels)
    results.write("corruptions", [row for loss in found for row in _rows(loss, found[loss])])
    results.write("corruptions-change", list(_changes(found)))


def chosen_networks(trained: DataFrame) -> dict[str, str]:
    """Return the training of each loss at the paper's cost whose weights were kept.

    Args:
        trained: The table of the fronts.

    Returns:
        Loss to the name of its training; losses that no weight brings to that cost are left out.
    """
    decay = fronts.chosen_decay(trained, DATA)
    rows = where(trained, data=DATA, batch=BATCH, decay=decay)
    weights = {BASELINE: 0.0}
    for loss, chosen in fronts.choices(rows, DATA).items():
        if fronts.COSTS[1] in chosen:
            weights[loss] = chosen[fronts.COSTS[1]]
    found = {}
    for loss, weight in weights.items():
        inner = INNER.get(loss, (0.0,))[0]
        own = where(rows, loss=loss, weight=weight, inner=inner, seed=WEIGHTS_KEPT)
        names = own["key"].tolist()
        if not names:
            raise InputError(
                "results",
                f"a training of {loss} with lambda {weight:g} and seed {WEIGHTS_KEPT}",
                "none",
                remedy="run the step 'fronts' again",
            )
        found[loss] = names[0]
    return found


def read_network(path: Path) -> nn.Module:
    """Read a network of the fronts, whose weights are kept in half precision."""
    kept = arrays_under(read_pack(path), "weights/")
    if not kept:
        raise InputError("work", f"weights in {path.name!r}", "none")
    network = WhitenedNet(torch.rand(64, 3, 32, 32), CLASSES[DATA], WIDTHS)
    network.load_state_dict({name: torch.from_numpy(values) for name, values in kept.items()})
    return network.eval()


def _validation(images: int | None) -> Split:
    """Return the validation images of the fronts: a tenth of all training images."""
    read = [cifar10(split=split) for split in ("train", "more")]
    pixels, labels = (torch.from_numpy(np.concatenate([r[i] for r in read])) for i in (0, 1))
    held = partition(Split(pixels, labels.long()))["validation"]
    return Split(held.pixels[:images], held.labels[:images])


@torch.inference_mode()
def _answers(network: nn.Module, work: Path, held: Split) -> Iterator[tuple[str, NDArray]]:
    """Yield logits of the validation images, with labels, and `[severities, n, classes]` each."""
    yield "validation", _logits(network, held.pixels).numpy()
    yield "labels", held.labels.numpy()
    for name in (CLEAN, *CORRUPTIONS):
        pixels = torch.from_numpy(read_pack(work / f"{name}.npz")["pixels"])
        yield name, torch.stack([_logits(network, part) for part in pixels]).numpy()


def _logits(network: nn.Module, pixels: Tensor) -> Tensor:
    return torch.cat([network(as_images(part)).float() for part in pixels.split(100)])


Pairs = dict[tuple[str, int, bool], tuple[Tensor, Tensor]]
"""Confidence and correctness by corruption, severity, and whether scaled by a temperature."""


def _pairs(path: Path, labels: Tensor) -> Pairs:
    answers = read_pack(path)
    held, truth = (torch.from_numpy(answers.pop(name)) for name in ("validation", "labels"))
    scaling = Temperature().fit(held.double(), truth)
    found: Pairs = {}
    for name, values in answers.items():
        for severity, logits in enumerate(torch.from_numpy(values).double(), name != CLEAN):
            for scaled in (False, True):
                shown = logits / float(scaling.temperature_) if scaled else logits
                pair = calibration.top_label(logits=shown, labels=labels)
                found[name, int(severity), scaled] = pair
    return found


def _rows(loss: str, pairs: Pairs) -> Iterator[dict[str, Any]]:
    for (name, severity, scaled), (confidence, correct) in pairs.items():
        if not scaled:
            after = calibration.ece(*pairs[name, severity, True], bins=BINS)
            yield {
                **{"loss": loss, "corruption": name, "severity": severity},
                "accuracy": float(correct.double().mean()),
                "confidence": float(confidence.mean()),
                "ece": float(calibration.ece(confidence, correct, bins=BINS)),
                "ece_ts": float(after),
            }


def _mean_eces(pairs: Pairs, severity: int, scaled: bool, draws: Tensor) -> Tensor:
    """Return the ECE at a severity, averaged over corruptions, for each draw `[r, n]` of images."""
    total = torch.zeros(len(draws), dtype=torch.float64)
    for name in CORRUPTIONS:
        confidence, correct = pairs[name, severity, scaled]
        total += calibration.ece(confidence[draws], correct[draws], bins=BINS)
    return total / len(CORRUPTIONS)


def _changes(found: dict[str, Pairs]) -> Iterator[dict[str, Any]]:
    """Compare every network with the likelihood alone, with intervals over test images.

    An interval is the basic one: the bootstrap draws the same images for both networks, and both
    mean ECEs are biased alike by the few images in a bin.
    """
    count = len(found[BASELINE][CLEAN, 0, False][1])
    generator = torch.Generator().manual_seed(0)
    draws = torch.randint(count, (RESAMPLES, count), generator=generator)
    asked = torch.cat([torch.arange(count)[None], draws])
    for scaled in (False, True):
        plain = [_mean_eces(found[BASELINE], severity, scaled, asked) for severity in SEVERITIES]
        for name in (name for name in found if name != BASELINE):
            own = [_mean_eces(found[name], severity, scaled, asked) for severity in SEVERITIES]
            each = torch.stack(own) - torch.stack(plain)
            for severity, change in ((0, each.mean(0)), *zip(SEVERITIES, each, strict=True)):
                head = {"loss": name, "scaled": scaled, "severity": severity}
                yield head | {"change": float(change[0])} | _ends(change)


def _ends(change: Tensor) -> dict[str, float]:
    """Return the ends of the basic bootstrap intervals of the first value, from the others."""
    found = {}
    for name, level in LEVELS.items():
        for end, share in (("low", (1 + level) / 2), ("high", (1 - level) / 2)):
            found[f"{end}{name}"] = float(2 * change[0] - torch.quantile(change[1:], share))
    return found
