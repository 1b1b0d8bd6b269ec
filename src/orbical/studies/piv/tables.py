"""The particle-flow study's tables, from the rows of its CSV files."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..pages import Row, markdown
from .settings import MODELS

LEAST_LIKENESS = 1e-3


def chosen(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """Keep the rows with these entries.

    >>> chosen([{"model": "dis", "error": 1.0}, {"model": "farneback"}], model="dis")
    [{'model': 'dis', 'error': 1.0}]
    """
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def mean(rows: Sequence[Row], column: str) -> float:
    """Average a column, leaving out what is missing.

    >>> mean([{"gap": 1.0}, {"gap": 3.0}, {"gap": float("nan")}, {}], "gap")
    2.0
    """
    values = [row[column] for row in rows if column in row and math.isfinite(float(row[column]))]
    return sum(values) / len(values) if values else math.nan


def root_mean_square(rows: Sequence[Row], column: str) -> float:
    """Give the root of the mean square of a column."""
    return math.sqrt(mean([{"square": row[column] ** 2} for row in rows], "square"))


def kinds_of(rows: Sequence[Row], name: str) -> list[str]:
    """Name the kinds of flow of one set of pairs, in their order."""
    return list(dict.fromkeys(row["kind"] for row in chosen(rows, set=name)))


def sets_of(rows: Sequence[Row]) -> list[str]:
    """Name the sets of pairs, in their order."""
    return list(dict.fromkeys(row["set"] for row in rows))


def _by_kind(rows: Sequence[Row], column: str, digits: int = 3) -> str:
    """Tabulate a column for each kind and model, and over all pairs of a set."""
    lines = []
    for name in sets_of(rows):
        for kind in [*kinds_of(rows, name), None]:
            here = chosen(rows, set=name) if kind is None else chosen(rows, set=name, kind=kind)
            head = [name, kind or "**all pairs**", str(len(chosen(here, model=MODELS[0])))]
            values = [f"{mean(chosen(here, model=model), column):.{digits}f}" for model in MODELS]
            lines.append([*head, *(f"**{value}**" if kind is None else value for value in values)])
    return markdown(["set", "flow", "pairs", *MODELS], lines)


def accuracy_table(rows: Sequence[Row]) -> str:
    """End-point error of the pairs as they are."""
    return _by_kind(rows, "error")


def orbit_table(rows: Sequence[Row]) -> str:
    """All errors, averaged over the 16 elements."""
    lines = []
    for name in sets_of(rows):
        for model in MODELS:
            here = chosen(rows, set=name, model=model)
            lines.append(
                [
                    name,
                    model,
                    *(
                        f"{mean(here, column):.{digits}f}"
                        for column, digits in (
                            ("error", 3),
                            ("error_over_orbit", 3),
                            ("error_worst", 3),
                            ("rmse", 3),
                            ("angular_error", 2),
                        )
                    ),
                ]
            )
    header = [
        "set",
        "model",
        "as it is (px)",
        "mean over 16 (px)",
        "worst of 16 (px)",
        "RMSE (px)",
        "angular error (°)",
    ]
    return markdown(header, lines)


def equivariance_table(rows: Sequence[Row]) -> str:
    """How far answers change along the orbit, beside how far they are from the truth."""
    lines = []
    for name in sets_of(rows):
        for model in MODELS:
            here = chosen(rows, set=name, model=model)
            spread = mean(
                [{"share": row["error_spread"] / row["error_over_orbit"]} for row in here], "share"
            )
            ratio = mean(
                [{"ratio": row["error_worst"] / row["error_best"]} for row in here], "ratio"
            )
            gap, plane = (root_mean_square(here, column) for column in ("gap", "gap_plane"))
            lines.append(
                [
                    name,
                    model,
                    f"{gap:.3f}",
                    f"{plane:.3f}",
                    f"{mean(here, 'time_difference'):.3f}",
                    f"{100 * spread:.1f} %",
                    f"{ratio:.2f}",
                    f"{gap / root_mean_square(here, 'rmse'):.2f}",
                ]
            )
    header = [
        "set",
        "model",
        "gap, D4 × time (px)",
        "gap, D4 alone (px)",
        "time difference (px)",
        "spread of the error",
        "worst / best element",
        "gap / RMSE",
    ]
    return markdown(header, lines)


def gap_table(rows: Sequence[Row]) -> str:
    """The gap of each kind of flow."""
    return _by_kind(rows, "gap")


def time_table(rows: Sequence[Row]) -> str:
    """What reversed time does, beside the length of u . grad u."""
    lines = [
        [
            name,
            kind,
            f"{mean(chosen(here, model=MODELS[0]), 'self_advection'):.3f}",
            *(f"{mean(chosen(here, model=model), 'time_difference'):.3f}" for model in MODELS),
        ]
        for name in sets_of(rows)
        for kind in kinds_of(rows, name)
        for here in [chosen(rows, set=name, kind=kind)]
    ]
    return markdown(["set", "flow", "mean length of u · ∇u", *MODELS], lines)


def frame_table(rows: Sequence[Row]) -> str:
    """Errors against the truth of the mid-time, and against the same carried to the first frame."""
    lines = []
    for name in sets_of(rows):
        for kind in kinds_of(rows, name):
            line = [name, kind]
            for model in MODELS:
                here = chosen(rows, set=name, kind=kind, model=model)
                line.append(f"{mean(here, 'error'):.3f} → {mean(here, 'error_forward_truth'):.3f}")
            lines.append(line)
    return markdown(["set", "flow", *MODELS], lines)


def best_time(likeness: Sequence[float], shares: Sequence[float]) -> str:
    """Name the time at which the frames are most alike: the vertex of a parabola through them.

    Where the likeness hardly depends on the time, the frames cannot tell.

    >>> best_time([0.90, 0.95, 0.90], [0.0, 0.5, 1.0]), best_time([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    ('0.50', 'cannot tell')
    """
    square, slope, _ = np.polyfit(shares, likeness, 2)
    if max(likeness) - min(likeness) < LEAST_LIKENESS or square >= 0:
        return "cannot tell"
    return f"{-slope / (2 * square):.2f}"


def truth_time_table(rows: Sequence[Row]) -> str:
    """Likeness of the frames carried to each time by the given truth."""
    shares = sorted({row["share"] for row in rows})
    lines = []
    for name in sets_of(rows):
        for kind in kinds_of(rows, name):
            found = [
                mean(chosen(rows, set=name, kind=kind, share=share), "likeness") for share in shares
            ]
            words = [f"{value:.4f}" for value in found]
            lines.append([name, kind, *words, best_time(found, shares)])
    header = ["set", "flow", *(f"{share:g} of the step" for share in shares), "most alike at"]
    return markdown(header, lines)


def consensus_table(rows: Sequence[Row]) -> str:
    """Error of the consensus, and how alike the plots against truth and consensus are."""
    lines = []
    for name in sets_of(rows):
        for model in MODELS:
            here = chosen(rows, set=name, model=model)
            better = [row["consensus_error"] < row["error_over_orbit"] for row in here]
            best = [row["consensus_error"] < row["error"] for row in here]
            lines.append(
                [
                    name,
                    model,
                    f"{mean(here, 'error'):.3f}",
                    f"{mean(here, 'error_over_orbit'):.3f}",
                    f"{mean(here, 'consensus_error'):.3f}",
                    f"{sum(better)} of {len(here)}",
                    f"{sum(best)} of {len(here)}",
                    f"{mean(here, 'consensus_likeness'):.2f}",
                ]
            )
    header = [
        "set",
        "model",
        "as it is (px)",
        "mean element (px)",
        "consensus (px)",
        "consensus better than the mean element",
        "better than the pair as it is",
        "correlation of the two plots",
    ]
    return markdown(header, lines)


def hard_table(rows: Sequence[Row]) -> str:
    """Share of the squared error in the worst tenth of the pixels."""
    lines = [
        [
            name,
            kind,
            *(f"{100 * mean(chosen(here, model=model), 'hard_share'):.0f} %" for model in MODELS),
        ]
        for name in sets_of(rows)
        for kind in kinds_of(rows, name)
        for here in [chosen(rows, set=name, kind=kind)]
    ]
    return markdown(["set", "flow", *MODELS], lines)


def rotation_table(rows: Sequence[Row]) -> str:
    """Errors at quarter turns and between them."""
    lines = []
    for model in MODELS:
        here = chosen(rows, model=model)
        quarter = [row for row in here if row["angle"] % 90 == 0]
        between = [row for row in here if row["angle"] % 90]
        angles = sorted({row["angle"] for row in here})
        curve = [mean(chosen(here, angle=angle), "error") for angle in angles]
        worst = angles[max(range(len(curve)), key=curve.__getitem__)]
        lines.append(
            [
                model,
                f"{mean(chosen(here, angle=0.0), 'error'):.3f}",
                f"{mean(quarter, 'error'):.3f}",
                f"{mean(between, 'error'):.3f}",
                f"{max(curve):.3f} at {worst:g}°",
                f"{mean(here, 'gap'):.3f}",
                f"{mean(here, 'consensus_error'):.3f}",
                f"{mean(between, 'defect'):.3f}",
            ]
        )
    header = [
        "model",
        "upright (px)",
        "quarter turns (px)",
        "between them (px)",
        "worst angle (px)",
        "gap (px)",
        "consensus (px)",
        "action defect between",
    ]
    return markdown(header, lines)
