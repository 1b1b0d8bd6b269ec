"""The guided first minute of `orbical demo`, which follows what the reader does."""

from __future__ import annotations

import pytest
from reader import expect

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def demo(serve, digit_scan, networks):
    """A server as the demo starts it."""
    server = serve({"digits": digit_scan}, models=networks)
    server.session.guide = True
    return server


def covers(tab, one, other):
    """Whether two parts of the page overlap."""
    a, b = (tab.locator(part).first.bounding_box() for part in (one, other))
    pairs = (("x", "width"), ("y", "height"))
    return all(a[at] < b[at] + b[far] and b[at] < a[at] + a[far] for at, far in pairs)


def test_the_guide_follows_the_reader_and_is_repeated_from_the_help(view, demo, axe):
    page = view("sample=2", server=demo)
    tab = page.tab
    tab.evaluate("localStorage.clear()")
    page.open("sample=2")
    expect(tab.locator(".guide .step")).to_contain_text("· step 1 of 6")
    expect(tab.locator(".individual.guided")).to_have_count(1)
    assert not covers(tab, ".guide", ".input")
    assert not covers(tab, ".guide", ".detail")
    tab.evaluate(axe)
    found = tab.evaluate("() => axe.run('.guide').then(({ violations }) => violations.length)")
    assert found == 0
    tab.focus(".individual [role=slider]")
    tab.keyboard.press("ArrowRight")
    page.until("() => document.querySelector('.guide .step').textContent.includes('step 2')")
    tab.keyboard.press("]")
    page.until("() => document.querySelector('.guide .step').textContent.includes('step 3')")
    tab.click(".guide button:text('Skip')")
    expect(tab.locator(".guide")).to_be_hidden()
    expect(tab.locator(".guided")).to_have_count(0)
    page.open("sample=2")
    expect(tab.locator(".guide")).to_be_hidden()  # it was seen
    tab.keyboard.press("?")
    tab.click("text=Repeat the first minute")
    expect(tab.locator(".guide .step")).to_contain_text("· step 1 of 6")
    for _ in range(6):
        tab.click(".guide .primary")
    expect(tab.locator(".guide")).to_be_hidden()


def test_other_views_have_no_guide(view):
    expect(view("sample=2").tab.locator(".guide")).to_have_count(0)
