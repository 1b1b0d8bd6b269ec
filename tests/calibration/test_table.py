"""Tables of all measures: each value is its function's, and lies in its interval."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical import calibration


@pytest.fixture(scope="module")
def outputs():
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(300, 4, generator=generator, dtype=torch.float64)
    drawn = torch.multinomial((0.6 * logits).softmax(-1), 1, generator=generator)[:, 0]
    return {"logits": logits, "labels": drawn}


@pytest.fixture(scope="module")
def table(outputs):
    return calibration.classification_table(**outputs, resamples=100)


@pytest.mark.parametrize("name", ["ece", "ks", "esd", "mmce", "skce"])
def test_class_wise_values_are_those_of_the_functions(outputs, table, name):
    function = getattr(calibration, f"classwise_{name}")
    expected = function(**outputs)
    found = table[f"classwise_{name}"]
    torch.testing.assert_close(found.value, expected)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("name", ["ece", "ks", "esd", "mmce", "skce", "smooth_ece", "sb_ece"])
def test_top_label_values_are_those_of_the_functions(outputs, table, name):
    pair = calibration.top_label(**outputs)
    torch.testing.assert_close(
        table[name].value.double(), getattr(calibration, name)(*pair).double(), rtol=1e-3, atol=1e-6
    )


def test_an_over_confident_model_lies_above_its_calibrated_value(table):
    for name in ("ece", "ks", "classwise_ece", "classwise_ks"):
        assert table[name].value > table[name].calibrated_high


@pytest.mark.parametrize("form", ["diagonal", "shared", "full"])
def test_a_calibrated_squared_error_is_what_draws_show(form: str) -> None:
    draw = np.random.default_rng(0)
    root = draw.normal(size=(50, 3, 3)) * draw.uniform(0.5, 2, (50, 1, 1))
    covariance = root @ root.swapaxes(1, 2) + 0.1 * np.eye(3)
    variance = covariance
    if form != "full":
        variance = covariance.diagonal(0, 1, 2).copy()
        variance = variance[:, :1] if form == "shared" else variance
        covariance = np.broadcast_to(variance, (50, 3))[..., None] * np.eye(3)
    noise = draw.normal(size=(20_000, 50, 3))
    error = np.einsum("nij,rnj->rni", np.linalg.cholesky(covariance), noise)
    squares = (error**2).sum(-1).mean(-1)
    found = calibration.regression_table(np.zeros((50, 3)), variance, error[0], resamples=20)[
        "squared_error"
    ]
    assert float(found.value) == pytest.approx(squares[0])
    assert float(found.calibrated) == pytest.approx(squares.mean(), rel=0.01)
    reach = float(found.calibrated_high - found.calibrated_low)
    assert reach == pytest.approx(2 * 1.96 * squares.std(), rel=0.03)
