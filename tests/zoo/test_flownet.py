"""The learned flow estimator: its parts against plain references."""

from __future__ import annotations

import pytest
import torch

from orbical.datasets import particle_pairs
from orbical.errors import InputError
from orbical.zoo import flownet


def test_correlation_equals_the_sum_written_out():
    first, second = torch.randn(2, 1, 3, 6, 7, generator=torch.Generator().manual_seed(0))
    found = flownet.correlation(first, second, radius=2)
    for number, (dy, dx) in enumerate((dy, dx) for dy in range(-2, 3) for dx in range(-2, 3)):
        for row in range(6):
            for column in range(7):
                inside = 0 <= row + dy < 6 and 0 <= column + dx < 7
                other = second[0, :, row + dy, column + dx] if inside else torch.zeros(3)
                expected = float(first[0, :, row, column] @ other) / 3
                assert float(found[0, number, row, column]) == pytest.approx(expected, abs=1e-5)


def test_warping_by_whole_pixels_moves_the_array():
    features = torch.randn(1, 2, 8, 8, generator=torch.Generator().manual_seed(1))
    flow = torch.tensor([2.0, 1.0]).reshape(1, 2, 1, 1).expand(1, 2, 8, 8)
    assert torch.allclose(
        flownet.warp(features, flow)[..., :7, :6], features[..., 1:, 2:], atol=1e-5
    )


@pytest.mark.parametrize("size", [(64, 64), (50, 70)])
def test_the_answer_has_the_size_of_the_images(size):
    net = flownet.FlowNet().eval()
    with torch.inference_mode():
        assert net(torch.rand(2, 2, 1, *size)).shape == (2, 2, *size)


def test_brightness_and_contrast_do_not_matter():
    net = flownet.FlowNet().eval()
    pair = particle_pairs(1, size=48)["pair"]
    with torch.inference_mode():
        assert torch.allclose(net(pair), net(0.3 * pair + 0.2), atol=1e-4)


def test_wrong_pairs_are_refused():
    with pytest.raises(InputError, match="pairs"):
        flownet.FlowNet()(torch.rand(2, 3, 1, 32, 32))
