"""Spread, confusion and sets in a real browser: what they show, and which samples they select."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from reader import expect

import orbical as ob
from orbical.interface.reports import report

AT = 30  # 150 degrees


@pytest.fixture(scope="module")
def written(digit_scan, tmp_path_factory):
    return report(digit_scan, tmp_path_factory.mktemp("report") / "digits.html")


@pytest.fixture(params=["server", "report"])
def either(request, paged):
    """Open the page of the server and the report, which answer alike."""

    def start(fragment):
        if request.param == "server":
            return paged(request.getfixturevalue("live_server").url, fragment)
        path = request.getfixturevalue("written")
        return paged(path.as_uri(), fragment, path.as_uri(), offline=True)

    return start


def test_a_band_of_the_fan_selects_its_samples(either, digit_scan):
    page = either(f"show=spread&element={AT}")
    page.tab.get_by_role("button", name="plain, lowest 5 %:").click()
    page.until("() => location.hash.includes('subset=')")
    score = digit_scan.data["score"].sel(model="plain").values[:, AT]
    lowest = np.flatnonzero(score <= np.quantile(score, 0.05))
    page.selects({*lowest.tolist()})
    if page.address.startswith("file:"):  # a report has no spread of a subset that was made in it
        said = page.tab.locator(".section.aggregate .message")
        expect(said).to_contain_text("This report has the spread of all images")
    else:
        page.shows(".aggregate .note", f"spread over {len(lowest)} of 120 images")


def test_a_click_in_a_dent_offers_its_samples_and_shift_selects_them_at_once(view, digit_scan):
    page = view(f"show=spread&models=plain&element={AT - 6}")
    score = digit_scan.data["score"].sel(model="plain").values[:, AT]
    low, high = np.quantile(score, [0.25, 0.75])
    assert low < 0.4 < 0.6 < high
    middle = {*np.flatnonzero((score > low) & (score < high)).tolist()}
    rings = page.tab.locator(".aggregate .orbit-plot svg circle[fill=none]").all()
    box = max((ring.bounding_box() for ring in rings), key=lambda one: one["width"])
    turn, out = math.radians(5 * AT), 0.25 * box["width"]  # a score of one half
    x, y = box["x"] + box["width"] / 2, box["y"] + box["width"] / 2
    dent = (x - out * math.sin(turn), y - out * math.cos(turn))
    page.shows(".aggregate .offer", "Select these images: plain, lowest 5 %")
    page.tab.mouse.click(*dent)
    page.shows(".aggregate .offer", "Select these images: plain, middle half")

    def drawn():
        return page.tab.locator(".aggregate .orbit-plot svg text").all_text_contents()

    before = drawn()
    assert f"element={AT}" in page.tab.evaluate("location.hash")
    assert "members=" not in page.tab.evaluate("location.hash")
    page.tab.locator(".aggregate .orbit-plot").focus()
    page.tab.keyboard.press("Tab")
    page.tab.keyboard.press("Enter")
    page.until("() => location.hash.includes('members=')")
    page.selects(middle)
    page.tab.keyboard.press("Control+z")
    page.until("() => !location.hash.includes('members=')")
    page.shows(".aggregate .note", f"spread over {len(score)} images")
    page.eventually(lambda: drawn() == before)  # the axis of fewer samples may end elsewhere
    page.tab.keyboard.down("Shift")
    page.tab.mouse.click(*dent)
    page.tab.keyboard.up("Shift")
    page.until("() => location.hash.includes('members=')")
    page.selects(middle)


def test_on_a_phone_bands_fill_their_line_and_lie_beside_each_other(view):
    page = view(f"show=spread&element={AT}", viewport={"width": 390, "height": 844})
    whole = page.tab.locator(".aggregate .body").bounding_box()
    for row in page.tab.locator(".bands tr").all():
        boxes = [one.bounding_box() for one in row.locator("td, th:not(:first-child)").all()]
        assert len(boxes) == 5
        for one, other in itertools.pairwise(boxes):
            assert one["x"] + one["width"] <= other["x"] + 1
        assert boxes[-1]["x"] + boxes[-1]["width"] > whole["x"] + whole["width"] - 12
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    assert page.tab.locator(".bands :is(td, th, button)").evaluate_all(cut) == []


def test_a_worst_case_between_positions_is_marked_and_told(view, serve):
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        {"net": net},
        (images[:12], labels[:12]),
        group="rotations:6",
        task="classification",
        keep="inputs",
        progress=False,
    )
    worst = ob.worst_case({"net": net}, scan, rounds=2, progress=False)
    page = view("sample=3", server=serve(scan, worst=worst))
    found = float(worst["score"].sel(place="refined")[0, 3])
    expect(page.tab.locator(".individual .worst-mark")).to_have_count(1)
    expect(page.tab.locator(".individual .worst-case")).to_contain_text(f"{found:.3f} (")
    expect(page.tab.locator(".aggregate .worst-mark")).to_have_count(12)


def test_a_confusion_selects_its_samples_by_mouse_and_by_arrows(either, digit_scan):
    page = either(f"answers=confusion&element={AT}")
    data = digit_scan.data.sel(model="plain").isel(element=AT)
    label, predicted = data["label"].values, data["predicted"].values
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (label, predicted), 1)
    cells = page.tab.locator(".confusion").first.locator("tbody td").all_inner_texts()
    assert [int(text or 0) for text in cells] == counts.ravel().tolist()
    expected, wrong = np.unravel_index((counts - np.diag(np.diag(counts))).argmax(), (10, 10))
    place = page.tab.locator(".confusion").first
    place.get_by_role("button", name=f"{expected} predicted as {wrong}:").focus()
    page.tab.keyboard.press("ArrowLeft")
    page.tab.keyboard.press("ArrowRight")
    page.tab.keyboard.press("Enter")
    page.until("() => location.hash.includes('subset=')")
    among = np.flatnonzero((label == expected) & (predicted == wrong))
    page.selects({*among.tolist()})


def test_sets_say_what_they_cover_and_who_calibrated_them(either, axe):
    page = either(f"answers=sets&element={AT}&show=spread")
    page.until("() => document.querySelector('.sets-face .measures b')")
    words = page.text(".sets-face .measures-holder")
    assert "60 images, chosen at random; tested on 60 others" in words
    assert "too low" in words
    page.tab.get_by_role("radio", name="calibrated on the orbit").check()
    page.until(
        "() => document.querySelector('.sets-face .view-note').innerText.includes('all positions')"
    )
    assert page.violations(axe) == []
