"""What stands beside each other on the page: samples, references, classes, glyphs, levels."""

from __future__ import annotations

import numpy as np
import pytest
from reader import drawn, expect, values

import orbical as ob


def cards(page):
    """The pinned samples: their names, what is selected, and what the models say of them."""
    return page.tab.locator(".pin").evaluate_all(
        """cards => cards.map(card => [card.querySelector(".pin-name").textContent,
        card.querySelector(".pin-name").ariaPressed === "true",
        [...card.querySelectorAll(".pin-answers p")].map(line => line.textContent)])"""
    )


def test_pinned_samples_follow_one_handle(view, digit_scan, axe):
    page = view("sample=2")
    expect(page.tab.locator(".section.pinned")).to_be_hidden()
    page.tab.get_by_role("button", name="pin", exact=True).click()
    page.tab.locator(".rows .row").nth(3).click()
    page.until("() => document.querySelector('.pin-name')?.ariaPressed === 'false'")
    page.tab.keyboard.press("p")
    page.until("() => document.querySelectorAll('.pin-answers p').length === 4")
    other = int(page.fragment().partition("sample=")[2].partition("&")[0])
    page.until("text => location.hash.endsWith(text)", f"pins=2,{other}")
    page.drag_to(150)
    page.shows(".section.pinned .note", "at " + page.text(".where"))
    page.tab.locator(".individual .orbit-plot").focus()
    page.tab.keyboard.press("Home")
    for _ in range(3):
        page.tab.keyboard.press("ArrowRight")
    label = digit_scan.data["label"].values
    said = []
    for number in (2, other):
        predicted = values(digit_scan, "predicted", number)
        sure = values(digit_scan, "confidence", number)
        lines = []
        for name in ("plain", "augmented"):
            right = "✓" if predicted[name][3] == label[number] else "✗"
            lines.append(f"{int(predicted[name][3])}{right}{sure[name][3]:.3f}")
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
    page.eventually(lambda: len({*page.tab.evaluate(painted)}) == 2)
    assert page.violations(axe) == []
    assert page.tab.locator(".pin-strip").bounding_box()["height"] < 160  # of a window of 900
    page.tab.locator(".pinned > header > .enlarge").click()
    for picture in (".pin .view", ".pin .orbit-glyph"):
        page.until("one => document.querySelector(one).clientWidth > 200", picture)
    page.tab.keyboard.press("Escape")
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
    page.until("() => location.hash.includes('reference=both')")
    against = page.tab.locator(".individual .against")
    expect(against).to_have_text(["compared with label", "compared with consensus"])
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
    drawn(page.tab)
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
    page.tab.locator(".aggregate > header > .enlarge").click()
    grown = "() => document.querySelector('.small-multiple canvas').clientWidth > 200"
    page.until(grown)
    page.tab.keyboard.press("Escape")
    page.until("() => document.querySelector('.small-multiple canvas').clientWidth < 120")
    six = page.tab.locator(".small-multiple").nth(6)
    six.click()
    page.until("() => location.hash.includes('filter=label:6')")
    page.until("() => document.querySelectorAll('.small-multiple')[6].ariaPressed === 'true'")
    expect(page.tab.locator(".small-multiple")).to_have_count(10)  # the others stay beside it
    six.click()
    page.until("() => !location.hash.includes('filter')")


@pytest.fixture(scope="module")
def scanned(networks):
    """Scan some digits with one network, under a name that others have too."""
    images, labels = ob.datasets.mnist(split="test")

    def scan(name, rows, group="rotations:12"):
        return ob.scan(
            {"cnn": networks[name]},
            (images[rows], labels[rows]),
            group=group,
            task="classification",
            keep=("probabilities", "inputs"),
            progress=False,
        )

    return scan


@pytest.fixture(scope="module")
def runs_server(serve, scanned):
    """Two scans of the same digits, one of other digits, and one of another group."""
    first = slice(0, 40)
    scans = {
        "plain": scanned("plain", first),
        "augmented": scanned("augmented", first),
        "others": scanned("plain", slice(50, 70)),
        "quarters": scanned("plain", first, "cyclic:4"),
    }
    return serve(scans), scans


def test_runs_are_overlaid_sorted_and_opened(view, runs_server, axe):
    server, scans = runs_server
    page = view("show=runs&element=3&filter=label:1,2,7&runs=difference", server)
    table = page.tab.locator(".runs-table")
    said = table.locator(".view-note").inner_text()
    assert "Left out: quarters (another group: cyclic:4)" in said
    assert "3 runs, 1 left out" in page.text(".section.aggregate header")
    assert "others has other samples, and all 20 of them are used" in said
    assert "not paired in the difference of others" in said
    kept = np.isin(scans["plain"].data["label"].values, [1, 2, 7])
    score = {name: scans[name].data["score"].values[0] for name in ("plain", "augmented")}
    apart = (score["augmented"] - score["plain"])[kept].mean(0)[3]
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    rows = {name: rest for name, *rest in table.locator("tbody tr").evaluate_all(cells)}
    assert list(rows) == ["plain", "augmented", "others"]
    assert rows["augmented"][1] == f"{apart:+.3f}"
    right = scans["augmented"].data["correct"].values[0][kept].mean()
    assert rows["augmented"][2] == f"{right:.3f}"
    assert "95 % interval" in table.locator("td.number").first.get_attribute("title")
    assert page.tab.locator(".runs-face .orbit-plot path[fill-opacity]").count() >= 3  # bands
    lines = table.locator("tbody td:nth-child(2) svg, tbody td:nth-child(2) canvas")
    expect(lines).to_have_count(3)  # a small curve for each run
    assert page.violations(axe) == []
    for number, heading in ((3, "gap"), (4, "ECE")):
        for smallest_first in (False, True):
            table.get_by_role("button", name=heading).click()
            shown = table.locator(f"tbody tr td:nth-child({number + 2})").all_inner_texts()
            values = [float(text.replace("−", "-")) for text in shown]
            assert values == sorted(values, reverse=not smallest_first), heading
    table.get_by_role("button", name="accuracy").focus()
    page.tab.keyboard.press("Enter")
    first = (
        "() => document.querySelector('.runs-table tbody tr').textContent.startsWith('augmented')"
    )
    page.until(first)
    page.tab.get_by_role("radio", name="curves").check(force=True)
    page.shows(".runs-table tbody tr td.number", f"{score['augmented'][kept].mean(0)[3]:.3f}")
    table.get_by_role("button", name="augmented").click()
    page.until("() => location.hash.startsWith('#scan=augmented')")
    page.ready()
    assert "show=runs" in page.fragment()
    assert "filter=label:1,2,7" in page.fragment()
    page.until("() => document.querySelector('.runs-table .now')?.textContent.startsWith('augm')")
    table.get_by_role("button", name="others").click()
    page.until("() => location.hash.startsWith('#scan=others')")
    page.ready()
    assert "filter" not in page.fragment()
    assert page.clipped() == []


def test_runs_are_absent_where_nothing_can_be_compared(view, runs_server):
    server, _ = runs_server
    page = view("scan=quarters&show=runs", server)
    shown = page.tab.get_by_role("radiogroup", name="Show", exact=True).inner_text()
    assert "by class" in shown
    assert "runs" not in shown


def test_maps_of_differences_are_gray_at_zero_and_as_far_to_both_sides(view, serve, scanned):
    rows = slice(0, 20)
    scans = {name: scanned(name, rows, "translations:4:4") for name in ("plain", "augmented")}
    page = view("show=runs&runs=difference", serve(scans))
    bar = page.tab.locator(".runs-face .orbit-plot svg rect[width='12']")
    colors = bar.evaluate_all("bars => bars.map(one => one.getAttribute('fill').match(/\\d+/g))")
    fills = [[int(part) for part in one] for one in colors]
    blue, orange = fills[0], fills[-1]
    assert blue[2] > blue[0] + 50
    assert orange[0] > orange[2] + 50
    middle = fills[len(fills) // 2]
    assert max(middle) - min(middle) < 12
    score = [scans[name].data["score"].values[0] for name in ("augmented", "plain")]
    apart = (score[0] - score[1]).mean(0)
    first = page.tab.locator(".runs-table tbody tr").nth(1).locator("td.number").first
    identity = scans["plain"].group.identity
    assert first.inner_text() == f"{apart[identity]:+.3f}".replace("-", "−")


def test_runs_have_room_at_every_width(view, runs_server):
    page = view("show=runs&runs=difference", runs_server[0])
    table = page.tab.locator(".runs-table")
    for width in (390, 768, 1440, 2560):
        page.resize({"width": width, "height": 900})
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
        assert page.clipped() == []
        note = page.tab.locator(".embedding .note")
        assert note.evaluate("el => el.scrollWidth <= el.clientWidth"), width
        table.evaluate("el => { el.scrollLeft = 1000; }")  # the names of runs stay in sight
        inside = table.locator("tbody th").first.bounding_box()["x"]
        assert inside >= table.bounding_box()["x"] - 1
        boxes = [page.tab.locator(f".section.{name}").bounding_box() for name in page.sections[:3]]
        for k, one in enumerate(boxes):
            for other in boxes[k + 1 :]:
                beside = one["x"] + one["width"] <= other["x"] + 1
                assert beside or one["y"] + one["height"] <= other["y"] + 1


def test_long_names_of_runs_are_told_apart_without_scrolling_sideways(view, serve, scanned):
    runs = ("000-degrees-seed0", "000-degrees-seed1", "045-degrees-seed0", "045-degrees-seed1")
    names = [f"augmentation-{run}" for run in runs]
    page = view("show=runs", serve(dict.fromkeys(names, scanned("plain", slice(0, 12)))))
    table = page.tab.locator(".runs-table")
    for width in (390, 1440):
        page.resize({"width": width, "height": 900})
        assert table.evaluate("el => el.scrollWidth <= el.clientWidth"), width
        shown = table.locator("tbody th .model-name")
        assert shown.evaluate_all("all => all.every(el => el.scrollWidth <= el.clientWidth)"), width
        written = shown.all_inner_texts()
        assert written == ["…000…seed0", "…000…seed1", "…045…seed0", "…045…seed1"]
        assert shown.evaluate_all("all => all.map(el => el.title)") == names
    menu = page.tab.get_by_label("Data set")
    assert menu.locator("option").all_inner_texts() == names  # task and group are those of all
    roomy = """el => { const pen = document.createElement("canvas").getContext("2d");
        pen.font = getComputedStyle(el).font;
        return el.clientWidth > pen.measureText(el.selectedOptions[0].text).width + 24; }"""
    assert menu.evaluate(roomy)
