"""Twelve models: plots keep their size, and every line has its own look."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import orbical as ob


@pytest.fixture(scope="module")
def twelve(serve: Any) -> Any:
    """A server of a scan of twelve models with long names."""
    images, labels = ob.datasets.digits()
    models = {}
    for seed in range(12):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        models[f"resnet18_rotations_seed_{seed}"] = net
    data = (images[:30], labels[:30])
    return serve(ob.scan(models, data, group="rotations:12", task="classification", progress=False))


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1440, 900)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plots_keep_240_pixels(paged: Any, twelve: Any, size: tuple[int, int], scheme: str) -> None:
    viewport = dict(zip(("width", "height"), size, strict=True))
    sections = ("aggregate", "individual")
    page = paged(twelve.url, "sample=1", sections=sections, viewport=viewport, scheme=scheme)
    for section in sections:
        plot = page.tab.locator(f".{section} .plot-holder").first.bounding_box()
        assert min(plot["width"], plot["height"]) >= 240, (section, plot)
        own = page.tab.locator(f".section.{section}").bounding_box()
        assert plot["y"] + plot["height"] <= own["y"] + own["height"], section
    legend = page.tab.locator(".aggregate .legend").first.bounding_box()
    above = page.tab.locator(".aggregate .plot-holder").first.bounding_box()
    assert legend["y"] >= above["y"] + above["height"] - 1  # not over the plot
    looks = page.tab.locator(".aggregate .legend[tabindex] line").evaluate_all(
        "lines => lines.map(l => l.outerHTML)"
    )
    assert len({*looks}) == 12


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
