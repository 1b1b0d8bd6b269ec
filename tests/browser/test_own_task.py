"""A task of one's own in a real browser: its picture where Python runs, its numbers in a report."""

from __future__ import annotations

import pytest

import orbical as ob
from orbical.interface.reports import report

pytestmark = pytest.mark.browser


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


@pytest.fixture
def tab(browser):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield page
    context.close()
    assert not troubles


def wait(tab):
    for name in ("aggregate", "individual", "input", "detail"):
        tab.wait_for_selector(f".section.{name}[data-state=ready]", timeout=60_000)


def test_the_picture_made_in_python_follows_the_orbit(tab, serve, own_task, own_models, own_scan):
    task = own_task.Segmentation(2)
    tab.goto(f"{serve({'own': own_scan}, models=own_models, task=task).url}#sample=3")
    wait(tab)
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


def test_a_report_shows_the_numbers_instead(tab, own_scan, own_task, tmp_path):
    path = tmp_path / "own.html"
    report(own_scan, path, task=own_task.Segmentation(2))
    tab.goto(f"{path.as_uri()}#sample=3")
    wait(tab)
    table = tab.locator(".section.detail table.values")
    table.wait_for()
    assert "share" in table.inner_text()
