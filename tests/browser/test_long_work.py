"""Long work on the page: its share, what there is so far, and a stop button."""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from reader import expect

from orbical.interface.session import sample_maps

pytestmark = pytest.mark.browser

FINE = """() => [...document.querySelectorAll('.individual svg path')]
    .some((path) => path.getAttribute('d')?.split('L').length > 200)"""
"""Whether a curve has more points than the 72 elements of the scan."""


def test_a_map_that_takes_long_is_stopped_and_the_one_before_returns(view, monkeypatch):
    ended = threading.Event()

    def endless(*given):
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setitem(sample_maps.METHODS, "tsne", endless)
    page = view("sample=2")
    before = page.tab.locator(".embedding .plot-holder").bounding_box()
    page.tab.get_by_label("Method").select_option("tsne")
    page.tab.click(".embedding .long-work button")
    page.tab.wait_for_selector(".embedding .body:not(.stale)")
    page.at("sample=2")
    expect(page.tab.locator(".embedding .long-work")).to_be_hidden()
    expect(page.tab.get_by_label("Method")).to_have_value("pca")
    assert page.tab.locator(".embedding .plot-holder").bounding_box() == before  # nothing moved
    assert ended.wait(5)


def test_finer_steps_show_what_there_is_and_can_be_stopped(view, live_server, monkeypatch):
    live = live_server.session.scan_view().live
    ask, free, parts = live.ask, threading.Event(), itertools.count()

    def waits(*given):
        if len(given[1]) > 1:  # not that of the place
            free.wait(0.4 if next(parts) < 2 else 20)
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
