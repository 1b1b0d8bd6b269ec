"""Convolutions that a CPU trains are contiguous; those that only predict have channels last."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from orbical.zoo.detector import Detector
from orbical.zoo.digits import DigitCNN
from orbical.zoo.group_cnn import GroupCNN, GroupConv
from orbical.zoo.layout import images_in_layout

NETWORKS = {
    "digits": (DigitCNN, (2, 1, 28, 28)),
    "detector": (Detector, (2, 3, 64, 64)),
    "group": (lambda: GroupCNN("cyclic:4", fields=(2, 4, 4)), (2, 3, 16, 16)),
}


def convolved(network: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    """Return what each convolution of a network was given."""
    seen: list[torch.Tensor] = []
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | GroupConv):
            layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    (network.maps(images)[0] if isinstance(network, Detector) else network(images)).sum()
    return seen


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("stored", [torch.contiguous_format, torch.channels_last])
def test_the_convolutions_of_a_training_on_a_cpu_are_contiguous(name, stored):
    make, shape = NETWORKS[name]
    network = make().train()
    for maps in convolved(network, torch.rand(shape).to(memory_format=stored)):
        assert maps.is_contiguous()
    assert all(values.is_contiguous() for values in network.parameters())


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_only_predicts_has_channels_last(name):
    make, shape = NETWORKS[name]
    network = make().eval()
    with torch.inference_mode():
        for maps in convolved(network, torch.rand(shape)):
            assert maps.is_contiguous(memory_format=torch.channels_last)
            assert maps.stride(1) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_layout_does_not_change_what_a_network_predicts(name):
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    network, images = make().eval(), torch.rand(shape)
    recorded = network(images).detach()
    with torch.no_grad():
        assert torch.allclose(network(images), recorded, atol=1e-4)


def test_accelerators_have_channels_last():
    for recorded in (True, False):
        with torch.set_grad_enabled(recorded):
            images = torch.empty(2, 3, 4, 4, device="meta")
            assert images_in_layout(images).stride() == (48, 1, 12, 3)
