"""The stage in a real browser: a section over the whole window, zoom and pan, and a way back."""

from __future__ import annotations

import pytest
from reader import expect

PHONE = {"width": 390, "height": 844}
TOGETHER = ("individual", "input", "detail")


def box(page, selector):
    return page.tab.locator(selector).first.bounding_box()


def staged(page, name):
    page.until("n => document.querySelector('.staged')?.dataset.stage === n", name)


def closed(page):
    page.until("() => !document.querySelector('.staged')")


def zoom(page):
    """How many times as large as its box the picture is, and how far it is scrolled."""
    return page.tab.evaluate(
        "() => { const l = document.querySelector('.section.input .look');"
        " return [l.firstChild.offsetWidth / l.clientWidth, l.scrollLeft, l.scrollTop]; }"
    )


def test_every_section_enlarges_and_shrinks_by_button_key_and_double_click(view):
    page = view("sample=2&element=30")
    for name in ("aggregate", "embedding", "calibration", "individual", "input", "detail"):
        before = box(page, f".section.{name}")
        page.tab.locator(f".section.{name} > header > .enlarge").click()
        staged(page, name)
        page.until("text => location.hash.includes(text)", f"stage={name}")
        whole = box(page, ".staged")
        assert (whole["x"], whole["y"], whole["width"], whole["height"]) == (0, 0, 1440, 900), name
        now = box(page, f".section.{name}")
        assert now["width"] * now["height"] > 0.55 * 1440 * 900, name
        page.tab.keyboard.press("Escape")
        closed(page)
        page.until("() => !location.hash.includes('stage')")
        assert box(page, f".section.{name}") == before, name
    page.tab.locator(".section.input h3").dblclick()
    staged(page, "input")
    assert page.tab.evaluate("() => String(getSelection())") == "", "no word is selected"
    page.tab.locator(".section.input h3").dblclick()
    closed(page)


def test_the_focus_stays_on_the_stage_and_comes_back(view):
    page = view("sample=2&element=30")
    page.tab.keyboard.press("5")  # the orbit of the sample
    page.tab.keyboard.press("f")
    staged(page, "individual")
    inside = "() => Boolean(document.activeElement.closest('.staged'))"
    assert page.tab.evaluate(inside)
    for _ in range(12):  # once around: nothing behind is reached
        page.tab.keyboard.press("Tab")
        assert page.tab.evaluate(f"() => document.activeElement === document.body || ({inside})()")
    page.tab.keyboard.press("5")
    page.tab.keyboard.press("ArrowLeft")
    page.until("() => !location.hash.includes('element=30')")
    page.tab.keyboard.press("f")
    closed(page)
    assert page.tab.evaluate("document.activeElement.getAttribute('role')") == "slider"
    page.tab.keyboard.press("?")
    page.tab.keyboard.press("Escape")  # a dialog is closed by its own key
    page.tab.go_back()
    staged(page, "individual")


def test_an_address_opens_the_stage_and_an_unknown_one_nothing(view):
    page = view("sample=2&stage=input")
    staged(page, "input")
    page.open("sample=2&stage=nothing")
    closed(page)


def test_zoom_by_wheel_keys_and_buttons_about_the_pointer_and_pan_by_dragging(view):
    page = view("sample=2&stage=input")
    look = box(page, ".section.input .look")
    assert zoom(page) == [1, 0, 0]
    drawn = page.tab.locator(".section.input .pixels")
    pixels, shown = drawn.evaluate("el => [el.width, el.getBoundingClientRect().width]")
    assert pixels == 28  # each of the image
    assert shown > 600
    page.tab.keyboard.press("+")
    page.eventually(lambda: zoom(page)[0] == pytest.approx(1.5, abs=0.02))
    page.tab.keyboard.press("-")
    page.eventually(lambda: zoom(page)[0] == pytest.approx(1, abs=0.02))
    corner = look["x"] + look["width"] * 0.9, look["y"] + look["height"] * 0.9
    page.tab.mouse.move(*corner)
    page.tab.mouse.wheel(0, -480)
    page.eventually(lambda: zoom(page)[0] == pytest.approx(4, rel=0.02))
    _, left, top = zoom(page)
    assert left == pytest.approx(0.9 * look["width"] * 3, rel=0.03)
    page.tab.mouse.down()
    page.tab.mouse.move(corner[0] - 20, corner[1] - 60)
    page.tab.mouse.move(corner[0] - 40, corner[1] - 90)
    page.tab.mouse.up()
    page.eventually(lambda: zoom(page)[1:] == pytest.approx([left + 40, top + 90], abs=12))
    expect(page.tab.locator(".zoom-tools .tool").nth(1)).to_have_text("400 %")
    page.tab.keyboard.press("0")
    page.eventually(lambda: zoom(page) == [1, 0, 0])
    page.tab.keyboard.press("+")
    page.tab.keyboard.press("Escape")
    closed(page)
    page.eventually(lambda: zoom(page) == [1, 0, 0])  # the page shows the whole picture again


def test_two_fingers_zoom(view):
    page = view("sample=2&stage=input")
    page.tab.evaluate("""() => {
        const look = document.querySelector(".section.input .look");
        const { left, top, width, height } = look.getBoundingClientRect();
        const [x, y] = [left + width / 2, top + height / 2];
        const send = (type, id, dx) => look.firstChild.dispatchEvent(new PointerEvent(type,
            { pointerId: id, clientX: x + dx, clientY: y, bubbles: true, pointerType: "touch" }));
        send("pointerdown", 11, -50); send("pointerdown", 12, 50);
        send("pointermove", 11, -100); send("pointermove", 12, 100);
        send("pointerup", 11, -100); send("pointerup", 12, 100);
    }""")
    page.eventually(lambda: zoom(page)[0] == pytest.approx(2, rel=0.03))


@pytest.mark.parametrize("name", TOGETHER)
def test_on_a_phone_orbit_input_and_answer_share_one_screen(view, name):
    page = view(f"sample=2&element=30&stage={name}", viewport=PHONE)
    staged(page, name)
    boxes = {one: box(page, f".section.{one}") for one in TOGETHER}
    for one in boxes.values():
        assert 0 <= one["x"] <= PHONE["width"] - one["width"]
        assert 0 <= one["y"] <= PHONE["height"] - one["height"]
        assert min(one["width"], one["height"]) > 150
    assert boxes[name]["width"] > 350
    assert page.clipped() == []


def test_a_report_has_the_stage_too(paged, digit_scan, tmp_path):
    from orbical.interface.reports import report

    report(digit_scan, tmp_path / "digits.html")
    page = paged((tmp_path / "digits.html").as_uri(), "sample=2&stage=detail", offline=True)
    staged(page, "detail")
    page.tab.keyboard.press("Escape")
    closed(page)
