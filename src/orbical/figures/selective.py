"""The figure of selective prediction: error rate against the share of inputs that are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import InputError
from .style import COLUMN, SOFT, check_width, figure, model_colors, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..selective import RiskCoverage

__all__ = ["risk_coverage_plot"]


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
        'share of samples that are answered'
    """
    check_width(width)
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not named:
        raise InputError("curves", "at least one", "none")
    colors = model_colors(named)
    wide = width or COLUMN * 1.3
    with styled():
        fig = figure(wide, wide * 0.72)
        axes = fig.subplots()
        for name, curve in named.items():
            area = f"AURC {curve.aurc:.4f} [{curve.low:.4f}, {curve.high:.4f}]"
            label = f"{name}, {area}" if name else area
            axes.plot(curve.coverage, curve.risk, color=colors[name], label=label)
        axes.set(xlim=(0, 1), xlabel="share of samples that are answered", ylabel="error rate")
        axes.set_ylim(0, None)
        axes.set_title(title)
        axes.grid(True, color=SOFT, alpha=0.2)
        fig.legend(loc="outside upper left", fontsize=7)
    return fig
