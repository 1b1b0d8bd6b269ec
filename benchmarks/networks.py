"""Reference networks of the zoo beside plain ones, on one thread, or on the GPU where there is one.

python benchmarks/networks.py                   every row
python benchmarks/networks.py --json out.json   and a file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from timing import Row, at_most, run, seconds
from torch import Tensor, nn

from orbical.zoo.group_cnn import GroupCNN

GROUP, ORDER, FIELDS, SIZE = "cyclic:8", 8, (8, 16, 32), 64


def plain_network(maps: tuple[int, ...]) -> nn.Module:
    """The layers of `GroupCNN` with ordinary convolutions."""
    layers: list[nn.Module] = []
    for place, (before, after) in enumerate(zip((3, *maps), maps, strict=False)):
        size = 3 if place else 5
        layers += [
            nn.Conv2d(before, after, size, padding=size // 2, bias=False),
            nn.BatchNorm2d(after),
            *([nn.MaxPool2d(2)] if place < len(maps) - 1 else []),
            nn.ReLU(inplace=True),
        ]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(maps[-1], 256), nn.LayerNorm(256)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(256, 3))


def group_convolution() -> Iterator[Row]:
    """A group convolution beside a plain one with as many feature maps, forward."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    networks = [GroupCNN(GROUP, fields=FIELDS), plain_network(tuple(ORDER * f for f in FIELDS))]
    networks = [network.eval().to(device) for network in networks]
    for count in (32, 1):
        images = torch.rand(count, 3, SIZE, SIZE, device=device)
        images = images.contiguous(memory_format=torch.channels_last)
        ours, plain = (seconds(forward(network, images), runs=15) for network in networks)
        work = f"`GroupCNN` C_8 forward, {count} image{'s' if count > 1 else ''} ({device})"
        yield at_most(work, ours, "plain CNN, as many maps", plain, 1.3)


def forward(network: nn.Module, images: Tensor) -> Callable[[], None]:
    """Make a forward pass that ends when its numbers are there."""

    @torch.inference_mode()
    def work() -> None:
        network(images)
        if images.is_cuda:
            torch.cuda.synchronize()

    return work


ROWS = (group_convolution,)

if __name__ == "__main__":
    run(ROWS, __doc__ or "")
