"""Tags in a real browser: written on the page, read in Python."""

from __future__ import annotations

import numpy as np
from reader import expect


def test_a_sample_is_tagged_on_the_page(view, live_server, digit_scan):
    from orbical.interface import tags

    page = view("sample=5")
    tab = page.tab
    tab.keyboard.press("t")
    tab.get_by_label("New tag").fill("blurred")
    tab.keyboard.press("Enter")
    expect(tab.locator(".tags > button")).to_have_text("blurred")
    tab.keyboard.press("Escape")
    tab.keyboard.press("]")
    expect(tab.locator(".tags > button")).to_have_text("Tag")
    found = tags(digit_scan)
    assert np.flatnonzero(found.sel(tag="blurred")).tolist() == [5]
    tab.locator(".tags > button").click()
    tab.get_by_label("blurred", exact=True).check()
    expect(tab.locator(".tags > button")).to_have_text("blurred")
    tab.get_by_label("blurred", exact=True).uncheck()
    expect(tab.locator(".tags > button")).to_have_text("Tag")
    assert tags(digit_scan).sel(tag="blurred").sum() == 1
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Sets").click()
    tab.get_by_role("button", name="Delete the name blurred").click()
