"""Intervals cover what they should, and the fast resampling is the plain one."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from interval_worlds import Accuracy, calibrated, drawn, regression_world, shifted, spotted, waved
from scipy.stats import binomtest

from orbical.calibration import (
    MEASURES,
    brier_part_intervals,
    compare,
    ece,
    esd,
    ks,
    list_measures,
    mean_interval,
    mmce,
    share_interval,
    skce,
    smooth_ece,
)
from orbical.calibration.intervals import cells, measure_intervals
from orbical.calibration.intervals.measure_intervals import (
    interval,
    oracle_bound,
    regression_interval,
)
from orbical.calibration.measure_tables import MeasureTableSettings, TableOutputs
from orbical.calibration.measures import variance_errors
from orbical.errors import InputError

# Parameters that give a population ECE (15 bins, confidence uniform on [.5, 1]) of .03 and .1.
WORLDS: dict[str, Accuracy] = {
    "calibrated": calibrated,
    "shift .03": shifted(0.03),
    "shift .1": shifted(0.1),
    "wave .03": waved(0.0525),
    "wave .1": waved(0.179),
    "spot .03": spotted(0.225),
}

ERRORS = [one.name for one in list_measures("pair") if one.interval == "consistency"]


@cache
def population(measure: str, accuracy: Accuracy) -> float:
    """The value with infinitely many samples: accuracies take the place of labels."""
    z = 0.5 + (np.arange(20_000) + 0.5) / 40_000
    functions = {"ece": ece, "ks": ks, "esd": esd, "mmce": mmce, "skce": skce}
    functions["smooth_ece"] = smooth_ece
    return float(functions[measure](z, accuracy(z)))


def coverage(measure: str, world: str, size: int, worlds: int, resamples: int = 200) -> float:
    accuracy = WORLDS[world]
    found = interval(measure, *drawn(accuracy, worlds, size, seed=size), resamples=resamples)
    truth = max(population(measure, accuracy), 0.0)
    if world == "calibrated":
        truth = 0.0
    inside = (found.low <= truth + 1e-9) & (found.high >= truth)
    return float(inside.double().mean())


@pytest.mark.parametrize(("world", "truth"), [("shift .03", 0.03), ("wave .1", 0.1)])
def test_the_worlds_have_the_errors_they_are_named_after(world: str, truth: float) -> None:
    assert population("ece", WORLDS[world]) == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [200, 1000])
def test_the_interval_of_ece_covers(world: str, size: int) -> None:
    assert coverage("ece", world, size, worlds=200) >= 0.9


@pytest.mark.parametrize("measure", ["ks", "esd", "mmce", "skce"])
@pytest.mark.parametrize("world", ["calibrated", "shift .1"])
def test_intervals_of_bin_free_measures_cover(measure: str, world: str) -> None:
    assert coverage(measure, world, 200, worlds=100) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["ece", "ks", "esd", "smooth_ece", "mmce", "skce"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [200, 1000])
def test_intervals_cover_in_many_worlds(measure: str, world: str, size: int) -> None:
    worlds = {"ece": 2000, "smooth_ece": 100}.get(measure, 400)
    assert coverage(measure, world, size, worlds=worlds) >= 0.9


def test_the_percentile_bootstrap_misses_a_calibrated_model() -> None:
    confidence, correct = drawn(calibrated, 100, 1000, seed=1)
    index, count = cells.bin_cell_index(torch.from_numpy(confidence), 15, "width")
    gathered = cells.tally(torch.from_numpy(confidence), torch.from_numpy(correct), index, count)
    drawn_again = gathered.resampled(200, np.random.default_rng(0))
    again = torch.cat([cells.binned_error(part, "l1") for part in drawn_again])
    assert float((again.quantile(0.025, dim=0) <= 0).double().mean()) == 0.0


@pytest.mark.parametrize("name", [name for name in ERRORS if MEASURES[name].bind().index])
def test_cells_of_single_samples_give_the_measure_itself(name: str) -> None:
    confidence, correct = drawn(shifted(0.1), 1, 150, seed=2)
    confidence[0, :20] = confidence[0, 20:40]  # ties
    z, y = torch.from_numpy(confidence), torch.from_numpy(correct)
    measure = MEASURES[name].bind()
    index, count = measure.index(z)
    found = measure.cell_value(cells.tally(z, y, index, count).observed())
    # One is smoothed on a coarser grid; the other's cells are bins, of several confidences each.
    tolerance = {"smooth_ece": 2e-3, "ece_debiased": 1e-4}.get(name, 1e-12)
    assert found[0].item() == pytest.approx(measure.value(z, y)[0].item(), abs=tolerance)


@pytest.mark.parametrize("options", [{}, {"norm": "l2"}, {"binning": "mass"}])
def test_resampling_cells_is_resampling_samples(options: dict[str, str]) -> None:
    confidence, correct = drawn(shifted(0.1), 1, 2000, seed=3)
    fast = interval("ece", confidence[0], correct[0], resamples=2000, **options)
    plain = interval(ece, confidence[0], correct[0], resamples=600, **options)
    assert fast.value == plain.value
    for end in ("low", "high", "calibrated", "calibrated_low", "calibrated_high"):
        assert abs(getattr(fast, end) - getattr(plain, end)) < 0.004, end


def test_the_calibrated_value_is_what_calibrated_models_show_on_average() -> None:
    confidence, correct = drawn(calibrated, 400, 1000, seed=4)
    shown = ece(confidence, correct).mean()
    found = interval("ece", confidence[0], correct[0])
    assert float(found.calibrated) == pytest.approx(float(shown), rel=0.05)
    assert float(found.excess) == pytest.approx(float(found.value - found.calibrated))


def test_the_calibrated_value_of_unbiased_measures_is_zero() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 1000, seed=5)
    for name in ("esd", "skce"):
        found = interval(name, confidence[0], correct[0], resamples=4000)
        spread = float(found.calibrated_high - found.calibrated_low)
        assert abs(float(found.calibrated)) < 0.05 * spread
        assert found.calibrated_low < 0 < found.calibrated_high


def test_leading_axes_are_answered_row_by_row() -> None:
    confidence, correct = drawn(shifted(0.1), 6, 300, seed=6)
    whole = interval("ks", confidence.reshape(2, 3, 300), correct.reshape(2, 3, 300))
    assert whole.low.shape == whole.calibrated_high.shape == (2, 3)
    alone = interval("ks", confidence[4], correct[4])
    assert whole.value[1, 1] == alone.value
    assert abs(whole.high[1, 1] - alone.high) < 0.01


@pytest.mark.parametrize("size", [5, 300, 2000])
def test_rows_drawn_apart_have_the_intervals_that_they_have_alone(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [torch.from_numpy(part) for part in drawn(shifted(0.1), 7, size, seed=6)]
    monkeypatch.setattr(measure_intervals, "BLOCK", 2 * 100 * 15)  # two rows at a time
    together = interval("ece", *pair, resamples=100)
    for row, (confidence, correct) in enumerate(zip(*pair, strict=True)):
        alone = interval("ece", confidence, correct, resamples=100)
        for end in ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high"):
            expected = float(getattr(alone, end))
            assert float(getattr(together, end)[row]) == pytest.approx(expected, rel=1e-12), end


def test_the_same_seed_gives_the_same_interval() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 300, seed=7)
    first, second, other = (interval("ece", confidence[0], correct[0], seed=s) for s in (1, 1, 2))
    assert first == second
    assert first.high != other.high


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("size", [3, 4])
def test_a_few_samples_give_a_wide_interval_and_no_nan(name: str, size: int) -> None:
    found = interval(name, np.linspace(0.6, 0.9, size), np.arange(size) % 2, resamples=100)
    for end in ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high"):
        assert torch.isfinite(getattr(found, end)), end
    assert found.low == pytest.approx(min(float(found.value), 0), abs=1e-12)


def test_half_precision_and_integer_labels_are_taken() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 300, seed=8)
    half = interval("ece", torch.from_numpy(confidence[0]).half(), correct[0].astype(int))
    assert half.low <= half.value <= half.high


def test_levels_of_coverage_are_an_option() -> None:
    given = [part[0] for part in regression_world(1, 300, 1.44, seed=11)]
    for name in ("quantile_calibration", "mahalanobis_calibration"):
        few = regression_interval(name, *given, resamples=50, levels=4)
        assert few.value == getattr(variance_errors, name)(*given, levels=4).error
    with pytest.raises(InputError, match="levels: expected an integer"):
        regression_interval("quantile_calibration", *given, levels=0)


def binary_world(accuracy: Accuracy, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    confidence, correct = drawn(accuracy, 1, size, seed)
    return np.stack([confidence[0], 1 - confidence[0]], 1), (~correct[0]).astype(int)


def coverage_of_brier_parts(by: float, worlds: int, resamples: int) -> dict[str, float]:
    """With accuracy z - by: calibration 2 by^2, refinement 2 E[(z - by)(1 - z + by)]."""
    z = 0.5 + (np.arange(10_000) + 0.5) / 20_000
    truth = {
        "brier_calibration": 2 * by**2,
        "brier_refinement": 2 * float(np.mean((z - by) * (1 - z + by))),
    }
    inside: dict[str, list[bool]] = {name: [] for name in truth}
    for seed in range(worlds):
        probs, labels = binary_world(shifted(by), 500, seed)
        found = brier_part_intervals(probs=probs, labels=labels, resamples=resamples, seed=seed)
        for name, expected in truth.items():
            inside[name].append(bool(found[name].low <= expected <= found[name].high))
    return {name: float(np.mean(covered)) for name, covered in inside.items()}


@pytest.mark.parametrize("by", [0.0, 0.1])
def test_the_intervals_of_the_parts_of_brier_cover(by: float) -> None:
    assert min(coverage_of_brier_parts(by, worlds=50, resamples=40).values()) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("by", [0.0, 0.1])
def test_the_intervals_of_the_parts_of_brier_cover_in_many_worlds(by: float) -> None:
    found = coverage_of_brier_parts(by, worlds=400, resamples=200)
    print(f"accuracy below confidence by {by}: {found}")
    assert min(found.values()) >= 0.94


@pytest.mark.parametrize("measure", ["ece", "ks"])
def test_errors_of_sharp_overconfident_models_are_covered(measure: str) -> None:
    rng = np.random.default_rng(5)
    worlds = 400 if measure == "ece" else 100
    doubt = rng.beta(1, 60, (worlds, 200))
    found = interval(measure, 1 - doubt, rng.random((worlds, 200)) > 2.5 * doubt, resamples=100)
    truth = 1.5 / 61
    assert float(((found.low <= truth) & (truth <= found.high)).double().mean()) >= 0.9


@pytest.mark.parametrize("score", ["nll", "brier"])
@pytest.mark.parametrize(("sharpness", "excess"), [(30, 1.0), (60, 2.5)])
def test_scores_of_sharp_models_are_covered_by_few_samples(
    score: str, sharpness: int, excess: float
) -> None:
    """Errors are `excess` times as frequent as their probability: calibrated, or overconfident."""
    rng = np.random.default_rng(4)
    probability = torch.from_numpy(rng.beta(1, sharpness, (400, 50)))
    wrong = torch.from_numpy(rng.random((400, 50))) < excess * probability
    outputs = TableOutputs(torch.stack([1 - probability, probability], -1), None, wrong.long())
    found = MEASURES[score].table_interval(outputs, MeasureTableSettings())
    many = torch.from_numpy(rng.beta(1, sharpness, 200_000))
    right, other = (
        (-part.log() if score == "nll" else 2 * (1 - part) ** 2) for part in (1 - many, many)
    )
    truth = (right + (excess * many).clamp(max=1) * (other - right)).mean()
    assert float(((found.low <= truth) & (truth <= found.high)).double().mean()) >= 0.94
    assert float((found.high - found.low).mean()) < 5 * float(truth)


def test_means_of_many_terms_have_nearly_normal_intervals() -> None:
    rng = np.random.default_rng(14)
    p = rng.uniform(0.5, 1, 2000)
    hit = (rng.random(2000) < p).astype(float)
    found = mean_interval(hit, p, p * (1 - p))
    assert float(found.value - found.low) == pytest.approx(1.96 * hit.std() / 2000**0.5, rel=0.06)
    assert float(found.high - found.value) == pytest.approx(1.96 * hit.std() / 2000**0.5, rel=0.06)
    assert float(found.calibrated) == pytest.approx(p.mean())


def test_the_oracle_bound_is_hoeffdings() -> None:
    epsilon = oracle_bound(500, level=0.9)
    assert 2 * math.exp(-2 * 500 * epsilon**2) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"measure": "ecee"}, "measure"),
        ({"level": 1.0}, "level"),
        ({"resamples": 3}, "resamples"),
        ({"resamples": True}, "resamples"),
        ({"correct": [0.5, 0.2, 1.0]}, "correct"),
        ({"confidence": [0.5, float("nan"), 1.0]}, "confidence"),
        ({"bins": 0}, "bins"),
        ({"norm": "l3"}, "norm"),
        ({"binning": "equal"}, "binning"),
        ({"color": "red"}, "options"),
        ({"measure": "mmce", "phi": -1.0}, "phi"),
    ],
)
def test_bad_input_is_named(given: dict[str, object], named: str) -> None:
    arguments: dict[str, object] = {
        "measure": "ece",
        "confidence": [0.5, 0.6, 0.7],
        "correct": [1, 0, 1],
    }
    with pytest.raises(InputError, match=f"^{named}"):
        interval(**{**arguments, **given})


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.99])
def test_the_interval_of_an_accuracy_covers_and_stays_in_its_range(truth: float) -> None:
    correct = np.random.default_rng(3).random((4000, 60)) < truth
    found = share_interval(correct, np.full((4000, 60), 0.8))
    assert float(found.low.min()) >= 0
    assert float(found.high.max()) <= 1
    covered = ((found.low <= truth) & (truth <= found.high)).double().mean()
    assert float(covered) > 0.93
    assert bool((found.low < found.high).all())  # also where every sample is correct
    expected = binomtest(int(correct[0].sum()), 60).proportion_ci(method="exact")
    assert float(found.low[0]) == pytest.approx(expected.low)
    assert float(found.high[0]) == pytest.approx(expected.high)


def test_no_interval_of_an_error_reaches_beyond_one() -> None:
    for name in ERRORS:
        found = interval(name, [0.99, 0.98, 0.97, 0.96], [False] * 4, resamples=50)
        assert float(found.high) <= 1


@pytest.mark.parametrize("measure", ["ece", "ks", "smooth_ece", "mmce", "sb_ece"])
def test_answers_that_are_all_right_do_not_prove_an_accuracy_of_one(measure):
    allowed = 1 - 0.025 ** (1 / 50)  # Clopper and Pearson, no error in 50
    found = interval(measure, torch.ones(2, 50), torch.ones(2, 50))
    assert found.value.tolist() == found.low.tolist() == found.calibrated.tolist() == [0, 0]
    assert found.high.tolist() == pytest.approx([allowed] * 2, abs=1e-6)


def test_intervals_and_comparisons_print_as_one_line():
    confidence, correct = torch.full((8,), 0.75), torch.arange(8) > 1
    found = interval("ece", confidence, correct)
    assert repr(found).startswith("Interval(0 [0, ")
    assert "tensor" not in repr(interval("ece", confidence.expand(2, 8), correct))
    same = compare("ece", (confidence, correct), (confidence, correct))
    assert repr(same).startswith("Comparison(0 [0, 0], p = 1")


@pytest.mark.parametrize("name", ERRORS)
def test_no_error_is_detected_in_a_calibrated_model_that_is_nearly_certain(name):
    generator = torch.Generator().manual_seed(0)
    shape = (60, 30)
    confidence = 1 - 4e-4 * torch.rand(shape, generator=generator, dtype=torch.float64)
    correct = torch.rand(shape, generator=generator, dtype=torch.float64) < confidence
    assert correct.all(1).float().mean() > 0.95  # so this is what chance gives
    found = interval(name, confidence, correct, resamples=40)
    assert (found.low > 0).float().mean() < 0.06


@pytest.mark.parametrize(
    ("size", "accuracy", "least"), [(30, 0.97, 0.9), (100, 0.99, 0.95), (100, 0.95, 0.83)]
)
def test_intervals_of_few_errors_cover_nearly_as_often_as_they_say(size, accuracy, least):
    generator = torch.Generator().manual_seed(0)
    confidence = torch.full((500, size), 0.98, dtype=torch.float64)
    correct = torch.rand(500, size, generator=generator) < accuracy
    found = interval("ece", confidence, correct, resamples=200)
    true = abs(accuracy - 0.98)
    covered = (found.low <= true + 1e-9) & (found.high >= true - 1e-9)
    assert covered.double().mean() > least
