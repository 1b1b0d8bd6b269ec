"""Each figure shows the numbers it is given."""

from __future__ import annotations

import numpy as np
import pytest

from orbical import groups
from orbical.bounds import (
    Bound,
    Bounds,
    OrbitTable,
    classification,
    compare_groups,
    forced_overconfidence,
    taxonomy,
)
from orbical.errors import InputError
from orbical.figures import bounds as draw


def texts(figure) -> str:
    found = [text.get_text() for ax in figure.axes for text in ax.texts]
    found += [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")]
    found += [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
    return "\n".join(found)


@pytest.fixture
def table() -> OrbitTable:
    mass = np.array([[0.3, 0.1, 0.0], [0.2, 0.2, 0.0], [0.1, 0.0, 0.1]])
    return OrbitTable(mass, [0.9, 0.8, 0.4], [0, 0, 2])


def test_the_interval_shows_the_model_the_bounds_and_what_does_not_apply(table: OrbitTable) -> None:
    bounds = classification(table)
    shown = texts(draw.calibration_interval(bounds))
    for name in ("ece", "forced_ece", "sharp_upper", "prop1", "thm4_fiberwise"):
        assert f"{float(bounds[name]):.3f}" in shown
    assert "needs two labels" in shown
    assert "vacuous" in shown
    assert "Accuracy ceiling 0.600" in shown


def test_a_bound_just_below_zero_has_no_sign(table: OrbitTable) -> None:
    below = Bound(-2e-17, "ece", "lower", vacuous=True)
    bounds = Bounds({**classification(table), "prop1": below, "forced_ece": below})
    shown = texts(draw.calibration_interval(bounds))
    assert "0.000 (vacuous)" in shown
    assert "-0.000" not in shown


def test_a_long_reason_ends_inside_the_figure(table: OrbitTable) -> None:
    figure = draw.calibration_interval(classification(table))
    figure.canvas.draw()
    axes = figure.axes[0]
    assert max(text.get_window_extent().x1 for text in axes.texts) <= axes.bbox.x1


def test_bounds_print_as_a_line_each_with_what_is_vacuous_and_why_one_is_missing() -> None:
    given = {
        "low": Bound(0.25, "ece", "lower", vacuous=True),
        "none": Bound(None, "ece", "upper", reason="needs two labels"),
    }
    assert repr(Bounds(given, {})) == (
        "low                           0.25  lower ece (vacuous)\n"
        "none                             -  upper ece  needs two labels"
    )


def test_the_interval_needs_confidences() -> None:
    with pytest.raises(InputError, match="expected an interval, got none: needs confidences"):
        draw.calibration_interval(classification(OrbitTable([[0.5, 0.5]])))


def test_an_interval_without_predictions_has_no_point(table: OrbitTable) -> None:
    bare = table.with_predictions(table.confidence)
    assert "this model" not in texts(draw.calibration_interval(classification(bare)))


def test_dissent_fills_the_error_floor(table: OrbitTable) -> None:
    figure = draw.dissent_per_orbit(table)
    stairs = figure.axes[0].patches[0].get_data()
    assert np.diff(stairs.edges) @ stairs.values == pytest.approx(1 - table.accuracy_ceiling)
    assert "0.400" in texts(figure)


def test_forced_curves_are_those_given(table: OrbitTable) -> None:
    p = np.linspace(0, 1, 11)
    curves = forced_overconfidence(table, p)
    lines = draw.forced_overconfidence(p, {"C4": curves}).axes[0].lines
    assert np.allclose(lines[0].get_ydata(), curves[0])
    assert np.allclose(lines[1].get_ydata(), curves[1])


def test_fibers_are_counted_in_each_panel() -> None:
    from orbical_studies.examples.worlds import circle

    x, label = circle()
    orbit = np.tile(np.arange(10), 2)
    figure = draw.fibers(
        x, label, [orbit, orbit * 0], [np.where(x[:, 0] > 0, 0.9, 0.8), orbit * 0.0], ["a", "b"]
    )
    assert "10 orbits\n2 fibers" in texts(figure)
    assert "1 orbit\n1 fiber" in texts(figure)


def test_the_map_shows_every_sample_three_times() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    found = taxonomy(x, rng.integers(0, 2, 30), groups.cyclic(4), support=0.3)
    figure = draw.taxonomy_map(x, found)
    panels = [ax for ax in figure.axes if ax.collections and len(ax.get_title())]
    assert len(panels) == 3
    for ax, share in zip(panels, found.by_sample().T, strict=True):
        assert np.allclose(np.sort(ax.collections[0].get_array()), np.sort(share))
    with pytest.raises(InputError, match=r"x: expected places in the plane"):
        draw.taxonomy_map(np.zeros((30, 3)), found)


def test_the_comparison_names_every_group_and_its_ceiling() -> None:
    x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    shown = texts(
        draw.group_comparison(compare_groups((x, [0, 0, 1, 1]), ["cyclic:2", "cyclic:4"]))
    )
    for word in ("trivial", "cyclic:2", "cyclic:4", "1.000", "0.500"):
        assert word in shown
