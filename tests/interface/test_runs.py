"""Several scans of one group and task: their curves, their differences, and the table of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.calibration import compare_means, share_interval
from orbical.errors import InputError
from orbical.interface.session import Session

COUNT = 60


def linear_net(seed):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    net[1].weight.data *= 5  # to be sure of something
    return net


def scanned(seeds, start=0, count=COUNT, group="rotations:8", labeled=True, **settings):
    images, labels = ob.datasets.digits()
    rows = slice(start, start + count)
    return ob.scan(
        {f"net{k}": linear_net(seed) for k, seed in enumerate(seeds)},
        (images[rows], labels[rows]) if labeled else images[rows],
        group=group,
        task="classification",
        progress=False,
        **settings,
    )


@pytest.fixture(scope="module")
def scans():
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))
    regression = ob.scan(
        net, (images[:9], torch.zeros(9, 2)), group="rotations:8", task="regression", progress=False
    )
    return {
        "first": scanned([0, 1]),
        "second": scanned([2, 3], chunk=16),
        "elsewhere": scanned([0, 1], start=100, count=40),
        "coarse": scanned([0], group="rotations:4"),
        "values": regression,
        "bare": scanned([0], labeled=False),
    }


@pytest.fixture(scope="module")
def several(scans):
    return Session(scans)


def asked(session, **selection):
    return session.handle({"kind": "runs", "sequence": 1, "selection": selection})


def rows_of(about):
    return [(row["scan"], row["model"]) for row in about["rows"]]


def test_curves_are_those_of_each_scan(several, scans):
    about, arrays = asked(several, metric="correct")
    assert rows_of(about) == [
        (scan, model) for scan in ("first", "second", "elsewhere") for model in ("net0", "net1")
    ]
    assert about["against"] == "first"
    for row, (scan, model) in enumerate(rows_of(about)):
        right = scans[scan].data["correct"].sel(model=model).values
        np.testing.assert_allclose(arrays["values"][row], right.mean(0), atol=1e-6)
        expected = share_interval(right.T, right.T.astype(float))
        np.testing.assert_allclose(arrays["low"][row], expected.low, atol=1e-6)
        np.testing.assert_allclose(arrays["high"][row], expected.high, atol=1e-6)


def test_scans_that_cannot_be_compared_are_named_with_the_reason(several):
    about, _ = asked(several)
    assert about["left_out"] == [
        {"scan": "coarse", "reason": "another group: rotations:4"},
        {"scan": "values", "reason": "another task: regression"},
        {"scan": "bare", "reason": "no labels"},
    ]
    about, _ = asked(several, reference="consensus")
    assert "bare" in {scan for scan, _ in rows_of(about)}


def test_unfinished_scans_and_other_metrics_are_left_out(several, monkeypatch):
    monkeypatch.setattr(several.scans["second"], "complete", False)
    monkeypatch.delitem(several.scans["elsewhere"].metrics, "ece")
    about, _ = asked(several, metric="ece")
    reasons = {one["scan"]: one["reason"] for one in about["left_out"]}
    assert reasons["second"] == "unfinished: 60 of 60 samples"
    assert reasons["elsewhere"].startswith("no ")
    assert {scan for scan, _ in rows_of(about)} == {"first"}


def test_differences_are_paired_where_the_samples_are_the_same(several, scans):
    about, arrays = asked(several, against="second")
    pairs = {row["scan"]: row["paired"] for row in about["rows"]}
    assert pairs == {"first": True, "second": True, "elsewhere": False}
    assert about["against"] == "second"
    one, other = (
        scans[name].data["score"].sel(model="net1").values for name in ("first", "second")
    )
    for element in range(8):
        expected = compare_means(one[:, element], other[:, element])
        found = [arrays[name][1, element] for name in ("difference", "difference_low")]
        np.testing.assert_allclose(found, [expected.difference, expected.low], atol=1e-4)
    assert not arrays["difference"][2:4].any()


def test_other_differences_add_the_squares_of_both_intervals(several):
    _, arrays = asked(several, metric="correct")
    value, low, high = (arrays[name][[0, 4]].astype(float) for name in ("values", "low", "high"))
    np.testing.assert_allclose(arrays["difference"][4], value[1] - value[0], atol=1e-6)
    below = np.sqrt((value[1] - low[1]) ** 2 + (high[0] - value[0]) ** 2)
    np.testing.assert_allclose(arrays["difference_low"][4], value[1] - value[0] - below, atol=1e-6)


def test_the_subset_applies_where_the_samples_are_the_same(several, scans):
    score = {name: scan.data["score"] for name, scan in scans.items() if "score" in scan.data}
    sure = scans["first"].data["confidence"].sel(model="net0").values[:, 0]
    chosen = sure >= 0.5  # by a model of the scan that is shown
    assert 5 < chosen.sum() < COUNT - 5
    about, arrays = asked(several, filter=["confidence@net0:0.5.."], models=["net1"])
    assert [row["count"] for row in about["rows"]] == [chosen.sum(), chosen.sum(), 40]
    assert [row["same"] for row in about["rows"]] == [True, True, False]
    for row, scan in enumerate(("first", "second", "elsewhere")):
        values = score[scan].sel(model="net1").values
        kept = values if scan == "elsewhere" else values[chosen]
        np.testing.assert_allclose(arrays["values"][row], kept.mean(0), atol=1e-6)
    each = (score["second"] - score["first"]).sel(model="net1").values[chosen]
    np.testing.assert_allclose(arrays["difference"][1], each.mean(0), atol=1e-6)


def test_a_set_of_samples_is_known_to_the_other_scans(several, scans):
    numbers = [2, 3, 30, 31]
    made, _ = several.handle({"kind": "set", "recipe": {"samples": numbers}})
    about, arrays = asked(several, subset=made["hash"])
    np.testing.assert_allclose(
        arrays["values"][2], scans["second"].data["score"].values[0][numbers].mean(0), atol=1e-6
    )
    there, _ = several.handle(
        {"kind": "subset", "selection": {"scan": "second", "subset": made["hash"]}}
    )
    assert there["count"] == about["rows"][0]["count"] == 4


def test_the_table_is_that_of_whole_orbits(several, scans):
    about, _ = asked(several, filter=["label:0,1,2,3"])
    row = about["rows"][3]
    assert (row["scan"], row["model"]) == ("second", "net1")
    data = scans["second"].data.sel(model="net1")
    data = data.isel(sample=np.isin(data["label"].values, range(4)))
    predicted, right = data["predicted"].values, data["correct"].values
    assert row["mean"] == pytest.approx(data["score"].values.mean(), abs=1e-6)
    assert row["accuracy"] == pytest.approx(right.mean(), abs=1e-6)
    assert row["gap"] == pytest.approx(data["confidence"].values.mean() - right.mean(), abs=1e-6)
    assert row["changed"] == pytest.approx((predicted != predicted[:, :1]).any(1).mean())
    error = ob.calibration.ece(data["confidence"].values.ravel(), right.ravel(), bins=15)
    assert row["ece"] == pytest.approx(float(error), abs=1e-5)


def test_a_subset_without_samples_has_no_number_and_no_warning(several):
    """A mean of nothing was taken, which NumPy warns of on the terminal of the server."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        about, _ = asked(several, metric="correct", filter=["confidence@net0:2.."])
    assert about["rows"][0]["changed"] is None


def test_measures_of_sets_have_unpaired_differences(several):
    about, arrays = asked(several, metric="ece")
    assert [row["paired"] for row in about["rows"]] == [True, True, *[False] * 4]
    assert np.isfinite(arrays["difference_high"]).all()


def test_the_same_samples_are_told_from_others_that_begin_alike(scans):
    images, labels = ob.datasets.digits()
    swapped = labels[:COUNT].clone()
    swapped[-1] = 9 - swapped[-1]
    for chunk in ("auto", 16):  # by the hashes of equal units, or by labels
        other = ob.scan(
            {"net": linear_net(0)},
            (images[:COUNT], swapped),
            group="rotations:8",
            task="classification",
            progress=False,
            chunk=chunk,
        )
        assert not scans["first"].has_samples_of(other)
    assert scans["first"].has_samples_of(scans["second"])


def test_runs_are_offered_where_another_scan_is_alike(several, scans):
    offered = {name: several.state(name)[0]["runs"] for name in scans}
    expected = dict.fromkeys(scans, True) | {"coarse": False, "values": False}
    assert offered == expected
    assert Session(scans["first"]).state()[0]["runs"] is False


def test_an_unknown_run_is_refused(several):
    with pytest.raises(InputError, match="selection against"):
        asked(several, against="third")


def test_runs_that_agree_on_every_sample_say_what_compare_means_says():
    same = {"first": scanned([0], count=20), "again": scanned([0], count=20)}
    about, arrays = asked(Session(same))
    assert [row["paired"] for row in about["rows"]] == [True, True]
    assert not arrays["difference_high"].any()
    expected = compare_means(np.arange(20.0), np.arange(20.0))
    assert expected.caution.startswith("values that hardly differ say nothing of rarer ones")
    own, other = (row["difference_caution"] for row in about["rows"])
    assert own == "", "a run does not differ from itself"
    assert other == expected.caution


def test_differences_have_the_caution_of_compare_means(several, scans):
    about, _ = asked(several, metric="correct", against="second")
    one, other = (
        scans[name].data["correct"].sel(model="net0").values for name in ("first", "second")
    )
    each = [compare_means(one[:, k], other[:, k]).caution for k in range(one.shape[1])]
    assert about["rows"][0]["difference_caution"] == next(filter(None, each), "")
