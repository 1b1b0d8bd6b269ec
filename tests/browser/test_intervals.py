"""Predictions with their intervals in a real browser: what is drawn is what the scan holds."""

from __future__ import annotations

import pytest
import torch
from reader import expect

import orbical as ob


def unsure(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    one = torch.ones(len(x), 1)
    return 0.8 * x, 2 * one, 2 + x.norm(dim=-1, keepdim=True), 0.5 * one


def surer(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    one = torch.ones(len(x), 1)
    return 0.95 * x, 8 * one, 4 * one, 0.2 * one


def spectrum(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    places = torch.linspace(0, 1, 60)
    height = x.norm(dim=-1, keepdim=True)
    return height * torch.sin(9 * places + x[:, :1]), 0.05 + (height * places).square()


PICTURE = ".section.detail[data-state=ready] svg[role=img]"


def test_whiskers_and_parts_of_the_variance(opened, serve, tmp_path) -> None:
    x = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="evidential")
    scan = ob.scan(
        {"unsure": unsure, "surer": surer},
        (x, x),
        group="rotations:12",
        task=task,
        out=tmp_path / "vectors.zarr",
        keep="inputs",
        progress=False,
    )
    tab = opened(f"{serve(scan).url}#sample=3&element=4", ("detail",))
    words = tab.locator(PICTURE).first.get_attribute("aria-label")
    data = scan.data.sel(model="surer").isel(sample=3, element=4)
    first = float(data["mean"][0])
    said = words.split("surer: ")[1].split(" ±")[0].replace("−", "-")
    assert float(said) == pytest.approx(first, rel=1e-3)
    picture = tab.locator(PICTURE).first
    expect(picture.locator("circle")).to_have_count(4)  # two models, two components
    expect(picture.locator("rect")).to_have_count(8)  # and two parts each
    titles = picture.locator("rect title").all_text_contents()
    parts = {title.split()[0] for title in titles}
    assert parts == {"aleatoric", "epistemic"}
    assert "dark: aleatoric" in tab.locator(".section.detail .view-note").inner_text()


def test_a_spectrum_is_drawn_as_curves_with_bands(opened, serve, tmp_path) -> None:
    x = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="variance")
    scan = ob.scan(
        spectrum,
        (x, spectrum(x)[0] + 0.1),
        group="rotations:12",
        task=task,
        out=tmp_path / "spectra.zarr",
        keep="inputs",
        progress=False,
    )
    tab = opened(f"{serve(scan).url}#sample=1", ("detail",))
    picture = tab.locator(PICTURE).first
    assert "truth" in picture.get_attribute("aria-label")
    expect(picture.locator("path")).to_have_count(4)  # band, truth, prediction, variance


def test_a_band_that_no_number_of_samples_guarantees_has_its_caution(serve, paged):
    torch.manual_seed(0)
    given = torch.rand(40, 1, 4, 4), torch.randn(40, 2)
    models = {"a": lambda x: x[:, 0, 0, :2], "b": lambda x: x[:, 0, 1, 1:3]}
    scans = {
        name: ob.scan(models, given, group="rotations:8", task="regression", progress=False)
        for name in ("run", "again")
    }
    rare = "failures as rare as 1 in 11 may be missing among 40 samples"
    server, shown = serve(scans), ("aggregate",)
    page = paged(server.url, sections=shown)
    page.shows(".aggregate .caution", f"Caution: {rare}: the interval may be too short.")
    page = paged(server.url, "show=runs&runs=difference", sections=shown)
    equal = "values that hardly differ say nothing of rarer ones"
    page.shows(
        ".aggregate .runs-head ~ .caution", f"Caution: {equal}: the interval may be too short."
    )
