"""Tables of the trainings on sentence pairs and on Tiny ImageNet, from their stored logits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical import calibration
from orbical.datasets import data_file

from ..framework import Results
from ..framework import training as framework
from ..framework.packs import read_pack
from . import nli, tiny
from .scaling import BINS, Scaled, interval_row
from .settings import Settings


def collect_nli(settings: Settings, results: Results) -> None:
    """Write the table `nli`: scores on SNLI before and after scaling, and on LingNLI."""
    pairs = read_pack(results.work / nli.PACK)
    labels = {name: _integers(pairs[f"labels_{name}"][: settings.images]) for name in nli.TESTS}
    votes = torch.from_numpy(pairs["votes"][: settings.images]).double()
    shares = votes / votes.sum(1, keepdim=True)
    rows = []
    for line, logits in _trained(results.work / nli.FOLDER):
        scaled = Scaled(logits["validation"], labels["validation"])
        row = line | scaled.row(logits["snli_test"], labels["snli_test"])
        row |= interval_row(logits["snli_test"], labels["snli_test"], row["temperature"])
        rows.append(row | dict(_elsewhere(logits["lingnli_val"], labels["lingnli_val"], shares)))
    results.write("nli", rows)


def _elsewhere(logits: Tensor, labels: Tensor, shares: Tensor) -> Iterator[tuple[str, float]]:
    """Score the pairs of another source, also against the shares of five annotators."""
    confidence, correct = calibration.top_label(labels=labels, logits=logits)
    agreeing = shares.gather(1, logits.argmax(1, keepdim=True))[:, 0]
    yield "lingnli.accuracy", float(correct.double().mean())
    yield "lingnli.ece", float(calibration.ece(confidence, correct, bins=BINS))
    yield "lingnli.agreement", float(agreeing.mean())
    yield "lingnli.ece_votes", float(calibration.ece(confidence, agreeing, bins=BINS))


def pack_tiny(settings: Settings, results: Results) -> None:
    """Copy the archive of images as it is published: nothing that reads faster is as small."""
    path = results.work / tiny.PACK
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(data_file(path.name, None, "tinyimagenet25"), path)


def collect_tiny(settings: Settings, results: Results) -> None:
    """Write the table `tiny`: scores before and after scaling, with intervals over images."""
    rows = []
    for line, kept in _trained(results.work / tiny.FOLDER):
        held, truth = (_integers(kept[f"labels_{name}"]) for name in ("validation", "test"))
        row = line | Scaled(kept["validation"], held).row(kept["test"], truth)
        rows.append(row | interval_row(kept["test"], truth, row["temperature"]))
    results.write("tiny", rows)


def _trained(work: Path) -> Iterator[tuple[dict[str, Any], dict[str, Tensor]]]:
    """Read the line and the arrays of each finished training; logits come in double precision."""
    for row in framework.collected(work):
        arrays = framework.read_arrays(work, row["key"])
        yield row, {name: torch.from_numpy(each.astype(float)) for name, each in arrays.items()}


def _integers(values: NDArray | Tensor) -> Tensor:
    return torch.as_tensor(np.asarray(values)).long()
