"""Point clouds end to end: scanned over rotations in space, padded or not, shown and shared."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import Points, Trivial
from orbical.datasets import furniture, padded
from orbical.errors import InputError
from orbical.store.record import ViewsEntry
from orbical.tasks import Classification, Flow, Regression
from orbical.zoo import pointnet

GROUP = "slices3d:8:3"
PADDED = {"pos": Points(), "mask": Trivial()}


@pytest.fixture(scope="module")
def clouds():
    return furniture(each=2, points=128)


@pytest.fixture(scope="module")
def models():
    return {name: pointnet.load(name) for name in ("plain", "augmented")}


@pytest.fixture(scope="module")
def scan(models, clouds):
    return ob.scan(
        models,
        (clouds.points, clouds.labels),
        group=GROUP,
        task=Classification(input=Points()),
        keep=("probabilities", "inputs"),
        progress=False,
    )


@pytest.fixture(scope="module")
def uneven(clouds):
    return padded([cloud[: 60 + 4 * row] for row, cloud in enumerate(clouds.points)])


def test_the_view_follows_from_what_moves_the_input():
    assert Classification().input_view == "image"
    assert Classification(input=Points()).input_view == "points"
    assert Classification(input=PADDED).input_view == "points"
    assert Regression(input=Trivial()).input_view == "values"
    assert Flow().input_view == "pair"


def test_each_answer_is_that_of_the_turned_cloud(scan, models, clouds):
    for element in (0, 7, 20):
        turn = torch.tensor(scan.group.parts["space"][element, :3, :3], dtype=torch.float32)
        with torch.inference_mode():
            expected = models["plain"](clouds.points @ turn.T).softmax(1)
        found = scan.data["probabilities"].sel(model="plain").values[:, element]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_rotated_training_is_flatter(scan):
    gap = ob.nero.invariance_gap(scan)["total"]
    assert float(gap.sel(model="augmented")) < 0.5 * float(gap.sel(model="plain"))


def test_an_invariant_network_is_flat(clouds):
    pytest.importorskip("e3nn", reason="the invariant network needs the extra equivariant")
    scan = ob.scan(
        pointnet.load("invariant"),
        (clouds.points, clouds.labels),
        group="rotations3d:20",
        task=Classification(input=Points()),
        progress=False,
    )
    assert float(np.ptp(scan.data["score"].values, axis=-1).max()) < 1e-3
    assert scan.data["correct"].values.mean() > 0.8


class TestUnequalSizes:
    def test_padded_clouds_are_answered_as_each_alone(self, models, uneven, clouds):
        scan = ob.scan(
            {"plain": models["plain"]},
            (uneven, clouds.labels),
            group=GROUP,
            task=Classification(input=PADDED),
            keep=("probabilities", "inputs"),
            progress=False,
        )
        for sample in (0, 9):
            alone = ob.scan(
                {"plain": models["plain"]},
                (uneven["pos"][sample : sample + 1, : 60 + 4 * sample], clouds.labels[[sample]]),
                group=GROUP,
                task=Classification(input=Points()),
                keep="probabilities",
                progress=False,
            )
            found = scan.data["probabilities"].values[0, sample]
            np.testing.assert_allclose(found, alone.data["probabilities"].values[0, 0], atol=1e-4)
        assert scan.record.views == ViewsEntry("points", "bars")

    def test_permutations_move_points_and_mask_together(self, uneven, models):
        group = ob.groups.permutations(uneven["mask"].shape[1], 5)
        task = Classification(input={"pos": Points(), "mask": ob.actions.Rows()})
        scan = ob.scan(models["plain"], uneven, group=group, task=task, progress=False)
        assert float(scan.data["invariance_gap"].max()) < 1e-4

    def test_a_list_of_unequal_clouds_is_padded(self, models, clouds):
        ragged = [cloud[: 60 + row].numpy() for row, cloud in enumerate(clouds.points)]
        settings = dict(group="rotations3d:2", task=Classification(input=PADDED), progress=False)
        listed = ob.scan(models["plain"], ragged, **settings)
        padded = ob.scan(models["plain"], ob.datasets.padded(ragged), **settings)
        assert np.array_equal(listed.data["confidence"], padded.data["confidence"])
        with pytest.raises(
            InputError, match=r"got fields .*mask.*; pass input= an action for each"
        ):
            ob.scan(models, ragged, group=GROUP, task=Classification(input=Points()))

    def test_fields_that_do_not_match_are_named(self, models, uneven, clouds):
        data = (uneven["pos"], clouds.labels)
        with pytest.raises(InputError, match="fields"):
            ob.scan(models, data, group=GROUP, task=Classification(input=PADDED))

    def test_points_in_the_plane_are_refused_for_rotations_in_space(self, models, clouds):
        flat = clouds.points[..., :2]
        with pytest.raises(InputError, match="2 coordinates"):
            ob.scan(models, (flat, clouds.labels), group=GROUP, task=Classification(input=Points()))


class TestInterface:
    def test_the_session_sends_the_turned_cloud_and_its_answers(self, scan, models, clouds):
        from orbical.interface.session import Session

        session = Session({"points": scan}, models=models, classes=[*clouds.classes])
        state, arrays = session.handle({"kind": "state"})
        assert state["views"] == {"input": "points", "detail": "bars"}
        assert state["group"]["kind"] == "slices"
        assert arrays["space"].shape == (len(scan.group), 4, 4)
        chosen = {"sample": 3, "element": 9}
        about, arrays = session.handle({"kind": "place", "selection": chosen})
        turn = scan.group.parts["space"][9, :3, :3].astype(np.float32)
        np.testing.assert_allclose(
            arrays["input/pos"], clouds.points[3].numpy() @ turn.T, atol=1e-5
        )
        stored = scan.data["probabilities"].values[:, 3, 9]
        np.testing.assert_allclose(arrays["detail/probabilities"], stored, atol=1e-5)
        assert about["live"]

    def test_padded_clouds_travel_with_their_mask(self, models, uneven, clouds):
        from orbical.interface.session import Session

        scan = ob.scan(
            models,
            (uneven, clouds.labels),
            group=GROUP,
            task=Classification(input=PADDED),
            keep="inputs",
            progress=False,
        )
        session = Session({"points": scan})
        about, arrays = session.handle({"kind": "place", "selection": {"sample": 2}})
        assert about["input"]["view"] == "points"
        assert int(arrays["input/mask"].sum()) == 68


def test_both_drawings_show_a_scan(scan, models, clouds):
    ob.figures.aggregate(ob.nero.aggregate(scan))
    ball = ob.scan(
        models,
        (clouds.points, clouds.labels),
        group="rotations3d:30",
        task=Classification(input=Points()),
        progress=False,
    )
    ob.figures.aggregate(ob.nero.aggregate(ball))


def test_calibration_along_the_orbit_of_clouds(scan):
    errors = ob.calibration.along_orbit(scan, "ece", bins=10)
    identity = scan.group.identity
    plain = errors.sel(model="plain").values
    assert plain.max() > plain[identity] + 0.2
