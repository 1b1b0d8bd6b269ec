"""A model averaged over the orbit: equivariant, better, and its spread an uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.predictors import OrbitAverage


def test_an_averaged_model_is_equivariant_for_classes_vectors_and_fields():
    torch.manual_seed(0)
    images = torch.rand(6, 1, 8, 8)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 5))
    ob.testing.assert_equivariant(
        OrbitAverage(net, "dihedral:4", "classification"),
        images,
        group="dihedral:4",
        task="classification",
    )
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    vectors = OrbitAverage(torch.nn.Linear(2, 2), "cyclic:8", task)
    ob.testing.assert_equivariant(vectors, torch.randn(6, 2), group="cyclic:8", task=task)


def test_the_average_is_that_of_the_consensus_of_a_scan():
    images, _ = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(net, images[:20], group="rotations:6", task="classification", progress=False)
    average = OrbitAverage(net, "rotations:6")
    with torch.inference_mode():
        found, spread = average(images[:20]), average.spread(images[:20])
    np.testing.assert_allclose(found, scan.data["consensus"][0], atol=1e-6)
    np.testing.assert_array_equal(average(images[:20].numpy()).detach(), found)
    np.testing.assert_allclose(spread.sqrt(), scan.data["invariance_gap"][0], atol=1e-6)


def test_the_spread_along_the_orbit_is_added_as_epistemic_variance():
    def net(x):
        return x * torch.tensor([1.0, 3.0]), torch.full((len(x), 1), 0.5)

    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    mean, variance = OrbitAverage(net, "cyclic:4", task)(x)
    torch.testing.assert_close(mean, 2 * x)
    torch.testing.assert_close(variance, torch.tensor([[1.0], [2.5]]))  # 0.5, and |x|^2 / 2

    def parts(x):
        mean, variance = net(x)
        return mean, variance, 0 * variance

    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="parts")
    average = OrbitAverage(parts, "cyclic:4", task)
    torch.testing.assert_close(average(x)[2], torch.tensor([[0.5], [2.0]]))
    scan = ob.scan(average, (x, x), group="cyclic:4", task=task, progress=False)
    assert float(scan.data["epistemic"].max()) == pytest.approx(2.0)


def test_averaged_models_are_identified_by_model_and_group():
    net = torch.nn.Linear(2, 2)
    prints = {OrbitAverage(net, group).fingerprint() for group in ("cyclic:4", "cyclic:8")}
    assert len(prints) == 2
    assert OrbitAverage(lambda x: x, "cyclic:4").fingerprint() is None
    assert "averaged over cyclic:4" in OrbitAverage(net, "cyclic:4").source


@pytest.mark.parametrize(
    "task",
    [
        ob.tasks.Detection(),
        ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="covariance"),
        "text",
        torch.nn.Identity(),
    ],
)
def test_outputs_without_a_mean_are_refused(task):
    with pytest.raises(InputError, match="task: expected"):
        OrbitAverage(torch.nn.Identity(), "cyclic:4", task)


@pytest.fixture(scope="module")
def scan():
    from orbical.cli.demos.digits import enlarged_demo_digits

    images, labels = enlarged_demo_digits()
    plain = ob.zoo.digits.load("plain")
    return ob.scan(
        {"plain": plain, "halves": OrbitAverage(plain, "cyclic:2")},
        (images[:150], labels[:150]),
        group="cyclic:4",
        task="classification",
        keep="probabilities",
        progress=False,
    )


def test_the_table_of_averaging_predicts_the_averaged_model(scan):
    found = ob.nero.averaging(scan)
    plain, halves = found.sel(model="plain"), found.sel(model="halves")
    for name in ("accuracy", "ece", "invariance_gap"):
        np.testing.assert_allclose(
            plain[name].sel(elements=2), halves[name].sel(elements=1), atol=1e-5
        )
    assert float(plain["gain"].sel(elements=1)) == 0
    gain = plain.sel(elements=4)
    change = gain["accuracy"] - plain["accuracy"].sel(elements=1)
    assert float(gain["gain"]) == pytest.approx(float(change.sel(place="mean")))
    assert float(gain["gain_low"]) > 0
    assert float(gain["invariance_gap"]) < 1e-6
    assert found["cost"].values.tolist() == [1, 2, 4]
    assert int(plain["enough"]) in (2, 4)


def test_few_samples_do_not_show_that_one_element_is_enough():
    """A model of which nothing changes along the orbit, or may change for samples not seen."""
    images, labels = ob.datasets.digits()

    def brightness(x):
        return torch.stack([x.mean((1, 2, 3)), 1 - x.mean((1, 2, 3))], 1)

    scan = ob.scan(
        brightness, (images[:100], labels[:100] % 2), group="cyclic:4", task="classification",
        keep="probabilities", progress=False,
    )  # fmt: skip
    enough = {
        margin: ob.nero.averaging(scan, margin=margin)["enough"].item() for margin in (0.01, 0.2)
    }
    assert enough == {0.01: 4, 0.2: 1}
    with pytest.raises(InputError, match="margin: expected a number > 0"):
        ob.nero.averaging(scan, margin=0.0)


def test_averaging_follows_the_product_of_a_group_that_does_not_commute():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        net,
        (images[:30], labels[:30]),
        group="dihedral:4",
        task="classification",
        keep="probabilities",
        progress=False,
    )
    found = ob.nero.averaging(scan, [8])
    assert float(found["invariance_gap"].sel(elements=8).squeeze()) < 1e-6


def test_what_cannot_be_averaged_is_refused(scan):
    with pytest.raises(InputError, match=r"elements: expected divisors of 4, \[1, 2, 4\], got 3"):
        ob.nero.averaging(scan, [3])
    with pytest.raises(InputError, match="none of probabilities; scan labeled data with keep="):
        ob.nero.averaging(scan.data.drop_vars("probabilities"))
