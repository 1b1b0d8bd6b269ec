"""A report answers in JavaScript what a session answers in Python, to the precision it states."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.reports.contents import chosen_samples
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session
from orbical.interface.wire import as_base64

LASSO = [[-1.1, -1.1], [0.1, -1.1], [0.4, 1.1], [-1.1, 0.9]]
BAND = [[-0.2, -1.1], [0.5, -1.1], [0.5, 1.1], [-0.2, 1.1]]  # samples lie to either side of it


def nets(seed, count=2):
    torch.manual_seed(seed)
    return {
        f"net{i}": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        for i in range(count)
    }


class Digits(ob.data.Source):
    """Digits with names and two columns of metadata."""

    names = tuple(f"scan {i}" for i in range(80))
    columns: ClassVar = {
        "kind": np.array(["round", "square", "wide"])[np.arange(80) % 3],
        "mass": np.arange(80.0),
    }

    def __len__(self):
        return 80

    def read(self, start, stop):
        images, labels = ob.datasets.digits()
        return images[start:stop], labels[start:stop]


@pytest.fixture(scope="module")
def session():
    scan = ob.scan(
        nets(0),
        Digits(),
        group="rotations:12",
        task="classification",
        keep=("inputs", "probabilities"),
        progress=False,
    )
    return Session({"digits": scan})


@pytest.fixture(scope="module")
def whole(session):
    return packed(session, None)


@pytest.fixture(scope="module")
def part(session):
    return packed(session, 30)


def packed(session, count):
    view = session.scan_view()
    _, parts = report_to_write(view, samples=count, methods=("pca", "ica"))
    return chosen_samples(view, count), {name: as_base64(part) for name, part in parts.items()}


def both(report_answers, session, parts, requests):
    asked = [{"kind": "aggregate", "sequence": 1, "selection": {}, **one} for one in requests]
    makes = [made for one in asked for made in _without_lasso(session, one)]
    ours = report_answers(parts, [*makes, *asked])
    return ours[len(makes) :], [session.handle(one) for one in asked]


def _without_lasso(session, request):
    """Put the set of a lasso in its place, and yield the request that makes it."""
    selection = {**request["selection"]}
    request["selection"] = selection
    if "lasso" in selection:
        of_map = {name: selection[name] for name in ("method", "of") if name in selection}
        recipe = {"lasso": {"polygon": selection.pop("lasso"), **of_map}}
        make = {"kind": "set", "sequence": 1, "recipe": recipe}
        selection["subset"] = session.handle(make)[0]["hash"]
        yield make


def compare(ours, theirs, tolerance=2e-4, skip=()):
    header, arrays = theirs
    assert "error" not in ours, ours
    for name, array in arrays.items():
        if name in skip:
            continue
        found = ours["arrays"][name]
        assert found["shape"] == list(np.shape(array)), name
        numbers = np.array(found["data"], float).reshape(np.shape(array))
        np.testing.assert_allclose(numbers, array, atol=tolerance, err_msg=name)
    for name in header.keys() - {*skip}:
        expected = header[name]
        if isinstance(expected, float) or name == "range":
            assert ours[name] == pytest.approx(expected, abs=1e-3), name
        elif name == "measures":  # those of all positions at once, and of one
            assert ours[name] == [pytest.approx(one) for one in expected]
        elif name == "cautions":  # of all models, by name; the page shows those of the chosen ones
            assert {model: ours[name][model] for model in expected} == expected
        else:
            assert ours[name] == expected, name


RECORDED = [
    {},
    {"metric": "confidence"},
    {"metric": "correct", "reference": "consensus"},
    {"metric": "action_defect"},
    {"metric": "ece"},
    {"metric": "esd", "reference": "consensus"},
    {"metric": "ks", "filter": ["label:3"]},
    {"metric": "smooth_ece", "filter": ["label:4"]},
    {"filter": ["label:3"]},
    {"models": ["net1"], "metric": "ece"},
    {"models": ["net1"], "filter": ["label:5"]},
]
"""Selections of subsets that matter, whose answers a report has from Python."""
OTHERS = [
    {"filter": ["label:1,2,8"], "metric": "confidence"},
    {"lasso": LASSO},
    {"lasso": BAND},
    {"lasso": LASSO, "of": "net1", "method": "ica"},
    {"filter": ["confidence@net1:0.3..", "correct@net0:incorrect"]},
    {"filter": ["gap:..0.2", "first_failure@net1:30..", "predicted@net0:1,3,5,7,8"]},
    {"filter": ["name:SCAN 1", "label:1,2,3"]},
    {"filter": ["label:1,7"], "metric": "mmce"},
    {"lasso": LASSO, "metric": "ece"},
    {"filter": ["kind:round", "mass:10..60"], "metric": "ece", "lasso": LASSO},
]
"""Selections of other subsets."""
MEASURES = ("ece", "ks", "esd", "smooth_ece", "mmce")
COLORS = ["variance", "label", "predicted", "correct", "confidence", "share_correct"]
COLORS += ["first_failure", "gap", "kind", "mass"]


@pytest.mark.parametrize("count", [None, 30])
@pytest.mark.parametrize("kind", ["aggregate", "classes", "consistency", "spread"])
def test_what_python_recorded_is_shown_as_it_is(report_answers, session, whole, part, kind, count):
    requests = [{"kind": kind, "selection": one} for one in RECORDED]
    parts = (whole if count is None else part)[1]
    ours, theirs = both(report_answers, session, parts, requests)
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected, 1e-6)


def test_of_other_subsets_a_report_has_means_and_says_what_it_has_not(
    report_answers, session, whole
):
    requests = [{"selection": one} for one in OTHERS]
    ours, theirs = both(report_answers, session, whole[1], requests)
    for case, found, expected in zip(OTHERS, ours, theirs, strict=True):
        if case.get("metric") in MEASURES:
            assert found["available"] is False
            assert "not of this subset; open the scan with orbical view" in found["reason"]
        else:
            compare(found, expected, 2e-4, skip=("low", "high"))
            assert {*found["arrays"]} == {"values"}
    for kind in ("consistency", "spread", "calibration", "coverage"):
        requests = [{"kind": kind, "selection": OTHERS[0]}]
        (found,), _ = both(report_answers, session, whole[1], requests)
        assert found["available"] is False


@pytest.mark.parametrize("kind", ["columns", "subset", "list", "sample", "embedding", "color"])
def test_answers_are_those_of_the_session(report_answers, session, whole, kind):
    extra = {"color": [{"color": name} for name in COLORS]}
    extra["list"] = [{"order": "best"}, {"order": "variable", "of": "net1"}]
    extra["list"] += [
        {"order": "mass"},
        {"order": "-first_failure"},
        {"order": "gap", "of": "net0"},
    ]
    extra["sample"] = [{"sample": 17}, {"sample": 79, "metric": "ece"}]
    extra["sample"] += [{"reference": "both"}, {"reference": "both", "metric": "correct"}]
    cases = [*RECORDED, *OTHERS, *extra.get(kind, [])]
    asked = [{"column": name, "model": ""} for name in (*COLORS[1:], "search")]
    asked += [{"column": "gap", "model": "net1"}]
    more = {"columns": {"columns": asked}, "list": {"count": 100}}.get(kind, {})
    requests = [{"kind": kind, "selection": one, **more} for one in cases]
    ours, theirs = both(report_answers, session, whole[1], requests)
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected, skip=("samples",))
        if kind == "list":
            assert {*found["arrays"]["samples"]["data"]} == {*expected[1]["samples"].tolist()}


def test_a_page_of_the_list_is_that_of_the_session(report_answers, session, whole):
    request = {"kind": "list", "selection": {"order": "-mass"}, "start": 3, "count": 20}
    ours, theirs = both(report_answers, session, whole[1], [request])
    compare(ours[0], theirs[0])
    assert ours[0]["arrays"]["samples"]["data"] == [*range(76, 56, -1)]


@pytest.mark.parametrize("kind", ["confusion", "coverage"])
def test_confusion_and_sets_are_those_of_the_session(report_answers, session, whole, kind):
    cases = [{}, {"element": 5, "models": ["net1"]}, {"scope": "orbit"}]
    if kind == "confusion":
        cases += [{"reference": "consensus", "element": 3}, {"filter": ["label:3,4"]}]
    requests = [{"kind": kind, "selection": one} for one in cases]
    ours, theirs = both(report_answers, session, whole[1], requests)
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected)


@pytest.mark.parametrize(
    "recipe",
    [
        {"band": {"model": "net1", "band": 0}},
        {"band": {"model": "net0", "band": 3}},
        {"cell": {"model": "net1", "expected": 3, "predicted": 5}},
    ],
)
def test_the_samples_behind_a_count_are_those_of_the_session(
    report_answers, session, whole, recipe
):
    requests = [{"kind": "set", "selection": {"element": 4}, "recipe": recipe}]
    ours, theirs = both(report_answers, session, whole[1], requests)
    assert ours[0]["hash"] == theirs[0][0]["hash"]


@pytest.mark.parametrize("count", [None, 30])
@pytest.mark.parametrize("scope", ["element", "orbit"])
def test_calibration_is_that_of_the_session(report_answers, session, whole, part, scope, count):
    cases = [
        {},
        {"element": 5},
        {"element": 3, "filter": ["label:2"]},
        {"element": 7, "reference": "consensus", "models": ["net1"]},
    ]
    requests = [{"kind": "calibration", "selection": {**one, "scope": scope}} for one in cases]
    parts = (whole if count is None else part)[1]
    ours, theirs = both(report_answers, session, parts, requests)
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected, 1 / 65_000)


def test_a_place_has_the_moved_input_and_the_stored_answers(report_answers, session, whole):
    cases = [{"sample": 3, "element": 0}, {"sample": 41, "element": 7, "models": ["net1"]}]
    requests = [{"kind": "place", "selection": one} for one in cases]
    ours, theirs = both(report_answers, session, whole[1], requests)
    for found, expected in zip(ours, theirs, strict=True):
        header, arrays = expected
        fields = {name.removeprefix("detail/") for name in arrays if name.startswith("detail/")}
        assert {*found["detail"]["fields"]} == fields == {*header["detail"]["fields"]}
        assert found["input"]["fields"] == ["image"]
        # Images and probabilities are kept in 256 steps.
        compare(found, expected, 0.5 / 255 + 1e-4, skip=("input", "detail"))
    moved = np.array(ours[1]["arrays"]["input/image"]["data"])
    assert np.abs(moved - theirs[1][1]["input/image"].ravel()).max() < 0.003
    assert moved.max() > 0.5


def test_pinned_samples_are_those_of_the_session(report_answers, session, whole):
    requests = [{"kind": "pinned", "selection": {"pins": [3, 41], "element": 7}}]
    ours, theirs = both(report_answers, session, whole[1], requests)
    compare(ours[0], theirs[0], 0.5 / 255 + 1e-4, skip=("pins",))
    for name in ("sample", "element", "models", "truth", "consensus"):
        assert [pin[name] for pin in ours[0]["pins"]] == [pin[name] for pin in theirs[0][0]["pins"]]


def test_hovering_gives_pictures_and_responses(report_answers, session, whole):
    requests = [{"kind": "hover", "samples": [5, 60, 2], "selection": {}}]
    ours, theirs = both(report_answers, session, whole[1], requests)
    compare(ours[0], theirs[0], 1.0, skip=("values",))
    compare(ours[0], theirs[0], skip=("thumbnail",))


def test_the_state_names_what_a_report_holds(report_answers, session, whole):
    ours, theirs = both(report_answers, session, whole[1], [{"kind": "state"}])
    found, (header, arrays) = ours[0], theirs[0]
    changed = {"guide", "methods", "exports", "move", "live", "models", "warnings", "report"}
    changed |= {"command"}  # a report was not opened by one
    compare(found, (header, arrays), skip=changed)
    assert found["methods"] == ["pca", "ica"]
    assert found["live"] is False
    assert found["arrays"]["original"]["data"] == list(range(80))


def test_a_part_of_the_samples_keeps_the_means_of_all(report_answers, session, part):
    chosen, parts = part
    assert len(chosen.samples) == 30
    cases = [
        {},
        {"metric": "ece"},
        {"metric": "smooth_ece", "filter": ["label:4"]},
        {"filter": ["label:3"]},
    ]
    ours, theirs = both(report_answers, session, parts, [{"selection": one} for one in cases])
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected, 2e-3)
    requests = [{"kind": kind, "selection": {"sample": 4}} for kind in ("state", "sample")]
    state, sample = both(report_answers, session, parts, requests)[0]
    original = state["arrays"]["original"]["data"]
    assert original == chosen.samples.tolist()
    expected = session.handle({"kind": "sample", "selection": {"sample": original[4]}})
    np.testing.assert_allclose(
        sample["arrays"]["values"]["data"], expected[1]["values"].ravel(), atol=2e-4
    )


def test_tables_are_made_in_the_page(report_answers, session, whole):
    requests = [
        {"kind": "export", "what": "csv", "selection": {"sample": 7}},
        {"kind": "export", "what": "indices", "selection": {"filter": ["label:3"]}},
        {"kind": "export", "what": "parquet", "selection": {}},
    ]
    ours = report_answers(whole[1], requests)
    table = bytes(ours[0]["arrays"]["file"]["data"]).decode().splitlines()
    assert table[0].split(",")[:3] == ["element", "angle", "score_net0"]
    assert len(table) == 1 + 12
    numbers = bytes(ours[1]["arrays"]["file"]["data"]).decode().split()
    label = session.scan_view().label
    assert [int(one) for one in numbers] == np.flatnonzero(label == 3).tolist()
    assert "parquet" in ours[2]["error"]


def test_sets_are_made_as_by_the_session(report_answers, session, whole):
    few = {"samples": [3, 5, 41, 79]}
    lasso = {"lasso": {"polygon": BAND, "method": "ica", "of": "net0", "reference": "consensus"}}
    recipes = [
        few,
        lasso,
        {"union": [few, lasso]},
        {"intersection": [few, lasso]},
        {"difference": ["", lasso]},
        {"union": [lasso, {"difference": ["", lasso]}]},
        {"samples": []},
        {"shown": True},
    ]
    requests = [
        {"kind": "set", "recipe": one, "selection": {"filter": ["label:1,2"]}} for one in recipes
    ]
    ours, theirs = both(report_answers, session, whole[1], requests)
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected)
    assert ours[5]["hash"] == ""  # all of them


def test_a_set_that_is_not_in_the_report_is_refused_by_a_code(report_answers, whole):
    unknown = "0123456789abcdef"
    requests = [{"kind": "list", "sequence": 1, "selection": {"subset": unknown}}]
    (refused,) = report_answers(whole[1], requests)
    assert (refused["code"], refused["set"]) == ("unknown-set", unknown)
    assert refused["error"]


def test_named_sets_travel_with_a_report_in_the_numbers_of_its_samples(report_answers, tmp_path):
    scan = Session({"digits": small_scan(tmp_path / "run.zarr")})
    view = scan.scan_view()
    make = {"kind": "set", "recipe": {"samples": [0, 1, 2, 11, 29]}}
    name = scan.handle(make)[0]["hash"]
    scan.handle({"kind": "names", "do": "save", "name": "mine", "set": name})
    chosen, parts = packed(scan, 20)
    requests = [
        {"kind": "names", "sequence": 1},
        {"kind": "export", "what": "indices", "selection": {"subset": name}},
        {"kind": "names", "do": "delete", "name": "mine"},
        {"kind": "set", "recipe": {"samples": [4, 5]}},
    ]
    named, exported, deleted, _ = report_answers(parts, requests)
    held = sorted({*chosen.samples.tolist()} & {0, 1, 2, 11, 29})
    assert named["sets"] == [{"name": "mine", "hash": name, "count": len(held)}]
    assert "saves nothing" in named["unsaved"]
    assert [int(one) for one in bytes(exported["arrays"]["file"]["data"]).split()] == held
    assert deleted["sets"] == []
    assert view.samples == 30


def small_scan(path):
    images, labels = ob.datasets.digits()
    data = (images[:30], labels[:30])
    settings = {"group": "rotations:4", "task": "classification", "keep": ("inputs",)}
    return ob.scan(nets(1, 1), data, out=path, progress=False, **settings)


def test_what_cannot_be_answered_is_said(report_answers, whole):
    requests = [
        {"kind": "aggregate", "sequence": 4, "selection": {"metric": "nonsense"}},
        {"kind": "embedding", "sequence": 5, "selection": {"method": "tsne"}},
    ]
    ours = report_answers(whole[1], requests)
    assert "got nonsense" in ours[0]["error"]
    assert ours[0]["sequence"] == 4
    assert "leaves out this map (tsne)" in ours[1]["error"]
