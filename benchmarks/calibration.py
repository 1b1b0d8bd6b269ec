"""Calibration measures beside the best of today's libraries, on one thread.

    python benchmarks/calibration.py                   every row
    python benchmarks/calibration.py esd ece           some rows
    python benchmarks/calibration.py --json out.json   and a file

The peers come with `pip install 'orbical[benchmarks]'`; a row goes without those that are absent.
A row is a function that yields `Row`s; a new one is added to `ROWS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Row, at_least, at_most, extra_megabytes, in_turns, installed, run, seconds
from torch import Tensor

from orbical import calibration


def pair(size: int) -> tuple[Tensor, Tensor]:
    """Confidences of a ten-class problem, and outcomes of a slightly overconfident model."""
    confidence = 0.1 + 0.9 * torch.rand(size)
    return confidence, torch.rand(size) < confidence**1.2


def outputs(size: int, classes: int) -> tuple[Tensor, Tensor]:
    """Probabilities as a trained classifier gives them, mostly confident, and labels."""
    logits = torch.randn(size, classes)
    favorite = torch.randint(classes, (size, 1))
    logits.scatter_(1, favorite, math.log(classes) + 2 + 2 * torch.randn(size, 1))
    labels = torch.distributions.Categorical(logits=logits / 1.2).sample()
    return torch.softmax(logits, -1), labels


def spread_outputs(size: int, classes: int) -> tuple[Tensor, Tensor]:
    """Probabilities of independent logits, spread over the classes as no trained network's are."""
    logits = 3 * torch.randn(size, classes)
    labels = torch.distributions.Categorical(logits=logits / 1.2).sample()
    return torch.softmax(logits, -1), labels


def forward_backward(
    measure: Callable[[Tensor, Tensor], Tensor], confidence: Tensor, correct: Tensor
) -> Callable[[], None]:
    leaf = confidence.clone().requires_grad_()

    def step() -> None:
        leaf.grad = None
        measure(leaf, correct).backward()

    return step


def pseudo_code_esd(confidence: Tensor, correct: Tensor) -> Tensor:
    """The pseudo-code of the ESD paper (appendix C), with its n x n matrices."""
    n = len(confidence)
    diff = correct.float() - confidence
    split = torch.ones(n, n) - torch.eye(n)
    confidence_mat = confidence.expand(n, n)
    ineq = torch.le(confidence_mat, confidence_mat.T).float()
    diff_mat = diff.view(1, n).expand(n, n)
    x_mat = torch.mul(diff_mat, ineq) * split
    mean_row = torch.sum(x_mat, dim=1) / (n - 1)
    x_mat_squared = torch.mul(x_mat, x_mat)
    var = 1 / (n - 2) * torch.sum(x_mat_squared, dim=1) - (n - 1) / (n - 2) * torch.mul(
        mean_row, mean_row
    )
    d_k_sq_vector = torch.mul(mean_row, mean_row) - var / (n - 1)
    return torch.sum(d_k_sq_vector) / n


def esd() -> Iterator[Row]:
    confidence, correct = pair(1_000_000)
    sort = seconds(lambda: torch.sort(confidence))
    ours = seconds(forward_backward(calibration.esd, confidence, correct))
    yield at_most("ESD forward + backward, 1e6", ours, "torch.sort", sort, 0.6)
    confidence, correct = pair(16_384)
    ours = seconds(forward_backward(calibration.esd, confidence, correct), runs=30)
    theirs = seconds(forward_backward(pseudo_code_esd, confidence, correct), runs=1)
    yield at_least("ESD forward + backward, 16,384", ours, "paper's pseudo-code", theirs, 5000)


def mmce() -> Iterator[Row]:
    confidence, correct = pair(1_000_000)
    sort = seconds(lambda: torch.sort(confidence))
    ours = seconds(forward_backward(calibration.mmce_squared, confidence, correct))
    yield at_most("MMCE forward + backward, 1e6", ours, "torch.sort", sort, 0.8)


def ece_peers(probs: Tensor, labels: Tensor) -> dict[str, Callable[[], Any]]:
    """Each library's way from probabilities and labels to a 15-bin ECE."""
    peers: dict[str, Callable[[], Any]] = {}
    classes = probs.shape[-1]
    if netcal := installed("netcal.metrics"):
        arrays = probs.numpy(), labels.numpy()
        peers["netcal"] = lambda: netcal.ECE(bins=15).measure(*arrays)
    if distributions := installed("probmetrics.distributions"):
        metric = installed("probmetrics.metrics").CalibrationError(n_bins=15, norm="l1")
        given = distributions.CategoricalProbs(probs)
        truth = distributions.CategoricalDirac(labels, classes)
        peers["probmetrics"] = lambda: metric.compute(truth, given)
    if uncertainty := installed("torch_uncertainty.metrics"):

        def by_uncertainty() -> Any:
            metric = uncertainty.CalibrationError(
                task="multiclass", num_classes=classes, num_bins=15
            )
            metric.update(probs, labels)
            return metric.compute()

        peers["torch-uncertainty"] = by_uncertainty
    return peers


def ece() -> Iterator[Row]:
    from torchmetrics.functional.classification import multiclass_calibration_error

    for size, classes, name, over_torchmetrics, over_next in (
        (1_000_000, 10, "ECE, 1e6 x 10", 3, 2),
        (100_000, 1000, "ECE, 1e5 x 1000", 10, 4),
    ):
        probs, labels = outputs(size, classes)

        def ours(probs: Tensor = probs, labels: Tensor = labels) -> Tensor:
            return calibration.ece(*calibration.top_label(probs=probs, labels=labels))

        ours(probs[:100], labels[:100])  # loads code, which is not what is measured
        extra = extra_megabytes(ours)
        spent = seconds(ours)
        theirs = seconds(
            lambda p=probs, y=labels, c=classes: multiclass_calibration_error(p, y, c, n_bins=15),
            runs=3,
        )
        yield at_least(name, spent, "torchmetrics", theirs, over_torchmetrics)
        times = {k: seconds(peer, runs=2) for k, peer in ece_peers(probs, labels).items()}
        if times:
            best = min(times, key=times.__getitem__)
            yield at_least(name, spent, f"next best: {best}", times[best], over_next)
        yield Row(
            f"{name}, memory", f"{extra:.3g} MB", "limit", "10 MB", extra / 10, "<= 1", extra < 10
        )


def ece_spread() -> Iterator[Row]:
    """The same comparison on data that suit the measure less; the targets are for `ece`."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    for size, classes, target in ((1_000_000, 10, 3), (100_000, 1000, 10)):
        probs, labels = spread_outputs(size, classes)
        ours = seconds(
            lambda p=probs, y=labels: calibration.ece(*calibration.top_label(probs=p, labels=y))
        )
        theirs = seconds(
            lambda p=probs, y=labels, c=classes: multiclass_calibration_error(p, y, c, n_bins=15),
            runs=3,
        )
        name = f"ECE, {size:,} x {classes}, spread outputs"
        yield at_least(name, ours, "torchmetrics", theirs, target)


def metric_update() -> Iterator[Row]:
    """A batch of an evaluation loop: a few hundred updates, since one is too short to time."""
    from torchmetrics.classification import MulticlassCalibrationError

    from orbical.calibration import metrics

    probs, labels = outputs(128, 10)

    def updates(metric: Any) -> Callable[[], None]:
        def step() -> None:
            metric.reset()
            for _ in range(300):
                metric.update(probs, labels)

        return step

    ours, theirs = (
        seconds(updates(metric), runs=10) / 300
        for metric in (metrics.ECE(), MulticlassCalibrationError(10))
    )
    yield at_most("metric `update`, 128 x 10", ours, "torchmetrics", theirs, 1.5)


def interval() -> Iterator[Row]:
    """An interval of ECE, beside a loop over resamples with the fastest peer (50 of them timed)."""
    from torchmetrics.functional.classification import binary_calibration_error

    confidence, correct = pair(100_000)
    resamples, timed = 1000, 50
    peers: dict[str, Callable[[Tensor], Any]] = {
        "torchmetrics": lambda pick: binary_calibration_error(
            confidence[pick], correct[pick], n_bins=15, validate_args=False
        )
    }
    if netcal := installed("netcal.metrics"):
        arrays = confidence.numpy(), correct.numpy().astype(int)
        peers["netcal"] = lambda pick: netcal.ECE(bins=15).measure(*(a[pick] for a in arrays))

    def loop(peer: Callable[[Tensor], Any]) -> None:
        for _ in range(timed):
            peer(torch.randint(len(confidence), (len(confidence),)))

    ours = seconds(lambda: calibration.interval("ece", confidence, correct, resamples=resamples))
    loops = {name: seconds(lambda p=peer: loop(p), runs=1) for name, peer in peers.items()}
    best = min(loops, key=loops.__getitem__)
    theirs = loops[best] * resamples / timed
    yield at_least("interval of ECE, 1,000 resamples, 1e5", ours, f"loop of {best}", theirs, 20)


def repeated(function: Callable[[], Any], times: int) -> Callable[[], None]:
    """A call that is long enough to be timed."""

    def step() -> None:
        for _ in range(times):
            function()

    return step


def smooth_ece() -> Iterator[Row]:
    if relplot := installed("relplot"):
        confidence, correct = pair(1000)
        arrays = confidence.double().numpy(), correct.double().numpy()
        ours = repeated(lambda: calibration.smooth_ece(confidence, correct), 20)
        theirs = repeated(lambda: relplot.smECE(*arrays), 20)
        spent, other = in_turns(ours, theirs, 12)
        yield at_most("smooth ECE, 1,000", spent / 20, "relplot", other / 20, 1)


def nll() -> Iterator[Row]:
    for size, classes, times in ((128, 10, 300), (1_000_000, 10, 1), (100_000, 100, 1)):
        logits, labels = 3 * torch.randn(size, classes), torch.randint(classes, (size,))
        given = {"logits": logits, "labels": labels}
        ours = repeated(lambda given=given: calibration.nll(**given), times)
        theirs = repeated(lambda z=logits, y=labels: torch.nn.functional.cross_entropy(z, y), times)
        spent, other = in_turns(ours, theirs, 10)
        name = f"NLL, {size:,} x {classes}"
        yield at_most(name, spent / times, "torch cross_entropy", other / times, 1)


ROWS = [esd, mmce, ece, ece_spread, metric_update, interval, smooth_ece, nll]

if __name__ == "__main__":
    run(ROWS, __doc__)
