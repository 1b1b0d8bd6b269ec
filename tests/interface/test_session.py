"""What a session answers, held against the functions it must agree with."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from talking import ask, decode

import orbical as ob
from orbical.calibration import bounded_mean_interval
from orbical.errors import InputError
from orbical.interface import open_session
from orbical.interface.session import KINDS, Session


def test_the_state_says_all_that_stays(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "state")
    json.dumps(decode(session.answer({"kind": "state"}))[0])
    assert header["title"] == "digits: classification along rotations:24"
    assert header["task"]["name"] == "classification"
    assert header["task"]["labeled"] is True
    assert header["models"] == [{"name": n, "live": False} for n in ("first", "second")]
    assert header["classes"] == [*range(10)]
    assert (header["samples"], header["live"], header["inputs"]) == (120, False, True)
    assert header["group"]["kind"] == "circle"
    assert header["group"]["names"][1] == "angle 15"
    assert header["group"]["continuous"] is True
    assert header["move"] == {"action": "Images", "interpolation": "bilinear", "padding": "zeros"}
    metrics = {metric["name"]: metric for metric in header["metrics"]}
    assert [*metrics][:1] == ["score"]
    assert {"score", "confidence", "correct", "action_defect", "ece", "esd", "ks"} <= {*metrics}
    assert "predicted" not in metrics  # classes have no mean
    assert metrics["score"]["per_sample"]
    assert not metrics["ece"]["per_sample"]
    assert (metrics["correct"]["low"], metrics["correct"]["high"]) == (0.0, 1.0)
    np.testing.assert_array_equal(arrays["label"], digits.data["label"])
    np.testing.assert_allclose(arrays["plane"], digits.group.parts["plane"], atol=1e-6)
    assert arrays["index"].shape == (24,)
    assert header["noun"] == "images"
    assert {"csv", "indices", "report"} <= {*header["exports"]}


@pytest.mark.parametrize("metric", ["score", "confidence", "correct", "action_defect"])
def test_aggregates_are_those_of_nero(session: Session, digits: ob.Scan, metric: str) -> None:
    header, arrays = ask(session, "aggregate", metric=metric)
    expected = ob.nero.aggregate(digits, metric=metric).values
    np.testing.assert_allclose(arrays["values"], np.broadcast_to(expected, (2, 24)), rtol=1e-5)
    assert header["count"] == 120
    assert (arrays["low"] <= arrays["values"]).all()
    assert (arrays["high"] >= arrays["values"]).all()


@pytest.mark.parametrize("labels", [[6], [6, 9]])
def test_aggregates_follow_the_classes(
    session: Session, digits: ob.Scan, labels: list[int]
) -> None:
    header, arrays = ask(session, "aggregate", filter=[f"label:{','.join(map(str, labels))}"])
    chosen = np.isin(digits.data["label"], labels)
    expected = digits.data["score"].values[:, chosen]
    np.testing.assert_allclose(arrays["values"], expected.mean(1), rtol=1e-5)
    _, low, high = bounded_mean_interval(expected.swapaxes(1, 2))  # which stays in [0, 1]
    np.testing.assert_allclose(arrays["low"], low, atol=1e-4)
    np.testing.assert_allclose(arrays["high"], high, atol=1e-4)
    assert header["count"] == chosen.sum()


def test_intervals_of_shares_in_tables_stay_in_bounds(session: Session) -> None:
    text = ask(session, "export", {"what": "csv"}, metric="confidence")[1]["file"].tobytes()
    rows = [*csv.DictReader(io.StringIO(text.decode()))]
    ends = [float(row[name]) for row in rows for name in row if "_low_" in name or "_high_" in name]
    assert len(ends) == 4 * 24
    assert 0 <= min(ends) < max(ends) <= 1


def test_changes_are_those_of_nero_and_follow_the_subset(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "consistency", models=["second"])
    found = ob.nero.consistency(digits).sel(model="second")
    assert (header["count"], header["models"]) == (120, ["second"])
    for name in ("changed", "pairs"):
        ends = [float(found[f"{name}{end}"]) for end in ("", "_low", "_high")]
        assert arrays[name][0].tolist() == pytest.approx(ends)
    some = digits.data["label"].values == 3
    header, arrays = ask(session, "consistency", filter=["label:3"])
    each = ob.nero.consistency(digits)["changed_per_sample"].values[:, some]
    assert header["count"] == some.sum()
    np.testing.assert_allclose(arrays["changed"][:, 0], each.mean(1))
    assert session.state()[0]["consistency"] == "samples"


@pytest.mark.parametrize("metric", ["ece", "ks", "esd", "smooth_ece", "mmce"])
def test_measures_of_sets_are_those_along_the_orbit(
    session: Session, digits: ob.Scan, metric: str
) -> None:
    _, arrays = ask(session, "aggregate", metric=metric)
    expected = ob.calibration.along_orbit(digits, metric).values
    np.testing.assert_allclose(arrays["values"], expected, atol=1e-6)
    _, some = ask(session, "aggregate", metric=metric, filter=["label:1,2,3"])
    part = digits.data.isel(sample=np.flatnonzero(np.isin(digits.data["label"], [1, 2, 3])))
    np.testing.assert_allclose(
        some["values"], ob.calibration.along_orbit(part, metric).values, atol=1e-6
    )


def test_the_ece_has_its_interval_at_every_element(session: Session) -> None:
    _, arrays = ask(session, "aggregate", metric="ece")
    assert (arrays["low"] <= arrays["values"]).all()
    assert (arrays["high"] >= arrays["values"]).all()
    assert (arrays["high"] > arrays["low"]).all()


def test_the_consensus_may_take_the_place_of_the_truth(session: Session, digits: ob.Scan) -> None:
    _, arrays = ask(session, "aggregate", reference="consensus")
    expected = digits.data["score_vs_consensus"].values.mean(1)
    np.testing.assert_allclose(arrays["values"], expected, rtol=1e-5)
    _, arrays = ask(session, "aggregate", reference="consensus", metric="correct")
    agreed = digits.data["predicted"] == digits.data["consensus"].argmax("class")
    np.testing.assert_allclose(arrays["values"], agreed.values.mean(1), rtol=1e-6)
    _, one = ask(session, "sample", reference="consensus", metric="correct", sample=77)
    np.testing.assert_array_equal(one["values"], agreed.values[:, 77])


def test_small_multiples_are_the_means_of_the_classes(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "classes", metric="confidence")
    assert (header["column"], header["total"]) == ("label", 10)
    label, confidence = digits.data["label"].values, digits.data["confidence"].values
    for place, group in enumerate(header["groups"]):
        mine = label == place
        assert group == {"key": str(place), "name": str(place), "count": int(mine.sum())}
        np.testing.assert_allclose(arrays["values"][place], confidence[:, mine].mean(1), atol=1e-6)
    # The chosen class keeps the others beside it, within the rest of the filter.
    about, some = ask(session, "classes", filter=["label:3", "correct@first:correct"])
    kept = digits.data["correct"].values[0, :, digits.group.identity] > 0
    counts = np.bincount(label[kept], minlength=10)
    assert [group["count"] for group in about["groups"]] == counts[counts > 0].tolist()
    for place, one in enumerate(np.flatnonzero(counts)):
        expected = digits.data["score"].values[:, kept & (label == one)].mean(1)
        np.testing.assert_allclose(some["values"][place], expected, atol=1e-6)
    measured = ask(session, "classes", metric="ece")[1]["values"][4]
    alone = ask(session, "aggregate", metric="ece", filter=["label:4"])[1]["values"]
    np.testing.assert_allclose(measured, alone, atol=1e-6)
    for most in (0, "all", True):
        with pytest.raises(InputError, match="most: expected an integer >= 1"):
            ask(session, "classes", {"most": most})
    with pytest.raises(InputError, match="selection by"):
        ask(session, "classes", by="weather")


def test_of_many_classes_the_worst_come_first() -> None:
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 20))
    given = (images[:60], torch.arange(60) % 20)
    scan = ob.scan(net, given, group="rotations:4", task="classification", progress=False)
    header, arrays = ask(Session(scan), "classes")
    assert (len(header["groups"]), header["total"]) == (12, 20)
    means = arrays["values"].mean((1, 2))
    assert means.tolist() == sorted(means.tolist())
    assert len(ask(Session(scan), "classes", {"most": 36})[0]["groups"]) == 20


def test_one_sample_is_shown_against_truth_and_consensus(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "sample", sample=31, reference="both")
    here = digits.data.isel(sample=31)
    np.testing.assert_array_equal(arrays["values"], here["score"])
    np.testing.assert_array_equal(arrays["consensus_values"], here["score_vs_consensus"])
    assert header["reference"] == "truth"
    _, arrays = ask(session, "sample", sample=31, reference="both", metric="confidence")
    assert "consensus_values" not in arrays  # a confidence needs no reference
    _, mean = ask(session, "aggregate", reference="both")
    np.testing.assert_array_equal(mean["values"], ask(session, "aggregate")[1]["values"])


def test_models_shown_are_chosen_by_name_in_the_order_of_the_scan(session: Session) -> None:
    both = ask(session, "aggregate")[1]["values"]
    header, arrays = ask(session, "aggregate", models=["second"])
    assert header["models"] == ["second"]
    np.testing.assert_array_equal(arrays["values"], both[1:])
    assert ask(session, "sample", models=["second", "first"])[0]["models"] == ["first", "second"]


def test_a_sample_along_its_orbit(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "sample", sample=45, metric="confidence")
    data = digits.data.isel(sample=45)
    np.testing.assert_array_equal(arrays["values"], data["confidence"].values)
    np.testing.assert_array_equal(arrays["correct"], data["correct"].values)
    assert header["label"] == int(data["label"])
    assert header["consensus"] == data["consensus"].argmax("class").values.tolist()
    assert header["range"] == [0.0, 1.0]
    np.testing.assert_array_equal(arrays["predicted"], data["predicted"].values)


def test_a_measure_of_sets_says_nothing_of_one_sample(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "sample", sample=5, metric="ece")
    assert header["metric"] == "score"
    np.testing.assert_array_equal(arrays["values"], digits.data["score"].values[:, 5])


def test_hovering_gives_responses_and_pictures(session: Session, digits: ob.Scan) -> None:
    _, arrays = ask(session, "hover", {"samples": [119, 0, 40]})
    expected = digits.data["score"].values[:, [119, 0, 40]].transpose(1, 0, 2)
    np.testing.assert_array_equal(arrays["values"], expected)
    images = digits.data["input"].values[[119, 0, 40]]
    assert arrays["thumbnail"].shape == (3, 8, 8, 1)
    np.testing.assert_allclose(arrays["thumbnail"][..., 0] / 255, images[:, 0], atol=1 / 250)
    np.testing.assert_array_equal(arrays["label"], digits.data["label"].values[[119, 0, 40]])


@pytest.mark.parametrize("samples", [None, [], [1] * 65, ["a"], [120], [-1], [True]])
def test_hovering_over_no_samples_is_refused(session: Session, samples: Any) -> None:
    with pytest.raises(InputError, match="sample"):
        ask(session, "hover", {"samples": samples})


def test_reliability_is_that_of_calibration(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "calibration", element=5)
    for place, model in enumerate(("first", "second")):
        expected = ob.calibration.reliability_at(digits, 5, model)
        np.testing.assert_array_equal(arrays["count"][place], expected.count)
        np.testing.assert_allclose(arrays["confidence"][place], expected.confidence, rtol=1e-6)
        np.testing.assert_allclose(arrays["accuracy"][place], expected.accuracy, rtol=1e-6)
        measures = {m["name"]: m for m in header["measures"] if m["model"] == model}
        pair = ob.calibration.pair_at(digits, 5, model)
        interval = ob.calibration.interval("ece", *pair)
        assert measures["ece"]["value"] == pytest.approx(float(interval.value), abs=1e-6)
        assert measures["ece"]["low"] == pytest.approx(float(interval.low), abs=1e-6)
        assert measures["ece"]["high"] == pytest.approx(float(interval.high), abs=1e-6)
        assert measures["ece"]["expected"] == pytest.approx(float(interval.calibrated), abs=1e-6)
        assert measures["ece"]["confidence"] == pytest.approx(float(pair[0].mean()), abs=1e-6)
        right = float(pair[1].double().mean())
        assert measures["ece"]["accuracy"] == pytest.approx(right, abs=1e-6)
        curve = ob.calibration.cumulative_curve(*pair)
        assert arrays["cumulative_accuracy"][place, -1] == pytest.approx(float(curve.accuracy[-1]))
        half = np.searchsorted(curve.quantile.numpy(), 0.5, side="right") - 1
        assert arrays["cumulative_confidence"][place, 50] == pytest.approx(
            float(curve.confidence[half])
        )


def test_calibration_over_the_whole_orbit(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "calibration", scope="orbit")
    sure = torch.from_numpy(digits.data["confidence"].values[0].reshape(-1))
    right = torch.from_numpy(digits.data["correct"].values[0].reshape(-1))
    measured = next(m for m in header["measures"] if m["model"] == "first")
    assert measured["value"] == pytest.approx(float(ob.calibration.ece(sure, right)), abs=1e-6)
    assert measured["low"] < measured["value"] < measured["high"]
    together = ob.calibration.interval("ece", sure, right, resamples=200)
    wider = (measured["high"] - measured["low"]) / float(together.high - together.low)
    assert wider > 1.5  # answers along an orbit hang together
    assert arrays["count"].sum() == 2 * 120 * 24
    assert header["count"] == 120 * 24
    expected = ob.calibration.reliability(sure, right)
    np.testing.assert_allclose(arrays["accuracy"][0], expected.accuracy, atol=1e-6)
    np.testing.assert_allclose(arrays["confidence"][0], expected.confidence, atol=1e-6)


def test_the_error_over_the_whole_orbit_is_the_pooled_one(session: Session) -> None:
    scan = session.scan_view().scan
    measures = ask(session, "calibration", scope="orbit")[0]["measures"]
    pooled = ob.calibration.pooled_over_orbit(scan, "ece", interval=True)
    assert [entry["model"] for entry in measures] == scan.models
    for end, expected in (("value", pooled), ("low", pooled.low), ("high", pooled.high)):
        np.testing.assert_allclose([entry[end] for entry in measures], expected, atol=1e-6)
    mean = ob.calibration.mean_over_orbit(scan, "ece")
    assert (np.abs(mean - pooled) > 1e-3).any()  # another statistic, under another name


def test_measures_are_those_of_the_registry(session: Session) -> None:
    listed = {entry["name"]: entry for entry in ask(session, "state")[0]["metrics"]}
    for measure in ob.calibration.scan_measures(session.scan_view().scan, listed="view"):
        shown = listed[measure.name]
        assert shown["title"].lower() == measure.title.lower()
        assert shown["meaning"] == measure.meaning
        assert shown["higher_is_better"] is measure.higher_is_better


def test_a_subset_of_nobody_is_answered(session: Session) -> None:
    nobody = ask(session, "set", {"recipe": {"samples": []}})[0]["hash"]
    header, arrays = ask(session, "aggregate", subset=nobody)
    assert header["count"] == 0
    assert np.isnan(arrays["values"]).all()
    for kind in ("calibration", "list", "subset"):
        assert ask(session, kind, subset=nobody)[0]["count"] == 0
    assert np.isnan(ask(session, "aggregate", subset=nobody, metric="ece")[1]["values"]).all()


def test_bounds_need_orbits(session: Session, folder: Path) -> None:
    header, _ = ask(session, "bounds")
    assert header["available"] is False
    assert "orbit" in header["reason"]
    assert ask(session, "state")[0]["bounds"] is False
    known = open_session(folder / "digits.zarr", orbits=np.arange(120) // 4)
    assert ask(known, "state")[0]["bounds"] is True
    header, _ = ask(known, "bounds")
    assert header["available"] is True
    table = ob.bounds.OrbitTable.from_scan(
        ob.load(folder / "digits.zarr"), "first", orbit=np.arange(120) // 4
    )
    found = ob.bounds.classification(table, bins=15)
    first = header["models"][0]
    assert first["ceiling"] == header["ceiling"] == pytest.approx(table.accuracy_ceiling)
    assert first["low"] == pytest.approx(found["forced_ece"].value)
    assert first["high"] == pytest.approx(found["sharp_upper"].value)
    assert first["low"] <= first["ece"] <= first["high"]
    assert first["averaged"] is True


def test_bounds_state_the_price_of_symmetry_and_what_is_certified(folder):
    orbits = np.arange(120) // 4
    first = ask(open_session(folder / "digits.zarr", orbits=orbits), "bounds")[0]["models"][0]
    table = ob.bounds.OrbitTable.from_scan(ob.load(folder / "digits.zarr"), "first", orbit=orbits)
    assert first["certified"] == pytest.approx(ob.bounds.certified_ceiling(table))
    found = ob.bounds.classification(table)
    assert first["broken"] == found["broken_symmetry"].value
    assert first["broken_at_least"] == max(0.0, found["broken_at_least"].value)
    assert first["any_accuracy"] == found["any_accuracy_sharp"].value
    known = found["least_ece_lower"].applies
    assert (first["least_low"] is not None) == known


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"kind": "nothing"}, "kind"),
        ({"kind": ["state"]}, "kind"),
        ({}, "kind"),
        ({"kind": "state", "sequence": "1"}, "sequence"),
        ({"kind": "state", "selection": 3}, "selection"),
        ({"kind": "state", "selection": {"scan": "../digits"}}, "scan"),
        ({"kind": "state", "selection": {"scan": "/etc/passwd"}}, "scan"),
        ({"kind": "aggregate", "selection": {"metric": "nothing"}}, "metric"),
        ({"kind": "aggregate", "selection": {"models": ["nobody"]}}, "models"),
        ({"kind": "embedding", "selection": {"method": "magic"}}, "method"),
        ({"kind": "embedding", "selection": {"of": "nobody"}}, "of"),
        ({"kind": "sample", "selection": {"sample": 120}}, "sample"),
        ({"kind": "place", "selection": {"element": 24}}, "element"),
        ({"kind": "place", "selection": {"element": -2}}, "element"),
        ({"kind": "place", "selection": {"position": [1, 2]}}, "position"),
    ],
)
def test_what_cannot_be_answered_is_said_by_name(
    session: Session, message: Any, named: str
) -> None:
    with pytest.raises(InputError, match=named):
        session.handle(message)
    header, arrays = decode(session.answer(message))
    assert named in header["error"]
    assert not arrays
    assert header["kind"] in (*KINDS, "error")


def test_anything_at_all_is_answered_with_a_frame(session: Session) -> None:
    for message in (None, 3, "state", [], {"kind": "hover", "samples": {}}):
        assert "error" in decode(session.answer(message))[0]
