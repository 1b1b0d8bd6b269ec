"""Figures of calibration: along the orbit, the reliability diagram, the cumulative plot.

Each is drawn from finished numbers: an array of `orbical.calibration.along_orbit`, a
`ReliabilityCurve`, a `CumulativeCurve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import xr
from .._text import percent
from ..errors import InputError
from . import style
from .nero_plots import INTERVAL, aggregate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..calibration import CumulativeCurve, Interval, ReliabilityCurve
    from ..selective import RiskCoverage

__all__ = ["cumulative_plot", "error_along_orbit", "reliability_diagram", "risk_coverage_plot"]

_PER_ROW = 3
_LEAST = 2.2
"""Inches below which a panel gets no narrower."""


def error_along_orbit(
    array: xr.DataArray,
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw a calibration error along the orbit, with its interval if the array has one.

    On a circle or a line the interval is a band around each curve, and a dotted curve shows the
    value of a calibrated model. Colored layouts get three plots: lower end, value, upper end.

    Args:
        array: `[model, element]` or `[model, by, element]`, from
            `orbical.calibration.along_orbit`; with the coordinates `low`, `high` and `calibrated`
            if the interval was computed.
        limits: the range of values shown; otherwise from zero to the largest.
        title: written above.
        width: in inches, as in `orbical.figures.aggregate`.

    Returns:
        The figure.

    Raises:
        InputError: if the array has an interval, a colored layout and a third dimension.

    Example:
        >>> import orbical as ob, xarray as xr
        >>> group = ob.groups.rotations(12)
        >>> values = xr.DataArray(
        ...     np.full((1, 12), 0.1), dims=("model", "element"), coords={"model": ["plain"]},
        ...     attrs={"layout": "circle", "layout_axes": {"angle": [*group.coords["angle"]]}},
        ... )
        >>> len(error_along_orbit(values).axes[0].lines)
        1
    """
    array = array.compute()
    if not {*INTERVAL} <= {*array.coords}:
        return aggregate(array, limits=limits, title=title, width=width)
    if limits is None:
        largest = float(np.nanmax(array["high"].values))
        limits = (min(0.0, float(np.nanmin(array["low"].values))), largest or 1.0)
    if array.attrs.get("layout") not in ("circle", "line"):
        array = _both_ends_of_orbit_error(array)
    return aggregate(array, limits=limits, title=title, width=width)


def _both_ends_of_orbit_error(array: xr.DataArray) -> xr.DataArray:
    """Return the lower end of the interval, the value and the upper end as a dimension."""
    if array.ndim > 2:
        expected = "(model, element) for an interval in this layout"
        raise InputError("array", expected, f"dimensions {array.dims}")
    bare = array.drop_vars(INTERVAL)
    ends = {"lower end": bare.copy(data=array["low"]), "value": bare}
    ends["upper end"] = bare.copy(data=array["high"])
    dim = "error" if array.name is None else str(array.name)
    stacked = xr.concat(list(ends.values()), dim=xr.Variable(dim, list(ends)), coords="minimal")
    stacked.attrs = array.attrs
    return stacked.transpose("model", dim, "element")


def reliability_diagram(
    curves: ReliabilityCurve | Mapping[str, ReliabilityCurve],
    *,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw accuracy against confidence, with a confidence band, the density, and the error.

    The curve is thicker where samples are denser; the density itself is drawn along the bottom. The
    smooth calibration error, its interval and the value of a calibrated model are printed on the
    figure.

    Args:
        curves: of one model, or of several by name; from `orbical.calibration.reliability_curve`.
        title: written above.
        width: in inches; diagrams that do not fit in a row are placed below.

    Returns:
        The figure.

    Example:
        >>> from orbical.calibration import reliability_curve
        >>> rng = np.random.default_rng(0)
        >>> confidence = rng.uniform(0.5, 1, 300)
        >>> curve = reliability_curve(confidence, rng.random(300) < confidence, resamples=50)
        >>> fig = reliability_diagram(curve)
        >>> fig.axes[0].get_xlabel()
        'confidence'
    """
    return _a_panel_each(curves, _draw_reliability, title, width)


def _draw_reliability(axes: Axes, curve: ReliabilityCurve, color: str) -> None:
    from matplotlib.collections import LineCollection

    place, accuracy, density = curve.place.numpy(), curve.accuracy.numpy(), curve.density.numpy()
    share = density / density.max()
    axes.plot([0, 1], [0, 1], "--", color=style.SOFT, linewidth=0.8)
    axes.fill_between(place, 0, 0.16 * share, color=style.SOFT, alpha=0.25, linewidth=0)
    axes.fill_between(place, curve.low.numpy(), curve.high.numpy(), color=color, alpha=0.22, lw=0)
    points = np.stack([place, accuracy], axis=-1)
    pieces = np.stack([points[:-1], points[1:]], axis=1)
    seen = np.isfinite(pieces).all((1, 2))
    widths = 0.7 + 2.3 * np.sqrt(share[:-1])
    look: style.Look = {"linewidths": list(widths[seen]), "colors": color, "capstyle": "round"}
    axes.add_collection(LineCollection(list(pieces[seen]), **look))
    box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5}
    text: style.Look = {"va": "top", "fontsize": 7, "linespacing": 1.4, "bbox": box}
    axes.text(0.03, 0.97, _in_lines("smooth ECE", curve.error), transform=axes.transAxes, **text)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy", aspect="equal")
    axes.grid(True)


def _in_lines(name: str, found: Interval) -> str:
    return (
        f"{name} {float(found.value):.3f}\n"
        f"{percent(found.level)} [{float(found.low):.3f}, {float(found.high):.3f}]\n"
        f"if calibrated {float(found.calibrated):.3f}"
    )


def cumulative_plot(
    curves: CumulativeCurve | Mapping[str, CumulativeCurve],
    *,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw cumulative accuracy and confidence against the quantile of confidence.

    For a calibrated model the curves coincide. The area between them shows where confidence exceeds
    accuracy; the largest gap is the KS error, and ESD is the mean of its square.

    Args:
        curves: of one model, or of several by name; from `orbical.calibration.cumulative_curve`.
        title: written above.
        width: in inches; plots that do not fit in a row are placed below.

    Returns:
        The figure.

    Example:
        >>> from orbical.calibration import cumulative_curve
        >>> fig = cumulative_plot(cumulative_curve([0.6, 0.8, 0.9], [True, False, True]))
        >>> fig.axes[0].get_xlabel()
        'quantile of confidence'

    Paper: Yoon et al., ESD: Expected Squared Difference, figure 4.
    """
    return _a_panel_each(curves, _draw_cumulative, title, width)


def _draw_cumulative(axes: Axes, curve: CumulativeCurve, color: str) -> None:
    quantile, accuracy, confidence = (
        np.concatenate([[0.0], part.numpy()])
        for part in (curve.quantile, curve.accuracy, curve.confidence)
    )
    gap = accuracy - confidence
    at = int(np.abs(gap).argmax())
    axes.fill_between(quantile, accuracy, confidence, color=color, alpha=0.18, linewidth=0)
    axes.plot(quantile, confidence, "--", color=style.INK, linewidth=1.1, label="confidence")
    axes.plot(quantile, accuracy, color=color, label="accuracy")
    axes.plot([quantile[at]] * 2, [accuracy[at], confidence[at]], color=style.INK, linewidth=1.1)
    # Narrow enough for the corner above the curves, which lie below the diagonal.
    side = "confidence above\naccuracy" if gap[at] < 0 else "accuracy above\nconfidence"
    words = "no gap" if gap[at] == 0 else f"KS {abs(gap[at]):.3f},\n{side}"
    axes.text(0.04, 0.74, words, transform=axes.transAxes, va="top", fontsize=7)
    axes.set(xlim=(0, 1), xlabel="quantile of confidence", ylabel="cumulative share of samples")
    axes.set_ylim(0, None)
    axes.grid(True)
    axes.legend(loc="upper left", title=None)


def _a_panel_each(
    curves: Any, draw: Callable[[Axes, Any, str], None], title: str, width: float | None
) -> Figure:
    """Draw the curve of each model in its own panel, in the color of the model."""
    named, colors = _by_name(curves, width)
    with style.styled():
        fig, places, wide = _calibration_panels(len(named), title, width)
        for axes, (name, curve) in zip(places, named.items(), strict=True):
            draw(axes, curve, colors[name])
            axes.set_title(style.fitted_label(name, wide - 0.3, 9))
    return fig


def _by_name(curves: Any, width: float | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Check arguments; return the curves of models by name, one alone without, and their colors."""
    style.check_figure_width(width)
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not named:
        raise InputError("curves", "at least one", "none")
    return named, style.model_colors(named)


def _calibration_panels(
    count: int, title: str, given: float | None
) -> tuple[Figure, list[Axes], float]:
    """Return a figure, its panels, and the width of a panel in inches."""
    width = given or (style.COLUMN if count == 1 else style.PAGE)
    columns = max(1, min(count, _PER_ROW, int(width / _LEAST)))
    rows = -(-count // columns)
    fig = style.figure(width, rows * (width / columns) * 1.02)
    places = fig.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in places[count:]:
        axes.set_visible(False)
    style.write_figure_title(fig, title)
    return fig, list(places[:count]), width / columns


def risk_coverage_plot(
    curves: RiskCoverage | Mapping[str, RiskCoverage],
    *,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw risk-coverage curves, with the area under each in the legend.

    Args:
        curves: one, or several by name; from `orbical.selective`.
        title: written above.
        width: in inches.

    Returns:
        The figure.

    Example:
        >>> from orbical.selective import risk_coverage
        >>> fig = risk_coverage_plot(risk_coverage([0.9, 0.8, 0.7], [True, False, True]))
        >>> fig.axes[0].get_xlabel()
        'coverage (share not rejected)'
    """
    named, colors = _by_name(curves, width)
    wide = width or style.COLUMN * 1.3
    with style.styled():
        fig = style.figure(wide, wide * 0.72)
        axes = fig.subplots()
        for name, curve in named.items():
            area = f"AURC {curve.aurc:.4f} [{curve.low:.4f}, {curve.high:.4f}]"
            room = wide - 0.8 - style.text_inches(area, 7)
            short = style.fitted_label(name, room, 7, lines=1, bold=False)
            label = f"{short}, {area}" if name else area
            axes.plot(curve.coverage, curve.risk, color=colors[name], label=label)
        axes.set(xlim=(0, 1), xlabel="coverage (share not rejected)", ylabel="error rate")
        axes.set_ylim(0, None)
        axes.set_title(title)
        axes.grid(True, color=style.SOFT, alpha=0.2)
        fig.legend(loc="outside upper left", fontsize=7)
    return fig
