"""Intervals of calibration measures beside loops over resamples, on one thread.

    python benchmarks/intervals.py               every row
    python benchmarks/intervals.py ece           some rows

An interval draws 1,000 resamples and 1,000 sets of calibrated labels, a loop 1,000 resamples only;
a tenth of each loop is timed. Peers that are absent are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from timing import Row, at_least, installed, run, seconds
from torch import Tensor

from orbical import calibration
from orbical.calibration.intervals.comparisons import compare
from orbical.calibration.intervals.measure_intervals import interval

RESAMPLES = 1000
TIMED = 100
Measured = Callable[[Tensor, Tensor], Any]


def pair(size: int) -> tuple[Tensor, Tensor]:
    """Confidences, and outcomes of a slightly overconfident model."""
    confidence = 0.1 + 0.9 * torch.rand(size)
    return confidence, torch.rand(size) < confidence**1.2


def loop_of(measure: Measured, confidence: Tensor, correct: Tensor) -> float:
    """Return the time of a loop over all resamples, from a part of it."""

    def part() -> None:
        for _ in range(TIMED):
            pick = torch.randint(len(confidence), (len(confidence),))
            measure(confidence[pick], correct[pick])

    return seconds(part, runs=1) * RESAMPLES / TIMED


def ece() -> Iterator[Row]:
    from torchmetrics.functional.classification import binary_calibration_error

    given = pair(100_000)
    peers: dict[str, Measured] = {
        "torchmetrics": partial(binary_calibration_error, n_bins=15, validate_args=False)
    }
    if netcal := installed("netcal.metrics"):
        peers["netcal"] = lambda z, y: netcal.ECE(bins=15).measure(z.numpy(), y.numpy().astype(int))
    loops = {name: loop_of(peer, *given) for name, peer in peers.items()}
    best = min(loops, key=loops.__getitem__)
    ours = seconds(lambda: interval("ece", *given, resamples=RESAMPLES))
    yield at_least("interval of ECE, 1e5", ours, f"loop of {best}", loops[best], 20)
    own = loop_of(calibration.ece, *given)
    yield at_least("interval of ECE, 1e5", ours, "loop of our own ECE", own, 20)


def bin_free() -> Iterator[Row]:
    given = pair(100_000)
    for name, function in (("ks", calibration.ks), ("esd", calibration.esd)):
        ours = seconds(lambda name=name: interval(name, *given, resamples=RESAMPLES), runs=2)
        own = loop_of(function, *given)
        yield at_least(f"interval of {name.upper()}, 1e5", ours, "loop of our own", own, 5)
    if relplot := installed("relplot"):
        ours = seconds(lambda: interval("smooth_ece", *given, resamples=RESAMPLES), runs=2)
        theirs = loop_of(lambda z, y: relplot.smECE(z.numpy(), y.numpy()), *given)
        yield at_least("interval of smooth ECE, 1e5", ours, "loop of relplot", theirs, 5)


def comparison() -> Iterator[Row]:
    confidence, correct = pair(100_000)
    other = confidence**1.1
    ours = seconds(
        lambda: compare("ece", (confidence, correct), (other, correct), resamples=RESAMPLES)
    )
    own = loop_of(lambda z, y: (calibration.ece(z, y), calibration.ece(z, y)), confidence, correct)
    yield at_least("comparison by ECE, 1e5", ours, "loop of our own ECE, twice", own, 10)


ROWS = [ece, bin_free, comparison]

if __name__ == "__main__":
    run(ROWS, __doc__)
