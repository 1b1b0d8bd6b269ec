"""Numbers and figures of the particle-flow study, from its results alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orbical.datasets import particle_pairs
from orbical.figures import INK, PAGE, SOFT, figure, model_colors
from orbical.groups import Group, parse
from orbical.zoo import flownet

from ..framework import Results, where
from ..framework.drawing import legend_outside, subplots
from ..framework.packs import read_pack
from .settings import GROUP, MODELS, SEED
from .six_kinds import decided
from .training_means import averaged, by_training, holds, interval, shipped, tests, trained_here

NEIGHBORS = 3
LEAST_LIKENESS = 1e-3  # range of likenesses below which the frames cannot tell the time
LETTER = (((-0.5, -0.8), (-0.5, 0.8), (0.55, 0.8)), ((-0.5, 0.1), (0.3, 0.1)))
Example = dict[str, np.ndarray]


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to: means by set and model, by kind of flow, by angle."""
    rows, turned = results["samples"], results["rotations"]
    rows = rows.assign(
        spread=rows["error_spread"] / rows["error_over_orbit"],
        ratio=rows["error_worst"] / rows["error_best"],
        better_than_mean=rows["consensus_error"] < rows["error_over_orbit"],
        better=rows["consensus_error"] < rows["error"],
    )
    by_set, by_kind = (
        rows.groupby([*keys, "model"], sort=False) for keys in (["set"], ["set", "kind"])
    )
    counts = by_kind.size().xs(MODELS[0], level="model")
    timing = results["truth-time"].pivot_table("likeness", ["set", "kind"], "share", sort=False)
    angles = turned.groupby(["model", "angle"], sort=False)["error"].mean().unstack("model")
    quarter = turned["angle"] % 90 == 0
    once, trained = shipped(results), trained_here(results)
    return {
        "models": MODELS,
        "sets": list(rows["set"].unique()),
        "pairs": counts,
        "rows": rows,
        "mean": by_set.mean(numeric_only=True).unstack("model"),
        "total": by_set.sum(numeric_only=True).unstack("model"),
        "size": counts.groupby("set", sort=False).sum(),
        "square": averaged(rows, ["set", "model"]).unstack("model"),
        "kinds": by_kind.mean(numeric_only=True).unstack("model").loc[counts.index],
        "pixels": results["pixels"],
        "laboratory": results["laboratory"],
        "six": decided(results["six-kinds"]),
        "timing": timing,
        "best_time": timing.apply(lambda row: best_time(row, timing.columns), axis=1),
        "told": _told_by_place(rows, "error_spread"),
        "told_size": _told_by_place(rows, "error_over_orbit"),
        "angles": angles,
        "turned": turned.groupby("model").mean(numeric_only=True),
        "quarter": turned[quarter].groupby("model").mean(numeric_only=True),
        "between": turned[~quarter].groupby("model").mean(numeric_only=True).reindex(MODELS),
        "runs": by_training(trained),
        "turbulence": by_training(trained, "turbulence"),
        "steps": results["trainings"]["steps"],
        "once": holds(once),
        "again": holds(trained),
        "within": lambda column, model, name: interval(once, column, model, name),
        "tests": {"of the package": tests(once), "trained again": tests(trained)},
        "shipped": {name: flownet.provenance(name) for name in flownet.NAMES},
        "parameters": {
            n: sum(p.numel() for p in flownet.load(n).parameters()) for n in flownet.NAMES
        },
        "gaussian": (1 + math.log(10)) / 10,
    }


def best_time(likeness: Sequence[float], shares: Sequence[float]) -> float:
    """Return the time at which the frames are most alike: the vertex of a parabola through them.

    It is NaN if the likeness hardly depends on the time.

    >>> best_time([0.90, 0.95, 0.90], [0.0, 0.5, 1.0]).__round__(2)
    0.5
    >>> best_time([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    nan
    """
    square, slope, _ = np.polyfit(shares, likeness, 2)
    flat = max(likeness) - min(likeness) < LEAST_LIKENESS or square >= 0
    return math.nan if flat else float(-slope / (2 * square))


def _told_by_place(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return, by set and model, how well the neighbors on the map tell a number of a pair."""
    groups = rows.groupby(["set", "model"], sort=False)[["map_1", "map_2", column]]
    return groups.apply(lambda some: with_neighbors(some.to_numpy())).unstack("model")


def with_neighbors(some: np.ndarray) -> float:
    """Correlate the ranks of a number and of its mean over the neighbors on a map.

    Rows are two coordinates and the number. NaN if all pairs have one number.
    """
    place, numbers = some[:, :2], some[:, 2]
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    np.fill_diagonal(apart, np.inf)
    around = numbers[apart.argsort(1)[:, :NEIGHBORS]].mean(1)
    if len(some) <= NEIGHBORS or min(np.ptp(numbers), np.ptp(around)) < 1e-4:
        return math.nan
    first, second = (values.argsort().argsort() for values in (numbers, around))
    return float(np.corrcoef(first, second)[0, 1])


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw the pairs, the orbit, the gap, time reversal, any angle, and one pair in detail."""
    example = read_pack(results.folder / "example.npz")
    yield "flows.png", _flows()
    yield "tiles.png", _tiles(results["elements"])
    yield "gap.png", _gap(results["samples"])
    yield "time.png", _time(results["samples"])
    yield "rotations.png", _rotations(results["rotations"])
    yield "maps.png", _maps(example)
    yield "quivers.png", _quivers(example)


def _plain(panels: Iterable[Any]) -> None:
    for one in panels:
        one.set(xticks=[], yticks=[])
        one.spines[:].set_visible(False)


def _bar(fig: Any, image: Any, panels: Iterable[Any], **look: Any) -> None:
    bar = fig.colorbar(image, ax=list(panels), **look)
    bar.set_label("end-point error (px)")
    bar.outline.set_visible(False)


def _glyph(
    axes: Any, group: Group, element: int, place: tuple[float, float], size: float, ink: str
) -> None:
    """Draw the letter F as an element turns and mirrors it, with an arrow for the time.

    `place` and `size` are in the units of the axes, whose rows count downwards.
    """
    linear = group.parts["plane"][element][:2, :2]
    for line in LETTER:
        x, y = (np.array(line) @ linear.T).T * size
        axes.plot(place[0] + x, place[1] - y, color=ink, lw=1.1, solid_capstyle="round")
    ahead, below = float(group.parts["time"][element]) * size, place[1] + 1.7 * size
    arrow = {"arrowstyle": "->", "color": ink, "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (place[0] + ahead, below), (place[0] - ahead, below), arrowprops=arrow)


def _flows() -> Figure:
    """Draw one generated pair of each kind: its first frame, and its flow to a scale of its own."""
    data = particle_pairs(6, size=128, seed=SEED)
    places = np.arange(6, 128, 12)
    fig, panels = subplots(2, 6, 2.7)
    for number, kind in enumerate(data["kinds"]):
        above, below = panels[:, number]
        above.imshow(data["pair"][number, 0, 0].numpy(), cmap="gray", vmin=0, vmax=1)
        above.set_title(kind)
        flow = data["flow"][number].numpy()
        speed = np.linalg.norm(flow, axis=0)
        below.imshow(speed, vmin=0, vmax=8, alpha=0.75)
        look = {"angles": "xy", "scale_units": "xy", "color": INK, "width": 0.011}
        some = flow[:, places][:, :, places]
        below.quiver(places, places, *some, scale=speed.max() / 16, **look)
        below.set_xlabel(f"up to {speed.max():.1f} px", fontsize=7)
    _plain(panels.flat)
    return fig


def _tiles(rows: pd.DataFrame) -> Figure:
    """Draw the mean error at the 16 elements: one row a set of pairs, one panel a model."""
    group, names = parse(GROUP), rows["set"].unique()
    keys = ["set", "model", "element"]
    total = rows.assign(error=rows["error"] * rows["pairs"]).groupby(keys)[["error", "pairs"]].sum()
    means = total["error"] / total["pairs"]
    fig, panels = subplots(len(names), len(MODELS), 1.95 * len(names) + 0.2, squeeze=False)
    for name, line in zip(names, panels, strict=True):
        top = means[name].max()
        for model, axes in zip(MODELS, line, strict=True):
            values = means[name, model].to_numpy()
            image = axes.imshow(values[group.layout.index], vmin=0, vmax=top)
            for (row, column), element in np.ndenumerate(group.layout.index):
                ink = INK if values[element] > 0.6 * top else "white"
                _glyph(axes, group, int(element), (column, row - 0.17), 0.17, ink)
                look = {"ha": "center", "va": "center", "fontsize": 5.2, "color": ink}
                axes.text(column, row + 0.37, f"{values[element]:.3f}", **look)
        line[0].set_ylabel(f"{name}\n{total['pairs'][name, MODELS[0], 0]} pairs")
        _bar(fig, image, line, fraction=0.03, pad=0.01, aspect=18)
    for model, axes in zip(MODELS, panels[0], strict=True):
        axes.set_title(model)
    _plain(panels.flat)
    return fig


def _gap(rows: pd.DataFrame) -> Figure:
    """Draw error and gap of each kind and model."""
    names = rows["set"].unique()
    columns = {"error": "error of the pairs as they are", "gap": "gap along the orbit"}
    fig, panels = subplots(len(names), 2, 2.5 * len(names), sharey="row", squeeze=False, grid="x")
    for name, line in zip(names, panels, strict=True):
        for axes, (column, title) in zip(line, columns.items(), strict=True):
            _dots_by_kind(axes, rows[rows["set"] == name], column)
            axes.set_title(f"{name}: {title}", loc="left", fontsize=8)
    title = "dots: pairs · bars: means"
    legend_outside(panels[0, 0], title=title, title_fontsize=7, ncols=4)
    return fig


def _dots_by_kind(axes: Any, rows: pd.DataFrame, column: str) -> None:
    """Draw a dot a pair and a bar at the mean, a line for each kind and model."""
    kinds = list(rows["kind"].unique())
    for number, (model, color) in enumerate(model_colors(MODELS).items()):
        for place, kind in enumerate(kinds):
            found = where(rows, kind=kind, model=model)[column]
            height = place + (number - 1.5) * 0.19
            axes.plot(found, [height] * len(found), ".", color=color, alpha=0.3, ms=4, mew=0)
            label = model if place == 0 else None
            axes.plot([found.mean()], [height], "|", color=color, ms=9, mew=2.2, label=label)
    axes.set_yticks(range(len(kinds)), labels=kinds)
    axes.set(ylim=(len(kinds) - 0.45, -0.55), xscale="log", xlabel="pixels")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _time(rows: pd.DataFrame) -> Figure:
    """Draw what reversed time does to each pair against the length of u . grad u."""
    top = rows["self_advection"].max() * 1.15
    fig, panels = subplots(1, len(MODELS), 2.6, sharex=True, sharey=True, grid="both")
    for axes, (model, color) in zip(panels, model_colors(MODELS).items(), strict=True):
        for name, marker in zip(rows["set"].unique(), "ox", strict=False):
            here = where(rows, set=name, model=model)
            x, y = here["self_advection"], here["time_difference"]
            look: dict[str, Any] = {"color": color, "ms": 3.5, "alpha": 0.7}
            axes.plot(x[y <= top], y[y <= top], marker, label=name, **look)
            axes.plot(x[y > top], np.full((y > top).sum(), 0.97 * top), "^", **look)
        axes.plot([0, top], [0, top], color=INK, lw=0.8, ls="--")
        axes.set_title(model, color=color)
        axes.set(xlabel="mean of |u · ∇u| (px)", ylim=(0, top))
    panels[0].set_ylabel("forward and backward\npredictions differ by (px)")
    panels[0].legend(loc="upper left", fontsize=7)
    return fig


def _rotations(rows: pd.DataFrame) -> Figure:
    """Draw error against angle, for all pairs and for each kind."""
    kinds = {"all pairs": rows} | dict(iter(rows.groupby("kind", sort=False)))
    fig, panels = subplots(2, 4, 4.4, subplot_kw={"projection": "polar"})
    for axes, (kind, here) in zip(panels.flat, kinds.items(), strict=False):
        curves = here.pivot_table("error", "angle", "model")
        turn = np.deg2rad([*curves.index, curves.index[0] + 360])
        for model, color in model_colors(MODELS).items():
            curve = curves[model].to_numpy()
            axes.plot(turn, [*curve, curve[0]], color=color, label=model, lw=1.3)
        axes.set_theta_zero_location("N")
        axes.set_ylim(0, curves.max().max() * 1.05)
        axes.set_thetagrids(range(0, 360, 90))
        axes.yaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 2.5, 5, 10], prune="lower"))
        axes.tick_params(labelsize=6, pad=0, colors=SOFT)
        axes.set_title(kind, fontsize=8)
        axes.spines["polar"].set_visible(False)
    for axes in fig.axes[len(kinds) :]:
        axes.set_visible(False)
    title = "radius: end-point error in pixels · angle: rotation of the input"
    legend_outside(fig.axes[0], ncols=4, title=title, title_fontsize=7)
    return fig


def _maps(example: Example) -> Figure:
    """Draw the error maps of one pair at all 16 elements, for one classical and one learned."""
    group, models = parse(GROUP), list(example["models"])
    shown = {name: models.index(name) for name in ("farneback", "directed")}
    top = float(np.quantile(example["error_map"][list(shown.values())], 0.99))
    fig = figure(PAGE, 3.9)
    outer: Any = fig.subfigures(1, 2, wspace=0.02)
    for part, (model, number) in zip(outer, shown.items(), strict=True):
        panels = part.subplots(4, 4)
        for (row, column), element in np.ndenumerate(group.layout.index):
            axes, error = panels[row, column], example["error_map"][number, element]
            image = axes.imshow(error.astype(float), vmin=0, vmax=top)
            score = f"{example['score'][number, element]:.3f}"
            axes.set_title(score, fontsize=6, pad=2, fontweight="normal")
            corner = axes.inset_axes((-0.34, 0.52, 0.32, 0.48))
            _glyph(corner, group, int(element), (0.0, -0.35), 0.5, INK)
            corner.set(xlim=(-1, 1), ylim=(1.2, -1.2))
            corner.set_axis_off()
        _plain(panels.flat)
        part.suptitle(model, fontsize=9)
        look = {"fraction": 0.05, "shrink": 0.7, "aspect": 40}
        _bar(part, image, panels.flat, location="bottom", **look)
    return fig


def _quivers(example: Example) -> Figure:
    """Draw answers at the identity and at the element that is worst for the directed network."""
    group, models = parse(GROUP), list(example["models"])
    worst = int(example["score"][models.index("directed")].argmax())
    top = float(np.quantile(example["error_map"].astype(float), 0.99))
    fastest = float(np.linalg.norm(example["truth_map"].astype(float), axis=2).max())
    fig, panels = subplots(2, 1 + len(MODELS), 3.3)
    for line, element in zip(panels, (group.identity, worst), strict=True):
        line[0].set(facecolor="#f2f2f2", aspect="equal", ylabel=_words(group, element))
        _arrows(line[0], example["truth_map"][0, element], fastest)
        for axes, number in zip(line[1:], map(models.index, MODELS), strict=True):
            error = example["error_map"][number, element].astype(float)
            image = axes.imshow(error, vmin=0, vmax=top, alpha=0.8)
            _arrows(axes, example["flow_map"][number, element], fastest)
            axes.set_xlabel(f"{example['score'][number, element]:.3f} px", fontsize=7)
    titles = {"truth": INK} | model_colors(MODELS)
    for axes, (name, color) in zip(panels[0], titles.items(), strict=True):
        axes.set_title(name, color=color)
    _plain(panels.flat)
    _bar(fig, image, panels.flat, fraction=0.02, pad=0.01, aspect=30)
    return fig


def _words(group: Group, element: int) -> str:
    coords = {name: values[element] for name, values in group.coords.items()}
    parts = [f"{coords['angle']:g}°"]
    parts += ["mirrored"] if coords["flip"] != "plain" else []
    parts += ["time reversed"] if coords["time"] < 0 else []
    return "as it is" if element == group.identity else ", ".join(parts)


def _arrows(axes: Any, field: np.ndarray, fastest: float) -> None:
    """Draw a flow `[2, 16, 16]` by 8 x 8 arrows; one as fast as `fastest` spans 2.2 cells."""
    places = np.arange(0.5, 16, 2)
    coarse = field.astype(float).reshape(2, 8, 2, 8, 2).mean((2, 4))
    look = {"angles": "xy", "scale_units": "xy", "pivot": "middle", "scale": fastest / 2.2}
    axes.quiver(places, places, *coarse, color=INK, width=0.012, headwidth=3.5, **look)
    axes.set(xlim=(-0.5, 15.5), ylim=(15.5, -0.5))
