"""`orbical demo points`: generated clouds, shipped networks, nothing to download."""

from __future__ import annotations

import sys

import pytest

import orbical as ob
from orbical.cli.demos import DemoOptions, find_demo

pytestmark = pytest.mark.docs


@pytest.fixture
def options(tmp_path):
    return DemoOptions("points", tmp_path, samples=8, overwrite=False)


def test_it_scans_three_networks_and_draws_them(options):
    pytest.importorskip("e3nn", reason="the invariant network needs the extra equivariant")
    made = find_demo("points").run(options)
    assert [*made.models] == ["plain", "augmented", "invariant"]
    assert {*made.figures} == {"aggregate", "individual", "embedding"}
    assert len(made.scan.record.task.settings["classes"]) == 8
    scan = ob.load(options.store)
    assert scan.complete
    assert (scan.record.views.input, scan.record.views.detail) == ("points", "bars")
    gap = ob.nero.invariance_gap(scan)["total"]
    plain, augmented, invariant = (float(gap.sel(model=name)) for name in scan.models)
    assert invariant < 1e-4 < augmented < 0.5 * plain


def test_without_e3nn_two_networks_remain(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "e3nn.o3", None)
    models = find_demo("points")._points_models(None)
    assert [*models] == ["plain", "augmented"]
    assert "invariant skipped" in capsys.readouterr().out
