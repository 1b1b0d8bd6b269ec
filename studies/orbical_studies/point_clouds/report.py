"""Numbers and figures of the point-cloud study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orbical.errors import InputError
from orbical.figures import aggregate, cloud_picture, individual, model_colors
from orbical.groups import Group, parse

from ..framework import Results, where
from ..framework.drawing import subplots
from ..framework.statistics import wilson
from ..hidden_failures import with_shares
from .collecting import BATHTUB
from .training import NETWORKS, SOURCES
from .transformer import AUGMENTED, UPRIGHT, decided

AXES = {"x (sideways)": ("xy", 0.0), "y (upright)": ("xy", 90.0), "z (forwards)": ("xz", 90.0)}
TITLES = {"modelnet10": "ModelNet10", "sweethome3d": "Sweet Home 3D"}
DECIDES = "modelnet10"
POINTNETS = ("plain", "augmented", "invariant")  # drawn together, those with attention apart
ATTENTIVE = ("attention", "attention-augmented", "invariant")
ORIGINALS = {"augmented": "plain", "attention-augmented": "attention"}
TILT_EDGES = (0, 15, 30, 45, 60, 90, 120, 150, 180)
MEANINGS = {"accuracy": "accuracy", "ece": "calibration error (ECE)"}


_parse = cache(parse)


def _names(results: Results, column: str) -> list[str]:
    """Return the data sets or the networks, in the order of the table."""
    return list(results["summary"][column].unique())


def _group(results: Results, name: str) -> Group:
    return _parse(results["chosen"][name].iloc[0])


def _about_axis(results: Results, data: str, network: str, axis: str) -> pd.Series:
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


def _explained_by(by: np.ndarray, values: pd.Series) -> float:
    """Compute the share of the variance that a polynomial of degree 6 explains."""
    curve: Any = np.polynomial.Polynomial.fit(by, values, 6)
    return 1 - float(((values - curve(by)) ** 2).mean() / (values.var(ddof=0) or np.nan))


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to; ModelNet10 where no data set is named."""
    summary, ball, classes = (results[name] for name in ("summary", "ball", "classes"))
    groups = {name: _group(results, name) for name in ("slices", "ball")}
    tilt, plain = tilt_of(groups["ball"]), ball[f"{DECIDES}/plain/accuracy"]
    cells = np.digitize(tilt, TILT_EDGES[1:-1])
    measured = Measured(results)
    return {
        "titles": TITLES,
        "data_sets": _names(results, "data"),
        "networks": _names(results, "network"),
        "summary": summary,
        "contrasts": results["contrasts"],
        "axes": list(AXES),
        "at": measured.at,
        "mean": measured.mean,
        "tested": measured.tested,
        "contrast": measured.contrast,
        "turned": measured.turned,
        "claims": {data: measured.claims(data) for data in _names(results, "data")},
        "bathtubs": _bathtubs(classes[classes["data"] == DECIDES]),
        "pt": decided(results["transformer"]),
        "worst": with_shares(results["worst"], len(NETWORKS)).set_index("network"),
        "groups": groups,
        "below_45": {n: g.weights[angle_of(g) < 45 - 1e-6].sum() for n, g in groups.items()},
        "explained_by_tilt": _explained_by(tilt, plain),
        "explained_by_angle": _explained_by(angle_of(groups["ball"]), plain),
        "spans": list(pairwise(TILT_EDGES)),
        "by_tilt": ball.groupby(cells).mean().reindex(range(len(TILT_EDGES) - 1)),
        "in_span": np.bincount(cells, minlength=len(TILT_EDGES) - 1),
        "by_class": {
            data: some.pivot(index="class", columns="network")
            for data, some in classes.groupby("data", sort=False)
        },
    }


def _bathtubs(classes: pd.DataFrame) -> pd.DataFrame:
    """Return the bathtubs by network; `low` is of the interval of the share right at all."""
    found = classes[classes["class"] == BATHTUB].set_index("network")
    low, _ = wilson(found["always_ball"] * found["samples"], found["samples"])
    return found.assign(low=low)


class Measured:
    """Means over trainings, comparisons over test clouds, and the rules of the page."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._seeds = dict(iter(results["summary"].groupby(["data", "network"])))

    def at(self, network: str, data: str = DECIDES) -> pd.DataFrame:
        """Return the rows of all trainings of a network."""
        return self._seeds[data, network]

    def mean(self, network: str, quantity: str, data: str = DECIDES) -> float:
        """Return the mean over trainings."""
        return float(self.at(network, data)[quantity].mean())

    def tested(self, data: str = DECIDES) -> int:
        """Return the number of test clouds."""
        return int(self.at("plain", data)["test"].iloc[0])

    def turned(self, network: str, axis: str, angle: float, data: str = DECIDES) -> float:
        """Return the accuracy at the measured angle nearest to the one given."""
        (full,) = (name for name in AXES if name.startswith(axis))
        by_angle = _about_axis(self._results, data, network, full)
        return float(by_angle.iloc[np.abs(by_angle.index - angle).argmin()])

    def contrast(self, first: str, second: str, quantity: str, data: str = DECIDES) -> pd.Series:
        """Return a comparison of two networks, and its `sign`: 0 if it is not clear.

        It is clear if its corrected p value is below 0.05 and all trainings agree.
        """
        wanted = {"data": data, "first": first, "second": second, "quantity": quantity}
        (row,) = where(self._results["contrasts"], **wanted).iloc
        clear = row["p_holm"] < 0.05 and row["same_sign"] == len(self.at(first, data))
        return pd.Series({**row, "sign": int(np.sign(row["difference"])) if clear else 0})

    def claims(self, data: str) -> dict[str, bool]:
        """Apply the rules to a data set; those of the originals to both architectures."""
        above = [self.contrast("invariant", name, "ball", data)["sign"] for name in ORIGINALS]
        flat = self.at("invariant", data)
        return {
            "stronger": self.contrast("attention", "plain", "upright", data)["sign"] > 0,
            "near_upright": all(self._near_upright(name, data) for name in ORIGINALS.values()),
            "more_invariant": self._all_below("lost", data),
            "pays": self._all_below("upright", data),
            "construction": min(above) > 0,
            "construction_refuted": min(above) < 0,
            "not_calibrated": bool((flat["ece_ball"] > flat["ece_upright_calibrated"]).all()),
            **self._about_axes(data),
        }

    def _all_below(self, quantity: str, data: str) -> bool:
        """Check whether both augmented networks are clearly below their originals."""
        pairs = ORIGINALS.items()
        return all(self.contrast(*pair, quantity, data)["sign"] < 0 for pair in pairs)

    def _near_upright(self, network: str, data: str) -> bool:
        count = self.tested(data)
        upright, ball = (self.mean(network, f"accuracy_{n}", data) for n in ("upright", "ball"))
        low, high = wilson(upright * count, count)[0], wilson(ball * count, count)[1]
        return high < 0.6 * low and self.turned(network, "x", 15, data) > 0.8 * upright

    def _about_axes(self, data: str) -> dict[str, bool]:
        """Apply the rules about planes and axes to both originals."""
        found: dict[str, list[bool]] = {"flattered": [], "half_turn": [], "horizontal": []}
        for name in ORIGINALS.values():
            upright, slices, ball = (
                self.mean(name, f"accuracy_{n}", data) for n in ("upright", "slices", "ball")
            )
            x, y, z = (self.turned(name, axis, 90, data) for axis in "xyz")
            found["flattered"].append(slices > ball)
            found["half_turn"].append(self.turned(name, "y", 180, data) > 0.8 * upright)
            found["horizontal"].append(max(x, z) < y)
        return {name: all(values) for name, values in found.items()}


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw accuracy and ECE over rotations, by angle and by tilt, and two single clouds.

    The single clouds need the public files, and are left out without them.
    """
    slices, ball = (_group(results, name) for name in ("slices", "ball"))
    for name, group, table, data, quantity, networks in (
        ("slices", slices, "slices", DECIDES, "accuracy", POINTNETS),
        ("slices-attention", slices, "slices", DECIDES, "accuracy", ATTENTIVE[:2]),
        ("slices-sweethome3d", slices, "slices", "sweethome3d", "accuracy", POINTNETS),
        ("ball", ball, "ball", DECIDES, "accuracy", POINTNETS),
        ("transformer", ball, "transformer-ball", DECIDES, "accuracy", (UPRIGHT, AUGMENTED)),
        ("ece", slices, "slices", DECIDES, "ece", POINTNETS),
    ):
        yield f"{name}.png", _orbit(results[table], group, data, quantity, networks)
    yield "angle.png", _angle(results)
    yield "tilt.png", _tilt(results)
    try:
        clouds = {name: SOURCES[name]()[1].points for name in set(results["chosen"]["data"])}
    except InputError as error:
        print(f"single clouds not drawn: {error}")
        return
    for chosen in results["chosen"].to_dict("records"):
        drawn = _individual(results, chosen, clouds[chosen["data"]])
        yield f"individual-{chosen['name']}.png", drawn


def _responses(
    networks: Sequence[str], group: Group, values: Any, meaning: str, rising: bool
) -> xr.DataArray:
    """Label numbers `[network, element]` as `orbical.nero` does for figures."""
    return xr.DataArray(
        np.asarray(values, float),
        dims=("model", "element"),
        coords={
            "model": list(networks),
            **{name: ("element", entry) for name, entry in group.coords.items()},
        },
        attrs={
            "meaning": meaning,
            "models": list(networks),
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {axis: entry.tolist() for axis, entry in group.layout.axes.items()},
            "limits": [0.0, 1.0],
            "statistic": "",
            "higher_is_better": rising,
        },
    )


def _orbit(
    table: pd.DataFrame, group: Group, data: str, quantity: str, networks: Sequence[str]
) -> Figure:
    values = [table[f"{data}/{network}/{quantity}"] for network in networks]
    shown = (MEANINGS[quantity], quantity == "accuracy")
    array = _responses(networks, group, values, *shown)
    return aggregate(array, title=TITLES[data])


def _individual(results: Results, chosen: dict[str, Any], clouds: Any) -> Figure:
    values = [results["individual"][f"{chosen['name']}/{network}"] for network in ATTENTIVE]
    meaning = "probability of the true class"
    array = _responses(ATTENTIVE, _group(results, "slices"), values, meaning, True)
    array = array.assign_coords(sample=chosen["row"], label=chosen["class"])
    return individual(array, cloud_picture(clouds[chosen["row"]]))


def _by_degrees(ax: Any, xlabel: str, title: str) -> None:
    ax.set(xlabel=xlabel, ylim=(0, 1.02), title=title)
    ax.set_xticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])


def _angle(results: Results) -> Figure:
    """Draw accuracy of the originals by the angle of rotation about the three main axes."""
    networks, data_sets = list(ORIGINALS.values()), _names(results, "data")
    colors = model_colors(_names(results, "network"))
    lines = dict(zip(AXES, (":", "-", "--"), strict=True))
    fig, panels = subplots(1, len(data_sets), 2.9, sharey=True, grid="both")
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


def _tilt(results: Results) -> Figure:
    """Draw each rotation's accuracy and confidence by the tilt of the upright axis."""
    networks = _names(results, "network")
    tilt, colors = tilt_of(_group(results, "ball")), model_colors(networks)
    dots = {"s": 3, "lw": 0, "alpha": 0.5, "rasterized": True}
    fig, panels = subplots(1, 2, 2.7, sharey=True, grid="both")
    for ax, quantity in zip(panels, ("accuracy", "confidence"), strict=True):
        for network in networks:
            values = results["ball"][f"{DECIDES}/{network}/{quantity}"]
            ax.scatter(tilt, values, color=colors[network], label=network, **dots)
        _by_degrees(ax, "tilt of the upright axis", quantity)
    panels[0].set_ylabel("over all test clouds")
    panels[1].legend(loc="lower right", markerscale=3)
    return fig
