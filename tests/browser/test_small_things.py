"""Small things that readers stumble over: history, touch, widths, names, figures, damaged scans."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest
import torch
from reader import expect

import orbical as ob
from orbical.interface import open_session
from orbical.interface.server import Server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A server of a folder with two scans of samples with long names, and a damaged one."""
    place = tmp_path_factory.mktemp("scans")
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    for name, count in (("few", 30), ("many", 60), ("torn", 30)):
        ob.scan(
            {"net": net},
            (images[:count], labels[:count]),
            group="rotations:12",
            task="classification",
            keep="inputs",
            out=place / f"{name}.zarr",
            progress=False,
        )
    root = place / "torn.zarr" / "zarr.json"
    root.write_text(root.read_text()[:-40])
    names = [f"photographs of the first year/photograph number {n:03d}.png" for n in range(60)]
    server = Server(open_session({"many": ob.load(place / "many.zarr")}, names=names), port=0)
    both = Server(open_session(place), port=0)
    for one in (server, both):
        one.start()
    yield server, both
    for one in (server, both):
        one.stop()


def test_keys_that_follow_each_other_are_one_step_back(view):
    page = view("sample=9&element=18")
    tab = page.tab
    tab.locator(".individual .orbit-plot").focus()
    before = tab.evaluate("history.length")
    for _ in range(5):
        tab.keyboard.press("ArrowRight")
    page.until("() => location.hash.includes('element=23')")
    assert tab.evaluate("history.length") <= before + 1


def test_a_phone_scrolls_past_plots_and_drags_their_handles(view):
    page = view("sample=9", viewport={"width": 390, "height": 844})
    touch = "one => getComputedStyle(one).touchAction"
    assert page.tab.locator(".individual .orbit-plot").evaluate(touch) == "pan-y"
    assert page.tab.locator(".individual .orbit-handle").evaluate(touch) == "none"


def test_the_halves_can_be_resized(view, axe):
    page = view("sample=9")
    tab = page.tab
    bar = tab.get_by_role("separator", name="Width of the left half")
    width = tab.locator(".one").bounding_box()["width"]
    bar.focus()
    for _ in range(5):
        tab.keyboard.press("ArrowLeft")
    page.eventually(lambda: tab.locator(".one").bounding_box()["width"] > 1.2 * width)
    box = bar.bounding_box()
    tab.mouse.move(box["x"] + 4, box["y"] + 300)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 104, box["y"] + 300, steps=4)
    tab.mouse.up()
    page.eventually(lambda: abs(bar.bounding_box()["x"] - box["x"] - 100) < 12)
    assert page.violations(axe) == []
    bar.dblclick()
    page.eventually(lambda: abs(tab.locator(".one").bounding_box()["width"] - width) < 12)


def test_a_figure_has_no_switches_and_no_icons(view, tmp_path):
    page = view("sample=9")
    page.tab.get_by_role("button", name="Export").click()
    page.tab.get_by_label("Figure").select_option("aggregate")
    with page.tab.expect_download() as started:
        page.tab.get_by_role("button", name="SVG", exact=True).click()
    started.value.save_as(tmp_path / "figure.svg")
    words = {
        one.strip()
        for one in xml.etree.ElementTree.parse(tmp_path / "figure.svg").getroot().itertext()
    }
    assert "Aggregate" in words
    assert not {"mean", "spread", "by class", "i"} & words
    expect(page.tab.locator(".aggregate .controls")).to_be_visible()


@pytest.mark.parametrize(("listing", "item"), [("list", "row"), ("grid", "cell")])
def test_long_names_are_cut_to_what_tells_them_apart(paged, folder, listing, item):
    page = paged(folder[0].url, f"sample=3&listing={listing}")
    labels = page.tab.locator(f".{item} .row-label")
    expect(labels.first).to_contain_text("…")
    shown = labels.all_inner_texts()
    assert len({*shown}) == len(shown)
    assert labels.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")


def test_the_list_begins_with_the_sample_that_is_shown(paged, folder):
    page = paged(folder[1].url)
    tab = page.tab
    for name, count in (("many", 60), ("few", 30)):
        tab.get_by_label("Data set").select_option(name)
        expect(tab.locator(".half h2").first).to_have_text(f"All {count} images")
        page.ready()
        expect(tab.locator(".row[aria-selected=true]")).to_be_in_viewport()


def test_a_damaged_scan_is_marked_and_leads_back(paged, folder):
    page = paged(folder[1].url)
    tab = page.tab
    options = tab.get_by_label("Data set").locator("option")
    expect(options.last).to_have_text("torn (damaged)")
    tab.get_by_label("Data set").select_option("torn")
    expect(tab.get_by_text("Could not open the scan")).to_be_visible()
    expect(tab.locator(".headline")).to_be_hidden()
    tab.get_by_role("button", name="Show the first scan").click()
    page.ready()


def test_forced_colors_show_bars_and_what_is_chosen(paged, live_server):
    page = paged(live_server.url, "sample=9", forced_colors="active")
    color = "one => getComputedStyle(one).backgroundColor"
    chosen = page.tab.locator(".aggregate .switch input:checked + span").first.evaluate(color)
    other = page.tab.locator(".aggregate .switch input:not(:checked) + span").first.evaluate(color)
    assert chosen != other
    bars = page.tab.locator(".bar-row .bar").evaluate_all(f"all => all.map({color})")
    page_color = page.tab.locator(".section.detail").evaluate(color)
    assert {*bars} - {page_color}
