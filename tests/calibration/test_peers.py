"""Other libraries on data where they are right, and the cases where they are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical.calibration import ece, ks, mmce, mmce_squared, top_label


@pytest.fixture
def lenet(shared_data):
    archive = np.load(shared_data / "logits" / "lenet-5-cifar-10.npz")
    return archive["probs"], archive["labels"].astype(int)


@pytest.mark.peers
def test_netcal_agrees_on_ece_and_mmce(lenet):
    netcal = pytest.importorskip("netcal.metrics", reason="netcal is not installed")
    probs, labels = lenet
    confidence, correct = top_label(probs=probs, labels=labels)
    assert ece(confidence, correct).item() == pytest.approx(
        netcal.ECE(bins=15).measure(probs, labels), abs=1e-6
    )
    few = slice(0, 1500)
    theirs = netcal.MMCE().measure(probs[few], labels[few])
    assert mmce(confidence[few], correct[few]).item() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.peers
def test_the_gradient_of_netcals_mmce_is_not_finite_at_zero_error():
    package = pytest.importorskip("netcal.regularization", reason="netcal is not installed")
    logits = torch.tensor([[200.0, 0.0], [200.0, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 0])
    package.MMCEPenalty()(logits, labels).backward()
    assert not torch.isfinite(logits.grad).all()
    ours = logits.detach().requires_grad_()
    mmce_squared(*top_label(logits=ours, labels=labels)).backward()
    assert torch.isfinite(ours.grad).all()


def test_torchmetrics_sums_in_float32():
    from torchmetrics.functional.classification import binary_calibration_error

    z = torch.full((1 << 22,), 0.7)
    correct = torch.ones(1 << 22, dtype=torch.bool)
    exact = 1 - z[0].item()
    theirs = binary_calibration_error(z, correct, validate_args=False).item()
    assert abs(theirs - exact) > 0.01
    assert ece(z, correct).item() == pytest.approx(exact, rel=1e-9)


@pytest.mark.peers
def test_probmetrics_ks_is_that_of_two_classes_only(lenet):
    metrics = pytest.importorskip("probmetrics.metrics", reason="probmetrics is not installed")
    distributions = pytest.importorskip("probmetrics.distributions")
    probs, labels = (torch.from_numpy(part) for part in lenet)
    confidence, correct = top_label(probs=probs, labels=labels)
    measured = metrics.KolmogorovSmirnovCalibrationMetric().compute(
        distributions.CategoricalDirac(labels, 10), distributions.CategoricalProbs(probs)
    )
    d = (correct.double() - confidence.double())[confidence.argsort(stable=True)]
    exact = d.cumsum(0).abs().max().item() / len(d)
    assert ks(confidence, correct).item() == pytest.approx(exact, abs=1e-12)
    assert abs(float(measured) - exact) > 0.01
