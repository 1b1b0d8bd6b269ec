"""Small values: the axis ends at the largest, and a switch shows the whole one."""

from __future__ import annotations

import re

import torch
from reader import expect

import orbical as ob


def test_small_values_fill_the_plot_and_a_switch_shows_the_whole_scale(paged, serve):
    images, labels = ob.datasets.digits()

    def unsure(images):
        return torch.zeros(len(images), 10)

    scan = ob.scan(
        {"unsure": unsure},
        (images[:20], labels[:20]),
        group="rotations:12",
        task="classification",
        progress=False,
    )
    page = paged(serve(scan).url, "sample=1", sections=("aggregate", "individual"))
    curve = page.tab.locator(".aggregate .orbit-plot path[stroke-linejoin]")
    large = curve.bounding_box()["width"]
    ends = page.tab.locator(".mean-face > .switch label")
    expect(ends).to_have_text(["up to 0.1", "up to 1"])
    ends.nth(1).click()
    page.until("() => location.hash.includes('scale=full')")
    small = curve.bounding_box()["width"]
    assert small < 0.2 * large
    ends.nth(0).click()
    page.eventually(lambda: curve.bounding_box()["width"] == large)
    page.tab.select_option(".menus select", "correct")
    expect(page.tab.locator(".section.aggregate")).to_have_attribute("data-state", "ready")


def test_a_circle_is_drawn_as_a_straight_line_and_back(view, axe):
    page = view("sample=9&element=18")
    tab = page.tab
    circles = tab.locator(":is(.aggregate, .individual) .orbit-circle")
    expect(circles).to_have_count(2)
    tab.get_by_label("straight").check()
    expect(tab.locator(":is(.aggregate, .individual) .orbit-line")).to_have_count(2)
    expect(circles).to_have_count(0)
    page.until("() => /shape=line/.test(location.hash) && /element=18/.test(location.hash)")
    plot = tab.locator(".individual .orbit-line")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^90°"))
    plot.press("ArrowRight")
    page.until("() => location.hash.includes('element=19')")
    assert page.violations(axe) == []
    tab.get_by_label("straight").uncheck()
    expect(circles).to_have_count(2)
