"""Cumulative accuracy and confidence of published networks, before and after one temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from orbical.calibration import cumulative_curve, ece, esd, ks, top_label
from orbical.datasets import data_file
from orbical.recalibrate import Temperature

from ..framework import Results
from .settings import Settings

NETWORKS = ("densenet-bc-100-cifar-100", "wideresnet-16-4-cifar-100")
POINTS, BINS = 101, 20


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
    with np.load(data_file(f"{name}.npz", None, "logits")) as file:
        probs, labels = torch.from_numpy(file["probs"]), torch.from_numpy(file["labels"]).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held, shown = order.chunk(2)
    scaling = Temperature(outputs="probabilities").fit(probs[held], labels[held])
    scaled = torch.as_tensor(scaling.predict_proba(probs[shown]))
    for after, outputs in ((False, probs[shown]), (True, scaled)):
        pair = top_label(probs=outputs, labels=labels[shown])
        head = {"network": name, "scaled": after}
        found = {"ece": ece(*pair, bins=BINS), "ks": ks(*pair), "esd": esd(*pair)}
        scores = {key: float(value) for key, value in found.items()}
        accuracy = float(pair[1].double().mean())
        yield head | {"temperature": scaling.temperature_, "accuracy": accuracy} | scores
        curve = cumulative_curve(*pair)
        for place in np.linspace(0, len(shown) - 1, POINTS).round().astype(int).tolist():
            yield head | {
                "share": float(curve.quantile[place]),
                "accuracy": float(curve.accuracy[place]),
                "confidence": float(curve.confidence[place]),
            }
