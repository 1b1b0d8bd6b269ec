"""Measures recomputed in a report are those of orbical.calibration."""

from __future__ import annotations

import numpy as np
import pytest

from orbical import calibration

MODULES = {"hosts/static_measures.js": "MEASURES, reliability, cumulative"}


def pairs(kind):
    rng = np.random.default_rng(0)
    z = rng.beta(5, 1.5, 400)
    if kind == "tied":
        z = np.round(z, 1)
    if kind == "certain":
        z = np.where(rng.random(400) < 0.6, 1.0, z)
    correct = rng.random(400) < z * (0.7 if kind == "overconfident" else 1.0)
    return z, correct


@pytest.mark.parametrize("kind", ["calibrated", "overconfident", "tied", "certain"])
@pytest.mark.parametrize(
    ("measure", "tolerance"),
    [("ece", 1e-9), ("ks", 1e-9), ("esd", 1e-9), ("mmce", 1e-9), ("smooth_ece", 5e-4)],
)
def test_a_measure_agrees(in_node, measure, tolerance, kind):
    z, correct = pairs(kind)
    found = in_node(
        MODULES,
        f"return MEASURES.{measure}(Float64Array.from(given.z), Uint8Array.from(given.correct));",
        {"z": z.tolist(), "correct": correct.astype(int).tolist()},
    )
    assert found == pytest.approx(float(getattr(calibration, measure)(z, correct)), abs=tolerance)


@pytest.mark.parametrize("kind", ["calibrated", "tied", "certain"])
def test_the_reliability_diagram_agrees(in_node, kind):
    z, correct = pairs(kind)
    found = in_node(
        MODULES,
        "return reliability(Float64Array.from(given.z), Uint8Array.from(given.correct), 15);",
        {"z": z.tolist(), "correct": correct.astype(int).tolist()},
    )
    expected = calibration.reliability(z, correct)
    assert found["count"] == expected.count.tolist()
    for name in ("confidence", "accuracy"):
        ours = np.array(found[name], float)  # null, where a bin is empty, is NaN
        np.testing.assert_allclose(ours, getattr(expected, name).numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", ["calibrated", "tied"])
def test_the_cumulative_curves_agree(in_node, kind):
    z, correct = pairs(kind)
    shares = np.linspace(0, 1, 101)
    found = in_node(
        MODULES,
        "return cumulative(Float64Array.from(given.z), Uint8Array.from(given.correct), given.at);",
        {"z": z.tolist(), "correct": correct.astype(int).tolist(), "at": shares.tolist()},
    )
    expected = calibration.cumulative_curve(z, correct)
    for name in ("confidence", "accuracy"):
        steps = np.concatenate([[0.0], getattr(expected, name).numpy()])
        at = np.searchsorted(expected.quantile.numpy(), shares, side="right")
        np.testing.assert_allclose(found[name], steps[at], atol=1e-6)


@pytest.mark.parametrize("measure", ["ece", "ks", "esd", "smooth_ece", "mmce"])
def test_no_samples_have_no_error(in_node, measure):
    assert in_node(MODULES, f"return MEASURES.{measure}([], []);", None) is None
