"""Intervals and comparisons say where their coverage was not shown, and elsewhere nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import interval_tables as worlds
import numpy as np
import pytest

from orbical import calibration

Rng = np.random.Generator
Draw = Callable[[Rng, str, int | None], str]
"""Draws the data of a world, of its own size or of another, and returns the caution."""


def pair_of(rng: Rng, world: str, size: int | None) -> tuple[np.ndarray, np.ndarray]:
    doubt, wrong = worlds.doubts(rng, world, (size or worlds.size_of(world),))
    return 1 - doubt, rng.random(doubt.shape) >= wrong


def of_pair(measure: str, rng: Rng, world: str, size: int | None) -> str:
    return calibration.interval(measure, *pair_of(rng, world, size), resamples=20).caution


def of_curve(rng: Rng, world: str, size: int | None) -> str:
    return calibration.reliability_curve(*pair_of(rng, world, size), resamples=20).caution


def of_refinement(rng: Rng, world: str, size: int | None) -> str:
    sure, right = pair_of(rng, world, size)
    given = {"probs": np.stack([sure, 1 - sure], 1), "labels": 1 - right.astype(int)}
    return calibration.brier_part_intervals(**given, resamples=20)["brier_refinement"].caution


def of_regression(measure: str, rng: Rng, world: str, size: int | None) -> str:
    given = worlds.gaussians(rng, world, (size or worlds.size_of(world),))
    return calibration.regression_table(*given, resamples=20, only=[measure])[measure].caution


def of_bleed(rng: Rng, world: str, size: int | None) -> str:
    mean, variance, target = worlds.gaussians(rng, world, (size or worlds.size_of(world),))
    table = calibration.regression_table(
        mean, variance, target, aleatoric=variance, resamples=20, only=["aleatoric_bleed"]
    )
    return table["aleatoric_bleed"].caution


def terms_of(rng: Rng, world: str, size: int | None) -> np.ndarray:
    return worlds.terms_of(world, rng, 1)[0][0] if size is None else rng.beta(4, 2, size)


def of_bootstrap(rng: Rng, world: str, size: int | None) -> str:
    return calibration.bootstrap_interval(terms_of(rng, world, size), resamples=20).caution


def of_mean(rng: Rng, world: str, size: int | None) -> str:
    terms = terms_of(rng, world, size)
    return calibration.mean_interval(terms, terms, np.full_like(terms, terms.var())).caution


def of_sums(rng: Rng, world: str, size: int | None) -> str:
    terms = terms_of(rng, world, size)
    sums = map(np.array, (len(terms), terms.sum(), np.square(terms).sum()))
    return calibration.share_interval_of_sums(*sums).caution


def of_two(measure: str, rng: Rng, world: str, size: int | None) -> str:
    models = worlds.TWO_MODELS[world](rng, size or worlds.size_of(world))
    return calibration.compare(measure, *models, resamples=100).caution


def of_two_regressors(measure: str, rng: Rng, world: str, size: int | None) -> str:
    size = size or worlds.size_of(world)
    mean, variance, target = worlds.gaussians(rng, "calibrated", (size,))
    noise = rng.uniform(0.98, 1.02, size)
    opposite = (1.3, worlds.opposite_factor(measure))
    factors = (noise, 1 / noise) if world == "calibrated" else opposite
    models = [(mean, variance * times) for times in factors]
    return calibration.regression_compare(measure, *models, target, resamples=100).caution


RARE, FEW = ("rare failures",), ("few samples",)
OUTSIDE: dict[str, tuple[Draw, tuple[str, ...]]] = {
    **{
        name: (partial(of_pair, name), RARE)
        for name in ("ece", "ece_l2", "ece_debiased", "mmce_squared")
    },
    "mmce": (partial(of_pair, "mmce"), ("sharp", *RARE)),
    "reliability_curve": (of_curve, ("sharp", *RARE)),
    "brier_refinement": (of_refinement, (*RARE, *FEW)),
    **{
        name: (partial(of_regression, name), RARE)
        for name in ("squared_error", "gaussian_nll", "gence")
    },
    "regression_esd": (partial(of_regression, "regression_esd"), RARE),
    "regression_esd_normalized": (partial(of_regression, "regression_esd_normalized"), RARE),
    "gence_sq": (partial(of_regression, "gence_sq"), (*RARE, "t8 noise")),
    "gence_sq_fiber": (partial(of_regression, "gence_sq_fiber"), FEW),
    "aleatoric_bleed": (of_bleed, FEW),
    "mean_interval": (of_mean, RARE),
    "bootstrap_interval": (of_bootstrap, (*RARE, *FEW)),
    "share_interval_of_sums": (of_sums, FEW),
    "compare ece": (partial(of_two, "ece"), RARE),
    "compare ks": (partial(of_two, "ks"), ("overconfident", "underconfident", "many classes")),
    "compare mmce": (partial(of_two, "mmce"), ("overconfident", "many classes")),
    **{
        f"compare {name}": (partial(of_two_regressors, name), ("underconfident",))
        for name in ("ence", "quantile_calibration")
    },
    "compare mahalanobis_calibration": (
        partial(of_two_regressors, "mahalanobis_calibration"),
        ("underconfident", *FEW),
    ),
}
"""How each limit of use is drawn, and the worlds in which coverage or size is out of range."""


def share_with_caution(draw: Draw, world: str, size: int | None, draws: int = 200) -> float:
    rng = np.random.default_rng(7)
    return float(np.mean([draw(rng, world, size) != "" for _ in range(draws)]))


@pytest.mark.parametrize(
    ("name", "world"), [(name, world) for name, (_, those) in OUTSIDE.items() for world in those]
)
def test_a_caution_stands_where_coverage_is_out_of_range(name: str, world: str) -> None:
    assert share_with_caution(OUTSIDE[name][0], world, None) >= 0.8


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_usual_calibrated_model_has_no_caution(name: str) -> None:
    assert share_with_caution(OUTSIDE[name][0], "calibrated", 500) <= 0.1


def test_every_result_prints_its_caution() -> None:
    right = np.arange(200) >= 2
    found = calibration.interval("ece", np.full(200, 0.99), right, resamples=20)
    expected = "2 wrong (or correct) predictions, fewer than 6: the interval may be too short"
    assert found.caution == expected
    model = (np.full(200, 0.99), right)
    results = [
        found,
        calibration.compare("ece", model, model, resamples=20),
        calibration.reliability_curve(*model, resamples=20),
        calibration.bootstrap_interval(right[:10].astype(float), resamples=20),
        calibration.share_interval_of_sums(*map(np.array, (5, 3.0, 2.5))),
    ]
    for result in results:
        assert result.caution
        assert result.caution in repr(result)
        assert result.caution in str(result)
