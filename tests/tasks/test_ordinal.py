"""Ordered classes: scores against brute force, kappa against scikit-learn, calibration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import cohen_kappa_score

import orbical as ob
from orbical.errors import InputError

RANDOM = torch.Generator().manual_seed(1)
PROBS = torch.randn(3, 40, 4, generator=RANDOM).softmax(-1)  # elements, samples, classes
LABELS = torch.randint(0, 4, (40,), generator=RANDOM)


@pytest.fixture(scope="module")
def scan():
    """A scan of a model that returns the first of `PROBS`, whatever it is shown."""
    numbers = torch.arange(40.0).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    task = ob.tasks.Ordinal(outputs="probabilities")
    return ob.scan(
        lambda images: PROBS[0][images[:, 0, 0, 0].long()],
        (numbers, LABELS),
        group="cyclic:1",
        task=task,
        progress=False,
    )


def summarized(**settings):
    task, group = ob.tasks.Ordinal(**settings), ob.groups.cyclic(3)
    return task.summarize(PROBS, LABELS, group, torch.as_tensor(group.weights))


def test_scores_equal_their_definitions():
    found = summarized()
    for element in range(3):
        for sample in range(40):
            probs, label = PROBS[element, sample].numpy(), int(LABELS[sample])
            rps = sum((probs[: k + 1].sum() - (label <= k)) ** 2 for k in range(3)) / 3
            assert float(found["rps"][sample, element]) == pytest.approx(rps, abs=1e-6)
            rank = abs(int(probs.argmax()) - label)
            assert float(found["rank_error"][sample, element]) == rank
    np.testing.assert_array_equal(found["score"], found["rps"])
    by_rank = summarized(score="rank_error")
    np.testing.assert_array_equal(by_rank["score"], by_rank["rank_error"])
    agreed = PROBS.mean(0).argmax(-1)
    apart = (PROBS.argmax(-1) - agreed).abs().T
    np.testing.assert_array_equal(by_rank["score_vs_consensus"], apart)


def test_a_certain_answer_is_scored_from_0_to_1():
    certain = torch.eye(4)[None]
    task, group = ob.tasks.Ordinal(), ob.groups.trivial()
    found = task.summarize(certain, torch.zeros(4, dtype=torch.int64), group, torch.ones(1))
    np.testing.assert_allclose(found["rps"][:, 0], [0, 1 / 3, 2 / 3, 1])
    assert not task.higher_is_better


def test_kappa_is_that_of_scikit_learn(scan):
    found = ob.nero.quadratic_kappa(scan)
    said = scan.data["predicted"].values[0, :, 0]
    expected = cohen_kappa_score(LABELS.numpy(), said, weights="quadratic")
    assert float(found[0, 0]) == pytest.approx(expected, abs=1e-6)
    assert found.attrs["higher_is_better"] is True
    words = [axes.get_ylabel() for axes in ob.figures.aggregate(found).axes]
    assert not any("mean" in word for word in words)
    with pytest.raises(InputError, match="labeled scan of ordered classes, got one without labels"):
        ob.nero.quadratic_kappa(scan.data.drop_vars("label"))


def test_cumulative_probabilities_are_calibrated_by_threshold(scan):
    found = ob.calibration.along_orbit(
        ob.calibration.pairs_within(scan), "ece", by="threshold", bins=5
    )
    probs = torch.from_numpy(scan.data["probabilities"].values[0, :, 0])
    for k in range(3):
        expected = ob.calibration.ece(probs[:, : k + 1].sum(-1), (k >= LABELS).float(), bins=5)
        assert found.sel(threshold=k).item() == pytest.approx(float(expected), abs=1e-5)


def test_what_classification_has_it_has_too(scan):
    assert {"confidence", "correct", "predicted"} <= {*scan.data.data_vars}
    assert ob.calibration.along_orbit(scan, "ece").shape == (1, 1)
    assert "changed" in ob.nero.summary(scan)
    with pytest.raises(InputError, match="score: "):
        ob.tasks.Ordinal(score="kappa")
    labeled = torch.zeros(2, 1, 4, 4), [0, 7]
    with pytest.raises(InputError, match="class indices below 4"):
        ob.scan(lambda x: x[:, 0, 0], labeled, group="cyclic:2", task="ordinal", progress=False)
