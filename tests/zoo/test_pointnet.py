"""Point networks: what they must not see, and what ships with the package."""

import sys

import pytest
import torch

from orbical.datasets import furniture, padded
from orbical.errors import InputError, MissingExtra
from orbical.zoo import pointnet
from orbical.zoo.pointnet import InvariantNet, PointNet

pytest.importorskip("e3nn", reason="the invariant network needs the extra equivariant")


@pytest.fixture(scope="module")
def clouds():
    return furniture(each=4, points=256)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["point", "invariant"])
def net(request):
    torch.manual_seed(0)
    return (PointNet(8) if request.param == "point" else InvariantNet(8)).eval()


class TestBothNetworks:
    def test_the_order_of_points_does_not_matter(self, net, clouds):
        shuffled = clouds.points[:, torch.randperm(256, generator=generator())]
        assert torch.allclose(net(shuffled), net(clouds.points), atol=1e-4)

    def test_padding_does_not_matter(self, net, clouds):
        sizes = (40, 100, 256)
        several = [clouds.points[row][:size] for row, size in enumerate(sizes)]
        batch = padded(several)
        batch["pos"][~batch["mask"]] = 7.0  # whatever stands there
        alone = torch.cat([net(cloud[None]) for cloud in several])
        assert torch.allclose(net(batch), alone, atol=1e-4)

    def test_clouds_of_another_shape_are_an_error(self, net):
        with pytest.raises(InputError, match=r"got shape \(2, 5, 2\)"):
            net(torch.zeros(2, 5, 2))
        with pytest.raises(InputError, match=r"a mask of shape \(2, 5\), got shape \(2, 4\)"):
            net({"pos": torch.zeros(2, 5, 3), "mask": torch.ones(2, 4)})


class TestInvariantNet:
    def test_rotations_mirrors_and_shifts_change_nothing(self, clouds):
        net = pointnet.load("invariant")
        turns = torch.linalg.qr(torch.randn(len(clouds.points), 3, 3, generator=generator())).Q
        mirror = torch.diag(torch.tensor([-1.0, 1.0, 1.0]))
        upright = net(clouds.points).softmax(1)
        for moved in (
            clouds.points @ turns,
            clouds.points @ mirror,
            clouds.points + torch.tensor([0.3, -0.2, 0.1]),
        ):
            assert torch.allclose(net(moved).softmax(1), upright, atol=2e-4)

    def test_it_is_no_constant(self, clouds):
        answers = pointnet.load("invariant")(clouds.points).argmax(1)
        assert (answers == clouds.labels).float().mean() > 0.9

    def test_a_missing_e3nn_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "e3nn.o3", None)
        with pytest.raises(MissingExtra, match="equivariant"):
            InvariantNet(3)
