"""`orbical demo piv`: generated pairs, shipped weights, nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from orbical import load
from orbical.cli.demos import DemoOptions, find_demo

pytestmark = pytest.mark.docs


def test_the_demo_scans_generated_pairs_with_shipped_networks(tmp_path, monkeypatch):
    monkeypatch.setattr(find_demo("piv"), "SIZE", 64)
    made = find_demo("piv").run(DemoOptions("piv", tmp_path, 3, overwrite=False))
    assert made.scan.data["kind"].values.tolist() == ["uniform", "vortex", "shear"]
    scan = load(tmp_path / "piv.zarr")
    assert {"directed", "symmetric"} <= {*scan.models} == {*made.models}
    error = scan.data["score"].sel(model=["directed", "symmetric"]).values.mean(1)
    spread = error.std(1) / error.mean(1)
    assert spread[0] > 3 * spread[1]
    assert np.isfinite(scan.data["flow_map"].values).all()
    assert scan.data["input"].shape == (3, 2, 1, 64, 64)
    assert {*made.figures} == {"aggregate", "individual"}
