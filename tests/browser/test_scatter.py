"""The map of samples in a real browser: points, picks, lassos, the wheel and the keys."""

from __future__ import annotations

from typing import Any

import pytest
from reader import eventually

SCATTER = """
const { createScatter } = await import("/plots/scatter.js");
const plot = window.plot = createScatter(document.querySelector("#a"), { webgl: given.webgl });
window.picks = [];
window.lassos = [];
plot.onpick((sample) => picks.push(sample));
plot.onlasso((polygon) => lassos.push(polygon));
plot.onhover((found) => (window.hovered = found));
const colors = new Uint8Array(2 * given.xy.length);
colors.forEach((_, i) => (colors[i] = [200, 30, 30, 255][i % 4]));
window.points = { xy: Float32Array.from(given.xy), colors, mask: null };
plot.set(points);
await new Promise(requestAnimationFrame);
return plot.kind();
"""

CROSS = [0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, -0.7, 0.0, 1.0]


@pytest.fixture(params=["any", False], ids=["webgl", "canvas"])
def scatter(request, make):
    """Make a map of five points, by the graphics card and without it."""
    kind = make(SCATTER, {"webgl": request.param, "xy": CROSS})
    if request.param and kind != "webgl2":
        pytest.skip("this browser has no WebGL2")
    assert request.param or kind == "canvas"
    return make


def at(tab: Any, make: Any, sample: int) -> tuple[float, float]:
    box = tab.locator(".scatter").bounding_box()
    drawn = "while (!plot.place(given)) await new Promise(requestAnimationFrame);"
    x, y = make(f"{drawn} return plot.place(given)", sample)
    return box["x"] + x, box["y"] + y


def test_points_are_drawn_where_they_are_picked(tab, scatter):
    x, y = at(tab, scatter, 4)
    look = """
      plot.repaint();
      const image = new Image();
      image.src = document.querySelector(".scatter canvas").toDataURL();
      await image.decode();
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: image.width, height: image.height });
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return Array.from(context.getImageData(...given, 1, 1).data);
    """
    box = tab.locator(".scatter").bounding_box()
    red, green, blue, alpha = scatter(look, [round(x - box["x"]), round(y - box["y"])])
    assert red > 150
    assert green < 90
    assert blue < 90
    assert alpha > 150
    assert scatter(look, [3, 3])[3] == 0


def test_a_click_picks_the_nearest_point_and_never_misses(tab, scatter):
    for sample in range(5):
        tab.mouse.click(*at(tab, scatter, sample))
        assert scatter("return picks.at(-1)") == sample
    tab.mouse.click(390, 190)
    assert scatter("return picks.at(-1)") == 2
    x, y = at(tab, scatter, 1)
    tab.mouse.move(x + 20, y - 15)
    assert scatter("return hovered.sample") == 1
    scatter("plot.set({ ...points, xy: points.xy.map((value) => -value) })")  # another map
    assert scatter("return hovered") is None


def test_a_lasso_gives_its_polygon_in_the_coordinates_of_the_map(tab, scatter):
    x, y = at(tab, scatter, 1)
    scatter("plot.setMode('lasso')")
    corners = [(-10, -40), (60, -40), (60, 40), (-10, 40)]
    tab.mouse.move(x - 10, y - 39)
    tab.mouse.down()
    for dx, dy in corners[1:] + corners[:1]:
        tab.mouse.move(x + dx, y + dy, steps=6)
    tab.mouse.up()
    polygon = scatter("return lassos.at(-1)")
    assert 3 <= len(polygon) <= 40
    inside = """
      const { insidePolygon } = await import("/draw/polygon.js");
      const inside = (i) => insidePolygon(lassos.at(-1), points.xy[2 * i], points.xy[2 * i + 1]);
      return [0, 1, 2, 3, 4].filter(inside);
    """
    assert scatter(inside) == [1]
    tab.keyboard.press("Escape")
    assert scatter("return lassos.at(-1)") == []


def test_the_wheel_zooms_about_the_pointer_and_a_double_click_resets(tab, scatter):
    before = at(tab, scatter, 2)
    tab.mouse.move(*before)
    tab.mouse.wheel(0, -480)
    eventually(tab, lambda: at(tab, scatter, 1)[0] < -200)
    near = at(tab, scatter, 2)
    assert near == pytest.approx(before, abs=4)  # wheels tell whole pixels
    tab.mouse.down()
    tab.mouse.move(before[0] - 50, before[1], steps=3)
    tab.mouse.up()
    eventually(tab, lambda: at(tab, scatter, 2)[0] == pytest.approx(near[0] - 50, abs=0.5))
    tab.mouse.dblclick(200, 200)
    eventually(tab, lambda: at(tab, scatter, 2) == pytest.approx(before, abs=0.5))


def test_arrow_keys_go_to_the_neighbor(tab, scatter):
    scatter("plot.select(0); plot.focus()")
    for key, sample in (("ArrowRight", 2), ("ArrowLeft", 0), ("ArrowUp", 4), ("ArrowDown", 0)):
        tab.keyboard.press(key)
        assert scatter("return picks.at(-1)") == sample


@pytest.mark.benchmark
def test_a_million_points_are_picked_at_once(tab, make):
    script = SCATTER.replace("given.xy", "xy").replace(
        "const plot =",
        """const xy = new Float32Array(2e6);
        for (let i = 0; i < xy.length; i += 1) xy[i] = Math.sin(i * i);
        const plot =""",
        1,
    )
    make(script, {"webgl": True})
    took = make("""
      const root = document.querySelector(".scatter");
      const { left, top } = root.getBoundingClientRect();
      const times = [];
      for (let k = 0; k < 20; k += 1) {
        const at = { clientX: left + 50 + 10 * k, clientY: top + 60 + 9 * k, bubbles: true };
        const start = performance.now();
        root.dispatchEvent(new PointerEvent("pointermove", at));
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b)[5]; // a busy machine slows some
    """)
    assert took < 25
