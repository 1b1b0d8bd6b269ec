"""NERO plots: what is drawn is what was given, in every layout."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.colors import to_hex

import orbical as ob
from orbical.errors import InputError
from orbical.figures import style

MODELS = ["plain", "augmented"]


def responses(spec: str, by: list | None = None, models: list[str] = MODELS) -> xr.DataArray:
    """Random responses over a group, as `orbical.nero` gives them."""
    group = ob.groups.parse(spec)
    shape = (len(models), *((len(by),) if by else ()), len(group))
    dims = ("model", *(("label",) if by else ()), "element")
    coords = {"model": models, **({"label": by} if by else {})}
    return xr.DataArray(
        np.random.default_rng(0).random(shape),
        dims=dims,
        coords=coords | {name: ("element", values) for name, values in group.coords.items()},
        attrs={
            "meaning": "probability of the true class",
            "higher_is_better": True,
            "limits": [0.0, 1.0],
            "identity": group.identity,
            "layout": group.layout.kind,
            "layout_index": group.layout.index.tolist(),
            "layout_axes": {name: axis.tolist() for name, axis in group.layout.axes.items()},
        },
    )


def plots(fig, projection: str) -> list:
    return [axes for axes in fig.axes if axes.name == projection]


def texts(fig) -> list[str]:
    return [text.get_text() for text in fig.findobj(mpl.text.Text)]


def test_a_circle_holds_the_given_values_and_closes() -> None:
    given = responses("rotations:12")
    (axes,) = plots(ob.figures.aggregate(given), "polar")
    assert len(axes.lines) == 2
    for model, line in enumerate(axes.lines):
        angle, radius = line.get_data()
        np.testing.assert_allclose(np.rad2deg(angle), np.arange(13) * 30.0)
        np.testing.assert_array_equal(radius[:12], given.values[model])
        assert radius[12] == given.values[model, 0]


def test_upright_is_at_the_top_and_turns_go_counter_clockwise() -> None:
    (axes,) = plots(ob.figures.aggregate(responses("rotations:12")), "polar")
    assert axes.get_theta_offset() == pytest.approx(np.pi / 2)
    assert axes.get_theta_direction() == 1


def test_the_radius_starts_at_zero_and_holds_every_panel() -> None:
    given = responses("rotations:12", by=[0, 1])
    del given.attrs["limits"]
    given.values[1, 1] *= 40
    for axes in plots(ob.figures.aggregate(given), "polar"):
        low, high = axes.get_ylim()
        assert low == 0
        assert given.values.max() < high < 1.1 * given.values.max()


def test_each_label_has_its_own_plot_with_all_models() -> None:
    given = responses("rotations:12", by=[0, 3, 7])
    panels = plots(ob.figures.aggregate(given), "polar")
    assert [axes.get_title() for axes in panels] == ["label 0", "label 3", "label 7"]
    for place, axes in enumerate(panels):
        for model, line in enumerate(axes.lines):
            np.testing.assert_array_equal(line.get_data()[1][:12], given.values[model, place])


@pytest.mark.parametrize("spec", ["rotations:12", "scales:0.5:2:9"])
def test_a_model_keeps_its_color_when_shown_alone(spec: str) -> None:
    given = responses(spec)
    given.attrs["models"] = MODELS
    together = ob.figures.aggregate(given).axes[0].lines
    drawn = [line for line in together if len(line.get_xdata()) > 2]
    assert [to_hex(line.get_color()).upper() for line in drawn] == [*style.MODELS[:2]]
    alone = ob.figures.aggregate(given.sel(model=["augmented"])).axes[0].lines
    (line,) = [line for line in alone if len(line.get_xdata()) > 2]
    assert to_hex(line.get_color()).upper() == style.MODELS[1]


def test_colors_of_a_scan_survive_the_choice_of_a_model() -> None:
    images, labels = ob.datasets.digits()
    nets = {
        name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in MODELS
    }
    scan = ob.scan(
        nets, (images[:8], labels[:8]), group="rotations:8", task="classification", progress=False
    )
    chosen = ob.nero.aggregate(scan).sel(model=["augmented"])
    (line,) = ob.figures.aggregate(chosen).axes[0].lines
    assert to_hex(line.get_color()).upper() == style.MODELS[1]
    assert line.get_ydata()[0] == pytest.approx(float(chosen[0, 0]))


def test_a_plane_is_a_heat_map_with_up_upwards_and_one_scale_of_colors() -> None:
    given = responses("translations:3:1")
    fig = ob.figures.aggregate(given)
    panels = [axes for axes in fig.axes if axes.images]
    assert [axes.get_title() for axes in panels] == MODELS
    for model, axes in enumerate(panels):
        (image,) = axes.images
        cells = np.asarray(image.get_array())
        for element, value in enumerate(given.values[model]):
            row, column = 3 - int(given["dy"][element]), int(given["dx"][element]) + 3
            assert cells[row, column] == value
        assert image.get_clim() == (0, 1)
        assert image.get_extent() == [-3.5, 3.5, -3.5, 3.5]
        assert image.origin == "upper"
        assert (axes.get_xlabel(), panels[0].get_ylabel()) == ("dx", "dy")


def test_good_has_one_color_whether_higher_or_lower_is_better() -> None:
    errors = responses("translations:4:2")
    maps = [ob.figures.aggregate(errors).axes[0].images[0].cmap.name]
    errors.attrs["higher_is_better"] = False
    maps += [ob.figures.aggregate(errors).axes[0].images[0].cmap.name]
    assert maps == [style.SEQUENTIAL, f"{style.SEQUENTIAL}_r"]


def test_labels_run_to_the_right_and_models_downwards_on_planes() -> None:
    given = responses("translations:2:1", by=["car", "cup", "book"])
    fig = ob.figures.aggregate(given)
    panels = [axes for axes in fig.axes if axes.images]
    assert [axes.get_title() for axes in panels[:3]] == ["label car", "label cup", "label book"]
    for place, axes in enumerate(panels):
        model, label = divmod(place, 3)
        np.testing.assert_array_equal(
            np.asarray(axes.images[0].get_array()).ravel(), given.values[model, label]
        )
    assert {*MODELS} <= {*texts(fig)}


def test_slices_show_a_rotation_wherever_it_appears() -> None:
    given = responses("slices3d:8:5", models=["net"])
    group = ob.groups.parse("slices3d:8:5")
    panels = plots(ob.figures.aggregate(given), "polar")
    assert [axes.get_title() for axes in panels] == ["axis in xy", "axis in xz", "axis in yz"]
    for plane, axes in enumerate(panels):
        cells = np.asarray(axes.collections[0].get_array())
        expected = given.values[0][group.layout.index[plane]].T
        np.testing.assert_array_equal(cells.reshape(expected.shape), expected)


def test_a_ball_places_each_rotation_at_its_vector_and_shows_its_inside() -> None:
    given = responses("rotations3d:30")
    panels = plots(ob.figures.aggregate(given), "3d")
    assert len(panels) == 2
    shown = ~((given["rx"].values > 0) & (given["ry"].values < 0))
    assert 15 < shown.sum() < 30
    assert shown[0]  # the identity
    for model, axes in enumerate(panels):
        points = axes.collections[0]
        np.testing.assert_array_equal(points.get_array(), given.values[model][shown])
        np.testing.assert_allclose(points._offsets3d[2], given["rz"].values[shown])


def test_a_line_is_drawn_over_its_own_coordinate() -> None:
    given = responses("scales:0.5:2:9")
    (axes,) = ob.figures.aggregate(given).axes
    curves = [line for line in axes.lines if len(line.get_xdata()) == 9]
    for model, line in enumerate(curves):
        np.testing.assert_allclose(line.get_xdata(), given["scale"].values)
        np.testing.assert_array_equal(line.get_ydata(), given.values[model])
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "scale"


def test_tiles_are_named_by_what_their_rows_and_columns_share() -> None:
    given = responses("dihedral:4*time_reversal", models=["net"])
    axes = ob.figures.aggregate(given).axes[0]
    cells = np.asarray(axes.images[0].get_array())
    assert cells.shape == (4, 4)
    rows = [label.get_text() for label in axes.get_yticklabels()]
    columns = [label.get_text() for label in axes.get_xticklabels()]
    assert columns == ["0", "90", "180", "270"]
    assert axes.get_xlabel() == "angle"
    for element in range(16):
        flip, time = str(given["flip"].values[element]), given["time"].values[element]
        row = rows.index(f"{flip}, time {time:g}")
        column = columns.index(f"{given['angle'].values[element]:g}")
        assert cells[row, column] == given.values[0, element]
        assert f"{given.values[0, element]:.2f}" in texts(axes.figure)


def test_long_names_of_tiles_do_not_overlap() -> None:
    fig = ob.figures.aggregate(responses("euclidean:4:2:2"))
    fig.canvas.draw()
    for panel in fig.axes[:2]:
        boxes = [label.get_window_extent() for label in panel.get_xticklabels()]
        assert len(boxes) == 12
        assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))


def test_a_table_of_tiles_does_not_repeat_an_element_to_fill_itself() -> None:
    given = responses("permutations:3", models=["net"])  # six elements in a table of two by three
    filled = responses("permutations:4:23:0", models=["net"])
    for array, missing in ((given, 0), (filled, 2)):
        cells = np.asarray(ob.figures.aggregate(array).axes[0].images[0].get_array())
        assert np.isnan(cells).sum() == missing
        assert sorted(cells[np.isfinite(cells)]) == sorted(array.values[0])


def test_an_individual_response_stands_beside_its_input() -> None:
    given = responses("rotations:12").assign_coords(sample=17, label=4)
    image = torch.arange(16.0).reshape(1, 4, 4)
    fig = ob.figures.individual(given, image)
    (axes,) = plots(fig, "polar")
    assert axes.get_title() == "sample 17, label 4"
    np.testing.assert_array_equal(axes.lines[1].get_ydata()[:12], given.values[1])
    (shown,) = [axes.images[0] for axes in fig.axes if axes.images]
    np.testing.assert_allclose(np.asarray(shown.get_array()), np.arange(16).reshape(4, 4) / 15)


@pytest.mark.parametrize(
    "spec",
    [
        "rotations:12",
        "translations:2:1",
        "slices3d:8:3",
        "rotations3d:20",
        "flips",
        "scales:0.5:2:5",
    ],
)
def test_several_samples_with_color_images_can_be_drawn_in_every_layout(spec: str) -> None:
    given = responses(spec, by=[3, 5]).rename(label="sample")
    fig = ob.figures.individual(given, np.random.default_rng(0).random((2, 3, 6, 6)))
    fig.canvas.draw()
    assert {"sample 3", "sample 5"} <= {*texts(fig)}
    pictures = [
        image for axes in fig.axes for image in axes.images if image.get_array().shape == (6, 6, 3)
    ]
    assert len(pictures) == 2


def test_the_meaning_is_written_on_the_figure() -> None:
    for spec in ("rotations:12", "flips", "scales:0.5:2:5", "translations:1:1"):
        words = " ".join(texts(ob.figures.aggregate(responses(spec)))).replace("\n", " ")
        assert "mean probability of the true class (higher is better)" in words


def test_what_no_model_takes_part_in_is_drawn_without_a_legend() -> None:
    given = responses("rotations:12").isel(model=0, drop=True)
    fig = ob.figures.aggregate(given)
    assert not fig.legends
    assert to_hex(fig.axes[0].lines[0].get_color()) == style.INK


def test_missing_values_leave_gaps() -> None:
    given = responses("rotations:12")
    given.values[0, 3] = np.nan
    given.values[1] = np.nan
    ob.figures.aggregate(given).canvas.draw()
    flat = responses("translations:1:1") * np.nan
    flat.attrs = {**responses("translations:1:1").attrs}
    del flat.attrs["limits"]
    ob.figures.aggregate(flat).canvas.draw()


def test_limits_can_be_given() -> None:
    fig = ob.figures.aggregate(responses("translations:1:1"), limits=(0.4, 0.6))
    assert fig.axes[0].images[0].get_clim() == (0.4, 0.6)
    with pytest.raises(InputError, match="limits"):
        ob.figures.aggregate(responses("flips"), limits=(1, 0))


def test_drawing_changes_neither_settings_nor_pyplot() -> None:
    before = dict(mpl.rcParams)
    ob.figures.aggregate(responses("rotations:12"), title="A title")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_saved_files_are_the_same_each_time(ending: str, tmp_path) -> None:
    contents = []
    for name in ("one", "two"):
        fig = ob.figures.aggregate(responses("rotations:12"))
        path = ob.figures.save(fig, tmp_path / "new" / f"{name}.{ending}")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    assert len(contents[0]) > 5000


def test_saving_under_an_unknown_ending_is_refused(tmp_path) -> None:
    fig = ob.figures.aggregate(responses("flips"))
    with pytest.raises(InputError, match=r"got 'plot\.bitmap'"):
        ob.figures.save(fig, tmp_path / "plot.bitmap")


def test_colors_are_told_apart_and_repeat_with_another_line() -> None:
    names = [f"net {i}" for i in range(9)]
    colors, lines = ob.figures.model_colors(names), style.model_lines(names)
    assert len({(colors[name], lines[name]) for name in names}) == 9
    assert colors["net 0"] == colors["net 7"]
    assert lines["net 0"] != lines["net 7"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: ob.figures.aggregate(xr.DataArray([1.0], dims="element")), "attribute 'layout'"),
        (lambda a: ob.figures.aggregate(a.assign_attrs(layout="cirle")), "did you mean 'circle'"),
        (lambda a: ob.figures.aggregate(a.expand_dims(["a", "b"])), "array: expected"),
        (lambda a: ob.figures.individual(a.expand_dims("label")), "array: expected"),
        (
            lambda a: ob.figures.individual(a, np.zeros((5, 4, 4))),
            r"got shape \(5, 4, 4\)",
        ),
        (lambda a: ob.figures.individual(a.expand_dims(sample=2), [1, 2, 3]), "got 3"),
    ],
)
def test_bad_requests_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(responses("rotations:12"))


def test_a_scan_in_place_of_responses_is_named():
    """It was an AttributeError of `attrs`."""
    for draw in (ob.figures.individual, ob.figures.aggregate):
        with pytest.raises(ob.errors.InputError, match=r"responses .* got object"):
            draw(object())


SLIGHT = {"tiles": "o3:2", "ball": "rotations3d:8"}


@pytest.mark.parametrize("layout", SLIGHT)
def test_rounding_errors_of_a_calculator_have_one_color(layout):
    from ase.build import molecule
    from ase.calculators.emt import EMT

    def drawn(calculator, metric="energy_vs_consensus"):
        group = SLIGHT[layout]
        scan = ob.scan(calculator, [molecule("CH3OH")], group=group, task="atoms", progress=False)
        response = ob.nero.aggregate(scan, metric=metric)
        assert response.attrs["layout"] == layout
        panel, bar = ob.figures.aggregate(response).axes
        (image,) = [*panel.images, *panel.collections]
        return image.norm(image.get_array().ravel()), bar.get_ylabel().replace("\n", " ")

    class Single(EMT):
        """In single precision, as networks compute."""

        def calculate(self, atoms=None, *args, **kwargs):
            super().calculate(atoms, *args, **kwargs)
            self.results["energy"] = float(np.float32(self.results["energy"]))
            self.results["forces"] = self.results["forces"].astype(np.float32)

    class Tilted(EMT):
        """Off by 1e-6 eV along one axis."""

        def calculate(self, atoms=None, *args, **kwargs):
            super().calculate(atoms, *args, **kwargs)
            self.results["energy"] += 1e-6 * atoms.positions[:, 0].max()

    colors, words = drawn(EMT())
    assert colors.max() < 1e-3  # of 1e-9 eV
    assert "equal up to rounding" in words
    for metric in ("score", "energy_vs_consensus"):
        colors, words = drawn(Single(), metric)
        assert colors.max() < 1e-2  # of 1e-4 of the size, up to which they are called equivariant
        assert "equal up to rounding" in words
    colors, words = drawn(Tilted())
    assert colors.max() == 1  # what differs is seen
    assert "rounding" not in words
