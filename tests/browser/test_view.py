"""The view in a real browser, on a real server, with the networks that ship.

What the page shows is compared with the scan, or with the networks run directly.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree

import numpy as np
import pytest
import torch

import orbical as ob

pytestmark = pytest.mark.browser

WIDE = {"width": 1440, "height": 900}
SVG = "{http://www.w3.org/2000/svg}"
SECTIONS = ("aggregate", "embedding", "calibration", "individual", "input", "detail")


class Page:
    """A tab of the view, with short words for what a reader does and sees."""

    def __init__(self, browser, server, fragment="", viewport=WIDE, scheme="light", **settings):
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, **settings)
        self.tab = self.context.new_page()
        self.url = server.url
        self.troubles = []
        self.asked = []
        tab = self.tab
        tab.on("console", lambda m: m.type == "error" and self.troubles.append(m.text))
        tab.on("pageerror", lambda error: self.troubles.append(str(error)))
        tab.on("requestfailed", lambda request: self.troubles.append(request.url))
        tab.on("response", lambda r: r.status >= 400 and self.troubles.append(r.url))
        tab.on("request", lambda request: self.asked.append(request.url))
        self.open(fragment)

    def open(self, fragment=""):
        self.tab.goto("about:blank")
        self.tab.goto(self.url + (f"#{fragment}" if fragment else ""))
        self.ready()

    def ready(self):
        for name in SECTIONS:
            self.tab.wait_for_selector(f".section.{name}[data-state=ready]")

    def text(self, selector):
        return self.tab.locator(selector).first.inner_text()

    def readout(self):
        """What the strip says: place, and for each model metric, answer and confidence."""
        rows = self.tab.locator(".answers tbody tr").all_inner_texts()
        cells = [re.split(r"\s*\t\s*", row.strip()) for row in rows]
        return self.text(".where"), {name.strip(): rest for name, *rest in cells}

    def until(self, script, argument=None):
        return self.tab.wait_for_function(script, arg=argument, timeout=8000)

    def shows(self, selector, text):
        """Wait until an element says something."""
        self.until(
            "([selector, text]) => document.querySelector(selector)?.textContent.trim() === text",
            [selector, text],
        )

    def bars(self):
        """The class probabilities of each model, as the rows name them."""
        titles = self.tab.locator(".bar-row").evaluate_all("rows => rows.map(row => row.title)")
        found = {}
        for title in titles:
            for name, value in re.findall(r"(\w+) ([0-9.]+)", title.partition(": ")[2]):
                found.setdefault(name, []).append(float(value))
        return {name: np.array(values) for name, values in found.items()}

    def pixels(self):
        """The input image, grey, from the canvas."""
        rows = self.tab.evaluate(
            """() => { const c = document.querySelector(".pixels");
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            return [c.height, c.width, Array.from(d.filter((_, i) => i % 4 === 0))]; }"""
        )
        return np.array(rows[2]).reshape(rows[0], rows[1]) / 255

    def ring(self):
        """Where the selected sample lies in the embedding."""
        shown = self.tab.locator(".scatter svg circle:not([visibility=hidden])").last
        box = shown.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def clipped(self):
        """The boxes whose content does not fit in them."""
        return self.tab.evaluate(
            """() => [...document.querySelectorAll(
            ".section, .section > header, .half, .readout, .menus, .switch, .toggle, .legend")]
        .filter(el => el.offsetParent && (el.scrollWidth > el.clientWidth + 1
            || (el.scrollHeight > el.clientHeight + 1 && !el.matches(".toggle, .switch"))))
        .map(el => [el.className, el.scrollWidth, el.clientWidth, el.scrollHeight])"""
        )

    def fragment(self):
        return self.tab.evaluate("location.hash.slice(1)")

    def drag_to(self, degrees, section="individual", release=True):
        """Press at the top of a dial and drag counter-clockwise to an angle."""
        rings = self.tab.locator(f".{section} .orbit-plot svg circle[fill=none]")
        boxes = [ring.bounding_box() for ring in rings.all()]
        box = max((one for one in boxes if one), key=lambda one: one["width"])
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        radius = 0.4 * box["width"]
        mouse = self.tab.mouse
        mouse.move(x, y - radius)
        mouse.down()
        for step in np.linspace(0, degrees, 12):
            turn = math.radians(step)
            mouse.move(x - radius * math.sin(turn), y - radius * math.cos(turn))
        if release:
            mouse.up()

    def close(self):
        self.context.close()


@pytest.fixture
def view(browser, live_server):
    """Open pages; at the end none may have complained or asked another host."""
    opened = []

    def start(fragment="", server=live_server, **settings):
        page = Page(browser, server, fragment, **settings)
        opened.append((page, server))
        return page

    yield start
    for page, server in opened:
        page.close()
        home = server.url.partition("?")[0]
        foreign = [
            url for url in page.asked if not url.startswith((home, "data:", "blob:", "about:"))
        ]
        assert page.troubles == []
        assert foreign == []


def values(scan, name, sample):
    return {m: scan.data[name].sel(model=m).values[sample] for m in ("plain", "augmented")}


def test_everything_fits_one_screen_and_says_what_it_is(view):
    page = view()
    size = page.tab.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size == [1440, 900]
    assert page.clipped() == []
    titles = page.tab.locator("main h3").all_inner_texts()
    assert titles == ["Aggregate", "Embedding", "Calibration", "Individual", "Input", "Answer"]
    assert page.text(".overview h2") == "All 120 images"
    assert page.text(".badge") == "live"


def test_a_fresh_page_starts_with_the_most_variable_sample(view, digit_scan):
    page = view()
    spread = digit_scan.data["score"].var("element").mean("model").values
    page.until("() => location.hash.includes('sample=')")
    assert page.fragment() == f"sample={int(spread.argmax())}&order=variable"
    assert page.text(".one h2") == f"Image {int(spread.argmax())}"


def loneliest(server):
    """The sample whose point stands farthest from any other."""
    _, arrays = server.session.handle({"kind": "embedding", "sequence": 1})
    apart = np.linalg.norm(arrays["xy"][:, None] - arrays["xy"][None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    return int(apart.min(1).argmax())


def test_a_click_in_the_embedding_selects_the_sample_there(view, live_server, digit_scan):
    lonely = loneliest(live_server)
    page = view(f"sample={lonely}&order=best")
    place = page.ring()
    page.open(f"sample={(lonely + 1) % 120}&order=best")
    page.tab.mouse.click(*place)
    page.until(
        "wanted => document.querySelector('.one h2').textContent === wanted", f"Image {lonely}"
    )
    label = int(digit_scan.data["label"][lonely])
    page.until(
        "label => document.querySelector('.one .half p').textContent === `labelled ${label}`", label
    )
    assert page.fragment().startswith(f"sample={lonely}&")
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{float(values(digit_scan, 'score', lonely)['plain'][0]):.3f}",
    )


def test_arrows_along_the_orbit_show_what_the_scan_holds(view, digit_scan):
    page = view("sample=2")
    page.tab.locator(".individual .orbit-plot").focus()
    for _ in range(30):
        page.tab.keyboard.press("ArrowRight")
    assert page.fragment() == "sample=2&element=30"
    page.until("() => document.querySelector('.where').textContent === '150°'")
    score = values(digit_scan, "score", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{score['plain'][30]:.3f}",
    )
    known = values(digit_scan, "probabilities", 2)
    page.until(  # the readout may say the same of the position before
        "wanted => document.querySelectorAll('.bar-row')[9].title.includes(wanted)",
        f"{known['plain'][30][9]:.3f}",
    )
    for name, found in page.bars().items():
        np.testing.assert_allclose(found, known[name][30], atol=6e-4)
    _, rows = page.readout()
    assert {*rows} == {"plain", "augmented"}
    for name, (metric, answer, confidence) in rows.items():
        predicted = int(values(digit_scan, "predicted", 2)[name][30])
        assert float(metric) == pytest.approx(score[name][30], abs=6e-4)
        assert answer == f"{predicted} {'✓' if predicted == 6 else '✗'}"
        known = values(digit_scan, "confidence", 2)[name][30]
        assert float(confidence) == pytest.approx(known, abs=6e-4)
    assert rows["plain"][1] == "9 ✗"  # the turned six
    assert page.tab.locator(".bar-row.is-true .bar-name").inner_text() == "6"


def test_dragging_runs_the_networks_between_the_scanned_elements(view, digit_scan, networks):
    from scipy.ndimage import rotate

    page = view("sample=2")
    page.drag_to(103.3)
    page.until("() => location.hash.includes('position=')")
    angle = float(re.search(r"position=([\d.]+)", page.fragment())[1])
    assert angle == pytest.approx(103.3, abs=1.5)
    assert angle % 5 > 0.01
    page.until(
        "name => document.querySelector('.where').textContent === name", f"{round(angle, 1):g}°"
    )
    page.tab.wait_for_timeout(400)
    still = digit_scan.data["input"].values[2, 0]
    turned = rotate(still, angle, reshape=False, order=1)
    np.testing.assert_allclose(page.pixels(), turned.clip(0, 1), atol=0.02)
    for name, found in page.bars().items():
        with torch.inference_mode():
            known = networks[name](torch.from_numpy(turned)[None, None]).softmax(-1)[0].numpy()
        np.testing.assert_allclose(found, known, atol=5e-3)


def test_dragging_on_the_aggregate_moves_everything_and_writes_the_address_on_release(
    view, digit_scan
):
    page = view("sample=2")
    before = page.pixels()
    page.drag_to(90, "aggregate", release=False)
    page.until("() => parseFloat(document.querySelector('.where').textContent) > 85")
    assert page.fragment() == "sample=2"
    page.tab.mouse.up()
    page.until("() => location.hash.includes('element=')")
    element = int(re.search(r"element=(\d+)", page.fragment())[1])
    assert element == 18
    assert np.abs(page.pixels() - before).max() > 0.5
    mean = digit_scan.data["score"].mean("sample").values[:, element]
    items = page.tab.locator(".aggregate .legend b").all_inner_texts()
    np.testing.assert_allclose([float(item) for item in items], mean, atol=6e-4)
    page.until("() => document.querySelector('.calibration .switch').innerText.includes('at 90°')")


def test_a_lasso_makes_a_subset_that_aggregate_list_and_calibration_follow(
    view, live_server, digit_scan
):
    from matplotlib.path import Path as Outline

    page = view("sample=2")
    box = page.tab.locator(".embedding .scatter").bounding_box()
    page.tab.get_by_role("button", name="lasso").click()
    corners = [(0.02, 0.02), (0.55, 0.02), (0.5, 0.6), (0.02, 0.7)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.tab.mouse.move(*places[0])
    page.tab.mouse.down()
    for place in [*places[1:], places[0]]:
        page.tab.mouse.move(*place, steps=6)
    page.tab.mouse.up()
    page.tab.wait_for_selector(".chip:not([hidden])")
    polygon = np.array(
        [pair.split(",") for pair in re.search(r"lasso=([^&]+)", page.fragment())[1].split(";")],
        float,
    )
    _, arrays = live_server.session.handle({"kind": "embedding", "sequence": 1})
    inside = Outline(polygon).contains_points(arrays["xy"])
    count = int(inside.sum())
    assert 0 < count < 120
    page.until(
        "text => document.querySelector('.chip').textContent === text",
        f"{count} of 120 images · clear",
    )
    mean = digit_scan.data["score"].values[:, inside, 0].mean(1)
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    page.until(
        "text => document.querySelector('.calibration .note').textContent === text",
        f"{count} of 120 images",
    )
    accuracy = digit_scan.data["correct"].sel(model="plain").values[inside, 0].mean()
    shown = page.tab.locator(".measures li").first.inner_text()
    assert f"accuracy {accuracy:.3f}" in shown
    assert page.tab.locator(".rows .row").count() == count
    page.tab.locator(".chip").click()
    page.until("() => document.querySelector('.overview h2').textContent === 'All 120 images'")
    assert "lasso" not in page.fragment()


def test_a_lasso_survives_another_metric_and_ends_with_another_embedding(view):
    square = "-2,-2;0,-2;0,2;-2,2"
    page = view(f"sample=2&lasso={square}")
    page.tab.get_by_label("Metric").select_option("confidence")
    page.until("() => location.hash.includes('metric=confidence')")
    assert f"lasso={square}" in page.fragment()
    page.tab.get_by_label("Method").select_option("ica")
    page.until("() => location.hash.includes('method=ica')")
    assert "lasso" not in page.fragment()


def test_classes_of_the_subset(view, digit_scan):
    page = view("sample=2&element=36")
    group = page.tab.get_by_role("group", name="Classes of the subset")
    group.get_by_role("button", name="6", exact=True).click()
    group.get_by_role("button", name="9", exact=True).click()
    chosen = np.isin(digit_scan.data["label"].values, [6, 9])
    page.until(
        "text => document.querySelector('.chip').textContent === text",
        f"{int(chosen.sum())} of 120 images · clear",
    )
    mean = digit_scan.data["score"].values[:, chosen, 36].mean(1)
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    assert page.fragment() == "sample=2&element=36&labels=6,9"
    page.until(
        "() => document.querySelector('.verdict').textContent === 'over-confident'"
    )  # the plain network, where sixes are nines


def test_another_metric_changes_the_orbit_plots(view, digit_scan):
    page = view("sample=2&element=36")
    page.tab.get_by_label("Metric").select_option("ece")
    along = ob.calibration.along_orbit(digit_scan, "ece")
    known = float(along.sel(model="plain").values[36])
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{known:.3f}",
    )
    assert "ECE" in page.text(".aggregate .note")
    _, rows = page.readout()  # one sample has no calibration error: its score stays
    assert float(rows["plain"][0]) == pytest.approx(
        values(digit_scan, "score", 2)["plain"][36], abs=6e-4
    )
    page.tab.get_by_label("Metric").select_option("confidence")
    sure = values(digit_scan, "confidence", 2)["plain"][36]
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted", f"{sure:.3f}"
    )


def test_a_model_is_turned_off_and_on_but_never_the_last(view):
    page = view("sample=2")
    models = page.tab.get_by_role("group", name="Models")
    models.get_by_role("button", name="augmented").click()
    page.until("() => document.querySelectorAll('.answers tbody tr').length === 1")
    page.until("() => document.querySelectorAll('.bar-row:first-child .bar').length === 1")
    page.until("() => document.querySelectorAll('.aggregate .legend b').length === 1")
    assert page.fragment() == "sample=2&models=plain"
    models.get_by_role("button", name="plain").click()
    assert page.fragment() == "sample=2&models=plain"
    models.get_by_role("button", name="augmented").click()
    page.until("() => document.querySelectorAll('.answers tbody tr').length === 2")
    assert page.fragment() == "sample=2"


def test_labels_or_consensus(view, digit_scan):
    page = view("sample=2&element=36")
    page.tab.get_by_role("radio", name="consensus").check(force=True)
    against = values(digit_scan, "score_vs_consensus", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{against['plain'][36]:.3f}",
    )
    mean = digit_scan.data["score_vs_consensus"].mean("sample").values[:, 36]
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    assert (
        "consensus class" in page.tab.get_by_label("Metric").locator("option:checked").inner_text()
    )
    _, rows = page.readout()
    usual = int(digit_scan.data["consensus"].sel(model="plain").values[2].argmax())
    predicted = int(values(digit_scan, "predicted", 2)["plain"][36])
    assert rows["plain"][1] == f"{predicted} {'✓' if predicted == usual else '✗'}"


def test_the_list_is_sorted_and_walked_with_keys(view, digit_scan):
    mean = digit_scan.data["score"].mean(("model", "element")).values
    worst = np.argsort(mean, kind="stable")
    page = view(f"sample={worst[0]}")
    page.tab.locator(".rows").focus()
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("ArrowDown")
    assert page.fragment() == f"sample={worst[2]}"
    page.tab.keyboard.press("[")
    assert page.fragment() == f"sample={worst[1]}"
    assert page.tab.locator(".row[aria-selected=true] .row-value").inner_text() == (
        f"{mean[worst[1]]:.3f}"
    )
    page.tab.get_by_role("combobox", name="Order").select_option("best")
    page.until(
        "wanted => document.querySelector('.row-value')?.textContent === wanted",
        f"{mean.max():.3f}",
    )


def test_the_colour_of_a_point_is_that_of_its_class_in_the_key(view, live_server, digit_scan):
    from io import BytesIO

    from matplotlib.image import imread

    lonely = loneliest(live_server)
    page = view(f"sample={lonely}&colour=class")
    page.until("() => document.querySelectorAll('.key .chip-class').length === 10")
    names = page.tab.locator(".key .chip-class").all_inner_texts()
    assert names == [str(name) for name in range(10)]
    key = page.tab.locator(".key .dot").evaluate_all(
        "dots => dots.map(dot => getComputedStyle(dot).backgroundColor.match(/\\d+/g).map(Number))"
    )
    x, y = page.ring()
    clip = {"x": x - 1, "y": y - 1, "width": 2, "height": 2}
    picture = imread(BytesIO(page.tab.screenshot(clip=clip)))[..., :3].mean((0, 1)) * 255
    nearest = int(np.linalg.norm(np.array(key) - picture, axis=1).argmin())
    assert nearest == int(digit_scan.data["label"][lonely])


def test_hovering_shows_the_sample_and_its_orbit(view):
    page = view("sample=2")
    box = page.tab.locator(".embedding .scatter").bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.3)
    page.until("() => /#\\d+ · labelled \\d/.test(document.querySelector('.hovercard')?.innerText)")
    assert page.tab.locator(".hovercard canvas").first.is_visible()
    page.tab.mouse.move(5, 5)
    page.tab.wait_for_selector(".hovercard", state="hidden")


def test_everything_is_reached_with_the_keyboard_alone(view):
    page = view("sample=2")
    seen = set()
    for _ in range(60):
        page.tab.keyboard.press("Tab")
        where = page.tab.evaluate(
            """() => { const el = document.activeElement;
            const part = el.closest(".section, .menus, .actions, .half, .readout");
            return part ? part.className.split(" ").pop() : el.tagName; }"""
        )
        seen.add(where)
    assert {"menus", "actions", "half", *SECTIONS} <= seen
    press = page.tab.keyboard.press
    page.tab.evaluate("() => document.activeElement.blur()")
    press("5")
    press("ArrowRight")
    page.until("() => location.hash.includes('element=1')")
    press("Home")
    page.until("() => location.hash === '#sample=2&element=0'")
    press("m")
    page.until("() => location.hash.includes('metric=')")
    press("M")
    press("r")
    page.until("() => location.hash.includes('reference=consensus')")
    press("r")
    press("k")
    page.until("() => location.hash.includes('scope=orbit')")
    press("c")
    page.until("() => location.hash.includes('colour=variance')")
    press("2")
    press("+")
    page.until("() => location.hash.includes('lasso=')")
    page.tab.wait_for_selector(".chip:not([hidden])")
    press("Escape")
    page.until("() => !location.hash.includes('lasso=')")
    press("?")
    assert page.tab.get_by_role("dialog").is_visible()
    press("Escape")
    assert not page.tab.get_by_role("dialog").is_visible()
    press("x")
    assert page.tab.get_by_role("button", name="Copy link to this view").is_visible()
    press("Escape")
    assert not page.tab.get_by_role("button", name="Copy link to this view").is_visible()


def test_each_section_explains_itself(view):
    page = view("sample=2")
    for name in SECTIONS:
        button = page.tab.locator(f".section.{name} .info")
        assert len(button.get_attribute("title")) > 40
        button.focus()
        page.tab.keyboard.press("Enter")
        hint = page.tab.locator(f".section.{name} .popover-hint")
        assert hint.inner_text() == button.get_attribute("title")
        page.tab.keyboard.press("Escape")
        assert not hint.is_visible()


def test_dark_follows_the_system_and_a_choice_is_remembered(view):
    page = view("sample=2", scheme="dark")
    paper = "() => getComputedStyle(document.querySelector('.orbical')).backgroundColor"
    assert page.tab.evaluate(paper) == "rgb(16, 19, 23)"
    page.tab.get_by_role("button", name="Use the light theme").click()
    assert page.tab.evaluate(paper) == "rgb(243, 244, 246)"
    page.tab.reload()
    page.ready()
    assert page.tab.evaluate(paper) == "rgb(243, 244, 246)"


def test_a_link_restores_the_view_and_back_and_forward_walk_through_it(view):
    fragment = (
        "sample=7&element=12&models=plain&metric=confidence&reference=consensus&labels=6,9"
        "&method=ica&of=plain&colour=variance&order=best&scope=orbit"
    )
    page = view(fragment)
    assert page.fragment() == fragment
    assert page.text(".one h2") == "Image 7"
    assert page.text(".where") == "60°"
    chosen = page.tab.locator("select").evaluate_all("all => all.map(one => one.value)")
    assert {"confidence", "ica", "variance", "plain", "best"} <= {*chosen}
    page.tab.keyboard.press("]")
    page.until("() => !location.hash.includes('sample=7&')")
    later = page.fragment()
    page.tab.go_back()
    page.until("() => document.querySelector('.one h2').textContent === 'Image 7'")
    assert page.fragment() == fragment
    page.tab.go_forward()
    page.until("text => location.hash.slice(1) === text", later)
    assert page.text(".one h2") != "Image 7"


def test_a_link_to_nothing_opens_on_what_there_is(view):
    page = view("sample=99999&element=900&models=nobody&metric=magic&colour=plaid&scope=moon")
    assert page.text(".one h2") == "Image 119"
    assert page.text(".where") == "0°"


def test_many_classes_fold_into_a_menu_and_missing_probabilities_are_said(view, serve, digit_scan):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 20))
    images = torch.from_numpy(digit_scan.data["input"].values[:40])
    labels = torch.arange(40) % 20
    scan = ob.scan(
        {"net": net},
        (images, labels),
        group="rotations:8",
        task="classification",
        keep="inputs",
        progress=False,
    )
    page = view("sample=3", server=serve({"twenty": scan}))
    assert page.tab.locator(".bar-row").count() == 12
    assert page.text(".detail .view-note").startswith("Only the winning class is stored")
    page.tab.get_by_role("button", name="all ▾").click()
    page.tab.get_by_label("15", exact=True).check()
    page.until("() => document.querySelector('.chip').textContent === '2 of 40 images · clear'")
    assert page.fragment() == "sample=3&labels=15"
    assert page.tab.get_by_role("button", name="1 of 20 ▾").is_visible()


def test_classes_in_the_embedding_carry_their_names(view):
    page = view("sample=3&colour=class")
    names = page.tab.locator(".embedding .plot-holder svg text").all_text_contents()
    assert sorted(names) == [str(digit) for digit in range(10)]
    page.tab.get_by_label("Colour").select_option("mean")
    page.until("() => !document.querySelector('.embedding .plot-holder svg text')")


def test_a_sample_says_what_it_is_taken_for_and_whether_it_is_in_the_subset(view, digit_scan):
    data = digit_scan.data.isel(sample=11)
    label = int(data["label"])
    wrong = {}
    for model in ("plain", "augmented"):
        said = data["predicted"].sel(model=model).values
        for other in {*said.tolist()} - {label}:
            wrong[model, other] = int((said == other).sum())
    (model, other), count = max(wrong.items(), key=lambda item: item[1])
    page = view("sample=11")
    page.shows(".individual .note", f"{model} answers {other} at {count} of 72 positions")
    page.tab.get_by_role("button", name=str((label + 1) % 10), exact=True).click()
    page.shows(".one .half p", f"labelled {label} · not in the subset")


def test_the_numbers_jump_to_the_sections_one_after_the_other(view):
    page = view("sample=3")
    sections = ("aggregate", "embedding", "embedding", "calibration", "individual", "input")
    for key, section in enumerate((*sections, "detail"), 1):
        page.tab.keyboard.press(str(key))
        page.until(f"() => document.activeElement.closest('.section.{section}')")


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (720, 450)])
def test_bounds_leave_room_for_calibration_at_every_size(view, serve, digit_scan, size):
    ids = np.arange(120) // 4
    viewport = dict(zip(("width", "height"), size, strict=True))
    page = view("sample=2", server=serve({"digits": digit_scan}, orbits=ids), viewport=viewport)
    page.tab.wait_for_selector(".section.bounds[data-state=ready]")
    for section in (".bounds", ".calibration .plot-holder"):
        assert page.tab.locator(section).first.bounding_box()["width"] > 240
    assert page.clipped() == []


def test_another_data_set_begins_anew(view, serve, digit_scan):
    page = view(
        "scan=first&sample=5&labels=6", server=serve({"first": digit_scan, "second": digit_scan})
    )
    page.tab.get_by_label("Data set").select_option("second")
    page.until("() => /^#scan=second&sample=\\d+&order=variable$/.test(location.hash)")
    page.ready()
    assert page.text(".overview h2") == "All 120 images"
    page.tab.go_back()
    page.until("() => location.hash === '#scan=first&sample=5&labels=6'")
    page.until("() => document.querySelector('.one h2')?.textContent === 'Image 5'")


def test_bounds_are_shown_where_orbits_are_known(view, serve, digit_scan):
    ids = digit_scan.data["label"].values // 2  # as if pairs of classes were one orbit
    page = view("sample=2", server=serve({"digits": digit_scan}, orbits=ids))
    page.tab.wait_for_selector(".section.bounds[data-state=ready]")
    words = page.tab.locator(".bounds svg").first.text_content()
    assert "accuracy" in words
    assert page.tab.evaluate("document.documentElement.scrollHeight") == 900


def test_without_models_the_page_snaps_to_the_scan(view, serve, digit_scan):
    page = view("sample=2", server=serve({"digits": digit_scan}))
    assert page.text(".badge") == "snapping to scanned elements"
    assert page.clipped() == []
    page.drag_to(103.3)
    page.until("() => location.hash.includes('element=')")
    assert page.fragment() == "sample=2&element=21"
    score = values(digit_scan, "score", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{score['plain'][21]:.3f}",
    )
    for name, found in page.bars().items():
        known = values(digit_scan, "probabilities", 2)[name][21]
        np.testing.assert_allclose(found, known, atol=6e-4)


def test_a_model_that_raises_is_shown_and_the_rest_goes_on(view, serve, digit_scan, networks):
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no weights for this digit")

    server = serve({"digits": digit_scan}, models={**networks, "plain": Broken()})
    page = view("sample=2&element=30", server=server)
    page.tab.wait_for_selector(".errors:not([hidden])")
    assert "plain" in page.text(".errors")
    assert "no weights for this digit" in page.text(".errors")
    known = values(digit_scan, "probabilities", 2)["augmented"][30]
    np.testing.assert_allclose(page.bars()["augmented"], known, atol=6e-4)
    page.tab.keyboard.press("]")
    page.until("() => !location.hash.includes('sample=2&')")
    page.until("() => document.querySelector('.answers td + td').textContent !== '–'")


def test_a_lost_connection_is_said_and_mended(browser, live_server):
    page = Page.__new__(Page)
    page.context = browser.new_context(viewport=WIDE)
    page.tab = page.context.new_page()
    page.url, page.troubles, page.asked = live_server.url, [], []
    sockets = []

    def between(socket):
        sockets.append(socket)
        socket.connect_to_server()

    page.tab.route_web_socket(re.compile("/ws$"), between)
    page.open("sample=2")
    assert not page.tab.locator(".banner").is_visible()
    sockets[-1].close(code=1001)
    page.tab.wait_for_selector(".banner:not([hidden])")
    assert "connection" in page.text(".banner")
    page.tab.keyboard.press("]")
    page.tab.wait_for_selector(".banner", state="hidden", timeout=8000)
    assert len(sockets) == 2
    page.until("() => document.querySelector('.one .half p').textContent.startsWith('labelled')")
    page.close()


@pytest.mark.parametrize("size", [(1024, 768), (720, 450)])
def test_small_windows_and_large_type_scroll_down_and_clip_nothing(view, size):
    page = view("sample=2", viewport={"width": size[0], "height": size[1]})
    assert page.tab.evaluate("document.documentElement.scrollWidth") == size[0]
    assert page.clipped() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations(view, axe, scheme):
    page = view("sample=2&element=30&labels=6,9", scheme=scheme)
    page.tab.evaluate(axe)
    run = "async () => (await axe.run()).violations.map(v => [v.id, v.nodes.map(n => n.html)])"
    assert page.tab.evaluate(run) == []
    page.tab.keyboard.press("?")
    assert page.tab.evaluate(run) == []


def test_pictures_data_and_link_are_exported(view, digit_scan, tmp_path):
    page = view("sample=2&element=30&labels=6,9", permissions=["clipboard-read", "clipboard-write"])
    page.tab.wait_for_selector(".chip:not([hidden])")

    def download(name, what=""):
        page.tab.get_by_role("button", name="Export").click()
        page.tab.get_by_label("Picture of").select_option(what)
        with page.tab.expect_download() as started:
            page.tab.get_by_role("button", name=name, exact=True).click()
        page.tab.keyboard.press("Escape")
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        return path

    drawing = xml.etree.ElementTree.parse(download("SVG")).getroot()
    assert (drawing.get("width"), drawing.get("height")) == ("1440", "900")
    words = " ".join("".join(text.itertext()) for text in drawing.iter(f"{SVG}text"))
    for wanted in ("Aggregate", "Embedding", "150°", "over-confident", "clear"):
        assert wanted in words
    assert len([*drawing.iter(f"{SVG}image")]) >= 2
    from matplotlib.image import imread

    picture = imread(download("PNG"))
    assert picture.shape[:2] == (1800, 2880)
    assert len(np.unique((picture[::7, ::7, :3] * 255).round().reshape(-1, 3), axis=0)) > 50
    plot = xml.etree.ElementTree.parse(download("SVG", "aggregate")).getroot()
    assert float(plot.get("width")) < 600
    indices = [int(line) for line in download("Subset as indices").read_text().split()]
    assert indices == np.flatnonzero(np.isin(digit_scan.data["label"].values, [6, 9])).tolist()
    assert "angle" in download("Values as CSV").read_text().splitlines()[0]
    page.tab.get_by_role("button", name="Export").click()
    page.tab.get_by_role("button", name="Copy link to this view").click()
    page.until("() => document.querySelector('.export-status').textContent === 'Link copied.'")
    link = page.tab.evaluate("() => navigator.clipboard.readText()")
    assert link.endswith("#sample=2&element=30&labels=6,9")
