"""Make the README's picture of what was found in published models.

    python docs/figures/audits.py

reads the committed tables of audits/results and writes docs/images/audits.png.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from orbical.figures.style import figure, model_colors, save, styled

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "audits.png"
CRYSTALS = ("Se", "Te", "FeSi")
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
    axes.set_title("Left- and right-handed crystals:\nenergies that should be equal", loc="left")
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
    axes.xaxis.set_major_formatter("{x:g} %")


class Finding(NamedTuple):
    """A panel of shares: its title, and where they are among the committed tables.

    `audits` are the tables' files, and `only` what the rows have in common; a row is named by a
    column, or by its audit if the column is empty.
    """

    title: str
    audits: tuple[str, ...]
    table: str
    only: dict[str, str]
    name: str
    share: str

    def draw(self, axes: Axes) -> None:
        """Draw one share to a row."""
        kept = {
            row[self.name].removeprefix("ProteinMPNN, ") if self.name else DETECTORS[audit]: row
            for audit in self.audits
            for row in rows(audit, self.table)
            if all(row[key] == value for key, value in self.only.items())
        }
        shares(axes, [*kept], [row[self.share] for row in kept.values()])
        axes.set_title(self.title, loc="left")


FINDINGS = (
    Finding(
        "Protein moved by 30 Å:\nProteinMPNN predictions that change",
        ("proteinmpnn",),
        "moves",
        {"move": "shift by 30 Å"},
        "model",
        "prediction changes",
    ),
    Finding(
        "Camera moved by up to 32 pixels:\nobjects found and lost",
        tuple(DETECTORS),
        "objects",
        {"transformation": "shifts"},
        "",
        "found and lost",
    ),
    Finding(
        "Photograph shifted by 12 pixels:\nEfficientNet predictions that change",
        ("efficientnet_lite",),
        "networks",
        {"family": "shifts"},
        "network",
        "prediction changes",
    ),
    Finding(
        "Inaudible change of a sound's sign:\nframes whose CREPE pitch changes",
        ("crepe",),
        "changes",
        {"change": "sign"},
        "network",
        "pitch moves",
    ),
    Finding(
        "Options in all orders: letters that\nGemma 3 270M chooses (fair: 25 %)",
        ("gemma",),
        "letters",
        {"questions": "ARC-Challenge", "model": "Gemma by letters"},
        "letter",
        "chosen",
    ),
)


def main() -> None:
    """Draw six findings."""
    with styled():
        fig = figure(10.2, 5.2)
        fig.get_layout_engine().set(h_pad=0.1)  # type: ignore[union-attr]
        panels = fig.subplots(2, 3, width_ratios=(1.15, 1, 1)).ravel()
        hands(panels[0])
        for axes, finding in zip(panels[1:], FINDINGS, strict=True):
            finding.draw(axes)
        save(fig, PICTURE)


if __name__ == "__main__":
    main()
