"""The vector-field study's tables, from the rows of its CSV files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from orbical.calibration import gence_floor

from ..pages import Row, about, markdown, mean, number, read_csv
from .limits import WAYS
from .training import EQUIVARIANT, KINDS, PLAIN

FILES = ("results", "limits", "angles", "profile", "arrows")
Data = dict[str, list[Row]]
World = tuple[str, str]
Kind = tuple[str, str]


def worlds_of(data: Data) -> list[World]:
    """Give field and domain of each world, in the order of the rows."""
    return [(row["field"], row["domain"]) for row in data["limits"]]


def limit(data: Data, world: World) -> Row:
    """Give the limits of one world."""
    return next(row for row in data["limits"] if (row["field"], row["domain"]) == world)


def chosen(rows: Sequence[Row], world: World, kind: Kind) -> list[Row]:
    """Keep the rows of one network with one form of variance in one world."""
    wanted = (*world, *kind)
    names = ("field", "domain", "network", "variance")
    return [row for row in rows if tuple(row[name] for name in names) == wanted]


def values(
    data: Data, column: str, world: World, kind: Kind, epoch: int | None = None
) -> list[float]:
    """One column over the seeds, after some epochs (by default the last).

    >>> row = {"field": "spiral", "domain": "disc", "network": PLAIN, "variance": "scalar"}
    >>> data = {"results": [row | {"epoch": 9, "bleed": 0.5}]}
    >>> values(data, "bleed", ("spiral", "disc"), (PLAIN, "scalar"))
    [0.5]
    """
    at = max(row["epoch"] for row in data["results"]) if epoch is None else epoch
    rows = chosen(data["results"], world, kind)
    return [row[column] for row in rows if row["epoch"] == at and column in row]


def between(low: float, high: float) -> str:
    """Write a range, or the one number that both ends are.

    >>> between(1.0, 2.0), between(8.328, 8.3281)
    ('1.00 to 2.00', '8.33')
    """
    ends = number(low), number(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _by_network(
    data: Data,
    columns: Sequence[str],
    cells: Callable[[World, Kind], Sequence[str]],
    *above: Sequence[str],
) -> str:
    """Write a line for each network and form of variance in each world, below given lines."""
    lines = [
        *above,
        *([*world, *kind, *cells(world, kind)] for world in worlds_of(data) for kind in KINDS),
    ]
    return markdown(["field", "domain", "network", "variance", *columns], lines)


def settings_table(data: Data) -> str:
    """What was trained and measured."""
    rows = data["results"]
    last = max(row["epoch"] for row in rows)
    ends = [row for row in rows if row["epoch"] == last]
    worst = {
        name: max(row["defect"] for row in ends if row["network"] == name)
        for name in (EQUIVARIANT, PLAIN)
    }
    sizes = {(row["network"], row["variance"]): row["parameters"] for row in rows}
    lines = [
        ["seeds", ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))],
        ["training runs", str(len(ends))],
        ["training points", f"{rows[0]['train']:,}"],
        ["epochs", str(last)],
        *([f"parameters, {name}, {form}", f"{count:,}"] for (name, form), count in sizes.items()),
        *(
            [f"largest equivariance error, {name}, relative", f"{defect:.1e}"]
            for name, defect in worst.items()
        ),
        ["minutes of processor time, training", f"{sum(r['seconds'] for r in ends) / 60:.1f}"],
    ]
    return markdown(["setting", "value"], lines)


def symmetry_table(data: Data) -> str:
    """Which symmetries the fields have."""
    moves = {
        "turn": "rotation in the plane, 30°",
        "mirror": "mirror in the plane",
        "half_turn": "half a turn about an axis in the plane",
        "tilt": "tilt of the plane, 30°",
        "shift": "shift by 1",
    }
    square = {row["field"]: row for row in data["limits"] if row["domain"] == "square"}
    lines = [
        [
            text,
            *(number(row[name]) for row in square.values()),
            f"{next(iter(square.values()))[f'{name}_outside']:.0%}",
        ]
        for name, text in moves.items()
    ]
    return markdown(
        ["g", *(f"{field}, square" for field in square), "points of the square that leave it"],
        lines,
    )


def error_table(data: Data) -> str:
    """Squared error and beta-NLL beside the least squared error of an equivariant network."""

    def cells(world: World, kind: Kind) -> list[str]:
        bound, tied = limit(data, world), kind[0] == EQUIVARIANT
        return [
            about(values(data, "xy_mse", world, kind)),
            number(bound["error"] / 2) if tied else "0",
            number(bound["linear_error"] / 2) if tied else "",
            about(values(data, "xy_beta_nll", world, kind)),
            number(bound[f"{kind[1]}_xy_beta_nll"]) if tied else "0",
        ]

    columns = ["MSE", "its least value", "least for `c x`", "β-NLL", "at the optimum"]
    return _by_network(data, columns, cells)


def bleed_table(data: Data) -> str:
    """Measured bleed beside what likelihood leads to and the structural bound."""

    def cells(world: World, kind: Kind) -> list[str]:
        bound, tied = limit(data, world), kind[0] == EQUIVARIANT
        return [
            about(values(data, "bleed", world, kind)),
            number(bound[f"{kind[1]}_bleed"]) if tied else "0",
            number(bound["full_head_bleed"]) if kind[1] == "full" else "",
            number(bound["bleed_floor"]) if tied else "0",
            about(values(data, "trace", world, kind)),
            about(values(data, "error", world, kind)),
        ]

    columns = [
        *("bleed", "NLL-optimal bleed", "within the head's bound", "structural bound"),
        *("mean variance, three coordinates", "mean squared error"),
    ]
    return _by_network(data, columns, cells)


def parts_table(data: Data) -> str:
    """Bleed outwards, along the ring and up, on the spiral."""

    def cells(world: World, kind: Kind) -> list[str]:
        bound, tied = limit(data, world), kind[0] == EQUIVARIANT
        return [
            cell
            for way in WAYS
            for cell in (
                about(values(data, f"bleed_{way}", world, kind)),
                number(bound[f"{kind[1]}_bleed_{way}"]) if tied else "0",
            )
        ]

    spirals = {"limits": [row for row in data["limits"] if row["field"] == "spiral"]}
    columns = [text for way in WAYS for text in (way, "NLL-optimal")]
    return _by_network(data | spirals, columns, cells)


def calibration_table(data: Data) -> str:
    """GENCE, its fibre mean and the Mahalanobis distance, with their reference values."""

    def cells(world: World, kind: Kind) -> list[str]:
        optimum = limit(data, world).get(f"{kind[1]}_gence") if kind[0] == EQUIVARIANT else None
        low, high = (values(data, f"gence_{end}", world, kind) for end in ("lower", "upper"))
        return [
            about(values(data, "gence", world, kind)),
            "" if optimum is None else number(optimum),
            f"{number(mean(low))} to {number(mean(high))}" if low else "",
            *(about(values(data, c, world, kind)) for c in ("gence_fiber", "mahalanobis", "nll")),
        ]

    columns = [
        *("GENCE", "at the optimum", "bounds at its variances", "GENCE, fibre means"),
        *("mean squared Mahalanobis", "NLL"),
    ]
    floors = ["", "", "*calibrated*", "", number(gence_floor), "", "", "0", "3", ""]
    return _by_network(data, columns, cells, floors)


def epochs_table(data: Data) -> str:
    """How far training had come."""
    stages = sorted({row["epoch"] for row in data["results"]})
    measured = [(name, epoch) for name in ("xy_mse", "bleed") for epoch in stages]

    def cells(world: World, kind: Kind) -> list[str]:
        return [number(mean(values(data, name, world, kind, epoch))) for name, epoch in measured]

    titles = {"xy_mse": "MSE", "bleed": "bleed"}
    return _by_network(data, [f"{titles[name]}, {epoch}" for name, epoch in measured], cells)


def over_angles(data: Data, column: str, world: World, kind: Kind) -> tuple[float, float]:
    """Give least and largest value over the angle of the mean over seeds."""
    rows = chosen(data["angles"], world, kind)
    angles = sorted({row["angle"] for row in rows})
    curve = [mean([row[column] for row in rows if row["angle"] == angle]) for angle in angles]
    return min(curve), max(curve)


def angles_table(data: Data) -> str:
    """Least and largest error over the rotation angle."""

    def cells(world: World, kind: Kind) -> list[str]:
        columns = ("xy_mse", "xy_beta_nll", "bleed")
        return [between(*over_angles(data, column, world, kind)) for column in columns]

    return _by_network(data, ["MSE", "β-NLL", "bleed"], cells)


TABLES = {
    "settings": settings_table,
    "symmetry": symmetry_table,
    "errors": error_table,
    "bleed": bleed_table,
    "parts": parts_table,
    "calibration": calibration_table,
    "epochs": epochs_table,
    "angles": angles_table,
}


def read(folder: Path) -> Data:
    """Read the study's CSV files."""
    return {name: read_csv(folder / f"{name}.csv") for name in FILES}
