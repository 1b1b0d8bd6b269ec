"""No true bound is ever violated, the sharp end is attained, and what is false is refuted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from finite_worlds import brute_ece, brute_fibers, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orbical.bounds import (
    OrbitTable,
    classification,
    fibers_from_errors,
    forced_overconfidence,
    worst_predictions,
)
from orbical.errors import InputError

ROUNDING = 1e-9
KEYS = (
    *("accuracy_ceiling", "accuracy_floor", "ece", "prop1", "prop2", "thm4_fiberwise", "thm4"),
    *("cor1", "cor2", "fiber_free", "thm5", "prop4", "prop5", "prop6", "forced_ece"),
    *("least_ece_lower",),
    *("least_ece_upper", "sharp_upper"),
    *("broken_symmetry", "broken_at_least", "any_accuracy", "any_accuracy_sharp", "any_ece"),
)
BINS = st.sampled_from([None, 1, 4, 15])


def check_no_bound_is_violated(table: OrbitTable, bins: int | None) -> None:
    bounds = classification(table, bins=bins)
    assert tuple(bounds) == KEYS
    truth = {"accuracy": table.accuracy, "ece": brute_ece(table, bins)}
    for name, bound in bounds.items():
        assert bound.applies == (bound.value is not None), name
        assert bound.applies or bound.reason, name
        if not bound.applies or bound.quantity not in truth:
            continue
        actual = truth[bound.quantity]
        if bound.kind == "upper":
            assert actual <= bound.value + ROUNDING, name
        elif bound.kind == "lower":
            assert actual >= bound.value - ROUNDING, name
        else:
            assert actual == pytest.approx(bound.value, abs=ROUNDING), name


def check_order_of_strength(table: OrbitTable, bins: int | None) -> None:
    """The sharp interval is the tightest, and each weakening is weaker than what it weakens."""
    bounds = classification(table, bins=bins)

    def value(name: str) -> float:
        return float(bounds[name])

    for name in ("thm5", "prop4"):
        assert value(name) <= value("forced_ece") + ROUNDING, name
    assert value("forced_ece") <= value("least_ece_lower") + ROUNDING
    assert value("least_ece_lower") <= value("least_ece_upper") + ROUNDING
    assert value("sharp_upper") <= value("fiber_free") + ROUNDING
    assert value("thm4_fiberwise") <= value("cor1") + ROUNDING
    assert value("cor1") <= value("prop1") + ROUNDING
    if bounds["thm4"].applies:
        assert value("thm4_fiberwise") <= value("thm4") + ROUNDING
    if bounds["cor2"].applies:
        assert value("fiber_free") <= value("cor2") + ROUNDING
        assert value("fiber_free") == pytest.approx(value("prop1") - table.dissent.sum())


def check_sharp_upper_is_attained(table: OrbitTable, bins: int | None) -> None:
    worst = table.with_predictions(table.confidence, worst_predictions(table, bins=bins))
    upper = float(classification(table, bins=bins)["sharp_upper"])
    assert brute_ece(worst, bins) == pytest.approx(upper, abs=ROUNDING)


def check_interval_against_every_classifier(table: OrbitTable, bins: int | None) -> None:
    """The interval is the range of every invariant labeling, by brute force."""
    fibers = brute_fibers(table, bins)
    gaps = [[abs(a - f.confidence) for a in f.accuracies] for f in fibers]
    greatest = sum(f.mass * max(gap) for f, gap in zip(fibers, gaps, strict=True))
    least = sum(f.mass * min(gap) for f, gap in zip(fibers, gaps, strict=True))
    bounds = classification(table, bins=bins)
    assert float(bounds["sharp_upper"]) == pytest.approx(greatest, abs=ROUNDING)
    assert float(bounds["forced_ece"]) <= least + ROUNDING
    assert float(bounds["least_ece_lower"]) <= least + ROUNDING
    assert least <= float(bounds["least_ece_upper"]) + ROUNDING
    held = [[o for o in f.members if table.orbit_mass[o] > 0] for f in fibers]
    if all(len(members) == 1 for members in held):
        assert float(bounds["least_ece_lower"]) == pytest.approx(least, abs=ROUNDING)
        assert "attained" in bounds["least_ece_lower"].reason
    slack = sum(max(np.ptp(table.mass[o]) for o in members) for members in held) / 2
    assert float(bounds["least_ece_upper"]) <= float(bounds["forced_ece"]) + slack + ROUNDING


CHECKS = (
    check_no_bound_is_violated,
    check_order_of_strength,
    check_sharp_upper_is_attained,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(table=tables(), bins=BINS)
def test_bounds_hold_on_random_finite_worlds(table: OrbitTable, bins: int | None) -> None:
    for check in CHECKS:
        check(table, bins)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), bins=BINS)
def test_bounds_hold_on_ten_thousand_random_worlds(table: OrbitTable, bins: int | None) -> None:
    for check in CHECKS:
        check(table, bins)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(table=tables(labels=st.integers(2, 3)), bins=BINS)
def test_the_interval_is_the_range_over_every_invariant_classifier(
    table: OrbitTable, bins: int | None
) -> None:
    check_interval_against_every_classifier(table, bins)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(table=tables(), bins=BINS)
def test_given_fiber_errors_give_the_same_bounds_as_the_orbits_they_come_from(
    table: OrbitTable, bins: int | None
) -> None:
    fibers = brute_fibers(table, bins)
    given_errors = fibers_from_errors(
        mass=[f.mass for f in fibers],
        confidence=np.clip([f.confidence for f in fibers], 0, 1),
        least_error=[1 - max(f.accuracies) for f in fibers],
        greatest_error=[1 - min(f.accuracies) for f in fibers],
        accuracy=[f.accuracy for f in fibers],
    )
    ours, theirs = classification(table, bins=bins), classification(given_errors)
    same = ("accuracy_ceiling", "accuracy_floor", "ece", "prop1", "cor1", "thm5")
    for name in (*same, "forced_ece", "sharp_upper"):
        assert float(ours[name]) == pytest.approx(float(theirs[name]), abs=ROUNDING), name
    for name in ("thm4", "cor2", "fiber_free", "prop4"):
        assert not theirs[name].applies
        assert "orbits" in theirs[name].reason


def test_ece_of_the_table_is_the_ece_of_the_samples_it_counts() -> None:
    from orbical.calibration import ece

    rng = np.random.default_rng(0)
    orbit, label = rng.integers(0, 40, 500), rng.integers(0, 3, 500)
    confidence, predicted = rng.random(40)[orbit], rng.integers(0, 3, 40)[orbit]
    table = OrbitTable.from_labels(orbit, label, confidence=confidence, predicted=predicted)
    for bins in (5, 15, 100):
        expected = float(ece(confidence, predicted == label, bins=bins))
        assert float(classification(table, bins=bins)["ece"]) == pytest.approx(expected, abs=1e-12)


def test_printed_theorem_4_is_withheld_where_it_is_false() -> None:
    table = OrbitTable([[0.5, 0, 0], [0.25, 0.25, 0]], confidence=[0, 1], predicted=[0, 2])
    bounds = classification(table)
    assert float(bounds["ece"]) == 1
    half_right = 0.5  # the fiber at confidence 0 is right, the other one wrong
    printed = float(bounds["prop1"]) - 0.25 * half_right
    assert printed == 0.875 < float(bounds["ece"])
    assert bounds["thm4"].value is None
    assert "no incorrect orbit" in bounds["thm4"].reason
    assert float(bounds["thm4_fiberwise"]) == 1


def test_printed_theorem_4_applies_with_an_incorrect_orbit_on_each_fiber() -> None:
    table = OrbitTable([[0.3, 0.2], [0.4, 0.1]], confidence=[0.6, 0.7], predicted=[0, 0])
    bounds = classification(table)
    assert float(bounds["thm4"]) == pytest.approx(0.65 - 0.1)
    assert float(bounds["thm4_fiberwise"]) == pytest.approx(0.65 - 0.3)
    assert float(bounds["cor1"]) == pytest.approx(0.65 - 0.2)


def test_theorem_4_without_an_incorrect_orbit_or_a_half_right_fiber_says_so() -> None:
    clean = OrbitTable([[0.5, 0], [0.5, 0]], confidence=[0.5, 0.7], predicted=[0, 0])
    assert "no orbit is incorrect" in classification(clean)["thm4"].reason
    wrong = OrbitTable([[0.3, 0.7]], confidence=[0.5], predicted=[0])
    bound = classification(wrong)["thm4_fiberwise"]
    assert float(bound) == 0.5
    assert "half right" in bound.reason


def test_corollary_1_ignores_fibers_without_mass() -> None:
    table = OrbitTable([[0.6, 0.4], [0, 0]], confidence=[0.5, 0.9], predicted=[0, 0])
    assert float(classification(table)["cor1"]) == pytest.approx(0.1)


def test_corollary_2_needs_no_accuracy_of_one_half() -> None:
    table = OrbitTable([[0.3, 0.2], [0.3, 0.2]], confidence=[1, 1], predicted=[1, 1])
    assert table.accuracy < 0.5
    bounds = classification(table)
    assert float(bounds["cor2"]) == pytest.approx(0.6)
    assert float(bounds["ece"]) == pytest.approx(0.6)


def test_theorem_5_is_vacuous_for_softmax_confidences_and_not_below() -> None:
    mass = np.array([[0.2, 0.3], [0.25, 0.25]])
    softmax = classification(OrbitTable(mass, confidence=[0.5, 0.9]))["thm5"]
    assert softmax.value == 0
    assert softmax.vacuous
    assert "1/2" in softmax.reason
    shy = classification(OrbitTable(mass, confidence=[0.1, 0.9]))["thm5"]
    assert float(shy) == pytest.approx(0.5 * (0.4 - 0.1))
    assert not shy.vacuous


@settings(max_examples=80, deadline=None, derandomize=True)
@given(table=tables())
def test_proposition_4_is_vacuous_with_two_or_more_orbits(table: OrbitTable) -> None:
    bound = classification(table)["prop4"]
    held = table.orbit_mass > 0
    floor = 1 - table.minority_dissent.sum() / table.orbit_mass[held].min()
    if held.sum() > 1:
        assert floor <= ROUNDING
        assert bound.value == 0
        assert bound.vacuous
    else:
        p = float(table.confidence[held][0])
        assert float(bound) == pytest.approx(max(0, floor - p), abs=ROUNDING)


def test_an_orbit_that_omits_a_label_has_an_accuracy_floor_of_zero() -> None:
    table = OrbitTable([[0.5, 0.5, 0.0]])
    assert table.minority_dissent[0] == 1
    assert table.accuracy_floor == 0


def test_the_accuracy_floor_of_many_orbits_is_free_of_rounding() -> None:
    one_label_each = np.eye(7)[np.arange(49) % 7] / 49
    assert OrbitTable(one_label_each).accuracy_floor == 0


def test_proposition_2_is_false_so_it_never_applies() -> None:
    """X = [.98, 1], h_P(x) = x is (1, 1)-bi-Lipschitz, always wrong: ECE .99 > 1/2 + K2/4 = .75."""
    x = np.linspace(0.98, 1, 2001)
    mass = np.zeros((len(x), 2))
    mass[:, 0] = 1 / len(x)
    bounds = classification(OrbitTable(mass, confidence=x, predicted=np.ones(len(x), int)))
    proposition_2 = 1 / 2 + 1 / 4
    assert float(bounds["ece"]) == pytest.approx(0.99)
    assert float(bounds["ece"]) > proposition_2
    assert not bounds["prop2"].applies


def test_proposition_5_is_false_so_it_never_applies() -> None:
    """Example 5's world, the 24 orders of four numbers, all on one orbit, three in four labeled 1.

    `h_Y = 1` with `h_P = 3/4 + c (sum x - sum x0)` is invariant, its gradient c (1, 1, 1, 1)
    vanishes nowhere, and it is perfectly calibrated: no positive number bounds its ECE from below.
    """
    start = np.array([0.1, 0.4, 0.7, 1.3])
    points = np.array([*itertools.permutations(start)])
    label = np.arange(24) % 4 > 0
    steepness = 0.1
    confidence = 0.75 + steepness * (points.sum(1) - start.sum())
    orbit = OrbitTable.from_labels(
        np.zeros(24, int), label, confidence=confidence.round(12), predicted=np.ones(24, int)
    )
    gradient = np.full(4, steepness)
    assert np.linalg.norm(gradient) > 0
    bounds = classification(orbit)
    assert float(bounds["ece"]) == pytest.approx(0, abs=1e-12)
    assert float(bounds["forced_ece"]) == 0
    floor = orbit.accuracy_floor
    lipschitz = np.linalg.norm(gradient)
    assert floor**2 / (2 * lipschitz) > float(bounds["ece"])
    assert not bounds["prop5"].applies


def test_rounding_is_no_information() -> None:
    """1/3 + 1/3 + 1/3 falls short of 1 by rounding, and .1 + .2 exceeds .3."""
    third = OrbitTable(np.full((3, 2), 1 / 6), confidence=[0.5 + 5.6e-17] * 3, predicted=[0, 0, 1])
    almost = OrbitTable([[0.1 + 0.2, 0.0], [0.7, 0.0]], confidence=[1 - 1e-16, 1], predicted=[0, 0])
    for table in (third, almost):
        for name, bound in classification(table).items():
            if bound.applies and bound.kind == "lower":
                assert bound.value == 0 or bound.value > 1e-12, name
                assert bound.vacuous == (bound.value == 0), name
            if bound.applies and bound.kind == "upper" and bound.value >= 1 - 1e-12:
                assert bound.vacuous, name


def test_singleton_fibers_do_not_bound_a_binned_ece() -> None:
    """Why the ECE and the interval must use the same bins."""
    table = OrbitTable([[0.5, 0.0], [0.0, 0.5]], confidence=[0.02, 0.98], predicted=[1, 1])
    binned = float(classification(table, bins=1)["ece"])
    assert binned == 0
    mixed = OrbitTable([[0.25, 0.25], [0.5, 0.0]], confidence=[0.9, 0.6], predicted=[0, 0])
    assert float(classification(mixed, bins=1)["ece"]) < float(classification(mixed)["forced_ece"])


def test_without_confidences_only_the_accuracy_is_bounded() -> None:
    bounds = classification(OrbitTable([[0.4, 0.1], [0.5, 0.0]]))
    assert float(bounds["accuracy_ceiling"]) == pytest.approx(0.9)
    for name, bound in bounds.items():
        if bound.quantity == "ece":
            assert not bound.applies, name
            assert "confidence" in bound.reason


def test_without_predictions_the_interval_still_stands() -> None:
    bounds = classification(OrbitTable([[0.4, 0.1], [0.5, 0.0]], confidence=[0.9, 0.9]))
    assert not bounds["ece"].applies
    assert not bounds["thm4_fiberwise"].applies
    assert bounds["sharp_upper"].applies
    assert bounds["fiber_free"].applies


def test_proposition_6_is_the_hoeffding_deviation_of_an_oracle() -> None:
    rng = np.random.default_rng(1)
    mass = rng.dirichlet(np.ones(12)).reshape(4, 3)
    table = OrbitTable(mass, rng.random(4), rng.integers(0, 3, 4), samples=200)
    deviation = float(classification(table, level=0.9)["prop6"])
    assert 2 * np.exp(-2 * 200 * deviation**2) == pytest.approx(0.1)
    fibers = table.fibers()
    error = np.abs(fibers.accuracy - fibers.confidence)
    draws = rng.choice(len(fibers), p=fibers.mass / fibers.mass.sum(), size=(4000, 200))
    ece = float(classification(table)["ece"])
    assert (np.abs(error[draws].mean(1) - ece) > deviation).mean() <= 0.1


def test_proposition_6_needs_the_number_of_samples() -> None:
    bound = classification(OrbitTable([[0.5, 0.5]], [0.5], [0]))["prop6"]
    assert not bound.applies
    assert "samples" in bound.reason


@settings(max_examples=80, deadline=None, derandomize=True)
@given(table=tables(), level=st.floats(0, 1))
def test_forced_overconfidence_is_forced(table: OrbitTable, level: float) -> None:
    mean, orbitwise = (float(curve[0]) for curve in forced_overconfidence(table, np.array([level])))
    best = table.mass.max(1) / np.where(table.orbit_mass > 0, table.orbit_mass, 1)
    assert orbitwise == pytest.approx(
        float((table.orbit_mass * np.maximum(0, level - best)).sum()), abs=ROUNDING
    )
    assert mean <= orbitwise + ROUNDING
    shift = level - float(table.orbit_mass @ table.confidence)
    confidence = np.clip(table.confidence + shift, 0, 1)
    model = table.with_predictions(confidence, table.predicted)
    achieved = float(forced_overconfidence(table, np.array([table.orbit_mass @ confidence]))[0][0])
    assert brute_ece(model) >= achieved - ROUNDING


def root_esd_and_ks(table: OrbitTable) -> tuple[float, float]:
    """The population values of sqrt(ESD) and KS, from the fibers of a table."""
    fibers = table.fibers()
    order = np.argsort(fibers.confidence)
    gap = (fibers.mass * (fibers.accuracy - fibers.confidence))[order]
    cumulative = np.cumsum(gap)
    return float(np.sqrt(fibers.mass[order] @ cumulative**2)), float(np.abs(cumulative).max())


@settings(max_examples=80, deadline=None, derandomize=True)
@given(table=tables())
def test_upper_bounds_on_the_ece_bound_the_root_of_esd_too(table: OrbitTable) -> None:
    root, ks = root_esd_and_ks(table)
    assert root <= ks + ROUNDING
    for bound in classification(table).values():
        if bound.applies and bound.quantity == "ece" and bound.kind in ("upper", "exact"):
            assert root <= bound.value + ROUNDING


def test_lower_bounds_on_the_ece_do_not_bound_the_root_of_esd() -> None:
    """Neighboring confidences err by .3 in turn: the ECE adds that up, ESD sees it cancel."""
    confidence = 0.5 + np.linspace(-1e-3, 1e-3, 1000)
    right = confidence + np.where(np.arange(1000) % 2, 0.3, -0.3)
    table = OrbitTable(np.stack([right, 1 - right], 1) / 1000, confidence, np.zeros(1000, int))
    assert float(classification(table)["ece"]) == pytest.approx(0.3)
    assert root_esd_and_ks(table)[0] < 1e-3


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InputError, match=r"table: expected an OrbitTable or Fibers, got list"):
        classification([[0.5, 0.5]])
    table = OrbitTable([[0.5, 0.5]], [0.5])
    with pytest.raises(InputError, match="level: expected a probability"):
        classification(table, level=1)
    with pytest.raises(InputError, match="bins: expected None or a whole number"):
        classification(table, bins=0)
    with pytest.raises(InputError, match="expected confidences"):
        worst_predictions(OrbitTable([[0.5, 0.5]]))
    with pytest.raises(InputError, match=r"confidence: expected a list of values in \[0, 1\]"):
        forced_overconfidence(table, np.array([1.2]))
    with pytest.raises(InputError, match="samples: expected"):
        classification(OrbitTable([[0.5, 0.5]], samples=0))


def test_false_propositions_are_there_without_a_value_and_name_their_counterexample() -> None:
    bounds = classification(OrbitTable([[0.6, 0.4]], confidence=[0.9], predicted=[0]))
    for name in ("prop2", "prop5"):
        assert not bounds[name].applies
        assert bounds[name].reason.startswith("false: ")
        with pytest.raises(TypeError, match="false"):
            float(bounds[name])
