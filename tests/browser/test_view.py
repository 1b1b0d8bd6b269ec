"""The view in a real browser, on a real server, with the networks that ship.

What the page shows is compared with the scan, or with the networks run directly.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree

import numpy as np
import pytest
import torch
from reader import SECTIONS, expect, loneliest, values

import orbical as ob

pytestmark = pytest.mark.unit  # the journeys of a reader that every change must keep

SVG = "{http://www.w3.org/2000/svg}"


def test_everything_fits_one_screen_and_says_what_it_is(view, digit_scan):
    page = view()
    size = page.tab.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size == [1440, 900]
    assert page.clipped() == []
    titles = page.tab.locator("main h3").all_inner_texts()
    assert titles == ["Aggregate", "Embedding", "Calibration", "Individual", "Input", "Prediction"]
    page.shows(".overview h2", "All 120 images")
    page.shows(".badge", "live")
    found = ob.nero.consistency(digit_scan)
    page.until(
        "() => [...document.querySelectorAll('.changes tbody b')]"
        ".every((share) => share.textContent.endsWith('%'))"
    )
    shown = page.tab.locator(".changes tbody b").all_inner_texts()
    for name, texts in (("changed", shown[::2]), ("pairs", shown[1::2])):
        shares = [float(text.removesuffix(" %")) / 100 for text in texts]
        assert shares == pytest.approx(found[name].values.tolist(), abs=0.006)


def test_a_click_in_the_embedding_selects_the_sample_there(view, live_server, digit_scan):
    lonely = loneliest(live_server)
    page = view(f"sample={lonely}&order=best")
    place = page.ring()
    page.open(f"sample={(lonely + 1) % 120}&order=best")
    page.tab.mouse.click(*place)
    page.until(
        "wanted => document.querySelector('.one h2').textContent === wanted", f"Image {lonely}"
    )
    label = int(digit_scan.data["label"][lonely])
    page.until(
        "label => document.querySelector('.one .half p').textContent === `label ${label}`", label
    )
    assert page.fragment().startswith(f"sample={lonely}&")
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{float(values(digit_scan, 'score', lonely)['plain'][0]):.3f}",
    )


def test_arrows_along_the_orbit_show_what_the_scan_holds(view, digit_scan):
    page = view("sample=2&element=25")
    page.tab.locator(".individual .orbit-plot").focus()
    for _ in range(5):
        page.tab.keyboard.press("ArrowRight")
    page.at("sample=2&element=30")
    page.until("() => document.querySelector('.where').textContent === '150°'")
    score = values(digit_scan, "score", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{score['plain'][30]:.3f}",
    )
    known = values(digit_scan, "probabilities", 2)
    page.says({name: held[30] for name, held in known.items()}, atol=6e-4)
    _, rows = page.readout()
    assert {*rows} == {"plain", "augmented"}
    for name, (metric, answer, confidence) in rows.items():
        predicted = int(values(digit_scan, "predicted", 2)[name][30])
        assert float(metric) == pytest.approx(score[name][30], abs=6e-4)
        assert answer == f"{predicted} {'✓' if predicted == 6 else '✗'}"
        known = values(digit_scan, "confidence", 2)[name][30]
        assert float(confidence) == pytest.approx(known, abs=6e-4)
    assert rows["plain"][1] == "9 ✗"  # the turned six
    assert page.tab.locator(".bar-row.is-true .bar-name").inner_text() == "6"


def test_dragging_runs_the_networks_between_the_scanned_elements(view, digit_scan, networks):
    from scipy.ndimage import rotate

    page = view("sample=2")
    page.drag_to(103.3)
    page.until("() => location.hash.includes('position=')")
    angle = float(re.search(r"position=([\d.]+)", page.fragment())[1])
    assert angle == pytest.approx(103.3, abs=1.5)
    assert angle % 5 > 0.01
    page.until(
        "name => document.querySelector('.where').textContent === name", f"{round(angle, 1):g}°"
    )
    still = digit_scan.data["input"].values[2, 0]
    turned = rotate(still, angle, reshape=False, order=1)
    page.eventually(lambda: np.allclose(page.pixels(), turned.clip(0, 1), atol=0.02, rtol=0))
    given = torch.from_numpy(turned)[None, None]
    with torch.inference_mode():
        known = {name: net(given).softmax(-1)[0].numpy() for name, net in networks.items()}
    page.says(known, atol=5e-3)


def test_plots_keep_their_size_while_names_of_positions_come_and_go(view):
    page = view("sample=2")
    sizes = """() => [".individual .plot", ".input canvas", ".detail .bars"].map((name) => {
        const { width, height } = document.querySelector(name).getBoundingClientRect();
        return [width, height];
    })"""
    before = page.tab.evaluate(sizes)
    for angle in (4, 103.3):
        page.drag_to(angle)
        page.until(
            "angle => Math.abs(parseFloat(location.hash.split('position=')[1]) - angle) < 2", angle
        )
        assert page.tab.evaluate(sizes) == before, angle


def test_dragging_on_the_aggregate_moves_everything_and_writes_the_address_on_release(
    view, digit_scan
):
    page = view("sample=2")
    before = page.pixels()
    page.drag_to(90, "aggregate", release=False)
    page.until("() => parseFloat(document.querySelector('.where').textContent) > 85")
    page.at("sample=2")
    page.tab.mouse.up()
    page.until("() => location.hash.includes('element=')")
    element = int(re.search(r"element=(\d+)", page.fragment())[1])
    assert element == 18
    page.eventually(lambda: np.abs(page.pixels() - before).max() > 0.5)
    mean = digit_scan.data["score"].mean("sample").values[:, element]
    page.eventually(lambda: page.legend() == pytest.approx(mean, abs=6e-4))
    scope = "document.querySelector('.calibration [aria-label=Scope]')"
    page.until(f"() => {scope}.innerText.includes('at 90°')")


def test_hovering_shows_the_sample_and_its_orbit(view):
    page = view("sample=2")
    page.hover_over_the_map()
    expect(page.tab.locator(".hovercard canvas").first).to_be_visible()
    page.tab.mouse.move(5, 5)
    page.tab.wait_for_selector(".hovercard", state="hidden")


def test_everything_is_reached_with_the_keyboard_alone(view):
    page = view("sample=2")
    seen = set()
    for _ in range(105):
        page.tab.keyboard.press("Tab")
        where = page.tab.evaluate(
            """() => { const el = document.activeElement;
            const part = el.closest(".section, .menus, .filters, .actions, .half, .readout");
            return part ? part.className.split(" ").pop() : el.tagName; }"""
        )
        seen.add(where)
    assert {"menus", "filters", "actions", "half", *SECTIONS} <= seen
    press = page.tab.keyboard.press
    page.tab.evaluate("() => document.activeElement.blur()")
    press("5")
    press("ArrowRight")
    page.until("() => location.hash.includes('element=1')")
    press("Home")
    page.until("() => location.hash === '#sample=2&element=0'")
    press("m")
    page.until("() => location.hash.includes('metric=')")
    press("M")
    press("r")
    page.until("() => location.hash.includes('reference=consensus')")
    press("r")
    press("k")
    page.until("() => location.hash.includes('scope=orbit')")
    press("c")
    page.until("() => location.hash.includes('color=variance')")
    press("2")
    page.tab.wait_for_selector(".embedding .body:not(.stale)")
    press("+")
    page.until("() => location.hash.includes('subset=')")
    page.tab.wait_for_selector(".chip:not([hidden])")
    press("Escape")
    page.until("() => !location.hash.includes('subset=')")
    press("?")
    expect(page.tab.get_by_role("dialog")).to_be_visible()
    press("Escape")
    expect(page.tab.get_by_role("dialog")).not_to_be_visible()
    press("x")
    expect(page.tab.get_by_role("button", name="Copy link to this view")).to_be_visible()
    press("Escape")
    expect(page.tab.get_by_role("button", name="Copy link to this view")).not_to_be_visible()


def test_each_section_explains_itself(view):
    page = view("sample=2")
    for name in SECTIONS:
        button = page.tab.locator(f".section.{name} .info")
        assert len(button.get_attribute("title")) > 40
        button.focus()
        page.tab.keyboard.press("Enter")
        hint = page.tab.locator(f".section.{name} .popover-hint")
        expect(hint).to_have_text(button.get_attribute("title"))
        page.tab.keyboard.press("Escape")
        expect(hint).not_to_be_visible()


def test_a_link_restores_the_view_and_back_and_forward_walk_through_it(view):
    fragment = (
        "sample=7&element=12&models=plain&metric=confidence&reference=consensus&filter=label:6,9"
        "&method=ica&of=plain&color=variance&order=best&scope=orbit"
    )
    page = view(fragment)
    page.at(fragment)
    page.shows(".one h2", "Image 7")
    page.shows(".where", "60°")
    chosen = page.tab.locator("select").evaluate_all("all => all.map(one => one.value)")
    assert {"confidence", "ica", "variance", "plain", "best"} <= {*chosen}
    page.tab.keyboard.press("]")
    page.until("() => !location.hash.includes('sample=7&')")
    later = page.fragment()
    page.tab.go_back()
    page.until("() => document.querySelector('.one h2').textContent === 'Image 7'")
    page.at(fragment)
    page.tab.go_forward()
    page.until("text => location.hash.slice(1) === text", later)
    expect(page.tab.locator(".one h2")).not_to_have_text("Image 7")


def test_a_link_to_nothing_opens_on_what_there_is(view):
    page = view("sample=99999&element=900&models=nobody&metric=magic&color=plaid&scope=moon")
    page.shows(".one h2", "Image 119")
    page.shows(".where", "0°")


def test_the_numbers_jump_to_the_sections_one_after_the_other(view):
    page = view("sample=3")
    sections = ("aggregate", "embedding", "embedding", "calibration", "individual", "input")
    for key, section in enumerate((*sections, "detail"), 1):
        page.tab.keyboard.press(str(key))
        page.until(f"() => document.activeElement.closest('.section.{section}')")


def test_an_empty_subset_leaves_no_count_in_the_headings(view, live_server):
    page = view("sample=3")
    page.shows(".section.aggregate .note", "mean of 120 images")
    nobody, _ = live_server.session.handle({"kind": "set", "recipe": {"samples": []}})
    address = f"sample=3&subset={nobody['hash']}"
    page.tab.evaluate("text => { location.hash = text }", address)
    for section in ("aggregate", "calibration"):
        page.tab.wait_for_selector(f".section.{section}[data-state=empty]")
        page.shows(f".section.{section} .note", "")


def test_pictures_data_and_link_are_exported(view, digit_scan, tmp_path):
    page = view(
        "sample=2&element=30&filter=label:6,9", permissions=["clipboard-read", "clipboard-write"]
    )
    page.tab.wait_for_selector(".chip:not([hidden])")

    def download(name, what=""):
        page.tab.get_by_role("button", name="Export").click()
        page.tab.get_by_label("Figure").select_option(what)
        with page.tab.expect_download() as started:
            page.tab.get_by_role("button", name=name, exact=True).click()
        page.tab.keyboard.press("Escape")
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        return path

    drawing = xml.etree.ElementTree.parse(download("SVG")).getroot()
    assert (drawing.get("width"), drawing.get("height")) == ("1440", "900")
    words = " ".join("".join(text.itertext()) for text in drawing.iter(f"{SVG}text"))
    for wanted in ("Aggregate", "Embedding", "150°", "overconfident", "clear"):
        assert wanted in words
    assert len([*drawing.iter(f"{SVG}image")]) >= 2
    (ramp,) = drawing.iter(f"{SVG}linearGradient")  # the colors of the embedding, as on the page
    assert len({stop.get("stop-color") for stop in ramp}) > 10
    from matplotlib.image import imread

    picture = imread(download("PNG"))
    assert picture.shape[:2] == (1800, 2880)
    assert len(np.unique((picture[::7, ::7, :3] * 255).round().reshape(-1, 3), axis=0)) > 50
    plot = xml.etree.ElementTree.parse(download("SVG", "aggregate")).getroot()
    assert float(plot.get("width")) < 600
    indices = [int(line) for line in download("Subset as indices").read_text().split()]
    assert indices == np.flatnonzero(np.isin(digit_scan.data["label"].values, [6, 9])).tolist()
    assert "angle" in download("Values as CSV").read_text().splitlines()[0]
    page.tab.get_by_role("button", name="Export").click()
    page.tab.get_by_role("button", name="Copy link to this view").click()
    page.until(
        "() => document.querySelector('.export-status').textContent.startsWith('Link copied.')"
    )
    link = page.tab.evaluate("() => navigator.clipboard.readText()")
    assert link.endswith("#sample=2&element=30&filter=label:6,9")
