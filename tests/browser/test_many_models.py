"""Twelve models: plots keep their size, and every line has its own look."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch

import orbical as ob

BOXES = """all => all.map(one => one.getBoundingClientRect()).map(
  ({ left, top, right, bottom }) => [left, top, right, bottom])"""
CUT = """one => {
  const shadows = getComputedStyle(one).backgroundImage.split("linear-gradient").length - 1;
  const scrolls = getComputedStyle(one).overflowY === "auto" && shadows === 4;
  return one.scrollHeight > one.clientHeight + 1 && !scrolls;
}"""
"""Whether a list has rows below its end without a sign of it."""


@pytest.fixture(scope="module", params=[3, 12])
def several(serve: Any, request: pytest.FixtureRequest) -> Any:
    """A server of a scan of so many models with long names."""
    return serve(scan_of(request.param)), request.param


@pytest.fixture(scope="module")
def twelve(serve: Any) -> Any:
    """A server of a scan of twelve models."""
    return serve(scan_of(12))


def scan_of(count: int) -> ob.Scan:
    images, labels = ob.datasets.digits()
    models = {}
    for seed in range(count):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        models[f"resnet18_rotations_seed_{seed}"] = net
    data = (images[:30], labels[:30])
    return ob.scan(models, data, group="rotations:12", task="classification", progress=False)


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1440, 900), (2560, 1440)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plots_keep_240_pixels_and_lists_end_or_scroll_visibly(
    paged: Any, several: Any, size: tuple[int, int], scheme: str
) -> None:
    server, count = several
    viewport = dict(zip(("width", "height"), size, strict=True))
    sections = ("aggregate", "individual", "calibration")
    page = paged(server.url, "sample=1", sections=sections, viewport=viewport, scheme=scheme)
    for section in sections[:2]:
        plot = page.tab.locator(f".{section} .plot-holder").first.bounding_box()
        assert min(plot["width"], plot["height"]) >= 240, (section, plot)
        own = page.tab.locator(f".section.{section}").bounding_box()
        assert plot["y"] + plot["height"] <= own["y"] + own["height"], section
    table = page.tab.locator(".aggregate .changes").bounding_box()
    above = page.tab.locator(".aggregate .plot-holder").first.bounding_box()
    assert table["y"] >= above["y"] + above["height"] - 1  # not over the plot
    looks = page.tab.locator(".changes line").evaluate_all("all => all.map(one => one.outerHTML)")
    assert len({*looks}) == count
    for name in (".changes", ".readout", ".measures-holder"):
        cut = page.tab.locator(name).first.evaluate(CUT)
        assert not cut, name
    bars = page.tab.locator(".calibration svg [data-count]").evaluate_all(BOXES)
    assert len(bars) > count
    assert not any(_overlap(one, other) for one, other in combinations(bars, 2))


def _overlap(one: list[float], other: list[float]) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap by more than rounding."""
    wide, high = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    return wide > 0.05 and high > 0.05


def test_many_models_are_chosen_in_a_menu(paged: Any, twelve: Any) -> None:
    page = paged(twelve.url, "sample=1", sections=("aggregate",))
    tab = page.tab
    opener = tab.locator(".menus .group > [aria-controls]")
    assert opener.inner_text() == "all of 12 ▾"
    opener.click()
    entries = tab.locator(".model-menu button")
    assert entries.count() == 12
    entries.nth(3).click()
    page.until("() => location.hash.includes('models=')")
    assert opener.inner_text() == "11 of 12 ▾"
    assert tab.evaluate("document.activeElement.dataset.key").endswith("seed_3")
    tab.get_by_role("button", name="all", exact=True).click()
    page.until("() => !location.hash.includes('models=')")
