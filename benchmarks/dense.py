"""Scans of networks that predict maps beside their bare forward passes.

Run: python benchmarks/dense.py [segmentation depth flow volumes]; on a machine with an accelerator
and torchvision, python benchmarks/dense.py accelerator, or some of its rows: class_maps depth_maps
pairs clouds grids boxes.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import passes
import timing
import torch
from timing import Row
from torch import Tensor, nn

import orbical as ob
from orbical.zoo.pointnet import PointNet


class UNet(nn.Module):
    """A small U-Net of images or volumes."""

    def __init__(self, inputs: int, outputs: int, width: int = 8, volumes: bool = False) -> None:
        super().__init__()
        conv = nn.Conv3d if volumes else nn.Conv2d
        self.pool = nn.MaxPool3d(2) if volumes else nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2)

        def block(before: int, after: int) -> nn.Module:
            first, second = conv(before, after, 3, padding=1), conv(after, after, 3, padding=1)
            return nn.Sequential(first, nn.ReLU(True), second, nn.ReLU(True))

        self.fine, self.coarse = block(inputs, width), block(width, 2 * width)
        self.bottom = block(2 * width, 4 * width)
        self.raised, self.joined = block(6 * width, 2 * width), block(3 * width, width)
        self.head = conv(width, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return maps as large as the images."""
        x = x.flatten(1, 2) if x.ndim == 5 and isinstance(self.pool, nn.MaxPool2d) else x
        fine = self.fine(x)
        coarse = self.coarse(self.pool(fine))
        raised = self.raised(torch.cat([self.up(self.bottom(self.pool(coarse))), coarse], 1))
        maps: Tensor = self.head(self.joined(torch.cat([self.up(raised), fine], 1)))
        return maps


def segmentation() -> Iterator[Row]:
    """Images of 64 pixels and 5 classes at 24 rotations, by a small U-Net."""
    images, labels = torch.rand(64, 3, 64, 64), torch.randint(0, 5, (64, 64, 64))
    yield _row(
        "segmentation, a small", UNet(3, 5), (images, labels), "segmentation", "rotations:24", 1.6
    )


def depth() -> Iterator[Row]:
    """Depth of images of 64 pixels at 24 rotations, by a U-Net."""
    images, maps = torch.rand(64, 3, 64, 64), torch.rand(64, 1, 64, 64)
    yield _row(
        "dense regression, a", UNet(3, 1, 16), (images, maps), "dense_regression", "rotations:24"
    )


def flow() -> Iterator[Row]:
    """Flow between pairs of 64 pixels at 24 rotations, by a U-Net."""
    pairs, fields = torch.rand(64, 2, 1, 64, 64), torch.rand(64, 2, 64, 64)
    yield _row("flow, a", UNet(2, 2, 16), (pairs, fields), "flow", "rotations:24", 1.2)


def volumes() -> Iterator[Row]:
    """Volumes of 32 voxels and 4 classes at the 24 rotations of the cube, by a U-Net."""
    images, labels = torch.rand(6, 1, 32, 32, 32), torch.randint(0, 4, (6, 32, 32, 32))
    net = UNet(1, 4, 16, volumes=True)
    yield _row("volumes, a", net, (images, labels), "segmentation", "octahedral", 1.1)


def _row(work: str, net: nn.Module, data: Any, task: str, group: str, limit: float = 1.3) -> Row:
    def scan(net: nn.Module, out: Path) -> None:
        ob.scan(net, data, group=group, task=task, out=out, progress=False)

    ours, bare = passes.beside_bare_passes(net.eval(), scan)
    return timing.at_most(f"scan, {work} U-Net", ours, "bare forward", bare, limit)


class Picked(nn.Module):
    """A network that returns one part of what torchvision's networks return."""

    def __init__(self, net: nn.Module, part: Any) -> None:
        super().__init__()
        self.net, self.part = net, part

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps."""
        maps: Tensor = self.net(*x.unbind(1) if x.ndim == 5 else [x])[self.part]
        return maps


def accelerator() -> Iterator[Row]:
    """Scan to disk on an accelerator, against bare passes at the best batch of each network."""
    for rows in ON_ACCELERATOR:
        yield from rows()


def class_maps() -> Iterator[Row]:
    """Segment 512 images of 256 pixels, with 21 classes."""
    from torchvision.models import segmentation as networks

    data = torch.rand(512, 3, 256, 256), torch.randint(0, 21, (512, 256, 256))
    without = {"weights": None, "weights_backbone": None, "num_classes": 21}
    for name, limit in {
        "deeplabv3_resnet50": 1.3,
        "lraspp_mobilenet_v3_large": 3.0,
        "fcn_resnet50": 1.3,
    }.items():
        net = Picked(getattr(networks, name)(**without), "out")
        yield from _accelerator_row(name, net, data, "segmentation", limit=limit)
    yield from _accelerator_row("U-Net, 21 classes", UNet(3, 21, 32), data, "segmentation")


def depth_maps() -> Iterator[Row]:
    """Predict the depth of 512 images of 256 pixels."""
    data = torch.rand(512, 3, 256, 256), torch.rand(512, 1, 256, 256)
    yield from _accelerator_row("depth, U-Net", UNet(3, 1, 32), data, "dense_regression")


def pairs() -> Iterator[Row]:
    """Predict the flow between pairs of 256 pixels."""
    from torchvision.models import optical_flow

    for name, count in (("raft_small", 64), ("raft_small", 512), ("raft_large", 64)):
        data = torch.rand(count, 2, 3, 256, 256), torch.rand(count, 2, 256, 256)
        net = Picked(getattr(optical_flow, name)(weights=None), -1)
        yield from _accelerator_row(f"flow, {name}, {count} pairs", net, data, "flow", limit=1.2)


def clouds() -> Iterator[Row]:
    """Classify clouds of 2,048 points at 120 rotations of space."""
    task = ob.tasks.Classification(ob.actions.Points())
    for count in (256, 2048):
        data = torch.rand(count, 2048, 3) - 0.5, torch.arange(count) % 10
        net = PointNet(10, (64, 128, 256))
        work = f"points, PointNet, {count} clouds"
        yield from _accelerator_row(work, net, data, task, "slices3d:24:5", 1.2)


def grids() -> Iterator[Row]:
    """Segment volumes of 64 voxels along a side at the rotations of the cube."""
    for count in (24, 192):
        data = torch.rand(count, 1, 64, 64, 64), torch.randint(0, 4, (count, 64, 64, 64))
        net, work = UNet(1, 4, 32, volumes=True), f"volumes, U-Net, {count} volumes"
        yield from _accelerator_row(work, net, data, "segmentation", "octahedral", 1.1)


def boxes() -> Iterator[Row]:
    """Detect objects in windows of 256 pixels at 25 shifts; random weights find 100 boxes each."""
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    net = fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=6, min_size=256, max_size=256
    )
    corner = 100 + 40 * torch.rand(64, 3, 2)
    objects = torch.cat([corner, corner + 60, torch.randint(1, 6, (64, 3, 1))], -1)
    data = torch.rand(64, 3, 320, 320), objects
    task = ob.tasks.Detection(ob.actions.Window(256))
    yield from _accelerator_row(
        "detection, Faster R-CNN", net, data, task, "translations:32:16", 1.2, (3, 256, 256)
    )


ON_ACCELERATOR = [class_maps, depth_maps, pairs, clouds, grids, boxes]


def _accelerator_row(
    work: str,
    net: nn.Module,
    data: tuple[Tensor, Tensor],
    task: Any,
    group: str = "rotations:24",
    limit: float = 1.3,
    view: tuple[int, ...] = (),
) -> Iterator[Row]:
    """Time a scan of samples in the host's memory, and as many bare passes; print the peak."""
    net, count = net.eval().cuda(), len(data[0]) * len(ob.groups.as_group(group))

    def scan(out: str, samples: int | None = None) -> None:
        some = tuple(part[:samples] for part in data)
        ob.scan(net, some, group=group, task=task, out=out, progress=False)

    @torch.inference_mode()
    def bare(batch: int, inputs: int) -> None:
        some = torch.rand(batch, *(view or data[0].shape[1:]), device="cuda")
        for start in range(0, inputs, batch):
            net(some[: inputs - start])

    def best() -> int:
        times: dict[int, float] = {}
        for batch in (16, 32, 64, 128, 256):
            with suppress(RuntimeError):  # cuDNN cannot take every size
                bare(batch, batch)
                times[batch] = timing.accelerator_seconds(lambda batch=batch: bare(batch, 256), 0.1)
        return min(times, key=lambda batch: times[batch])

    with timing.attempt(work), tempfile.TemporaryDirectory() as folder:
        names = map(f"{folder}/{{}}.zarr".format, itertools.count())
        scan(next(names), max(2, len(data[0]) // 8))  # everything is warm
        batch = best()
        torch.cuda.reset_peak_memory_stats()
        ours = timing.accelerator_seconds(lambda: scan(next(names)), 3.0)
        peak = torch.cuda.max_memory_allocated() / 2**30
        theirs = timing.accelerator_seconds(lambda: bare(batch, count), 3.0)
        print(f"{work}: bare batches of {batch}, peak {peak:.2f} GiB on the device")
        yield timing.at_most(f"scan to disk, {work}", ours, "bare forward", theirs, limit)


if __name__ == "__main__":
    timing.run([segmentation, depth, flow, volumes], __doc__ or "", [accelerator, *ON_ACCELERATOR])
