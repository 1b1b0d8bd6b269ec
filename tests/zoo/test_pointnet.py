"""Point networks: what they must not see, and what ships with the package."""

import sys

import pytest
import torch

from orbical.datasets import furniture, padded
from orbical.errors import InputError, MissingExtra
from orbical.zoo import pointnet, pointnet_training
from orbical.zoo.pointnet import InvariantNet, PointNet, random_rotations

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
        with pytest.raises(InputError, match=r"got \(2, 5, 2\)"):
            net(torch.zeros(2, 5, 2))
        with pytest.raises(InputError, match=r"a mask of shape \(2, 5\), got \(2, 4\)"):
            net({"pos": torch.zeros(2, 5, 3), "mask": torch.ones(2, 4)})


class TestInvariantNet:
    def test_rotations_mirrors_and_shifts_change_nothing(self, clouds):
        net = pointnet.load("invariant")
        turns = random_rotations(len(clouds.points), generator())
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


class TestRandomRotations:
    def test_they_are_rotations(self):
        turns = random_rotations(100, generator())
        assert torch.allclose(turns @ turns.mT, torch.eye(3).expand(100, 3, 3), atol=1e-5)
        assert torch.allclose(torch.linalg.det(turns), torch.ones(100), atol=1e-5)

    def test_they_are_uniform(self):
        """Under Haar measure the trace has mean 0 and variance 1."""
        trace = random_rotations(40_000, generator()).diagonal(dim1=1, dim2=2).sum(1)
        assert abs(float(trace.mean())) < 0.02
        assert abs(float(trace.var()) - 1) < 0.03


class TestWeights:
    @pytest.mark.parametrize("name", pointnet.NAMES)
    def test_they_are_as_good_as_their_header_says(self, name):
        test = furniture(
            pointnet_training.TEST_EACH, pointnet_training.POINTS, pointnet_training.TEST_SEED
        )
        found = pointnet_training.accuracy(pointnet.load(name), test.points, test.labels)
        said = float(pointnet.provenance(name)["test accuracy upright"])
        assert found == pytest.approx(said, abs=0.006)
        assert pointnet.classes_of(name) == test.classes

    def test_each_file_is_small(self):
        assert all(pointnet.weights_file(name).stat().st_size < 1e6 for name in pointnet.NAMES)

    def test_missing_weights_are_an_error(self, tmp_path):
        with pytest.raises(InputError, match=r"with 'points-plain\.safetensors'"):
            pointnet.load("plain", tmp_path)


class TestTraining:
    def test_the_same_seed_gives_the_same_weights(self, clouds):
        twice = [
            pointnet_training.train(
                pointnet_training.make("plain", 8, seed=3),
                *(clouds.points, clouds.labels, True),
                steps=2,
                seed=3,
            ).state_dict()
            for _ in range(2)
        ]
        assert all(torch.equal(twice[0][key], twice[1][key]) for key in twice[0])

    def test_it_learns(self, clouds):
        losses = []
        net = pointnet_training.make("plain", 8, seed=0)
        net = pointnet_training.train(
            *(net, clouds.points, clouds.labels),
            rotate=False,
            steps=40,
            after_step=lambda step, loss: losses.append(loss),
        )
        assert losses[-1] < 0.3 * losses[0]
        assert not net.training

    def test_points_beyond_a_cloud_are_never_drawn(self):
        batch = padded([torch.ones(5, 3), torch.ones(50, 3)])
        drawn = pointnet_training._drawn(batch["pos"], batch["mask"].sum(1), 400, generator())
        assert drawn.min() > 0.7  # zeros would stand at the padded places

    def test_the_command_writes_files_that_load(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(pointnet_training, "TRAIN_EACH", 2)
        monkeypatch.setattr(pointnet_training, "TEST_EACH", 1)
        pointnet_training.main(["--out", str(tmp_path), "--steps", "1", "--names", "plain"])
        assert "plain: " in capsys.readouterr().out
        assert pointnet.load("plain", tmp_path)(torch.zeros(1, 9, 3)).shape == (1, 8)

    def test_bad_input_is_refused_before_work(self, clouds):
        net = PointNet(8)
        for change, words in (
            ({"labels": clouds.labels[:3]}, "labels: expected"),
            ({"labels": clouds.labels.float()}, "labels: .* got torch.float32"),
            ({"steps": 0}, "steps: .* got 0"),
            ({"clouds": clouds.points[:1], "labels": clouds.labels[:1]}, "clouds: .* got 1"),
        ):
            given = {"clouds": clouds.points, "labels": clouds.labels, "rotate": False, **change}
            with pytest.raises(InputError, match=words):
                pointnet_training.train(net, **given)
