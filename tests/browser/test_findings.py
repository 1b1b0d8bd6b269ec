"""Findings in the page: bookmarked, edited, reordered, deleted, shown, and there after a reload."""

from __future__ import annotations

import re

import pytest
import torch
from reader import expect

import orbical as ob
from orbical.interface.session import Session


@pytest.fixture
def panel(view, live_server):
    """The page of a sample with the panel open; no finding is left behind."""
    page = view("sample=7&element=30")
    yield page
    sidecar = live_server.session.scan_view().sidecar
    sidecar.update("findings", [], lambda found: [])


def opened(page):
    page.tab.get_by_role("button", name="Findings", exact=False).first.click()
    page.until("() => document.querySelector('.findings-panel').matches(':popover-open')")


def bookmark(page, title, note=""):
    page.tab.get_by_role("button", name="Bookmark this view").click()
    page.tab.get_by_label("Title").fill(title)
    page.tab.get_by_label("Note").fill(note)
    page.tab.get_by_role("button", name="Save").click()
    page.tab.locator(".findings-list .go", has_text=title).wait_for()


def titles(page, *expected):
    page.until(
        """wanted => JSON.stringify([...document.querySelectorAll(".findings-list .go")]
        .map(one => one.textContent)) === JSON.stringify(wanted)""",
        [*expected],
    )


def test_a_view_is_bookmarked_changed_and_found_again(panel):
    tab = panel.tab
    opened(panel)
    bookmark(panel, "<img src=x onerror=alert(1)>", "first line\n<b>second</b>")
    tab.keyboard.press("]")
    bookmark(panel, "second")
    expect(tab.locator(".findings-list img, .findings-list b")).to_have_count(0)
    tab.get_by_label("Move up: second").click()
    titles(panel, "second", "<img src=x onerror=alert(1)>")
    tab.get_by_label("Edit: <img").click()
    tab.get_by_label("Title").fill("a 150° turn")
    tab.get_by_role("button", name="Save").click()
    titles(panel, "second", "a 150° turn")
    tab.get_by_label("Delete: second").click()
    titles(panel, "a 150° turn")
    tab.get_by_role("button", name="Undo", exact=True).click()
    titles(panel, "second", "a 150° turn")
    panel.open("sample=3")
    opened(panel)
    titles(panel, "second", "a 150° turn")
    tab.get_by_role("button", name="a 150° turn", exact=True).click()
    panel.shows(".story .step", "Finding 2 of 2")
    panel.until("() => location.hash.includes('sample=7&element=30')")
    expect(tab.locator(".story .text")).to_have_text("first line\n<b>second</b>")
    tab.keyboard.press(",")
    panel.shows(".story .step", "Finding 1 of 2")
    tab.keyboard.press("m")
    expect(tab.get_by_role("button", name="Back to the finding")).to_be_visible()
    tab.get_by_role("button", name="Back to the finding").click()
    tab.get_by_role("button", name="Back to the finding").wait_for(state="hidden")
    tab.get_by_role("button", name="Close the story").click()
    expect(tab.locator(".story")).to_be_hidden()
    assert tab.locator(".findings-panel .unsaved").text_content() == ""  # all is saved


def test_the_keyboard_stays_in_the_panel_and_what_is_typed_in_its_form(panel):
    tab = panel.tab
    opened(panel)
    bookmark(panel, "first")
    panel.until("() => document.activeElement.textContent === 'Bookmark this view'")
    bookmark(panel, "second")
    tab.get_by_role("button", name="Bookmark this view").click()
    tab.get_by_label("Note").fill("half a sentence")
    tab.get_by_label("Move up: second").click()
    titles(panel, "second", "first")
    assert tab.get_by_label("Note").input_value() == "half a sentence"
    tab.keyboard.press("Escape")  # the form
    tab.keyboard.press("Escape")  # the panel
    panel.until("() => !document.querySelector('.findings-panel').matches(':popover-open')")


def test_what_cannot_be_saved_is_said_and_axe_finds_nothing(panel, live_server, axe, monkeypatch):
    monkeypatch.setattr(live_server.session.scan_view().sidecar, "unsaved", "the disk is full")
    opened(panel)
    bookmark(panel, "kept in memory", "a note")
    expect(panel.tab.locator(".findings-panel .unsaved")).to_contain_text(
        "Not saved: the disk is full"
    )
    assert panel.violations(axe) == []
    panel.tab.get_by_role("button", name="kept in memory", exact=True).click()
    panel.shows(".story h2", "kept in memory")
    assert panel.violations(axe) == []


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The report of a small scan with two findings."""
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    folder = tmp_path_factory.mktemp("told")
    scan = ob.scan(
        {"net": net},
        (images[:40], labels[:40]),
        group="rotations:8",
        task="classification",
        keep="inputs",
        out=folder / "digits.zarr",
        progress=False,
    )
    session = Session({"digits": scan})
    for number, view in enumerate(
        ("sample=7&element=2&stage=input", "sample=11&element=5&metric=confidence")
    ):
        one = {"id": f"{number:08}", "title": f"step {number}", "note": "why", "view": view}
        request = {"kind": "findings", "do": "save", "finding": one}
        session.handle(request)
    return ob.report(folder / "digits.zarr", folder / "report.html").as_uri()


WORDS = """() => Promise.all(window.drawn.map(async blob => {
    const drawn = new DOMParser().parseFromString(await blob.text(), "image/svg+xml");
    const words = [...drawn.querySelectorAll("text")].map(text => text.textContent.trim());
    return [drawn.documentElement.getAttribute("height"), words]; }))"""
"""How high the pictures of the printed story are, and what is written in them."""


def test_a_report_opens_on_its_story_and_prints_a_finding_to_a_page(paged, told):
    page = paged(told)
    tab = page.tab
    page.shows(".story .step", "Finding 1 of 2")
    page.shows(".story h2", "step 0")
    page.until("() => location.hash === '#sample=7&element=2&stage=input'")
    offered = tab.get_by_label("Method").locator("option").all_text_contents()
    assert offered == ["PCA", "ICA", "Isomap"]  # of a report that names no maps
    tab.get_by_role("button", name="Next ›").click()
    page.until("() => location.hash.includes('sample=11&element=5')")
    tab.reload()
    page.shows(".story .step", "Finding 2 of 2")  # as its address says
    page.ready()
    tab.evaluate("""() => { window.print = () => { window.printed = true };
        const address = URL.createObjectURL.bind(URL);
        window.drawn = [];
        URL.createObjectURL = blob => (window.drawn.push(blob), address(blob)); }""")
    tab.keyboard.press("Control+p")
    page.until("() => window.printed === true")
    (height, staged), (_, whole) = tab.evaluate(WORDS)
    assert height == "900"  # of the whole window
    assert {"Image 7", "Input", "Prediction"} <= {*staged}
    assert {"Aggregate", "Embedding", "Image 11", "Individual", "Input"} <= {*whole}
    pressed = {"Export", "lasso", "pin", "mean", "spread", "list", "grid", "reset", "Sets ▾", "›"}
    assert not pressed & {*staged, *whole}
    paper = tab.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[0 0 (\d+)\S* (\d+)", paper)
    assert sizes == [(b"841", b"594")] * 3  # A4 landscape: the cover, and each finding
    expect(tab.locator(".story-print")).to_have_count(0)
    page.shows(".story .step", "Finding 2 of 2")


def test_printing_from_the_menu_of_the_browser_tells_the_story_in_words(paged, told):
    page = paged(told)
    page.shows(".story .step", "Finding 1 of 2")
    page.tab.emulate_media(media="print")
    page.tab.evaluate("() => { dispatchEvent(new Event('beforeprint')) }")
    assert page.tab.locator(".story-words h2").all_inner_texts() == ["1. step 0", "2. step 1"]
    assert "shown below" in page.text(".story-words article")
    expect(page.tab.locator(".story")).to_be_hidden()
    page.tab.evaluate("() => { dispatchEvent(new Event('afterprint')) }")
    expect(page.tab.locator(".story-words")).to_have_count(0)
    page.tab.emulate_media(media="null")
