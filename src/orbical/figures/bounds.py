"""Figures of bounds: intervals, dissent, forced overconfidence, fibers, comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import percent
from ..errors import InputError
from .style import (
    CENTERED,
    COLUMN,
    FAINT,
    INK,
    MODELS,
    PAGE,
    SEQUENTIAL,
    SOFT,
    Look,
    figure,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..bounds import Bound, Bounds, Comparison, OrbitTable, Taxonomy

__all__ = [
    "calibration_interval", "dissent_per_orbit", "fibers", "forced_overconfidence",
    "group_comparison", "taxonomy_map",
]  # fmt: skip

Array = np.ndarray
KIND_COLORS = {"correct": MODELS[2], "incorrect": MODELS[1], "extrinsic": "#9A9A9A"}
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")
_MARKERS = "osD^vP*X"
_BOX = {"fc": "white", "ec": "none", "pad": 1}


def calibration_interval(bounds: Bounds) -> Figure:
    """Draw the interval of the ECE with the ECE of the model, and each named bound below.

    The interval reaches from the error that the symmetry forces to the largest possible one, which
    is attained. Up to the white mark, no labeling of the orbits need attain a value.

    A bound is drawn as the range that it allows: an upper one from 0 to its value, a lower one from
    its value to 1. One that does not apply is listed with the reason, cut to the
    width of the figure.

    Args:
        bounds: from `orbical.bounds.classification`.

    Returns:
        The figure.

    Raises:
        InputError: if the interval does not apply.

    Example:
        >>> from orbical.bounds import OrbitTable, classification
        >>> table = OrbitTable([[0.3, 0.2], [0.5, 0.0]], confidence=[0.9, 0.7], predicted=[0, 0])
        >>> calibration_interval(classification(table)).axes[0].get_xlabel()
        'expected calibration error'
    """
    from ..bounds import TITLES

    if not bounds["sharp_upper"].applies:
        raise InputError("bounds", "an interval", f"none: {bounds['sharp_upper'].reason}")
    low, high = float(bounds["forced_ece"]), float(bounds["sharp_upper"])
    rows = [name for name in TITLES if bounds[name].quantity == "ece"]
    with styled():
        fig = figure(PAGE, 0.9 + 0.24 * (len(rows) + 2))
        ax = fig.subplots()
        ax.axvspan(low, high, color=MODELS[5], alpha=0.18, lw=0)
        ax.plot([low, high], [0, 0], color=MODELS[0], lw=6, solid_capstyle="butt")
        least = bounds["least_ece_upper"]
        if least.applies:
            ax.plot(float(least), 0, "|", color="white", ms=7, mew=1.4)
        _write_beside(ax, low, 0, f"{low:z.3f}", left=True, color=MODELS[0])
        _write_beside(ax, high, 0, f"{high:z.3f}", left=False, color=MODELS[0])
        if bounds["ece"].applies:
            ece = float(bounds["ece"])
            ax.axvline(ece, color=INK, lw=0.8, ls=":")
            ax.plot(ece, 0, "o", color=INK, ms=7, mec="white", mew=1.2, zorder=5)
            ax.text(ece, -0.6, f"this model {ece:z.3f}", ha="center", weight="bold", bbox=_BOX)
        for y, name in enumerate(rows, start=1):
            _draw_named_bound(ax, y, bounds[name])
        ax.set(xlim=(-0.09, 1.09), ylim=(len(rows) + 0.6, -1.1), xticks=np.linspace(0, 1, 6))
        ax.set_yticks(range(len(rows) + 1), ["possible values", *(TITLES[name] for name in rows)])
        ax.set_xlabel("expected calibration error")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.grid(axis="x")
        title = "Accuracy ceiling {:.3f}: possible ECE of an invariant model"
        ax.set_title(title.format(float(bounds["accuracy_ceiling"])), loc="left")
    return fig


def _draw_named_bound(ax: Axes, y: int, bound: Bound) -> None:
    if not bound.applies:
        reason = shorten(bound.reason, 52, placeholder=" ...")  # the table has all of it
        ax.text(0, y, f"does not apply: {reason}", va="center", color=SOFT, style="italic")
        return
    value = float(bound)
    start, stop = (0.0, value) if bound.kind == "upper" else (value, 1.0)
    color = SOFT if bound.vacuous else INK
    ax.plot([start, stop], [y, y], color=FAINT, lw=3, solid_capstyle="butt")
    ax.plot(value, y, marker="|", color=color, ms=10, mew=1.6)
    note = f"{value:z.3f}" + (" (vacuous)" if bound.vacuous else "")
    # On the side of the mark that stays inside the axis.
    _write_beside(ax, value, y, note, left=value > 0.8, color=color, fontsize=7)


def _write_beside(ax: Axes, x: float, y: float, text: str, *, left: bool, **style: Any) -> None:
    """Write text on one side of a place."""
    ha, shift = ("right", -0.012) if left else ("left", 0.012)
    ax.text(x + shift, y, text, ha=ha, va="center", bbox=_BOX | {"pad": 0.4}, **style)


def dissent_per_orbit(table: OrbitTable) -> Figure:
    """Draw the share of each orbit that no invariant model can predict correctly.

    Each orbit is as wide as its mass, ordered from the most to the least divided; the filled area
    is the error floor, one minus the accuracy ceiling.

    Args:
        table: orbits with label masses.

    Returns:
        The figure.

    Example:
        >>> from orbical.bounds import OrbitTable
        >>> dissent_per_orbit(OrbitTable([[0.3, 0.2], [0.5, 0.0]])).axes[0].get_ylabel()
        'dissent within the orbit'
    """
    held = table.orbit_mass > 0
    mass = table.orbit_mass[held]
    share = table.dissent[held] / mass
    order = np.argsort(-share, kind="stable")
    edges = np.concatenate([[0.0], np.cumsum(mass[order])])
    with styled():
        fig = figure(COLUMN * 1.3, 2.6)
        ax = fig.subplots()
        ax.stairs(share[order], edges, fill=True, color=MODELS[1], alpha=0.35)
        ax.stairs(share[order], edges, color=MODELS[1], lw=1.2)
        divided = float(mass[share > 0].sum())
        ax.set(xlim=(0, 1), ylim=(0, max(0.05, 1.15 * float(share.max()))))
        ax.set(xlabel="mass of orbits, most divided first", ylabel="dissent within the orbit")
        ax.set_title(f"Error floor {1 - table.accuracy_ceiling:.3f} = filled area", loc="left")
        text = f"{len(mass)} orbits; {percent(divided)} of the mass\nin divided ones"
        ax.text(0.98, 0.95, text, transform=ax.transAxes, ha="right", va="top", color=SOFT)
    return fig


def forced_overconfidence(confidence: Array, curves: Mapping[str, tuple[Array, Array]]) -> Figure:
    """Draw the calibration error that each symmetry forces on confident models.

    Args:
        confidence: `[P]`, values p.
        curves: the two curves of `orbical.bounds.forced_overconfidence` by name. The solid line
            holds for every model of mean confidence p, the dashed one if each orbit has a
            confidence near p of its own.

    Returns:
        The figure.

    Example:
        >>> from orbical.bounds import OrbitTable
        >>> from orbical.bounds import forced_overconfidence as forced
        >>> p, table = np.linspace(0, 1, 11), OrbitTable([[0.25, 0.25], [0.5, 0.0]])
        >>> fig = forced_overconfidence(p, {"C4": forced(table, p)})
        >>> fig.axes[0].get_xlabel()
        'confidence p'
    """
    with styled():
        fig = figure(COLUMN * 1.3, 2.8)
        ax = fig.subplots()
        _draw_forced_overconfidence(ax, confidence, curves)
        ax.legend(loc="upper left")
        ax.set_title("Overconfidence that no training removes", loc="left")
    return fig


def _draw_forced_overconfidence(
    ax: Axes, confidence: Array, curves: Mapping[str, tuple[Array, Array]]
) -> None:
    highest = max(float(np.max(curve)) for pair in curves.values() for curve in pair)
    for i, (name, (mean, orbitwise)) in enumerate(curves.items()):
        color = MODELS[i % len(MODELS)]
        ax.plot(confidence, mean, color=color, lw=1.8, label=name)
        ax.plot(confidence, orbitwise, color=color, lw=1.1, ls="--")
    ax.plot([], [], color=SOFT, lw=1.1, ls="--", label="each orbit separately")
    ax.set(xlim=(0, 1), ylim=(-0.01, max(0.06, 1.08 * highest)))
    ax.set(xlabel="confidence p", ylabel="forced calibration error")
    ax.grid(axis="y")


def fibers(
    x: Array,
    label: Array,
    orbits: Sequence[Array],
    confidences: Sequence[Array],
    titles: Sequence[str],
    *,
    label_names: Sequence[str] | None = None,
) -> Figure:
    """Draw a data set in the plane for each model: labels, orbits, and fibers of the confidence.

    As Fig. 2 of the equivariant-calibration paper: color is the label, lines join the points of an
    orbit, and hatching shows the fibers (equal confidences).

    Args:
        x: `[N, 2]`.
        label: `[N]`.
        orbits: for each panel `[N]` ids.
        confidences: for each panel `[N]`, constant on orbits.
        titles: for each panel.
        label_names: the names of the labels.

    Returns:
        The figure.

    Example:
        >>> x, label, orbit = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.arange(2), np.zeros(2)
        >>> fig = fibers(x, label, [orbit], [np.array([0.7, 0.7])], ["half turn"])
        >>> fig.axes[0].get_title()
        'half turn'
    """
    names = label_names or [f"label {y}" for y in range(int(np.max(label)) + 1)]
    with styled():
        fig = figure(PAGE, PAGE / len(titles) + 0.55)
        axes = np.atleast_1d(fig.subplots(1, len(titles)))
        for ax, orbit, confidence, title in zip(axes, orbits, confidences, titles, strict=True):
            _draw_fiber_panel(ax, np.asarray(x), np.asarray(label), orbit, confidence)
            ax.set_title(title)
        handles = [
            axes[0].scatter([], [], s=60, ec=INK, label=name, **_look_of_label(y))
            for y, name in enumerate(names)
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=len(names))
    return fig


def _draw_fiber_panel(ax: Axes, x: Array, label: Array, orbit: Array, confidence: Array) -> None:
    for name in np.unique(orbit):
        members = x[orbit == name]
        angle = np.arctan2(*(members - members.mean(0)).T[::-1])
        ring = members[np.argsort(angle)] if len(members) > 2 else members
        ax.plot(*np.concatenate([ring, ring[:1]]).T, color=SOFT, lw=0.8, zorder=1)
    levels = np.unique(confidence)
    for f, level in enumerate(levels):
        for y in np.unique(label):
            here = (confidence == level) & (label == y)
            hatch = _HATCHES[f % len(_HATCHES)]
            look = _look_of_label(y) | {"ec": "white" if f else INK, "hatch": hatch}
            ax.scatter(x[here, 0], x[here, 1], s=110, lw=0.8, zorder=2, **look)
    counts = {"orbit": len(np.unique(orbit)), "fiber": len(levels)}
    text = "\n".join(f"{count} {kind}" + "s" * (count > 1) for kind, count in counts.items())
    ax.text(0.5, 0.5, text, color=SOFT, bbox=_BOX, zorder=3, transform=ax.transAxes, **CENTERED)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.margins(0.12)
    ax.spines[:].set_visible(False)


def _look_of_label(label: int) -> Look:
    """Return the color and the marker of a label."""
    return {"fc": MODELS[label % len(MODELS)], "marker": _MARKERS[label % len(_MARKERS)]}


def taxonomy_map(x: Array, taxonomy: Taxonomy) -> Figure:
    """Draw where in the plane a symmetry is correct, incorrect or extrinsic.

    Args:
        x: `[N, 2]`, the samples (or an embedding of them).
        taxonomy: from `orbical.bounds.taxonomy`.

    Returns:
        The figure.

    Raises:
        InputError: if `x` is not in the plane.

    Example:
        >>> import orbical as ob
        >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0]])
        >>> found = ob.bounds.taxonomy(x, [0, 1, 0], ob.groups.cyclic(2), support=0.1)
        >>> [axes.get_title() for axes in taxonomy_map(x, found).axes[:3]]
        ['correct 50.0%', 'incorrect 33.3%', 'extrinsic 16.7%']
    """
    points = np.asarray(x)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError("x", "places in the plane [N, 2]", points)
    shares, totals = taxonomy.by_sample(), taxonomy.totals()
    with styled():
        fig = figure(PAGE, 2.9)
        axes = fig.subplots(1, 3, sharex=True, sharey=True)
        for ax, (kind, total), share in zip(axes, totals.items(), shares.T, strict=True):
            drawn = np.argsort(share, kind="stable")
            dots = ax.scatter(
                *points[drawn].T, c=share[drawn], vmin=0, vmax=1, s=14, cmap=SEQUENTIAL, lw=0
            )
            ax.set(aspect="equal", title=f"{kind} {percent(total, 1)}")
        fig.colorbar(dots, ax=axes, label="share of the orbit", shrink=0.8, pad=0.01)
    return fig


def group_comparison(comparison: Comparison) -> Figure:
    """Draw candidate groups: what they allow, their taxonomy, and forced overconfidence.

    The left panel shows a bar from the accuracy floor to the ceiling on these samples (for values,
    up to the floor of the squared error) and, thin and black, the interval estimated from nearest
    neighbors, which is not a bound. A bar is faint where no two different samples share an orbit,
    and missing where samples were joined within a tolerance.

    Args:
        comparison: from `orbical.bounds.compare_groups`.

    Returns:
        The figure.

    Example:
        >>> from orbical.bounds import compare_groups
        >>> x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> fig = group_comparison(compare_groups((x, [0, 0, 1, 1]), ["cyclic:2", "cyclic:4"]))
        >>> [label.get_text() for label in fig.axes[0].get_yticklabels()]
        ['trivial', 'cyclic:2', 'cyclic:4']
    """
    rows = comparison.rows()
    y, labels = np.arange(len(rows)), "accuracy_ceiling" in rows[0]
    with styled():
        fig = figure(PAGE, max(2.4, 0.9 + 0.4 * len(rows)))
        widths = (1.35, 1, 1.15)[: 3 if labels else 2]
        left, middle, *rest = fig.subplots(1, len(widths), width_ratios=widths)
        _draw_allowed_by_bounds(left, rows, "accuracy_ceiling" if labels else "error_floor")
        start = np.zeros(len(rows))
        for (kind, color), hatch in zip(KIND_COLORS.items(), _HATCHES, strict=False):
            share = np.array([row[kind] for row in rows])
            style = {"color": color, "hatch": hatch, "edgecolor": "white", "lw": 0}
            middle.barh(y, share, left=start, label=kind, height=0.6, **style)
            start += share
        middle.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), yticks=[], xlabel="share of (x, g)")
        middle.set_title("Equivariance along orbits", loc="left")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28)}
        middle.legend(**below, ncols=3, handlelength=1.2, columnspacing=0.8)
        for right in rest:
            _draw_forced_overconfidence(right, comparison.confidence, comparison.forced)
            right.set_title("Forced overconfidence", loc="left")
            right.set_ylim(top=1.25 * right.get_ylim()[1])  # room for the legend
            right.legend(handles=right.lines[-1:], loc="upper left")
    return fig


def _draw_allowed_by_bounds(ax: Axes, rows: Sequence[Mapping[str, Any]], best: str) -> None:
    """Draw the range of accuracies, or the floor of errors, of each group."""
    labels = best == "accuracy_ceiling"
    for place, row in enumerate(rows):
        end = row["neighbor_high"]
        ax.plot([row["neighbor_low"], end], [place + 0.3] * 2, color=INK, lw=1.4)
        if row[best] is not None:
            low, end = row["accuracy_floor"] if labels else 0.0, max(end, row[best])
            alpha, mark = (0.3, "*") if row["cost"] is None else (1, "")
            look: Look = {"color": MODELS[place % len(MODELS)], "alpha": alpha, "lw": 7}
            ax.plot([low, row[best]], [place] * 2, solid_capstyle="butt", **look)
            note = f"{row[best]:.3f}{mark}"
            ax.text(end, place, f" {note}", va="center", fontsize=7, weight="bold")
    ax.set(ylim=(len(rows) - 0.4, -0.5), yticks=range(len(rows)))
    ax.set_yticklabels([row["group"] for row in rows])
    ax.set_xlim(0, 1.22 if labels else 1.25 * ax.dataLim.x1 or 1)
    ax.set_xlabel("accuracy of invariant models" if labels else "squared error")
    if labels:
        ax.set_xticks((0, 0.5, 1))
    handles = ax.plot([], [], color=INK, lw=1.4, label="estimate, not a bound")
    if any(row["cost"] is None for row in rows):
        handles += ax.plot([], [], " ", label="* nothing matches")
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.28), handlelength=1.2)
    ax.set_title("Floor to ceiling" if labels else "Floor of the error", loc="left")
