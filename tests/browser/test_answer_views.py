"""Views of signals, of several labels and of texts, drawn in a real page."""

from __future__ import annotations

VIEW = """
const { createView } = await import(`/views/${given.file}.js`);
const el = document.getElementById("a");
el.replaceChildren();
const view = createView(el, given.state ?? {});
const field = ({ data, shape }) => ({ data: Float32Array.from(data, (x) => x ?? NaN), shape });
const fields = (named) =>
  Object.fromEntries(Object.entries(named ?? {}).map(([k, v]) => [k, field(v)]));
view.set({
  fields: fields(given.fields), truths: fields(given.truths), consensus: fields(given.consensus),
  models: ["first", "second"], colors: ["#0072b2", "#d55e00"],
  place: { sample: 0, element: 0, position: [], name: "shift 2", live: false },
});
const all = (wanted) => [...el.querySelectorAll(wanted)];
const found = given.find.map((one) => all(one).map((node) => node.textContent));
const label = el.querySelector("[aria-label]")?.getAttribute("aria-label") ?? "";
const lines = all("path").map((path) => path.getAttribute("d").split("L").length);
view.destroy();
return { found, label, lines };
"""


def codes(*texts):
    rows = [[*map(ord, text), *[-1] * (6 - len(text))] for text in texts]
    return {"data": [code for row in rows for code in row], "shape": [len(texts), 6]}


def test_a_signal_is_a_line_for_each_channel(make):
    values = {"data": [0, 1, 2, 1, 0, -1, -2, -1], "shape": [2, 4]}
    drawn = make(VIEW, {"file": "signal", "fields": {"values": values}, "find": ["text"]})
    assert drawn["lines"] == [4, 4]
    assert drawn["found"] == [["2", "\N{MINUS SIGN}2", "4 samples"]]
    assert drawn["label"] == "signal at shift 2, from \N{MINUS SIGN}2 to 2"


def test_every_true_label_is_marked(make):
    given = {
        "file": "bars",
        "state": {
            "classes": [],
            "task": {"name": "multilabel", "classes": ["bar", "ring", "dust"], "threshold": 0.5},
        },
        "fields": {"probabilities": {"data": [0.9, 0.2, 0.7, 0.1, 0.6, 0.2], "shape": [2, 3]}},
        "truths": {"moved": {"data": [1, None, 1], "shape": [1, 3]}},
        "find": [".is-true .bar-name"],
    }
    drawn = make(VIEW, given)
    assert drawn["found"] == [["bar", "dust"]]
    assert drawn["label"] == "first: bar, dust; second: ring; true labels: bar, dust"


def test_wrong_characters_and_another_consensus_are_shown(make):
    given = {
        "file": "text",
        "fields": {
            "text": codes("2302", "23812"),
            "confidence": {"data": [0.94, 0.95], "shape": [2]},
        },
        "truths": {"moved": codes("23812")},
        "consensus": {"moved": codes("23812", "23812")},
        "find": ["dt", ".wrong", ".usual"],
    }
    drawn = make(VIEW, given)
    assert drawn["found"] == [["truth", "first", "", "second"], ["0"], ["consensus 23812"]]
