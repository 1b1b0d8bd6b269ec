"""`orbical conformal`: saved outputs, and a scan at every position."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import orbical as ob


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conformal")
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    ob.scan(
        {"net": net},
        (images[:200], labels[:200]),
        group="cyclic:4",
        task="classification",
        keep="probabilities",
        out=folder / "run.zarr",
        progress=False,
    )
    return folder


def test_a_scan_is_a_table_with_a_row_for_each_calibration(run, orbical):
    said = orbical(run, "conformal", "run.zarr", "--coverage", "0.8", "--figure", "coverage.png")
    for words in ("net, sets for a coverage of 0.8", "identity", "position", "average"):
        assert words in said
    assert max(map(len, said.splitlines())) <= 80
    assert (run / "coverage.png").stat().st_size > 1000


def test_every_position_is_printed_as_json_and_csv(run, orbical):
    words = ("conformal", "run.zarr", "--calibrate", "pooled", "--method", "raps")
    rows = json.loads(orbical(run, *words, "--json"))
    assert len(rows) == 4
    scan = ob.load(run / "run.zarr")
    found = ob.conformal.along_orbit(scan, ob.conformal.RAPS(0.9), calibrate="pooled")
    assert [row["coverage"] for row in rows] == pytest.approx(found.coverage.values[0])
    assert [row["size_low"] for row in rows] == pytest.approx(found.size["low"].values[0])
    assert len(orbical(run, *words, "--csv").splitlines()) == 5


def test_saved_outputs_are_one_row(tmp_path, orbical):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 400)
    labels = (probs.cumsum(1) > rng.random((400, 1))).argmax(1)
    np.savez(tmp_path / "classes.npz", probs=probs, labels=labels)
    (row,) = json.loads(orbical(tmp_path, "conformal", "classes.npz", "--json"))
    assert row["coverage_low"] < 0.93 < row["coverage_high"] + 0.05
    assert row["tested"] == 200
    said = orbical(tmp_path, "conformal", "classes.npz")
    assert f"{row['coverage']:.4f}" in said
    assert not [word for word in ("orbit", "element", "identity") if word in said]
    mean = rng.normal(size=400)
    np.savez(
        tmp_path / "numbers.npz",
        mean=mean,
        variance=np.full(400, 0.25),
        target=mean + rng.normal(0, 0.5, 400),
    )
    for method in ("absolute", "normalized"):
        said = orbical(tmp_path, "conformal", "numbers.npz", "--method", method)
        assert "calibrated on 200 samples" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("run.zarr", "--coverage", "0.999"), "at least 999 calibration samples"),
        (("run.zarr", "--method", "absolute"), "--method: unknown name 'absolute'"),
        (("run.zarr", "--calibrate", "upright"), "--calibrate: unknown name 'upright'"),
        (("run.zarr", "--json", "--csv"), "at most one of them"),
        (("run.zarr", "--share", "1"), "share: expected a number in (0, 1)"),
    ],
)
def test_what_cannot_be_done_is_refused(run, orbical, words, reason):
    assert reason in " ".join(orbical(run, "conformal", *words, expect=2).split())


def test_numbers_have_intervals_of_a_width(orbical, tmp_path):
    draw = np.random.default_rng(0)
    data = draw.random((40, 2)), draw.random(40)
    task = ob.tasks.Regression(ob.actions.Vectors())
    options = {"group": "cyclic:2", "task": task, "progress": False}
    ob.scan(lambda x: x[:, 0], data, out=tmp_path / "run.zarr", **options)
    said = orbical(tmp_path, "conformal", "run.zarr", "--coverage", "0.8")
    assert "model, intervals for a coverage of 0.8" in said
    assert "mean width over" in said
    assert max(map(len, said.splitlines())) <= 80
