"""Subsets in a real browser: what is circled is what is chosen, and it stays chosen."""

from __future__ import annotations

import threading

import pytest
from reader import circled

from orbical.interface.session import sample_maps

pytestmark = pytest.mark.browser


def samples_of(server, page, **selection):
    """The map of a selection as the session has it, and where its samples are drawn."""
    _, arrays = server.session.handle({"kind": "embedding", "selection": selection})
    return page.on_screen(arrays["xy"])


def test_a_map_that_is_computed_is_dimmed_and_cannot_be_circled(view, live_server, monkeypatch):
    """Choose Isomap and draw at once: the old map still stands, and selected by the new one."""
    free, isomap = threading.Event(), sample_maps.METHODS["isomap"]

    def slow(*given):
        free.wait(20)
        return isomap(*given)

    monkeypatch.setitem(sample_maps.METHODS, "isomap", slow)
    page = view("sample=2")
    page.tab.get_by_label("Method").select_option("isomap")
    assert page.tab.get_by_role("button", name="lasso").is_disabled()
    page.lasso(key="Shift", waits=False)
    assert page.tab.locator(".chip").is_hidden()
    assert page.fragment() == "sample=2&method=isomap"
    shown = page.tab.locator(".embedding .progress")
    assert shown.inner_text() == "Computing Isomap …"
    page.until("() => getComputedStyle(document.querySelector('.embedding .scatter')).opacity < 1")
    free.set()
    page.tab.wait_for_selector(".embedding .body:not(.stale)")
    assert shown.is_hidden()
    places = samples_of(live_server, page, method="isomap")
    surely, perhaps = circled(page.lasso(), places)
    assert surely <= page.members() <= perhaps
    assert page.members()
