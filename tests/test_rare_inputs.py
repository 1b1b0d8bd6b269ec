"""Inputs that are rare and right: each was once answered wrongly, or refused in other words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import calibration
from orbical.calibration import metrics
from orbical.errors import InputError
from orbical.interface.selection import labels_alone

IMAGES = torch.rand(8, 1, 6, 6, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(8) % 2


def scanned(model, **options):
    task = options.pop("task", "classification")
    return ob.scan(model, (IMAGES, LABELS), group="cyclic:4", task=task, progress=False, **options)


def test_several_labels_are_stored_under_their_name():
    task = ob.tasks.MultiLabel()
    truth = torch.stack([LABELS, 1 - LABELS], 1)
    scan = ob.scan(
        lambda x: x.mean((2, 3)).expand(-1, 2),
        (IMAGES, truth),
        group="cyclic:4",
        task=task,
        progress=False,
    )
    assert scan.data["true_labels"].values.tolist() == truth.tolist()


def test_a_column_of_means_is_not_compared_with_all_targets():
    y = np.random.default_rng(0).normal(size=50)
    outputs = {"mean": np.zeros((50, 1)), "target": y}
    with pytest.raises(InputError, match=r"target: expected shape \(50, 1\), as the mean has"):
        ob.conformal.coverage_table(outputs, ob.conformal.Absolute(0.9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounded_probabilities_are_shares_everywhere(dtype):
    row = torch.tensor([1.0005, 0.0] if dtype == torch.float32 else [0.9, 0.1], dtype=dtype)
    task = ob.tasks.Classification(outputs="probabilities")
    scan = scanned(lambda x: row.expand(len(x), 2), task=task)
    assert float(scan.data["confidence"].max()) <= 1
    ob.calibration.along_orbit(scan, "ece", interval=True, resamples=20)
    ob.nero.aggregate(scan, interval=True)


@pytest.mark.parametrize(
    ("dtype", "row"),
    [
        (torch.float16, [0.03900146484375, 0.3466796875, 0.54736328125, 0.066650390625]),
        (torch.bfloat16, [0.01092529296875, 0.83984375, 0.056884765625, 0.09033203125]),
    ],
)
def test_a_softmax_in_half_precision_is_noticed(dtype, row):
    with pytest.warns(UserWarning, match="every row is >= 0 and sums to 1"):
        scanned(lambda x: torch.tensor(row, dtype=dtype).expand(len(x), 4))


def test_an_infinite_loss_without_weight_does_not_count():
    probs, labels = torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([0, 0])
    weights = torch.tensor([0.0, 1.0])
    metric = metrics.NLL()
    metric.update(probs, labels, weights)
    given = {"probs": probs, "labels": labels, "weights": weights}
    table = calibration.classification_table(**given, only="nll")
    expected = float(calibration.nll(**given))
    assert float(metric.compute()) == pytest.approx(expected)
    assert float(table["nll"].value) == pytest.approx(expected)


def test_one_sample_may_have_a_column_of_labels_too():
    assert ob.losses.mmce(torch.zeros(1, 3), torch.tensor([[0]])).shape == ()
    assert float(calibration.accuracy(probs=[[0.9, 0.1]], labels=[[0]])) == 1


def test_a_confidence_that_rounding_lifts_above_1_has_an_interval():
    found = calibration.share_interval([True] * 20, np.float32([1.0] * 19 + [1.0000001]))
    assert np.isfinite([float(found.calibrated_low), float(found.calibrated_high)]).all()


def test_symmetry_of_covariances_does_not_depend_on_their_unit():
    for unit in (1e-9, 1.0, 1e9):
        skewed = unit * np.array([[[1.0, 0.5], [0.0, 1.0]]])
        with pytest.raises(InputError, match="symmetric covariances"):
            ob.bounds.ValueTable(orbit=[0], value=[[0.0, 0.0]], variance=skewed)


def test_outputs_in_memory_may_have_gradients_and_a_column_of_labels():
    logits = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.arange(40) % 3
    method = ob.conformal.LAC(0.8)
    found = ob.conformal.along_orbit({"logits": logits, "labels": labels[:, None]}, method)
    plain = ob.conformal.along_orbit({"logits": logits.detach(), "labels": labels}, method)
    assert found.coverage.equals(plain.coverage)
    with pytest.raises(InputError, match="labels: expected 40 labels"):
        ob.conformal.along_orbit({"logits": logits, "labels": labels[:39]}, method)


def test_a_class_named_twice_counts_once():
    assert labels_alone(["label:6,6,9,06"]) == (6, 9)


def test_averages_of_one_sample_are_refused_by_the_name_of_the_scan():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2))
    scan = ob.scan(
        net, (IMAGES[:1], LABELS[:1]), group="cyclic:4", task="classification",
        keep="probabilities", progress=False,
    )  # fmt: skip
    with pytest.raises(InputError, match="scan: expected at least 2 finished samples, got 1"):
        ob.nero.averaging(scan)


def test_progress_ends_at_the_whole_after_running_out_of_memory():
    seen, failed = [], []

    def net(x):
        if seen and not failed:
            failed.append(True)
            raise torch.OutOfMemoryError
        return x.mean((2, 3)).expand(-1, 2)

    def progress(done, total):
        seen.append(done / total)

    data = (IMAGES, LABELS)
    ob.scan(net, data, group="cyclic:4", task="classification", batch_size=8, progress=progress)
    assert failed
    assert seen[-1] == max(seen) == 1
