"""One column of a binary classifier is class 1 of two, wherever outputs are taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import orbical as ob
from orbical import losses, recalibrate, training
from orbical.calibration import metrics
from orbical.errors import InputError, ModelError

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(200, generator=GENERATOR, dtype=torch.float64)
LABELS = (torch.rand(200, generator=GENERATOR) < torch.sigmoid(2 * LOGITS)).long()
TWO_LOGITS = torch.stack([torch.zeros_like(LOGITS), LOGITS], 1)
PROBS, TWO_PROBS = torch.sigmoid(LOGITS), torch.softmax(TWO_LOGITS, 1)

shapes = pytest.mark.parametrize("shape", [(-1,), (-1, 1)], ids=str)


@shapes
@pytest.mark.parametrize("labels", [LABELS, LABELS[:, None], LABELS.bool()], ids=["N", "N1", "b"])
def test_functions_of_outputs_take_it(shape: tuple[int, ...], labels: Tensor) -> None:
    for function in (ob.calibration.top_label, ob.calibration.nll, ob.calibration.brier):
        for name, one, two in (("probs", PROBS, TWO_PROBS), ("logits", LOGITS, TWO_LOGITS)):
            got = function(**{name: one.reshape(shape)}, labels=labels)
            torch.testing.assert_close(got, function(**{name: two}, labels=LABELS))


def test_leading_axes_keep_their_place() -> None:
    orbit = torch.stack([PROBS, 1 - PROBS])[..., None]
    confidence, correct = ob.calibration.top_label(probs=orbit, labels=LABELS)
    assert confidence.shape == correct.shape == (2, 200)
    torch.testing.assert_close(confidence[0], TWO_PROBS.amax(1))


@shapes
@pytest.mark.parametrize(
    "kind",
    [
        metrics.ECE,
        metrics.NLL,
        metrics.KS,
        metrics.SAvUC,
    ],
)
def test_metrics_take_it(kind: type[metrics.ECE], shape: tuple[int, ...]) -> None:
    for one, two, of_logits in ((PROBS, TWO_PROBS, False), (LOGITS, TWO_LOGITS, True)):
        metric, reference = kind(from_logits=of_logits), kind(from_logits=of_logits)
        metric.update(one.reshape(shape), LABELS)
        reference.update(two, LABELS)
        torch.testing.assert_close(metric.compute(), reference.compute())


def test_a_metric_agrees_with_that_of_torchmetrics_for_binary_outputs() -> None:
    torchmetrics = pytest.importorskip("torchmetrics.classification")
    ours, theirs = metrics.Accuracy(), torchmetrics.BinaryAccuracy()
    for metric in (ours, theirs):
        metric.update(PROBS, LABELS)
    assert float(ours.compute()) == pytest.approx(float(theirs.compute()))


@shapes
@pytest.mark.parametrize("name", losses.classification_losses.__all__)
def test_losses_take_it(name: str, shape: tuple[int, ...]) -> None:
    loss = getattr(losses, name)
    column = LOGITS.clone().requires_grad_()
    got, expected = loss(column.reshape(shape), LABELS), loss(TWO_LOGITS, LABELS)
    torch.testing.assert_close(got, expected)
    (slope,) = torch.autograd.grad(got, column)
    assert slope.abs().sum() > 0


def test_dense_losses_and_class_weights_take_it() -> None:
    criterion = losses.ECELoss(weight=torch.tensor([1.0, 3.0]))
    expected = criterion(TWO_LOGITS, LABELS)
    for shape in ((-1,), (-1, 1)):
        torch.testing.assert_close(criterion(LOGITS.reshape(shape), LABELS), expected)
    dense = criterion(LOGITS.reshape(2, 1, 10, 10), LABELS.reshape(2, 10, 10))
    torch.testing.assert_close(dense, expected)
    with pytest.raises(InputError, match=r"weight: expected shape \(2,\)"):
        losses.ECELoss(weight=torch.ones(1))(LOGITS, LABELS)


@shapes
def test_the_likelihood_of_a_training_step_is_the_binary_cross_entropy(shape: tuple[int, ...]):
    got = training.likelihood(nn.Identity(), (LOGITS.reshape(shape), LABELS))
    expected = nn.functional.binary_cross_entropy_with_logits(LOGITS.float(), LABELS.float())
    torch.testing.assert_close(got, expected)


@shapes
@pytest.mark.parametrize("kind", ["torch", "numpy", "pandas", "list"])
def test_calibrators_take_it(kind: str, shape: tuple[int, ...]) -> None:
    reference = recalibrate.Temperature().fit(TWO_LOGITS.numpy(), LABELS)
    column = LOGITS.reshape(shape).numpy()
    given = {
        "torch": torch.as_tensor,
        "numpy": np.asarray,
        "pandas": pd.Series if column.ndim == 1 else pd.DataFrame,
        "list": np.ndarray.tolist,
    }[kind](column)
    calibrator = recalibrate.Temperature().fit(given, LABELS)
    np.testing.assert_allclose(
        calibrator.predict_proba(given), reference.predict_proba(TWO_LOGITS), rtol=1e-12
    )
    of_probs = recalibrate.Isotonic(outputs="probabilities").fit(PROBS.reshape(shape), LABELS)
    assert of_probs.predict_proba(PROBS.reshape(shape)).shape == (200, 2)


@shapes
def test_scans_take_it(shape: tuple[int, ...]) -> None:
    def one(images: Tensor) -> Tensor:
        return (images.mean((1, 2, 3)) + images[:, 0, 0, 0]).reshape(shape)

    def two(images: Tensor) -> Tensor:
        column = one(images).reshape(-1)
        return torch.stack([torch.zeros_like(column), column], 1)

    images = torch.randn(6, 1, 4, 4, generator=GENERATOR)
    scan = ob.scan(
        {"one": one, "two": two},
        (images, LABELS[:6]),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    scores = scan.data["score"]
    np.testing.assert_allclose(scores.sel(model="one"), scores.sel(model="two"), rtol=1e-6)


def test_predicted_classes_are_not_taken_for_scores() -> None:
    task = ob.tasks.Classification()
    with pytest.raises(ModelError, match="expected the scores of classes"):
        task.read(torch.tensor([0, 1, 1]))
