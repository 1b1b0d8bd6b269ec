"""Exported figures: what is in the picture is what is on the screen."""

from __future__ import annotations

import io
import xml.etree.ElementTree

import numpy as np
import pytest
from reader import drawn, expect


@pytest.fixture
def exported(tmp_path):
    """Give a function that exports a figure from the menu, and reads it."""
    from matplotlib.image import imread

    def export(page, kind="PNG", what="", width="", scale="1"):
        page.tab.get_by_role("button", name="Export").click()
        page.tab.get_by_label("Figure").select_option(what)
        page.tab.get_by_label("Width in px").fill(width)
        page.tab.get_by_label("Scale").select_option(scale)
        with page.tab.expect_download() as started:
            page.tab.get_by_role("button", name=kind, exact=True).click()
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        return imread(path)[..., :3] if kind == "PNG" else xml.etree.ElementTree.parse(path)

    return export


def screen(page, selector):
    """The pixels of an element as the reader sees them, and where it is."""
    from matplotlib.image import imread

    one = page.tab.locator(selector).first
    return imread(io.BytesIO(one.screenshot()))[..., :3], one.bounding_box()


def ramp(picture, key, inside, margin=3):
    """The colors of a key inside a picture, from left to right, as in its box on the screen."""
    row = round(key["y"] - inside["y"] + key["height"] / 2)
    left = round(key["x"] - inside["x"])
    return picture[row, left + margin : left + round(key["width"]) - margin]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_is_what_the_screen_shows(view, exported, scheme):
    page = view("sample=2&element=30&filter=label:6,9&of=plain", scheme=scheme)
    page.tab.wait_for_selector(".chip:not([hidden])")
    page.until("() => document.querySelectorAll('.rows .row-label').length > 3")
    drawn(page.tab)
    seen, box = screen(page, ".section.embedding")
    picture = exported(page, what="embedding")
    height, width = (min(pair) for pair in zip(seen.shape[:2], picture.shape[:2], strict=True))
    assert abs(width - box["width"]) <= 1
    apart = np.abs(seen[:height, :width] - picture[:height, :width])
    assert apart.mean() < 0.035  # edges of letters differ by a part of a pixel
    key = page.tab.locator(".embedding .key .strip").bounding_box()
    colors = ramp(picture, key, box)
    assert len(np.unique((colors * 255).round(), axis=0)) > 20
    np.testing.assert_allclose(colors, ramp(seen, key, box), atol=0.05)


def test_a_figure_takes_a_width_and_a_scale(view, exported, tmp_path):
    page = view("sample=2&element=30")
    shown = page.tab.locator(".section.aggregate").bounding_box()
    picture = exported(page, what="aggregate", width="700", scale="3")
    assert picture.shape[1] == 2100
    assert picture.shape[0] / picture.shape[1] == pytest.approx(
        shown["height"] / shown["width"], abs=0.01
    )
    drawing = exported(page, kind="SVG", width="600").getroot()
    assert drawing.get("width") == "600"
    assert float(drawing.get("height")) > 2000  # one column, all of it
    after = page.tab.locator(".section.aggregate").bounding_box()
    assert after == shown  # the page is as it was
    page.tab.locator(".section.input .enlarge").click()
    page.tab.wait_for_selector(".staged")
    staged = page.tab.locator(".staged").bounding_box()
    page.tab.keyboard.press("x")  # the menu opens on the stage
    page.tab.get_by_label("Width in px").fill("")
    with page.tab.expect_download() as started:
        page.tab.get_by_role("button", name="SVG", exact=True).click()
    assert started.value.suggested_filename == "orbical-input.svg"
    started.value.save_as(tmp_path / "input.svg")
    drawing = xml.etree.ElementTree.parse(tmp_path / "input.svg").getroot()
    assert float(drawing.get("width")) == pytest.approx(staged["width"], abs=1)
    expect(page.tab.locator(".staged")).to_be_visible()
