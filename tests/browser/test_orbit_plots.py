"""Plots along an orbit in a real browser: what hands do, what is drawn, and what it costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import orbical as ob


def group_of(text: str, continuous: bool = False) -> dict[str, Any]:
    """Make what the session tells a plot about a group."""
    group = ob.groups.parse(text)
    index = np.asarray(group.layout.index)
    return {
        "kind": group.layout.kind,
        "names": [f"element {k}" for k in range(len(group))],
        "identity": int(group.identity),
        "axes": {name: np.asarray(values).tolist() for name, values in group.layout.axes.items()},
        "coords": {name: np.asarray(values).tolist() for name, values in group.coords.items()},
        "index": {"data": index.ravel().tolist(), "shape": list(index.shape)},
        "continuous": continuous,
    }


ORBIT = """
const { createOrbitPlot } = await import("/plots/orbit.js");
const plot = window.plot = createOrbitPlot(document.querySelector("#a"), given.group);
window.moves = [];
plot.onmove((move) => moves.push(move));
plot.onhover((place) => (window.hovered = place));
const names = ["plain", "augmented", "third", "fourth", "fifth"].slice(0, given.models);
const size = given.group.names.length;
window.numbers = Float32Array.from({ length: size * names.length }, (_, i) => (i % size) / size);
const models = names.map((name) => ({ name, color: "#0072B2" }));
window.all = { models, values: numbers, range: [0, 1] };
plot.set(all);
await new Promise(requestAnimationFrame);
"""


def orbit(make: Any, text: str, models: int = 2, continuous: bool = False) -> dict[str, Any]:
    group = group_of(text, continuous)
    make(ORBIT, {"group": group, "models": models})
    return group


def handle_angle(tab: Any) -> float:
    """Read at which angle the handle is drawn."""
    words = tab.locator(".orbit-handle").get_attribute("transform")
    return (-float(words.removeprefix("rotate(").split()[0])) % 360


def center_of(tab: Any) -> tuple[float, float]:
    numbers = tab.locator(".orbit-handle").get_attribute("transform").rstrip(")").split()
    box = tab.locator(".orbit-plot").bounding_box()
    return box["x"] + float(numbers[1]), box["y"] + float(numbers[2])


def test_the_handle_turns_exactly_with_the_pointer(tab, make):
    orbit(make, "rotations:72", continuous=True)
    cx, cy = center_of(tab)
    tab.mouse.move(cx, cy - 60)
    tab.mouse.down()
    for angle in (10.0, 33.3, 91.0, 200.0, 271.5, 355.0):
        turn = math.radians(angle)
        x, y = cx - 90 * math.sin(turn), cy - 90 * math.cos(turn)
        tab.mouse.move(x, y)
        move = make("return moves.at(-1)")
        assert move["position"][0] == pytest.approx(angle, abs=0.02)
        assert move["element"] == round(angle / 5) % 72
        assert not move["done"]
        assert handle_angle(tab) == pytest.approx(angle, abs=0.02)
    tab.mouse.up()
    assert make("return moves.at(-1).done") is True


def test_a_press_focuses_the_plot_without_a_rim_and_a_key_goes_on_from_there(tab, make):
    orbit(make, "rotations:72")
    cx, cy = center_of(tab)
    tab.mouse.click(cx - 60, cy)
    assert make("return document.activeElement.getAttribute('role')") == "slider"
    assert make("return document.activeElement.matches(':focus-visible')") is False
    tab.keyboard.press("ArrowRight")
    assert make("return moves.at(-1).element") == 19


def test_a_drag_goes_on_outside_of_the_plot(tab, make):
    orbit(make, "rotations:72", continuous=True)
    cx, cy = center_of(tab)
    tab.mouse.move(cx - 30, cy)
    tab.mouse.down()
    tab.mouse.move(cx + 450, cy + 3)
    assert make("return moves.at(-1).position[0]") == pytest.approx(270 - 0.38, abs=0.1)
    tab.mouse.up()


def test_the_numbers_of_the_rings_are_read_above_the_handle(tab, make):
    orbit(make, "rotations:72")
    over = tab.locator(".orbit-handle ~ text").all_text_contents()
    assert over == ["0.25", "0.5", "0.75", "1"]


def test_words_of_rows_leave_most_of_a_narrow_plot_to_its_tiles(tab, make):
    orbit(make, "dihedral:4*time_reversal")
    words = tab.locator(".orbit-plot text", has_text="mirrored, forward")
    assert words.count() > 0
    tab.evaluate("() => Object.assign(document.querySelector('#a').style, { width: '170px' })")
    tab.wait_for_function(
        "() => !document.querySelector('.orbit-plot').textContent.includes('forward')"
    )
    boxes = tab.locator(".orbit-plot text").evaluate_all(
        "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    left = tab.locator(".orbit-plot").bounding_box()["x"]
    assert boxes
    tab.evaluate("() => Object.assign(document.querySelector('#a').style, { width: '400px' })")
    assert all(left <= low and high <= left + 170 for low, high in boxes), "no word is cut"


def test_names_of_tiles_are_written_in_two_lines_rather_than_cut(tab, make):
    orbit(make, "octahedral", models=1)
    words = tab.locator(".orbit-plot text").all_text_contents()
    assert "[1-1-1]" in words
    assert not [one for one in words if "…" in one or " [" in one]  # all are broken alike


def test_a_name_that_does_not_fit_its_tile_stands_in_the_tooltip_alone(tab, make):
    make("Object.assign(document.querySelector('#a').style, { width: '490px' })")
    orbit(make, "rotations3d:8*inversion")
    words = tab.locator(".orbit-plot text").all_text_contents()
    make("Object.assign(document.querySelector('#a').style, { width: '400px' })")
    assert not [one for one in words if "…" in one]
    assert "0.250" in words
    assert "element 4: 0.250" in tab.locator(".orbit-plot g > title").all_text_contents()


def test_without_live_models_the_handle_snaps_to_the_elements(tab, make):
    orbit(make, "rotations:8")
    cx, cy = center_of(tab)
    tab.mouse.click(cx - 50, cy - 40)
    assert make("return moves.at(-1)") == {"element": 1, "position": [], "done": True}
    assert handle_angle(tab) == pytest.approx(45)


def test_hovering_reads_the_values_of_every_model(tab, make):
    orbit(make, "rotations:72")
    cx, cy = center_of(tab)
    tab.mouse.move(cx - 80, cy)
    assert make("return hovered") == {"element": 18}
    words = tab.locator(".plot-tooltip").inner_text()
    assert "element 18" in words
    assert "plain" in words
    assert "0.250" in words
    tab.mouse.move(800, 650)
    assert not tab.locator(".plot-tooltip").is_visible()
    assert make("return hovered") is None


@pytest.mark.parametrize(
    ("text", "keys", "element"),
    [
        ("rotations:72", ["ArrowRight", "ArrowRight", "ArrowLeft"], 1),
        ("rotations:72", ["ArrowDown"], 71),
        ("rotations:72", ["PageUp"], 9),
        ("rotations:72", ["End"], 71),
        ("scales:0.5:2:9", ["Home"], 0),
        ("translations:4:2", ["ArrowUp", "ArrowRight"], 8),
        ("translations:4:2", ["ArrowUp", "ArrowUp", "ArrowUp", "Home"], 12),
        ("dihedral:4", ["ArrowRight", "ArrowDown"], 5),
        ("slices3d:8:5", ["ArrowRight"], 1),
        ("slices3d:8:5", ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"], 2),
    ],
)
def test_arrow_keys_move_along_the_orbit(tab, make, text, keys, element):
    orbit(make, text)
    make("plot.focus()")
    for key in keys:
        tab.keyboard.press(key)
    assert make("return moves.at(-1)") == {"element": element, "position": [], "done": True}
    slider = tab.get_by_role("slider")
    assert f"element {element}: plain" in slider.get_attribute("aria-valuetext")


def test_on_a_plane_the_pointer_means_the_shift_below_it(tab, make):
    orbit(make, "translations:4:2", models=1, continuous=True)
    place = """
      const box = document.querySelector(".orbit-plot rect[fill=none]").getBoundingClientRect();
      return [box.left, box.top, box.width, box.height];
    """
    left, top, width, height = make(place)
    tab.mouse.move(left + 0.1 * width, top + 0.1 * height)
    tab.mouse.down()
    assert make("return moves.at(-1).element") == 0
    assert make("return moves.at(-1).position") == pytest.approx([-4, 4], abs=0.05)
    tab.mouse.move(left + 0.5 * width, top + 0.7 * height)
    assert make("return moves.at(-1).element") == 17
    assert make("return moves.at(-1).position") == pytest.approx([0, -2], abs=0.05)
    tab.mouse.up()


def test_an_element_in_several_cells_is_marked_in_each(tab, make):
    group = orbit(make, "slices3d:4:5", models=1)
    index = np.array(group["index"]["data"]).reshape(group["index"]["shape"])
    shared = next(k for k in range(index.max() + 1) if len(np.argwhere(index == k)) == 2)
    make("plot.mark(given)", shared)
    assert tab.locator(".orbit-handle circle[stroke='#ffffff']").count() == 2


@pytest.mark.parametrize(
    "text", ["rotations:8", "translations:4:2", "scales:0.5:2:9", "slices3d:4:5", "rotations3d:50"]
)
def test_nothing_to_show_is_said(tab, make, text):
    orbit(make, text)
    make("plot.set({ ...all, values: numbers.map(() => NaN) })")
    assert "no data" in tab.locator(".orbit-plot").inner_text()
    make("plot.set(all)")
    assert "no data" not in tab.locator(".orbit-plot").inner_text()


@pytest.mark.parametrize("text", ["rotations:72", "translations:4:2", "dihedral:4"])
def test_a_picture_of_a_plot_stands_by_itself(tab, make, text):
    orbit(make, text)
    words = make("""
      const { pageSvg } = await import("/core/page_svg.js");
      return new XMLSerializer().serializeToString(pageSvg(document.querySelector("#a")));
    """)
    assert words.startswith("<svg")
    assert "var(" not in words
    assert "plain" in words
    size = """
      const url = URL.createObjectURL(new Blob([given], { type: "image/svg+xml" }));
      const image = new Image();
      image.src = url;
      await image.decode();
      return [image.width, image.height];
    """
    assert make(size, words) == [400, 380]


def test_a_change_of_numbers_is_drawn_within_a_frame(tab, make):
    orbit(make, "translations:32:1", models=5)
    measure = """
      const times = [];
      for (let k = 0; k < 15; k += 1) {
        const values = numbers.map((value) => value * 0.9 ** k);
        const start = performance.now();
        plot.set({ ...all, values, fixed: true }); // the scale stays
        times.push(performance.now() - start);
      }
      return Math.min(...times); // a busy machine slows some
    """
    assert make(measure) < 10


def test_marking_touches_the_handle_alone(tab, make):
    orbit(make, "rotations:72", models=5)
    watch = """
      const seen = [];
      const watcher = new MutationObserver((changes) => seen.push(...changes));
      const all = { attributes: true, childList: true, subtree: true };
      watcher.observe(document.querySelector("svg"), all);
      plot.mark(20);
      seen.push(...watcher.takeRecords());
      watcher.disconnect();
      return [seen.length, seen.filter((change) => change.type === "childList").length];
    """
    changes, rebuilt = make(watch)
    assert rebuilt == 0
    assert 0 < changes <= 1 + 3 * 5


def test_a_plot_fits_itself_to_its_place_and_leaves_nothing_behind(tab, make):
    orbit(make, "translations:4:2")
    make("""
      document.querySelector("#a").style.width = "600px";
      await new Promise((done) => setTimeout(done, 100));
    """)
    assert make("return document.querySelector('#a canvas').width") == 600
    make("plot.destroy(); document.querySelector('#a').style.width = '400px'")
    assert make("return document.querySelector('#a').childElementCount") == 0
    make("document.dispatchEvent(new Event('themechange'))")


def test_on_a_dark_page_the_colors_start_lighter(tab, make):
    orbit(make, "translations:4:2", models=1)
    look = """
      const canvas = document.querySelector("#a canvas");
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      let least = 255;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] === 255) least = Math.min(least, data[i + 1]);
      }
      return least;
    """
    light = make(look)
    make("document.body.style.color = '#eee'; document.dispatchEvent(new Event('themechange'))")
    dark = make(look)
    make("document.body.style.color = '#222'")
    assert dark > light + 30


@pytest.mark.parametrize(
    "text",
    [
        "rotations:8",
        "translations:4:2",
        "scales:0.5:2:9",
        "slices3d:4:5",
        "rotations3d:50",
        "dihedral:4",
    ],
)
def test_a_glyph_is_painted_for_every_layout(make, text):
    script = """
      const { createGlyph } = await import("/plots/glyph.js");
      const glyph = createGlyph(given, 40);
      document.body.append(glyph.element);
      const models = [{ name: "a", color: "#0072B2" }, { name: "b", color: "#D55E00" }];
      const values = Float32Array.from({ length: 2 * given.names.length }, (_, i) => (i % 7) / 7);
      const painted = () => {
        const { width, height } = glyph.element;
        const { data } = glyph.element.getContext("2d").getImageData(0, 0, width, height);
        return data.filter((value, i) => i % 4 === 3 && value > 0).length / (width * height);
      };
      glyph.set({ models, values, range: [0, 1] });
      const share = painted();
      glyph.element.remove();
      return share;
    """
    assert make(script, group_of(text)) > 0.05


def test_a_glyph_of_the_lowest_values_is_seen(make):
    script = """
      const { createGlyph } = await import("/plots/glyph.js");
      const glyph = createGlyph(given, 40);
      const values = new Float32Array(given.names.length);
      glyph.set({ models: [{ name: "a", color: "#ff0000" }], values, range: [0, 1] });
      const { data } = glyph.element.getContext("2d").getImageData(0, 0, 40, 40);
      return data.filter((_, i) => i % 4 === 0 && data[i] > 200 && data[i + 1] < 99).length;
    """
    assert make(script, group_of("rotations:8")) > 8


def test_the_interval_of_a_mean_is_whole_above_the_highest_value(make):
    orbit(make, "scales:0.5:2:9")
    script = """
      const values = Float32Array.from({ length: 18 }, (_, i) => i);
      const [low, high] = [values.map((value) => value - 4), values.map((value) => value + 4)];
      plot.set({ ...all, values, low, high, range: [0, 17] });
      const [band, frame] = ["path[stroke=none], path[fill-opacity]", "svg"].map((each) =>
        [...document.querySelectorAll(each)].at(-1).getBoundingClientRect());
      return band.top - frame.top;
    """
    assert make(script) > 13  # the axes begin at 12


@pytest.mark.parametrize(
    ("text", "coords", "marks"),
    [
        ("rotations:12", {"angle": 97}, 1),
        ("translations:4:2", {"dx": 1.5, "dy": -0.5}, 1),
        ("scales:0.5:2:9", {"scale": 1.3}, 1),
        ("rotations3d:16", {"rx": 20, "ry": -30, "rz": 5}, 3),  # one in each view
        ("dihedral:4", {}, 1),
    ],
)
def test_the_worst_case_is_marked_in_every_layout(tab, make, text, coords, marks):
    orbit(make, text)
    mark = {"m": 1, "element": 2, "coords": coords, "value": 0.4, "title": "worst case"}
    make("plot.set({ ...all, marks: [given] })", mark)
    found = tab.locator(".worst-mark")
    assert found.count() == marks
    assert found.first.text_content() == "worst case"
    make("plot.set(all)")
    assert found.count() == 0


def test_levels_stand_beside_each_other_in_a_row_for_each_model(tab, make):
    orbit(make, "translations:4:2")
    make(
        """const [low, high] = [numbers.map((value) => value / 4), numbers.map(() => 1.5)];
        const levels = [["5 %", low], ["median", numbers], ["95 %", high]];
        plot.set({ ...all, levels: levels.map(([name, values]) => ({ name, values })) });
        plot.mark(24);"""
    )
    words = tab.locator("#a svg text").evaluate_all(
        "all => all.map(text => text.firstChild.textContent)"
    )
    for title in ("5 %", "median", "95 %", "plain", "augmented"):
        assert words.count(title) == 1
    assert "1.5" in words  # the colors reach to the highest level
    assert tab.locator("#a .orbit-handle circle").count() >= 6  # a mark on each of the maps
    said = tab.locator(".orbit-plot").get_attribute("aria-valuetext")
    assert "plain 5 % 0.240, median 0.960, 95 % 1.50" in said  # the last of 25 elements
