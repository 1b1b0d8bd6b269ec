"""Tables of all measures: each value is its function's, and lies in its interval."""

from __future__ import annotations

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
