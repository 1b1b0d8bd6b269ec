"""Statistical claims on examples small enough for exact values: by hand, or by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import gammaincinv
from scipy.stats import binomtest, norm, t

import orbical as ob
from orbical.adversarial.descent import golden_section
from orbical.bounds import OrbitTable, certified_ceiling, neighbor_ceiling
from orbical.calibration import compare_means, interval, mean_interval, share_interval, verdict
from orbical.conformal import APS, LAC, RAPS
from orbical.groups import Chart
from orbical.selective import risk_coverage

C, T = norm.ppf(0.975), t.ppf(0.975, 3)


def test_the_certified_ceiling_of_one_orbit_is_the_limit_of_clopper_and_pearson() -> None:
    label = np.arange(100) < 30
    for level in (0.9, 0.95):
        table = OrbitTable.from_labels(np.zeros(100, int), label)
        exact = binomtest(70, 100).proportion_ci(level, method="exact")
        assert certified_ceiling(table, level=level)[1] == pytest.approx(exact.high, abs=1e-12)


def test_the_certified_ceiling_of_one_label_is_chernoffs_bound_below() -> None:
    """All of 50 held-out samples correct: c^50 = 0.025, and nothing above 1."""
    table = OrbitTable.from_labels(np.zeros(100, int), np.zeros(100, int), labels=2)
    assert certified_ceiling(table) == pytest.approx((0.025 ** (1 / 50), 1), abs=1e-9)


def test_the_neighbor_ceiling_brackets_the_error_of_half_as_many_samples() -> None:
    """Pairs of equal points, 12 of 50 with different labels; mutual neighbors count once."""
    x = np.repeat(np.arange(50.0), 2)[:, None]
    label = np.zeros(100, int)
    label[:24:2] = 1
    found = neighbor_ceiling(np.append(x, x, 1), label, "trivial", level=0.9)
    exact = binomtest(12, 50).proportion_ci(0.9, method="exact")
    assert found.value == pytest.approx(0.24)
    assert found.low == pytest.approx(1 - exact.high)
    bayes = (1 - np.sqrt(1 - 2 * exact.low)) / 2  # e = 2 r (1 - r) of two labels (Cover and Hart)
    assert found.high >= 1 - bayes  # further up by what the distance of neighbors may hide


PROBABILITIES = [0.3, 0.05, 0.5, 0.15]
ABOVE = [0.5, 0.95, 0.0, 0.8]  # the sum of those of the classes of a higher probability


def scores(sets: LAC) -> np.ndarray:
    """The score of each class: the threshold of a single calibration sample with this label."""
    sets.set_params(outputs="probabilities", coverage=0.5)
    labels = range(4)
    return np.array([sets.fit([PROBABILITIES], [k], classes=labels).threshold_ for k in labels])


def test_scores_of_conformal_sets_are_those_computed_by_hand() -> None:
    assert scores(LAC()) == pytest.approx([0.7, 0.95, 0.5, 0.85])
    shares = (scores(APS(random_state=3)) - ABOVE) / PROBABILITIES
    assert shares == pytest.approx([shares[0]] * 4)  # one uniform number, for all classes
    assert 0 < shares[0] < 1
    assert scores(APS(random_state=4))[0] != scores(APS(random_state=3))[0]


@pytest.mark.parametrize(
    ("free", "ranks"), [(0, [2, 4, 1, 3]), (1, [1, 3, 0, 2]), (2, [0, 2, 0, 1]), (4, [0, 0, 0, 0])]
)
def test_raps_adds_its_penalty_for_each_rank_beyond_the_free_ones(
    free: int, ranks: list[int]
) -> None:
    added = scores(RAPS(penalty=0.25, free=free)) - scores(APS())
    assert added == pytest.approx(0.25 * np.array(ranks))


def test_rare_errors_raise_the_upper_end_by_what_resamples_of_few_miss() -> None:
    """Three of 100 wrong at a confidence of 0.999: the limit of a Poisson mean, in counts."""
    confidence = torch.full((100,), 0.999, dtype=torch.float64)
    found = interval("ece", confidence, torch.arange(100) >= 3, resamples=20_000)
    wrong, right = np.random.default_rng(1).poisson([[3.0], [97.0]], (2, 400_000))
    drawn = np.abs(0.999 * wrong - 0.001 * right) / (wrong + right)
    spread = np.quantile(drawn, 0.975) - np.quantile(drawn, 0.5)
    apart = drawn - drawn.mean()
    beyond = (C**2 + 4) / 6 * (apart**3).mean() / (apart**2).mean()
    assert found.value.item() == pytest.approx(0.029)
    assert found.high.item() == pytest.approx(0.029 + spread + beyond, abs=0.003)


def test_the_area_of_three_samples_has_the_terms_and_the_interval_counted_by_hand() -> None:
    """Wrong at ranks 1 and 3: terms 1 + 1/2 + 1/3 and 1/3, bounded by the first."""
    terms = np.array([11 / 6, 0.0, 1 / 3])
    found = risk_coverage([0.9, 0.8, 0.7], [False, True, False])
    expected = ob.calibration.bounded_mean_interval(terms / (11 / 6))
    assert found.aurc == pytest.approx(terms.mean())
    assert (found.low, found.high) == pytest.approx((expected[1] * 11 / 6, 1.0))


def test_a_regression_mean_has_the_spread_of_gaussian_errors_as_large_as_observed() -> None:
    """Errors 0 and 2 of a unit variance: NLL terms a and a + 2, errors twice as large in square.

    Half the square of such an error has the variance 2, the mean of two the variance 1 and the
    third moment 2, as large as those observed; Student's t has one degree of freedom.
    """
    found = ob.calibration.regression_interval(
        "gaussian_nll", [0.0, 0.0], [1.0, 1.0], [0.0, 2.0], level=0.6, resamples=200_000
    )
    least, reach = np.log(2 * np.pi) / 2, t.ppf(0.8, 1)
    assert found.value.item() == pytest.approx(least + 1)
    assert found.low.item() == pytest.approx(least + 1 - reach)
    high = least + 1 + reach + 2 * (reach**2 + 2) / 3
    assert found.high.item() == pytest.approx(high, rel=0.02)


def test_differences_of_means_have_the_interval_and_the_p_value_of_students_t() -> None:
    found = compare_means([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0], level=0.8)
    error = np.sqrt(1 / 12)  # differences 1, 0, 0, 1: variance 1/3 of 4
    ends = t.interval(0.8, 3, 0.5, error)
    assert found.difference == 0.5
    assert (found.low.item(), found.high.item()) == pytest.approx(ends)
    assert found.p_value.item() == pytest.approx(2 * t.sf(0.5 / error, 3))


def test_equal_differences_have_the_p_value_of_their_signs() -> None:
    """All n differences have one sign in 2 of 2^n cases, so 3 of them never exclude 0."""
    for size in (2, 3, 5, 6, 9):
        found = compare_means(np.full(size, 0.3), np.zeros(size))
        assert found.p_value.item() == 2.0 ** (1 - size)
        assert bool(found.low <= 0) == (size < 6)


def test_a_mean_of_few_skewed_terms_has_the_interval_of_johnson_or_of_a_gamma() -> None:
    """Terms 0, 0, 0, 1: variance 1/16 of the mean; a calibrated model has a third moment more."""
    found = mean_interval([0.0, 0, 0, 1], [0.2] * 4, [0.16] * 4, calibrated_third=[0.1] * 4)
    spread, third = np.sqrt(1 / 16), 4 * 0.1 / 64
    skewness = third / spread**3
    assert found.low.item() == pytest.approx(0.25 - T * spread)
    assert found.high.item() == pytest.approx(0.25 + spread * (T + (T**2 + 2) * skewness / 3))
    usual = 0.2  # its variance is 4 * 0.16 / 16
    tilt = third / usual**3 * (C**2 - 1) / 6
    ends = (0.2 - usual * (C - tilt), 0.2 + usual * (C + tilt))
    assert (found.calibrated_low.item(), found.calibrated_high.item()) == pytest.approx(ends)
    plain = mean_interval([0.0, 0, 0, 1], [0.2] * 4, [0.5] * 4)  # a calibrated model spreads more
    spread, third = np.sqrt(0.5 / 4), (3 * -(0.25**3) + 0.75**3) / 64
    terms = 1 / (third / (1 / 16) ** 1.5) ** 2  # so many make the variance that is seen
    reach = (terms / gammaincinv(terms, 0.025) - 1) * terms**0.5 * T / C
    assert plain.high.item() == pytest.approx(0.25 + spread * reach)


def test_an_accuracy_has_the_exact_interval_of_its_effective_samples() -> None:
    """Weights 1, 1, 1, 3 are worth 36 / 12 = 3 samples; the weight correct is 2 of 6."""
    found = share_interval([1, 1, 0, 0], [0.5] * 4, weights=[1, 1, 1, 3])
    exact = binomtest(1, 3).proportion_ci(method="exact")
    assert (found.low.item(), found.high.item()) == pytest.approx((exact.low, exact.high))
    plain = share_interval([1, 1, 0, 0, 0, 0], [0.5] * 6, level=0.8)
    exact = binomtest(2, 6).proportion_ci(0.8, method="exact")
    assert (plain.low.item(), plain.high.item()) == pytest.approx((exact.low, exact.high))
    reach = norm.ppf(0.9) * np.sqrt(0.25 / 6)
    usual = (plain.calibrated_low.item(), plain.calibrated_high.item())
    assert usual == pytest.approx((0.5 - reach, 0.5 + reach))


def test_the_worst_position_is_judged_at_a_level_corrected_for_their_number() -> None:
    """A quarter turn is wrong on 5 of 20 samples: the exact interval of 95 % for all four."""
    points = torch.tensor([[1.0, 0.0]]).repeat(20, 1)[:, None]
    points[:5, :, 0] = 2.0

    def model(batch: torch.Tensor) -> torch.Tensor:
        wrong = (batch[:, 0, 1] > 1.5).float()  # large points, turned to the top
        return torch.stack([2 - 4 * wrong, torch.zeros_like(wrong)], -1)

    scan = ob.scan(
        {"net": model},
        (points, torch.zeros(20, dtype=torch.long)),
        group="cyclic:4",
        task=ob.tasks.Classification(input=ob.actions.Points()),
        progress=False,
    )
    found = verdict(scan, "accuracy", minimum=0.3, place="worst")["net"]
    exact = binomtest(15, 20).proportion_ci(1 - 0.05 / 4, method="exact")
    assert found.value == 0.75
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_a_golden_section_turns_twice_along_two_coordinates() -> None:
    """Along each axis in turn x^2 + y^2 + xy falls to 3/4 of the other coordinate's square.

    From (1, 1): (-1/2, 1), (-1/2, 1/4), and in the second turn (-1/8, 1/4), (-1/8, 1/16).
    """
    chart = Chart(
        ("x", "y"),
        lambda coords, base: {},
        np.array([[1.0, 1.0]]),
        np.array([2.0, 2.0]),
        np.full(2, -4.0),
        np.full(2, 4.0),
    )
    turns: list[np.ndarray] = []

    def bowl(sample: np.ndarray, coords: np.ndarray, base: np.ndarray) -> np.ndarray:
        turns.append(coords)
        x, y = coords.T
        return x**2 + y**2 + x * y

    start = np.zeros(1, int)
    coords, value = golden_section(bowl, chart, start, start, rounds=60)
    np.testing.assert_allclose(coords, [[-1 / 8, 1 / 16]], atol=1e-6)
    assert value[0] == pytest.approx(3 / 256)
    reach = np.abs(np.concatenate(turns)[-62:, 1] - 1 / 4).max()
    assert reach < 1  # half a step in the second turn


def test_a_golden_section_along_one_coordinate_turns_once() -> None:
    """Within one step of the start, which ends at 1, and no second search beyond it."""
    chart = Chart(
        ("x",),
        lambda coords, base: {},
        np.zeros((1, 1)),
        np.ones(1),
        np.full(1, -4.0),
        np.full(1, 4.0),
    )
    start = np.zeros(1, int)
    coords, _ = golden_section(lambda s, x, b: (x[:, 0] - 3) ** 2, chart, start, start, rounds=40)
    assert coords[0, 0] == pytest.approx(1, abs=1e-6)
