"""What follows from a scan whose classes move is what follows from classes moved back by hand.

Each model is scanned twice: with a representation of its classes, and as a function in plain Python
that reads from its input how that was moved, moves the classes back itself, and has classes that
stay. Everything after the scan must agree exactly.
"""

from __future__ import annotations

import base64
import gzip
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import orbical as ob
from orbical.conformal.orbit_coverage import conformal_halves

SAMPLES = 60


def options_scored(options):
    """Return probabilities of rows `[N, 4, 3]`; what comes first is preferred."""
    scores = 2 * options[..., 0] + options[..., 1] + torch.tensor([1.5, 0.0, 0.0, -1.0])
    return scores.softmax(1)


def options_moved_back(options):
    scores = options_scored(options)
    rows = torch.empty_like(scores)
    for sample in range(len(options)):
        for position in range(4):
            option = int(options[sample, position, 2])  # where it stood in the data
            rows[sample, option] = scores[sample, position]
    return rows


def side_scored(images):
    """Return probabilities of left, right and neither of images `[N, 1, 6, 6]`."""
    left, right = images[..., :3].sum((1, 2, 3)), images[..., 3:].sum((1, 2, 3))
    return torch.stack([left + 0.8, right, torch.full_like(left, 9.0)], 1).softmax(1)


def side_moved_back(images):
    scores = side_scored(images)
    rows = []
    for sample in range(len(images)):
        marked = int(images[sample, 0].argmax()) % 6  # the column of the mark, 0 in the data
        left, right, neither = scores[sample].tolist()
        rows.append([left, right, neither] if marked == 0 else [right, left, neither])
    return torch.tensor(rows)


def options_data():
    data = torch.randn(SAMPLES, 4, 3, generator=torch.Generator().manual_seed(0))
    data[..., 2] = torch.arange(4.0)
    right = (
        data[..., 0] + torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(1))
    ).argmax(1)
    return data, right


def side_data():
    images = torch.rand(SAMPLES, 1, 6, 6, generator=torch.Generator().manual_seed(2))
    images[:, 0, 0, 0] = 2.0
    right = torch.randint(0, 3, (SAMPLES,), generator=torch.Generator().manual_seed(3))
    return images, right


FLIPPED = {"flip horizontal": {"left": "right"}, "flip both": {"left": "right"}}
KINDS = {
    "options": (options_data, options_scored, options_moved_back, "permutations:4", "options"),
    "sides": (side_data, side_scored, side_moved_back, "flips", FLIPPED),
}


@pytest.fixture(scope="module", params=[*KINDS])
def scans(request):
    data, scored, moved_back, group, representation = KINDS[request.param]
    sides = request.param == "sides"
    settings = {
        "input": None if sides else ob.actions.Rows(),
        "outputs": "probabilities",
        "classes": ["left", "right", "neither"] if sides else [*"ABCD"],
    }
    made = []
    moved_back.__qualname__ = scored.__qualname__  # a record names its model
    for model, moving in ((scored, representation), (moved_back, "trivial")):
        task = ob.tasks.Classification(representation=moving, **settings)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "permutations:4 reorders 4 rows")
            made.append(
                ob.scan({"net": model}, data(), group=group, task=task,
                        keep=("probabilities", "inputs"), progress=False)
            )  # fmt: skip
    return made


def test_the_scans_themselves_agree_and_something_changes(scans):
    moving, by_hand = (scan.data for scan in scans)
    assert sorted(moving) == sorted(by_hand)
    for name in moving:
        assert np.array_equal(moving[name].values, by_hand[name].values, equal_nan=True), name
    assert float(ob.nero.consistency(scans[0])["changed"][0]) > 0.1


@pytest.mark.parametrize("method", [ob.conformal.LAC(0.8), ob.conformal.APS(0.8)])
def test_prediction_sets(scans, method):
    moving, by_hand = (ob.conformal.coverage_table(scan, method) for scan in scans)
    pd.testing.assert_frame_equal(moving, by_hand, check_exact=True)
    assert {*moving["calibrated"]} >= {"identity", "pooled", "position", "average"}
    # The threshold at the identity, and what it covers at each element, in plain Python.
    found = ob.conformal.along_orbit(scans[0], ob.conformal.LAC(0.8), calibrate="identity")
    probabilities, labels = (scans[1].data[name].values for name in ("probabilities", "label"))
    held = conformal_halves(np.arange(SAMPLES), 0.5, 0)[0].tolist()
    wrong = sorted(1 - probabilities[0, i, scans[0].group.identity, labels[i]] for i in held)
    limit = wrong[int(np.ceil(0.8 * (len(held) + 1))) - 1]
    others = [i for i in range(SAMPLES) if i not in set(held)]
    covered = [
        np.mean([1 - probabilities[0, i, k, labels[i]] <= limit for i in others])
        for k in range(len(scans[0].group))
    ]
    assert found.coverage.values[0].tolist() == pytest.approx(covered, abs=0)


def test_recalibration(scans):
    moving, by_hand = (ob.recalibrate.OrbitTemperature.from_scan(scan) for scan in scans)
    assert moving.temperature_ == by_hand.temperature_ != 1
    for scaling in (ob.recalibrate.VectorScaling, ob.recalibrate.Temperature):
        fitted = [
            scaling(outputs="probabilities").fit(
                scan.data["probabilities"].values[0, :, -1], scan.data["label"].values
            )
            for scan in scans
        ]
        rows = [
            one.predict_proba(scan.data["probabilities"].values[0, :, 1])
            for one, scan in zip(fitted, scans, strict=True)
        ]
        assert np.array_equal(*rows)


def test_averages_over_orbits(scans):
    moving, by_hand = (ob.nero.averaging(scan) for scan in scans)
    assert moving.equals(by_hand)
    # The averaged model is the mean of the probabilities, and stays the same along the orbit.
    whole = scans[1].data["probabilities"].values[0].mean(1)
    right = (whole.argmax(1) == scans[1].data["label"].values).mean()
    assert float(moving["accuracy"].isel(model=0, elements=-1).sel(place="identity")) == right


def test_calibration(scans):
    for measure in ("ece", "smooth_ece", "ks"):
        curves = [ob.calibration.along_orbit(scan, measure).values for scan in scans]
        assert np.array_equal(*curves), measure
    tables = [ob.calibration.scan_table(scan) for scan in scans]
    assert str(tables[0]) == str(tables[1])


def test_checks(scans):
    limits = {"max_changed": 0.1, "max_gap": 0.05, "min_accuracy": 0.5, "max_accuracy_drop": 0.05,
              "max_worst_ece": 0.2, "max_pooled_ece": 0.1}  # fmt: skip
    moving, by_hand = (ob.check(scan, **limits) for scan in scans)
    assert moving == by_hand
    share = np.mean([len({*row}) > 1 for row in scans[1].data["predicted"].values[0].tolist()])
    assert (moving[0].value, moving[0].outcome) == (share, "fail")


def test_reports(scans, tmp_path):
    pages = []
    for name, scan in zip(("moving", "by hand"), scans, strict=True):
        ob.report(scan, tmp_path / f"{name}.html")
        pages.append((tmp_path / f"{name}.html").read_text())
    parts = [
        [gzip.decompress(base64.b64decode(part)) for part in re.findall(r"H4sI[\w+/]+={0,2}", page)]
        for page in pages
    ]
    assert len(parts[0]) > 10
    moving, by_hand = ([re.sub(rb"\d+:\d+(:\d+)?", b"", part) for part in each] for each in parts)
    assert moving == by_hand
