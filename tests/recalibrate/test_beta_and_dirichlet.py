"""Beta and Dirichlet calibration against independent fits, and where their truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from held_out import outputs
from sklearn.linear_model import LogisticRegression

from orbical.recalibrate import Beta, Dirichlet, Temperature


def test_beta_is_the_logistic_regression_of_its_two_logarithms():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 1, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-(0.6 * np.log(p) - 1.4 * np.log1p(-p) - 0.5)))
    X = np.stack([1 - p, p], 1)
    fitted = Beta(0.0, reduce="classes", outputs="probabilities").fit(X, y.astype(int))
    a, b, c = fitted.values_[3:]  # of class 1
    features = np.stack([np.log(p), -np.log1p(-p)], 1)
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, y)
    np.testing.assert_allclose([a, b, c], [*plain.coef_[0], plain.intercept_[0]], atol=1e-3)
    np.testing.assert_allclose([a, b, c], [0.6, 1.4, -0.5], atol=0.3)
    np.testing.assert_allclose(fitted.values_[:3], [b, a, -c], atol=1e-5)  # class 0, mirrored


def test_beta_maps_are_monotone_and_finite_without_errors():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.5, 1, 300)
    X = np.stack([p, 1 - p], 1)
    for labels in (np.zeros(300, int), (rng.random(300) < 0.8).astype(int)):
        fitted = Beta(outputs="probabilities").fit(X, labels)
        grid = np.linspace(0.5, 1, 101)
        found = fitted.predict_proba(np.stack([grid, 1 - grid], 1))[:, 0]
        assert np.isfinite(found).all()
        assert (np.diff(found) >= 0).all()


def test_dirichlet_finds_the_map_that_made_the_labels():
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1.0, 2.0, 3.0], 20_000)
    weight = np.diag([0.5, 1.0, 1.5])
    score = np.log(p) @ weight.T + [0.3, 0.0, -0.3]
    labels = (score + rng.gumbel(size=score.shape)).argmax(1)
    fitted = Dirichlet(0.0, 1e-9, 1e-9, outputs="probabilities").fit(p, labels)
    truth = torch.softmax(torch.as_tensor(score), 1).numpy()
    assert abs(fitted.predict_proba(p) - truth).max() < 0.06
    assert (
        abs(Temperature(outputs="probabilities").fit(p, labels).predict_proba(p) - truth).max()
        > 0.1
    )


@pytest.mark.parametrize("kind", [Beta, Dirichlet])
def test_logits_and_their_probabilities_are_mapped_alike(kind):
    logits, labels = outputs(300)
    probs = torch.softmax(logits, 1)
    found = kind().fit(logits + 5, labels).predict_proba(logits)
    again = kind(outputs="probabilities").fit(probs, labels).predict_proba(probs)
    torch.testing.assert_close(found, again, atol=1e-6, rtol=0)
