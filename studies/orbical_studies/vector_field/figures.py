"""The vector-field study's figures, from its finished rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from orbical_studies.data.planar_fields import FIELDS, REACH

from ..pages import Row
from .tables import Data, Kind, World, chosen
from .training import EQUIVARIANT, PLAIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fields_figure(data: Data) -> Figure:
    """Draw truth and both networks on the square, coloured by their deviation (paper's Fig. 6)."""
    from orbical.figures.style import INK, PAGE, SEQUENTIAL, figure, styled

    with styled():
        fig = figure(PAGE, 4.1)
        panels = fig.subplots(len(FIELDS), 3)
        for row, field in zip(panels, FIELDS, strict=True):
            found = {
                name: [r for r in data["arrows"] if (r["field"], r["network"]) == (field, name)]
                for name in (EQUIVARIANT, PLAIN)
            }
            places = np.array([[r["x"], r["y"], 0.0] for r in found[PLAIN]])
            truth = FIELDS[field](torch.from_numpy(places)).numpy()
            _arrows(row[0], places, truth, color=INK)
            most = max(r["deviation"] for rows in found.values() for r in rows)
            for ax, rows in zip(row[1:], found.values(), strict=True):
                vectors = np.array([[r["u"], r["v"], 0.0] for r in rows])
                colours = np.array([r["deviation"] for r in rows])
                shading = {"cmap": SEQUENTIAL, "clim": (0, most)}
                ax.scatter(
                    places[:, 0],
                    places[:, 1],
                    c=colours,
                    s=7,
                    linewidths=0,
                    **{
                        "cmap": SEQUENTIAL,
                        "vmin": 0,
                        "vmax": most,
                    },
                )
                drawn = _arrows(ax, places, vectors, values=colours, **shading)
            fig.colorbar(drawn, ax=row, label="predicted deviation\n(all coordinates)", pad=0.01)
            row[0].set_ylabel(field, fontweight="bold")
        for ax, name in zip(panels[0], ("truth", EQUIVARIANT, PLAIN), strict=True):
            ax.set_title(name, loc="left")
    return fig


def _arrows(ax: Any, places: Any, vectors: Any, values: Any = None, **style: Any) -> Any:
    given = (places[:, 0], places[:, 1], vectors[:, 0], vectors[:, 1])
    drawn = ax.quiver(
        *(given if values is None else (*given, values)),
        angles="xy",
        scale_units="xy",
        scale=7.0,
        width=0.006,
        **style,
    )
    ends = REACH * 1.12
    ax.set(aspect="equal", xlim=(-ends, ends), ylim=(-ends, ends), xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)
    return drawn


def angles_figure(data: Data) -> Figure:
    """Draw MSE and beta-NLL against the rotation of the test points (paper's Fig. 7)."""
    from orbical.figures.style import MODELS, PAGE, figure, styled

    kinds: dict[Kind, str] = {(EQUIVARIANT, "scalar"): MODELS[0], (PLAIN, "scalar"): MODELS[1]}
    with styled():
        fig = figure(PAGE, 4.6)
        panels = fig.subplots(len(FIELDS), 2, sharex=True)
        for row, field in zip(panels, FIELDS, strict=True):
            for ax, column in zip(row, ("xy_mse", "xy_beta_nll"), strict=True):
                for kind, colour in kinds.items():
                    for domain, line in (("square", "-"), ("disc", "--")):
                        rows = chosen(data["angles"], (field, domain), kind)
                        label = f"{kind[0]}, {domain}"
                        _band(ax, rows, column, color=colour, ls=line, label=label)
                ax.grid()
            row[0].set_yscale("log")
            row[0].set_ylabel(f"{field}\nMSE, xy")
            row[1].set_ylabel("β-NLL, xy")
        for ax in panels[-1]:
            ax.set(xlabel="rotation of the test points in the plane (degrees)")
            ax.set_xticks(range(0, 361, 90))
        fig.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig


def _band(ax: Any, rows: list[Row], column: str, **style: Any) -> None:
    """Draw the mean over seeds along the angle, closed at 360 degrees, and the seeds' range."""
    angles = sorted({row["angle"] for row in rows})
    seeds = [[row[column] for row in rows if row["angle"] == angle] for angle in angles]
    closed = np.array([*seeds, seeds[0]])
    at = [*angles, 360.0]
    ax.plot(at, closed.mean(1), lw=1.3, **style)
    ax.fill_between(at, closed.min(1), closed.max(1), color=style["color"], alpha=0.18, lw=0)


def profile_figure(data: Data) -> Figure:
    """Draw predicted variances on the spiral's disc against the distance, beside the optimum."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    world: World = ("spiral", "disc")
    ways = {
        "outward": (MODELS[2], "radial"),
        "along": (MODELS[0], "along the ring"),
        "up": (MODELS[3], "out of the plane"),
    }
    with styled():
        fig = figure(PAGE, 2.9)
        panels = fig.subplots(1, 3, sharey=True)
        titles = ((EQUIVARIANT, "scalar"), (EQUIVARIANT, "full"), (PLAIN, "diagonal"))
        for ax, kind in zip(panels, titles, strict=True):
            rows = chosen(data["profile"], world, kind)
            radius = np.array(sorted({row["radius"] for row in rows}))
            squared = radius**2
            for way, (colour, label) in ways.items():
                if kind[1] == "scalar" and way != "outward":
                    continue
                name, shade = ("all three", MODELS[4]) if kind[1] == "scalar" else (label, colour)
                for seed in sorted({row["seed"] for row in rows}):
                    line = [row[way] for row in rows if row["seed"] == seed]
                    ax.plot(
                        radius,
                        line,
                        color=shade,
                        lw=1.2,
                        alpha=0.7,
                        ls=(0, (4, 3)) if way == "up" else "-",
                        label=name if seed == 0 else None,
                    )
            optimum = {
                "scalar": (squared / 3, "r²/3"),
                "full": (squared / 2, "r²/2"),
                "diagonal": (0 * squared, "0"),
            }[kind[1]]
            ax.plot(
                radius, optimum[0], color=INK, ls=":", lw=1.8, label=f"NLL-optimal, {optimum[1]}"
            )
            ax.set_title(f"{kind[0]}, {kind[1]}", loc="left")
            ax.set_xlabel("distance from the centre")
            ax.grid()
            ax.legend(loc="upper left")
        panels[0].set_ylabel("predicted variance, spiral")
    return fig
