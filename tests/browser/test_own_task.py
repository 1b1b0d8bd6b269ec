"""A task of one's own in a real browser: its picture where Python runs, its numbers in a report."""

from __future__ import annotations

import pytest

import orbical as ob
from orbical.interface.reports import report

SHOWN = ("aggregate", "individual", "input", "detail")


@pytest.fixture(scope="module")
def own_scan(own_task, own_models, tmp_path_factory):
    return ob.scan(
        own_models,
        own_task.scenes(8, seed=1),
        group="flips",
        task=own_task.Segmentation(2),
        out=tmp_path_factory.mktemp("own") / "own.zarr",
        keep="inputs",
        progress=False,
    )


def test_a_picture_made_in_python_follows_the_orbit(opened, serve, own_task, own_models, own_scan):
    server = serve({"own": own_scan}, models=own_models, task=own_task.Segmentation(2))
    tab = opened(f"{server.url}#sample=3", SHOWN)
    picture = tab.locator(".section.detail img.picture")
    picture.wait_for()
    before = picture.get_attribute("alt")
    tab.wait_for_function("() => document.querySelector('img.picture').naturalWidth > 100")
    tab.locator(".individual [role=slider]").first.focus()
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function(
        "(b) => document.querySelector('img.picture').alt !== b && "
        "document.querySelector('img.picture').naturalWidth > 100",
        arg=before,
    )


def test_a_report_shows_the_numbers_instead(opened, own_scan, own_task, tmp_path):
    path = tmp_path / "own.html"
    report(own_scan, path, task=own_task.Segmentation(2))
    tab = opened(f"{path.as_uri()}#sample=3", SHOWN)
    table = tab.locator(".section.detail table.values")
    table.wait_for()
    assert "Share" in table.inner_text()
