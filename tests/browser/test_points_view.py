"""Point clouds in a real browser: the cloud turns with the orbit, and can be walked around."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reader import eventually

import orbical as ob
from orbical.actions import Points, Trivial
from orbical.datasets import furniture, padded
from orbical.figures.pictures import look_from
from orbical.interface.reports import report
from orbical.zoo import pointnet

SAMPLE = 5


@pytest.fixture(scope="module")
def models():
    return {name: pointnet.load(name) for name in ("plain", "augmented")}


@pytest.fixture(scope="module")
def clouds():
    return furniture(each=2, points=128)


def scanned(models, data, labels, group, task, folder):
    return ob.scan(
        models,
        (data, labels),
        group=group,
        task=task,
        out=folder / "points.zarr",
        keep=("probabilities", "inputs"),
        progress=False,
    )


@pytest.fixture(scope="module")
def cloud_scan(models, clouds, tmp_path_factory):
    task = ob.tasks.Classification(input=Points())
    folder = tmp_path_factory.mktemp("points")
    return scanned(models, clouds.points, clouds.labels, "slices3d:8:5", task, folder)


@pytest.fixture(scope="module")
def server(serve, cloud_scan, clouds):
    return serve({"points": cloud_scan}, classes=[*clouds.classes])


def picture(tab):
    """The cloud as drawn: opacities, row by row."""
    size, data = tab.evaluate(
        "() => { const c = document.querySelector('.section.input canvas.cloud');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return [c.width, Array.from(d.filter((_, i) => i % 4 === 3))]; }"
    )
    return np.reshape(data, (-1, size))


def shows(tab, points):
    """Whether each point of a cloud is drawn where a viewer at the front right sees it."""
    drawn = picture(tab)
    radius = np.linalg.norm(points, axis=1).max()
    across, up, _ = look_from(30, 20) @ points.T * len(drawn) / 2 / 1.12 / radius
    columns, rows = (len(drawn) / 2 + across).astype(int), (len(drawn) / 2 - up).astype(int)
    return float((drawn[rows, columns] > 0).mean())


def said(tab):
    return tab.locator(".section.input canvas.cloud").get_attribute("aria-label")


def element_of(scan, tab):
    """Find the element that the page's address names; it leaves the identity out."""
    named = re.search(r"element=(\d+)", tab.evaluate("location.hash"))
    return int(named[1]) if named else scan.group.identity


def bars(tab):
    return tab.locator(".section.detail .bars").get_attribute("aria-label")


def follows_the_orbit(tab, scan, clouds):
    """Move along the orbit by keys, and read the changed answer and the turned cloud."""
    identity = scan.group.identity
    assert element_of(scan, tab) == identity
    cloud, answer, words = clouds.points[SAMPLE].numpy(), bars(tab), said(tab)
    assert words.startswith("128 points at ")
    assert shows(tab, cloud) > 0.97
    truth = clouds.classes[int(clouds.labels[SAMPLE])]
    assert answer.endswith(f"true class {truth}")
    tab.locator(".individual [role=slider]").first.focus()
    for _ in range(2):  # outwards: half of the angles
        tab.keyboard.press("ArrowUp")
    element = element_of(scan, tab)
    assert element != identity
    stored = scan.data["probabilities"].values[:, SAMPLE, element]
    expected = [
        f"{model}: {clouds.classes[row.argmax()]} at {row.max():.2f}"
        for model, row in zip(scan.models, stored, strict=True)
    ]
    eventually(tab, lambda: all(text in bars(tab) for text in expected))
    turned = cloud @ scan.group.parts["space"][element, :3, :3].T
    eventually(tab, lambda: shows(tab, turned) > 0.97 > 0.8 > shows(tab, cloud))
    assert said(tab) != words
    assert bars(tab) != answer


def test_answer_and_cloud_follow_the_orbit(opened, serve, cloud_scan, models, clouds):
    server = serve({"points": cloud_scan}, models=models, classes=[*clouds.classes])
    follows_the_orbit(opened(f"{server.url}#sample={SAMPLE}"), cloud_scan, clouds)


def test_a_report_shows_the_same_without_python(opened, cloud_scan, clouds, tmp_path):
    path = tmp_path / "points.html"
    report(cloud_scan, path, classes=[*clouds.classes])
    tab = opened(f"{path.as_uri()}#sample={SAMPLE}", offline=True)
    follows_the_orbit(tab, cloud_scan, clouds)


def test_dragging_and_keys_walk_around_and_change_no_answer(opened, server):
    tab = opened(f"{server.url}#sample={SAMPLE}")
    home, answer = picture(tab), bars(tab)
    box = tab.locator("canvas.cloud").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(*middle)
    tab.mouse.down()
    tab.mouse.move(middle[0] + 60, middle[1] + 20, steps=4)
    tab.mouse.up()
    dragged = picture(tab)
    assert (dragged != home).mean() > 0.005
    tab.keyboard.press("Home")
    np.testing.assert_array_equal(picture(tab), home)
    tab.keyboard.press("ArrowLeft")
    assert (picture(tab) != home).any()
    tab.get_by_role("button", name="Front").click()
    np.testing.assert_array_equal(picture(tab), home)
    assert bars(tab) == answer
    assert "element=" not in tab.evaluate("location.hash")


def test_a_sample_chosen_in_the_embedding_is_shown(chosen, server, cloud_scan, clouds):
    tab, sample = chosen(server.url, shown=4, wanted=1)
    stored = cloud_scan.data["probabilities"].values[:, sample, cloud_scan.group.identity]
    answers = [f"{clouds.classes[row.argmax()]} at {row.max():.2f}" for row in stored]
    truth = clouds.classes[int(clouds.labels[sample])]
    tab.wait_for_function(
        "([answers, truth]) => { const said = document.querySelector('.section.detail .bars')"
        ".getAttribute('aria-label'); return answers.every((one) => said.includes(one))"
        " && said.endsWith(truth); }",
        arg=[answers, f"true class {truth}"],
    )
    eventually(tab, lambda: shows(tab, clouds.points[sample].numpy()) > 0.97)


def test_padded_clouds_show_their_own_points_only(opened, serve, models, clouds, tmp_path_factory):
    uneven = padded([cloud[: 40 + 5 * row] for row, cloud in enumerate(clouds.points)])
    task = ob.tasks.Classification(input={"pos": Points(), "mask": Trivial()})
    folder = tmp_path_factory.mktemp("padded")
    scan = scanned(models, uneven, clouds.labels, "rotations3d:24", task, folder)
    tab = opened(f"{serve({'padded': scan}).url}#sample=3")
    assert said(tab).startswith("55 points at ")
