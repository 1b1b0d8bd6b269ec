"""MAPIE on the same outputs: equal sets and intervals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression

from orbical.conformal import APS, CQR, LAC, RAPS, Absolute, conformal_quantile
from orbical.conformal.class_sets import conformal_scores

pytestmark = pytest.mark.peers
COVERAGE = 0.95


@pytest.fixture(scope="module")
def mapie():
    return pytest.importorskip("mapie", reason="mapie is not installed")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(C=1e-4, max_iter=200).fit(X[:600], y[:600])
    return model, (X[600:1200], y[600:1200]), (X[1200:], y[1200:])


def conformal_classifier(model, held, score):
    from mapie.classification import SplitConformalClassifier

    peer = SplitConformalClassifier(
        model, COVERAGE, prefit=True, conformity_score=score, random_state=0
    )
    return peer.conformalize(*held)


def test_lac_gives_the_sets_of_mapie(mapie, digits):
    model, held, new = digits
    ours = LAC(COVERAGE, outputs="probabilities").fit(model.predict_proba(held[0]), held[1])
    theirs = conformal_classifier(model, held, "lac").predict_set(new[0])[1][..., 0]
    sets = ours.predict_set(model.predict_proba(new[0]))
    np.testing.assert_array_equal(sets, theirs)
    assert sets.sum(1).max() > 1


def sets_with(method, uniform, X, y, new):
    """The sets for given random numbers, since MAPIE draws them otherwise."""
    u = torch.from_numpy(uniform)
    score = method._nonconformity(torch.from_numpy(X), u[: len(X), None])
    threshold = conformal_quantile(conformal_scores(score[:, None], torch.from_numpy(y)), COVERAGE)
    return (method._nonconformity(torch.from_numpy(new), u[: len(new), None]) <= threshold).numpy()


def test_aps_gives_the_sets_of_mapie(mapie, digits):
    model, held, new = digits
    peer = conformal_classifier(model, held, "aps")
    theirs = peer.predict_set(new[0], {"include_last_label": "randomized"})[1][..., 0]
    uniform = np.random.RandomState(0).uniform(size=600)
    probs = [model.predict_proba(part) for part in (held[0], new[0])]
    sets = sets_with(APS(COVERAGE), uniform, probs[0], held[1], probs[1])
    np.testing.assert_array_equal(sets, theirs)


def test_raps_scores_are_those_of_mapie(mapie, digits):
    from mapie.conformity_scores.sets import RAPSConformityScore

    model, held, _ = digits
    probs = model.predict_proba(held[0])
    theirs = RAPSConformityScore._regularize_conformity_score(
        np.array([2]),
        0.05,
        *RAPSConformityScore.get_true_label_cumsum_proba(held[1], probs, np.arange(10)),
    )
    ours = RAPS(penalty=0.05, free=2)._nonconformity(torch.from_numpy(probs), torch.zeros(600, 1))
    at_truth = ours[torch.arange(600), torch.from_numpy(held[1])]
    np.testing.assert_allclose(at_truth.numpy(), theirs[:, 0, 0], atol=1e-12)


def test_absolute_intervals_are_those_of_mapie(mapie):
    from mapie.regression import SplitConformalRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_t(3, 400)
    model = LinearRegression().fit(X[:100], y[:100])
    peer = SplitConformalRegressor(model, COVERAGE, prefit=True).conformalize(
        X[100:250], y[100:250]
    )
    ours = Absolute(COVERAGE).fit(model.predict(X[100:250]), y[100:250])
    theirs = peer.predict_interval(X[250:])[1][..., 0]
    np.testing.assert_allclose(ours.predict_interval(model.predict(X[250:])), theirs)


def test_conformalized_quantiles_are_those_of_mapie(mapie):
    from mapie.regression import ConformalizedQuantileRegressor
    from sklearn.linear_model import QuantileRegressor

    rng = np.random.default_rng(1)
    X = rng.uniform(1, 2, (400, 1))
    y = X[:, 0] * (1 + rng.normal(size=400))
    places = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2, 0.5)
    models = [QuantileRegressor(quantile=q, alpha=0).fit(X[:100], y[:100]) for q in places]
    peer = ConformalizedQuantileRegressor(models, COVERAGE, prefit=True)
    peer.conformalize(X[100:250], y[100:250])
    theirs = peer.predict_interval(X[250:], symmetric_correction=True)[1][..., 0]

    def quantiles(rows):
        return np.stack([model.predict(rows) for model in models[:2]], 1)

    ours = CQR(COVERAGE).fit(quantiles(X[100:250]), y[100:250])
    np.testing.assert_allclose(ours.predict_interval(quantiles(X[250:])), theirs)
