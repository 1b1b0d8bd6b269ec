"""Numbers and figures of the detection study.

Two figures show photographs; they are drawn only where `train` has left its scans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from orbical.actions import Window
from orbical.calibration import bootstrap_interval
from orbical.figures import MODELS
from orbical.groups import translations
from orbical.zoo import detector

from ..framework import Results
from ..framework.drawing import subplots
from .images import CLASSES, REACH, WINDOW, unpack, views_to_test
from .measures import DARK, Array, agreement, neighbors_median, score_of, side_of
from .published import Order
from .tables import read_arrays, read_tables
from .training import JITTERS, SHOWN, TASK, WHOLE, scan_file


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to; the template compares, seed by seed."""
    levels, trainings, consensus = (results[n] for n in ("levels", "trainings", "consensus"))
    period = results["period"].assign(both=lambda rows: (rows["dx"] + rows["dy"]) / 2)
    repeated = period[period["jitter"] == 100].pivot(index="seed", columns="lag_px", values="both")
    ranges = levels.groupby("jitter")[["centre", "orbit"]]
    low, high = ranges.min(), ranges.max()
    overlap = np.maximum(low, low.shift()) <= np.minimum(high, high.shift())
    steps = levels.pivot(index="seed", columns="jitter").diff(axis=1)
    return {
        "published": results["published"].to_dict("records"),
        "order": Order(results["order"]),
        "ordered": len(results["order"]),
        "first_and_best": results["order"][["first", "best"]].mean(),
        "rings": results["published-rings"].to_dict("records"),
        "jitters": JITTERS,
        "levels": levels,
        "first": levels[levels["jitter"] == 0].set_index("seed"),
        "last": levels[levels["jitter"] == 100].set_index("seed"),
        "widens": (steps["width_px"].iloc[:, 1:] >= 0).all(axis=1),
        "lowers": (steps["centre"].iloc[:, 1:] <= 0).all(axis=1),
        "classes": results["classes"],
        "dark": results["dark-spots"],
        "period": period,
        "repeated": repeated.reindex(columns=[8, 12, 16]),
        "consensus": consensus,
        "by_level": consensus.groupby("jitter").mean(),
        "by_seed": consensus.groupby("seed"),
        "certainty": results["certainty"].set_index("jitter").loc[0],
        "used": trainings[trainings["seed"].isin(levels["seed"])],
        "incomplete": trainings["seed"].nunique() - levels["seed"].nunique(),
        "overlaps": int(overlap.sum().sum()),
        "tested": results["objects"][["object", "image"]].nunique(),
        "over_images": over_images(results["objects"], levels),
    }


def over_images(objects: pd.DataFrame, levels: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Return means over key objects and trainings, with 95 % intervals over images.

    The score of each object at the corners is not stored, but it is 0 or more, and its mean is
    known. So no draw of images has a higher one than if all of it came from the image that is
    drawn most often: `centre_minus_corner` is a lower bound, whose interval is too wide.
    """
    scores = objects.pivot(index="object", columns="jitter", values=["centre", "orbit"])
    first, last = scores.xs(0, axis=1, level=1), scores.xs(100, axis=1, level=1)
    image = objects.drop_duplicates("object").set_index("object")["image"]
    corner = levels[levels["jitter"] == 0]["corner"].mean() * len(image)

    def interval(values: pd.Series, corners: float = 0.0) -> tuple[float, ...]:
        found = values.groupby(image).agg(["sum", "count"]).reset_index().to_numpy(float)

        def measure(rows: Array) -> float:
            most = np.unique(rows[:, 0], return_counts=True)[1].max()
            return float((rows[:, 1].sum() - most * corners) / rows[:, 2].sum())

        return bootstrap_interval(found, measure)

    return {
        **{f"{name}_0": interval(first[name]) for name in first},
        **{f"{name}_100": interval(last[name]) for name in last},
        "centre_lost": interval(first["centre"] - last["centre"]),
        "orbit_gained": interval(last["orbit"] - first["orbit"]),
        "centre_minus_corner": interval(first["centre"], corner),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw the means of all objects; single objects too where scans and photographs are at hand."""
    yield "published.png", _published(results["published-shifts"])
    yield "aggregate.png", _aggregate(results["shifts"])
    yield "section.png", _section(results["section"], results["levels"])
    if all(scan_file(results.work, jitter).is_file() for jitter in SHOWN):
        half, whole = (Photographs(results.work, jitter) for jitter in SHOWN)
        yield "individual.png", _individual(whole)
        yield "consensus.png", _consensus(half)


def _heat(axes: Any, values: Array, reach: int, **look: Any) -> Any:
    """Draw numbers of all shifts `[K]` up to `reach` pixels, dy up and dx to the right."""
    side = side_of(values)
    end = reach * side / (side - 1)  # a shift lies in the middle of its cell
    place = (-end, end, -end, end)
    shown = axes.imshow(values.reshape(side, side), extent=place, **{"vmin": 0.0, **look})
    axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach))
    return shown


def _bar(shown: Any, axes: Any, label: str) -> None:
    """Put a color bar beside a heat map, of its height."""
    axes.figure.colorbar(shown, cax=axes.inset_axes((1.05, 0.0, 0.06, 1.0)), label=label)


def _published(shifts: pd.DataFrame) -> Figure:
    """Draw what published detectors find at each shift, in percent, and how sure they are."""
    columns = {
        "found": "key objects found",
        "confidence": "confidence",
        "AP": "average precision",
        "confidence_minus_accuracy": "confidence\nminus accuracy",
    }
    names = list(shifts["detector"].unique())
    fig, panels = subplots(
        len(names), len(columns), 0.5 + 1.65 * len(names), sharex=True, sharey=True, squeeze=False
    )
    for line, name in zip(panels, names, strict=True):
        mine = shifts[shifts["detector"] == name]
        for axes, column in zip(line, columns, strict=True):
            signed = column == "confidence_minus_accuracy"
            look = {"cmap": "RdBu_r", "vmin": -0.3, "vmax": 0.3} if signed else {"vmax": 1.0}
            shown = _heat(axes, mine[column].to_numpy(), int(mine["right"].max()), **look)
            for row in mine.itertuples():
                value = getattr(row, column)
                color = "white" if sum(shown.to_rgba(value)[:3]) < 1.3 else "black"
                text = f"{100 * value:.0f}"
                axes.text(row.right, row.up, text, color=color, ha="center", va="center")
        line[0].set_ylabel(f"{name}\nup (px)")
    for axes, title in zip(panels[0], columns.values(), strict=True):
        axes.set_title(title)
    for axes in panels[-1]:
        axes.set_xlabel("right (px)")
    return fig


def _aggregate(shifts: pd.DataFrame) -> Figure:
    """Draw the mean score, its shape, AP and calibration error at each shift, for each level."""
    score, ap, error = (
        shifts[[f"{name}_{jitter}" for jitter in JITTERS]].set_axis(JITTERS, axis=1)
        for name in ("score", "ap", "ece")
    )
    rows = {
        "IoU x confidence": score,
        "relative to its best": score / score.max().clip(lower=1e-9),
        "AP at IoU 0.5": ap,
        "ECE of detections": error,
    }
    fig, panels = subplots(len(rows), len(JITTERS), 5.4, sharex=True, sharey=True)
    for line, (title, levels) in zip(panels, rows.items(), strict=True):
        for axes, jitter in zip(line, JITTERS, strict=True):
            reach, high = int(shifts["dx"].max()), levels.max().max()
            shown = _heat(axes, levels[jitter].to_numpy(), reach, vmax=high)
        line[0].set_ylabel("dy (px)")
        _bar(shown, axes, title)
    for axes, jitter in zip(panels[0], JITTERS, strict=True):
        axes.set_title(f"jitter {jitter} %")
    for axes in panels[-1]:
        axes.set_xlabel("dx (px)")
    return fig


def _section(section: pd.DataFrame, levels: pd.DataFrame) -> Figure:
    """Draw the mean score along dx at dy = 0, and how wide the peak is, of every training."""
    fig, (along, width) = subplots(1, 2, 2.7, width_ratios=(1.6, 1), grid="y")
    for jitter, color in zip(JITTERS, MODELS, strict=False):
        each = section[section["jitter"] == jitter].groupby("dx")["score"]
        mean, band = each.mean(), {"color": color, "alpha": 0.25, "lw": 0}
        along.fill_between(mean.index, each.min(), each.max(), **band)
        along.plot(mean, color=color, label=f"{jitter} %")
        values = levels[levels["jitter"] == jitter]
        look: dict[str, Any] = {"ms": 3.5, "mfc": "none", "color": color}
        width.plot(values["jitter"], values["width_px"], "o", **look)
    along.set(xlabel="dx (px), dy = 0", ylabel="IoU x confidence", ylim=(0, None))
    along.legend(title="jitter", loc="upper right")
    width.set(xlabel="jitter (%)", ylabel="width of the peak (px)", ylim=(0, None))
    width.set_xticks(JITTERS)
    return fig


class Photographs:
    """The detector of one level, its whole scan, and the key objects to show.

    Args:
        work: Folder where `train` stored them.
        jitter: The level.
    """

    def __init__(self, work: Path, jitter: int) -> None:
        path = scan_file(work, jitter)
        self.work, self.jitter = work, jitter
        self.scan = read_arrays(path)
        self.score = score_of(self.scan)
        self.group = translations(REACH, 2 * REACH // (side_of(self.score) - 1))
        self.net = detector.read(path.with_suffix(".safetensors"))
        self.images, self.objects = views_to_test(unpack(work)["test"], len(self.score))

    def views(self, sample: int, elements: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Return views `[k, 3, w, w]`, detections `[k, M, 6]` and the key object's box `[k, 5]`."""
        chosen = self.group[np.array(elements)]
        views = Window(WINDOW).apply(chosen, self.images[sample : sample + 1])[:, 0]
        with torch.inference_mode():
            rows = TASK.read(self.net(views))
        moved = TASK.output.move(chosen, self.objects[None, [sample]])
        return views, rows, moved[:, 0, 0]

    def darkest(self) -> tuple[int, int, int]:
        """Find the darkest spot: key object, shift, and the best of the eight shifts around it.

        The outermost shifts are left out: the object may be cut there.
        """
        side = side_of(self.score)
        rows, columns = np.divmod(np.arange(side**2), side)
        inside = (np.minimum(rows, columns) > 1) & (np.maximum(rows, columns) < side - 2)
        fall = np.where(inside, neighbors_median(self.score) - self.score, -1.0)
        sample, element = map(int, np.unravel_index(int(fall.argmax()), fall.shape))
        row, column = divmod(element, side)
        near = (np.abs(rows - row) <= 1) & (np.abs(columns - column) <= 1)
        near[element] = False
        return sample, element, int(np.where(near, self.score[sample], -1.0).argmax())


def _draw_boxes(axes: Any, view: Tensor, rows: Tensor, key: Tensor, most: int) -> None:
    """Draw a view with the key object in white and the most confident detections."""

    def outline(box: Tensor, color: str, width: float) -> None:
        left, top, right, bottom = box[:4].tolist()
        corner, size = (left, top), (right - left, bottom - top)
        axes.add_patch(Rectangle(corner, *size, fill=False, color=color, lw=width))

    axes.imshow(view.permute(1, 2, 0).numpy())
    outline(key, "white", 1.6)
    for place, row in enumerate(rows[rows[:, 5] >= 0][:most]):
        color = MODELS[place + 1]
        outline(row, color, 1.3)
        look: dict[str, Any] = {
            "color": "white",
            "fontsize": 6.5,
            "va": "top",
            "transform": axes.transAxes,
        }
        look["bbox"] = {"facecolor": color, "lw": 0, "pad": 1.2}
        label = f"{place + 1}. {CLASSES[int(row[5])]} {float(row[4]):.2f}"
        axes.text(0.02, 0.98 - 0.1 * place, label, **look)
    axes.set_axis_off()
    axes.set(xlim=(0, WINDOW), ylim=(WINDOW, 0))


def _individual(shown: Photographs) -> Figure:
    """Draw one key object's plot with a dark spot, and the detections there and beside it."""
    sample, dark, bright = shown.darkest()
    views, rows, keys = shown.views(sample, (dark, bright))
    score = shown.score[sample]
    place = np.stack([shown.group.coords["dx"], shown.group.coords["dy"]], 1)
    away = 13 * np.sign(place[dark] - place[bright])
    fig, (first, *others) = subplots(1, 3, 2.6, width_ratios=(1.25, 1, 1))
    _bar(_heat(first, score, REACH, vmax=float(score.max())), first, "IoU x confidence")
    for number, (axes, element) in enumerate(zip(others, (dark, bright), strict=True)):
        sign, (dx, dy) = "ab"[number], place[element]
        first.plot(dx, dy, marker="o", ms=6, mfc="none", mec="white", mew=1.2)
        look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
        look["bbox"] = {"facecolor": "white", "lw": 0, "pad": 1}
        first.annotate(sign, (dx, dy), xytext=away * (-1) ** number, **look)
        _draw_boxes(axes, views[number], rows[number], keys[number], 3)
        axes.set_title(f"({sign}) dx {dx:g}, dy {dy:g}: {score[element]:.2f}", loc="left")
    first.set(xlabel="dx (px)", ylabel="dy (px)")
    first.set_title(f"{CLASSES[int(keys[0, 4])]}, jitter {shown.jitter} %", loc="left")
    return fig


def _consensus(shown: Photographs) -> Figure:
    """Draw one key object's plots against truth and consensus, and how alike they are for all."""
    # A typical object among those with a score to speak of: its correlation is the median.
    mean = shown.score.mean(1)
    known = np.flatnonzero(mean > min(DARK, mean.max() - 1e-9))
    order = known[np.argsort(agreement(shown.scan)[known])]
    sample = int(order[len(order) // 2])
    views, _, keys = shown.views(sample, [shown.group.identity])
    clusters = torch.from_numpy(np.nan_to_num(shown.scan["consensus"][sample, :, :6], nan=-1.0))
    against = np.nan_to_num(shown.scan["score_vs_consensus"][sample])
    plots = {"vs truth": shown.score[sample], "vs consensus": against}
    fig, panels = subplots(1, 4, 2.5, width_ratios=(1, 1.1, 1.1, 1.4))
    _draw_boxes(panels[0], views[0], clusters, keys[0], 2)
    panels[0].set_title("Consensus", loc="left")
    for axes, (title, values) in zip(panels[1:3], plots.items(), strict=True):
        high = float(max(map(np.max, plots.values())))
        drawn = _heat(axes, values, REACH, vmax=high)
        axes.set_title(title, loc="left")
        axes.set_xlabel("dx (px)")
    panels[1].set_ylabel("dy (px)")
    _bar(drawn, panels[2], "IoU x confidence")
    colors = dict(zip(JITTERS, MODELS, strict=False))
    objects = read_tables(shown.work)[1]["objects"]
    for (jitter, seed), found in objects.groupby(["jitter", "seed"]):
        values = np.sort(found["correlation"].dropna())
        share = np.arange(1, len(values) + 1) / max(1, len(values))
        label = f"{jitter} %" if seed == WHOLE else None
        panels[3].plot(values, share, color=colors[jitter], lw=0.9, label=label)
    panels[3].set(xlabel="correlation of the two plots", ylabel="share of key objects")
    panels[3].set(xlim=(-0.75, 1), ylim=(0, 1))
    panels[3].legend(title="jitter", loc="upper left", fontsize=6, handlelength=1)
    panels[3].grid()
    return fig
