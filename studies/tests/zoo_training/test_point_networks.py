"""Point networks: their training and what ships with the package."""

import pytest
import torch

from orbical.datasets import furniture, padded
from orbical.errors import InputError
from orbical.zoo import pointnet
from orbical.zoo.pointnet import PointNet
from orbical_studies.zoo_training import point_networks
from orbical_studies.zoo_training.point_networks import random_rotations

pytest.importorskip("e3nn", reason="the invariant network needs the extra equivariant")


@pytest.fixture(scope="module")
def clouds():
    return furniture(each=4, points=256)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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
        test = furniture(point_networks.TEST_EACH, point_networks.POINTS, point_networks.TEST_SEED)
        found = point_networks.accuracy(pointnet.load(name), test.points, test.labels)
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
            point_networks.train(
                point_networks.make("plain", 8, seed=3),
                *(clouds.points, clouds.labels, True),
                steps=2,
                seed=3,
            ).state_dict()
            for _ in range(2)
        ]
        assert all(torch.equal(twice[0][key], twice[1][key]) for key in twice[0])

    def test_it_learns(self, clouds):
        losses = []
        net = point_networks.make("plain", 8, seed=0)
        net = point_networks.train(
            *(net, clouds.points, clouds.labels),
            rotate=False,
            steps=40,
            after_step=lambda step, loss: losses.append(loss),
        )
        assert losses[-1] < 0.3 * losses[0]
        assert not net.training

    def test_points_beyond_a_cloud_are_never_drawn(self):
        batch = padded([torch.ones(5, 3), torch.ones(50, 3)])
        drawn = point_networks._drawn(batch["pos"], batch["mask"].sum(1), 400, generator())
        assert drawn.min() > 0.7  # zeros would stand at the padded places

    def test_the_command_writes_files_that_load(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(point_networks, "TRAIN_EACH", 2)
        monkeypatch.setattr(point_networks, "TEST_EACH", 1)
        point_networks.main(["--out", str(tmp_path), "--steps", "1", "--names", "plain"])
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
                point_networks.train(net, **given)
