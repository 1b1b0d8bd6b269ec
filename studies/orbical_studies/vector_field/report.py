"""Numbers and figures of the vector-field study, from its results alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from orbical.calibration import gence_floor
from orbical.figures import INK, MODELS, SEQUENTIAL

from ..data.planar_fields import FIELDS, REACH
from ..framework import Results, where
from ..framework.drawing import legend_outside, subplots
from .measures import WORLDS
from .training import EQUIVARIANT, KINDS, PLAIN

CELL = ["field", "domain", "network", "variance"]


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    rows, last = results["results"], results["results"]["epoch"].max()
    groups = dict(iter(rows.groupby([*CELL, "epoch"])))
    curves = results["angles"].groupby([*CELL, "angle"]).mean(numeric_only=True)
    return {
        "at": lambda world, kind, epoch=last: groups[*world, *kind, epoch],
        "curve": lambda world, kind: curves.loc[*world, *kind],
        "limits": results["limits"].set_index(["field", "domain"]),
        "alike": partial(math.isclose, rel_tol=0.05),
        "worlds": WORLDS,
        "kinds": list(KINDS),
        "epochs": sorted(rows["epoch"].unique()),
        "rows": rows,
        "gence_floor": gence_floor,
        "factor": factor,
    }


def factor(larger: ArrayLike, smaller: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the ratio of two positive quantities over runs, by their logarithms.

    Example:
        >>> [round(end, 1) for end in factor([8.0, 10.0, 12.5], [1.0, 1.25, 0.8])]
        [6.0, 16.6]
    """
    from scipy.stats import ttest_ind

    test = ttest_ind(np.log(larger), np.log(smaller), equal_var=False)
    low, high = np.exp(test.confidence_interval(level))
    return float(low), float(high)


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw the fields, the error along the angle, and the variances against the distance."""
    yield "fields.png", _fields(results)
    yield "angles.png", _angles(results)
    yield "profile.png", _profile(results)


def _fields(results: Results) -> Figure:
    """Draw truth and both networks on the square, colored by their deviation (paper's Fig. 6)."""
    fig, panels = subplots(len(FIELDS), 3, 4.1)
    for row, (field, truth) in zip(panels, FIELDS.items(), strict=True):
        arrows = results["arrows"][results["arrows"]["field"] == field].set_index("network")
        shade = {"cmap": SEQUENTIAL, "clim": (0, arrows["deviation"].max())}
        for ax, network in zip(row[1:], (EQUIVARIANT, PLAIN), strict=True):
            x, y, u, v, deviation = arrows.loc[network, "x":].to_numpy().T
            ax.scatter(x, y, c=deviation, s=7, linewidths=0, **shade)
            drawn = _arrows(ax, x, y, u, v, deviation, **shade)
        places = arrows.loc[PLAIN, ["x", "y"]].assign(z=0.0).to_numpy()
        _arrows(row[0], x, y, *truth(torch.from_numpy(places)).T[:2], color=INK)
        fig.colorbar(drawn, ax=row, label="predicted deviation\n(all coordinates)", pad=0.01)
        row[0].set_ylabel(field, fontweight="bold")
    for ax, name in zip(panels[0], ("truth", EQUIVARIANT, PLAIN), strict=True):
        ax.set_title(name, loc="left")
    return fig


def _arrows(ax: Any, *columns: Any, **style: Any) -> Any:
    units = {"angles": "xy", "scale_units": "xy", "scale": 7.0, "width": 0.006}
    ends = (-1.12 * REACH, 1.12 * REACH)
    ax.set(aspect="equal", xlim=ends, ylim=ends, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax.quiver(*columns, **units, **style)


def _angles(results: Results) -> Figure:
    """Draw MSE and beta-NLL against the rotation of the test points (paper's Fig. 7)."""
    scalar = results["angles"][results["angles"]["variance"] == "scalar"]
    fig, panels = subplots(len(FIELDS), 2, 4.6, sharex=True, grid="both")
    for (field, domain, network, _), rows in scalar.groupby(CELL, sort=False):
        style = {"color": MODELS[network == PLAIN], "ls": "-" if domain == "square" else "--"}
        for place, name in enumerate(("xy_mse", "xy_beta_nll")):
            ax = panels[int(field == "sinusoid"), place]
            seeds = rows.pivot(index="angle", columns="seed", values=name)
            seeds.loc[360.0] = seeds.loc[0.0]
            ax.plot(seeds.mean(axis=1), lw=1.3, label=f"{network}, {domain}", **style)
            ends = seeds.min(axis=1), seeds.max(axis=1)
            ax.fill_between(seeds.index, *ends, color=style["color"], alpha=0.18, lw=0)
            ax.set_xticks(range(0, 361, 90))
    for row, field in zip(panels, FIELDS, strict=True):
        row[0].set(yscale="log", ylabel=f"{field}\nMSE, xy")
        row[1].set_ylabel("β-NLL, xy")
    for ax in panels[-1]:
        ax.set_xlabel("rotation of the test points in the plane (degrees)")
    legend_outside(panels[0, 0], "upper center", ncols=4)
    return fig


def _profile(results: Results) -> Figure:
    """Draw predicted variances on the spiral's disc against the distance, beside the optimum."""
    every: list[tuple[Any, ...]] = [
        ("outward", MODELS[2], "-", "radial"),
        ("along", MODELS[0], "-", "along the ring"),
        ("up", MODELS[3], (0, (4, 3)), "out of the plane"),
    ]
    shown = {
        (EQUIVARIANT, "scalar", "r²/3", 1 / 3): [("outward", MODELS[4], "-", "all three")],
        (EQUIVARIANT, "full", "r²/2", 1 / 2): every,
        (PLAIN, "diagonal", "0", 0): every,
    }
    spiral = results["profile"][results["profile"]["field"] == "spiral"]
    fig, panels = subplots(1, 3, 2.9, sharey=True, grid="both")
    for ax, (network, variance, formula, share) in zip(panels, shown, strict=True):
        rows = where(spiral, network=network, variance=variance)
        for way, color, dashes, label in shown[network, variance, formula, share]:
            seeds = rows.pivot(index="radius", columns="seed", values=way)
            labels = [label, *[None] * (seeds.shape[1] - 1)]
            ax.plot(seeds, color=color, lw=1.2, alpha=0.7, ls=dashes, label=labels)
        dotted = {"color": INK, "ls": ":", "lw": 1.8, "label": f"NLL-optimal, {formula}"}
        ax.plot(seeds.index, share * seeds.index**2, **dotted)
        ax.set_title(f"{network}, {variance}", loc="left")
        ax.set_xlabel("distance from the center")
        ax.legend(loc="upper left")
    panels[0].set_ylabel("predicted variance, spiral")
    return fig
