"""Subsets in a real browser: what is circled is what is chosen, and it stays chosen."""

from __future__ import annotations

import threading

import pytest
from reader import circled, drawn, expect

from orbical.embedding import METHODS


def samples_of(server, page, **selection):
    """The map of a selection as the session has it, and where its samples are drawn."""
    _, arrays = server.session.handle({"kind": "embedding", "selection": selection})
    return page.on_screen(arrays["xy"])


def test_a_map_that_is_computed_is_dimmed_and_cannot_be_circled(view, live_server, monkeypatch):
    """Choose Isomap and draw at once: the old map still stands, and selected by the new one."""
    free, isomap = threading.Event(), METHODS["isomap"]

    def slow(*given):
        free.wait(60)
        return isomap(*given)

    monkeypatch.setitem(METHODS, "isomap", slow)
    page = view("sample=2")
    page.tab.get_by_label("Method").select_option("isomap")
    expect(page.tab.get_by_role("button", name="lasso")).to_be_disabled()
    page.lasso(key="Shift", waits=False)
    drawn(page.tab)  # a set that is made would be in the address by now
    expect(page.tab.locator(".chip")).to_be_hidden()
    page.at("sample=2&method=isomap")
    shown = page.tab.locator(".embedding .progress")
    expect(shown).to_have_text("Computing Isomap …")
    page.until("() => getComputedStyle(document.querySelector('.embedding .scatter')).opacity < 1")
    free.set()
    page.tab.wait_for_selector(".embedding .body:not(.stale)")
    expect(shown).to_be_hidden()
    places = samples_of(live_server, page, method="isomap")
    surely, perhaps = circled(page.lasso(), places)
    assert surely <= page.members() <= perhaps
    assert page.members()


RIGHT = [(0.3, 0.02), (0.98, 0.02), (0.98, 0.98), (0.3, 0.98)]


def test_shift_adds_alt_takes_out_and_undo_agrees_with_back(view):
    page = view("sample=2")
    page.lasso()
    left = page.members()
    page.lasso(RIGHT, key="Shift")
    both = page.members()
    page.tab.keyboard.press("Control+z")
    page.selects(left)
    page.lasso(RIGHT, key="Alt")
    without = page.members()
    assert without < left < both
    page.tab.go_back()  # the browser's way back is a step of the same walk
    page.selects(left)
    page.tab.get_by_role("button", name="Redo the change of the subset").click()
    page.selects(without)
    page.tab.keyboard.press("Control+z")
    page.selects(left)
    page.lasso(RIGHT, key="Shift+Alt")
    page.selects(left - without)
    for _ in range(2):
        page.tab.keyboard.press("Control+z")
    page.until("() => location.hash === '#sample=2'")
    expect(page.tab.get_by_role("button", name="Undo the change of the subset")).to_be_disabled()
    page.tab.keyboard.press("Control+Shift+Z")
    page.selects(left)


def saved_sets(server):
    saved, _ = server.session.handle({"kind": "names"})
    return saved["sets"]


@pytest.fixture
def unnamed(live_server):
    """The server of the digits; no named set is left behind."""
    yield live_server
    live_server.session.scan_view().sidecar.update("sets", [], lambda _: [])


def test_a_set_survives_another_map_and_is_saved_chosen_combined_and_deleted(view, unnamed):
    page = view("sample=2")
    page.lasso()
    left = page.members()
    page.tab.get_by_label("Method").select_option("ica")
    page.tab.get_by_label("Metric").select_option("confidence")
    page.until("() => location.hash.includes('metric=confidence')")
    models = page.tab.get_by_role("group", name="Models")
    models.get_by_role("button", name="augmented").click()
    page.until("() => location.hash.includes('models=plain')")
    page.selects(left)
    menu = page.tab.get_by_role("button", name="Sets ▾")
    menu.click()
    page.tab.get_by_label("Name of the set").fill("left side")
    page.tab.keyboard.press("Enter")
    page.tab.get_by_role("button", name="left side", exact=True).wait_for()
    page.tab.get_by_role("button", name="Invert").click()
    page.selects({*range(120)} - left)
    page.tab.get_by_role("button", name="Add these samples to the subset: left side").click()
    page.until("() => !location.hash.includes('subset')")  # all of them
    page.tab.get_by_role("button", name="left side", exact=True).click()
    page.selects(left)
    count = len(left)
    page.shows(".chip", f"left side · {count} of 120 images · clear")
    page.open("sample=2")  # names are saved beside the scan
    menu.click()
    page.tab.get_by_role("button", name="left side", exact=True).click()
    page.shows(".chip", f"left side · {count} of 120 images · clear")
    page.tab.get_by_role("button", name="Delete the name left side").click()
    page.shows(".chip", f"{count} of 120 images · clear")
    assert saved_sets(unnamed) == []


def test_a_menu_without_sets_says_how_to_save_one(view, unnamed):
    page = view("sample=2")
    page.tab.get_by_role("button", name="Sets ▾").click()
    menu = page.tab.get_by_role("group", name="Sets of samples")
    words = "No set is saved. Lasso or filter images, then save them."
    expect(menu.get_by_text(words)).to_be_visible()
    blank = """panel => [...panel.querySelectorAll("*")].filter(el => el.offsetHeight > 0
        && !el.closest("form, .switch") && !el.textContent.trim()).map(el => el.className)"""
    assert menu.evaluate(blank) == []
    lines = "panel => [...panel.children].at(-1).getBoundingClientRect().bottom"
    box = menu.bounding_box()
    assert box["y"] + box["height"] - menu.evaluate(lines) < 16  # nothing is left empty below


def test_a_link_brings_its_samples_and_an_unknown_set_is_said_plainly(view, live_server):
    page = view("sample=2")
    page.lasso()
    link, left = page.fragment(), page.members()
    live_server.session.scan_view().sets = type(live_server.session.scan_view().sets)()
    live_server.session.scan_view().cache = type(live_server.session.scan_view().cache)()
    page.open(link)  # the session has forgotten all sets: the page sends it again
    page.shows(".chip", f"{len(left)} of 120 images · clear")
    page.open("sample=2&subset=0123456789abcdef")
    page.shows(
        ".overview .hint", "The subset of this link is not known here; all images are shown."
    )
    page.shows(".section.aggregate .note", "mean of 120 images")
    page.until("() => location.hash === '#sample=2'")
