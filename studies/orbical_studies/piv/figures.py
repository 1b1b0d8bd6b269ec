"""The particle-flow study's figures, from the files beside its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbical.groups import Group, parse

from ..pages import Row, read_csv
from .settings import GROUP, MODELS, SEED
from .tables import chosen, kinds_of, mean, sets_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER = (((-0.5, -0.8), (-0.5, 0.8), (0.55, 0.8)), ((-0.5, 0.1), (0.3, 0.1)))


def glyph(
    axes: Any, group: Group, element: int, place: tuple[float, float], size: float, ink: str
) -> None:
    """Draw the letter F as an element turns and mirrors it, with an arrow for the time.

    `place` and `size` are in the units of the axes, whose rows count downwards.
    """
    linear = group.parts["plane"][element][:2, :2]
    for line in LETTER:
        x, y = (np.array(line) @ linear.T).T * size
        axes.plot(place[0] + x, place[1] - y, color=ink, lw=1.1, solid_capstyle="round")
    ahead = float(group.parts["time"][element])
    axes.annotate(
        "",
        (place[0] + ahead * size, place[1] + 1.7 * size),
        (place[0] - ahead * size, place[1] + 1.7 * size),
        arrowprops={"arrowstyle": "->", "color": ink, "lw": 0.8, "shrinkA": 0, "shrinkB": 0},
    )


def flows_figure() -> Figure:
    """Draw one generated pair of each kind: its first frame, and its flow to a scale of its own."""
    from orbical.datasets import particle_pairs
    from orbical.figures.style import INK, PAGE, figure, styled

    data = particle_pairs(6, size=128, seed=SEED)
    places = np.arange(6, 128, 12)
    with styled():
        fig = figure(PAGE, 2.7)
        panels = fig.subplots(2, 6)
        for number, kind in enumerate(data["kinds"]):
            above, below = panels[:, number]
            above.imshow(data["pair"][number, 0, 0].numpy(), cmap="gray", vmin=0, vmax=1)
            above.set_title(kind)
            flow = data["flow"][number].numpy()
            speed = np.linalg.norm(flow, axis=0)
            below.imshow(speed, vmin=0, vmax=8, alpha=0.75)
            some = flow[:, places][:, :, places]
            below.quiver(
                places,
                places,
                *some,
                angles="xy",
                scale_units="xy",
                scale=speed.max() / 16,
                color=INK,
                width=0.011,
            )
            below.set_xlabel(f"up to {speed.max():.1f} px", fontsize=7)
        _plain(panels.flat)
    return fig


def tiles_figure(rows: Sequence[Row]) -> Figure:
    """Draw the aggregate plots over the 16 elements: one row a set of pairs, one panel a model."""
    from orbical.figures.style import INK, PAGE, figure, styled

    group = parse(GROUP)
    names = sets_of(rows)
    with styled():
        fig = figure(PAGE, 1.95 * len(names) + 0.2)
        panels = np.atleast_2d(fig.subplots(len(names), len(MODELS)))
        for name, line in zip(names, panels, strict=True):
            means = {
                model: [
                    _over_pairs(chosen(rows, set=name, model=model, element=element))
                    for element in range(len(group))
                ]
                for model in MODELS
            }
            top = max(max(values) for values in means.values())
            for model, axes in zip(MODELS, line, strict=True):
                values = np.array(means[model])
                cells = values[group.layout.index]
                image = axes.imshow(cells, vmin=0, vmax=top)
                for (row, column), element in np.ndenumerate(group.layout.index):
                    ink = INK if values[element] > 0.6 * top else "white"
                    glyph(axes, group, int(element), (column, row - 0.17), 0.17, ink)
                    axes.text(
                        column,
                        row + 0.37,
                        f"{values[element]:.3f}",
                        ha="center",
                        va="center",
                        fontsize=5.2,
                        color=ink,
                    )
                if name == names[0]:
                    axes.set_title(model)
            line[0].set_ylabel(f"{name}\n{_count(rows, name)} pairs")
            bar = fig.colorbar(image, ax=list(line), fraction=0.03, pad=0.01, aspect=18)
            bar.set_label("end-point error (px)")
            bar.outline.set_visible(False)
        _plain(panels.flat)
    return fig


def gap_figure(rows: Sequence[Row]) -> Figure:
    """Draw error and gap of each kind and model."""
    from orbical.figures.style import PAGE, figure, styled

    names = sets_of(rows)
    columns = {"error": "error of the pairs as they are", "gap": "gap along the orbit"}
    with styled():
        fig = figure(PAGE, 2.5 * len(names))
        panels = np.atleast_2d(fig.subplots(len(names), 2, sharey="row"))
        for name, line in zip(names, panels, strict=True):
            for axes, (column, words) in zip(line, columns.items(), strict=True):
                _dots_by_kind(axes, chosen(rows, set=name), column, kinds_of(rows, name))
                axes.set_title(f"{name}: {words}", loc="left", fontsize=8)
        fig.legend(
            *line[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            title="dots: pairs · bars: means",
            title_fontsize=7,
        )
    return fig


def _dots_by_kind(axes: Any, rows: Sequence[Row], column: str, kinds: Sequence[str]) -> None:
    """Draw a dot a pair and a bar at the mean, a line for each kind and model."""
    from orbical.figures.style import model_colors

    for number, (model, colour) in enumerate(model_colors(MODELS).items()):
        for place, kind in enumerate(kinds):
            found = [row[column] for row in chosen(rows, kind=kind, model=model)]
            height = place + (number - 1.5) * 0.19
            dots: dict[str, Any] = {"alpha": 0.3, "ms": 4, "mew": 0}
            axes.plot(found, [height] * len(found), ".", color=colour, **dots)
            label = model if place == 0 else None
            axes.plot([np.mean(found)], [height], "|", color=colour, ms=9, mew=2.2, label=label)
    axes.set_yticks(range(len(kinds)), labels=kinds)
    axes.set_ylim(len(kinds) - 0.45, -0.55)
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x")
    axes.set_xlabel("pixels")


def time_figure(rows: Sequence[Row]) -> Figure:
    """Draw what reversed time does to each pair against the length of u . grad u."""
    from orbical.figures.style import INK, PAGE, figure, model_colors, styled

    colours = model_colors(MODELS)
    with styled():
        fig = figure(PAGE, 2.6)
        panels = fig.subplots(1, len(MODELS), sharex=True, sharey=True)
        top = max(row["self_advection"] for row in rows) * 1.15
        for axes, model in zip(panels, MODELS, strict=True):
            for name, marker in zip(sets_of(rows), "ox", strict=False):
                here = chosen(rows, set=name, model=model)
                x, y = (
                    np.array([row[column] for row in here])
                    for column in ("self_advection", "time_difference")
                )
                look: dict[str, Any] = {"color": colours[model], "ms": 3.5, "alpha": 0.7}
                axes.plot(x[y <= top], y[y <= top], marker, label=name, **look)
                axes.plot(x[y > top], np.full((y > top).sum(), 0.97 * top), "^", **look)
            axes.plot([0, top], [0, top], color=INK, lw=0.8, ls="--")
            axes.set_title(model, color=colours[model])
            axes.set_xlabel("mean of |u · ∇u| (px)")
            axes.set_ylim(0, top)
            axes.grid()
        panels[0].set_ylabel("forward and backward\nanswers differ by (px)")
        panels[0].legend(loc="upper left", fontsize=7)
    return fig


def rotations_figure(rows: Sequence[Row]) -> Figure:
    """Draw error against angle, for all pairs and for each kind."""
    from orbical.figures.style import PAGE, SOFT, figure, model_colors, styled

    colours = model_colors(MODELS)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    with styled():
        fig = figure(PAGE, 4.4)
        panels = fig.subplots(2, 4, subplot_kw={"projection": "polar"}).flat
        for axes, kind in zip(panels, [None, *kinds], strict=False):
            top = 0.0
            for model in MODELS:
                here = (
                    chosen(rows, model=model)
                    if kind is None
                    else chosen(rows, model=model, kind=kind)
                )
                angles = sorted({row["angle"] for row in here})
                curve = [mean(chosen(here, angle=angle), "error") for angle in angles]
                top = max(top, *curve)
                turn = np.deg2rad([*angles, angles[0] + 360])
                axes.plot(turn, [*curve, curve[0]], color=colours[model], label=model, lw=1.3)
            axes.set_theta_zero_location("N")
            axes.set_ylim(0, top * 1.05)
            axes.set_thetagrids(range(0, 360, 90))
            axes.yaxis.set_major_locator(_ticks())
            axes.tick_params(labelsize=6, pad=0, colors=SOFT)
            axes.set_title("all pairs" if kind is None else kind, fontsize=8)
            axes.spines["polar"].set_visible(False)
        for axes in list(fig.axes)[len(kinds) + 1 :]:
            axes.set_visible(False)
        fig.legend(
            *fig.axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            title="radius: end-point error in pixels · angle: rotation of the input",
            title_fontsize=7,
        )
    return fig


def maps_figure(example: dict[str, np.ndarray]) -> Figure:
    """Draw the error maps of one pair at all 16 elements, for one classical and one learned."""
    from orbical.figures.style import INK, PAGE, figure, styled

    group = parse(GROUP)
    models = [str(name) for name in example["models"]]
    shown = ("farneback", "directed")
    top = float(np.quantile(example["error_map"][[models.index(m) for m in shown]], 0.99))
    with styled():
        fig = figure(PAGE, 3.9)
        outer: Any = fig.subfigures(1, 2, wspace=0.02)
        for part, model in zip(outer, shown, strict=True):
            panels = part.subplots(4, 4)
            number = models.index(model)
            for (row, column), element in np.ndenumerate(group.layout.index):
                axes = panels[row, column]
                image = axes.imshow(
                    example["error_map"][number, element].astype(float), vmin=0, vmax=top
                )
                axes.set_title(
                    f"{example['score'][number, element]:.3f}",
                    fontsize=6,
                    pad=2,
                    fontweight="normal",
                )
                corner = axes.inset_axes((-0.34, 0.52, 0.32, 0.48))
                glyph(corner, group, int(element), (0.0, -0.35), 0.5, INK)
                corner.set(xlim=(-1, 1), ylim=(1.2, -1.2))
                corner.set_axis_off()
            _plain(panels.flat)
            part.suptitle(model, fontsize=9)
            bar = part.colorbar(
                image, ax=list(panels.flat), location="bottom", fraction=0.05, shrink=0.7, aspect=40
            )
            bar.set_label("end-point error (px)")
            bar.outline.set_visible(False)
    return fig


def quiver_figure(example: dict[str, np.ndarray]) -> Figure:
    """Draw answers at the identity and at the element that is worst for the directed network."""
    from orbical.figures.style import INK, PAGE, figure, model_colors, styled

    group = parse(GROUP)
    models = [str(name) for name in example["models"]]
    colours = model_colors(MODELS)
    worst = int(example["score"][models.index("directed")].argmax())
    top = float(np.quantile(example["error_map"].astype(float), 0.99))
    fastest = float(np.linalg.norm(example["truth_map"].astype(float), axis=2).max())
    image: Any = None
    with styled():
        fig = figure(PAGE, 3.3)
        panels = fig.subplots(2, 1 + len(MODELS))
        for line, element in zip(panels, (group.identity, worst), strict=True):
            line[0].set_facecolor("#f2f2f2")
            line[0].set_aspect("equal")
            _arrows(line[0], example["truth_map"][0, element], fastest)
            for axes, model in zip(line[1:], MODELS, strict=True):
                number = models.index(model)
                error = example["error_map"][number, element].astype(float)
                image = axes.imshow(error, vmin=0, vmax=top, alpha=0.8)
                _arrows(axes, example["flow_map"][number, element], fastest)
                axes.set_xlabel(f"{example['score'][number, element]:.3f} px", fontsize=7)
            line[0].set_ylabel("as it is" if element == group.identity else _words(group, element))
        for axes, name in zip(panels[0], ("truth", *MODELS), strict=True):
            axes.set_title(name, color=colours.get(name, INK))
        _plain(panels.flat)
        bar = fig.colorbar(image, ax=list(panels.flat), fraction=0.02, pad=0.01, aspect=30)
        bar.set_label("end-point error (px)")
        bar.outline.set_visible(False)
    return fig


def _arrows(axes: Any, field: np.ndarray, fastest: float) -> None:
    """Draw a flow `[2, 16, 16]` by 8 x 8 arrows; one as fast as `fastest` spans 2.2 cells."""
    from orbical.figures.style import INK

    places = np.arange(0.5, 16, 2)
    axes.quiver(
        places,
        places,
        *field.astype(float).reshape(2, 8, 2, 8, 2).mean((2, 4)),
        angles="xy",
        scale_units="xy",
        pivot="middle",
        scale=fastest / 2.2,
        color=INK,
        width=0.012,
        headwidth=3.5,
    )
    axes.set(xlim=(-0.5, 15.5), ylim=(15.5, -0.5))


def figures_of(folder: Path, samples: Sequence[Row], rotations: Sequence[Row]) -> list[Path]:
    """Draw and write all figures."""
    from orbical.figures import save

    with np.load(folder / "example.npz", allow_pickle=False) as archive:
        example = {name: archive[name] for name in archive.files}
    made = {
        "flows": flows_figure(),
        "tiles": tiles_figure(read_csv(folder / "elements.csv")),
        "gap": gap_figure(samples),
        "time": time_figure(samples),
        "rotations": rotations_figure(rotations),
        "maps": maps_figure(example),
        "quivers": quiver_figure(example),
    }
    return [save(figure, folder / f"{name}.png") for name, figure in made.items()]


def _count(rows: Sequence[Row], name: str) -> int:
    here = chosen(rows, set=name, model=MODELS[0], element=0)
    return sum(int(row["pairs"]) for row in here)


def _over_pairs(rows: Sequence[Row]) -> float:
    """Average the kinds of flow as often as they have pairs."""
    return sum(row["error"] * row["pairs"] for row in rows) / sum(row["pairs"] for row in rows)


def _words(group: Group, element: int) -> str:
    coords = {name: values[element] for name, values in group.coords.items()}
    parts = [f"{coords['angle']:g}°"]
    parts += ["mirrored"] if coords["flip"] != "plain" else []
    parts += ["time reversed"] if coords["time"] < 0 else []
    return ", ".join(parts)


def _plain(axes: Any) -> None:
    for one in axes:
        one.set_xticks([])
        one.set_yticks([])
        one.spines[:].set_visible(False)


def _ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(2, steps=[1, 2, 2.5, 5, 10], prune="lower")
