"""The diagnosis in a real browser: failures, advice and what if."""

from __future__ import annotations

from reader import expect


def test_a_failure_is_shown_and_bookmarked_and_a_remedy_tried(view, axe):
    page = view()
    tab = page.tab
    tab.get_by_role("button", name="Diagnosis").click()
    first = tab.locator(".failures > ol li").first
    expect(first).to_contain_text("wrong at")
    first.get_by_role("button").first.click()
    sentence = first.get_by_role("button").first.inner_text()
    page.until("() => location.hash.includes('element=')")
    first.get_by_role("button", name="Bookmark").click()
    expect(tab.get_by_role("button", name="Findings 1")).to_be_visible()
    numbers = tab.locator(".what-if tbody tr").first
    expect(numbers).not_to_contain_text("→")
    remedy = tab.locator(".advice li").first
    expect(remedy).to_contain_text("average over")
    remedy.get_by_role("button", name="Try").click()
    expect(numbers).to_contain_text("→")
    expect(tab.locator(".diagnosis pre")).to_contain_text("ob.predictors.OrbitAverage")
    assert page.violations(axe) == []
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Findings 1").click()
    expect(tab.locator(".findings-list .go")).to_have_text(sentence)
    tab.get_by_role("button", name="Delete: ").click()
