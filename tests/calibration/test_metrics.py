from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchmetrics import MetricCollection

from orbical.calibration import (
    accuracy,
    brier,
    ece,
    error_of,
    esd,
    ks,
    metrics,
    mmce,
    nll,
    s_avuc,
    sb_ece,
    skce,
    smooth_ece,
    top_label,
)
from orbical.errors import InputError


def of_pair(measure, **options):
    return lambda logits, labels: measure(*top_label(logits=logits, labels=labels), **options)


def of_outputs(score):
    return lambda logits, labels: score(logits=logits, labels=labels)


TABLE = {
    "ECE": (lambda: metrics.ECE(bins=12, norm="l2"), of_pair(ece, bins=12, norm="l2")),
    "EqualMassECE": (lambda: metrics.EqualMassECE(bins=7), of_pair(ece, bins=7, binning="mass")),
    "SmoothECE": (metrics.SmoothECE, of_pair(smooth_ece)),
    "KS": (metrics.KS, of_pair(ks)),
    "ESD": (metrics.ESD, of_pair(esd)),
    "MMCE": (lambda: metrics.MMCE(phi=0.2), of_pair(mmce, phi=0.2)),
    "SKCE": (metrics.SKCE, of_pair(skce)),
    "SBECE": (
        lambda: metrics.SBECE(bins=9, temperature=0.02),
        of_pair(sb_ece, bins=9, temperature=0.02),
    ),
    "SAvUC": (lambda: metrics.SAvUC(kappa=0.4), of_outputs(partial(s_avuc, kappa=0.4))),
    "NLL": (metrics.NLL, of_outputs(nll)),
    "Brier": (metrics.Brier, of_outputs(brier)),
    "Accuracy": (metrics.Accuracy, of_outputs(accuracy)),
}


def batches(count: int = 4, size: int = 50) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        (
            torch.randn(size, 3, generator=generator),
            torch.randint(0, 3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", TABLE)
def test_a_metric_of_batches_is_the_function_of_all_samples(name):
    make, function = TABLE[name]
    metric = make()
    for logits, labels in batches():
        metric.update(logits=logits, labels=labels)
    logits, labels = (torch.cat(part) for part in zip(*batches(), strict=True))
    assert metric.compute().item() == pytest.approx(function(logits, labels).item(), abs=1e-12)
    metric.reset()
    batch = metric(probs=torch.softmax(logits, -1), labels=labels)
    assert batch.item() == pytest.approx(function(logits, labels).item(), abs=1e-6)


@pytest.mark.parametrize("name", TABLE)
def test_a_metric_survives_pickling(name):
    metric = TABLE[name][0]()
    metric.update(logits=batches()[0][0], labels=batches()[0][1])
    again = pickle.loads(pickle.dumps(metric))
    assert again.compute() == metric.compute()


@pytest.mark.parametrize("name", ["ECE", "SmoothECE", "SBECE", "SAvUC", "NLL", "Brier", "Accuracy"])
def test_a_metric_of_sums_does_not_grow(name):
    metric = TABLE[name][0]()
    sizes = []
    for logits, labels in batches():
        metric.update(logits=logits, labels=labels)
        sizes.append(sum(getattr(metric, state).numel() for state in metric._defaults))
    assert len(set(sizes)) == 1


def test_metrics_work_in_a_collection():
    collection = MetricCollection([metrics.ECE(), metrics.ESD(), metrics.NLL()])
    logits, labels = batches()[0]
    collection.update(logits=logits, labels=labels)
    assert set(collection.compute()) == {"ECE", "ESD", "NLL"}


def test_ece_gives_its_diagram():
    metric = metrics.ECE(bins=5)
    for logits, labels in batches():
        metric.update(logits=logits, labels=labels)
    assert metric.reliability().count.sum() == 200
    assert error_of(metric.reliability()) == metric.compute()


def _work(rank: int, folder: str) -> None:
    rendezvous = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", rendezvous, rank=rank, world_size=2)
    values = {}
    for name, (make, _) in TABLE.items():
        metric = make()
        # Ranks hold different numbers of samples.
        for logits, labels in batches()[: 1 if rank else 3]:
            metric.update(logits=logits, labels=labels)
        values[name] = metric.compute().item()
    Path(folder, f"{rank}.json").write_text(json.dumps(values))
    dist.destroy_process_group()


def test_two_processes_agree_with_one(tmp_path):
    # Forked, because a spawned process could not import this file by its name.
    mp.start_processes(_work, args=(str(tmp_path),), nprocs=2, start_method="fork")
    seen = [*batches()[:3], batches()[0]]
    logits, labels = (torch.cat(part) for part in zip(*seen, strict=True))
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        for name, (_, function) in TABLE.items():
            expected = function(logits, labels).item()
            assert found[name] == pytest.approx(expected, abs=1e-12), name


def test_bad_options_are_refused_when_the_metric_is_made():
    with pytest.raises(InputError, match="bins"):
        metrics.ECE(bins=0)
    with pytest.raises(InputError, match="norm"):
        metrics.EqualMassECE(norm="l7")
    with pytest.raises(InputError, match="phi"):
        metrics.MMCE(phi=0)
    with pytest.raises(InputError, match="bandwidth"):
        metrics.SmoothECE(bandwidth=-1.0)
