"""The detection study's figures, from finished numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from orbical.actions import Window
from orbical.groups import Group, translations
from orbical.tasks.detection_matching import Detections
from orbical.zoo import detector

from ..pages import Row
from .scans import Results, WholeScans, member
from .settings import JITTERS, RADIUS, TASK, WHOLE, WINDOW
from .summaries import Array, agreement, neighbours_median
from .tables import values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRUTH = "white"


def _heat(axes: Any, group: Group, values: Any, low: float, high: float) -> Any:
    """Draw numbers of all shifts `[K]`, dy up and dx to the right."""
    cells = np.asarray(values)[group.layout.index]
    reach = float(np.max(group.coords["dx"]))
    end = reach * len(cells) / (len(cells) - 1)  # a shift lies in the middle of its cell
    shown = axes.imshow(cells, vmin=low, vmax=high, extent=(-end, end, -end, end))
    axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach))
    return shown


def _bar(shown: Any, axes: Any, label: str) -> None:
    """Put a colour bar right of a heat map, of its height."""
    beside = axes.inset_axes((1.05, 0.0, 0.06, 1.0))
    axes.figure.colorbar(shown, cax=beside, label=label)


def aggregate_figure(shifts: Sequence[Row]) -> Figure:
    """Draw the mean score, its shape, AP and calibration error at each shift, for each level.

    Args:
        shifts: rows of `numbers.map_rows`.
    """
    from orbical.figures.style import PAGE, figure, styled

    def maps(name: str) -> dict[int, Array]:
        return {jitter: np.array([row[f"{name}_{jitter}"] for row in shifts]) for jitter in JITTERS}

    rows = {
        "IoU x confidence": maps("score"),
        "relative to its best": {
            jitter: values / max(values.max(), 1e-9) for jitter, values in maps("score").items()
        },
        "AP at IoU 0.5": maps("ap"),
        "ECE of detections": maps("ece"),
    }
    group = translations(RADIUS, 2 * RADIUS // (round(len(shifts) ** 0.5) - 1))
    with styled():
        fig = figure(PAGE, 5.4)
        panels: Any = fig.subplots(len(rows), len(JITTERS), sharex=True, sharey=True)
        for number, (title, levels) in enumerate(rows.items()):
            line = panels[number]
            high = max(float(np.nan_to_num(values).max()) for values in levels.values())
            for axes, (jitter, values) in zip(line, levels.items(), strict=True):
                shown = _heat(axes, group, values, 0.0, high)
                if number == 0:
                    axes.set_title(f"jitter {jitter} %")
                if number == len(rows) - 1:
                    axes.set_xlabel("dx (px)")
            line[0].set_ylabel("dy (px)")
            _bar(shown, line[-1], title)
    return fig


def section_figure(section: Sequence[Row], levels: Sequence[Row]) -> Figure:
    """Draw the mean score along dx at dy = 0, and how wide the peak is, of every training.

    Args:
        section: rows of `numbers.section_rows`.
        levels: rows of `numbers.level_rows`.
    """
    from orbical.figures.style import MODELS, PAGE, figure, styled

    shifts = sorted({row["dx"] for row in section})
    with styled():
        fig = figure(PAGE, 2.7)
        along, width = fig.subplots(1, 2, width_ratios=(1.6, 1))
        for jitter, colour in zip(JITTERS, MODELS, strict=False):
            mine = [row for row in section if row["jitter"] == jitter]
            each = np.array([[row["score"] for row in mine if row["dx"] == dx] for dx in shifts])
            along.fill_between(shifts, each.min(1), each.max(1), color=colour, alpha=0.25, lw=0)
            along.plot(shifts, each.mean(1), color=colour, label=f"{jitter} %")
            values = values_of(levels, jitter, "width_px")
            width.plot([jitter] * len(values), values, "o", ms=3.5, mfc="none", color=colour)
        along.set(xlabel="dx (px), dy = 0", ylabel="IoU x confidence", ylim=(0, None))
        along.legend(title="jitter", loc="upper right")
        width.set(xlabel="jitter (%)", ylabel="width of the peak (px)", ylim=(0, None))
        width.set_xticks(JITTERS)
        for axes in (along, width):
            axes.grid(axis="y")
    return fig


def dark_spot(results: WholeScans, jitter: int) -> tuple[int, int, int]:
    """Find the darkest spot: key object, its shift, and the best of the eight shifts around it."""
    score = results.score(jitter)
    fall = neighbours_median(score, results.side) - score
    sample, element = np.unravel_index(int(fall.argmax()), fall.shape)
    row, column = divmod(int(element), results.side)
    near = [
        (row + i) * results.side + column + j
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if 0 <= row + i < results.side and 0 <= column + j < results.side and (i or j)
    ]
    return int(sample), int(element), max(near, key=lambda one: float(score[sample, one]))


def answers_at(
    results: WholeScans, jitter: int, sample: int, elements: list[int]
) -> tuple[Any, Any, Any]:
    """Ask a level's detector again: views `[k, 3, w, w]`, rows `[k, M, 6]`, objects in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.safetensors"
        path.write_bytes(member(results.folder, jitter, "safetensors"))
        net = detector.read(path)
    chosen = results.group[np.array(elements)]
    views = Window(WINDOW).apply(chosen, results.data["images"][sample : sample + 1])[:, 0]
    with torch.inference_mode():
        rows = TASK.read(net(views))
    objects = TASK.output.move(chosen, results.data["objects"][None, sample : sample + 1])[:, 0]
    return views, rows, objects


def _draw_boxes(axes: Any, view: Any, rows: Any, key: Any, names: list[str], shown: int) -> None:
    from matplotlib.patches import Rectangle

    from orbical.figures.style import MODELS

    def outline(box: Any, **look: Any) -> None:
        left, top, right, bottom = (float(edge) for edge in box[:4])
        axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, **look))

    axes.imshow(np.asarray(view.permute(1, 2, 0)))
    outline(key, color=TRUTH, lw=1.6)
    found = Detections.of(rows)
    place = 0
    for box, confidence, label in zip(found.box, found.confidence, found.label, strict=True):
        if label < 0 or place >= shown:
            continue
        colour = MODELS[place + 1]
        outline(box, color=colour, lw=1.3)
        words = f"{place + 1}. {names[int(label)]} {float(confidence):.2f}"
        axes.text(0.02, 0.98 - 0.1 * place, words, color="white", fontsize=6.5, va="top",
                  transform=axes.transAxes,
                  bbox={"facecolor": colour, "lw": 0, "pad": 1.2})  # fmt: skip
        place += 1
    axes.set_axis_off()
    axes.set(xlim=(0, WINDOW), ylim=(WINDOW, 0))


def individual_figure(results: WholeScans, jitter: int = 100) -> Figure:
    """Draw one key object's plot with a dark spot, and the answers there and right beside it."""
    from orbical.figures.style import PAGE, figure, styled

    sample, dark, bright = dark_spot(results, jitter)
    views, rows, objects = answers_at(results, jitter, sample, [dark, bright])
    score = results.score(jitter)[sample]
    names = results.data["classes"]
    with styled():
        fig = figure(PAGE, 2.6)
        first, *others = fig.subplots(1, 3, width_ratios=(1.25, 1, 1))
        shown = _heat(first, results.group, score, 0.0, float(score.max()))
        _bar(shown, first, "IoU x confidence")
        coords = results.group.coords
        for axes, element, place, sign in zip(
            others, (dark, bright), range(2), ("a", "b"), strict=True
        ):
            where = (float(coords["dx"][element]), float(coords["dy"][element]))
            first.plot(*where, marker="o", ms=6, mfc="none", mec="white", mew=1.2)
            side = 1.0 if sign == "a" else -1.0  # each letter on the side away from the other spot
            apart = [
                13 * side * np.sign(float(coords[name][dark]) - float(coords[name][bright]))
                for name in ("dx", "dy")
            ]
            first.annotate(
                sign,
                where,
                xytext=apart,
                textcoords="offset points",
                ha="center",
                va="center",
                bbox={"facecolor": "white", "lw": 0, "pad": 1},
            )
            key = objects[place, 0]
            _draw_boxes(axes, views[place], rows[place], key, names, 3)
            axes.set_title(
                f"({sign}) dx {where[0]:g}, dy {where[1]:g}: {score[element]:.2f}", loc="left"
            )
        first.set(xlabel="dx (px)", ylabel="dy (px)")
        first.set_title(f"{names[int(objects[0, 0, 4])]}, jitter {jitter} %", loc="left")
    return fig


def consensus_figure(results: Results, whole: WholeScans, jitter: int = 50) -> Figure:
    """Draw one key object's plots against truth and consensus, and how alike they are for all."""
    from orbical.figures.style import MODELS, PAGE, figure, styled

    agree = agreement(whole.scans[jitter])
    # A typical one among those with a score to speak of: its correlation is the median.
    mean = whole.score(jitter).mean(1)
    known = np.flatnonzero(mean > min(0.2, mean.max() - 1e-9))
    order = known[np.argsort(agree[known])]
    sample = int(order[len(order) // 2])
    with styled():
        fig = figure(PAGE, 2.5)
        panels: Any = fig.subplots(1, 4, width_ratios=(1, 1.1, 1.1, 1.4))
        centre = [whole.group.identity]
        views, _, objects = answers_at(whole, jitter, sample, centre)
        clusters = whole.scans[jitter]["consensus"][sample]
        rows = torch.from_numpy(np.nan_to_num(clusters[:, :6], nan=-1.0))
        _draw_boxes(panels[0], views[0], rows, objects[0, 0], whole.data["classes"], 2)
        panels[0].set_title("Consensus", loc="left")
        against = np.nan_to_num(whole.scans[jitter]["score_vs_consensus"][sample])
        score = whole.score(jitter)[sample]
        high = float(max(score.max(), against.max()))
        for axes, values, title in (
            (panels[1], score, "vs truth"),
            (panels[2], against, "vs consensus"),
        ):
            shown = _heat(axes, whole.group, values, 0.0, high)
            axes.set_title(title, loc="left")
            axes.set_xlabel("dx (px)")
        panels[1].set_ylabel("dy (px)")
        _bar(shown, panels[2], "IoU x confidence")
        for level, colour in zip(JITTERS, MODELS, strict=False):
            for seed, found in zip(results.seeds, results.of(level), strict=True):
                values = np.sort(found.agreement[~np.isnan(found.agreement)])
                share = np.arange(1, len(values) + 1) / max(1, len(values))
                label = f"{level} %" if seed == WHOLE else None
                panels[3].plot(values, share, color=colour, lw=0.9, label=label)
        panels[3].set(xlabel="correlation of the two plots", ylabel="share of key objects")
        panels[3].set(xlim=(-0.75, 1), ylim=(0, 1))
        panels[3].legend(title="jitter", loc="upper left", fontsize=6, handlelength=1)
        panels[3].grid()
    return fig
