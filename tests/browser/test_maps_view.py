"""Class maps in a real browser: truth, answer, differences and entropy follow the orbit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.reports import report

pytestmark = pytest.mark.browser


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
    assert names == ["truth", "rows", "differs", "entropy"]
    bright = [0xCC, 0x66, 0x77]  # the second class
    truth = scan.data["truth_map"].values[0, 3, 2]
    assert share_of(tab, 0, bright) == pytest.approx(np.mean(truth == 1), abs=1e-6)
    answer = scan.data["class_map"].values[0, 3, 2]
    assert share_of(tab, 1, bright) == pytest.approx(np.mean(answer == 1), abs=1e-6)
    differs = scan.data["map_vs_consensus"].values[0, 3, 2].astype(float)
    assert share_of(tab, 2, [0xFD, 0xE7, 0x25]) == pytest.approx(np.mean(differs == 1), abs=1e-6)
    assert "bright" in tab.locator(".section.detail").text_content()


def test_the_maps_follow_the_orbit_live(opened, serve, map_scan):
    server = serve({"maps": map_scan}, models={"rows": of_rows})
    follows_the_orbit(opened(f"{server.url}#sample=3&element=2"), map_scan)


def test_a_report_shows_the_same_maps(opened, map_scan, tmp_path):
    report(map_scan, tmp_path / "maps.html")
    address = f"{(tmp_path / 'maps.html').as_uri()}#sample=3&element=2"
    tab = opened(address, offline=True)
    follows_the_orbit(tab, map_scan)
    tab.locator(".maps button").nth(1).click()
    assert tab.locator(".maps button").count() == 1


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
