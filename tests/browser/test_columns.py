"""The filter bar, the endless list and the grid: what is chosen there is what all sections show."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from reader import WIDE, expect  # beside this file

import orbical as ob
from orbical.interface import report

SAMPLES = 450
CLASSES = [f"kind {c}" + " of a long name" * (c % 10 < 7) for c in range(1000)]
PHONE = {"width": 390, "height": 844}


class Photos(ob.data.Source):
    """Noise with names and metadata, for a thousand classes."""

    names = tuple(f"rolls/7/IMG_{i:04d}.jpg" for i in range(SAMPLES))  # of one folder
    columns: ClassVar = {
        "camera": np.array(["Canon", "Nikon", "Pentax K-1 Mark II"])[np.arange(SAMPLES) % 3],
        "shutter": np.arange(SAMPLES) / 10,
        "story": np.full(SAMPLES, "a picture with a long remark"),
    }

    def __len__(self) -> int:
        return SAMPLES

    def read(self, start: int, stop: int) -> tuple[Any, Any]:
        images = torch.rand(SAMPLES, 1, 6, 6, generator=torch.Generator().manual_seed(0))
        return images[start:stop], (torch.arange(SAMPLES) * 7 % 1000)[start:stop]


@pytest.fixture(scope="module")
def photos() -> ob.Scan:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 1000))
    return ob.scan(
        {"net": net},
        Photos(),
        group="rotations:4",
        task="classification",
        keep="inputs",
        progress=False,
    )


@pytest.fixture(scope="module")
def photo_server(serve, photos):
    return serve({"photos": photos}, classes=CLASSES)


def test_a_histogram_is_a_brush_for_pointer_and_keys(view, photo_server):
    page = view("sample=3", server=photo_server)
    chip = page.tab.locator("[data-column=shutter]")
    chip.scroll_into_view_if_needed()
    expect(chip.locator(".brush-line > span")).to_have_text(["0", "44.9"])
    box = chip.locator(".brush").bounding_box()
    y = box["y"] + box["height"] / 2
    page.tab.mouse.move(box["x"] + 0.51 * box["width"], y)
    page.tab.mouse.down()
    page.tab.mouse.move(box["x"] + 0.74 * box["width"], y, steps=4)
    page.tab.mouse.up()
    page.until("() => location.hash.includes('filter=shutter:')")
    low, high = (float(one) for one in page.fragment().split("shutter:")[1].split(".."))
    kept = int(((Photos.columns["shutter"] >= low) & (Photos.columns["shutter"] <= high)).sum())
    assert 100 < kept < 120  # about a quarter
    page.shows(".list-heading span", f"{kept} of 450 images")
    start = chip.get_by_role("slider", name="shutter, from")
    start.focus()
    bar = int(start.get_attribute("aria-valuenow"))
    start.press("ArrowRight")
    expect(start).to_have_attribute("aria-valuenow", str(bar + 1))
    expect(start).to_be_focused()
    page.tab.keyboard.press("Home")
    page.until("() => location.hash.includes('filter=shutter:..')")
    expect(start).to_have_attribute("aria-valuenow", "0")
    page.tab.keyboard.press("Delete")
    page.until("() => !location.hash.includes('filter')")
    page.shows(".list-heading span", "450 images")


def test_handles_have_values_before_the_first_counts_are_there(make):
    values = make("""
        const { createBrush } = await import("/plots/brush.js");
        const { el } = createBrush("Confidence", () => {});
        return [...el.querySelectorAll("[role=slider]")].map((one) =>
            [one.ariaValueMin, one.ariaValueNow, one.ariaValueMax]);""")
    assert values == [["0", "0", "0"], ["1", "1", "1"]]


def test_categories_are_buttons_and_a_thousand_of_them_are_searched(view, photo_server):
    page = view("sample=3", server=photo_server)
    group = page.tab.get_by_role("group", name="camera", exact=True)
    last = group.get_by_role("button", name="Pentax K-1 Mark II")
    before = last.bounding_box()
    group.get_by_role("button", name="Nikon").click()
    page.until("() => location.hash.endsWith('filter=camera:Nikon')")
    page.shows(".list-heading span", "150 of 450 images")
    assert last.bounding_box() == before  # what is chosen moves nothing
    words = page.tab.locator(".category").evaluate_all(
        """all => all.map((one) => [one.innerText, one.getBoundingClientRect().width -
            one.querySelector(".word").getBoundingClientRect().width])"""
    )
    assert [word for word, left in words if left < 0] == []  # none lies on the next one
    label = page.tab.locator("[data-column=label]")
    label.get_by_role("button", name="all ▾").click()
    search = page.tab.get_by_label("Search Label")
    assert search.get_attribute("placeholder") == "Search 450"  # of a thousand classes
    search.fill("kind 777")
    page.tab.get_by_label("kind 777", exact=True).check()
    page.until("() => location.hash.includes('label:777')")
    found = [i for i in range(SAMPLES) if i % 3 == 1 and i * 7 % 1000 == 777]
    page.shows(".list-heading span", f"{len(found)} of 450 images")


def test_what_models_did_filters_and_colors(view, digit_scan):
    data = digit_scan.data.sel(model="plain")
    upright, right = data.isel(element=0), data["correct"].values > 0
    turn = np.minimum(np.arange(72), 72 - np.arange(72)) * 5.0
    first = np.where(right, np.inf, turn).min(1)
    gap = data["confidence"].values.mean(1) - right.mean(1)
    clauses = {
        "correct@plain:incorrect": ~right[:, 0],
        "predicted@plain:6,9": np.isin(upright["predicted"].values, [6, 9]),
        "confidence@plain:0.99..": upright["confidence"].values >= 0.99,
        "gap@plain:0.3..": gap >= 0.3,
        "first_failure@plain:30..40": (first >= 30) & (first <= 40),
    }
    page = view("sample=2")
    for clause, kept in clauses.items():
        assert 0 < kept.sum() < len(kept), clause
        page.tab.evaluate("text => { location.hash = text }", f"sample=2&filter={clause}")
        page.shows(".list-heading span", f"{kept.sum()} of 120 images")
    menu = page.tab.get_by_label("Color")
    offered = {*menu.locator("option").evaluate_all("all => all.map(one => one.value)")}
    names = {clause.partition("@")[0] for clause in clauses}
    assert names <= offered
    seen = [page.text(".embedding .key")]
    for name in names:
        menu.select_option(name)
        page.until("name => location.hash.includes(`color=${name}`)", name)
        page.eventually(lambda: page.text(".embedding .key") not in seen)  # each has its own
        seen.append(page.text(".embedding .key"))


def test_the_list_is_searched_sorted_by_a_column_and_has_no_end(view, photo_server):
    page = view("sample=3&order=-shutter", server=photo_server)
    page.shows(".row .row-label", "IMG_0449.jpg")
    page.shows(".value-title", "shutter")
    page.shows(".row .row-value", "44.9")
    page.tab.locator(".rows").focus()
    page.tab.keyboard.press("End")
    page.until("() => location.hash === '#order=-shutter'")  # the first sample is the default
    page.until("() => document.querySelector('.row[aria-selected=true]')?.ariaPosInSet === '450'")
    assert page.tab.locator(".rows [role=option]").count() < 60
    page.tab.get_by_label("Search for a name, a class or a number").fill("img_001")
    page.shows(".list-heading span", "10 of 450 images")
    page.until("() => location.hash.includes('filter=search:img_001')")


def test_the_grid_shows_pictures_and_the_page_names_and_metadata(view, photo_server):
    page = view("sample=4&listing=grid&color=camera", server=photo_server)
    page.tab.wait_for_selector(".rows .cell")
    page.until("() => document.querySelector('.cell canvas')?.width === 6")
    first, second = (page.tab.locator(".rows .cell").nth(n).bounding_box() for n in (0, 1))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]  # side by side
    page.until(
        "() => /IMG_0004.jpg · label kind 28 · camera Nikon · shutter 0.4/"
        ".test(document.querySelector('.one .half p').textContent)"
    )
    chips = page.tab.locator(".key .chip-class")
    expect(chips).to_have_text(["Canon", "Nikon", "Pentax K-1 Mark II"])
    page.tab.get_by_label("Color").select_option("label")
    expect(chips.last).to_have_text("441 others")  # than the nine that have a color
    small = page.tab.locator(".rows .cell").first.bounding_box()
    page.tab.locator(".embedding > header > .enlarge").click()
    page.eventually(
        lambda: page.tab.locator(".rows .cell").first.bounding_box()["width"] > 1.6 * small["width"]
    )
    assert page.troubles == []


def test_long_names_neither_widen_a_phone_nor_lie_on_each_other(view, photo_server):
    page = view("sample=4&answers=confusion", server=photo_server)
    page.until("() => document.querySelectorAll('.confusion li').length > 5")
    for size in (PHONE, WIDE):
        page.resize(size)
        assert page.tab.evaluate("document.documentElement.scrollWidth") == size["width"]
        cut = page.tab.evaluate(
            """() => [...document.querySelectorAll(".confusion li .count, .aggregate .note")]
            .filter(el => el.scrollHeight > el.clientHeight + 1 || el.scrollWidth > el.clientWidth)
            .map(el => el.textContent)"""
        )
        assert cut == []
    controls = page.tab.locator(".embedding .controls").bounding_box()
    assert controls["height"] < 40  # one line


def test_on_a_phone_the_bar_fades_where_there_is_more_of_it(view, photo_server):
    page = view("sample=4", server=photo_server)
    page.resize(PHONE)
    chips = page.tab.locator(".chips")
    assert chips.bounding_box()["width"] > 350  # a line of their own
    faded = """row => { const mask = getComputedStyle(row).maskImage;
        return [/ 36px, /.test(mask), /100% - 36px/.test(mask)]; }"""
    page.eventually(lambda: chips.evaluate(faded) == [False, True])
    chips.evaluate("row => { row.scrollLeft = 100; }")
    page.eventually(lambda: chips.evaluate(faded) == [True, True])
    chips.evaluate("row => { row.scrollLeft = 1e5; }")
    page.eventually(lambda: chips.evaluate(faded) == [True, False])


def test_the_bar_is_one_stop_of_the_tab_key_and_arrows_walk_through_it(view, photo_server):
    page = view("sample=3", server=photo_server)
    assert page.tab.locator(".chips [tabindex='0']").count() == 1
    page.tab.locator(".filters .fold").focus()
    page.tab.keyboard.press("Tab")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        page.tab.keyboard.press(key)
        seen.append(
            page.tab.evaluate(
                "document.activeElement.ariaLabel ?? document.activeElement.innerText"
            )
        )
    assert "Clear or hide Correct" in seen
    page.tab.keyboard.press("Tab")
    assert page.tab.evaluate("document.activeElement.closest('.chips')") is None
    assert page.fragment() == "sample=3"


def test_the_bar_is_free_of_faults_for_those_who_do_not_see(view, photo_server, axe):
    page = view("sample=4&filter=camera:Nikon;shutter:..30", server=photo_server)
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        assert page.violations(axe) == [], scheme


def test_a_report_filters_lists_and_searches_too(paged, photos, tmp_path):
    path = report(photos, tmp_path / "photos.html", samples=None, classes=CLASSES)
    fragment = "sample=298&filter=camera:Nikon;shutter:..30&order=-shutter"
    shown = ("aggregate", "embedding", "individual", "input", "detail")
    page = paged(path.as_uri(), fragment, path.as_uri(), shown, offline=True)
    said = page.tab.locator(".section.calibration .message")
    expect(said).to_contain_text("not of this subset")  # which was made by a filter
    page.shows(".list-heading span", "100 of 450 images")
    page.shows(".row .row-label", "IMG_0298.jpg")
    expect(page.tab.locator(".filter-chip.active")).to_have_count(2)
