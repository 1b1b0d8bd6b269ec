"""Actions: group laws where they are exact, measured defects where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import rotate, shift

from orbical import actions, groups
from orbical.actions import pixel_grids
from orbical.errors import InputError


def smooth_images(count=3, size=33, seed=0):
    """Images with no detail near the pixel scale, zero outside a disc."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns = torch.meshgrid(*[torch.linspace(-1, 1, size)] * 2, indexing="ij")
    waves = torch.randn(count, 4, 2, generator=generator) * 2
    phase = waves[..., 0, None, None] * columns + waves[..., 1, None, None] * rows
    window = (1 - (rows**2 + columns**2)).clamp_min(0) ** 2
    return (phase.sin().sum(1) * window)[:, None]


def homomorphism_error(action, group, x):
    """The largest `|(gh) x - g (h x)|`, over all pairs of elements."""
    first, second = np.divmod(np.arange(len(group) ** 2), len(group))
    together = action.apply(group[first].compose(group[second]), x)
    stepwise = action.move(group[first], action.move(group[second], x[None]))
    return float((together - stepwise).abs().max())


EXACT = [
    (actions.Images(), "dihedral:4", torch.rand(2, 3, 6, 6)),
    (actions.Images(), "flips", torch.rand(2, 3, 6, 9)),
    (actions.Images(), "dihedral:4", torch.rand(2, 1, 7, 7)),
    (actions.ImagePair(), "dihedral:4*time_reversal", torch.rand(2, 2, 1, 6, 6)),
    (actions.VectorField(), "dihedral:4*time_reversal", torch.rand(2, 2, 6, 6)),
    (actions.Rows(), "permutations:4", torch.rand(2, 4)),
    (actions.Points(), "permutations:4", torch.rand(2, 4, 3)),
    (actions.Vectors(per_point=True), "permutations:4", torch.rand(2, 4, 3)),
    (actions.Points(), "dihedral:4", torch.rand(2, 5, 2)),
    (actions.Boxes(8, 8), "dihedral:4", torch.tensor([[[1.0, 2, 3, 5]]])),
    (actions.Trivial(), "dihedral:4", torch.rand(2, 5)),
]
ROUNDED = [
    (actions.Points(), "rotations3d:12", torch.rand(2, 5, 3, dtype=torch.float64)),
    (actions.Points(), "euclidean:5:1:1", torch.rand(2, 5, 2, dtype=torch.float64)),
    (actions.Vectors(), "rotations3d:12", torch.rand(2, 3, dtype=torch.float64)),
    (actions.Points(), "rotations3d:5*permutations:3", torch.rand(2, 3, 3, dtype=torch.float64)),
    (actions.Boxes(8, 9), "translations:2:1", torch.rand(2, 3, 4, dtype=torch.float64).cumsum(-1)),
    (actions.Irreps("2x0e + 1o + 2e"), "rotations3d:8", torch.rand(2, 10, dtype=torch.float64)),
]


@pytest.mark.parametrize(("action", "spec", "x"), EXACT)
def test_exact_actions_obey_the_group_law_to_the_bit(action, spec, x):
    group = groups.parse(spec)
    assert homomorphism_error(action, group, x) == 0
    assert torch.equal(action.apply(group, x)[group.identity], x)
    assert float(action.defect(group, x).max()) == 0


@pytest.mark.parametrize(("action", "spec", "x"), ROUNDED)
def test_linear_actions_obey_the_group_law_to_rounding(action, spec, x):
    group = groups.parse(spec)
    assert homomorphism_error(action, group, x) < 1e-12
    assert float(action.defect(group, x).max()) < 1e-12


def test_resampled_rotation_obeys_the_group_law_up_to_its_defect():
    group, images = groups.rotations(12), smooth_images()
    error = homomorphism_error(actions.Images(), group, images)
    assert 0 < error < 0.03 * float(images.abs().max())


def test_the_defect_measures_blur():
    group, smooth = groups.rotations(8), smooth_images()
    rough = torch.rand(3, 1, 33, 33, generator=torch.Generator().manual_seed(0))
    action = actions.Images()
    assert float(action.defect(group, smooth).max()) < 0.02
    assert float(action.defect(group, rough)[1].min()) > 0.2
    assert action.defect(group, smooth).shape == (8, 3)


def test_the_identity_is_resampled_like_every_other_element():
    """At a quarter turn nothing is interpolated, so identity and quarter turn lose alike."""
    group = groups.rotations(8)
    rough = torch.rand(3, 1, 33, 33, generator=torch.Generator().manual_seed(0))
    moved = actions.Images().apply(group, rough)
    np.testing.assert_allclose(moved[0], rough, atol=1e-5)
    np.testing.assert_allclose(moved[2], torch.rot90(rough, 1, (-2, -1)), atol=1e-5)


@pytest.mark.parametrize("angle", [10, 45, 110, 200])
def test_rotation_agrees_with_scipy_and_turns_counter_clockwise(angle):
    images = smooth_images(2, 32)
    group = groups.rotations(72)
    ours = actions.Images().apply(group, images)[angle // 5, 0, 0].numpy()
    theirs = rotate(images[0, 0].numpy(), angle, reshape=False, order=1)
    np.testing.assert_allclose(ours, theirs, atol=0.01 * float(images.abs().max()))


def test_shifts_move_right_and_up():
    images = smooth_images(1, 21)
    group = groups.translations(2, 1)
    index = int(np.flatnonzero((group.coords["dx"] == 2) & (group.coords["dy"] == 1))[0])
    ours = actions.Images().apply(group, images)[index, 0, 0].numpy()
    np.testing.assert_allclose(ours, shift(images[0, 0].numpy(), (-1, 2), order=1), atol=1e-5)


def test_scaling_enlarges():
    images = smooth_images(1, 33)
    moved = actions.Images().apply(groups.scales(0.5, 2, 3), images)
    assert moved[2].abs().sum() > 2 * moved[0].abs().sum()


@pytest.mark.parametrize("size", [32, 33])
@pytest.mark.parametrize("factor", [0.5, 0.35, 0.25])
def test_shrinking_filters_before_it_samples(size, factor):
    """Stripes of one pixel have no place in an image of half the size: they become gray."""
    stripes = (torch.arange(size) % 2).float().expand(1, 1, size, size).contiguous()
    group = groups.scales(factor, 1, 2)
    small = actions.Images(padding="border").apply(group, stripes)[0, 0, 0]
    inner = round(size * factor / 2) - 1
    middle = small[size // 2 - inner : size // 2 + inner, size // 2 - inner : size // 2 + inner]
    assert float((middle - 0.5).abs().max()) < 0.15  # 0.5 without a filter


def test_a_filter_for_shrinking_leaves_other_elements_alone():
    images = smooth_images(2, 20)
    group = groups.scales(0.5, 2, 5)
    together = actions.Images().apply(group, images)
    for index in range(2, 5):
        alone = actions.Images().apply(group[index : index + 1], images)
        assert torch.equal(together[index], alone[0])
    np.testing.assert_allclose(together[2], images, atol=1e-5)


def test_shrinking_keeps_brightness_and_place():
    images = smooth_images(1, 65).square()
    small = actions.Images(padding="border").apply(groups.scales(0.5, 1, 2), images)[0]
    small = small * actions.Images().valid(groups.scales(0.5, 1, 2), images)[0]
    assert float(small.sum()) == pytest.approx(float(images.sum()) / 4, rel=0.02)


def test_nearest_invents_no_value():
    maps = torch.randint(0, 5, (2, 1, 16, 16), generator=torch.Generator().manual_seed(0)).float()
    for spec in ("rotations:7", "scales:0.4:1:3"):
        moved = actions.Images("nearest").apply(groups.parse(spec), maps)
        assert torch.isin(moved, torch.arange(5.0)).all()


@pytest.mark.parametrize("padding", ["zeros", "border", "reflect"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_padding_and_interpolation_are_chosen_by_name(padding, interpolation):
    moved = actions.Images(interpolation, padding).apply(
        groups.rotations(8), torch.ones(1, 1, 9, 9)
    )
    corner = float(moved[1, 0, 0, 0, 0])
    assert corner == pytest.approx(0 if padding == "zeros" else 1, abs=0.1)


@pytest.mark.parametrize("spec", ["cyclic:4", "rotations:8"])
def test_whole_numbers_become_single_precision_under_every_group(spec):
    images = torch.randint(0, 255, (2, 1, 8, 8), dtype=torch.uint8)
    moved = actions.Images().apply(groups.parse(spec), images)
    assert moved.dtype == torch.float32
    np.testing.assert_allclose(moved[0], images.float(), atol=1e-3)


@pytest.mark.parametrize("action", [actions.Points(), actions.Vectors(), actions.Irreps("1o")])
@pytest.mark.parametrize("spec", ["rotations3d:3", "permutations:3"])
def test_points_and_vectors_of_whole_numbers_are_moved_as_numbers(action, spec):
    x = torch.arange(18).reshape(2, 3, 3)
    group = groups.parse(spec)
    moved = action.apply(group, x)
    assert moved.dtype == torch.float32
    assert torch.equal(moved, action.apply(group, x.float()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_images_in_half_precision_are_turned_in_single(dtype):
    images = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    group = groups.rotations(5)
    moved = actions.Images().apply(group, images)
    assert moved.dtype == dtype
    assert torch.equal(moved, actions.Images().apply(group, images.float()).to(dtype))


def test_the_defect_of_yes_and_no_is_that_of_ones_and_zeros():
    images = torch.rand(2, 1, 8, 8) > 0.5
    group = groups.rotations(5)
    defect = actions.Images().defect
    assert torch.equal(defect(group, images), defect(group, images.float()))


def test_channels_that_seem_to_come_last_are_reported():
    with pytest.warns(UserWarning, match="32 x 3 pixels; if channels come last, move them"):
        actions.Images().check(groups.rotations(5), torch.rand(2, 32, 32, 3))


def test_valid_marks_what_comes_from_inside():
    group = groups.rotations(8)
    x = torch.ones(1, 1, 9, 9)
    valid = actions.Images().valid(group, x)
    assert valid.shape == (8, 9, 9)
    assert not valid[1, 0, 0]
    assert valid[1, 4, 4]
    moved = actions.Images().apply(group, x)[:, 0, 0]
    np.testing.assert_allclose(moved[valid], 1, atol=1e-5)
    assert actions.Images().valid(groups.dihedral(4), x) is None


@pytest.mark.parametrize("lead", [1, 12])
@pytest.mark.parametrize("planes", [7, 24, 256])
def test_sampling_in_stacks_equals_sampling_whole(lead, planes):
    """The accelerator's way of feeding the same kernel, checked where there is none."""
    x = torch.rand(lead, planes, 9, 11)
    ((_, grid),) = actions.Images()._grids(groups.rotations(12), x, (9, 11))

    def sample(*tensors):
        return torch.nn.functional.grid_sample(*tensors, align_corners=False)

    whole = pixel_grids._sample_whole(sample, x, grid)
    np.testing.assert_allclose(pixel_grids._sample_in_stacks(sample, x, grid), whole, atol=1e-6)


def test_a_window_sees_only_real_pixels_and_crops_exactly():
    image = torch.rand(2, 3, 20, 24)
    group = groups.translations(4, 2)
    moved = actions.Window(12).apply(group, image)
    assert moved.shape == (25, 2, 3, 12, 12)
    for k in range(len(group)):
        top = 4 + int(group.coords["dy"][k])
        left = 6 - int(group.coords["dx"][k])
        assert torch.equal(moved[k], image[:, :, top : top + 12, left : left + 12])
    assert float(actions.Window(12).defect(group, image).max()) == 0
    assert actions.Window(12).valid(group, image) is None


def test_a_turning_window_resamples_the_larger_image():
    images = smooth_images(2, 41)
    group = groups.rotations(12)
    window = actions.Window(21)
    window.check(group, images)
    whole = actions.Images().apply(group, images)[..., 10:31, 10:31]
    np.testing.assert_allclose(window.apply(group, images), whole, atol=1e-5)
    assert 0 < float(window.defect(group, images)[1].max()) < 0.1


def test_reversed_time_swaps_frames_and_the_sign_of_the_flow():
    group = groups.time_reversal()
    pair, flow = torch.rand(1, 2, 1, 4, 4), torch.rand(1, 2, 4, 4)
    assert torch.equal(actions.ImagePair().apply(group, pair)[1], pair.flip(1))
    assert torch.equal(actions.VectorField().apply(group, flow)[1], -flow)


def test_a_turned_vector_field_is_the_flow_of_the_turned_frames():
    """A uniform flow to the right becomes a flow upwards (dy < 0 in rows) after a quarter turn."""
    flow = torch.zeros(1, 2, 8, 8)
    flow[:, 0] = 1
    moved = actions.VectorField().apply(groups.cyclic(4), flow)[1, 0]
    assert torch.equal(moved[0], torch.zeros(8, 8))
    assert torch.equal(moved[1], -torch.ones(8, 8))


def test_boxes_follow_the_image():
    """The box of a bright rectangle, moved, is the box of the moved rectangle."""
    image = torch.zeros(1, 1, 12, 12)
    image[..., 2:5, 3:9] = 1
    box = torch.tensor([[[3.0, 2, 9, 5]]])
    group = groups.dihedral(4)
    moved, boxes = actions.Images().apply(group, image), actions.Boxes(12, 12).apply(group, box)
    for k in range(len(group)):
        rows, columns = torch.where(moved[k, 0, 0] > 0.5)
        found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert boxes[k, 0, 0].tolist() == [int(side) for side in found]


def test_boxes_are_carried_into_a_window():
    box = torch.tensor([[[8.0, 6, 14, 12], [math.nan] * 4]])
    group = groups.translations(2, 2)
    moved = actions.Boxes(20, 24, view=12).apply(group, box)
    still = moved[group.identity, 0]
    assert still[0].tolist() == [2, 2, 8, 8]
    assert still[1].isnan().all()


def test_irreps_of_vectors_and_pseudo_vectors():
    group = groups.from_matrices(space=[np.eye(3), -np.eye(3), np.diag([1.0, -1, -1])])
    x = torch.rand(2, 3)
    np.testing.assert_allclose(
        actions.Irreps("1o").apply(group, x), actions.Vectors().apply(group, x), atol=1e-6
    )
    np.testing.assert_allclose(actions.Irreps("1e").apply(group, x)[1], x, atol=1e-6)


def test_fields_move_each_by_its_own_action():
    molecule = {"pos": torch.rand(2, 4, 3), "numbers": torch.ones(2, 4, dtype=torch.long)}
    action = actions.as_action({"pos": actions.Points(), "numbers": actions.Trivial()})
    group = groups.rotations3d(6)
    action.check(group, molecule)
    moved = action.apply(group, molecule)
    assert torch.equal(moved["numbers"][3], molecule["numbers"])
    assert torch.equal(moved["pos"], actions.Points().apply(group, molecule["pos"]))
    assert action.defect(group, molecule).shape == (6, 2)


def test_rows_of_any_width_can_be_reordered():
    group = groups.permutations(3)
    x = torch.randn(2, 3, 5)
    for action in (actions.Points(), actions.Vectors(per_point=True), actions.Rows()):
        action.check(group, x)
        assert torch.equal(action.apply(group, x)[4], x[:, group.parts["rows"][4]])


@pytest.mark.parametrize(
    ("action", "spec", "x", "words"),
    [
        (
            actions.Images(),
            "cyclic:4",
            torch.rand(2, 1, 6, 8),
            "got 6 x 8 pixels; crop them",
        ),
        (actions.Images(), "cyclic:4", torch.rand(2, 6, 6), "[channel, row, column]"),
        (actions.Images(), "rotations:8", torch.rand(2, 1, 0, 6), "expected some pixels"),
        (actions.Images(), "cyclic:4", {"x": torch.rand(2, 1, 6, 6)}, "got fields ['x']"),
        (actions.Window(9), "translations:1:1", torch.rand(1, 1, 8, 8), "at least 9 x 9"),
        (actions.Window(8), "translations:4:1", torch.rand(1, 1, 12, 14), "radius is 2"),
        (actions.ImagePair(), "cyclic:4", torch.rand(2, 3, 1, 6, 6), "[2, channel"),
        (actions.VectorField(), "cyclic:4", torch.rand(2, 3, 6, 6), "[2, row, column]"),
        (actions.Points(), "rotations3d:4", torch.rand(2, 5, 2), "(space)"),
        (actions.Points(), "cyclic:4", torch.rand(2, 5), "[point, coordinate]"),
        (actions.Points(), "permutations:4", torch.rand(2, 5, 3), "expected 4 rows"),
        (actions.Vectors(), "cyclic:4", torch.rand(2, 3), "(plane)"),
        (actions.Irreps("1o"), "rotations3d:4", torch.rand(2, 4), "the 3 features of irreps"),
        (actions.Boxes(8, 8), "cyclic:4", torch.rand(2, 4), "[sample, box, 4]"),
        (actions.Boxes(8, 8), "cyclic:4", torch.tensor([[[5.0, 0, 1, 1]]]), "left <= right"),
        (
            actions.as_action({"a": actions.Trivial()}),
            "cyclic:4",
            {"b": torch.rand(1)},
            "expected fields ['a']",
        ),
        (
            actions.as_action({"a": {"b": actions.Points()}}),
            "cyclic:4",
            {"a": torch.rand(1, 5, 2)},
            "data['a']: expected fields ['b'], got one array; pass input= its action, such as",
        ),
    ],
)
def test_data_that_cannot_be_moved_are_refused(action, spec, x, words):
    with pytest.raises(InputError) as caught:
        action.check(groups.parse(spec), x)
    assert words in str(caught.value)


@pytest.mark.parametrize("lacking", [math.nan, math.inf])
def test_points_that_are_no_numbers_are_refused_with_the_way_out(lacking):
    clouds = torch.rand(3, 5, 3)
    clouds[1, 4:] = lacking
    with pytest.raises(
        InputError, match=r"point 4, coordinate 0 of sample 1; orbical.datasets.padded"
    ):
        actions.Points().check(groups.rotations3d(8), clouds)


@pytest.mark.parametrize(
    ("action", "spec", "shape", "words"),
    [
        (actions.Images(), "rotations3d:8", (2, 1, 4, 4), "space.*Points and Vectors of 3"),
        (actions.Images(), "cyclic:4*time_reversal", (2, 1, 4, 4), "time.*ImagePair"),
        (actions.Points(), "rotations3d:8*flips", (2, 5, 3), "plane.*inversion"),
        (actions.Points(), "flips*rotations3d:8", (2, 5, 2), "space"),
        (actions.Points(), "rotations3d:8*time_reversal", (2, 5, 3), "time"),
        (actions.Vectors(), "rotations3d:8*permutations:5", (2, 5, 3), "rows.*per_point"),
        (actions.Rows(), "permutations:5*cyclic:4", (2, 5), "plane"),
        (actions.Trivial(), "cyclic:4", (2, 5), "plane"),
    ],
)
def test_a_part_that_moves_nothing_of_the_data_is_refused(action, spec, shape, words):
    with pytest.raises(InputError, match=words):
        actions.check_group(action, groups.parse(spec), torch.rand(shape))


@pytest.mark.parametrize(
    ("action", "shape", "told"),
    [
        (actions.Images(), (2, 8, 8), True),
        (actions.Volumes(), (2, 4, 4, 4), True),
        (actions.Images(), (2, 64), False),
    ],
)
def test_data_without_a_channel_are_told_how_to_add_it(action, shape, told):
    with pytest.raises(InputError, match=r"Points\(\)") as refused:
        action.check(groups.parse("trivial"), torch.rand(shape))
    assert ("x[:, None]" in str(refused.value)) == told


def test_a_part_may_move_one_field_of_a_batch():
    action = actions.as_action({"pos": actions.Points(), "picture": actions.Images()})
    x = {"pos": torch.rand(2, 5, 3), "picture": torch.rand(2, 1, 4, 4)}
    actions.check_group(action, groups.parse("rotations3d:8*flips"), x)
    with pytest.raises(InputError, match="time"):
        actions.check_group(action, groups.parse("rotations3d:8*time_reversal"), x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: actions.Images("linear"), "did you mean 'bilinear'"),
        (lambda: actions.Images(padding="zero"), "did you mean 'zeros'"),
        (lambda: actions.Window("8x"), "got '8x'"),
        (lambda: actions.Window(0), "got 0"),
        (lambda: actions.PairWindow(np.float32(8.5)), "an integer >= 1"),
        (lambda: actions.Boxes(-1, 8), "got -1"),
        (lambda: actions.Boxes(8, "wide"), "got 'wide'"),
        (lambda: actions.Irreps("nonsense"), "e3nn irreps such as"),
        (lambda: actions.Irreps(None), "got None"),
        (lambda: actions.Irreps(""), "got ''"),
        (lambda: actions.as_action("images"), "an orbical.actions.Action"),
    ],
)
def test_unknown_settings_are_named(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)
