"""Continuous coordinates of groups."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical.errors import InputError
from orbical.groups import Chart, chart_of, from_parts, parse, register_chart
from orbical.groups.charts import CHARTS

CONTINUOUS = [
    *("rotations:8", "translations:4:2", "scales:0.5:2:5", "shear:0.5:5", "euclidean:4:1:1"),
    *("se2:16:4", "se3:8:2", "rotations3d:32", "so3_quadrature:3", "slices3d:8:5", "o3:8"),
    *("translations3d:1:1", "hue:6", "brightness:0.5:2:5", "shifts:4:2", "sphere:4"),
    *("gains:0.5:2:5", "gains:0.5:2:5*sign"),
    *("affine:16:30:1.25:0.2:1", "homographies:20:3:100"),
    *("rotations:8*flips", "rotations:6*translations:2:1", "rotations:4*time_reversal"),
]
FINITE = ["cyclic:8", "dihedral:4", "flips", "permutations:3", "time_reversal", "trivial"]


@pytest.mark.parametrize("text", CONTINUOUS)
def test_the_sampled_elements_lie_on_the_chart(text):
    group = parse(text)
    chart = chart_of(group)
    elements = chart.elements(chart.start, np.arange(len(group)))
    assert sorted(elements.parts) == sorted(group.parts)
    for name, part in group.parts.items():
        np.testing.assert_allclose(elements.parts[name], part, atol=1e-9)
    assert chart.start.shape == (len(group), len(chart.names))
    assert (chart.step > 0).all()


@pytest.mark.parametrize("text", CONTINUOUS)
def test_a_change_there_and_back_returns_within_the_window(text):
    group = parse(text)
    chart, base = chart_of(group), np.arange(len(group))
    ahead = chart.moved(chart.start, np.full(chart.start.shape, 0.25))
    assert ((ahead >= chart.low) & (ahead <= chart.high)).all()
    change = np.zeros(chart.start.shape)
    change[:, 0] = 0.25  # along one coordinate, since rotations of space do not commute
    there = chart.add(chart.start, change * chart.step)
    back = chart.elements(chart.add(there, -change * chart.step), base)
    for name, part in group.parts.items():
        np.testing.assert_allclose(back.parts[name], part, atol=1e-6)


@pytest.mark.parametrize("text", FINITE)
def test_a_finite_group_has_no_chart(text):
    assert chart_of(parse(text)) is None


def test_a_product_with_given_matrices_has_no_chart():
    given = ob.groups.from_parts(
        "given", {"time": [1.0, -1.0]}, coords={"backward": np.array([1.0, -1.0])}
    )
    assert chart_of(ob.groups.product(parse("rotations:4"), given)) is None


def test_the_step_of_a_circle_and_of_a_window():
    assert chart_of(parse("rotations:8")).step.tolist() == [45.0]
    assert chart_of(parse("euclidean:4:2:1")).step.tolist() == [90.0, 1.0, 1.0]
    np.testing.assert_allclose(chart_of(parse("scales:0.5:2:5")).step, np.log(2) / 2)


def test_a_group_of_ones_own_gets_a_chart():
    @register_chart("gains")
    def gains(group):
        return Chart.of_grid(group, lambda coords: {"time": coords[:, 0]})

    try:
        group = from_parts("gains:3", {"time": [0.5, 1, 2]}, coords={"gain": [0.5, 1, 2]})
        assert chart_of(group).names == ("gain",)
    finally:
        del CHARTS["gains"]
    with pytest.raises(InputError, match="name: expected the name of a group"):
        register_chart("two words")
