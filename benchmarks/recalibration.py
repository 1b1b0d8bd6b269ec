"""Recalibration and regression calibration beside the best of today's libraries, on one thread.

    python benchmarks/recalibration.py                   every row
    python benchmarks/recalibration.py temperature       some rows
    python benchmarks/recalibration.py --json out.json   and a file

The peers come with `pip install 'orbical[benchmarks]'`; a row goes without those that are absent.
A row is a function that yields `Row`s; a new one is added to `ROWS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from timing import Row, at_least, at_most, in_turns, installed, run, seconds
from torch import Tensor

from orbical.calibration.measures.variance_errors import ence, uce
from orbical.recalibrate import Isotonic, MatrixScaling, Temperature


def outputs(size: int, classes: int) -> tuple[Tensor, Tensor]:
    """Logits, and labels drawn from a less confident model."""
    logits = 3 * torch.randn(size, classes)
    return logits, torch.distributions.Categorical(logits=logits / 1.7).sample()


def lowest_nll(logits: Tensor, labels: Tensor) -> tuple[float, Callable[[float], float]]:
    """The least NLL over temperatures, by bisection on the slope in float64, and the NLL itself."""
    scores = logits.double() - logits.double().amax(1, keepdim=True)
    at_label = scores.gather(1, labels[:, None]).mean().item()

    def slope(inverse: float) -> float:
        return (torch.softmax(scores * inverse, 1) * scores).sum(1).mean().item() - at_label

    def nll(inverse: float) -> float:
        return torch.logsumexp(scores * inverse, 1).mean().item() - inverse * at_label

    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return nll((low + high) / 2), nll


def temperature_peers(logits: Tensor, labels: Tensor) -> dict[str, Callable[[], Any]]:
    """Each library's temperature scaling, given the inputs it likes best."""
    peers: dict[str, Callable[[], Any]] = {}
    scores, truth = logits.numpy(), labels.numpy()
    # sklearn's fit inside CalibratedClassifierCV(method="temperature"), without the wrapper
    if hasattr(sklearn := installed("sklearn.calibration"), "_TemperatureScaling"):
        peers["sklearn"] = lambda: sklearn._TemperatureScaling().fit(scores, truth)
    if probmetrics := installed("probmetrics.calibrators"):
        given = installed("probmetrics.distributions").CategoricalLogits(logits)
        for method in ("bisection", "lbfgs"):
            peers[f"probmetrics ({method})"] = lambda method=method: (
                probmetrics.TemperatureScalingCalibrator(opt=method).fit_torch(given, labels)
            )
    if netcal := installed("netcal.scaling"):
        # float64, because its optimizer does nothing on float32
        probs = torch.softmax(logits.double(), 1).numpy()
        peers["netcal"] = lambda: netcal.TemperatureScaling().fit(probs, truth)
    if uncertainty := installed("torch_uncertainty.post_processing"):
        data = torch.utils.data.TensorDataset(logits, labels)
        loader = torch.utils.data.DataLoader(data, batch_size=len(logits))

        def by_uncertainty() -> None:
            uncertainty.TemperatureScaler(model=torch.nn.Identity()).fit(loader, progress=False)

        peers["torch-uncertainty"] = by_uncertainty
    return peers


def temperature() -> Iterator[Row]:
    logits, labels = outputs(50_000, 100)
    spent = seconds(lambda: Temperature().fit(logits, labels), runs=10)
    times = {k: seconds(f, runs=2) for k, f in temperature_peers(logits, labels).items()}
    for name, theirs in times.items():
        if theirs == min(times.values()):
            name += " (the fastest)"
        yield at_least("temperature fit, 50,000 x 100", spent, name, theirs, 10)
    lowest, nll = lowest_nll(logits, labels)
    fitted = Temperature().fit(logits, labels)
    excess = nll(1 / fitted.temperature_) - lowest
    yield Row(
        "temperature fit, NLL above the optimum", f"{excess:.1e}", "limit", "1e-12",
        excess / 1e-12, "<= 1", excess <= 1e-12,
    )  # fmt: skip


def regression() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    mean = generator.normal(size=1_000_000)
    variance = generator.uniform(0.1, 4.0, size=1_000_000)
    target = mean + np.sqrt(variance) * generator.normal(size=1_000_000)
    tensors = tuple(torch.from_numpy(array) for array in (mean, variance, target))
    netcal = installed("netcal.metrics.regression")
    for name, ours in (("ENCE", ence), ("UCE", uce)):
        spent = seconds(lambda ours=ours: ours(*tensors, bins=15))
        if netcal:
            theirs = getattr(netcal, name)(bins=15)
            given = (mean, np.sqrt(variance))
            other = seconds(lambda theirs=theirs, given=given: theirs.measure(given, target))
            yield at_least(f"{name}, 1e6", spent, "netcal", other, 2)


def matrix_scaling() -> Iterator[Row]:
    """Matrix scaling is a penalized multinomial regression on the logits, solved to rounding."""
    from sklearn.linear_model import LogisticRegression

    for size in (5_000, 50_000):
        logits, labels = outputs(size, 10)
        scores, truth = logits.double().numpy(), labels.numpy()
        for name, options in (
            ("sklearn's logistic regression, tol=1e-8", {"tol": 1e-8, "max_iter": 1000}),
            ("the same, tol=1e-4", {}),
        ):
            ours, theirs = in_turns(
                lambda z=logits, y=labels: MatrixScaling().fit(z, y),
                lambda z=scores, y=truth, o=options: LogisticRegression(**o).fit(z, y),
                rounds=4,
            )
            yield at_most(f"matrix scaling, {size:,} x 10", ours, name, theirs, 1)


def isotonic() -> Iterator[Row]:
    """From logits to the fitted maps, as sklearn's regression does it after a softmax in torch."""
    from sklearn.isotonic import IsotonicRegression

    def fit(confidence: Tensor, correct: Tensor) -> None:
        IsotonicRegression(y_min=0, y_max=1).fit(confidence.numpy(), correct.double().numpy())

    def top(logits: Tensor, labels: Tensor) -> None:
        confidence, predicted = torch.softmax(logits, 1).max(1)
        fit(confidence, predicted == labels)

    def classes(logits: Tensor, labels: Tensor) -> None:
        for k, confidence in enumerate(torch.softmax(logits, 1).T):
            fit(confidence, labels == k)

    for size in (5_000, 50_000):
        given = outputs(size, 10)
        for peer in (top, classes):
            ours, theirs = in_turns(
                lambda given=given, peer=peer: Isotonic(reduce=peer.__name__).fit(*given),
                lambda given=given, peer=peer: peer(*given),
                rounds=10,
            )
            work = f"isotonic regression ({peer.__name__}), {size:,} x 10"
            yield at_most(work, ours, "sklearn", theirs, 1)


ROWS = [temperature, regression, matrix_scaling, isotonic]

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    run(ROWS, __doc__)
