"""Figures of calibration show the numbers they were given."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical.calibration import cumulative_curve, ks
from orbical.calibration.intervals.reliability_curves import reliability_curve
from orbical.errors import InputError
from orbical.figures.calibration import cumulative_plot, error_along_orbit, reliability_diagram


def errors(spec: str, interval: bool = True, by: bool = False) -> xr.DataArray:
    group = ob.groups.parse(spec)
    dims = ("model", "label", "element") if by else ("model", "element")
    shape = (2, 3, len(group)) if by else (2, len(group))
    values = np.random.default_rng(0).uniform(0.1, 0.3, shape)
    coords = {"model": ["plain", "turned"]}
    coords |= {name: ("element", part) for name, part in group.coords.items()}
    if by:
        coords["label"] = [0, 1, 2]
    if interval:
        coords |= {"low": (dims, values - 0.05), "high": (dims, values + 0.07)}
        coords["calibrated"] = (dims, np.full(shape, 0.02))
    return xr.DataArray(
        values,
        dims=dims,
        coords=coords,
        name="ece",
        attrs={
            "meaning": "expected calibration error",
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {name: axis.tolist() for name, axis in group.layout.axes.items()},
        },
    )


def texts(fig) -> str:
    return "\n".join(text.get_text() for text in fig.findobj(mpl.text.Text))


def sample(gap: float, size: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.5, 1, size)
    return confidence, rng.random(size) < confidence - gap


@pytest.mark.parametrize("spec", ["rotations:12", "scales:0.5:2:7"])
def test_curves_have_the_band_of_their_interval(spec: str) -> None:
    given = errors(spec)
    fig = error_along_orbit(given)
    axes = fig.axes[0]
    bands = [part for part in axes.collections if isinstance(part, mpl.collections.PolyCollection)]
    assert len(bands) == 2
    for model, band in enumerate(bands[:2]):
        heights = np.unique(band.get_paths()[0].vertices[:, 1].round(12))
        ends = np.concatenate([given["low"].values[model], given["high"].values[model]])
        assert set(np.round(ends, 12)) <= set(heights)
    assert "a calibrated model" in texts(fig)


def test_each_class_has_its_own_bands() -> None:
    fig = error_along_orbit(errors("rotations:8", by=True))
    with_bands = [axes for axes in fig.axes if len(axes.collections) >= 2]
    assert len(with_bands) == 3


def test_surfaces_show_both_ends_beside_the_value() -> None:
    fig = error_along_orbit(errors("translations:2:1"))
    for name in ("lower end", "value", "upper end"):
        assert name in texts(fig)
    with pytest.raises(InputError, match=r"^array: expected"):
        error_along_orbit(errors("translations:2:1", by=True))


def test_an_array_without_interval_is_drawn_plainly() -> None:
    fig = error_along_orbit(errors("rotations:12", interval=False))
    assert "a calibrated model" not in texts(fig)
    assert len(fig.axes[0].lines) == 2


def test_the_diagram_prints_the_error_with_its_interval() -> None:
    curve = reliability_curve(*sample(0.15), resamples=100)
    fig = reliability_diagram(curve, title="digits")
    words = texts(fig)
    assert f"smooth ECE {float(curve.error.value):.3f}" in words
    assert f"[{float(curve.error.low):.3f}, {float(curve.error.high):.3f}]" in words
    assert f"if calibrated {float(curve.error.calibrated):.3f}" in words
    assert "digits" in words


def test_several_models_get_a_diagram_each_in_their_own_color() -> None:
    curves = {
        name: reliability_curve(*sample(gap), resamples=50)
        for name, gap in (("a", 0.0), ("b", 0.1), ("c", 0.2), ("d", 0.3))
    }
    fig = reliability_diagram(curves)
    shown = [axes for axes in fig.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == list(curves)


def test_the_smooth_curve_ends_where_confidences_end() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 0.8, 2000)
    curve = reliability_curve(confidence, rng.random(2000) < confidence, bandwidth=0.1)
    drawn = curve.place[curve.accuracy.isfinite()]
    assert float(drawn.min()) == pytest.approx(0.3, abs=0.01)
    assert float(drawn.max()) == pytest.approx(0.8, abs=0.01)
    same = reliability_curve(np.full(50, 0.513), np.ones(50, bool))
    assert int(same.accuracy.isfinite().sum()) >= 2  # a piece of a line can be drawn


def test_the_smooth_curve_follows_the_true_accuracy() -> None:
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0, 1, 20_000)
    correct = rng.random(20_000) < confidence**2
    curve = reliability_curve(confidence, correct, bandwidth=0.2, resamples=100)
    inner = (curve.place > 0.15) & (curve.place < 0.85)
    truth = curve.place**2
    assert float((curve.accuracy - truth)[inner].abs().max()) < 0.03
    inside = (curve.low <= truth) & (truth <= curve.high)
    assert float(inside[inner].double().mean()) > 0.7
    assert float(curve.density.mean()) == pytest.approx(1.0, abs=0.01)
    torch.testing.assert_close(
        curve.density[inner], torch.ones_like(curve.density[inner]), atol=0.1, rtol=0
    )


def test_the_cumulative_plot_marks_the_ks_error() -> None:
    confidence, correct = sample(0.15)
    fig = cumulative_plot({"net": cumulative_curve(confidence, correct)})
    assert f"KS {float(ks(confidence, correct)):.3f},\nconfidence above\naccuracy" in texts(fig)
    dashed, solid = fig.axes[0].lines[:2]
    assert dashed.get_ydata()[-1] == pytest.approx(confidence.mean())
    assert solid.get_ydata()[-1] == pytest.approx(correct.mean())


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match=r"^curves: expected at least one"):
        reliability_diagram({})
    with pytest.raises(InputError, match=r"^curves: expected at least one"):
        cumulative_plot({})
    with pytest.raises(InputError, match=r"^points"):
        reliability_curve(*sample(0.1), points=1)
    with pytest.raises(InputError, match=r"^confidence: expected shape"):
        reliability_curve(np.full((2, 5), 0.5), np.ones((2, 5), bool))
    with pytest.raises(InputError, match=r"^bandwidth"):
        reliability_curve(*sample(0.1), bandwidth=0.0)
