"""What stands beside each other on the page: samples, references, classes, glyphs, levels."""

from __future__ import annotations

import pytest
from reader import values

pytestmark = pytest.mark.browser


def cards(page):
    """The pinned samples: their names, what is selected, and what the models say of them."""
    return page.tab.locator(".pin").evaluate_all(
        """cards => cards.map(card => [card.querySelector(".pin-name").textContent,
        card.querySelector(".pin-name").ariaPressed === "true",
        [...card.querySelectorAll(".pin-answers p")].map(line => line.textContent)])"""
    )


def test_pinned_samples_follow_one_handle(view, digit_scan, axe):
    page = view("sample=2")
    assert page.tab.locator(".section.pinned").is_hidden()
    page.tab.get_by_role("button", name="pin", exact=True).click()
    page.tab.locator(".rows .row").nth(3).click()
    page.until("() => document.querySelector('.pin-name')?.ariaPressed === 'false'")
    page.tab.keyboard.press("p")
    page.until("() => document.querySelectorAll('.pin-answers p').length === 4")
    other = int(page.fragment().partition("sample=")[2].partition("&")[0])
    assert page.fragment().endswith(f"pins=2,{other}")
    page.drag_to(150)
    page.shows(".section.pinned .note", "at " + page.text(".where"))
    page.tab.locator(".individual .orbit-plot").focus()
    page.tab.keyboard.press("Home")
    for _ in range(30):
        page.tab.keyboard.press("ArrowRight")
    label = digit_scan.data["label"].values
    said = []
    for number in (2, other):
        predicted = values(digit_scan, "predicted", number)
        sure = values(digit_scan, "confidence", number)
        lines = []
        for name in ("plain", "augmented"):
            right = "✓" if predicted[name][30] == label[number] else "✗"
            lines.append(f"{int(predicted[name][30])}{right}{sure[name][30]:.3f}")
        said.append(lines)
    page.until(
        """said => JSON.stringify([...document.querySelectorAll(".pin")].map(card =>
        [...card.querySelectorAll(".pin-answers p")].map(line => line.textContent)))
        === JSON.stringify(said)""",
        said,
    )
    found = cards(page)
    assert [name for name, *_ in found] == [f"#{one} · {label[one]}" for one in (2, other)]
    assert [chosen for _, chosen, _ in found] == [False, True]
    painted = """() => [...document.querySelectorAll(".pin .pixels")].map(canvas =>
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.join())"""
    assert len({*page.tab.evaluate(painted)}) == 2
    assert page.violations(axe) == []
    page.tab.locator(".pin .view").first.click()
    page.until("() => location.hash.includes('sample=2&')")
    page.tab.get_by_role("button", name=f"Unpin image {other}").click()
    page.until("() => document.querySelectorAll('.pin').length === 1")
    page.tab.keyboard.press("p")
    page.until("() => !document.querySelector('.section.pinned')")


def test_truth_and_consensus_stand_beside_each_other(view, digit_scan):
    page = view("sample=2&element=30")
    page.tab.get_by_role("radio", name="both").check()
    page.until("() => document.querySelectorAll('.individual .orbit-plot').length === 2")
    assert "reference=both" in page.fragment()
    against = page.tab.locator(".individual .against").all_inner_texts()
    assert against == ["compared with label", "compared with consensus"]
    names = ("score", "score_vs_consensus")
    shown = [float(text) for text in page.tab.locator(".answers td.agreed").all_inner_texts()]
    spoken = page.tab.locator(".individual .orbit-plot").evaluate_all(
        "plots => plots.map(plot => plot.ariaValueText)"
    )
    for name, text in zip(names, spoken, strict=True):
        for model, stored in values(digit_scan, name, 2).items():
            assert f"{model} {stored[30]:.3f}" in text
    stored = [one[30] for one in values(digit_scan, "score_vs_consensus", 2).values()]
    assert shown == pytest.approx(stored, abs=6e-4)
    page.tab.locator(".individual .orbit-plot").last.focus()
    page.tab.keyboard.press("ArrowRight")
    page.shows(".where", "155°")
    page.tab.get_by_label("Metric").select_option("confidence")
    page.until("() => document.querySelectorAll('.individual .orbit-plot').length === 1")


CARD = """() => { const canvas = document.querySelector(".glyph-layer");
    if (!canvas) return null;
    const { width, height } = canvas, box = canvas.getBoundingClientRect();
    const seen = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    for (let x = 0; x < width; x += 1) for (let y = 0; y < height; y += 1)
        if (seen[4 * (y * width + x) + 3] > 60) return [box.x + x, box.y + y];
    return null; }"""


def test_orbits_are_laid_out_on_the_map(view):
    page = view("sample=2&order=best")
    assert page.tab.evaluate(CARD) is None
    page.tab.get_by_role("radio", name="glyphs").check()
    page.until(CARD)  # the outermost picture to the left
    page.tab.wait_for_timeout(200)
    left, top = page.tab.evaluate(CARD)
    page.tab.mouse.click(left + 4, top + 3)  # its corner: the sample of the picture is meant
    page.until("() => !location.hash.includes('sample=2&')")
    assert "marks=glyphs" in page.fragment()
    x, y = page.ring()
    assert 20 < x - left < 45  # the middle of the picture
    assert abs(y - top) < 45
    before = page.tab.evaluate("() => document.querySelector('.glyph-layer').toDataURL()")
    page.tab.mouse.move(x, y)
    page.tab.mouse.wheel(0, -600)
    page.until("old => document.querySelector('.glyph-layer').toDataURL() !== old", before)
    page.tab.get_by_role("radio", name="points").check()
    page.until("() => !document.querySelector('.glyph-layer')")


def test_small_multiples_show_each_class_and_select_it(view, digit_scan, axe):
    page = view("sample=2&element=30")
    page.tab.get_by_role("radio", name="by class").check()
    page.until("() => document.querySelectorAll('.small-multiple').length === 10")
    label = digit_scan.data["label"].values
    score = digit_scan.data["score"].values
    shown = page.tab.locator(".small-multiple").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('i')].map(number => +number.textContent))"
    )
    for place, numbers in enumerate(shown):
        assert numbers == pytest.approx(score[:, label == place, 30].mean(1).tolist(), abs=6e-4)
    assert page.violations(axe) == []
    six = page.tab.locator(".small-multiple").nth(6)
    six.click()
    page.until("() => location.hash.includes('filter=label:6')")
    page.until("() => document.querySelectorAll('.small-multiple')[6].ariaPressed === 'true'")
    assert page.tab.locator(".small-multiple").count() == 10  # the others stay beside it
    six.click()
    page.until("() => !location.hash.includes('filter')")
