"""Numbers and figures of the point-cloud study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orbical.errors import InputError
from orbical.figures import PAGE, aggregate, cloud_picture, figure, individual, model_colors, styled
from orbical.groups import Group, parse

from ..framework import Results
from ..framework.statistics import wilson
from ..hidden_failures import with_shares
from .collecting import BATHTUB
from .training import NETWORKS, SOURCES

AXES = {"x (sideways)": ("xy", 0.0), "y (upright)": ("xy", 90.0), "z (forwards)": ("xz", 90.0)}
TITLES = {"sweethome3d": "Sweet Home 3D", "modelnet10": "ModelNet10, chairs and monitors"}
AUGMENTED = ("augmented", "attention-augmented")
TEN, TEN_TITLE = "modelnet10", "ModelNet10, ten classes"
TILT_EDGES = (0, 15, 30, 45, 60, 90, 120, 150, 180)
MEANINGS = {"accuracy": "accuracy", "ece": "calibration error (ECE)"}


_parse = cache(parse)


class Earlier:
    """The tables of the earlier run: PointNet, Sweet Home 3D and two classes of ModelNet10."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._results[f"earlier-{name}"]


Tables = Results | Earlier


def _names(results: Tables, column: str) -> list[str]:
    """Return the data sets or the networks, in the order of the table."""
    return list(results["summary"][column].unique())


def _group(results: Tables, name: str) -> Group:
    return _parse(results["chosen"][name].iloc[0])


def _about_axis(results: Tables, data: str, network: str, axis: str) -> pd.Series:
    """Return accuracy by the angle of rotation about a main axis of space."""
    layout = _group(results, "slices").layout
    plane, azimuth = AXES[axis]
    place = [str(name) for name in layout.axes["plane"]].index(plane)
    line = np.abs(layout.axes["azimuth"] - azimuth).argmin()
    values = results["slices"][f"{data}/{network}/accuracy"].to_numpy()
    return pd.Series(values[layout.index[place, line]], layout.axes["angle"])


def tilt_of(group: Group) -> np.ndarray:
    """Compute how far each rotation tilts the upright axis y, in degrees."""
    return np.degrees(np.arccos(np.clip(group.linear("space")[:, 1, 1], -1, 1)))


def angle_of(group: Group) -> np.ndarray:
    """Compute the angle of each rotation, in degrees."""
    trace = np.trace(group.linear("space"), axis1=1, axis2=2)
    return np.rad2deg(np.arccos(np.clip((trace - 1) / 2, -1, 1)))


def explained_by(by: np.ndarray, values: pd.Series) -> float:
    """Compute the share of the variance that a polynomial of degree 6 explains."""
    curve: Any = np.polynomial.Polynomial.fit(by, values, 6)
    return 1 - float(((values - curve(by)) ** 2).mean() / (values.var(ddof=0) or np.nan))


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to: of the earlier run, and of ten classes of ModelNet10."""
    return _earlier_facts(Earlier(results)) | {"ten": _ten_facts(results)}


def _ten_facts(results: Results) -> dict[str, Any]:
    """Return means over trainings, comparisons, bathtubs and worst cases on ten classes."""
    summary, classes, contrasts = (results[n] for n in ("summary", "classes", "contrasts"))
    seeds = dict(iter(summary[summary["data"] == TEN].groupby("network", sort=False)))
    bathtubs = classes[(classes["data"] == TEN) & (classes["class"] == BATHTUB)]

    def contrast(first: str, second: str, quantity: str) -> pd.Series:
        """Return the comparison of two networks; `clear` if corrected p and all trainings agree."""
        wanted = {"data": TEN, "first": first, "second": second, "quantity": quantity}
        (row,) = contrasts[(contrasts[list(wanted)] == pd.Series(wanted)).all(axis=1)].iloc
        clear = row["p_holm"] < 0.05 and row["same_sign"] == len(seeds[first])
        return pd.Series({**row, "clear": clear})

    augmented = [name for name in AUGMENTED if name in seeds]
    against = [contrast("invariant", name, "ball") for name in augmented]
    signs = [np.sign(row["difference"]) if row["clear"] else 0 for row in against]
    return {
        "above_all": len(signs) == len(AUGMENTED) and min(signs) > 0,
        "below_one": min(signs) < 0,
        "bathtubs_at_all": {
            name: wilson(row.always_ball * row.samples, row.samples)
            for name, row in bathtubs.set_index("network").iterrows()
        },
        "networks": list(seeds),
        "trainings": len(summary),
        "at": lambda network: seeds[network],
        "mean": lambda network, quantity: seeds[network][quantity].mean(),
        "tested": int(summary["test"].iloc[0]),
        "trained": int(summary["train"].iloc[0]),
        "steps": int(summary["steps"].iloc[0]),
        "contrast": contrast,
        "bathtubs": bathtubs.set_index("network"),
        "worst": with_shares(results["worst"], len(NETWORKS)).set_index("network"),
        "classes": classes[classes["data"] == TEN].pivot(index="class", columns="network"),
    }


def _earlier_facts(results: Earlier) -> dict[str, Any]:
    summary, ball, classes = results["summary"], results["ball"], results["classes"]
    seeds = dict(iter(summary.groupby(["data", "network"])))
    groups = {name: _group(results, name) for name in ("slices", "ball")}
    plain = ball["sweethome3d/plain/accuracy"]
    tilt = tilt_of(groups["ball"])
    furniture = classes[classes["data"] == "sweethome3d"]
    cells = np.digitize(tilt, TILT_EDGES[1:-1])

    def turned(network: str, axis: str, angle: float, data: str = "sweethome3d") -> float:
        """Return the accuracy at the measured angle nearest to the one given."""
        (full,) = (name for name in AXES if name.startswith(axis))
        by_angle = _about_axis(results, data, network, full)
        return float(by_angle.iloc[np.abs(by_angle.index - angle).argmin()])

    data_sets = _names(results, "data")
    return {
        "summary": summary,
        "data_sets": data_sets,
        "networks": _names(results, "network"),
        "axes": list(AXES),
        "at": lambda network, data="sweethome3d": seeds[data, network],
        "mean": lambda network, quantity, data="sweethome3d": seeds[data, network][quantity].mean(),
        "turned": turned,
        "groups": groups,
        "below_45": {n: g.weights[angle_of(g) < 45 - 1e-6].sum() for n, g in groups.items()},
        "explained_by_tilt": explained_by(tilt, plain),
        "explained_by_angle": explained_by(angle_of(groups["ball"]), plain),
        "flat": max(np.ptp(ball[f"{data}/invariant/accuracy"]) for data in data_sets),
        "spans": list(pairwise(TILT_EDGES)),
        "by_tilt": ball.groupby(cells).mean().reindex(range(len(TILT_EDGES) - 1)),
        "in_span": np.bincount(cells, minlength=len(TILT_EDGES) - 1),
        "classes": dict(iter(classes.groupby("data"))),
        "by_class": furniture.pivot(index="class", columns="network"),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw accuracy and ECE over rotations, by angle and by tilt, and two single clouds.

    The single clouds need the public files, and are left out without them.
    """
    earlier, furniture = Earlier(results), "sweethome3d"
    yield "ten.png", _orbit(results, "slices", TEN, "accuracy", TEN_TITLE)
    for name, group, data, quantity in (
        ("slices", "slices", furniture, "accuracy"),
        ("ball", "ball", furniture, "accuracy"),
        ("ece", "slices", furniture, "ece"),
        ("slices-modelnet10", "slices", TEN, "accuracy"),
    ):
        yield f"{name}.png", _orbit(earlier, group, data, quantity, TITLES[data])
    yield "angle.png", _angle(earlier)
    yield "tilt.png", _tilt(earlier)
    try:
        clouds = {name: SOURCES[name]()[1].points for name in set(results["chosen"]["data"])}
    except InputError as error:
        print(f"single clouds not drawn: {error}")
        return
    for chosen in results["chosen"].to_dict("records"):
        drawn = _individual(results, chosen, clouds[chosen["data"]])
        yield f"individual-{chosen['name']}.png", drawn


def _responses(
    networks: list[str], group: Group, values: Any, meaning: str, rising: bool
) -> xr.DataArray:
    """Label numbers `[network, element]` as `orbical.nero` does for figures."""
    return xr.DataArray(
        np.asarray(values, float),
        dims=("model", "element"),
        coords={
            "model": networks,
            **{name: ("element", entry) for name, entry in group.coords.items()},
        },
        attrs={
            "meaning": meaning,
            "models": networks,
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {axis: entry.tolist() for axis, entry in group.layout.axes.items()},
            "limits": [0.0, 1.0],
            "statistic": "",
            "higher_is_better": rising,
        },
    )


def _orbit(results: Tables, name: str, data: str, quantity: str, title: str) -> Figure:
    networks, group = _names(results, "network"), _group(results, name)
    values = [results[name][f"{data}/{network}/{quantity}"] for network in networks]
    array = _responses(networks, group, values, MEANINGS[quantity], quantity == "accuracy")
    return aggregate(array, title=title)


def _individual(results: Results, chosen: dict[str, Any], clouds: Any) -> Figure:
    networks = _names(results, "network")
    values = [results["individual"][f"{chosen['name']}/{network}"] for network in networks]
    meaning = "probability of the true class"
    array = _responses(networks, _group(results, "slices"), values, meaning, True)
    array = array.assign_coords(sample=chosen["row"], label=chosen["class"])
    return individual(array, cloud_picture(clouds[chosen["row"]]))


def _by_degrees(ax: Any, xlabel: str, title: str) -> None:
    ax.set(xlabel=xlabel, ylim=(0, 1.02), title=title)
    ax.set_xticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])
    ax.grid(True)


def _angle(results: Tables) -> Figure:
    """Draw accuracy by the angle of rotation about the three main axes."""
    networks, data_sets = _names(results, "network"), _names(results, "data")
    colors = model_colors(networks)
    lines = dict(zip(AXES, (":", "-", "--"), strict=True))
    with styled():
        fig = figure(PAGE, 2.9)
        panels = fig.subplots(1, len(data_sets), sharey=True)
        for ax, data in zip(panels, data_sets, strict=True):
            for network in networks:
                for axis, line in lines.items():
                    by_angle = _about_axis(results, data, network, axis)
                    ax.plot(by_angle, line, color=colors[network], lw=1.3)
            _by_degrees(ax, "angle of rotation", TITLES[data])
        panels[0].set_ylabel("accuracy")
        handles = [Line2D([], [], color=colors[name], label=name) for name in networks]
        handles += [Line2D([], [], color="0.3", ls=lines[a], label=f"about {a}") for a in AXES]
        fig.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=7)
    return fig


def _tilt(results: Tables) -> Figure:
    """Draw each rotation's accuracy and confidence by the tilt of the upright axis."""
    networks = _names(results, "network")
    tilt, colors = tilt_of(_group(results, "ball")), model_colors(networks)
    dots = {"s": 3, "lw": 0, "alpha": 0.5, "rasterized": True}
    with styled():
        fig = figure(PAGE, 2.7)
        panels = fig.subplots(1, 2, sharey=True)
        for ax, quantity in zip(panels, ("accuracy", "confidence"), strict=True):
            for network in networks:
                values = results["ball"][f"sweethome3d/{network}/{quantity}"]
                ax.scatter(tilt, values, color=colors[network], label=network, **dots)
            _by_degrees(ax, "tilt of the upright axis", quantity)
        panels[0].set_ylabel("over all test clouds")
        panels[1].legend(loc="lower right", markerscale=3)
    return fig
