"""The point-cloud study's figures, from its CSV files alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orbical.groups import Group
from orbical.zoo.pointnet import NAMES as NETWORKS

from .numbers import AXES, Numbers

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TITLES = {"sweethome3d": "Sweet Home 3D, 10 classes", "modelnet10": "ModelNet10, 2 classes"}


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
    from orbical.figures.style import PAGE, figure, model_colors, styled

    with styled():
        fig = figure(PAGE, 2.9)
        panels = np.atleast_1d(fig.subplots(1, len(numbers.data_sets), sharey=True))
        colours = model_colors(NETWORKS)
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
    from orbical.figures.style import PAGE, figure, model_colors, styled

    first = numbers.data_sets[0]
    with styled():
        fig = figure(PAGE, 2.7)
        panels = fig.subplots(1, 2, sharey=True)
        colours = model_colors(NETWORKS)
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
