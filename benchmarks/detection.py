"""The cost of a detection scan, of its consensus, and of suppressing overlapping boxes.

Run: python benchmarks/detection.py [forward consensus suppression]; on a machine with an
accelerator, python benchmarks/detection.py accelerator (needs neither xarray nor zarr).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import timing
import torch
from passes import beside_bare_passes
from timing import Row

import orbical as ob
from orbical.scanning.forward_passes import Sweep
from orbical.tasks import Detection
from orbical.tasks.detection_matching import Detections
from orbical.zoo import detector

GROUP = ob.groups.translations(32, 2)
SAMPLES = 1000


def forward() -> Iterator[Row]:
    """Scan scenes over 1,089 shifts, with the demo's small detector and one of the study's size."""
    timing.keep_freed_memory()
    yield _scan_row(
        "scan, 3 scenes x 1,089 shifts, the demo's detector", detector.load("jittered"), 3
    )
    yield _scan_row(
        "scan, 1 scene x 1,089 shifts, the study's detector",
        detector.Detector(5, detector.LARGE).eval(),
        1,
    )


def _scan_row(work: str, net: torch.nn.Module, scenes: int) -> Row:
    """Scan onto disk, against bare forward passes on the same batches."""
    made = ob.datasets.scenes(scenes)

    def scan(asked: torch.nn.Module, out: Path) -> None:
        ob.scan(
            asked,
            (made["images"], made["objects"]),
            group=GROUP,
            task=Detection(),
            out=out,
            batch_size=9,  # what "auto" chooses for these images
            progress=False,
        )

    ours, theirs = beside_bare_passes(net, scan)
    return timing.at_most(work, ours, "bare forward", theirs, 1.10)


def consensus() -> Iterator[Row]:
    """Average the detections of 1,000 samples at 1,089 shifts: three clusters and stray boxes."""
    task = Detection()
    weights = torch.as_tensor(GROUP.weights)
    random = torch.Generator().manual_seed(0)
    chunk = 9
    found = _some_detections(task, chunk, random)

    def all_samples() -> None:
        for _ in range(SAMPLES // chunk + 1):
            task.consensus(found, GROUP, weights)

    task.consensus(found, GROUP, weights)
    start = time.perf_counter(), time.process_time()
    all_samples()
    took = time.process_time() - start[1]
    print(f"wall {time.perf_counter() - start[0]:.1f} s")
    yield Row(
        "consensus, 1,000 samples x 1,089 shifts",
        timing.show(took),
        "limit",
        "60 s",
        took / 60,
        "<= 1",
        took <= 60,
    )


def _some_detections(task: Detection, samples: int, random: torch.Generator) -> Detections:
    """Make four detections a view: three that move along, with noise, and one anywhere."""
    shape = (len(GROUP), samples, 4)
    center = 24 + 80 * torch.rand(1, samples, 4, 2, generator=random)
    half = 8 + 16 * torch.rand(1, samples, 4, 2, generator=random)
    still = torch.cat([center - half, center + half], -1)
    box = task.output.move(GROUP, still + torch.randn(*shape, 4, generator=random))
    stray = 100 * torch.rand(*shape[:2], 1, 2, generator=random)
    box[:, :, 3] = torch.cat([stray, stray + 20], -1)[:, :, 0]
    confidence = torch.rand(shape, generator=random).sort(-1, descending=True).values
    label = torch.randint(0, 5, (1, samples, 4), generator=random).expand(shape).float()
    return Detections(box, confidence, label)


def suppression() -> Iterator[Row]:
    """Suppress overlapping boxes in 256 views at once, against kornia's, a view at a time."""
    kornia = timing.installed("kornia.geometry.bbox")
    if kornia is None:
        return
    random = torch.Generator().manual_seed(0)
    corner = 100 * torch.rand(256, detector.CANDIDATES, 2, generator=random)
    boxes = torch.cat([corner, corner + 8 + 24 * torch.rand(corner.shape, generator=random)], -1)
    confidence = torch.rand(256, detector.CANDIDATES, generator=random)
    labels = torch.zeros(256, detector.CANDIDATES)

    def ours() -> None:
        detector.suppress(boxes, confidence, labels, detector.OVERLAP, detector.MOST)

    def theirs() -> None:
        for box, score in zip(boxes, confidence, strict=True):
            kornia.nms(box, score, detector.OVERLAP)[: detector.MOST]

    yield timing.at_least(
        "suppression, 256 views of 64 boxes",
        timing.seconds(ours, 3),
        "kornia.geometry.bbox.nms",
        timing.seconds(theirs, 2),
        10,
    )


def accelerator() -> Iterator[Row]:
    """Sweep 512 scenes over 1,089 shifts on an accelerator, against bare forward passes.

    The chunks of 256 scenes are those that a scan chooses by itself, one under way while the one
    before it is taken, as a scan does.
    """
    device = torch.device("cuda")
    net = detector.Detector(5, detector.LARGE).to(device).eval()
    made = {name: rows.repeat(4, *[1] * (rows.ndim - 1)) for name, rows in _some_scenes().items()}
    images, objects = made["images"], made["objects"]
    batch, chunk, chunks = 2048, len(images), 2
    predictor = ob.predictors.as_predictor(net)
    with predictor.ready(device):
        sweep = Sweep({"net": predictor}, GROUP, Detection(), device, batch)

        def whole() -> None:
            waiting = None
            with torch.inference_mode():
                for _ in range(chunks):
                    unit = sweep.run(images, objects, ["net"])
                    if waiting is not None:
                        waiting.wait(GROUP, 0)
                    waiting = unit
                waiting.wait(GROUP, 0)

        some = images.to(device)
        crops = ob.actions.Window(128).apply(GROUP[: batch // chunk], some).flatten(0, 1)
        views = chunk * chunks * len(GROUP)

        def bare() -> None:
            with torch.inference_mode():
                for start in range(0, views, batch):
                    net(crops[: views - start])

        theirs, ours = timing.in_turns(bare, whole, 3, timing.accelerator_seconds)
    print(torch.cuda.get_device_name(), torch.__version__)
    yield timing.at_most("detection sweep on the accelerator", ours, "bare forward", theirs, 1.05)


def _some_scenes() -> dict[str, torch.Tensor]:
    made = ob.datasets.scenes(64)
    return {name: torch.as_tensor(made[name]) for name in ("images", "objects")}


if __name__ == "__main__":
    asked = [accelerator] if "accelerator" in sys.argv else [forward, consensus, suppression]
    timing.run(asked, __doc__ or "")
