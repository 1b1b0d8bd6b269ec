"""What the CSV files of the point-cloud study say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orbical.groups import Group, parse
from orbical.zoo.pointnet import NAMES as NETWORKS

from ..pages import read_csv
from .collecting import column

AXES = {"x (sideways)": ("xy", 0.0), "y (upright)": ("xy", 90.0), "z (forwards)": ("xz", 90.0)}


class Numbers:
    """All CSV files of the page, and what is made of them alone."""

    def __init__(self, folder: Path) -> None:
        self.summary = read_csv(folder / "summary.csv")
        self.classes = read_csv(folder / "classes.csv")
        self.elements = {name: read_csv(folder / f"{name}.csv") for name in ("slices", "ball")}
        self.individual = read_csv(folder / "individual.csv")
        self.chosen = {row["name"]: row for row in read_csv(folder / "chosen.csv")}
        first = next(iter(self.chosen.values()))
        self.groups: dict[str, Group] = {key: parse(first[key]) for key in self.elements}

    @property
    def data_sets(self) -> list[str]:
        """The data sets, in order."""
        return list(dict.fromkeys(row["data"] for row in self.summary))

    def networks(self, data_set: str) -> list[str]:
        """The networks that were trained on a data set, in order."""
        here = {row["network"] for row in self.summary if row["data"] == data_set}
        return [name for name in NETWORKS if name in here]

    def over_seeds(self, data_set: str, network: str, quantity: str) -> list[float]:
        """One number of the summary for every seed."""
        wanted = (data_set, network)
        return [
            float(row[quantity]) for row in self.summary if (row["data"], row["network"]) == wanted
        ]

    def mean(self, data_set: str, network: str, quantity: str) -> float:
        """The mean over seeds."""
        return float(np.mean(self.over_seeds(data_set, network, quantity)))

    def along(self, group: str, data_set: str, network: str, quantity: str) -> NDArray:
        """One number at every element of a group."""
        key = column(data_set, network, quantity)
        return np.array([float(row[key]) for row in self.elements[group]])

    def about_axis(
        self, data_set: str, network: str, quantity: str, axis: str
    ) -> dict[float, float]:
        """One number by the angle of turn about a main axis of space."""
        plane, azimuth = AXES[axis]
        layout = self.groups["slices"].layout
        place = [str(name) for name in layout.axes["plane"]].index(plane)
        line = int(np.argmin(np.abs(layout.axes["azimuth"] - azimuth)))
        values = self.along("slices", data_set, network, quantity)[layout.index[place, line]]
        return dict(zip(layout.axes["angle"].tolist(), values.tolist(), strict=True))

    def turned(self, data_set: str, network: str, axis: str, angle: float) -> float:
        """The accuracy at the turn about a main axis that was measured nearest to an angle."""
        by_angle = self.about_axis(data_set, network, "accuracy", axis)
        return by_angle[min(by_angle, key=lambda measured: abs(measured - angle))]

    def tilt(self) -> NDArray:
        """How far each rotation of the ball tilts what stood upright, in degrees."""
        up = self.groups["ball"].parts["space"][:, 1, 1]
        return np.rad2deg(np.arccos(np.clip(up, -1, 1)))

    def angle(self) -> NDArray:
        """The angle of each rotation of the ball, in degrees."""
        coords = self.groups["ball"].coords
        vectors = np.stack([np.asarray(coords[name], float) for name in ("rx", "ry", "rz")])
        return np.linalg.norm(vectors, axis=0)
