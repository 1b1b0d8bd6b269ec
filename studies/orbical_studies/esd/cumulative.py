"""Published outputs of networks: cumulative curves (Fig. 4), and scores after scaling (table 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.calibration import cumulative_curve, ece, esd, ks, top_label
from orbical.datasets import data_file
from orbical.recalibrate import Temperature

from ..framework import Results
from .scaling import BINS, Scaled, interval_row
from .settings import Settings

NETWORKS = ("densenet-bc-100-cifar-100", "wideresnet-16-4-cifar-100")
PUBLISHED = ("lenet-5-cifar-10", "wideresnet-16-4-cifar-10", "lenet-5-cifar-100", *NETWORKS[::-1])
POINTS = 101


def write_curves(settings: Settings, results: Results) -> None:
    """Write the curves of the paper's Fig. 4 and what they amount to, from published outputs."""
    rows = [row for name in NETWORKS for row in curves(name)]
    results.write("cumulative", [row for row in rows if "share" in row])
    results.write("cumulative-scores", [row for row in rows if "share" not in row])


def curves(name: str) -> Iterator[Mapping[str, Any]]:
    """Fit a temperature on one half of the test images, and measure on the other.

    Yields:
        Of each of both, before and after it, the scores, and then the points of the curve.
    """
    held, (probs, labels) = halves(name)
    scaling = Temperature(outputs="probabilities").fit(*held)
    scaled = torch.as_tensor(scaling.predict_proba(probs))
    for after, outputs in ((False, probs), (True, scaled)):
        pair = top_label(probs=outputs, labels=labels)
        head = {"network": name, "scaled": after}
        found = {"ece": ece(*pair, bins=BINS), "ks": ks(*pair), "esd": esd(*pair)}
        scores = {key: float(value) for key, value in found.items()}
        accuracy = float(pair[1].double().mean())
        yield head | {"temperature": scaling.temperature_, "accuracy": accuracy} | scores
        curve = cumulative_curve(*pair)
        for place in np.linspace(0, len(labels) - 1, POINTS).round().astype(int).tolist():
            yield head | {
                "share": float(curve.quantile[place]),
                "accuracy": float(curve.accuracy[place]),
                "confidence": float(curve.confidence[place]),
            }


def halves(name: str) -> Sequence[tuple[Tensor, Tensor]]:
    """Read probabilities and labels of two halves of the test images, the same each time."""
    with np.load(data_file(f"{name}.npz", None, "logits")) as file:
        probs, labels = torch.from_numpy(file["probs"]), torch.from_numpy(file["labels"]).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return [(probs[half], labels[half]) for half in order.chunk(2)]


def write_scaling(settings: Settings, results: Results) -> None:
    """Write the table `published`: one half before and after scalings fitted on the other."""
    rows = []
    for name in PUBLISHED:
        (held, truth), (shown, labels) = (
            (probs.double().clamp(min=torch.finfo(probs.dtype).tiny).log(), labels)
            for probs, labels in halves(name)
        )
        row = {"network": name, **Scaled(held, truth).row(shown, labels)}
        rows.append(row | interval_row(shown, labels, row["temperature"]))
    results.write("published", rows)
