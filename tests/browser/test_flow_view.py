"""Flow in a real browser: the pair blinks, the fields are drawn, and both follow the orbit."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from reader import drawn, expect

import orbical as ob
from orbical.datasets import particle_pairs
from orbical.interface.reports import report


def rightward(pairs):
    """Answer motion to the right, as fast as the first frame is bright: not equivariant."""
    flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
    flow[:, 0] = 3 * pairs[:, 0].mean(1)
    return flow


def still(pairs):
    """Answer no motion: equivariant, and wrong."""
    return torch.zeros(len(pairs), 2, *pairs.shape[-2:])


@pytest.fixture(scope="module")
def flow_scan(tmp_path_factory):
    made = particle_pairs(12, size=32, seed=1)
    return ob.scan(
        {"rightward": rightward, "still": still},
        (made["pair"], made["flow"]),
        group="dihedral:4*time_reversal",
        task=ob.tasks.Flow(),
        out=tmp_path_factory.mktemp("flow") / "flow.zarr",
        keep=("inputs",),
        progress=False,
    )


@pytest.fixture(scope="module")
def server(serve, flow_scan):
    return serve({"flow": flow_scan})


def errors_shown(tab):
    """The end-point errors that the answer's label reads out, by model."""
    words = tab.locator(".quivers").get_attribute("aria-label")
    return {name: float(value) for name, value in re.findall(r"(\w+): ([0-9.]+) px", words)}


def picture(tab, selector=".section.input canvas"):
    return tab.evaluate(
        "(s) => { const c = document.querySelector(s);"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return Array.from(d.filter((_, i) => i % 4 === 0)); }",
        selector,
    )


def follows_the_orbit(tab, scan):
    """Move along the orbit by keys, and read the changed answer and input."""
    score = scan.data["score"].values
    np.testing.assert_allclose(
        [*errors_shown(tab).values()], score[:, 3, 0], atol=6e-4, err_msg="at the identity"
    )
    tab.locator(".section.input .modes button", has_text="1").first.click()
    before = picture(tab)
    tab.locator(".individual [role=slider]").first.focus()
    tab.keyboard.press("ArrowRight")  # a quarter turn
    expected = score[0, 3, 2]
    tab.wait_for_function(
        "(v) => (document.querySelector('.quivers').getAttribute('aria-label') ?? '')"
        ".includes(`rightward: ${v} px`)",
        arg=f"{expected:.3f}",
    )
    assert errors_shown(tab)["still"] == pytest.approx(score[1, 3, 0], abs=6e-4)
    after = picture(tab)
    np.testing.assert_array_equal(
        np.reshape(after, (32, 32)), np.rot90(np.reshape(before, (32, 32)))
    )


def test_answer_and_input_follow_the_orbit(opened, serve, flow_scan):
    server = serve({"flow": flow_scan}, models={"rightward": rightward, "still": still})
    follows_the_orbit(opened(f"{server.url}#sample=3"), flow_scan)


def test_a_report_shows_the_same_without_python(opened, flow_scan, tmp_path):
    path = tmp_path / "flow.html"
    report(flow_scan, path)
    follows_the_orbit(opened(f"{path.as_uri()}#sample=3", offline=True), flow_scan)


def test_against_the_consensus_it_stands_in_the_place_of_the_truth(opened, server, flow_scan):
    tab = opened(f"{server.url}#sample=3&reference=consensus&element=2")
    expected = flow_scan.data["score_vs_consensus"].values[:, 3, 2]
    np.testing.assert_allclose([*errors_shown(tab).values()], expected, atol=6e-4)
    first = tab.locator(".quivers .tile-caption").first
    assert "consensus of rightward" in (first.text_content(), first.get_attribute("title"))
    tab.get_by_role("radio", name="truth").check(force=True)
    tab.wait_for_function(
        "() => document.querySelector('.quivers button').textContent.trim() === 'truth'"
    )


def test_a_sample_chosen_in_the_embedding_is_shown(chosen, server, flow_scan):
    tab, sample = chosen(server.url, shown=3, wanted=1)
    expected = flow_scan.data["score"].values[:, sample, flow_scan.group.identity]
    tab.wait_for_function(
        "(v) => (document.querySelector('.quivers').getAttribute('aria-label') ?? '')"
        ".includes(`rightward: ${v} px`)",
        arg=f"{expected[0]:.3f}",
    )
    np.testing.assert_allclose([*errors_shown(tab).values()], expected, atol=6e-4)
    tab.locator(".pair-modes button", has_text=re.compile("^1$")).click()
    first = flow_scan.data["input"].values[sample, 0, 0]
    drawn = np.reshape(picture(tab), first.shape)
    assert np.corrcoef(drawn.ravel(), first.ravel())[0, 1] > 0.999


BLINK_MS, LATER_MS = 500, 1_000_000


@pytest.fixture
def timed(opened, server):
    """Open a page whose clock stands still, in a tab of its own."""

    def start(motion):
        address = f"{server.url}#sample=3"
        opened(address, reduced_motion=motion).clock.install(time=0)
        tab = opened(address, reduced_motion=motion)
        tab.clock.pause_at(LATER_MS)
        return tab

    return start


def test_the_pair_blinks_until_it_is_paused(timed):
    tab = timed("no-preference")
    modes = tab.locator(".pair-modes button")
    seen = []
    for _ in range(3):
        seen.append(picture(tab))
        tab.clock.run_for(BLINK_MS)
    assert seen[0] == seen[2] != seen[1]
    modes.filter(has_text=re.compile("^2$")).click()
    kept = picture(tab)
    tab.clock.run_for(BLINK_MS)
    assert picture(tab) == kept


def test_less_motion_starts_with_both_frames_in_one_picture(timed):
    tab = timed("reduce")
    kept = picture(tab)
    tab.clock.run_for(BLINK_MS)
    assert picture(tab) == kept
    assert "orange" in tab.locator(".section.input canvas").get_attribute("aria-label")


def test_a_field_is_shown_alone_and_all_again(opened, server):
    tab = opened(f"{server.url}#sample=3")
    fields = tab.locator(".quivers button")
    expect(fields).to_have_count(3)  # the truth and two models
    small = fields.nth(1).bounding_box()["width"]
    fields.nth(1).click()
    expect(fields).to_have_count(1)
    assert fields.first.bounding_box()["width"] > 1.5 * small
    fields.first.click()
    expect(fields).to_have_count(3)


WHOLE = """() => { const { scrollHeight, clientHeight, scrollWidth, clientWidth } =
    document.querySelector(".quivers");
    return scrollHeight <= clientHeight && scrollWidth <= clientWidth; }"""


def test_fields_are_whole_at_every_size(opened, server):
    tab = opened(server.url, ("aggregate", "individual", "detail"))
    for size in (2560, 1440), (1440, 900), (1200, 1000):
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        drawn(tab)
        tab.wait_for_function(WHOLE)
    small = tab.locator(".quivers button").first.bounding_box()["width"]
    tab.locator(".detail .enlarge").click()
    wide = "small => document.querySelector('.quivers button').clientWidth > 2 * small"
    tab.wait_for_function(wide, arg=small)
    tab.wait_for_function(WHOLE)


def test_a_model_that_diverges_leaves_the_colors_of_the_others_apart(opened, serve):
    made = particle_pairs(4, size=16, seed=1)
    models = {"rightward": rightward, "diverging": lambda pairs: 1e9 * rightward(pairs)}
    scan = ob.scan(
        models, (made["pair"], made["flow"]), group="dihedral:4", task="flow", progress=False
    )
    tab = opened(serve({"flow": scan}).url, ("aggregate",))
    colors = tab.locator(".aggregate .orbit-plot").evaluate(
        """plot => { const canvas = plot.querySelector("canvas");
        const box = canvas.getBoundingClientRect();
        const pen = canvas.getContext("2d"), scale = canvas.width / box.width;
        return [...plot.querySelectorAll("g > title")].slice(0, 8).map(({ parentNode }) => {
            const at = parentNode.getBoundingClientRect();
            const corner = [(at.left - box.left) * scale - 4, (at.top - box.top) * scale];
            return pen.getImageData(...corner, 1, 1).data.join(); }); }"""
    )
    assert len(set(colors)) > 2  # not all alike
