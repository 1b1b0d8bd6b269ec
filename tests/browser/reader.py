"""The page as tests use it: what a reader does with it and sees on it."""

from __future__ import annotations

import math
import re

import numpy as np

WIDE = {"width": 1440, "height": 900}
SECTIONS = ("aggregate", "embedding", "calibration", "individual", "input", "detail")
CORNERS = [(0.02, 0.02), (0.55, 0.02), (0.5, 0.6), (0.02, 0.7)]
"""The upper left of the embedding."""


def expect(locator):
    """Playwright's assertion about a locator, which waits until it holds."""
    from playwright.sync_api import expect as assertion

    return assertion(locator)


def eventually(tab, holds):
    """Wait until a condition holds: what an action changes is seen some frames after it."""
    for _ in range(600):
        if holds():
            return
        tab.wait_for_timeout(50)
    assert holds()


def drawn(tab):
    """Wait until what was done is drawn: one frame to hear of it, one to draw, and what moves."""
    tab.evaluate(
        """async () => {
        for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
        const ends = (moving) => moving.effect.getComputedTiming().endTime < Infinity;
        const moving = document.getAnimations().filter(ends);
        await Promise.allSettled(moving.map((one) => one.finished)); }"""
    )


class Page:
    """A tab for the view or a report, with short words for what a reader does and sees.

    Opening a page in a tab that is there costs half of what a new tab does, so tests share tabs and
    `renew` them.
    """

    def __init__(self, browser, viewport=WIDE, scheme="light", **settings):
        self.first = viewport, scheme
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, **settings)
        self.tab = self.context.new_page()
        self.address, self.sections = "", SECTIONS
        self.troubles, self.asked = [], []
        tab = self.tab
        tab.on("console", lambda m: m.type == "error" and self.troubles.append(m.text))
        tab.on("pageerror", lambda error: self.troubles.append(str(error)))
        tab.on("requestfailed", lambda request: self.troubles.append(request.url))
        tab.on("response", lambda r: r.status >= 400 and self.troubles.append(r.url))
        tab.on("request", lambda request: self.asked.append(request.url))

    def renew(self):
        """Be as a new tab is: empty, without cookies, in the first size and scheme."""
        viewport, scheme = self.first
        self.tab.mouse.up()
        self.tab.mouse.move(0, 0)
        self.tab.goto("about:blank")
        self.tab.set_viewport_size(viewport)
        self.tab.emulate_media(color_scheme=scheme)
        self.context.clear_cookies()
        self.troubles.clear()
        self.asked.clear()

    def foreign(self, home):
        """The addresses asked for that are not at home."""
        return [url for url in self.asked if not url.startswith((home, "data:", "blob:", "about:"))]

    def open(self, fragment=""):
        self.tab.goto("about:blank")  # from page to page only the fragment would change
        self.tab.goto(self.address + (f"#{fragment}" if fragment else ""))
        self.ready()

    def ready(self):
        for name in self.sections:
            self.tab.wait_for_selector(f".section.{name}[data-state=ready]", timeout=60_000)

    def resize(self, size):
        """Give the window another size, and wait until the plots have followed it."""
        self.tab.set_viewport_size(size)
        drawn(self.tab)
        self.ready()

    def scheme(self, name):
        """Let the system turn light or dark, and wait until the page follows."""
        self.tab.emulate_media(color_scheme=name)
        self.until("name => document.querySelector('.orbical').dataset.theme === name", name)

    def text(self, selector):
        return self.tab.locator(selector).first.inner_text()

    def readout(self):
        """What the strip says: place, and for each model metric, answer and confidence."""
        rows = self.tab.locator(".answers tbody tr").all_inner_texts()
        cells = [re.split(r"\s*\t\s*", row.strip()) for row in rows]
        return self.text(".where"), {name.strip(): rest for name, *rest in cells}

    def eventually(self, holds):
        eventually(self.tab, holds)

    def at(self, fragment):
        """Wait until the address names a view."""
        self.until("wanted => location.hash.slice(1) === wanted", fragment)

    def says(self, known, atol):
        """Wait until the bars show the class probabilities of each model."""

        def same():
            found = self.bars()
            return {*found} == {*known} and all(
                np.allclose(found[name], known[name], rtol=0, atol=atol) for name in known
            )

        self.eventually(same)

    def legend(self):
        """The numbers beside the names of the models in the aggregate."""
        return [float(text) for text in self.tab.locator(".aggregate .legend b").all_inner_texts()]

    def until(self, script, argument=None):
        return self.tab.wait_for_function(script, arg=argument, timeout=30_000)

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

    def violations(self, axe):
        """What axe-core, given as its text, finds wrong for readers who do not see or point."""
        if not self.tab.evaluate("() => 'axe' in window"):
            self.tab.evaluate(axe)
        return self.tab.evaluate(
            """async () => (await axe.run({ resultTypes: ["violations"] }))
            .violations.map(v => [v.id, v.nodes.map(n => n.html)])"""
        )

    def hover_over_the_map(self):
        """Move the pointer over the embedding, and wait for the card of the nearest sample."""
        box = self.tab.locator(".embedding .scatter").bounding_box()
        self.tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.3)
        card = "document.querySelector('.hovercard')?.innerText"
        self.until(f"() => /#\\d+ · label \\d/.test({card})")

    def fragment(self):
        return self.tab.evaluate("location.hash.slice(1)")

    def lasso(self, corners=CORNERS, key="", waits=True):
        """Draw around a part of the embedding, holding a key; the corners in pixels."""
        box = self.tab.locator(".embedding .scatter").bounding_box()
        if key:
            for one in key.split("+"):
                self.tab.keyboard.down(one)
        else:
            self.tab.get_by_role("button", name="lasso").click()
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
        before = self.fragment()
        self.tab.mouse.move(*places[0])
        self.tab.mouse.down()
        for place in [*places[1:], places[0]]:
            self.tab.mouse.move(*place, steps=6)
        self.tab.mouse.up()
        for one in key.split("+") if key else ():
            self.tab.keyboard.up(one)
        if waits:
            self.until("before => location.hash.slice(1) !== before", before)
        return np.array(places)

    def members(self):
        """The samples of the subset, as the address says them."""
        found = (re.search(r"members=([\d,-]*)", self.fragment()) or ("", ""))[1]
        runs = [[int(end) for end in run.split("-")] for run in found.split(",") if run]
        return {sample for run in runs for sample in range(run[0], run[-1] + 1)}

    def selects(self, samples):
        """Wait until the subset is a set of samples."""
        self.eventually(lambda: self.members() == samples)

    def on_screen(self, xy):
        """Where samples at places of the map are drawn, in pixels, from where two of them are."""
        now = self.fragment()
        far = [int(xy.sum(1).argmin()), int(xy.sum(1).argmax())]
        seen = []
        for sample in far:
            self.tab.evaluate("text => { location.hash = text }", f"{now}&sample={sample}")
            self.until(
                "wanted => document.querySelector('.one h2').textContent === wanted",
                f"Image {sample}",
            )
            seen.append(self.ring())
        self.tab.evaluate("text => { location.hash = text }", now)
        seen = np.array(seen)
        scale = (seen[1] - seen[0]) / (xy[far[1]] - xy[far[0]])
        return seen[0] + scale * (xy - xy[far[0]])

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


def circled(corners, places):
    """The samples inside an outline, and those inside or so close that a pixel decides."""
    from matplotlib.path import Path as Outline

    centered = corners.mean(0)
    sets = []
    for grown in (-4, 4):
        away = corners - centered
        outline = centered + away * (1 + grown / np.linalg.norm(away, axis=1, keepdims=True))
        sets.append({*np.flatnonzero(Outline(outline).contains_points(places)).tolist()})
    return sets


def values(scan, name, sample):
    """What a scan of the digits holds of one sample, by model."""
    return {m: scan.data[name].sel(model=m).values[sample] for m in ("plain", "augmented")}


def loneliest(server):
    """The sample whose point stands farthest from any other."""
    _, arrays = server.session.handle({"kind": "embedding", "sequence": 1})
    apart = np.linalg.norm(arrays["xy"][:, None] - arrays["xy"][None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    return int(apart.min(1).argmax())
