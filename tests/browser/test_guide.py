"""The guided first minute of `orbical demo`, which follows what the reader does."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(serve, digit_scan, networks):
    """A server as the demo starts it."""
    server = serve({"digits": digit_scan}, models=networks)
    server.session.guide = True
    return server


def step(page):
    return page.text(".guide .step").partition("· ")[2]


def test_the_guide_follows_the_reader_and_is_repeated_from_the_help(view, demo, axe):
    page = view("sample=2", server=demo)
    tab = page.tab
    tab.evaluate("localStorage.clear()")
    page.open("sample=2")
    assert step(page) == "step 1 of 6"
    assert tab.locator(".individual.guided").count() == 1
    tab.evaluate(axe)
    found = tab.evaluate("() => axe.run('.guide').then(({ violations }) => violations.length)")
    assert found == 0
    tab.focus(".individual [role=slider]")
    tab.keyboard.press("ArrowRight")
    page.until("() => document.querySelector('.guide .step').textContent.includes('step 2')")
    tab.keyboard.press("]")
    page.until("() => document.querySelector('.guide .step').textContent.includes('step 3')")
    tab.click(".guide button:text('Skip')")
    assert tab.locator(".guide").is_hidden()
    assert tab.locator(".guided").count() == 0
    page.open("sample=2")
    assert tab.locator(".guide").is_hidden()  # it was seen
    tab.keyboard.press("?")
    tab.click("text=Repeat the first minute")
    assert step(page) == "step 1 of 6"
    for _ in range(6):
        tab.click(".guide .primary")
    assert tab.locator(".guide").is_hidden()


def test_other_views_have_no_guide(view):
    assert view("sample=2").tab.locator(".guide").count() == 0
