"""Small values: the axis ends at the largest, and a switch shows the whole one."""

from __future__ import annotations

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
