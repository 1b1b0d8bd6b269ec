"""What matches, rounds or compares does not depend on units: x -> c x and f -> c f.

Every public function of the packages below is tested for it, or declared to have none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical import adversarial, advice, bounds, embedding, nero, testing

SCALES = [1e-12, 1e-6, 1e-3, 1e3, 1e6, 1e12]
RNG = np.random.default_rng(0)
HALF = RNG.uniform(0.5, 2, (30, 2)) * RNG.choice([-1, 1], (30, 2))
POINTS = np.concatenate([HALF, -HALF])
LABEL = RNG.integers(0, 2, 60)
VALUE = RNG.normal(size=(60, 2))
APART = np.random.default_rng(1).normal(size=(300, 2))
PLACES = xr.DataArray(VALUE, dims=("sample", "component"))
MATRIX = torch.tensor([[1.0, 0.3], [-0.2, 0.7]], dtype=torch.float64)
TURNS = ob.groups.cyclic(2).linear("plane")


def value_table(c: float, **predictions: Any) -> bounds.ValueTable:
    return bounds.ValueTable.from_data(c * POINTS, c * VALUE, "cyclic:2", **predictions)


TASK = ob.tasks.Regression(ob.actions.Vectors(), "vector")


def scan_data(c: float) -> tuple[torch.Tensor, torch.Tensor]:
    return c * torch.from_numpy(POINTS), c * torch.from_numpy(VALUE)


@cache
def scan(c: float) -> ob.Scan:
    """A linear model of vectors that is not equivariant: its outputs scale with its inputs."""
    model = {"net": lambda x: x @ MATRIX.to(x)}
    return ob.scan(model, scan_data(c), group="rotations:8", task=TASK, progress=False)


def planted(c: float) -> list[float]:
    """What is found where errors of half of the samples are larger by half of the orbit."""
    scores = scan(c).data.copy()
    error = scores["score"].values.copy()
    error[0, :30, :4] += 9 * c
    for name in ("score", "score_vs_consensus"):
        scores[name] = (scores["score"].dims, error, scores["score"].attrs)
    found = nero.failures(scores, columns={"half": np.arange(60) < 30})
    assert found[0].elements == (0, 1, 2, 3)
    return [found[0].harm, found[0].low, found[0].others, found[0].excess]


def worst(c: float) -> np.ndarray:
    found = adversarial.worst_case(lambda x: x @ MATRIX.to(x), scan_data(c), group="rotations:8",
                                   task=TASK, progress=False)  # fmt: skip
    names = ("score", "missed", "mean_low", "mean_high")
    return np.concatenate([found[name].values.ravel() for name in names])


def gain(remedy: Any) -> list[float]:
    return [remedy.gain, remedy.low, remedy.high]


def estimate(found: bounds.Estimate) -> list[float]:
    return [found.value, found.low, found.high]


def rows(c: float) -> list[Any]:
    found = bounds.compare_groups((c * POINTS, LABEL), ["cyclic:2", "cyclic:4"]).rows()
    return [row[key] for row in found for key in ("matched", "accuracy_ceiling", "neighbor_error")]


def error(c: float, **settings: Any) -> np.ndarray:
    x = c * torch.from_numpy(POINTS)
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    found = testing.equivariance_error(
        lambda x: x @ MATRIX, x, group="cyclic:4", task=task, **settings
    )
    return found.per_element


def layers(c: float) -> np.ndarray:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, stride=2, bias=False),
        torch.nn.Flatten(),
        torch.nn.Linear(18, 3, bias=False),
    )
    x = c * torch.randn(16, 1, 8, 8)
    found = testing.layer_errors(net, x, group="cyclic:4", task="regression")
    return np.concatenate([found.share, found.error])


def asserted(c: float) -> float:
    x = c * torch.from_numpy(POINTS)
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    testing.assert_equivariant(lambda x: 2 * x, x, group="cyclic:4", task=task)
    with pytest.raises(AssertionError, match="not equivariant"):
        testing.assert_equivariant(lambda x: x @ MATRIX, x, group="cyclic:4", task=task)
    return 0.0


def variances(c: float) -> dict[str, Any]:
    return {"mean": c * VALUE[::-1], "variance": np.full(60, c**2 / 4)}


Measured = Callable[[float], Any]
SCALED: dict[str, tuple[Measured, int]] = {
    "bounds.match_orbits": (lambda c: bounds.match_orbits(c * POINTS, "cyclic:2").orbit, 0),
    "bounds.match_invariants": (
        lambda c: (
            bounds.match_invariants(c * np.linalg.norm(POINTS, axis=1), tolerance=c * 1e-9).orbit
        ),
        0,
    ),
    "bounds.match_elements": (
        lambda c: np.concatenate(
            bounds.match_elements(
                c * POINTS, "cyclic:2", bounds.match_orbits(c * POINTS, "cyclic:2")
            )[:2]
        ),
        0,
    ),
    "bounds.OrbitTable": (
        lambda c: bounds.OrbitTable.from_data(c * POINTS, LABEL, "cyclic:2").mass,
        0,
    ),
    "bounds.ValueTable": (lambda c: value_table(c).value, 1),
    "bounds.compare_groups": (rows, 0),
    "bounds.neighbor_ceiling": (
        lambda c: [
            *estimate(bounds.neighbor_ceiling(c * POINTS, LABEL, "cyclic:4")),
            *estimate(bounds.neighbor_ceiling(c * APART, APART[:, 0] > 0, "cyclic:2")),
        ],
        0,
    ),
    "bounds.neighbor_floor": (
        lambda c: estimate(
            bounds.neighbor_floor(c * POINTS, c * VALUE, "cyclic:2", representation=TURNS)
        ),
        2,
    ),
    "bounds.taxonomy": (
        lambda c: [
            *bounds.taxonomy(c * POINTS, c * VALUE, "cyclic:2", support=c * 0.1).totals().values()
        ],
        0,
    ),
    "bounds.regression": (
        lambda c: [
            bounds.regression(value_table(c, **variances(c)), TURNS)[name].value
            for name in ("gence", "gence_sq", "thm7", "thm7_minimized", "mahalanobis")
        ],
        0,
    ),
    "bounds.best_equivariant": (lambda c: bounds.best_equivariant(value_table(c), TURNS), 1),
    "bounds.nll_optimal_variance": (
        lambda c: bounds.nll_optimal_variance(value_table(c), TURNS),
        2,
    ),
    "bounds.nll_optimal_bleed": (lambda c: bounds.nll_optimal_bleed(value_table(c)), 4),
    "bounds.normalize": (lambda c: bounds.normalize(c * np.arange(1.0, 7.0)), 0),
    "nero.failures": (planted, 1),
    "adversarial.worst_case": (worst, 1),
    "advice.advise": (lambda c: gain(ob.advise(scan(c))[0].remedies[0]), 1),
    "embedding.representatives": (lambda c: embedding.representatives(c * PLACES, 5), 0),
    "embedding.embed": (lambda c: embedding.embed(scan(c), "pca").values, 1),
    "testing.equivariance_error": (error, 0),
    "testing.assert_equivariant": (asserted, 0),
    "testing.layer_errors": (layers, 0),
    "nero.aggregate": (lambda c: nero.aggregate(scan(c)).values, 1),
    "nero.individual": (lambda c: nero.individual(scan(c), 3).values, 1),
    "nero.responses": (lambda c: nero.responses(scan(c)).values, 1),
    "nero.consensus": (lambda c: nero.consensus(scan(c))["consensus"].values, 1),
    "nero.invariance_gap": (lambda c: nero.invariance_gap(scan(c))["total"].values, 1),
    "nero.action_defect": (lambda c: nero.action_defect(scan(c))["curve"].values, 0),
    "nero.summary": (lambda c: nero.summary(scan(c))["worst_element"].values, 0),
    "nero.consistency": (
        lambda c: nero.consistency(scan(c), tolerance=c * 0.5)["changed_per_sample"].values,
        0,
    ),
    "nero.enough_elements": (
        lambda c: nero.enough_elements(scan(c))[["degree_held", "enough"]].to_array().values,
        0,
    ),
}
"""What each function measures of data in units of 1 / c, and the power of c that it scales with."""
PROBABILITIES = "sees masses, probabilities, classes or labels"
RESULT = "is a result, not a function of data"
UNITS = "is in eV and Å by definition"
ORDER = "compares means by their order alone, and writes them"
FREE = {
    **dict.fromkeys(
        (
            *("bounds.certified_ceiling", "bounds.classification", "bounds.confidence_density"),
            *(
                "bounds.fibers_from_errors",
                "bounds.forced_overconfidence",
                "bounds.price_from_pairs",
            ),
            *("bounds.orbits_of_permutations", "bounds.worst_predictions", "bounds.Density"),
            *("nero.averaging", "nero.binary_rates", "nero.quadratic_kappa", "nero.order_averages"),
            *("nero.position_bias", "nero.worst_orders", "adversarial.flips"),
            *("advice.what_if", "advice.cause"),
        ),
        PROBABILITIES,
    ),
    **dict.fromkeys(
        (
            *("bounds.Bound", "bounds.Bounds", "bounds.Candidate", "bounds.Comparison"),
            *("bounds.Estimate", "bounds.Fibers", "bounds.ModelOutputs", "bounds.Orbits"),
            *("bounds.Price", "bounds.Taxonomy", "testing.EquivarianceError"),
            *("testing.ConservativityError", "testing.TOLERANCE", "nero.Violation"),
            *("nero.Failure", "nero.Failures", "testing.LayerErrors", "adversarial.Flip"),
            *("advice.Advice", "advice.Cause", "advice.Change", "advice.Expectation"),
            "advice.Remedy",
        ),
        RESULT,
    ),
    **dict.fromkeys(
        (
            *("testing.conservativity_error", "testing.assert_conservative"),
            *("nero.violations", "nero.molecule_name"),
        ),
        UNITS,
    ),
    "nero.headline": ORDER,
}


def test_every_public_function_is_tested_or_declared_free_of_units() -> None:
    names = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (adversarial, advice, bounds, embedding, nero, testing)
        for name in module.__all__
    }
    assert not SCALED.keys() & FREE.keys()
    assert names == SCALED.keys() | FREE.keys()


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("scale", SCALES)
def test_results_scale_with_the_units_of_the_data(name: str, scale: float) -> None:
    measured, power = SCALED[name]
    found, expected = (np.asarray(measured(c), float) for c in (scale, 1.0))
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-300)
    np.testing.assert_allclose(found / scale**power, expected, rtol=1e-4, atol=1e-5 * largest)


@pytest.mark.parametrize("scale", [1e-25, *SCALES])
def test_the_angle_of_normals_does_not_depend_on_their_length(scale: float) -> None:
    task = ob.tasks.DenseRegression(representation="normal")
    maps = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 3, 5, 5)))
    angles = [task.score(c * maps[:1], maps[1:], None) for c in (scale, 1.0)]
    torch.testing.assert_close(*angles)
