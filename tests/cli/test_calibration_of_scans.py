"""`orbical calibration` on a scan: along its orbit, on the screen and in files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from calibration_command import FEW, run

import orbical as ob
from orbical.calibration import ece


def scan_of_digits(store: Path, chunk: int | str = "auto") -> ob.Scan:
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    return ob.scan(
        nets,
        (images[:60], labels[:60]),
        group="rotations:8",
        task="classification",
        out=store,
        chunk=chunk,
        progress=False,
    )


def test_a_scan_is_summarized_along_its_orbit(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    scan = scan_of_digits(store)
    picture = tmp_path / "orbit.png"
    answer = json.loads(run(store, "--json", "--figure", picture, *FEW))
    assert picture.is_file()
    rows = {(row["model"], row["measure"], row["place"]): row for row in answer["rows"]}
    data = scan.data.sel(model="a")
    each = [
        float(ece(data["confidence"][:, g].values, data["correct"][:, g].values)) for g in range(8)
    ]
    pooled = ece(data["confidence"].values.ravel(), data["correct"].values.ravel())
    expected = {"identity": each[0], "mean": np.mean(each), "worst": max(each), "pooled": pooled}
    for place, value in expected.items():
        row = rows["a", "ece", place]
        assert row["value"] == pytest.approx(float(value))
        assert row["low"] <= row["value"] <= row["high"]
    assert rows["a", "ece", "worst"]["element"] == scan.group.name(int(np.argmax(each)))
    assert ("b", "ks", "identity") in rows
    table = ob.calibration.scan_table(scan, resamples=40)
    assert table["value"].tolist() == [row["value"] for row in answer["rows"]]
    text = run(store, *FEW)
    assert "a, along the orbit" in text
    assert "its interval is known for the ECE only" in text
    assert max(map(len, text.splitlines())) <= 80


def test_an_unfinished_scan_is_said_to_be_one(tmp_path: Path) -> None:
    """Its table used to be that of fewer samples, without a word."""
    scan_of_digits(tmp_path / "run.zarr", chunk=30)
    next((tmp_path / "run.zarr/units").glob("0.*.json")).unlink()
    said = r"% done; the numbers are those of the finished samples"
    with (
        pytest.warns(UserWarning, match=said),
        pytest.warns(UserWarning, match="no valid mark"),
    ):
        run(tmp_path / "run.zarr", *FEW)


def test_csv_and_latex_of_a_scan_hold_what_the_screen_shows(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    scan_of_digits(store)
    answer = json.loads(run(store, "--json", *FEW))["rows"]
    rows = list(csv.DictReader(io.StringIO(run(store, "--csv", *FEW))))
    assert [float(row["value"]) for row in rows] == [row["value"] for row in answer]
    named = [(row["model"], row["measure"], row["place"]) for row in rows]
    assert len({*named}) == len(named)
    latex = run(store, "--latex", *FEW)
    assert latex.count(r"\begin{tabular}") == 2
    assert "b & smooth ECE & $" in latex
    assert "b & KS & $" in latex.split(r"\end{tabular}")[1]


def test_a_scan_of_a_regressor_has_the_measures_of_regression(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 2, generator=generator)
    store, wide = tmp_path / "run.zarr", tmp_path / "wide.zarr"

    def evidence(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        one = torch.ones(len(x), 1)
        return x[:, :1] + x[:, 1:], one, 2 * one, 1 + x[:, :1].square()

    settings = dict(group="cyclic:4", progress=False)
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="evidential")
    models = {"unsure": evidence, "bare": lambda x: x.sum(-1)}
    ob.scan(models, (x, x.square().sum(-1)), task=task, out=store, **settings)
    picture = tmp_path / "orbit.png"
    answer = json.loads(run(store, "--json", "--figure", picture, *FEW))
    assert picture.is_file()
    assert {row["model"] for row in answer["rows"]} == {"unsure"}  # the other has no variance
    measured = {row["measure"] for row in answer["rows"] if row["place"] == "mean"}
    assert {"gence", "ence", "quantile_calibration", "aleatoric_bleed", "gaussian_nll"} <= measured
    assert "unsure, along the orbit" in run(store, *FEW)
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="variance")
    ob.scan(lambda x: (0 * x, x.abs() + 1), (x, x), task=task, out=wide, **settings)
    rows = json.loads(run(wide, "--json", *FEW))["rows"]
    means = [row for row in rows if row["place"] == "mean"]
    apart = {row["measure"]: row["value"] for row in means if "bleed" in row["measure"]}
    total = apart.pop("aleatoric_bleed")
    assert list(apart) == ["aleatoric_bleed, component 0", "aleatoric_bleed, component 1"]
    assert sum(apart.values()) == pytest.approx(total)
    assert "component 1" in run(wide, *FEW)
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    alike = tmp_path / "alike.zarr"
    ob.scan(lambda x: (0 * x, x.norm(dim=-1) + 1), (x, x), task=task, out=alike, **settings)
    assert "component" not in run(alike, *FEW)  # one variance for all
