"""Maps and key points in a real browser: truth and answers follow the orbit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reader import expect

import orbical as ob
from orbical.interface.reports import report


def of_rows(images):
    """Answer class 1 where a pixel is bright, or in the upper half: not equivariant."""
    bright = 8 * (images[:, :1] - 0.5)
    bright[:, :, : images.shape[-2] // 2] += 2
    return torch.cat([-bright, bright], 1)


@pytest.fixture(scope="module")
def map_scan(tmp_path_factory):
    random = torch.Generator().manual_seed(0)
    images = torch.rand(8, 1, 16, 16, generator=random)
    return ob.scan(
        {"rows": of_rows},
        (images, (images[:, 0] > 0.5).long()),
        group="dihedral:4",
        task=ob.tasks.Segmentation(classes=["dark", "bright"]),
        out=tmp_path_factory.mktemp("maps") / "maps.zarr",
        keep="inputs",
        progress=False,
    )


def share_of(tab, number, color):
    """The share of pixels of a map that have one color."""
    return tab.evaluate(
        "([n, c]) => { const m = document.querySelectorAll('.maps canvas')[n];"
        " const d = m.getContext('2d').getImageData(0, 0, m.width, m.height).data;"
        " let k = 0; for (let i = 0; i < d.length; i += 4)"
        " k += d[i] === c[0] && d[i + 1] === c[1] && d[i + 2] === c[2];"
        " return k / (d.length / 4); }",
        [number, color],
    )


def follows_the_orbit(tab, scan):
    tab.wait_for_function(
        "(v) => (document.querySelector('.maps').getAttribute('aria-label') ?? '').includes(v)",
        arg=f"pixel accuracy {float(scan.data['score'][0, 3, 2]):.3f}",
    )
    names = tab.locator(".maps button").all_text_contents()
    assert names == ["truth", "rows", "error", "entropy"]
    bright = [0xCC, 0x66, 0x77]  # the second class
    truth = scan.data["truth_map"].values[0, 3, 2]
    assert share_of(tab, 0, bright) == pytest.approx(np.mean(truth == 1), abs=1e-6)
    answer = scan.data["class_map"].values[0, 3, 2]
    assert share_of(tab, 1, bright) == pytest.approx(np.mean(answer == 1), abs=1e-6)
    assert share_of(tab, 2, [0x44, 0x01, 0x54]) == pytest.approx(np.mean(answer != truth), abs=1e-6)
    words = tab.locator(".section.detail").text_content()
    for meaning in ("bright", "agrees, certain", "differs, uncertain"):
        assert meaning in words


def test_the_maps_follow_the_orbit_live(opened, serve, map_scan):
    server = serve({"maps": map_scan}, models={"rows": of_rows})
    follows_the_orbit(opened(f"{server.url}#sample=3&element=2"), map_scan)


def test_classes_are_switched_and_maps_lie_over_the_image(opened, serve, map_scan):
    tab = opened(f"{serve({'maps': map_scan}).url}#sample=3&element=2")
    bright, gray = [0xCC, 0x66, 0x77], [0xE3, 0xE3, 0xE3]
    share = share_of(tab, 1, bright)
    assert share > 0
    switch = tab.locator(".class-switch", has_text="bright")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert share_of(tab, 1, bright) == 0
    assert share_of(tab, 1, gray) == pytest.approx(share, abs=1e-6)
    expect(switch).to_be_focused()
    slide = "e => { e.value = 0.5; e.dispatchEvent(new Event('input')) }"
    tab.locator(".overlay input").evaluate(slide)
    assert share_of(tab, 1, gray) < share / 4  # the image is seen where nothing is drawn
    switch.click()
    expect(tab.locator(".section.calibration .note")).to_have_text("2,048 pixels")
    tab.locator(".calibration .switch label", has_text="regions").click()
    expect(tab.locator(".section.calibration .note")).to_have_text("16 regions")
    expect(tab.locator(".calibration .switch label", has_text="confusion")).to_have_count(0)


def test_a_report_shows_the_same_maps(opened, map_scan, tmp_path):
    report(map_scan, tmp_path / "maps.html")
    address = f"{(tmp_path / 'maps.html').as_uri()}#sample=3&element=2"
    tab = opened(address, offline=True)
    follows_the_orbit(tab, map_scan)
    tab.locator(".maps button").nth(1).click()
    expect(tab.locator(".maps button")).to_have_count(1)


def test_maps_of_values_name_their_errors_and_ranges(opened, serve):
    depth = torch.rand(8, 1, 16, 16, generator=torch.Generator().manual_seed(1))
    scan = ob.scan({"half": lambda x: (x / 2, 0.1 + x)}, (depth, depth), group="flips",
                   task=ob.tasks.DenseRegression(uncertainty="variance"), keep="inputs",
                   progress=False)  # fmt: skip
    tab = opened(f"{serve({'depth': scan}).url}#sample=2&element=1")
    said = tab.locator(".maps").get_attribute("aria-label")
    assert f"error {float(scan.data['score'][0, 2, 1]):.3f}" in said
    assert tab.locator(".maps button").all_text_contents() == ["truth", "half", "error", "std"]
    assert "value" in tab.locator(".section.detail .view-note").text_content()


def test_the_names_above_maps_keep_the_ends_by_which_they_differ(opened, tmp_path):
    depth = torch.rand(8, 1, 48, 16, generator=torch.Generator().manual_seed(1))
    names = [f"monocular-depth-base-finetuned-epoch-{epoch}" for epoch in (10, 20)]
    scan = ob.scan({name: torch.nn.Identity() for name in names}, (depth, depth), group="flips",
                   task="dense_regression", keep="inputs", progress=False)  # fmt: skip
    tab = opened(report(scan, tmp_path / "depth.html").as_uri(), offline=True)
    captions = tab.locator(".tile-caption[title]")
    assert captions.evaluate_all("all => all.map(el => el.title)") == names
    assert [text[-2:] for text in captions.all_text_contents()] == ["10", "20"]
    assert captions.evaluate_all("all => all.every(el => el.scrollWidth <= el.clientWidth)")


@pytest.mark.parametrize("live", [True, False])
def test_key_points_lie_over_the_image_live_and_in_a_report(opened, serve, tmp_path, live):
    truth = torch.tensor([[[4.0, 8.0], [12.0, 6.0], [8.0, 3.0]]]).repeat(8, 1, 1)

    def upright(images):
        return truth[:1].repeat(len(images), 1, 1)

    task = ob.tasks.KeyPoints((16, 16), swaps=[(0, 1)], edges=[(0, 2), (1, 2)])
    images = torch.rand(8, 1, 16, 16, generator=torch.Generator().manual_seed(2))
    scan = ob.scan({"upright": upright}, (images, truth), group="flips", task=task, keep="inputs",
                   progress=False)  # fmt: skip
    if live:
        address = serve({"points": scan}, models={"upright": upright}).url
    else:
        report(scan, tmp_path / "points.html")
        address = (tmp_path / "points.html").as_uri()
    tab = opened(f"{address}#sample=2&element=1")
    said = tab.locator(".key-points").get_attribute("aria-label")
    assert f"distance {float(scan.data['distance'][0, 2, 1]):.3f}" in said
    circles = tab.locator(".key-points circle")
    places = [float(circles.nth(k).get_attribute("cx")) for k in range(6)]
    # The truth is mirrored, left and right exchanged; the prediction stays.
    assert places == [4.0, 12.0, 8.0] * 2
    expect(tab.locator(".key-points line")).to_have_count(7)


def of_levels(volumes):
    """Answer class 1 in as many columns as the depth of a slice."""
    depth, _, columns = volumes.shape[-3:]
    inside = torch.arange(columns)[None, None] < torch.arange(depth)[:, None, None]
    high = torch.where(inside, 1.0, -1.0).expand_as(volumes)
    return torch.cat([-high, high], 1)


@pytest.fixture(scope="module")
def volume_scan():
    volumes = torch.rand(2, 1, 8, 8, 8, generator=torch.Generator().manual_seed(0))
    return ob.scan(
        {"levels": of_levels},
        (volumes, (volumes[:, 0] > 0.5).long()),
        group="inversion",
        task="segmentation",
        keep="inputs",
        progress=False,
    )


FIRST_SLICE_OF_ONE = (
    "(n) => { const m = document.querySelectorAll('.maps canvas')[1];"
    " const d = m.getContext('2d').getImageData(0, 0, 8, 8).data; let k = 0;"
    " for (let i = 0; i < d.length; i += 4) k += d[i] === 0xCC && d[i + 1] === 0x66;"
    " return k === 8 * n; }"
)


def test_sliders_of_a_volume_move_its_predictions(opened, serve, volume_scan):
    tab = opened(serve({"run": volume_scan}, models={"levels": of_levels}).url)
    tab.wait_for_function(FIRST_SLICE_OF_ONE, arg=4)  # the middle slice
    tab.locator(".slice-controls input").first.fill("6")
    tab.wait_for_function(FIRST_SLICE_OF_ONE, arg=6)
    assert "slices=6,4,4" in tab.url
    assert "middle slices" not in tab.locator(".section.detail").text_content()


def test_a_report_says_that_it_has_the_middle_slices_only(opened, volume_scan, tmp_path):
    report(volume_scan, tmp_path / "run.html")
    tab = opened((tmp_path / "run.html").as_uri(), offline=True)
    tab.wait_for_function(FIRST_SLICE_OF_ONE, arg=4)
    assert "Middle slices" not in tab.locator(".section.detail").text_content()
    tab.locator(".slice-controls input").first.fill("6")
    tab.locator(".slice-note", has_text="Middle slices").wait_for()
    tab.wait_for_function(FIRST_SLICE_OF_ONE, arg=4)
