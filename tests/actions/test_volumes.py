"""Volumes: exact under the groups of the cube, resampled alike under any other group of space."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.ndimage import affine_transform
from scipy.spatial.transform import Rotation

import orbical as ob
from orbical.actions import ClassMaps, Images, Volumes
from orbical.errors import InputError

FULL = ob.groups.octahedral("full")
TO_ARRAY = np.array([[0, 0, 1], [0, -1, 0], [1, 0, 0.0]])  # (depth, row, column) of (x, y, z)


def noise(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def blob(side=15):
    """A smooth volume that vanishes at its border and has no symmetry."""
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, side)] * 3, indexing="ij")
    ball = np.exp(-6 * (x**2 + 2 * y**2 + 3 * z**2)) * (1 + x + 0.5 * y * z)
    return torch.tensor(ball, dtype=torch.float32)[None, None]


def test_the_groups_of_the_cube_move_volumes_bit_for_bit():
    x = noise(1, 2, 4, 4, 4)
    moved = Volumes().apply(FULL, x)
    assert torch.equal(Volumes().move(FULL.inverse(), moved), x.expand_as(moved[:, 0])[:, None])
    assert len({tuple(one.flatten().tolist()) for one in moved}) == 48
    pairs = np.array([*itertools.product(range(0, 48, 5), range(0, 48, 7))])
    second, first = (FULL[pairs[:, side]] for side in (0, 1))
    twice = Volumes().move(second, moved[pairs[:, 1]])
    assert torch.equal(twice, moved[FULL.index_of(second.compose(first))])
    assert float(Volumes().defect(FULL, x).abs().max()) == 0
    assert Volumes().valid(FULL, x) is None


def test_every_voxel_comes_from_where_the_inverse_sends_it():
    x = noise(1, 1, 5, 5, 5)
    moved = Volumes().apply(FULL, x)[:, 0, 0].numpy()
    for place in range(48):
        turn = TO_ARRAY @ FULL.linear("space")[place] @ TO_ARRAY.T
        for to in [(0, 0, 0), (0, 3, 4), (4, 1, 2)]:
            source = np.rint(turn.T @ (np.array(to) - 2) + 2).astype(int)
            assert moved[(place, *to)] == x[(0, 0, *source)]


def test_a_turn_about_z_turns_every_slice_as_images_turn():
    x = noise(1, 3, 4, 6, 6)
    by_slices = Images().apply(ob.groups.cyclic(4), x[0])
    moved = Volumes().apply(ob.groups.pointgroup("4"), x)[:, 0]
    angles = {tuple(one.flatten().tolist()) for one in by_slices}
    assert {tuple(one.flatten().tolist()) for one in moved} == angles
    turn = Rotation.from_euler("z", 30, degrees=True).as_matrix()
    group = ob.groups.from_matrices(space=np.stack([np.eye(3), turn]))
    plane = ob.groups.from_matrices(plane=np.stack([np.eye(2), turn[:2, :2]]))
    expected = Images().apply(plane, x[0])
    torch.testing.assert_close(Volumes().apply(group, x)[:, 0], expected, rtol=0, atol=1e-5)


def test_resampled_quarter_turns_are_the_exact_ones():
    """A turn by 45 degrees makes the whole group resampled, its quarter turns included."""
    eighth = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    exact = ob.groups.octahedral()
    mixed = ob.groups.from_matrices(space=np.concatenate([exact.linear("space"), eighth[None]]))
    assert not mixed.exact_on_grid
    x = noise(2, 1, 6, 6, 6)
    found, expected = Volumes().apply(mixed, x)[:-1], Volumes().apply(exact, x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    valid = Volumes().valid(mixed, x)
    assert bool(valid[:-1].all())
    assert 0.6 < float(valid[-1].float().mean()) < 1


@pytest.mark.parametrize("group", ["rotations3d:6", "translations3d:1.5:1.5", "se3:8:2"])
def test_any_group_of_space_resamples_as_scipy_does(group):
    group, x = ob.groups.parse(group), noise(1, 1, 7, 8, 9)
    moved, inside = Volumes().apply(group, x)[:, 0, 0], Volumes().valid(group, x)
    center = (np.array(x.shape[2:]) - 1) / 2
    back = group.inverse()
    for place in range(0, len(group), 5):
        turn = TO_ARRAY @ back.linear("space")[place] @ TO_ARRAY.T
        shift = TO_ARRAY @ back.parts["space"][place, :3, 3]
        offset = center - turn @ center + shift
        expected = affine_transform(x[0, 0].double().numpy(), turn, offset, order=1, cval=np.nan)
        np.testing.assert_array_equal(inside[place].numpy(), np.isfinite(expected))
        seen = np.isfinite(expected)
        np.testing.assert_allclose(moved[place].numpy()[seen], expected[seen], atol=1e-5)


def test_many_elements_are_resampled_a_few_at_a_time(monkeypatch):
    group, x = ob.groups.rotations3d(7), blob(8)
    whole = Volumes().apply(group, x)
    twice, mask = Volumes().move(group, whole), Volumes().valid(group, x)
    monkeypatch.setattr("orbical.actions.on_volumes._MOST_GRID_NUMBERS", 3 * 8**3 * 2)
    assert torch.equal(Volumes().apply(group, x), whole)
    assert torch.equal(Volumes().move(group, whole), twice)
    assert torch.equal(Volumes().valid(group, x), mask)


def test_resampling_costs_little_of_a_smooth_volume_and_much_of_noise():
    group = ob.groups.rotations3d(12)
    smooth, rough = (Volumes().defect(group, x)[1:] for x in (blob(), noise(1, 1, 15, 15, 15)))
    assert 0 < float(smooth.max()) < 0.15
    assert float(rough.min()) > 2 * float(smooth.max())


def test_integers_and_half_precision_are_resampled_in_single():
    group = ob.groups.rotations3d(3)
    assert Volumes().apply(group, (100 * blob()).to(torch.int16)).dtype == torch.float32
    assert (
        Volumes().apply(FULL, torch.ones(1, 1, 2, 2, 2, dtype=torch.uint8)).dtype == torch.float32
    )
    half = Volumes().apply(group, blob().half())
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), Volumes().apply(group, blob()), rtol=0, atol=2e-3)


def test_labels_move_by_the_nearest_neighbor_and_probabilities_stay_probabilities():
    labels = torch.randint(0, 4, (2, 6, 6, 6), generator=torch.Generator().manual_seed(1))
    group = ob.groups.rotations3d(5)
    moved = ClassMaps(Volumes()).apply(group, labels.to(torch.int16))
    assert moved.dtype == torch.int16
    assert {*moved.flatten().tolist()} == {0, 1, 2, 3}
    assert torch.equal(moved[0], labels.to(torch.int16))
    exact = ClassMaps(Volumes()).apply(FULL, labels)
    assert torch.equal(exact.float()[:, :, None], Volumes().apply(FULL, labels[:, None]))
    shares = ClassMaps(Volumes()).apply(group, noise(2, 3, 6, 6, 6).softmax(1))
    torch.testing.assert_close(shares.sum(2), torch.ones(5, 2, 6, 6, 6))


@pytest.mark.parametrize(
    ("group", "shape", "said"),
    [
        ("octahedral", (1, 1, 4, 4, 5), "equal sides along the axes that octahedral exchanges"),
        ("pointgroup:4", (1, 1, 3, 4, 5), "got 3 x 4 x 5 voxels; crop or pad"),
        ("octahedral", (1, 4, 4, 4), r"expected samples of shape \[channel, depth, row, column\]"),
        ("rotations:4", (1, 2, 1, 4, 4), r"is read as volumes .* input=ob.actions.ImagePair"),
        ("octahedral", (1, 1, 0, 0, 0), "expected some voxels"),
    ],
)
def test_volumes_of_the_wrong_shape_are_refused(group, shape, said):
    with pytest.raises(InputError, match=said):
        ob.actions.check_group(Volumes(), ob.groups.parse(group), torch.zeros(shape))


def test_mirrors_and_half_turns_need_no_cube():
    x = noise(1, 1, 3, 4, 5)
    for group in ("reflections3d", "inversion", "pointgroup:mmm"):
        ob.actions.check_group(Volumes(), ob.groups.parse(group), x)
    assert torch.equal(Volumes().apply(ob.groups.inversion(), x)[1], x.flip(-1, -2, -3))


def test_other_settings_and_values_are_refused():
    with pytest.raises(InputError, match="interpolation"):
        Volumes("bicubic")
    with pytest.raises(InputError, match="padding"):
        ob.tasks.parse_input("volumes:nearest:wrap")
    bad = noise(2, 1, 3, 3, 3)
    bad[1, 0, 2, 0, 1] = torch.nan
    with pytest.raises(InputError, match="at depth 2, row 0, column 1 of sample 1"):
        Volumes().check_values(bad)
    with pytest.raises(InputError, match=r"integer labels \[sample, depth, row, column\]"):
        ClassMaps(Volumes()).check(FULL, torch.zeros(1, 4, 4, 4))
    described = Volumes("nearest", "border").describe()
    assert ob.actions.Action.from_record(described).describe() == described
    assert ob.tasks.parse_input("volumes:nearest").interpolation == "nearest"
