"""The sentence of a scan on the page, and where a page without a link begins."""

from __future__ import annotations

import pytest
from reader import expect

import orbical as ob
from orbical.interface import report
from orbical.interface.session import Session


def test_the_page_says_what_was_found_and_opens_where_it_is_worst(paged, live_server, digit_scan):
    page = paged(live_server.url)
    expect(page.tab.locator(".headline p")).to_have_text(ob.nero.headline(digit_scan))
    worst = int(ob.nero.summary(digit_scan)["worst_element"].sel(model="plain"))
    page.until("element => location.hash.includes(`element=${element}`)", worst)
    where, answers = page.readout()
    assert where.startswith(f"{digit_scan.group.coords['angle'][worst]:g}°")
    assert answers["plain"][0] < answers["augmented"][0]  # their scores


def test_a_link_is_not_moved(paged, live_server, digit_scan):
    page = paged(live_server.url, "sample=5&element=3")
    expect(page.tab.locator(".headline p")).to_have_text(ob.nero.headline(digit_scan))
    page.at("sample=5&element=3")


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_it_fits_every_window(paged, live_server, digit_scan, width):
    page = paged(live_server.url, "sample=5", viewport={"width": width, "height": 900})
    expect(page.tab.locator(".headline p")).to_have_text(ob.nero.headline(digit_scan))
    overflow = "() => document.documentElement.scrollWidth - window.innerWidth"
    assert page.tab.evaluate(overflow) <= 0


def test_a_report_says_it_too(paged, digit_scan, tmp_path):
    address = report(digit_scan, tmp_path / "digits.html", samples=20).as_uri()
    page = paged(address)
    expect(page.tab.locator(".headline p")).to_have_text(ob.nero.headline(digit_scan))
    page.until("() => location.hash.includes('element=')")
    cover = page.tab.locator(".headline .cover")
    for words in ("plain (orbical.zoo.digits:DigitCNN)", "120 images, labeled", "rotations:72"):
        expect(cover).to_contain_text(words)
    about, _ = Session(digit_scan).handle(
        {"kind": "calibration", "sequence": 1, "selection": {"scope": "orbit"}}
    )
    for one in about["measures"]:  # the verdicts of the page
        expect(cover).to_contain_text(f"{one['model']} {one['verdict']}, ECE {one['value']:.3f}")
