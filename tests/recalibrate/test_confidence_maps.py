"""Maps of the confidence and of each class: isotonic, in bins, by scikit-learn and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from held_out import outputs, real
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from orbical.calibration import nll
from orbical.recalibrate import (
    HistogramBinning,
    Isotonic,
)


def test_isotonic_is_scikit_learns_map_of_the_top_label(shared_data: Path) -> None:
    probs, labels = real(shared_data, "wideresnet-16-4-cifar-10", 4000)
    fit, rest = slice(0, 2000), slice(2000, None)
    confidence, predicted = probs.double().max(1)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
        confidence[fit].numpy(), (predicted == labels)[fit].double().numpy()
    )
    isotonic = Isotonic(outputs="probabilities").fit(probs[fit], labels[fit])
    calibrated = isotonic.predict_proba(probs[rest].double())
    top = calibrated.gather(1, predicted[rest, None])[:, 0]
    np.testing.assert_allclose(top.numpy(), reference.predict(confidence[rest]), atol=1e-9)
    others = probs[rest].double().scatter(1, predicted[rest, None], 0.0)
    expected = others / others.sum(1, keepdim=True) * (1 - top)[:, None]
    torch.testing.assert_close(
        calibrated.scatter(1, predicted[rest, None], 0.0), expected, atol=1e-6, rtol=0
    )


def test_classwise_isotonic_is_scikit_learns_map_of_each_class_normalized() -> None:
    logits, labels = outputs(500, 3)
    probs = torch.softmax(logits, 1)
    columns = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        .fit(probs[:, k].numpy(), (labels == k).double().numpy())
        .predict(probs[:, k].numpy())
        for k in range(3)
    ]
    expected = np.stack(columns, 1)
    expected = expected / expected.sum(1, keepdims=True)
    calibrated = (
        Isotonic(reduce="classes", outputs="probabilities").fit(probs, labels).predict_proba(probs)
    )
    np.testing.assert_allclose(calibrated.numpy(), expected, atol=1e-9)


def test_histogram_binning_answers_with_the_share_of_hits_in_the_bin() -> None:
    logits, labels = outputs(300, 4)
    probs = torch.softmax(logits, 1)
    confidence, predicted = probs.max(1)
    binning = HistogramBinning(bins=10, outputs="probabilities").fit(probs, labels)
    calibrated = binning.predict_proba(probs).gather(1, predicted[:, None])[:, 0]
    for group in np.array_split(confidence.argsort().numpy(), 10):
        hits = (predicted == labels)[group].double().mean().clamp(max=0.999)
        torch.testing.assert_close(calibrated[group], hits.expand(len(group)).to(calibrated))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    classes=st.integers(2, 4),
    levels=st.integers(1, 10),
    reduce=st.sampled_from(["top", "classes"]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16]),
)
def test_maps_of_tied_and_saturated_confidences_stay_probabilities(
    seed: int, size: int, classes: int, levels: int, reduce: str, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    counts = torch.as_tensor(rng.multinomial(levels, np.ones(classes) / classes, size=size))
    probs = (counts.double() / levels).to(dtype)
    labels = torch.as_tensor(rng.integers(0, classes, size))
    for kind in (Isotonic(), HistogramBinning(bins=4)):
        calibrator = kind.set_params(reduce=reduce, outputs="probabilities")
        mapped = calibrator.fit(probs, labels).predict_proba(probs)
        assert (mapped >= 0).all()
        torch.testing.assert_close(
            mapped.sum(1).double(), torch.ones(size).double(), atol=1e-5, rtol=0
        )
        torch.testing.assert_close(calibrator.predict_proba(probs.flip(0)), mapped.flip(0))
    top, predicted = probs.max(1)
    if reduce == "top":
        isotonic = Isotonic(outputs="probabilities").fit(probs, labels).predict_proba(probs)
        confidence = isotonic.gather(1, predicted[:, None])[top.argsort(), 0]
        assert (confidence.diff() >= -1e-6).all()
        hits = (predicted == labels).double().mean()
        torch.testing.assert_close(confidence.double().mean(), hits, atol=1e-5, rtol=0)


def test_constant_outputs_are_mapped_to_their_accuracy() -> None:
    probs = torch.full((8, 2), 0.5)
    for calibrator in (Isotonic(), HistogramBinning(), Isotonic(reduce="classes")):
        calibrator.set_params(outputs="probabilities").fit(probs, [0, 0, 0, 0, 0, 0, 1, 1])
        torch.testing.assert_close(calibrator.predict_proba(probs)[0], torch.tensor([0.75, 0.25]))


def test_a_certain_row_shares_what_is_left_evenly() -> None:
    probs = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    calibrated = Isotonic(outputs="probabilities").fit(probs, [0, 0, 0, 1]).predict_proba(probs)
    torch.testing.assert_close(calibrated[0], torch.tensor([0.75, 0.125, 0.125]))


def test_a_single_class_is_learned_by_maps_of_each_class() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    expected = {Isotonic(): [1.0, 0.0], HistogramBinning(): [0.999, 0.001]}
    for calibrator, row in expected.items():
        calibrator.set_params(reduce="classes", outputs="probabilities").fit(probs, [0, 0])
        torch.testing.assert_close(calibrator.predict_proba(probs)[1], torch.tensor(row))


@pytest.mark.parametrize("reduce", ["top", "classes"])
def test_what_a_bin_has_not_seen_keeps_a_finite_likelihood(reduce: str) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 3)) * 3
    labels = np.where(logits.max(1) > 1, logits.argmax(1), rng.integers(0, 3, 400))
    binning = HistogramBinning(bins=20, reduce=reduce).fit(logits[:200], labels[:200])
    probs = binning.predict_proba(logits)
    every = [nll(probs=probs, labels=np.full(400, label)) for label in range(3)]
    assert all(np.isfinite(float(one)) for one in every)
