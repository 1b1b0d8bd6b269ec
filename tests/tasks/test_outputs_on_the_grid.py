"""What a model predicts at each place of its input moves as the input does, or is refused.

The models here predict pointwise: they are equivariant and right, whatever moves the places.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import Action, Images, Signals, Window
from orbical.errors import InputError, ModelError

DRAW = torch.Generator().manual_seed(0)
TURNS = ob.groups.from_parts("turns", {"plane": ob.groups.rotations(4).parts["plane"]})


class OwnGlobe(Action):
    """Maps [B, C, H, W] whose columns are longitudes: a rotation shifts them around."""

    parts = ("plane",)
    drawn_as = "image"

    def move(self, elements, x):
        x = x.expand(len(elements), *x.shape[1:])
        angle = np.rad2deg(np.arctan2(elements.parts["plane"][:, 1, 0],
                                      elements.parts["plane"][:, 0, 0]))  # fmt: skip
        columns = np.rint(angle / 360 * x.shape[-1]).astype(int).tolist()
        return torch.stack([one.roll(by, -1) for one, by in zip(x, columns, strict=True)])


class WrappedImages(OwnGlobe, Images):
    """A subclass of an action of orbical that moves in its own way."""

    parts = ("plane",)


class Contrast(Images):
    """Images whose values are also multiplied."""

    parts = ("plane", "gain")

    def move(self, elements, x):
        moved = super().move(elements, x)
        gain = torch.as_tensor(elements.parts.get("gain", np.ones(len(elements))))
        return moved * gain.to(moved).reshape(-1, *[1] * (moved.ndim - 1))


class KnownContrast(Contrast):
    """The same, which says that gains leave places where they are."""

    in_place = ("gain",)


scan = partial(ob.scan, progress=False)


def label_maps(*shape):
    return torch.randint(0, 3, shape, generator=DRAW)


def one_hot(labels):
    return 9.0 * torch.nn.functional.one_hot(labels, 3).movedim(-1, 1)


def doubled(x):
    return 2 * x


@pytest.mark.parametrize(
    ("action", "group"),
    [
        (OwnGlobe(), "cyclic:8"),
        (OwnGlobe(), TURNS),
        (WrappedImages(), "cyclic:8"),
        (Images(), "dihedral:4"),
        (Window(4), "translations:2:1"),
        (KnownContrast(), "cyclic:4*gains:0.5:2:3"),
        (ob.actions.Volumes(), "octahedral"),
        ({"maps": OwnGlobe(), "age": ob.actions.Trivial()}, "cyclic:8"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_pointwise_model_is_perfect_everywhere(action, group):
    sides = (8, 8, 8) if isinstance(action, ob.actions.Volumes) else (8, 8)
    labels = label_maps(3, *sides)
    still = one_hot(labels)

    def classes(x):  # of whatever the values were multiplied by
        maps = x["maps"] if isinstance(x, dict) else x
        return (maps / maps.flatten(1).amax(1).reshape(-1, *[1] * (maps.ndim - 1))) * 9

    data = {"maps": still, "age": torch.ones(3, 1)} if isinstance(action, dict) else still
    found = scan(classes, (data, labels), group=group, task=ob.tasks.Segmentation(action))
    np.testing.assert_array_equal(found.data["score"], 1.0)
    np.testing.assert_array_equal(found.data["score_vs_consensus"], 1.0)
    np.testing.assert_array_equal(found.data["changed_pixels"], 0.0)
    np.testing.assert_allclose(found.data["invariance_gap"], 0.0, atol=1e-6)
    ob.testing.assert_equivariant(
        classes, data, group=group, task=ob.tasks.Segmentation(action), tolerance=1e-3
    )


@pytest.mark.parametrize("group", ["dihedral:4*hue:3", "brightness:0.5:2:3"])
def test_colors_leave_maps_as_they_are(group):
    """Gray values know which class a pixel has, however they are colored."""
    action, labels = ob.actions.ColorImages(), label_maps(3, 8, 8)
    gray = labels[:, None].float().expand(-1, 3, -1, -1)

    def classes(x):
        value = x.mean(1)
        largest = value.flatten(1).amax(1)[:, None, None]
        return one_hot((value / largest * 2).round().long().clamp(0, 2))

    found = scan(classes, (gray, labels), group=group, task=ob.tasks.Segmentation(action))
    np.testing.assert_array_equal(found.data["score"], 1.0)
    np.testing.assert_array_equal(found.data["changed_pixels"], 0.0)


@pytest.mark.parametrize(
    ("action", "group"),
    [(OwnGlobe(), "cyclic:8"), (WrappedImages(), "cyclic:8"), (Images(), "dihedral:4")],
)
def test_numbers_of_places_move_with_them(action, group):
    maps = torch.rand(3, 1, 8, 8, generator=DRAW)
    task = ob.tasks.DenseRegression(action, uncertainty="variance")
    found = scan(lambda x: (2 * x, 1 + x), (maps, 2 * maps), group=group, task=task)
    np.testing.assert_array_equal(found.data["score"], 0.0)
    np.testing.assert_allclose(found.data["invariance_gap"], 0.0, atol=1e-6)
    variance = found.data["variance"].values
    np.testing.assert_array_equal(variance, variance[:, :, :1].repeat(variance.shape[2], 2))
    ob.testing.assert_equivariant(doubled, maps, group=group, task=ob.tasks.DenseRegression(action))


@pytest.mark.parametrize("group", ["shifts:4", "time_reversal", "sign", "gains", "shifts:2*gains"])
def test_what_is_predicted_for_each_sample_of_a_signal_moves_with_it(group):
    signals = torch.rand(3, 1, 12, generator=DRAW) + 0.1
    signals[..., 0] = 2  # so that a model can undo gains
    labels = (signals[:, 0] > 0.6).long()

    def above(x):
        value = x[:, 0].abs() / x.abs().amax((1, 2))[:, None] * 2
        return 20 * torch.stack([0.6 - value, value - 0.6], -1)

    task = ob.tasks.PointClassification(Signals())
    found = scan(above, (signals, labels), group=group, task=task)
    np.testing.assert_array_equal(found.data["score"], 1.0)
    np.testing.assert_array_equal(found.data["changed_pixels"], 0.0)
    ob.testing.assert_equivariant(above, signals, group=group, task=task)

    task = ob.tasks.Regression(Signals(), per_point=True, uncertainty="variance")

    def size(x):
        value = x[:, 0].abs() / x.abs().amax((1, 2))[:, None]
        return value, 1 + value

    found = scan(size, (signals, size(signals)[0]), group=group, task=task)
    np.testing.assert_allclose(found.data["score"], 0.0, atol=1e-6)
    np.testing.assert_allclose(found.data["variance_gap"], 0.0, atol=1e-6)
    ob.testing.assert_equivariant(size, signals, group=group, task=task)


def test_shifts_between_samples_move_classes_to_the_nearest():
    labels = torch.tensor([[0, 0, 1, 1]])
    moved = ob.actions.Frames().apply(ob.groups.shifts(1, 0.5), labels)
    assert moved.dtype == labels.dtype
    assert {*moved.unique().tolist()} == {0, 1}


def never(x):
    raise AssertionError("a model ran")


@pytest.mark.parametrize(
    ("task", "group", "words"),
    [
        (lambda: ob.tasks.Segmentation(Contrast()), "gains:0.5:2:3", "Contrast.in_place"),
        (lambda: ob.tasks.DenseRegression(Contrast()), "gains:0.5:2:3", "a map of ones"),
        (
            lambda: ob.tasks.Segmentation(ob.actions.ImagePair()),
            "time_reversal",
            r"\(ClassMaps\) knows, got time",
        ),
        (
            lambda: ob.tasks.PointClassification(ob.actions.SignalWindow(4)),
            "shifts:2",
            r"\(Rows\) knows, got shift",
        ),
        (
            lambda: ob.tasks.Regression(Signals(), "vector", per_point=True),
            "shifts:2",
            r"\(Vectors\) knows, got shift",
        ),
    ],
)
def test_a_part_that_outputs_do_not_know_is_refused_before_any_model_runs(task, group, words):
    made = task()
    shape = {"ImagePair": (2, 2, 1, 8, 8), "Signals": (2, 1, 8), "SignalWindow": (2, 1, 8)}
    x = torch.rand(shape.get(type(made.input).__name__, (2, 1, 8, 8)))
    for call in (
        lambda: scan(never, x, group=group, task=made),
        lambda: ob.testing.assert_equivariant(never, x, group=group, task=made),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_vectors_by_an_action_of_your_own_need_the_action_of_the_maps():
    with pytest.raises(InputError, match="pass output= the action of the maps"):
        ob.tasks.DenseRegression(OwnGlobe(), "vector")
    with pytest.raises(
        InputError, match="an action on images, volumes or periodic grids, or one of your own"
    ):
        ob.tasks.Segmentation(ob.actions.Points())
    task = ob.tasks.DenseRegression(OwnGlobe(), "vector", output=OwnGlobe())
    maps = torch.rand(2, 2, 4, 8)
    found = scan(doubled, (maps, 2 * maps), group="cyclic:8", task=task)
    np.testing.assert_array_equal(found.data["score"], 0.0)


def test_a_flow_by_an_action_of_your_own_needs_the_action_of_the_flow():
    with pytest.raises(InputError, match="output: expected the action on the flow of pairs"):
        ob.tasks.Flow(OwnGlobe())


def test_frames_that_are_not_the_samples_are_refused():
    task = ob.tasks.PointClassification(Signals())
    with pytest.raises(
        ModelError, match=r"each of the 8 samples of a signal, \[sample, frame, ...\], got 4"
    ):
        scan(lambda x: torch.zeros(len(x), 4, 2), torch.rand(2, 1, 8), group="shifts:1", task=task)


def test_a_task_with_its_own_output_action_is_made_again_from_its_record():
    ob.actions.register(OwnGlobe)
    try:
        for task in (
            ob.tasks.Segmentation(OwnGlobe()),
            ob.tasks.DenseRegression(Images(), output=ob.actions.ValueMaps("trivial", OwnGlobe())),
            ob.tasks.PointClassification(ob.actions.Rows(), output=ob.actions.Trivial()),
        ):
            again = ob.tasks.Task.from_record(task.describe())
            assert again.describe() == task.describe()
            assert type(again.output) is type(task.output)
    finally:
        del ob.actions.action.REGISTERED["OwnGlobe"]
