"""Figures of a journal's column, and long names on them: nothing overlaps, nothing is cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import orbical as ob
from orbical.calibration import cumulative_curve
from orbical.errors import InputError
from orbical.figures.calibration import cumulative_plot, error_along_orbit
from orbical.figures.style import MODELS, readable_color

COLUMN = 3.3
NAMES = ["a-rather-long-name-of-a-network-v2.1", "resnet18_rotations_seed_2026", "b", "plain"]


def responses(spec: str) -> xr.DataArray:
    """Random responses of four models over a group, as `orbical.nero` gives them."""
    group = ob.groups.parse(spec)
    return xr.DataArray(
        np.random.default_rng(0).random((len(NAMES), len(group))),
        dims=("model", "element"),
        coords={"model": NAMES}
        | {name: ("element", values) for name, values in group.coords.items()},
        attrs={
            "meaning": "probability of the true class",
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {name: axis.tolist() for name, axis in group.layout.axes.items()},
        },
    )


def words(fig: Figure) -> list:
    """The boxes of all titles, of the legend and of the line below."""
    fig.canvas.draw()
    below = [fig._supxlabel] if fig._supxlabel else []
    found = [axes.title for axes in fig.axes if axes.get_title()] + below
    return [text.get_window_extent() for text in found] + [
        legend.get_window_extent() for legend in fig.legends
    ]


@pytest.mark.parametrize("spec", ["rotations:12", "translations:2:1", "dihedral:4*time_reversal"])
def test_long_names_fit_a_column(spec: str) -> None:
    fig = ob.figures.aggregate(responses(spec), width=COLUMN, title="A title")
    assert fig.get_figwidth() == COLUMN
    boxes = words(fig)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    for box in boxes:
        assert box.x0 >= -2
        assert box.x1 <= COLUMN * fig.dpi + 2


LONG = "a name that is as long as a sentence about the network, the class or the page it is of"


def drawn_with_long_names(kind: str) -> Figure:
    """A figure with one long name: what it is of says the kind."""
    if kind == "title":
        return ob.figures.aggregate(responses("dihedral:4"), title=LONG, width=COLUMN)
    if kind == "label":
        one = responses("dihedral:4").expand_dims(sample=[17]).assign_coords(label=LONG)
        return ob.figures.individual(one, np.eye(8)[None])
    if kind == "class":
        names = [f"{number}: {LONG}" for number in range(8)]
        places = np.random.default_rng(0).random((8, 2))
        array = xr.DataArray(places, dims=("sample", "component"))
        return ob.figures.embedding(array.assign_coords(kind=("sample", names)), color="kind")
    if kind == "group":
        return ob.figures.group_picture(
            "dihedral:4*time_reversal*translations:2:1*permutations:3", "flips", width=2.5
        )
    curve = ob.selective.risk_coverage([0.9, 0.8, 0.7], [True, False, True])
    return ob.figures.risk_coverage_plot({LONG: curve})


@pytest.mark.parametrize("kind", ["title", "label", "class", "group", "model"])
def test_long_names_are_broken_or_lose_their_middle(kind: str) -> None:
    """They ran out of the figure on the right, on both sides, or took the place of its axes."""
    fig = drawn_with_long_names(kind)
    fig.canvas.draw()
    texts = [axes.title for axes in fig.axes if axes.get_title()]
    texts += [text for legend in fig.legends for text in legend.get_texts()]
    texts += [text for axes in fig.axes for text in axes.texts]
    texts += [fig._suptitle] if kind == "title" else []
    for text in texts:
        box = text.get_window_extent()
        assert -2 <= box.x0 <= box.x1 <= fig.get_figwidth() * fig.dpi + 2, text.get_text()
    said = "\n".join(text.get_text() for text in texts)
    assert LONG.replace(" ", "") in said.replace("\n", "").replace(" ", "") or "…" in said
    widest = max(axes.get_window_extent().width for axes in fig.axes)
    assert widest > 0.15 * fig.get_figwidth() * fig.dpi


def test_plots_that_do_not_fit_beside_each_other_go_below() -> None:
    wide = ob.figures.aggregate(responses("flips"))
    narrow = ob.figures.aggregate(responses("flips"), width=COLUMN)
    for fig, rows in ((wide, 1), (narrow, 2)):
        places = [axes.get_subplotspec() for axes in fig.axes if axes.get_title()]
        assert len(places) == 4
        assert len({place.rowspan.start for place in places}) == rows
    curve = cumulative_curve([0.6, 0.8, 0.9], [True, False, True])
    curves = {"plain": curve, "augmented": curve}
    (width, height), (_, beside) = (
        cumulative_plot(curves, width=size).get_size_inches() for size in (COLUMN, 7.0)
    )
    assert width == COLUMN
    assert height > 1.5 * beside


def test_what_a_height_means_stays_written_beside_its_interval() -> None:
    array = responses("scales:0.5:2:5")
    ends = dict.fromkeys(("low", "high", "calibrated"), (("model", "element"), array.values))
    said = error_along_orbit(array.assign_coords(ends)).get_supxlabel()
    assert "probability of the true class" in said
    assert "band: interval of the error" in said


def test_names_in_the_colors_of_models_can_be_read() -> None:
    assert readable_color(MODELS[0]) == MODELS[0]
    assert readable_color(MODELS[5]) != MODELS[5]


@pytest.mark.parametrize("width", [0.5, 100.0, float("nan")])
def test_a_width_of_no_page_is_refused(width: float) -> None:
    with pytest.raises(InputError, match="width"):
        ob.figures.aggregate(responses("flips"), width=width)
