"""Make the README's picture of what was found in published models.

    python docs/figures/audits.py

reads the committed tables of audits/results and writes docs/images/audits.png.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from orbical.figures.style import figure, model_colors, save, styled

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "audits.png"
CRYSTALS = ("Se", "Te", "FeSi")
WEIGHTS = ("vanilla", "soluble", "CA-only")
DETECTORS = {"yolov5": "YOLOv5s", "nanodet": "NanoDet-g"}


def rows(audit: str, table: str) -> list[dict[str, Any]]:
    """Return the rows of a committed table."""
    results = json.loads((ROOT / "audits" / "results" / f"{audit}.json").read_text())
    return results["tables"][table]["rows"]


def hands(axes: Axes) -> None:
    """Draw how much the energies of the two hands of a crystal differ."""
    gaps: dict[str, dict[str, float]] = {}
    for audit in ("sevennet", "hienet", "chgnet"):
        for row in rows(audit, "crystals"):
            for model in row.keys() - {"crystal"}:
                gaps.setdefault(model, {})[row["crystal"]] = abs(row[model])
    names = sorted(gaps, key=lambda name: -max(gaps[name].values()))
    colors = model_colors(names)
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        x = np.arange(len(CRYSTALS)) + (place + 0.5) * width - 0.4
        heights = [gaps[name][crystal] for crystal in CRYSTALS]
        axes.bar(x, heights, width, color=colors[name], label=f"{name}, ≤ {max(heights):.2g}")
    axes.set_xticks(range(len(CRYSTALS)), CRYSTALS)
    axes.set_ylabel("meV per atom")
    axes.set_title("Left and right hand of a crystal:\nenergies that should be equal", loc="left")
    axes.legend(frameon=False, loc="upper right", borderaxespad=0, handlelength=1)
    axes.set_ylim(0, 7)


def shares(axes: Axes, names: list[str], cells: list[dict[str, float]]) -> None:
    """Draw shares with their intervals, in percent, one to a row."""
    values, low, high = (
        100 * np.array([cell[end] for cell in cells]) for end in ("value", "low", "high")
    )
    at = np.arange(len(names))
    color = model_colors(["all"])["all"]
    axes.errorbar(values, at, xerr=[values - low, high - values], fmt="o", capsize=3, color=color)
    axes.set_yticks(at, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0 - 0.03 * high.max())
    axes.xaxis.set_major_formatter("{x:.0f} %")


def main() -> None:
    """Draw three findings side by side."""
    moved = {
        row["model"]: row["answer changes"]
        for row in rows("proteinmpnn", "moves")
        if row["move"] == "shift by 30 Å"
    }
    lost = [
        next(row for row in rows(audit, "objects") if row["transformation"] == "one pixel")
        for audit in DETECTORS
    ]
    with styled():
        fig = figure(9.6, 2.9)
        left, middle, right = fig.subplots(1, 3, width_ratios=(1.25, 1, 1))
        hands(left)
        shares(middle, [*WEIGHTS], [moved[f"ProteinMPNN, {name}"] for name in WEIGHTS])
        middle.set_title("ProteinMPNN, protein moved by 30 Å:\nanswers that change", loc="left")
        shares(right, [*DETECTORS.values()], [row["found and lost"] for row in lost])
        right.set_title("Camera moved by one pixel:\nobjects found and lost", loc="left")
        save(fig, PICTURE)


if __name__ == "__main__":
    main()
