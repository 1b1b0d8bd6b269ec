"""The guarantee by simulation, where its assumption holds, and what is left where it does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from orbical.conformal import (
    APS,
    CQR,
    LAC,
    RAPS,
    Absolute,
    Mondrian,
    Normalized,
    OrbitAveraged,
    conformal_quantile,
)
from orbical.errors import InputError

WORLDS, SAMPLES, CLASSES = 100, 60, 6


def world(rng, samples, classes=CLASSES, tempering=3.0):
    """Probabilities that are far too sharp, with labels drawn from the right ones."""
    right = rng.dirichlet(np.ones(classes), samples)
    labels = (right.cumsum(1) > rng.random((samples, 1))).argmax(1)
    sharp = right**tempering
    return sharp / sharp.sum(1, keepdims=True), labels


def hits(sets, labels):
    return sets[np.arange(len(labels)), labels]


@pytest.mark.parametrize("method", [LAC(0.8), APS(0.8), RAPS(0.8, penalty=0.1, free=2)], ids=repr)
def test_sets_cover_as_promised_and_little_more_whatever_the_model(method):
    method.set_params(outputs="probabilities")
    rng, found = np.random.default_rng(0), []
    for _ in range(WORLDS):
        probs, labels = world(rng, 2 * SAMPLES)
        method.fit(probs[:SAMPLES], labels[:SAMPLES])
        found.append(hits(method.predict_set(probs[SAMPLES:]), labels[SAMPLES:]).mean())
    error = np.std(found) / WORLDS**0.5
    assert 0.8 - 3 * error <= np.mean(found) <= 0.8 + 1 / (SAMPLES + 1) + 3 * error


@pytest.mark.parametrize("method", [APS(0.8), RAPS(0.8, penalty=0.1, free=2)], ids=repr)
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_sample_has_one_set_alone_in_a_batch_and_in_a_pipeline(method, seed):
    """One number u for all calls would cover all samples of a rank, or none."""
    method.set_params(outputs="probabilities", random_state=seed)
    probs, labels = world(np.random.default_rng(3), 1400)
    method.fit(probs[:1000], labels[:1000])
    new, truth = probs[1000:], labels[1000:]
    whole = method.predict_set(new)
    alone = np.concatenate([method.predict_set(row[None]) for row in new])
    batches = np.concatenate([method.predict_set(part) for part in np.array_split(new, 9)])
    np.testing.assert_array_equal(alone, whole)
    np.testing.assert_array_equal(batches, whole)
    assert hits(alone, truth).mean() == pytest.approx(0.8, abs=4 * (0.16 / 400) ** 0.5)
    scaled = make_pipeline(FunctionTransformer(), method).fit(probs[:1000], labels[:1000])
    piped = [scaled[-1].predict_set(scaled[:-1].transform(row[None])) for row in new[:50]]
    np.testing.assert_array_equal(np.concatenate(piped), whole[:50])
    # u is uniform, and that of a sample says nothing of another's.
    uniform = method._uniform(torch.from_numpy(probs)).numpy()
    assert kstest(uniform, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.1
    assert abs(np.corrcoef(uniform, probs[:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize("method", [Absolute(0.9), Normalized(0.9), CQR(0.9)], ids=repr)
def test_intervals_cover_as_promised_and_little_more_whatever_the_model(method):
    rng, found = np.random.default_rng(1), []
    for _ in range(WORLDS):
        scale = rng.uniform(0.2, 3, 2 * SAMPLES)
        target = rng.standard_t(3, 2 * SAMPLES) * scale + 1  # the mean is wrong, the tails heavy
        zero = np.zeros_like(scale)
        X = {
            Absolute: zero[:, None],
            Normalized: np.stack([zero, scale], 1),
            CQR: np.stack([-scale, scale], 1),
        }[type(method)]
        method.fit(X[:SAMPLES], target[:SAMPLES])
        low, high = method.predict_interval(X[SAMPLES:]).T
        found.append(((low <= target[SAMPLES:]) & (target[SAMPLES:] <= high)).mean())
    error = np.std(found) / WORLDS**0.5
    assert 0.9 - 3 * error <= np.mean(found) <= 0.9 + 1 / (SAMPLES + 1) + 3 * error


def test_the_coverage_of_one_calibration_set_varies_as_a_beta_distribution():
    from scipy import stats

    rng = np.random.default_rng(2)
    thresholds = [conformal_quantile(rng.random(99), 0.9) for _ in range(1000)]  # of uniform scores
    assert stats.kstest(thresholds, stats.beta(90, 10).cdf).pvalue > 0.01


def orbits(rng, samples, elements=4):
    """A model that is worse at each further position of the orbit."""
    right = rng.dirichlet(np.full(CLASSES, 0.5), samples)
    labels = (right.cumsum(1) > rng.random((samples, 1))).argmax(1)
    noise = rng.dirichlet(np.ones(CLASSES), (samples, elements))
    mixed = np.linspace(0, 1, elements)[:, None]
    return (1 - mixed) * right[:, None] + mixed * noise, labels


def test_where_the_sets_are_calibrated_is_where_they_cover():
    rng = np.random.default_rng(3)
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    found = {name: [] for name in ("upright", "orbit", "position", "average")}
    for _ in range(WORLDS):
        X, y = orbits(rng, 2 * SAMPLES)
        held, new = (X[:SAMPLES], y[:SAMPLES]), (X[SAMPLES:], y[SAMPLES:])
        lac = LAC(0.8, outputs="probabilities")
        index = np.arange(SAMPLES)[:, None], np.arange(4), new[1][:, None]
        found["upright"].append(lac.fit(held[0][:, 0], held[1]).predict_set(new[0])[index].mean(0))
        found["orbit"].append(lac.fit(*held, weight).predict_set(new[0])[index].mean(0))
        place = np.tile(np.arange(4), SAMPLES)
        rows = [part.reshape(-1, CLASSES) for part in (held[0], new[0])]
        by_position = Mondrian(lac).fit(rows[0], np.repeat(held[1], 4), place)
        sets = by_position.predict_set(rows[1], place).reshape(SAMPLES, 4, CLASSES)
        found["position"].append(sets[index].mean(0))
        average = OrbitAveraged(lac).fit(*held, weight).predict_set(new[0])
        found["average"].append(np.repeat(hits(average, new[1]).mean(), 4))
    mean = {name: np.mean(values, axis=0) for name, values in found.items()}
    slack = 3 * np.std(found["position"]) / WORLDS**0.5
    assert abs(mean["upright"][0] - 0.8) < slack + 1 / SAMPLES
    assert mean["upright"][3] < 0.6  # calibrated upright, used elsewhere: no guarantee
    assert -slack < mean["orbit"] @ weight - 0.8 < slack + 1 / SAMPLES
    assert mean["orbit"][0] > 0.85 > 0.8 > mean["orbit"][3]  # on average, not at each position
    assert (abs(mean["position"] - 0.8) < slack + 1 / SAMPLES).all()
    assert (abs(mean["average"] - 0.8) < slack + 1 / SAMPLES).all()


@pytest.mark.parametrize("method", [LAC(0.8), APS(0.8), RAPS(0.8)], ids=repr)
def test_sets_of_averaged_scores_are_the_same_along_the_orbit(method):
    rng = np.random.default_rng(4)
    X, y = orbits(rng, 200)
    averaged = OrbitAveraged(method.set_params(outputs="probabilities")).fit(X, y)
    for shift in range(4):
        np.testing.assert_array_equal(
            averaged.predict_set(np.roll(X, shift, 1)), averaged.predict_set(X)
        )
    plain = averaged.method.fit(X, y).predict_set(X)
    assert (plain != plain[:, :1]).any()


@pytest.mark.parametrize(("coverage", "least"), [(0.9, 9), (0.95, 19), (0.7, 3), (0.99, 99)])
def test_a_calibration_set_that_is_too_small_is_refused(coverage, least):
    scores = np.arange(float(least))
    assert conformal_quantile(scores, coverage) <= least - 1
    with pytest.raises(
        InputError, match=f"at least {least} calibration samples .* got {least - 1}"
    ):
        conformal_quantile(scores[1:], coverage)
    with pytest.raises(InputError, match=r"^coverage: .* calibrate on more, or lower the coverage"):
        Absolute(coverage).fit(scores[1:], scores[1:])


def test_rounding_does_not_ask_for_one_score_more():
    assert conformal_quantile(np.arange(9.0), 0.7) == 6.0  # 10 * 0.7 > 7 in floating point


def test_positions_of_a_sample_share_its_weight():
    rng = np.random.default_rng(5)
    scores = rng.random((50, 1))
    assert conformal_quantile(scores.repeat(8, 1), 0.9) == conformal_quantile(scores, 0.9)
    weight = [1.0, 0.0]
    both = np.concatenate([scores, rng.random((50, 1))], 1)
    assert conformal_quantile(both, 0.9, weight) == conformal_quantile(scores, 0.9)


def test_torch_gives_torch_and_numpy_gives_numpy():
    rng = np.random.default_rng(6)
    probs, labels = world(rng, 50)
    sets = APS(outputs="probabilities").fit(torch.from_numpy(probs), torch.from_numpy(labels))
    found = sets.predict_set(torch.from_numpy(probs))
    assert found.dtype == torch.bool
    np.testing.assert_array_equal(found.numpy(), sets.predict_set(probs))
    category = np.repeat(["a", "b"], 25)
    for X in (probs, torch.from_numpy(probs)):
        both = Mondrian(LAC(0.8, outputs="probabilities")).fit(X, labels, category)
        assert type(both.predict_set(X, category)) is type(X)
    interval = Absolute().fit(torch.zeros(20), torch.randn(20)).predict_interval(torch.zeros(3))
    assert interval.shape == (3, 2)
    assert interval.dtype == torch.float64


def test_a_mondrian_set_is_that_of_its_category():
    rng = np.random.default_rng(7)
    probs, labels = world(rng, 200)
    names = np.array(list("abcdef"))[labels]
    category = rng.integers(0, 2, 200)
    both = Mondrian(LAC(outputs="probabilities")).fit(probs, names, category)
    found = both.predict_set(probs, category)
    for one in (0, 1):
        mine = category == one
        alone = LAC(outputs="probabilities").fit(probs[mine], labels[mine])
        np.testing.assert_array_equal(found[mine], alone.predict_set(probs[mine]))
    with pytest.raises(InputError, match=r"category: expected one of .* got 2; calibrate"):
        both.predict_set(probs, category + 2)
    with pytest.raises(InputError, match=r"category True: coverage: expected at least 9 .* got 3"):
        Mondrian(LAC(outputs="probabilities")).fit(probs, labels, np.arange(200) >= 197)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LAC(1.2).fit(np.eye(20), np.arange(20)), r"coverage: expected .* got 1\.2"),
        (lambda: Normalized().fit([[0.0, 0.0]] * 9, [0.0] * 9), "standard deviations > 0"),
        (lambda: CQR().fit([[1.0, 0.0]] * 9, [0.0] * 9), "got crossing ones; sort"),
        (lambda: CQR().fit([0.0] * 9, [0.0] * 9), r"X: expected shape \[..., 2\] \(low, high\)"),
        (lambda: Absolute().fit([0.0] * 9, [np.nan] * 9), "y: expected finite targets"),
        (lambda: Absolute().fit([np.inf] * 9, [0.0] * 9), "X: expected finite outputs"),
        (lambda: Absolute().fit([0.0] * 9, [0.0] * 8), r"y: expected shape \(9,\)"),
        (lambda: RAPS(penalty=-1).fit(-np.eye(20), np.arange(20)), "penalty: expected .* >= 0"),
        (lambda: OrbitAveraged(Absolute()).fit(np.eye(20), np.arange(20)), "method: expected"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(call, words):
    with pytest.raises(InputError, match=words):
        call()
