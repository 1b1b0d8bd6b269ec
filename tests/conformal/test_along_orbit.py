"""Coverage along the orbit of a scan: what is stored gives what the estimators give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.conformal import APS, CQR, LAC, Absolute, Normalized, OrbitAveraged, along_orbit
from orbical.errors import InputError


@pytest.fixture(scope="module")
def scan():
    """The demo's two networks on scikit-learn's digits, which ship with it."""
    from orbical.cli.demos.digits import enlarged_demo_digits

    images, labels = enlarged_demo_digits()
    return ob.scan(
        {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES},
        (images[:400], labels[:400]),
        group="cyclic:4",
        task="classification",
        keep="probabilities",
        progress=False,
    )


def test_sets_calibrated_upright_lose_their_coverage_on_rotated_digits(scan):
    found = along_orbit(scan, LAC(0.9), calibrate="identity", seed=1)
    plain = found.coverage.sel(model="plain")
    assert plain["high"][0] > 0.9 > plain["low"][0]
    assert (plain["high"][1:] < 0.75).all()
    everywhere = along_orbit(scan, LAC(0.9), calibrate="pooled")
    mean = float(everywhere.coverage.sel(model="plain").mean())
    assert abs(mean - 0.9) < 0.05
    assert (everywhere.size >= found.size - 1e-9).all()
    each = along_orbit(scan, LAC(0.9), calibrate="position").coverage
    assert ((each["low"] < 0.93) & (each["high"] > 0.87)).all()


@pytest.mark.parametrize("method", [LAC(0.8), APS(0.8)], ids=repr)
def test_the_numbers_are_those_of_the_estimators(scan, method):
    rng = np.random.default_rng(3)
    mixed = rng.permutation(400)
    held, new = np.sort(mixed[:200]), np.sort(mixed[200:])
    probs = scan.data["probabilities"].sel(model="augmented").values
    labels = scan.data["label"].values
    fitted = method.set_params(outputs="probabilities").fit(probs[held], labels[held])
    sets = fitted.predict_set(probs[new])
    found = along_orbit(scan, method, calibrate="pooled", seed=3)
    hits = sets[np.arange(200)[:, None], np.arange(4), labels[new][:, None]]
    np.testing.assert_allclose(found.coverage.sel(model="augmented"), hits.mean(0))
    np.testing.assert_allclose(found.size.sel(model="augmented"), sets.sum(-1).mean(0))
    average = OrbitAveraged(method).fit(probs[held], labels[held]).predict_set(probs[new])
    found = along_orbit(scan, method, calibrate="average", seed=3)
    expected = average[np.arange(200), labels[new]].mean()
    np.testing.assert_allclose(found.coverage.sel(model="augmented"), [expected] * 4)


def test_intervals_of_a_regressor_are_measured_along_its_orbit():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(400, 2, generator=rng)
    y = x + 0.3 * torch.randn(400, 2, generator=rng)

    def net(x):  # right for vectors that point right, and sure of it everywhere
        return x * torch.where(x[:, :1] > 0, 1.0, 0.2), torch.full((len(x), 1), 0.09)

    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    scan = ob.scan(
        net,
        (x.abs() * torch.tensor([1.0, 0.1]), y.abs() * torch.tensor([1.0, 0.1])),
        group="cyclic:4",
        task=task,
        progress=False,
    )
    for method in (Absolute(0.9), Normalized(0.9)):
        upright = along_orbit(scan, method, calibrate="identity")
        assert abs(float(upright.coverage[0, 0]) - 0.9) < 0.06
        assert float(upright.coverage[0, 2]) < 0.6
        each = along_orbit(scan, method, calibrate="position")
        assert (abs(each.coverage - 0.9) < 0.07).all()
        assert float(each.size[0, 2]) > float(each.size[0, 0])
    with pytest.raises(InputError, match=r"method: expected Absolute or Normalized .* got CQR"):
        along_orbit(scan, CQR())
    with pytest.raises(InputError, match="expected sets for averaged scores, got intervals"):
        along_orbit(scan, calibrate="average")


def test_what_a_scan_lacks_is_named(scan):
    data = scan.data.drop_vars("probabilities")
    with pytest.raises(InputError, match=r"with probabilities.*scan with keep='probabilities'"):
        along_orbit(data)
    with pytest.raises(InputError, match=r"at least 199 calibration samples .* got 4"):
        along_orbit(scan, LAC(0.995), share=0.01)
    with pytest.raises(InputError, match="calibrate: unknown name 'upright'"):
        along_orbit(scan, calibrate="upright")
    with pytest.raises(InputError, match="calibrate: expected 0 to 3, got 7"):
        along_orbit(scan, calibrate=7)


def test_averaged_scores_need_a_closed_group():
    x = torch.rand(40, 1, 8, 8)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    scan = ob.scan(
        net,
        (x, torch.arange(40) % 3),
        group="translations:1:1",
        task="classification",
        keep="probabilities",
        progress=False,
    )
    with pytest.raises(InputError, match=r"expected a closed group .* got translations"):
        along_orbit(scan, LAC(0.8), calibrate="average")


def test_coverage_and_size_are_drawn(scan):
    found = along_orbit(scan, LAC(0.9), calibrate="identity")
    for part in found:
        figure = ob.figures.calibration.error_along_orbit(part)
        assert figure.axes
