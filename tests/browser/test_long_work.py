"""Long work on the page: its share, what there is so far, and a stop button."""

from __future__ import annotations

import itertools
import threading
import time

from reader import expect, values

from orbical.embedding import METHODS
from orbical.interface import export

FINE = """() => [...document.querySelectorAll('.individual svg path')]
    .some((path) => path.getAttribute('d')?.split('L').length > 200)"""
"""Whether a curve has more points than the 72 elements of the scan."""


def test_a_map_that_takes_long_is_stopped_and_the_one_before_returns(view, digit_scan, monkeypatch):
    ended = threading.Event()

    def endless(*given):
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setitem(METHODS, "tsne", endless)
    page = view("sample=2")
    before = page.tab.locator(".embedding .plot-holder").bounding_box()
    page.tab.get_by_label("Method").select_option("tsne")
    page.tab.locator(".individual .orbit-plot").focus()
    page.tab.keyboard.press("ArrowRight")  # moving along the orbit does not wait for it
    page.says(
        {name: held[1] for name, held in values(digit_scan, "probabilities", 2).items()}, 6e-4
    )
    assert not ended.is_set()
    page.tab.click(".embedding .long-work button")
    page.tab.wait_for_selector(".embedding .body:not(.stale)")
    page.at("sample=2&element=1")
    expect(page.tab.locator(".embedding .long-work")).to_be_hidden()
    expect(page.tab.get_by_label("Method")).to_have_value("pca")
    assert page.tab.locator(".embedding .plot-holder").bounding_box() == before  # nothing moved
    assert ended.wait(60)


def test_finer_steps_show_what_there_is_and_can_be_stopped(view, live_server, monkeypatch):
    live = live_server.session.scan_view().live
    ask, free, parts = live.ask, threading.Event(), itertools.count()

    def waits(*given):
        if len(given[1]) > 1 and next(parts) > 1:  # not that of the place
            free.wait(60)
        return ask(*given)

    monkeypatch.setattr(live, "ask", waits)
    page = view("sample=2")
    page.tab.check(".individual .check input")
    page.until("() => document.querySelector('.individual .progress').textContent.includes('left')")
    page.until(FINE)
    expect(page.tab.locator(".individual .long-work")).to_be_visible()  # a part is shown already
    page.tab.click(".individual .long-work button")
    page.until("() => !location.hash.includes('dense')")
    free.set()
    page.tab.wait_for_selector(".individual .long-work", state="hidden")


def test_a_report_says_how_far_it_is_and_is_stopped(view, monkeypatch):
    def endless(request):
        while True:
            request.progress.tell(0.4, "maps")
            time.sleep(0.01)

    monkeypatch.setitem(export.FILES, "report", endless)
    page = view("sample=2")
    page.tab.get_by_role("button", name="Export").click()
    page.tab.get_by_role("button", name="Report as one HTML file").click()
    working = page.tab.get_by_role("group", name="Export").locator(".long-work")
    expect(working).to_contain_text("Preparing: maps … 40 %")
    working.get_by_role("button", name="Stop").click()
    page.shows(".export-status", "Stopped.")
    expect(working).to_be_hidden()
