"""Tables of all measures: each value is its function's, and lies in its interval."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical import calibration, check
from orbical.errors import InputError


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


@pytest.mark.parametrize("name", ["ece", "ece_mass", "smooth_ece", "sb_ece", "ks", "esd", "skce"])
def test_equal_weights_give_the_interval_without_weights(outputs, name: str) -> None:
    pair, draws = calibration.top_label(**outputs), 100 if name == "smooth_ece" else 400
    plain = calibration.interval(name, *pair, resamples=draws)
    weighted = calibration.interval(name, *pair, weights=torch.full((300,), 2.0), resamples=draws)
    assert float(weighted.value) == pytest.approx(float(plain.value), abs=1e-12)
    width = float(plain.high - plain.low)
    for end in ("low", "high", "calibrated"):
        ours, theirs = (float(getattr(one, end)) for one in (weighted, plain))
        assert ours == pytest.approx(theirs, abs=0.25 * width), end


def test_a_weighted_table_weights_every_measure_it_holds(outputs) -> None:
    weights = torch.linspace(0, 1, 300, dtype=torch.float64)
    found = calibration.classification_table(**outputs, weights=weights, resamples=20)
    pair = calibration.top_label(**outputs)
    for name in ("ece", "ks", "esd", "mmce", "skce", "smooth_ece"):
        expected = getattr(calibration, name)(*pair, weights=weights)
        assert float(found[name].value) == pytest.approx(float(expected), abs=1e-12), name
    for name in ("nll", "brier", "accuracy", "classwise_ece", "classwise_ks"):
        expected = getattr(calibration, name)(**outputs, weights=weights)
        assert float(found[name].value) == pytest.approx(float(expected), abs=1e-12), name
        assert found[name].low <= found[name].value <= found[name].high


def test_weights_that_a_measure_does_not_take_are_refused(outputs) -> None:
    pair = calibration.top_label(**outputs)
    with pytest.raises(InputError, match="takes no weights"):
        calibration.interval(lambda z, y: calibration.ks(z, y), *pair, weights=torch.ones(300))


def test_the_interval_of_a_weighted_mean_covers_it() -> None:
    draw = np.random.default_rng(3)
    weights = draw.uniform(0, 2, 300)
    covered = 0
    for _ in range(400):
        found = calibration.mean_interval(
            draw.normal(1, 1, 300), np.ones(300), np.ones(300), weights=weights
        )
        covered += bool(found.low <= 1 <= found.high)
    assert covered / 400 == pytest.approx(0.95, abs=0.03)


def test_a_table_without_ignored_labels_is_that_of_the_others(outputs) -> None:
    logits, labels = outputs["logits"], outputs["labels"].clone()
    labels[::3] = -100
    kept = labels != -100
    found = calibration.classification_table(
        logits=logits, labels=labels, ignore_index=-100, resamples=20
    )
    expected = calibration.classification_table(
        logits=logits[kept], labels=labels[kept], resamples=20
    )
    assert {name: float(part.value) for name, part in found.items()} == {
        name: float(part.value) for name, part in expected.items()
    }


def test_a_table_of_some_measures_has_these_alone(outputs) -> None:
    assert list(calibration.measure_table(outputs, only="ece_l2", resamples=20)) == ["ece_l2"]
    with pytest.raises(InputError, match="only: unknown name 'acuracy'; did you mean 'accuracy'"):
        calibration.measure_table(outputs, only=["ece", "acuracy"])


def test_a_measure_that_does_not_apply_to_what_was_passed_is_refused(outputs, tmp_path) -> None:
    """It used to be left out of the table."""
    expected = r"only: expected measures in the table of these outputs, accuracy, .*, got 'ence'"
    with pytest.raises(InputError, match=expected):
        calibration.measure_table(outputs, only=["ece", "ence"])
    weighted = {**outputs, "weights": torch.ones(len(outputs["labels"]))}
    with pytest.raises(InputError, match="got 'brier_refinement'"):
        calibration.measure_table(weighted, only="brier_refinement")
    np.savez(tmp_path / "two.npz", mean=np.zeros(2), variance=np.ones(2), target=np.ones(2))
    with pytest.raises(InputError, match=r"two\.npz: expected measures .*, got 'regression_esd'"):
        check(tmp_path / "two.npz", max_regression_esd=0.5)
