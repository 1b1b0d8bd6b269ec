"""The report in a real browser, opened from a folder without any server or network.

The same interactions as on the server; what the page shows is compared with the scan.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from reader import circled, expect, values

import orbical as ob
from orbical.interface.reports import report


@pytest.fixture(scope="module")
def written(digit_scan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return report(digit_scan, folder / "digits.html", methods=("pca", "ica"))


@pytest.fixture
def opened(paged, written):
    """Open reports, which ask for nothing but themselves."""

    def start(fragment="", path=written):
        home = path.parent.as_uri() if path.name == "index.html" else path.as_uri()
        return paged(path.as_uri(), fragment, home, offline=True)

    return start


def test_a_report_asks_for_nothing_but_itself(opened, written):
    page = opened()
    pages = [url for url in page.asked if not url.startswith(("data:", "blob:", "about:"))]
    assert [url.partition("#")[0] for url in pages] == [written.as_uri()]
    assert page.tab.locator(".overview h2").inner_text() == "All 120 images"
    assert "rotations:72" in page.tab.locator("footer").inner_text()


def test_the_heading_says_that_the_scan_is_unfinished(opened, small_scan, tmp_path, monkeypatch):
    monkeypatch.setattr(ob.Scan, "done", np.array([[True, False]]))
    with pytest.warns(UserWarning, match="50% done"):
        page = report(small_scan, tmp_path / "half.html", methods=("pca",))
    heading = opened(path=page).tab.locator(".overview .hint").inner_text()
    assert heading.startswith("The scan is 50% done; the numbers are those of the finished samples")


def test_dragging_moves_the_input_and_shows_what_was_scanned(opened, digit_scan):
    page = opened("sample=2")
    page.drag_to(90)
    page.until("() => location.hash.includes('element=18')")
    score = values(digit_scan, "score", 2)
    page.shows(".answers td", f"{score['plain'][18]:.3f}")
    group = ob.groups.rotations(72)
    still = digit_scan.data["input"].values[2:3]
    import torch

    moved = ob.actions.Images().apply(group[[18]], torch.from_numpy(still))[0, 0, 0].numpy()
    page.eventually(lambda: np.allclose(page.pixels(), moved.clip(0, 1), atol=0.01, rtol=0))
    known = {name: held[18] for name, held in values(digit_scan, "probabilities", 2).items()}
    page.says(known, atol=0.5 / 255 + 6e-4)


def test_dragging_along_the_aggregate_moves_everything(opened, digit_scan):
    page = opened("sample=2")
    before = page.pixels()
    page.drag_to(135, "aggregate")
    page.until("() => location.hash.includes('element=27')")
    mean = digit_scan.data["score"].mean("sample").values[:, 27]
    page.eventually(lambda: page.legend() == pytest.approx(mean, abs=6e-4))
    page.eventually(lambda: np.abs(page.pixels() - before).max() > 0.5)


def test_a_click_in_the_embedding_selects_the_sample_there(opened, digit_scan):
    page = opened("sample=5")
    ring = page.tab.locator(".scatter svg circle:not([visibility=hidden])").last.bounding_box()
    page.open("sample=6")
    page.tab.mouse.click(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
    page.until("() => !location.hash.startsWith('#sample=6')")
    sample = int(re.search(r"sample=(\d+)", page.fragment())[1])
    page.shows(".one h2", f"Image {sample}")
    page.shows(".answers td", f"{values(digit_scan, 'score', sample)['plain'][0]:.3f}")


def test_a_lasso_is_computed_in_the_page(opened, digit_scan):
    from orbical.interface.session import Session

    page = opened("sample=2&element=20")
    _, arrays = Session({"digits": digit_scan}).handle({"kind": "embedding", "selection": {}})
    places = page.on_screen(arrays["xy"])
    surely, perhaps = circled(page.lasso(), places)
    assert surely <= page.members() <= perhaps
    inside = np.isin(np.arange(120), [*page.members()])
    assert 0 < inside.sum() < 120
    mean = digit_scan.data["score"].values[:, inside, 20].mean(1)
    page.shows(".aggregate .legend b", f"{mean[0]:.3f}")
    page.tab.get_by_label("Metric").select_option("ece")
    for section in ("aggregate", "calibration"):
        said = page.tab.locator(f".section.{section} .message")
        expect(said).to_contain_text("not of this subset; open the scan with orbical view")


def test_a_registered_measure_is_shown_as_python_computed_it(opened, digit_scan, tmp_path):
    def bias(confidence, correct):
        return (confidence - correct.double()).mean(-1).abs()

    measure = ob.calibration.Measure("bias", bias, title="bias", meaning="mean error of confidence")
    ob.calibration.register(measure)
    try:
        written = report(digit_scan, tmp_path / "mine.html", methods=("pca",))
    finally:
        del ob.calibration.MEASURES["bias"]
    page = opened("sample=2&element=20", path=written)
    page.tab.get_by_label("Metric").select_option("bias")
    for clause, inside in (("", slice(None)), ("&filter=label:4", digit_scan.data["label"] == 4)):
        page.open(f"sample=2&element=20&metric=bias{clause}")
        here = digit_scan.data.sel(model="plain").isel(element=20, sample=inside)
        expected = abs(float((here["confidence"] - here["correct"].astype(float)).mean()))
        page.shows(".aggregate .legend b", f"{expected:.3f}")


def test_another_metric_model_and_reference(opened, digit_scan):
    page = opened("sample=2&element=36")
    page.tab.get_by_label("Metric").select_option("ece")
    along = ob.calibration.along_orbit(digit_scan, "ece").sel(model="plain").values[36]
    page.shows(".aggregate .legend b", f"{float(along):.3f}")
    page.tab.get_by_label("Metric").select_option("score")
    page.tab.get_by_role("radio", name="consensus").check(force=True)
    against = values(digit_scan, "score_vs_consensus", 2)["plain"][36]
    page.shows(".answers td", f"{against:.3f}")
    models = page.tab.get_by_role("group", name="Models")
    models.get_by_role("button", name="plain").click()
    page.until("() => document.querySelectorAll('.answers tbody tr').length === 1")
    page.until("() => document.querySelectorAll('.aggregate .legend b').length === 1")


def test_classes_have_the_means_of_the_scan(opened, digit_scan):
    page = opened("sample=2&element=36&filter=label:6")
    chosen = digit_scan.data["label"].values == 6
    mean = digit_scan.data["score"].values[:, chosen, 36].mean(1)
    page.shows(".aggregate .legend b", f"{mean[0]:.3f}")


def test_the_keyboard_alone_is_enough(opened):
    page = opened("sample=2")
    press = page.tab.keyboard.press
    page.tab.locator(".individual .orbit-plot").focus()
    for _ in range(5):
        press("ArrowRight")
    page.until("() => location.hash.includes('element=5')")
    press("m")
    page.until("() => location.hash.includes('metric=')")
    press("]")
    page.until("() => !location.hash.startsWith('#sample=2&')")
    press("?")
    expect(page.tab.get_by_role("dialog")).to_be_visible()
    press("Escape")


def test_a_link_restores_the_view(opened):
    fragment = "sample=7&element=12&models=plain&metric=confidence&filter=label:6&method=ica"
    page = opened(fragment)
    page.at(fragment)
    page.shows(".one h2", "Image 7")


def test_hovering_shows_the_sample(opened):
    page = opened("sample=2")
    page.hover_over_the_map()
    expect(page.tab.locator(".hovercard canvas").first).to_be_visible()


def test_tables_can_be_saved(opened, digit_scan, tmp_path):
    page = opened("sample=2&filter=label:3")
    page.tab.get_by_role("button", name="Export").click()
    expect(page.tab.get_by_role("button", name="Table as Parquet")).not_to_be_visible()
    with page.tab.expect_download() as started:
        page.tab.get_by_role("button", name="Subset as indices", exact=True).click()
    started.value.save_as(tmp_path / "indices")
    numbers = [int(line) for line in (tmp_path / "indices").read_text().split()]
    assert numbers == np.flatnonzero(digit_scan.data["label"].values == 3).tolist()


def test_dark_follows_the_system(opened):
    page = opened("sample=2")
    paper = "() => getComputedStyle(document.querySelector('.orbical')).backgroundColor"
    assert page.tab.evaluate(paper) == "rgb(243, 244, 246)"
    page.scheme("dark")
    assert page.tab.evaluate(paper) == "rgb(16, 19, 23)"


def test_axe_finds_no_violations(opened, axe):
    page = opened("sample=2&element=30")
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        assert page.violations(axe) == [], scheme


@pytest.fixture(scope="module")
def small_scan(networks):
    """A scan whose report is written in a moment."""
    images, labels = ob.datasets.mnist(split="test")
    return ob.scan(
        networks,
        (images[:60], labels[:60]),
        group="rotations:8",
        task="classification",
        keep=("probabilities", "inputs"),
        progress=False,
    )


def test_a_report_of_some_samples_says_so_and_keeps_their_numbers(opened, small_scan, tmp_path):
    path = report(small_scan, tmp_path / "some.html", samples=30, methods=("pca",))
    page = opened("sample=4&element=5", path=path)
    mean = small_scan.data["score"].mean("sample").values[:, 5]
    page.shows(".aggregate .legend b", f"{mean[0]:.3f}")  # of all samples of the scan
    assert "30 of 60 samples" in page.tab.locator("footer").inner_text()


def test_a_folder_opens_without_a_server(opened, small_scan, tmp_path, monkeypatch):
    monkeypatch.setattr("orbical.interface.reports.writing.MOST_BYTES", 1000)
    path = report(small_scan, tmp_path / "large.html", methods=("pca",))
    assert path.name == "index.html"
    page = opened("sample=2&element=3", path=path)
    page.shows(".answers td", f"{values(small_scan, 'score', 2)['plain'][3]:.3f}")
    assert any(url.endswith("parts/state.js") for url in page.asked)
