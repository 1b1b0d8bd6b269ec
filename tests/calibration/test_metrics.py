from __future__ import annotations

import inspect
import json
import math
import pickle
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassCalibrationError
from two_ranks import run_two_ranks

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
    def of_logits(logits, labels, **weights):
        return measure(*top_label(logits=logits, labels=labels), **options, **weights)

    return of_logits


def of_outputs(score):
    return lambda logits, labels, **weights: score(logits=logits, labels=labels, **weights)


TABLE = {
    "ECE": (partial(metrics.ECE, bins=12, norm="l2"), of_pair(ece, bins=12, norm="l2")),
    "EqualMassECE": (partial(metrics.EqualMassECE, bins=7), of_pair(ece, bins=7, binning="mass")),
    "SmoothECE": (metrics.SmoothECE, of_pair(smooth_ece)),
    "KS": (metrics.KS, of_pair(ks)),
    "ESD": (metrics.ESD, of_pair(esd)),
    "MMCE": (partial(metrics.MMCE, phi=0.2), of_pair(mmce, phi=0.2)),
    "SKCE": (metrics.SKCE, of_pair(skce)),
    "SBECE": (
        partial(metrics.SBECE, bins=9, temperature=0.02),
        of_pair(sb_ece, bins=9, temperature=0.02),
    ),
    "SAvUC": (partial(metrics.SAvUC, kappa=0.4), of_outputs(partial(s_avuc, kappa=0.4))),
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


def everything() -> tuple[torch.Tensor, torch.Tensor]:
    logits, labels = (torch.cat(part) for part in zip(*batches(), strict=True))
    return logits, labels


every_metric = pytest.mark.parametrize("name", TABLE)


@every_metric
def test_a_metric_of_batches_is_the_function_of_all_samples(name):
    make, function = TABLE[name]
    metric = make(from_logits=True)
    for preds, target in batches():
        metric.update(preds, target)
    logits, labels = everything()
    assert metric.compute().item() == pytest.approx(function(logits, labels).item(), abs=1e-12)
    of_probabilities = make()
    batch = of_probabilities(torch.softmax(logits, -1), labels)
    assert batch.item() == pytest.approx(function(logits, labels).item(), abs=1e-6)


@every_metric
def test_weights_of_batches_are_weights_of_the_function(name):
    make, function = TABLE[name]
    metric = make(from_logits=True)
    weights = torch.rand(4, 50, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for (preds, target), mass in zip(batches(), weights, strict=True):
        metric.update(preds, target, mass)
    expected = function(*everything(), weights=weights.reshape(-1))
    assert metric.compute().item() == pytest.approx(expected.item(), abs=1e-12)
    with pytest.raises(InputError, match="weights: expected"):
        metric.update(*batches()[0], -weights[0])


@every_metric
def test_ignored_targets_leave_no_trace(name):
    make, _ = TABLE[name]
    preds, target = batches()[0]
    dirty = torch.where(torch.arange(50) % 3 == 0, -100, target)
    metric, clean = make(from_logits=True, ignore_index=-100), make(from_logits=True)
    metric.update(preds, dirty)
    metric.update(preds, torch.full((50,), -100))
    kept = dirty != -100
    clean.update(preds[kept], target[kept])
    assert metric.compute() == clean.compute()


@every_metric
def test_images_of_classes_and_single_columns_are_taken_as_torchmetrics_takes_them(name):
    make, _ = TABLE[name]
    preds, target = everything()
    flat, image = make(from_logits=True), make(from_logits=True)
    flat.update(preds, target)
    image.update(preds.reshape(8, 25, 3).movedim(-1, 1), target.reshape(8, 25))
    assert image.compute() == flat.compute()
    for from_logits in (False, True):
        one, two = make(from_logits=from_logits), make(from_logits=from_logits)
        column = preds[:, 0] if from_logits else preds[:, 0].sigmoid()
        other = torch.zeros_like(column) if from_logits else 1 - column
        one.update(column, target > 0)
        two.update(torch.stack([other, column], -1), (target > 0).long())
        assert one.compute() == two.compute()


@every_metric
def test_a_metric_survives_pickling_and_its_state_dict(name):
    metric = TABLE[name][0](from_logits=True)
    metric.persistent(True)
    metric.update(*batches()[0])
    again = pickle.loads(pickle.dumps(metric))
    assert again.compute() == metric.compute()
    loaded = TABLE[name][0](from_logits=True)
    loaded.persistent(True)
    loaded.load_state_dict(metric.state_dict())
    loaded._update_count = 1
    assert loaded.compute() == metric.compute()


@pytest.mark.parametrize("name", ["ECE", "SmoothECE", "SBECE", "SAvUC", "NLL", "Brier", "Accuracy"])
def test_a_metric_of_sums_does_not_grow(name):
    metric = TABLE[name][0](from_logits=True)
    sizes = []
    for preds, target in batches():
        metric.update(preds, target)
        sizes.append(sum(getattr(metric, state).numel() for state in metric._defaults))
    assert len(set(sizes)) == 1


def test_a_collection_prefixes_the_names_of_our_metrics():
    collection = MetricCollection([metrics.ECE(), metrics.KS()], prefix="val/", postfix="_top")
    values = collection(batches()[0][0].softmax(-1), batches()[0][1])
    assert set(values) == set(collection.compute()) == {"val/ECE_top", "val/KS_top"}
    other = collection.clone(prefix="test/")
    assert set(other.compute()) == {"test/ECE_top", "test/KS_top"}


def test_a_measure_without_a_class_is_found_by_its_name():
    assert metrics.metric_of_measure("ks").settings == metrics.KS().settings
    with pytest.raises(InputError, match="measure: unknown name 'kz'"):
        metrics.metric_of_measure("kz")
    with pytest.raises(InputError, match="measure: expected a measure of confidence"):
        metrics.metric_of_measure("nll")


def test_a_collection_holds_our_metrics_beside_those_of_torchmetrics():
    collection = MetricCollection(
        {
            "accuracy": MulticlassAccuracy(3, average="micro"),
            "their_ece": MulticlassCalibrationError(3, n_bins=15),
            **{name: make() for name, (make, _) in TABLE.items()},
            "ece": metrics.ECE(bins=15),
        }
    )
    probs = [(preds.softmax(-1), target) for preds, target in batches()]
    steps = [collection(*batch) for batch in probs]
    whole = collection.compute()
    assert whole["Accuracy"].item() == pytest.approx(whole["accuracy"].item())
    assert whole["ece"].item() == pytest.approx(whole["their_ece"].item(), abs=1e-6)
    for name, (_, function) in TABLE.items():
        assert whole[name].item() == pytest.approx(function(*everything()).item(), abs=1e-6), name
        first = function(*batches()[0]).item()
        assert steps[0][name].item() == pytest.approx(first, abs=1e-6), name
    collection.reset()
    collection.update(*probs[1], weights=torch.arange(50.0))  # torchmetrics' own take none
    assert collection.compute()["Accuracy"] != collection.compute()["accuracy"]


def test_a_collection_keeps_one_copy_of_all_confidences():
    collection = MetricCollection([make(from_logits=True) for make, _ in TABLE.values()])
    for batch in batches():
        collection.update(*batch)
    groups = [{*group} for group in collection.compute_groups.values()]
    assert {"KS", "ESD", "MMCE", "SKCE", "EqualMassECE"} in groups
    assert len(groups) == len(TABLE) - 4
    for name, (_, function) in TABLE.items():
        expected = function(*everything()).item()
        assert collection.compute()[name].item() == pytest.approx(expected, abs=1e-12), name


def test_means_that_agree_at_first_stay_apart_in_a_collection():
    collection = MetricCollection([metrics.NLL(), metrics.Brier()])
    collection.update(torch.eye(3), torch.arange(3))  # both are 0
    collection.update(torch.full((3, 3), 1 / 3), torch.arange(3))
    found = collection.compute()
    assert found["Brier"].item() == pytest.approx(1 / 3)
    assert found["NLL"].item() == pytest.approx(math.log(3) / 2)


@every_metric
def test_what_is_left_out_keeps_metrics_apart_in_a_collection(name):
    (make, _), (logits, labels) = TABLE[name], everything()
    own = {"all": make(from_logits=True), "some": make(from_logits=True, ignore_index=2)}
    collection = MetricCollection({key: metric.clone() for key, metric in own.items()})
    for truth in (labels.clamp(max=1), labels):  # nothing is left out of the first batch
        for metric in (collection, *own.values()):
            metric.update(logits, truth)
    assert collection.compute() == {key: metric.compute() for key, metric in own.items()}


@every_metric
def test_a_last_batch_of_one_sample_does_not_end_the_epoch(name):
    (make, _), (logits, labels) = TABLE[name], everything()
    metric, whole = make(from_logits=True), make(from_logits=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [metric(logits[rows], labels[rows]) for rows in (slice(9), slice(9, 10))]
    few = name in ("ESD", "SKCE")
    assert values[1].isnan() == few == any("at least" in str(one.message) for one in caught)
    whole.update(logits[:10], labels[:10])
    torch.testing.assert_close(metric.compute(), whole.compute())


def test_a_batch_of_which_nothing_is_kept_has_no_value():
    logits, labels = everything()
    metric = metrics.KS(from_logits=True, ignore_index=0)
    with pytest.warns(UserWarning, match="expected at least 1 sample, got 0"):
        assert metric(logits, torch.zeros_like(labels)).isnan()


def test_a_metric_draws_itself():
    metric = metrics.ECE(from_logits=True)
    values = [metric(*batch) for batch in batches()]
    figure, axis = metric.plot(values)
    assert axis.get_ylim()[0] <= 0
    assert figure is axis.get_figure()


def test_ece_has_its_diagram():
    metric = metrics.ECE(bins=5, from_logits=True)
    for preds, target in batches():
        metric.update(preds, target)
    assert metric.reliability().count.sum() == 200
    assert error_of(metric.reliability()) == metric.compute()


def work(rank: int, folder: Path) -> None:
    values = {}
    for name, (make, _) in TABLE.items():
        metric = make(from_logits=True)
        # Ranks hold different numbers of samples.
        for preds, target in batches()[: 1 if rank else 3]:
            metric.update(preds, target)
        values[name] = metric.compute().item()
    (folder / f"{rank}.json").write_text(json.dumps(values))


def test_two_processes_agree_with_one(tmp_path):
    run_two_ranks(__file__, tmp_path)
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


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([[2.0, -1.0, 0.5]], [0], r"preds: .*; for logits pass from_logits=True to the metric"),
        ([[2.0, 1.0, 0.5]], [0], r"preds: .*; for logits pass from_logits=True to the metric"),
        (
            [[0.5, 0.3, 0.2]],
            [[0, 1, 0]],
            r"target: .*\(1,\), got shape \(1, 3\); .*target.argmax\(1\)",
        ),
        ([[0.5, 0.3, 0.2]], [0.5], r"target: expected integer class indices.* target.long\(\)"),
        ([[0.5, 0.3, 0.2]], [-100], r"target: .*; to leave samples out pass ignore_index=-100"),
    ],
)
def test_messages_of_metrics_name_their_own_arguments(preds, target, message):
    with pytest.raises(InputError, match=message):
        metrics.ECE().update(torch.tensor(preds), torch.tensor(target))


def test_bins_of_equal_mass_have_a_metric_of_their_own():
    with pytest.raises(InputError, match=r"binning: .*EqualMassECE"):
        metrics.ECE(binning="mass")


def test_the_signature_of_a_metric_has_the_options_of_its_measure():
    assert [*inspect.signature(metrics.ECE).parameters] == ["bins", "norm", "binning", "options"]
    assert inspect.signature(metrics.MMCE).parameters["phi"].default == 0.4
