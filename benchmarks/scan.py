"""The cost of a scan beside what cannot be avoided: the models' bare forward passes.

Run: python benchmarks/scan.py [forward rotation memory linear durable]; on a machine with an
accelerator and torchvision, python benchmarks/scan.py accelerator.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import timing
import torch
from timing import Row

import orbical as ob
from orbical.zoo import digits

ELEMENTS = 72


def forward() -> Iterator[Row]:
    """Scan 1,000 digits over 72 rotations, with the demo's two networks and with one alone."""
    yield _scan_row("scan, the demo's two networks", digits.NAMES)
    yield _scan_row("scan, one network alone", digits.NAMES[:1])


def _scan_row(work: str, names: Sequence[str]) -> Row:
    """Scan onto disk, against bare forward passes on batches that are turned already.

    The two take turns, and the least time of each counts, so that a passing load hits neither.
    """
    images, labels = ob.datasets.mnist("test")
    nets = {name: digits.load(name).eval() for name in names}
    group = ob.groups.rotations(ELEMENTS)
    batch = 256  # what "auto" chooses for these images

    def scan() -> None:
        with tempfile.TemporaryDirectory() as folder:
            ob.scan(
                nets,
                (images, labels),
                group=group,
                task="classification",
                out=Path(folder) / "run.zarr",
                batch_size=batch,
                progress=False,
            )

    batches = ob.actions.Images().apply(group, images[:batch]).flatten(0, 1).split(batch)

    def bare() -> None:
        with torch.inference_mode():
            for inputs in batches:
                for net in nets.values():
                    net(inputs)

    theirs, ours = timing.in_turns(bare, scan, 4)
    passes = ELEMENTS * len(nets)
    per_pass, per_scan = theirs / (batch * passes), ours / (len(images) * passes)
    return timing.at_most(work, per_scan, "bare forward", per_pass, 1.10)


def rotation() -> Iterator[Row]:
    """Rotate digits by 72 angles, against scipy, one image and one angle at a time, on one core."""
    from scipy.ndimage import rotate

    images, _ = ob.datasets.mnist("test")
    images = images[:64]
    group = ob.groups.rotations(ELEMENTS)
    action = ob.actions.Images()
    ours = timing.seconds(lambda: action.apply(group, images), 15) / (len(images) * ELEMENTS)
    picture = images[0, 0].numpy()

    def theirs(**settings: int) -> float:
        def all_angles() -> None:
            for angle in group.coords["angle"]:
                rotate(picture, angle, reshape=False, **settings)

        return timing.seconds(all_angles, 15) / ELEMENTS

    work = "rotation, an image and angle"
    yield timing.at_least(work, ours, "scipy.ndimage.rotate", theirs(), 30)
    yield timing.at_least(work, ours, "the same, order=1", theirs(order=1), 20)


def durable() -> Iterator[Row]:
    """Wait for the disk after each of 28 units of 64 digits, against not waiting, by the clock."""
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

    def scan(durable: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ob.scan(
                net,
                (images, labels),
                group=ob.groups.rotations(ELEMENTS),
                task="classification",
                out=Path(folder) / "run.zarr",
                chunk=64,
                durable=durable,
                progress=False,
            )

    def seconds(call: Callable[[], None]) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    theirs, ours = timing.in_turns(lambda: scan(False), lambda: scan(True), 4, seconds)
    units = -(-len(images) // 64) * 2  # those of the model and those that models share
    print(f"{timing.show((ours - theirs) / units)} for each unit")
    yield timing.at_most("durable scan", ours, "the same, not durable", theirs, 5)


def memory() -> Iterator[Row]:
    """Compare the peak memory of scans of 20,000 and of 1,000 samples, each in a fresh process."""
    peaks = {count: float(_in_fresh_process("peak", count)) for count in (1_000, 20_000)}
    ratio = peaks[20_000] / peaks[1_000]
    sizes = [f"{peaks[count]:.0f} MB" for count in (20_000, 1_000)]
    yield Row(
        "peak memory, 20,000 samples",
        sizes[0],
        "1,000 samples",
        sizes[1],
        ratio,
        "<= 1.1",
        ratio <= 1.1,
    )


def linear() -> Iterator[Row]:
    """Compare the time of 8,000 samples with that of 2,000."""
    times = {count: float(_in_fresh_process("time", count)) for count in (2_000, 8_000)}
    ratio = times[8_000] / times[2_000]
    shown = [timing.show(times[count]) for count in (8_000, 2_000)]
    yield Row(
        "time, 8,000 samples", shown[0], "2,000 samples", shown[1], ratio, "<= 4.4", ratio <= 4.4
    )


def _in_fresh_process(what: str, count: int) -> str:
    command = [sys.executable, __file__, "--measure", what, str(count)]
    # The C library keeps freed memory by its own lights; told to give it back, the peak is ours.
    steady = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"} if what == "peak" else {}
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **steady}
    ).stdout


class Repeated:
    """Digits without end, made as they are read: the data themselves take no memory."""

    def __init__(self, images: torch.Tensor, count: int) -> None:
        self.images = images
        self.shape = (count, *images.shape[1:])
        self.dtype = np.dtype("float32")

    def __getitem__(self, rows: slice) -> torch.Tensor:
        chosen = torch.arange(*rows.indices(self.shape[0])) % len(self.images)
        return self.images[chosen]


def _measure(what: str, count: int) -> None:
    """Scan digits with a cheap model, and print the peak memory in MB or the time in seconds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = torch.rand(1000, 1, 28, 28), torch.arange(1000) % 10
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    truth = labels.repeat(-(-count // len(labels)))[:count]
    with tempfile.TemporaryDirectory() as folder:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        start = time.process_time()
        ob.scan(
            net,
            (Repeated(images, count), truth),
            group="rotations:72",
            task="classification",
            out=Path(folder) / "run.zarr",
            progress=False,
        )
        if what == "time":
            print(time.process_time() - start)
            return
        status = Path("/proc/self/status").read_text().splitlines()
        print(int(next(row for row in status if row.startswith("VmHWM")).split()[1]) / 1024)


def accelerator() -> Iterator[Row]:
    """Scan to disk on the accelerator, everything included, against bare forward passes."""
    from torchvision.models import resnet50

    print(torch.cuda.get_device_name(), torch.__version__)
    large = resnet50(num_classes=1000).eval().cuda()
    half = {"net": Autocast(large)}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    photo = (3, 224, 224)
    yield _accelerator_row("ResNet-50, bf16, 2,048 images", half, 2048, photo, 1.05)
    yield _accelerator_row("ResNet-50, bf16, 512 images", half, 512, photo, 1.15)
    yield _accelerator_row("ResNet-50, tf32, 512 images", {"net": large}, 512, photo, 1.10)
    pair = {name: digits.load(name).eval().cuda() for name in digits.NAMES}
    yield _accelerator_row(
        "the demo's two networks, 16,384 images", pair, 16_384, (1, 28, 28), 1.10
    )


class Autocast(torch.nn.Module):
    """A network in half precision, as it is usually run on an accelerator."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the network."""
        with torch.autocast("cuda", torch.bfloat16):
            return self.net(x)


def _accelerator_row(
    work: str,
    nets: dict[str, torch.nn.Module],
    count: int,
    shape: tuple[int, ...],
    limit: float,
) -> Row:
    """Time 72 rotations of images in the host's memory; batches are those that a scan chooses."""
    images, labels = torch.rand(count, *shape), torch.arange(count) % 10

    def scan() -> int:
        with tempfile.TemporaryDirectory() as folder:
            done = ob.scan(
                nets,
                (images, labels),
                group=ob.groups.rotations(ELEMENTS),
                task="classification",
                out=Path(folder) / "run.zarr",
                progress=False,
            )
            return int(done.record.run.batch_size)

    batch = scan()  # and everything is warm
    inputs = torch.rand(batch, *shape, device="cuda")

    def bare() -> None:
        with torch.inference_mode():
            for start in range(0, count * ELEMENTS, batch):
                for net in nets.values():
                    net(inputs[: count * ELEMENTS - start])

    theirs, ours = timing.in_turns(bare, scan, 3, timing.accelerator_seconds)
    return timing.at_most(f"scan to disk, {work}", ours, "bare forward", theirs, limit)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        _measure(sys.argv[2], int(sys.argv[3]))
    else:
        here = [forward, rotation, memory, linear, durable]
        asked = [accelerator] if "accelerator" in sys.argv else here
        timing.run(asked, __doc__ or "")
