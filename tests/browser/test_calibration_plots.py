"""Plots of calibration and of bounds in a real browser: what they write and read."""

from __future__ import annotations

CHART = """
const module = await import(`/plots/${given.file}.js`);
const plot = window.plot = module[given.make](document.querySelector("#a"));
const models = [{ name: "plain", color: "#0072B2" }, { name: "augmented", color: "#D55E00" }];
plot.set({ ...given.data, models: given.data.models ?? models });
await new Promise(requestAnimationFrame);
"""

RELIABILITY = {
    "edges": [0, 0.5, 1],
    "count": [10, 30, 0, 40],
    "confidence": [0.4, 0.8, None, 0.9],
    "accuracy": [0.2, 0.6, None, 0.9],
}


def test_a_reliability_diagram_reads_its_bins(tab, make):
    make(CHART, {"file": "reliability", "make": "createReliability", "data": RELIABILITY})
    assert "plain, augmented" in tab.locator(".reliability").get_attribute("aria-label")
    tab.mouse.move(120, 200)
    read = tab.locator(".plot-tooltip").inner_text()
    assert "confidence 0.00 to 0.50" in read
    assert "0.200 at 0.400" in read
    assert "no samples" in read
    make("plot.set({ accuracy: [NaN, NaN, NaN, NaN] })")
    assert "no data" in tab.locator(".reliability").text_content()


def test_a_cumulative_plot_names_the_largest_gap(tab, make):
    curves = {
        "x": [0, 0.5, 1],
        "confidence": [0, 0.45, 0.9, 0, 0.3, 0.7],
        "accuracy": [0, 0.2, 0.5, 0, 0.3, 0.8],
    }
    make(CHART, {"file": "cumulative", "make": "createCumulative", "data": curves})
    words = tab.locator(".cumulative").get_attribute("aria-label")
    assert "plain KS 0.400, confidence above accuracy" in words
    assert "augmented KS 0.100, accuracy above confidence" in words


def test_bounds_show_the_ceiling_and_the_interval_of_each_model(tab, make):
    from orbical.bounds import OrbitTable, classification

    table = OrbitTable([[0.3, 0.2], [0.5, 0.0]], confidence=[0.9, 0.7], predicted=[0, 0])
    found = classification(table)
    models = [{"name": "plain", "color": "#0072B2", **found.to_dict()}]
    make(CHART, {"file": "bounds", "make": "createBounds", "data": {"models": models}})
    words = tab.locator(".bounds").text_content()
    assert "accuracy ceiling 0.800" in words
    assert f"plain {float(found['ece']):.3f}" in words
    spoken = tab.get_by_role("img").get_attribute("aria-label")
    low, high = float(found["forced_ece"]), float(found["sharp_upper"])
    assert f"between {low:.3f} and {high:.3f}" in spoken


CONFUSION = """
const { createConfusionFace } = await import("/sections/calibration_confusion.js");
const el = document.createElement("div");
const size = given.length;
let hear = null;
const app = { state: { classes: given, samples: 9 }, noun: "images", group: { names: ["0°"] },
    shown: () => [{ name: "net", color: "#000000" }], on: (_, listener) => (hear = listener) };
createConfusionFace(el, app, { state() {}, note() {} });
hear({ available: true, count: 9, element: 0, models: ["net"], classes: size,
    arrays: { counts: { data: new Int32Array(size * size).fill(1) } } });
return [...el.querySelectorAll("th")].map((one) => one.textContent);"""


def test_the_names_of_few_classes_are_whole_beside_a_confusion_matrix(make):
    names = ["normal", "hyperplasia"]
    assert make(CONFUSION, names) == [*names, *names]
    many = make(CONFUSION, [f"{name} {k}" for k in range(3) for name in names])
    assert max(map(len, many[:6])) <= 5
