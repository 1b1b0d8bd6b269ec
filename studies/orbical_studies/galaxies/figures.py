"""The galaxy study's figures, from its CSV files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..pages import Row
from .numbers import FAMILIES, TITLES, Numbers, mean, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "accuracy": "accuracy",
    "ece": "ECE, 15 bins",
    "esd": "ESD (1e-3)",
    "overconfidence": "confidence less\naccuracy (points)",
}
CEILING = "ceiling of mirror-invariance"
WIDTH = 6.2
SHOWN = ("cyclic:1", "cyclic:4", "cyclic:12", "dihedral:12")
"""Networks whose NERO plots are drawn."""

SCALES = {"accuracy": 1.0, "ece": 1.0, "esd": 1e3, "overconfidence": 1e2}


def orders_figure(numbers: Numbers, data: str) -> Figure:
    """Draw all measures against the order, for both families and all blurs."""
    from orbical.figures.style import MODELS, SOFT, figure, styled

    blurs = numbers.blurs(data)
    floor = {"color": SOFT, "ls": ":", "lw": 1.2}
    with styled():
        fig = figure(WIDTH, 6.6)
        panels = fig.subplots(len(LABELS), len(FAMILIES), sharey="row", sharex=True)
        for row, (measure, title) in zip(panels, LABELS.items(), strict=True):
            for ax, family in zip(row, FAMILIES, strict=True):
                for place, blur in enumerate(blurs):
                    shift = 1 + 0.05 * (place - (len(blurs) - 1) / 2)
                    style = {"color": MODELS[place], "label": f"blur {blur:g} px"}
                    _along(ax, numbers, data, family, blur, measure, shift, style)
                    _wide(ax, numbers, data, blur, measure, shift, MODELS[place])
                if measure != "accuracy":
                    label = "a calibrated network's"
                    ax.axhline(_calibrated(numbers, data, measure), **floor, label=label)
                ax.grid()
                _order_axis(ax, numbers.orders(data, family))
            row[0].set_ylabel(title)
        for ax, letter in zip(panels[0], FAMILIES.values(), strict=True):
            ax.set_title(f"${letter}_n$", loc="left")
        for ax in panels[-1]:
            ax.set_xlabel("order n")
        handles, names = panels[1, 0].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside upper center", ncols=4, fontsize=7)
    return fig


def _calibrated(numbers: Numbers, data: str, measure: str) -> float:
    """What a calibrated network shows on so many test images: of ECE not 0."""
    rows = numbers.of(data=data)
    return mean([row["ece_calibrated"] for row in rows]) if measure == "ece" else 0.0


def _along(
    ax: Any, numbers: Numbers, data: str, family: str, blur: float, measure: str,
    shift: float, style: dict[str, Any],
) -> None:  # fmt: skip
    """Draw one line: means over seeds with the interval of the test set, and each seed."""
    at, middles = [], []
    for order in numbers.orders(data, family):
        rows = numbers.of(data=data, family=family, order=order, blur=blur, width=1)
        at.append(order * shift)
        middles.append(_seeds(ax, at[-1], rows, measure, style["color"]))
    ax.plot(at, middles, "-o", ms=3.5, lw=1.3, **style)


def _seeds(ax: Any, at: float, rows: list[Row], measure: str, colour: str) -> float:
    """Draw each seed, and the interval of the test set; return the mean over seeds.

    The interval is drawn from end to end, whether or not it holds the mean: an unbiased ESD may be
    negative, its interval never is.
    """
    scale = SCALES[measure]
    low, high = (scale * mean([row[f"{measure}_{end}"] for row in rows]) for end in ("low", "high"))
    each = [scale * row[measure] for row in rows]
    ax.vlines(at, low, high, color=colour, lw=0.8)
    ax.plot([at] * len(each), each, ".", ms=3, alpha=0.6, color=colour)
    return mean(each)


def _wide(
    ax: Any, numbers: Numbers, data: str, blur: float, measure: str, shift: float, colour: str
) -> None:
    rows = [row for row in numbers.of(data=data, blur=blur) if row["width"] > 1]
    if rows:
        apart = 17 * shift**1.5
        value = _seeds(ax, apart, rows, measure, colour)
        ax.plot([apart], [value], "D", ms=4.5, mfc="white", color=colour)


def _order_axis(ax: Any, orders: list[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks([*orders, 17], [*(str(n) for n in orders), "wide\nplain"])
    ax.minorticks_off()
    ax.set_xlim(0.88, 20)


def nero_figure(numbers: Numbers) -> Figure:
    """Draw accuracy, confidence and ECE over the rotation of the test images (NERO plots)."""
    from orbical.figures.style import MODELS, SOFT, figure, styled

    data = numbers.photographs or numbers.data
    measures = ("accuracy", "confidence", "ece")
    whole = np.linspace(0, 2 * np.pi, 100)
    with styled():
        fig = figure(WIDTH, 2.1 * len(data) + 0.5)
        panels = fig.subplots(len(data), 3, squeeze=False, subplot_kw={"projection": "polar"})
        for row, name in zip(panels, data, strict=True):
            for ax, measure in zip(row, measures, strict=True):
                drawn = []
                for colour, network in zip(MODELS, SHOWN, strict=False):
                    rows = numbers.circle(name, network, 0.0)
                    if not rows:
                        continue
                    closed = [*rows, rows[0]]
                    turn = np.radians([each["angle"] for each in closed])
                    drawn += [each[measure] for each in rows]
                    values = [each[measure] for each in closed]
                    ax.plot(turn, values, color=colour, lw=1.1, label=_set(network))
                if measure == "ece":
                    floor = _calibrated(numbers, name, measure)
                    ax.plot(whole, 0 * whole + floor, ":", color=SOFT, lw=1.2, label="calibrated")
                _polar_axis(ax, measure, min(drawn), max(drawn))
            row[0].set_ylabel(TITLES[name].split(",")[0], labelpad=22, fontweight="bold")
        for ax, measure in zip(panels[0], measures, strict=True):
            ax.set_title(LABELS.get(measure, measure), loc="center")
        handles, names = panels[0, 2].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside lower center", ncols=6, fontsize=7)
    return fig


def _set(network: str) -> str:
    """Name a network by its group, set as mathematics.

    >>> _set("cyclic:12"), _set("cyclic:1")
    ('$C_{12}$', 'plain')
    """
    family, _, order = short(network).partition("_")
    return f"${family}_{{{order}}}$" if order else family


def _polar_axis(ax: Any, measure: str, least: float, most: float) -> None:
    """Begin the radius at 0 for an error, and below the least value for a share.

    What centre, ring and rim stand for is written below, where no curve crosses it.
    """
    low = 0.0 if measure == "ece" else 0.05 * np.floor(20 * least - 1)
    high = 0.01 * np.ceil(100 * most + 0.5)
    ax.set_ylim(low, high)
    ring = (low + high) / 2
    ax.set_yticks([ring, high], ["", ""])
    words = f"centre {low:.3g}, ring {ring:.3g}, rim {high:.3g}"
    ax.text(0.5, -0.13, words, transform=ax.transAxes, ha="center", va="top", fontsize=6)
    ax.set_xticks(np.radians([0, 90, 180, 270]), ["0°", "90°", "180°", "270°"], fontsize=6)
    ax.tick_params(pad=-2)


def invariance_figure(numbers: Numbers) -> Figure:
    """Draw the invariance gap over the circle against the order, and the refitted ECE."""
    from orbical.figures.style import LINES, MODELS, PAGE, SOFT, figure, styled

    with styled():
        fig = figure(PAGE, 2.7)
        left, right = fig.subplots(1, 2)
        for place, data in enumerate(numbers.data):
            for family, line in zip(FAMILIES, LINES, strict=False):
                orders = numbers.orders(data, family)
                where = {"data": data, "family": family, "width": 1, "blur": 0}
                gaps = [numbers.mean("gap_circle", order=n, **where) for n in orders]
                title = f"{TITLES[data].split(',')[0]}, ${FAMILIES[family]}_n$"
                left.plot(orders, gaps, line, marker="o", ms=3, color=MODELS[place], label=title)
            rows = numbers.of(data=data)
            right.plot(
                [row["ece"] for row in rows],
                [row["refitted_ece"] for row in rows],
                "o", ms=2.5, mew=0, alpha=0.6, color=MODELS[place],
                label=TITLES[data].split(",")[0],
            )  # fmt: skip
        left.set(xlabel="order n", ylabel="invariance gap over the circle")
        left.set_ylim(bottom=0)
        left.set_xscale("log", base=2)
        ticks = sorted({n for data in numbers.data for n in numbers.orders(data, "cyclic")})
        left.set_xticks(ticks, [str(n) for n in ticks])
        left.minorticks_off()
        most = max(max(row["ece"], row["refitted_ece"]) for row in numbers.results) * 1.05
        right.plot([0, most], [0, most], color=SOFT, lw=0.8, ls=":")
        right.set(xlim=(0, most), ylim=(0, most), aspect="equal")
        right.set(xlabel="ECE of the network's own softmax", ylabel="ECE, refitted on the test set")
        for ax in (left, right):
            ax.grid()
            ax.legend(fontsize=6.5, handlelength=3)
    return fig


def mirror_figure(numbers: Numbers) -> Figure:
    """Draw accuracy and ECE on generated galaxies, with the bounds of mirror-invariance."""
    from orbical.figures.style import MODELS, PAGE, SOFT, figure, styled

    data = "generated"
    with styled():
        fig = figure(PAGE, 3.0)
        panels = fig.subplots(1, 2)
        for ax, measure in zip(panels, ("accuracy", "ece"), strict=True):
            for place, (family, letter) in enumerate(FAMILIES.items()):
                style = {"color": MODELS[place], "label": f"${letter}_n$"}
                _along(ax, numbers, data, family, 0, measure, 1 + 0.03 * place, style)
            orders = numbers.orders(data, "dihedral")
            ax.set_xscale("log", base=2)
            ax.set_xticks(orders, [str(n) for n in orders])
            ax.minorticks_off()
            ax.set(xlabel="order n", ylabel=LABELS[measure])
            ax.grid()
        ceiling = numbers.bounds[0]["ceiling"]
        panels[0].axhline(ceiling, color=SOFT, ls="--", lw=1.2)
        panels[0].text(max(orders), ceiling + 0.01, CEILING, ha="right", fontsize=7, color=SOFT)
        panels[0].set_ylim(min(0.5, ceiling - 0.1), 1.02)
        at = [[r for r in numbers.bounds if r["network"] == f"dihedral:{n}"] for n in orders]
        lower = [mean([row["lower"] for row in rows]) for rows in at]
        upper = [mean([row["upper"] for row in rows]) for rows in at]
        panels[1].fill_between(
            orders, lower, upper, color=MODELS[1], alpha=0.12, lw=0, label="sharp interval of $D_n$"
        )
        handles, names = panels[1].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside lower center", ncols=len(names))
    return fig
