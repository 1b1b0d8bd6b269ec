"""Several labels for each input: scores against scikit-learn, calibration by label, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics

import orbical as ob
from orbical.errors import InputError, ModelError

RANDOM = torch.Generator().manual_seed(0)
CHANCE = torch.rand(4, 12, 5, generator=RANDOM)  # elements, samples, labels
LABELS = (torch.rand(12, 5, generator=RANDOM) > 0.6).float()
LABELS[0] = 0.0
CHANCE[0, 0] = 0.1  # neither predicted nor true labels
IMAGES = torch.arange(12.0).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)


def summarized(labels=LABELS, chance=CHANCE, **settings):
    task = ob.tasks.MultiLabel(**settings)
    group = ob.groups.cyclic(len(chance))
    target = None if labels is None else task.check_target(labels, len(labels))
    return task.summarize(chance, target, group, torch.as_tensor(group.weights))


def fixed(images):
    """The same probabilities for a sample at every element."""
    return CHANCE[1][images[:, 0, 0, 0].long()]


def scanned(model=fixed, labels=LABELS, group="cyclic:4", **settings):
    task = ob.tasks.MultiLabel(outputs="probabilities", **settings)
    return ob.scan(model, (IMAGES, labels), group=group, task=task, progress=False)


def test_scores_are_those_of_scikit_learn():
    found = summarized()
    said = (CHANCE >= 0.5).numpy()
    for element in range(2):
        for sample in range(6):
            pair = LABELS[sample : sample + 1].numpy() > 0, said[element, sample : sample + 1]
            one = {name: float(found[name][sample, element]) for name in found if name != "answer"
                   and found[name].ndim == 2}  # fmt: skip
            f1 = metrics.f1_score(*pair, average="samples", zero_division=1)
            jaccard = metrics.jaccard_score(*pair, average="samples", zero_division=1)
            assert one["f1"] == one["score"] == pytest.approx(f1, abs=1e-6)
            assert one["jaccard"] == pytest.approx(jaccard, abs=1e-6)
            assert one["label_accuracy"] == pytest.approx(1 - metrics.hamming_loss(*pair), abs=1e-6)
            assert one["correct"] == metrics.accuracy_score(*pair)
    sure = CHANCE.clamp_min(0.5).where(CHANCE >= 0.5, 1 - CHANCE).prod(-1).T
    np.testing.assert_allclose(found["confidence"], sure, rtol=1e-5)


def test_unknown_labels_are_not_judged():
    labels = LABELS.clone()
    labels[:, 2] = torch.nan
    without = [0, 1, 3, 4]
    found, expected = summarized(labels), summarized(LABELS[:, without], CHANCE[..., without])
    for name in ("f1", "jaccard", "label_accuracy", "correct", "confidence"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6, err_msg=name)


def test_the_consensus_is_the_labels_of_the_mean_probability():
    found = summarized(threshold=0.4, score="jaccard")
    mean = CHANCE.mean(0)
    np.testing.assert_allclose(found["consensus"], mean, atol=1e-6)
    said, agreed = (CHANCE >= 0.4).numpy(), (mean >= 0.4).numpy()
    both, either = (said & agreed).sum(-1), (said | agreed).sum(-1)
    expected = np.where(either == 0, 1.0, both / np.maximum(either, 1))
    np.testing.assert_allclose(found["score_vs_consensus"], expected.T, atol=1e-6)


def test_a_sample_without_any_known_label_is_refused():
    labels = LABELS.clone()
    labels[3] = torch.nan
    with pytest.raises(InputError, match="got only NaN for 1 of 12; leave such samples out"):
        scanned(labels=labels)


def test_probabilities_read_as_logits_cause_a_warning():
    with pytest.warns(UserWarning, match=r"all are in 0 \.\. 1; if they are probabilities"):
        ob.scan(fixed, (IMAGES, LABELS), group="cyclic:2", task="multilabel", progress=False)


def test_answers_that_change_are_counted():
    def turning(images):  # the second label applies where the first pixel is bright
        bright = images[:, 0, 0, 0] > images[:, 0, 3, 3]
        return torch.stack([torch.ones(len(images)), bright.float(), 0 * bright.float()], 1)

    images = torch.zeros(3, 1, 4, 4)
    images[0, 0, 0, 0] = 1.0
    task = ob.tasks.MultiLabel(outputs="probabilities")
    scan = ob.scan(turning, images, group="cyclic:4", task=task, progress=False)
    found = ob.nero.consistency(scan)
    assert found["changed_per_sample"].values.tolist() == [[1.0, 0.0, 0.0]]
    assert float(found["pairs_per_sample"][0, 0]) == pytest.approx(0.5)  # one of four differs
    assert "changed" in ob.nero.summary(scan)


def test_calibration_by_label_is_that_of_each_column():
    scan = scanned(classes=list("abcde"))
    found = ob.calibration.along_orbit(
        ob.calibration.pairs_within(scan), "ece", by="class_name", bins=5
    )
    for label in range(5):
        expected = ob.calibration.ece(CHANCE[1][:, label], LABELS[:, label], bins=5)
        np.testing.assert_allclose(found.sel(class_name="abcde"[label]), float(expected), rtol=1e-5)
    assert ob.calibration.along_orbit(scan, "ece").shape == (1, 4)  # of whole answers


def test_what_needs_one_class_for_each_sample_refuses_several_labels():
    scan = scanned()
    with pytest.raises(InputError, match="expected a labeled classification with probabilities"):
        ob.nero.averaging(scan)
    with pytest.raises(InputError, match="scan data with one class for each sample"):
        ob.conformal.along_orbit(scan)


def test_a_scan_is_restored_from_its_record():
    scan = scanned(score="jaccard", threshold=0.3)
    again = ob.tasks.Task.from_record(scan.record.to_json()["task"])
    assert again.settings() == {
        "outputs": "probabilities", "classes": None, "representation": "trivial",
        "score": "jaccard", "threshold": 0.3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:, 0], r"0 or 1 for each label, \[sample, label\].*task='classification'"),
        (LABELS + 1, r"0, 1, or NaN where a label is unknown, got 1 .. 2"),
        (LABELS[:5], "one for each of 12 samples"),
        (LABELS[:, :3], "expected 5 labels, as the model predicts, got 3"),
        (LABELS / 0, "0, 1, or NaN"),
    ],
)
def test_labels_that_are_none_are_refused(labels, words):
    with pytest.raises(InputError, match=words):
        scanned(labels=labels)


def test_outputs_that_are_none_are_refused():
    for model, words in (
        (lambda x: fixed(x) * 3, r"expected probabilities, got .* outputs='logits'"),
        (lambda x: fixed(x)[:, 0], r"a number for each label, \[sample, label\]"),
        (lambda x: fixed(x) * torch.nan, "NaN or infinite output"),
    ):
        with pytest.raises(ModelError, match=words):
            scanned(model)
    with pytest.raises(InputError, match="threshold: expected a number in"):
        ob.tasks.MultiLabel(threshold=1.5)
    with pytest.raises(InputError, match="score: "):
        ob.tasks.MultiLabel(score="recall")
    with pytest.raises(InputError, match="names of the model's 5 classes, got 2"):
        scanned(classes=["a", "b"])
    unlabeled = ob.scan(fixed, IMAGES, group="cyclic:2", progress=False,
                        task=ob.tasks.MultiLabel(outputs="probabilities"))  # fmt: skip
    with pytest.raises(InputError, match=r"labeled scan of .* got one of multilabel without"):
        ob.calibration.pairs_within(unlabeled)
