"""What the page's CSV files hold, and how a value is found in them."""

from __future__ import annotations

from pathlib import Path

from ..pages import Row, read_csv
from .settings import ALL, LIKELIHOOD, NETWORKS

FILES = ("limits", "results", "consistency", "curves", "agreement", "molecules", "histogram")
Data = dict[str, list[Row]]


def read(folder: Path) -> Data:
    """Read the study's CSV files."""
    return {name: read_csv(folder / f"{name}.csv") for name in FILES}


def values(
    data: Data,
    column: str,
    name: str,
    network: str,
    *,
    loss: str = LIKELIHOOD,
    target: str = ALL,
    frame: str = "given",
) -> list[float]:
    """One column over the seeds.

    >>> row = {"property": "gap", "network": "GIN", "loss": LIKELIHOOD, "target": ALL}
    >>> data = {"results": [row | {"frame": "given", "mae": 0.5}]}
    >>> values(data, "mae", "gap", "GIN")
    [0.5]
    """
    wanted = {
        "property": name,
        "network": network,
        "loss": loss,
        "target": target,
        "frame": frame,
    }
    return [
        row[column]
        for row in data["results"]
        if column in row and all(row[key] == value for key, value in wanted.items())
    ]


def networks_of(data: Data) -> list[str]:
    """Give the networks that were trained for all properties, in the study's order."""
    found = {row["network"] for row in data["results"] if row["target"] == ALL}
    return [name for name in NETWORKS if name in found]


def limit(data: Data, name: str) -> Row:
    """Give the limits of one property."""
    return next(row for row in data["limits"] if row["property"] == name)
