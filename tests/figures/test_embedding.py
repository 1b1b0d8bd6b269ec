"""Maps of samples: points, colors and the orbits drawn beside them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.patches import ConnectionPatch

import orbical as ob
from orbical.errors import InputError
from orbical.figures import style

SAMPLES = 40


@pytest.fixture
def places() -> xr.DataArray:
    generator = np.random.default_rng(0)
    return xr.DataArray(
        generator.normal(size=(2, SAMPLES, 2)),
        dims=("model", "sample", "component"),
        coords={
            "model": ["plain", "augmented"],
            "sample": np.arange(SAMPLES) + 100,
            "label": ("sample", np.arange(SAMPLES) % 4),
            "mean": (("model", "sample"), generator.random((2, SAMPLES))),
            "variance": (("model", "sample"), generator.random((2, SAMPLES)) / 4),
        },
        attrs={"method": "tsne", "limits": [0.0, 1.0], "meaning": "probability", "missing": 0},
    )


def responses(spec: str, samples: list[int]) -> xr.DataArray:
    group = ob.groups.parse(spec)
    return xr.DataArray(
        np.random.default_rng(1).random((2, len(samples), len(group))),
        dims=("model", "sample", "element"),
        coords={"model": ["plain", "augmented"], "sample": samples}
        | {name: ("element", values) for name, values in group.coords.items()},
        attrs={
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {name: axis.tolist() for name, axis in group.layout.axes.items()},
            "limits": [0.0, 1.0],
            "identity": group.identity,
        },
    )


def maps(fig) -> list:
    return [axes for axes in fig.axes if axes.get_xlabel().endswith(" 1")]


@pytest.mark.parametrize("color", ["mean", "variance"])
def test_every_sample_stands_at_its_place_in_the_color_of_its_value(
    places: xr.DataArray, color: str
) -> None:
    fig = ob.figures.embedding(places, color=color)
    panels = maps(fig)
    assert [axes.get_title() for axes in panels] == ["plain", "augmented"]
    for model, axes in enumerate(panels):
        (points,) = axes.collections
        drawn = np.column_stack([points.get_offsets(), points.get_array()])
        given = np.column_stack([places.values[model], places[color].values[model]])
        np.testing.assert_allclose(drawn[drawn[:, 2].argsort()], given[given[:, 2].argsort()])
    limits = (0, 1) if color == "mean" else (0, places["variance"].values.max())
    assert panels[0].collections[0].get_clim() == pytest.approx(limits)


def test_maps_of_several_models_share_one_frame(places: xr.DataArray) -> None:
    first, second = maps(ob.figures.embedding(places))
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    assert first.get_xlabel() == "t-SNE 1"


def test_labels_are_colored_by_class_and_written_among_their_points(places: xr.DataArray) -> None:
    (axes,) = maps(ob.figures.embedding(places.sel(model="plain"), color="label"))
    expected = style.class_colors(range(4))
    assert len(axes.collections) == 4
    for label, points in enumerate(axes.collections):
        assert to_hex(points.get_facecolor()[0]).upper() == expected[str(label)].upper()
        members = places.values[0][places["label"].values == label]
        np.testing.assert_array_equal(points.get_offsets(), members)
    assert sorted(text.get_text() for text in axes.texts) == ["0", "1", "2", "3"]


def test_responses_beside_the_map_are_those_of_the_samples_they_lead_to(
    places: xr.DataArray,
) -> None:
    chosen = [103, 110, 121, 135, 138]
    given = responses("rotations:12", chosen)
    fig = ob.figures.embedding(
        places.sel(model="augmented"), responses=given, image=np.zeros((5, 1, 4, 4))
    )
    glyphs = [axes for axes in fig.axes if axes.name == "polar"]
    assert sorted(axes.get_title() for axes in glyphs) == [f"sample {number}" for number in chosen]
    for axes in glyphs:
        place = chosen.index(int(axes.get_title().split()[1]))
        np.testing.assert_array_equal(axes.lines[0].get_ydata()[:12], given.values[1, place])
    ends = sorted(tuple(line.xy2) for line in fig.findobj(ConnectionPatch))
    expected = sorted(tuple(places.values[1, number - 100]) for number in chosen)
    np.testing.assert_allclose(ends, expected)


@pytest.mark.parametrize(
    "spec",
    ["rotations:8", "translations:1:1", "slices3d:6:3", "rotations3d:9", "flips", "scales:0.5:2:5"],
)
def test_every_layout_can_stand_beside_the_map(places: xr.DataArray, spec: str) -> None:
    fig = ob.figures.embedding(places, responses=responses(spec, [100, 101, 102]))
    fig.canvas.draw()
    assert len(fig.findobj(ConnectionPatch)) == 6


def test_unfinished_samples_are_left_out_and_counted(places: xr.DataArray) -> None:
    places.values[:, :3] = np.nan
    places.attrs["missing"] = 6
    fig = ob.figures.embedding(places, color="label")
    fig.canvas.draw()
    drawn = sum(len(points.get_offsets()) for points in maps(fig)[0].collections)
    assert drawn == SAMPLES - 3
    assert "6 unfinished" in fig._supxlabel.get_text()


def test_what_embed_gives_can_be_drawn() -> None:
    values = (("model", "sample", "element"), np.random.default_rng(0).random((1, 20, 8)))
    data = xr.Dataset(
        {"score": values, "score_vs_consensus": values},
        coords={"model": ["net"], "weight": ("element", np.full(8, 1 / 8))},
        attrs={
            "group": "rotations:8",
            "task": "classification",
            "score": "probability of the true class",
            "higher_is_better": True,
        },
    )
    found = ob.embedding.embed(data, "pca", model="net")
    chosen = ob.embedding.representatives(found, 4)
    fig = ob.figures.embedding(found, responses=ob.nero.individual(data, chosen))
    assert maps(fig)[0].get_title() == "net"
    assert len([axes for axes in fig.axes if axes.name == "polar"]) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: ob.figures.embedding(a, color="labels"), "did you mean 'label'"),
        (lambda a: ob.figures.embedding(a.isel(component=0)), "array: expected"),
        (lambda a: ob.figures.embedding(a.isel(component=[0])), "expected two or more components"),
        (lambda a: ob.figures.embedding(a, image=[1]), "image: expected responses with images"),
        (lambda a: ob.figures.embedding(a, color="sample"), "40 values"),
        (
            lambda a: ob.figures.embedding(a, responses=responses("flips", [7])),
            "expected samples of the map, got 7",
        ),
        (
            lambda a: ob.figures.embedding(a, responses=responses("flips", [100]), image=[]),
            "image: expected one for each of 1 samples, got 0",
        ),
        (
            lambda a: ob.figures.embedding(a, responses=responses("flips", [100]).isel(sample=0)),
            "responses: expected",
        ),
    ],
)
def test_bad_requests_are_refused_by_name(places: xr.DataArray, call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(places)
