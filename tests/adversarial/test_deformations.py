"""The guide's deformations: an action of one's own, searched between its sampled elements."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example():
    path = ROOT / "examples" / "deformations.py"
    spec = importlib.util.spec_from_file_location("deformations", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_deformation_of_nothing_moves_nothing(example):
    images = torch.rand(2, 1, 8, 8)
    group = ob.groups.parse("deformations:0.5:8")
    moved = example.DeformedImages().apply(group, images)
    torch.testing.assert_close(moved[group.identity], images)
    assert (moved - images).abs().amax((1, 2, 3, 4)).sort().values[1] > 0


def test_no_pixel_moves_further_than_the_size(example):
    group = ob.groups.parse("deformations:0.5:8")
    chart = ob.groups.chart_of(group)
    far = chart.moved(chart.start, np.full(chart.start.shape, 100.0))
    # A ramp shows by its values where its inner pixels come from.
    ramp = torch.arange(16.0).expand(1, 1, 16, 16)
    elements = chart.elements(far, np.arange(len(far)))
    moved = example.DeformedImages().apply(elements, ramp)
    distance = (moved - ramp).abs().max()
    assert 0.3 < distance <= 0.5 + 1e-4


def test_the_search_hurts_more_than_the_sample(example):
    images, labels = ob.datasets.digits()
    net = example.trained(images[:1000], labels[:1000])
    task = ob.tasks.Classification(input=example.DeformedImages())
    some = images[1000:1030], labels[1000:1030]
    found = ob.worst_case(net, some, group="deformations:0.5:16", task=task)
    assert found["method"].item() == "gradient"
    assert found["mean_missed"].item() > 0.02
    limit = 0.5 / len(example.WAVES) + 1e-12
    assert all(float(abs(found[name]).max()) <= limit for name in example.NAMES)


def test_the_guide_shows_the_chart_of_the_example():
    page = (ROOT / "docs" / "guide" / "worst-case.md").read_text(encoding="utf-8")
    script = (ROOT / "examples" / "deformations.py").read_text(encoding="utf-8")
    start = script.index('@ob.groups.register_chart("deformations")')
    chart = script[start : script.index("\n\n\n", start)]
    assert "\n".join(f"    {line}" for line in chart.splitlines()) in page
