"""Detection in a real browser: the view moves in the larger image, boxes and table follow."""

from __future__ import annotations

import numpy as np
import pytest
from reader import expect

import orbical as ob
from orbical.interface.reports import report
from orbical.zoo import detector

STEP = 16


@pytest.fixture(scope="module")
def detectors():
    return {name: detector.load(name) for name in detector.NAMES}


@pytest.fixture(scope="module")
def scenes():
    return ob.datasets.scenes(6, seed=2026)


@pytest.fixture(scope="module")
def detection_scan(detectors, scenes, tmp_path_factory):
    return ob.scan(
        detectors,
        (scenes["images"], scenes["objects"]),
        group=f"translations:32:{STEP}",
        task=ob.tasks.Detection(classes=scenes["classes"]),
        out=tmp_path_factory.mktemp("detection") / "detection.zarr",
        keep="inputs",
        progress=False,
    )


@pytest.fixture(scope="module")
def server(serve, detection_scan):
    return serve({"detection": detection_scan})


def rows_shown(tab):
    """The first detection of each model in the table: class, confidence, IoU, right or wrong."""
    found, name = {}, None
    for row in tab.locator(".boxes-list tbody tr").all():
        head = row.locator("th")
        if head.count():
            name = head.inner_text()
            found[name] = row.locator("td").all_inner_texts()
    return found


def rows_stored(scan, scenes, sample, element):
    """The same from the scan."""
    data, found = scan.data, {}
    for model in scan.models:
        one = data.sel(model=model).isel(sample=sample, element=element)
        label, confidence = int(one["box_label"][0]), float(one["box_score"][0])
        right = float(one["box_correct"][0])
        mark = "" if np.isnan(right) else "✓" if right else "✗"
        found[model] = [scenes["classes"][label], f"{confidence:.2f}", mark]
    return found


def outlines(tab, kind):
    """Boxes of one kind in pixels of the larger image: left, top, width, height."""
    names = ("x", "y", "width", "height")
    return [
        [float(rect.get_attribute(name)) for name in names]
        for rect in tab.locator(f".boxes-picture rect.{kind}").all()
    ]


def compare(tab, scan, scenes, sample, element):
    shown, stored = rows_shown(tab), rows_stored(scan, scenes, sample, element)
    for model, (label, confidence, mark) in stored.items():
        assert [shown[model][0], shown[model][1], shown[model][3]] == [label, confidence, mark]
    # The true key object does not move in the larger image, whatever the view does.
    left, top, right, bottom = (float(v) + 32 for v in scenes["objects"][sample, 0, :4])
    expected = [left, top, right - left, bottom - top]
    np.testing.assert_allclose(outlines(tab, "truth")[0], expected, atol=1e-2)
    dx, dy = (float(scan.group.coords[name][element]) for name in ("dx", "dy"))
    np.testing.assert_allclose(outlines(tab, "fov")[0], [32 - dx, 32 + dy, 128, 128], atol=1e-6)


def follows_the_orbit(tab, scan, scenes, sample):
    """Move along the orbit by keys, and read the changed answer, boxes and input."""
    element = scan.group.identity
    compare(tab, scan, scenes, sample, element)
    before = pixels(tab)
    tab.locator(".individual [role=slider]").first.focus()
    tab.keyboard.press("ArrowRight")
    right = element + 1  # the shifts of a row follow each other
    tab.wait_for_function(
        "(x) => Number(document.querySelector('.boxes-picture rect.fov')?.getAttribute('x')) === x",
        arg=32 - STEP,
    )
    compare(tab, scan, scenes, sample, right)
    after = pixels(tab)
    np.testing.assert_array_equal(after[:, STEP:], before[:, :-STEP])


def pixels(tab):
    data = tab.evaluate(
        "() => { const c = document.querySelector('.section.input canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return [c.height, c.width, Array.from(d.filter((_, i) => i % 4 === 0))]; }"
    )
    return np.reshape(data[2], data[:2])


def test_answer_boxes_and_input_follow_the_orbit(opened, serve, detection_scan, detectors, scenes):
    server = serve({"detection": detection_scan}, models=detectors)
    tab = opened(f"{server.url}#sample=2")
    follows_the_orbit(tab, detection_scan, scenes, 2)
    assert "live" in tab.locator("body").inner_text()


def test_a_report_shows_the_same_without_python(opened, detection_scan, scenes, tmp_path):
    path = tmp_path / "detection.html"
    report(detection_scan, path)
    tab = opened(f"{path.as_uri()}#sample=2", offline=True)
    follows_the_orbit(tab, detection_scan, scenes, 2)


def test_a_sample_chosen_in_the_embedding_is_shown(chosen, server, detection_scan, scenes):
    tab, sample = chosen(server.url, shown=4, wanted=1)
    left = float(scenes["objects"][sample, 0, 0]) + 32
    tab.wait_for_function(
        "(x) => Math.abs(Number(document.querySelector('.boxes-picture rect.truth')"
        ".getAttribute('x')) - x) < 0.01",
        arg=left,
    )
    compare(tab, detection_scan, scenes, sample, detection_scan.group.identity)


def test_the_input_shows_the_view_or_where_it_lies(opened, server):
    tab = opened(f"{server.url}#sample=2")
    assert pixels(tab).shape == (128, 128)
    tab.get_by_role("button", name="Show the view within the full image").click()
    tab.wait_for_function("document.querySelector('.section.input canvas').width === 192")
    assert pixels(tab).shape == (192, 192)
    expect(tab.locator(".section.input svg rect")).to_have_count(1)


def test_metrics_have_their_names_and_the_answer_is_enlarged_and_zoomed(opened, server):
    tab = opened(f"{server.url}#sample=1&stage=detail")
    metrics = tab.get_by_label("Metric").locator("option").all_text_contents()
    assert metrics[:5] == [
        "IoU x confidence of the key object's match",
        "Accuracy",
        "AP",
        "F1",
        "IoU",
    ]
    box = tab.locator(".section.detail .look > *").bounding_box()
    assert box["width"] > 500
    tab.keyboard.press("+")
    expect(tab.locator(".detail .zoom-tools")).to_contain_text("150 %")
    wide = "wanted => document.querySelector('.section.detail .look > *').clientWidth > wanted"
    tab.wait_for_function(wide, arg=1.4 * box["width"])


def test_the_consensus_can_stand_for_the_truth(opened, server, detection_scan):
    tab = opened(f"{server.url}#sample=2")
    agreed = detection_scan.data["consensus"].values[:, 2, 0]
    shown = outlines(tab, "consensus")
    for row, box in zip(agreed[~np.isnan(agreed[:, 0])], shown, strict=True):
        expected = [row[0] + 32, row[1] + 32, row[2] - row[0], row[3] - row[1]]
        np.testing.assert_allclose(box, expected, atol=1e-2)
    score = detection_scan.data["score_vs_consensus"].values[0, 2, detection_scan.group.identity]
    tab.goto("about:blank")
    tab.goto(f"{server.url}#sample=2&reference=consensus")
    tab.wait_for_function(
        "(v) => document.querySelector('.answers td')?.textContent.trim() === v",
        arg=f"{score:.3f}",
    )
    tab.wait_for_selector(".boxes-list tbody th")
    iou = rows_shown(tab)["centered"][2]  # of the first box with the consensus box
    tab.get_by_role("radio", name="truth").check(force=True)
    tab.wait_for_function(
        "(v) => document.querySelector('.boxes-list td:nth-child(4)').textContent !== v",
        arg=iou,
    )
