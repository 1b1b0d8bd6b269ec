"""The metric classes of regression: batches and processes give what all samples at once give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torchmetrics import MetricCollection
from two_ranks import run_two_ranks

from orbical import calibration
from orbical.calibration import metrics
from orbical.errors import InputError

TABLE = {
    metrics.GENCE: calibration.gence,
    metrics.GENCESquared: calibration.gence_sq,
    metrics.GaussianNLL: calibration.gaussian_nll,
    metrics.GaussianCRPS: calibration.gaussian_crps,
    metrics.RegressionESD: calibration.regression_esd,
    metrics.ENCE: calibration.ence,
    metrics.UCE: calibration.uce,
}


def batches():
    generator = torch.Generator().manual_seed(0)
    sizes = (40, 7, 25)
    variance = [torch.rand(n, generator=generator) + 0.1 for n in sizes]
    mean = [torch.randn(n, generator=generator) for n in sizes]
    target = [
        m + v.sqrt() * torch.randn(len(m), generator=generator)
        for m, v in zip(mean, variance, strict=True)
    ]
    return list(zip(mean, variance, target, strict=True))


@pytest.mark.parametrize("kind", list(TABLE))
def test_batches_give_what_all_samples_give(kind):
    metric = kind()
    for batch in batches():
        metric.update(batch[:2], batch[2])
    whole = [torch.cat(part) for part in zip(*batches(), strict=True)]
    torch.testing.assert_close(metric.compute(), TABLE[kind](*whole))
    metric.reset()
    metric.update(batches()[0][:2], batches()[0][2])
    torch.testing.assert_close(metric.compute(), TABLE[kind](*batches()[0]))


@pytest.mark.parametrize("kind", [metrics.GENCE, metrics.GENCESquared, metrics.GaussianNLL])
def test_vectors_are_averaged_over_samples(kind):
    mean, target = torch.randn(2, 30, 3, generator=torch.Generator().manual_seed(1))
    variance = torch.full((30, 3), 0.7)
    metric = kind()
    for rows in (slice(0, 11), slice(11, 30)):
        metric.update((mean[rows], variance[rows]), target[rows])
    torch.testing.assert_close(metric.compute(), TABLE[kind](mean, variance, target))


@pytest.mark.parametrize("kind", list(TABLE))
def test_weights_of_batches_are_weights_of_the_function(kind):
    metric, weights = kind(), []
    for mean, variance, target in batches():
        weights.append(torch.linspace(0, 1, len(mean), dtype=torch.float64))
        metric.update({"mean": mean, "variance": variance}, target, weights[-1])
    whole = [torch.cat(part) for part in zip(*batches(), strict=True)]
    expected = TABLE[kind](*whole, weights=torch.cat(weights))
    torch.testing.assert_close(metric.compute(), expected)


def test_metrics_of_regression_work_in_a_collection():
    collection = MetricCollection([kind() for kind in TABLE])
    for mean, variance, target in batches():
        collection.update((mean, variance), target)
    whole = [torch.cat(part) for part in zip(*batches(), strict=True)]
    for kind, function in TABLE.items():
        torch.testing.assert_close(collection.compute()[kind.__name__], function(*whole))
    assert {"RegressionESD", "ENCE", "UCE"} in [{*g} for g in collection.compute_groups.values()]


def test_predictions_that_are_not_gaussian_are_refused_by_name():
    for preds, message in (
        (torch.zeros(3), r"preds: expected \(mean, variance\), got Tensor"),
        ({"mean": torch.zeros(3)}, "preds: expected the keys mean and variance"),
    ):
        with pytest.raises(InputError, match=message):
            metrics.GENCE().update(preds, torch.zeros(3))


def test_measures_without_a_class_have_a_metric():
    entry = calibration.MEASURES["mahalanobis_calibration"]
    metric = entry.metric(levels=9)
    for mean, variance, target in batches():
        metric.update((mean[:, None], variance[:, None]), target[:, None])
    whole = [torch.cat(part)[:, None] for part in zip(*batches(), strict=True)]
    expected = calibration.mahalanobis_calibration(*whole, levels=9).error
    torch.testing.assert_close(metric.compute(), expected)


def work(rank: int, folder: Path) -> None:
    found = {}
    for kind in TABLE:
        metric = kind()
        for batch in batches()[: 1 if rank else 3]:
            metric.update(batch[:2], batch[2])
        found[kind.__name__] = metric.compute().item()
    (folder / f"{rank}.json").write_text(json.dumps(found))


def test_two_processes_agree_with_one(tmp_path):
    run_two_ranks(__file__, tmp_path)
    seen = [*batches(), batches()[0]]
    whole = [torch.cat(part) for part in zip(*seen, strict=True)]
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        for kind, function in TABLE.items():
            assert found[kind.__name__] == pytest.approx(function(*whole).item(), abs=1e-12)


def test_a_variance_that_is_not_positive_is_refused_at_once():
    with pytest.raises(ValueError, match="variance"):
        metrics.GENCE().update((torch.zeros(2), torch.zeros(2)), torch.zeros(2))
