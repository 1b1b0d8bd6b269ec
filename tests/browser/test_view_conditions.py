"""The view under other conditions: small windows, no models, failing ones, lost connections."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import torch
from reader import WIDE, Page, expect, values

import orbical as ob

SMALL = ({"width": 1024, "height": 768}, {"width": 720, "height": 450})


def test_dark_follows_the_system_and_a_choice_is_remembered(view):
    page = view("sample=2", scheme="dark")
    paper = "() => getComputedStyle(document.querySelector('.orbical')).backgroundColor"
    assert page.tab.evaluate(paper) == "rgb(16, 19, 23)"
    page.tab.get_by_role("button", name="Switch to the light theme").click()
    page.eventually(lambda: page.tab.evaluate(paper) == "rgb(243, 244, 246)")
    page.tab.reload()
    page.ready()
    assert page.tab.evaluate(paper) == "rgb(243, 244, 246)"


def test_bounds_leave_room_for_calibration_at_every_size(view, serve, digit_scan):
    ids = np.arange(120) // 4
    page = view("sample=2", server=serve({"digits": digit_scan}, orbits=ids))
    page.tab.wait_for_selector(".section.bounds[data-state=ready]")
    for size in (WIDE, *SMALL):
        page.resize(size)
        for section in (".bounds", ".calibration .plot-holder"):
            assert page.tab.locator(section).first.bounding_box()["width"] > 240, size
        assert page.clipped() == [], size


def test_another_data_set_begins_anew(view, serve, digit_scan):
    page = view(
        "scan=first&sample=5&filter=label:6",
        server=serve({"first": digit_scan, "second": digit_scan}),
    )
    page.tab.get_by_label("Data set").select_option("second")
    page.until("() => /^#scan=second&sample=\\d+&element=\\d+&order=variable$/.test(location.hash)")
    page.ready()
    page.shows(".overview h2", "All 120 images")
    page.tab.go_back()
    page.until("() => location.hash === '#scan=first&sample=5&filter=label:6'")
    page.until("() => document.querySelector('.one h2')?.textContent === 'Image 5'")


def test_bounds_are_shown_where_orbits_are_known(view, serve, digit_scan):
    ids = digit_scan.data["label"].values // 2  # as if pairs of classes were one orbit
    page = view("sample=2", server=serve({"digits": digit_scan}, orbits=ids))
    page.tab.wait_for_selector(".section.bounds[data-state=ready]")
    words = page.tab.locator(".bounds .body svg").first.text_content()
    assert "accuracy" in words
    told = page.text(".bounds")
    assert "No invariant model exceeds an accuracy of" in told
    assert "breaks the symmetry on at least" in told  # the price of symmetry
    assert page.tab.evaluate("document.documentElement.scrollHeight") == 900


def test_without_models_the_page_snaps_to_the_scan(view, serve, digit_scan):
    page = view("sample=2", server=serve({"digits": digit_scan}))
    page.shows(".badge", "scanned positions only")
    assert page.clipped() == []
    page.drag_to(103.3)
    page.until("() => location.hash.includes('element=')")
    page.at("sample=2&element=21")
    score = values(digit_scan, "score", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{score['plain'][21]:.3f}",
    )
    known = {name: held[21] for name, held in values(digit_scan, "probabilities", 2).items()}
    page.says(known, atol=6e-4)


def test_a_model_that_raises_is_shown_and_the_rest_goes_on(view, serve, digit_scan, networks):
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no weights for this digit" + " in /a/rather/long/path" * 40)

    server = serve({"digits": digit_scan}, models={**networks, "plain": Broken()})
    page = view("sample=2&element=30", server=server)
    page.tab.wait_for_selector(".errors:not([hidden])")
    expect(page.tab.locator(".errors")).to_contain_text("plain")
    expect(page.tab.locator(".errors")).to_contain_text("no weights for this digit")
    page.shows(".badge", "plain failed")  # and not "live"
    assert page.clipped() == []
    detail = page.tab.locator(".section.detail").bounding_box()
    said = page.tab.locator(".errors").bounding_box()
    assert said["y"] + said["height"] <= detail["y"] + detail["height"]
    known = values(digit_scan, "probabilities", 2)["augmented"][30]
    np.testing.assert_allclose(page.bars()["augmented"], known, atol=6e-4)
    page.tab.keyboard.press("]")
    page.until("() => !location.hash.includes('sample=2&')")
    page.until("() => document.querySelector('.answers td + td').textContent !== '–'")


def test_a_lost_connection_is_said_and_mended(browser, live_server):
    page = Page(browser)
    page.address = live_server.url
    sockets = []

    def between(socket):
        sockets.append(socket)
        socket.connect_to_server()

    page.tab.route_web_socket(re.compile("/ws$"), between)
    page.open("sample=2")
    expect(page.tab.locator(".banner")).not_to_be_visible()
    sockets[-1].close(code=1001)
    page.tab.wait_for_selector(".banner:not([hidden])")
    assert "Connection lost" in page.text(".banner")
    page.tab.keyboard.press("]")
    page.tab.wait_for_selector(".banner", state="hidden", timeout=30_000)
    assert len(sockets) == 2
    page.until("() => document.querySelector('.one .half p').textContent.startsWith('label ')")
    page.context.close()


def test_small_windows_and_large_type_scroll_down_and_clip_nothing(view):
    page = view("sample=2", viewport=SMALL[0])
    for size in SMALL:
        page.resize(size)
        assert page.tab.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert page.clipped() == [], size


def test_axe_finds_no_violations(view, axe):
    page = view("sample=2&element=30&filter=label:6,9")
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        assert page.violations(axe) == [], scheme
        page.tab.keyboard.press("?")
        assert page.violations(axe) == [], scheme
        page.tab.keyboard.press("Escape")
        page.tab.get_by_role("button", name="Export").click()
        assert page.violations(axe) == [], scheme
        page.tab.keyboard.press("Escape")
        page.tab.locator(".section.input .enlarge").click()
        page.tab.keyboard.press("+")  # the picture can now be scrolled
        page.tab.locator(".section.input .info").click()
        assert page.violations(axe) == [], scheme
        page.tab.keyboard.press("Escape")
        page.tab.keyboard.press("f")
        page.until("() => !document.querySelector('.staged')")


def test_the_token_stays_neither_in_the_address_nor_in_the_cookie(view, live_server):
    page = view("sample=2")
    assert page.tab.url == f"{live_server.url.partition('?')[0]}#sample=2"
    (cookie,) = page.context.cookies()
    assert cookie["path"] == f"/{live_server.guard.folder}"  # and so to no other port of this host
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert live_server.guard.token not in cookie["value"]
    page.tab.reload()
    page.ready()


def test_a_private_file_leads_the_browser_to_the_page(opened, live_server):
    tab = opened(live_server.launch_file().as_uri(), home="")
    assert tab.url.partition("#")[0] == live_server.url.partition("?")[0]


def test_a_scan_without_inputs_says_so_and_draws_no_black_picture(view, serve, networks):
    images = torch.rand(4, 1, 28, 28)
    scan = ob.scan(networks, images, group="cyclic:4", task="classification", progress=False)
    page = view("sample=1", server=serve({"bare": scan}), sections=())
    page.tab.wait_for_selector(".section.input[data-state=empty]")
    expect(page.tab.locator(".section.input .message")).to_contain_text("stores no inputs")


def test_a_placeholder_leaves_the_menus_free(view):
    page = view("sample=2", viewport=SMALL[1])
    page.tab.evaluate("document.querySelector('.embedding .skeleton').hidden = false")
    page.tab.evaluate("document.querySelector('.embedding .controls').append('menu '.repeat(60))")
    head = page.tab.locator(".embedding > header").bounding_box()
    placeholder = page.tab.locator(".embedding .skeleton").bounding_box()
    assert head["height"] > 60  # several lines of menus
    assert placeholder["y"] >= head["y"] + head["height"]


def test_a_finger_scrolls_the_page_past_the_map_and_draws_a_lasso(view):
    page = view("sample=2")
    touch = "() => document.querySelector('.scatter').style.touchAction"
    assert page.tab.evaluate(touch) == "pan-y"
    page.tab.get_by_role("button", name="lasso").click()
    page.eventually(lambda: page.tab.evaluate(touch) == "none")


def test_a_pressed_button_is_read_below_the_pointer(view):
    page = view("sample=2")
    pin = page.tab.locator(".individual").get_by_role("button", name="pin")
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")
    colors = "el => [getComputedStyle(el).color, getComputedStyle(el).backgroundColor]"
    below = pin.evaluate(colors)  # the pointer is on it still
    page.tab.mouse.move(5, 5)
    assert pin.evaluate(colors) == below


def test_on_paper_sections_follow_each_other_without_controls(view):
    page = view("sample=2", viewport={"width": 1400, "height": 900})
    page.tab.emulate_media(media="print")
    page.tab.set_viewport_size({"width": 704, "height": 1000})  # A4 within its margins
    boxes = [
        page.tab.locator(f".section.{name}").bounding_box()
        for name in ("aggregate", "embedding", "calibration", "individual", "input", "detail")
    ]
    for one, other in itertools.pairwise(boxes[:-1]):
        assert one["y"] + one["height"] <= other["y"]
        assert one["width"] == pytest.approx(704, abs=0.5)
    picture, answer = boxes[-2:]
    assert picture["y"] == answer["y"]
    assert picture["x"] + picture["width"] < answer["x"]
    assert answer["x"] + answer["width"] == pytest.approx(704, abs=0.5)
    controls = page.tab.locator(".actions, .enlarge, .info, .menus, .filters, .list, .half button")
    assert not controls.locator("visible=true").count()
    # Plots fill the paper though no script draws them anew.
    assert page.tab.locator(".aggregate .plot > svg").bounding_box()["width"] > 600
    page.tab.emulate_media(media="null")
