"""An audited potential in a real browser: the molecule turns, its forces are listed."""

from __future__ import annotations

import os

import numpy as np
import pytest
from reader import expect

import orbical as ob


def test_a_molecule_its_forces_and_one_that_failed(opened, serve, tmp_path):
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule
    from ase.calculators.calculator import all_changes
    from ase.calculators.emt import EMT

    class Broken(EMT):
        def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
            super().calculate(atoms, properties, system_changes)
            self.results["forces"][0] += [0.3, 0, 0]

    names = ("H2O", "SiH4", "CH3CH2OH", "CH4", "NH3")
    molecules = [molecule(name) for name in names]
    molecules[2].info["name"] = "ethanol"
    with pytest.warns(UserWarning, match="No EMT-potential for Si"):
        scan = ob.scan(
            {"emt": EMT(), "broken": Broken()},
            molecules,
            group="rotations3d:64",
            task="atoms",
            out=tmp_path / "audit.zarr",
            keep="inputs",
            progress=False,
        )
    server = serve(scan)
    tab = opened(f"{server.url}#sample=2&element=5")
    rows = tab.locator(".section.detail table.values tr").all_inner_texts()
    assert any(row.startswith("Energy, eV\t") for row in rows)
    (listed,) = [row for row in rows if row.startswith("Forces vs. consensus, eV/Å\t")]
    said = float(listed.split("\t")[-1].replace("−", "-"))
    held = float(scan.data["forces_vs_consensus"].sel(model="broken")[2, 5])
    assert said == pytest.approx(held, rel=0.01)
    assert tab.locator(".section.input canvas").count() >= 1
    expect(tab.locator(".section.detail .view-note")).to_contain_text("arrows: forces up to")
    painted = tab.locator(".section.detail .cloud").evaluate(
        """canvas => {
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            let blue = 0;
            for (let i = 0; i < data.length; i += 4)
                blue += data[i] < 40 && data[i + 1] > 90 && data[i + 1] < 140 && data[i + 2] > 150;
            return blue; }"""
    )
    assert painted > 20  # arrows in the color of the first model
    expect(tab.locator("h2", has_text="Molecule 2")).to_have_count(1)
    assert tab.get_by_text("ethanol, C2H6O").count() >= 1
    assert "9 atoms (2 C, 1 O, 6 H)" in tab.locator(".section.input .view-note").inner_text()
    if os.environ.get("ORBICAL_PICTURES"):
        tab.screenshot(path=f"{os.environ['ORBICAL_PICTURES']}/atoms.png")
    discs = """() => Math.max(...[...document.querySelectorAll(".individual .orbit-plot circle")]
        .map(one => one.getBoundingClientRect().width))"""
    small = tab.evaluate(discs)
    tab.locator(".individual .enlarge").click()
    tab.wait_for_function(f"small => ({discs})() > 2 * small", arg=small)  # discs are legible
    tab.keyboard.press("Escape")
    tab.wait_for_function(f"small => ({discs})() === small", arg=small)
    tab.emulate_media(media="print")
    listed = tab.locator(".section.detail .scroll")
    assert listed.evaluate("el => el.scrollHeight") <= listed.bounding_box()["height"] + 1
    whole, last = (tab.locator(f".section.detail{part}").last for part in ("", " .values tr"))
    ends = [box["y"] + box["height"] for box in (last.bounding_box(), whole.bounding_box())]
    assert ends == sorted(ends), "on paper no list is cut"
    assert not tab.locator("button.tool").locator("visible=true").count()
    tab.emulate_media(media="null")
    tab = opened(f"{server.url}#sample=1&element=5", ("detail", "aggregate"))  # the one that failed
    assert np.isnan(scan.data["forces_vs_consensus"].values[:, 1]).all()
    words = "emt failed: NotImplementedError: No EMT-potential for Si; broken failed"
    expect(tab.locator(".section.individual")).to_contain_text(words)
    expect(tab.locator(".section.aggregate .note")).to_have_text(
        "mean of 4 of 5 molecules, 1 failed"
    )
    expect(tab.locator(".headline")).to_contain_text("(4 samples)")
    expect(tab.locator(".row", has_text="H4Si")).to_contain_text("failed")
    tab.get_by_role("searchbox").fill("C2H6O")  # the formula, which is shown and not stored
    expect(tab.locator(".row")).to_have_count(1)
    expect(tab.locator(".row")).to_contain_text("ethanol")
    pictures = tab.locator(".row canvas").evaluate_all(
        "all => all.map(one => new Set(one.getContext('2d')"
        ".getImageData(0, 0, one.width, one.height).data).size)"
    )
    assert min(pictures) > 20  # colors of elements, not one gray
    opened(server.url)  # without a place: where the broken one is worst
    worst = scan.data["score_vs_consensus"].sel(model="broken").mean("sample").argmax("element")
    tab.wait_for_function(f"() => location.hash.includes('element={int(worst)}')")
