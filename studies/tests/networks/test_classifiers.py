"""LeNet-5 and the compact ResNet: shapes, sizes, and that they learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from orbical_studies.networks.classifiers import (
    CompactResNet,
    LeNet5,
    ResidualBlock,
)


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_lenet5_has_the_published_61706_parameters() -> None:
    # 156 + 2,416 + 48,120 + 10,164 + 850: LeCun et al. with full connections and 10 linear outputs.
    assert size(LeNet5()) == 61_706


def test_the_compact_resnet_is_as_large_as_its_docstring_says() -> None:
    model = CompactResNet()
    multiplications = 0

    def count(layer: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        nonlocal multiplications
        multiplications += output[0].numel() * layer.weight[0].numel()

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    assert size(model) == 1_210_410
    assert round(multiplications / 1e6) == 45


def test_a_block_adds_its_input() -> None:
    block = ResidualBlock(4, 4, stride=1).eval()
    nn.init.zeros_(block.branch[3].weight)
    images = torch.randn(2, 4, 5, 5)
    torch.testing.assert_close(block(images), images.relu())


@pytest.mark.parametrize(
    ("made", "channels"),
    [(partial(LeNet5, 4), 1), (partial(CompactResNet, 4, (4, 8, 8)), 3)],
)
def test_a_few_steps_fit_a_few_images(made: Callable[[], nn.Module], channels: int) -> None:
    torch.manual_seed(0)
    model = made()
    images, labels = torch.randn(8, channels, 32, 32), torch.arange(8) % 4
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1
