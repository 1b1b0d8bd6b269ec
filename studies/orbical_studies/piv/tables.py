"""The particle-flow study's tables, from the rows of its CSV files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..pages import Row, markdown
from .settings import MODELS

LEAST_LIKENESS = 1e-3
MIDDLE = 0.1
GOOD_PART = 0.1
Cell = Callable[[Sequence[Row]], str]


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


def _mean_of(column: str, digits: int = 3) -> Cell:
    """Write the mean of a column."""
    return lambda rows: f"{mean(rows, column):.{digits}f}"


def _by_model(rows: Sequence[Row], columns: Mapping[str, Cell]) -> str:
    """Write a line for each set and model; a column is its title and how its cell is written."""
    lines = [
        [name, model, *(cell(here) for cell in columns.values())]
        for name in sets_of(rows)
        for model in MODELS
        for here in [chosen(rows, set=name, model=model)]
    ]
    return markdown(["set", "model", *columns], lines)


def training_table() -> str:
    """How the two networks were trained, from the headers of their weight files."""
    from orbical.zoo import flownet

    lines = []
    for name in flownet.NAMES:
        header = flownet.provenance(name)
        weights = sum(weight.numel() for weight in flownet.load(name).parameters())
        moved = header["moved by D4 x time reversal"] == "True"
        lines.append(
            [
                name,
                f"{weights:,}",
                "yes" if moved else "no",
                f"{int(header['steps']):,}",
                header["seconds"],
                header["held-out end-point error"],
                header["held-out end-point error over 16 elements"],
            ]
        )
    columns = [
        *("network", "parameters", "pairs moved", "steps", "seconds"),
        *("error on new pairs (px)", "and over 16 elements (px)"),
    ]
    return markdown(columns, lines)


def accuracy_table(rows: Sequence[Row]) -> str:
    """End-point error of the pairs as they are."""
    return _by_kind(rows, "error")


def orbit_table(rows: Sequence[Row]) -> str:
    """All errors, averaged over the 16 elements."""
    columns = {
        "as it is (px)": _mean_of("error"),
        "mean over 16 (px)": _mean_of("error_over_orbit"),
        "worst of 16 (px)": _mean_of("error_worst"),
        "RMSE (px)": _mean_of("rmse"),
        "angular error (°)": _mean_of("angular_error", digits=2),
    }
    return _by_model(rows, columns)


def equivariance_table(rows: Sequence[Row]) -> str:
    """How far answers change along the orbit, beside how far they are from the truth."""

    def ratio(here: Sequence[Row], above: str, below: str) -> float:
        return mean([{"ratio": row[above] / row[below]} for row in here], "ratio")

    def gap(here: Sequence[Row]) -> float:
        return root_mean_square(here, "gap")

    columns: dict[str, Cell] = {
        "gap, D4 × time (px)": lambda here: f"{gap(here):.3f}",
        "gap, D4 alone (px)": lambda here: f"{root_mean_square(here, 'gap_plane'):.3f}",
        "time difference (px)": _mean_of("time_difference"),
        "spread of the error": lambda here: (
            f"{100 * ratio(here, 'error_spread', 'error_over_orbit'):.1f} %"
        ),
        "worst / best element": lambda here: f"{ratio(here, 'error_worst', 'error_best'):.2f}",
        "gap / RMSE": lambda here: f"{gap(here) / root_mean_square(here, 'rmse'):.2f}",
    }
    return _by_model(rows, columns)


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


def truth_time_sentence(rows: Sequence[Row]) -> str:
    """Say where the frames decide for the middle of the step, and where for another time."""
    shares = sorted({row["share"] for row in rows})
    middle, other = 0, []
    for name in sets_of(rows):
        for kind in kinds_of(rows, name):
            here = chosen(rows, set=name, kind=kind)
            found = best_time(
                [mean(chosen(here, share=share), "likeness") for share in shares], shares
            )
            if found == "cannot tell":
                continue
            if abs(float(found) - 0.5) <= MIDDLE:
                middle += 1
            else:
                other.append(f"{kind} of {name} ({found})")
    if not middle + len(other):
        return "In no kind of flow can the frames tell."
    text = (
        f"Of the {middle + len(other)} kinds of flow that can tell, {middle} decide for the middle "
        "of the step, to a tenth of it"
    )
    return text + (f"; the others: {', '.join(other)}." if other else ".")


def forward_truth_sentence(rows: Sequence[Row]) -> str:
    """Say in which flows the time of the truth is a good part of Farneback's error."""
    much = []
    for name in sets_of(rows):
        for kind in kinds_of(rows, name):
            here = chosen(rows, set=name, kind=kind, model="farneback")
            given, carried = mean(here, "error"), mean(here, "error_forward_truth")
            if given - carried >= GOOD_PART * given:
                much.append(f"{kind} ({name})")
    flows = ", ".join(much) if much else "no kind of flow"
    return f"A tenth or more of Farneback's error goes away by that in: {flows}."


def consensus_table(rows: Sequence[Row]) -> str:
    """Error of the consensus, and how alike the plots against truth and consensus are."""

    def better_than(column: str) -> Cell:
        return lambda here: (
            f"{sum(row['consensus_error'] < row[column] for row in here)} of {len(here)}"
        )

    columns = {
        "as it is (px)": _mean_of("error"),
        "mean element (px)": _mean_of("error_over_orbit"),
        "consensus (px)": _mean_of("consensus_error"),
        "consensus better than the mean element": better_than("error_over_orbit"),
        "better than the pair as it is": better_than("error"),
        "correlation of the two plots": _mean_of("consensus_likeness", digits=2),
    }
    return _by_model(rows, columns)


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
