"""The point-cloud study's page: tables and figures, from its CSV files alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orbical.groups import Group, parse
from orbical.zoo.pointnet import NAMES as NETWORKS

from .pages import Row, markdown, read_csv, spread, write_page
from .point_clouds_tables import column

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TITLES = {"sweethome3d": "Sweet Home 3D, 10 classes", "modelnet10": "ModelNet10, 2 classes"}
AXES = {"x (sideways)": ("xy", 0.0), "y (upright)": ("xy", 90.0), "z (forwards)": ("xz", 90.0)}
TILT_EDGES = (0, 15, 30, 45, 60, 90, 120, 150, 180)


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

    def tilt(self) -> NDArray:
        """How far each rotation of the ball tilts what stood upright, in degrees."""
        up = self.groups["ball"].parts["space"][:, 1, 1]
        return np.rad2deg(np.arccos(np.clip(up, -1, 1)))

    def angle(self) -> NDArray:
        """The angle of each rotation of the ball, in degrees."""
        coords = self.groups["ball"].coords
        vectors = np.stack([np.asarray(coords[name], float) for name in ("rx", "ry", "rz")])
        return np.linalg.norm(vectors, axis=0)


def settings_table(numbers: Numbers) -> str:
    """What was trained and asked."""
    lines = []
    for data_set in numbers.data_sets:
        row = next(row for row in numbers.summary if row["data"] == data_set)
        classes = {entry["class"] for entry in numbers.classes if entry["data"] == data_set}
        lines.append(
            [
                data_set,
                str(len(classes)),
                str(row["train"]),
                str(row["test"]),
                str(row["steps"]),
                str(len(numbers.over_seeds(data_set, row["network"], "seed"))),
            ]
        )
    header = ["data", "classes", "training clouds", "test clouds", "steps of 64 clouds", "seeds"]
    groups = ", ".join(
        f"`{group.spec}` ({len(group):,} rotations)" for group in numbers.groups.values()
    )
    return markdown(header, lines) + f"\n\nRotations: {groups}."


def accuracy_table(numbers: Numbers) -> str:
    """Accuracy upright, over the three planes, over all rotations; and at the worst element."""
    lines = [
        [
            data_set,
            network,
            *(
                spread(numbers.over_seeds(data_set, network, quantity))
                for quantity in (
                    *("accuracy_upright", "accuracy_slices", "accuracy_ball", "worst_ball"),
                    *("always_ball", "never_ball"),
                )
            ),
        ]
        for data_set in numbers.data_sets
        for network in numbers.networks(data_set)
    ]
    header = [
        *("data", "network", "upright", "three planes", "all rotations", "worst rotation"),
        *("clouds right at all", "clouds right at none"),
    ]
    return markdown(header, lines)


def calibration_table(numbers: Numbers) -> str:
    """Confidence and calibration error, upright and over all rotations."""
    lines = [
        [
            data_set,
            network,
            *(
                spread(numbers.over_seeds(data_set, network, quantity))
                for quantity in (
                    *("confidence_upright", "confidence_ball"),
                    *("ece_upright", "ece_upright_calibrated", "ece_ball"),
                )
            ),
        ]
        for data_set in numbers.data_sets
        for network in numbers.networks(data_set)
    ]
    header = [
        *("data", "network", "confidence upright", "confidence, all rotations"),
        *("ECE upright", "the same if calibrated", "ECE, all rotations"),
    ]
    return markdown(header, lines)


def axes_table(numbers: Numbers) -> str:
    """Accuracy by axis and angle of turn."""
    shown = (15.0, 30.0, 45.0, 90.0, 135.0, 180.0)
    lines = []
    for data_set in numbers.data_sets:
        for network in numbers.networks(data_set):
            for axis in AXES:
                by_angle = numbers.about_axis(data_set, network, "accuracy", axis)
                near = [_nearest(by_angle, angle) for angle in shown]
                lines.append([data_set, network, axis, *(f"{value:.3f}" for value in near)])
    return markdown(["data", "network", "axis", *(f"{angle:g}°" for angle in shown)], lines)


def tilt_table(numbers: Numbers) -> str:
    """Accuracy by how far a rotation tilts what stood upright, over all rotations."""
    tilt = numbers.tilt()
    spans = list(pairwise(TILT_EDGES))
    lines = []
    for data_set in numbers.data_sets:
        for network in numbers.networks(data_set):
            accuracy = numbers.along("ball", data_set, network, "accuracy")
            cells = [accuracy[(tilt >= low) & (tilt < high + 1e-9)] for low, high in spans]
            words = [f"{cell.mean():.3f}" if len(cell) else "" for cell in cells]
            lines.append([data_set, network, *words])
    counts = [str(int(((tilt >= low) & (tilt < high + 1e-9)).sum())) for low, high in spans]
    lines.append(["", "rotations", *counts])
    return markdown(["data", "network", *(f"{low}° to {high}°" for low, high in spans)], lines)


def classes_table(numbers: Numbers) -> str:
    """Accuracy of each class, upright and over all rotations, and how often it is named."""
    first = numbers.data_sets[0]
    networks = numbers.networks(first)
    by_class: dict[str, dict[str, Row]] = {}
    for row in numbers.classes:
        if row["data"] == first:
            by_class.setdefault(row["class"], {})[row["network"]] = row
    lines = [
        [
            name,
            str(next(iter(rows.values()))["samples"]),
            *(
                f"{rows[network]['accuracy_upright']:.2f} → {rows[network]['accuracy_ball']:.2f}"
                for network in networks
            ),
            f"{rows['plain']['share']:.2f} → {rows['plain']['named_ball']:.2f}",
        ]
        for name, rows in by_class.items()
    ]
    return markdown(["class", "test clouds", *networks, "plain: share → named"], lines)


def explained_by(numbers: Numbers, data_set: str, network: str, by: NDArray) -> float:
    """The share of the accuracy's variance over all rotations that a smooth curve explains."""
    accuracy = numbers.along("ball", data_set, network, "accuracy")
    if np.ptp(accuracy) < 1e-9:
        return float("nan")
    curve: Any = np.polynomial.Polynomial.fit(by, accuracy, 6)
    return 1 - float(((accuracy - curve(by)) ** 2).mean() / accuracy.var())


def findings(numbers: Numbers) -> str:
    """What the rows say, in sentences whose numbers come from them."""
    first = numbers.data_sets[0]

    def value(network: str, quantity: str, data_set: str = first) -> float:
        return numbers.mean(data_set, network, quantity)

    def turned(network: str, axis: str, angle: float, data_set: str = first) -> float:
        by_angle = numbers.about_axis(data_set, network, "accuracy", axis)
        return _nearest(by_angle, angle)

    sideways, upright, forwards = AXES
    angles = explained_by(numbers, first, "plain", numbers.angle())
    tilts = explained_by(numbers, first, "plain", numbers.tilt())
    sentences = [
        "**The original is good only for small rotations: confirmed.** On Sweet Home 3D "
        f"{value('plain', 'accuracy_upright'):.3f} upright, "
        f"{turned('plain', sideways, 15):.3f} turned 15° about x, "
        f"{turned('plain', sideways, 45):.3f} at 45°, "
        f"{value('plain', 'accuracy_ball'):.3f} over all rotations, where naming the commonest "
        f"class would give {_commonest(numbers, first):.3f}.",
        "**The augmented network is flatter: confirmed, at a price.** "
        f"{value('augmented', 'accuracy_ball'):.3f} over all rotations, "
        f"{value('augmented', 'worst_ball'):.3f} at the worst of them; upright it has "
        f"{value('augmented', 'accuracy_upright'):.3f}, "
        f"{value('plain', 'accuracy_upright') - value('augmented', 'accuracy_upright'):.3f} less "
        "than the original with the same number of steps.",
        '**"Consistently recognizes the object across all rotations": for some clouds.** The '
        f"augmented network is right at every rotation for {value('augmented', 'always_ball'):.0%} "
        f"of the clouds and at none for {value('augmented', 'never_ball'):.0%}; the rest depend on "
        "the rotation. One example, as the paper shows, cannot tell.",
        "**Three planes flatter the original.** They hold "
        f"{_share_small(numbers, 'slices'):.0%} rotations below 45°; among all rotations, each "
        f"as likely as any other, there are {_share_small(numbers, 'ball'):.1%}. So its mean over "
        f"the paper's drawing is {value('plain', 'accuracy_slices'):.3f}, and "
        f"{value('plain', 'accuracy_ball'):.3f} over all rotations.",
        "**The worst axes are the horizontal ones.** At 90° the original keeps "
        f"{turned('plain', upright, 90):.3f} about the upright axis, "
        f"{turned('plain', sideways, 90):.3f} about x and {turned('plain', forwards, 90):.3f} "
        f"about z; at 180° {turned('plain', upright, 180):.3f}, "
        f"{turned('plain', sideways, 180):.3f} and {turned('plain', forwards, 180):.3f}. "
        f"Over all rotations a curve in the tilt of the upright axis explains {tilts:.0%} of the "
        f"variance of its accuracy, one in the angle of turn {angles:.0%}.",
    ]
    if "invariant" in numbers.networks(first):
        flat = [name for name in numbers.data_sets if "invariant" in numbers.networks(name)]
        ranges = [
            float(np.ptp(numbers.along("ball", data_set, "invariant", "accuracy")))
            for data_set in flat
        ]
        changes = [max(numbers.over_seeds(name, "invariant", "change_ball")) for name in flat]
        sentences += [
            "**The invariant network is flat**, by construction: its accuracy differs by "
            f"{max(ranges):.4f} between rotations, and no cloud's confidence by more than "
            f"{max(changes):.4f} (stored in half precision); the augmented one's by up to "
            f"{max(numbers.over_seeds(first, 'augmented', 'change_ball')):.2f}. It has "
            f"{value('invariant', 'accuracy_ball'):.3f} everywhere, more than the augmented one.",
            "**Flat is not calibrated.** The invariant network's ECE is "
            f"{value('invariant', 'ece_ball'):.3f} at every rotation (a calibrated one would show "
            f"{value('invariant', 'ece_upright_calibrated'):.3f} on so few clouds), the augmented "
            f"one's {value('augmented', 'ece_ball'):.3f} over all. The original's grows from "
            f"{value('plain', 'ece_upright'):.3f} upright to {value('plain', 'ece_ball'):.3f}: its "
            f"confidence falls only from {value('plain', 'confidence_upright'):.3f} to "
            f"{value('plain', 'confidence_ball'):.3f}.",
        ]
    if "modelnet10" in numbers.data_sets:
        words = ", ".join(
            f"{network} {value(network, 'accuracy_upright', 'modelnet10'):.3f} → "
            f"{value(network, 'accuracy_ball', 'modelnet10'):.3f}"
            for network in numbers.networks("modelnet10")
        )
        sentences.append(
            "**ModelNet10's chairs and monitors say the same** (upright → all rotations): "
            f"{words}. Guessing one class gives {_commonest(numbers, 'modelnet10'):.3f}."
        )
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _nearest(by_angle: dict[float, float], angle: float) -> float:
    """The value at the angle that was measured nearest to one."""
    return by_angle[min(by_angle, key=lambda measured: abs(measured - angle))]


def _commonest(numbers: Numbers, data_set: str) -> float:
    return max(float(row["share"]) for row in numbers.classes if row["data"] == data_set)


def _share_small(numbers: Numbers, group: str, below_deg: float = 45.0) -> float:
    matrices = numbers.groups[group].parts["space"][:, :3, :3]
    trace = np.trace(matrices, axis1=1, axis2=2)
    angle = np.rad2deg(np.arccos(np.clip((trace - 1) / 2, -1, 1)))
    return float(numbers.groups[group].weights[angle < below_deg - 1e-6].sum())


TABLES = {
    "settings": settings_table,
    "findings": findings,
    "accuracy": accuracy_table,
    "calibration": calibration_table,
    "axes": axes_table,
    "tilt": tilt_table,
    "classes": classes_table,
}


def labelled(group: Group, models: Sequence[str], values: Any, meaning: str) -> xr.DataArray:
    """Give numbers `[model, element]` the names and attributes that figures read."""
    import xarray as xr

    return xr.DataArray(
        np.asarray(values, float),
        dims=("model", "element"),
        coords={
            "model": list(models),
            **{name: ("element", entry) for name, entry in group.coords.items()},
        },
        attrs={
            "meaning": meaning,
            "models": list(models),
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {axis: entry.tolist() for axis, entry in group.layout.axes.items()},
            "limits": [0.0, 1.0],
            "statistic": "",
        },
    )


def orbit_figure(numbers: Numbers, group: str, data_set: str, quantity: str) -> Figure:
    """Draw one quantity of all networks over three planes or over the ball."""
    from orbical.figures import aggregate

    networks = numbers.networks(data_set)
    values = [numbers.along(group, data_set, network, quantity) for network in networks]
    meaning = {"accuracy": "accuracy", "ece": "calibration error (ECE)"}[quantity]
    array = labelled(numbers.groups[group], networks, values, meaning)
    array.attrs["higher_is_better"] = quantity == "accuracy"
    return aggregate(array, title=TITLES[data_set])


def individual_figure(numbers: Numbers, name: str) -> Figure:
    """Draw one cloud and the probability of its class over the three planes."""
    from orbical.datasets.point_clouds import sweethome3d
    from orbical.figures import individual
    from orbical.figures.clouds import cloud_picture

    networks = numbers.networks(numbers.data_sets[0])
    values = [
        [float(row[f"{name}/{network}"]) for row in numbers.individual] for network in networks
    ]
    array = labelled(numbers.groups["slices"], networks, values, "probability of the true class")
    array.attrs["higher_is_better"] = True
    chosen = numbers.chosen[name]
    array = array.assign_coords(sample=chosen["row"], label=chosen["class"])
    return individual(array, cloud_picture(sweethome3d().points[chosen["row"]]))


def angle_figure(numbers: Numbers) -> Figure:
    """Draw accuracy by the angle of turn about the three main axes, for each data set."""
    from orbical.figures.style import PAGE, figure, model_colours, styled

    with styled():
        fig = figure(PAGE, 2.9)
        panels = np.atleast_1d(fig.subplots(1, len(numbers.data_sets), sharey=True))
        colours = model_colours(NETWORKS)
        lines = dict(zip(AXES, (":", "-", "--"), strict=True))
        for ax, data_set in zip(panels, numbers.data_sets, strict=True):
            for network in numbers.networks(data_set):
                for axis, line in lines.items():
                    by_angle = numbers.about_axis(data_set, network, "accuracy", axis)
                    ax.plot([*by_angle], [*by_angle.values()], line, color=colours[network], lw=1.3)
            ax.set(xlabel="angle of turn", ylim=(0, 1.02), title=TITLES[data_set])
            ax.set_xticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])
            ax.grid(True)
        panels[0].set_ylabel("accuracy")
        _two_keys(fig, {name: colours[name] for name in NETWORKS}, lines)
    return fig


def _two_keys(fig: Figure, colours: dict[str, str], lines: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    handles += [
        Line2D([], [], color="0.3", ls=line, label=f"about {axis}") for axis, line in lines.items()
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=7)


def tilt_figure(numbers: Numbers) -> Figure:
    """Draw each rotation's accuracy and confidence by the tilt of the upright axis."""
    from orbical.figures.style import PAGE, figure, model_colours, styled

    first = numbers.data_sets[0]
    with styled():
        fig = figure(PAGE, 2.7)
        panels = fig.subplots(1, 2, sharey=True)
        colours = model_colours(NETWORKS)
        for ax, quantity in zip(panels, ("accuracy", "confidence"), strict=True):
            for network in numbers.networks(first):
                values = numbers.along("ball", first, network, quantity)
                ax.scatter(
                    numbers.tilt(), values, s=3, lw=0, alpha=0.5, color=colours[network],
                    label=network, rasterized=True,
                )  # fmt: skip
            ax.set(xlabel="tilt of the upright axis", ylim=(0, 1.02), title=quantity)
            ax.set_xticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])
            ax.grid(True)
        panels[0].set_ylabel("over all test clouds")
        panels[1].legend(loc="lower right", markerscale=3)
    return fig


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files.

    The pictures of single clouds need the public files; they are left as they are without these.
    """
    from orbical.errors import InputError
    from orbical.figures import save

    folder = page.with_suffix("")
    numbers = Numbers(folder)
    first = numbers.data_sets[0]
    figures = {
        "slices": orbit_figure(numbers, "slices", first, "accuracy"),
        "ball": orbit_figure(numbers, "ball", first, "accuracy"),
        "ece": orbit_figure(numbers, "slices", first, "ece"),
        "angle": angle_figure(numbers),
        "tilt": tilt_figure(numbers),
    }
    for data_set in numbers.data_sets[1:]:
        figures[f"slices-{data_set}"] = orbit_figure(numbers, "slices", data_set, "accuracy")
    try:
        for name in numbers.chosen:
            figures[f"individual-{name}"] = individual_figure(numbers, name)
    except InputError as error:
        print(f"single clouds not drawn: {error}")
    written = [save(figure, folder / f"{name}.png") for name, figure in figures.items()]
    return [write_page(page, {name: table(numbers) for name, table in TABLES.items()}), *written]
