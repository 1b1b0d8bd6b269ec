"""assert_equivariant: passes, fails, follows the precision, names the worst element."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.testing import TOLERANCE

POOL = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_an_invariant_network_passes_in_every_precision(dtype):
    images = torch.rand(4, 3, 8, 8).to(dtype)
    ob.testing.assert_equivariant(POOL, images, group="dihedral:4", task="classification")


def test_the_worst_element_is_named():
    def half_blind(x):  # looks at the upper half only, so half turns are worst
        return x[:, :, :4].mean((2, 3))

    images = torch.zeros(1, 2, 8, 8)
    images[0, 0, :4] = 5
    words = r"at angle 180 \(element 2\) of sample 0, 3 of 4 elements"
    with pytest.raises(AssertionError, match=words):
        ob.testing.assert_equivariant(half_blind, images, group="cyclic:4", task="classification")


def test_a_tolerance_can_be_given():
    images = torch.rand(2, 2, 8, 8)

    def nearly(x):
        return x.mean((2, 3)) + 1e-3 * x[:, :, 0, 0]

    error = ob.testing.equivariance_error(nearly, images, group="cyclic:4", task="classification")
    assert 1e-5 < error.largest < 1e-2
    ob.testing.assert_equivariant(
        nearly, images, group="cyclic:4", task="classification", tolerance=1e-2
    )


def slopes(pair):
    """The slope of the change between two frames: dx to the right, dy down."""
    change = torch.nn.functional.pad(pair[:, 1] - pair[:, 0], (1, 1, 1, 1))
    across = change[..., 1:-1, 2:] - change[..., 1:-1, :-2]
    down = change[..., 2:, 1:-1] - change[..., :-2, 1:-1]
    return torch.cat([across, down], 1)


def test_the_slope_of_a_change_is_a_vector_field_that_reversed_time_turns_round():
    pairs = torch.rand(2, 2, 1, 9, 9)
    ob.testing.assert_equivariant(slopes, pairs, group="dihedral:4*time_reversal", task="flow")


def test_two_channels_of_a_change_are_no_vector_field():
    """They turn as images, but nothing turns their vectors."""
    pairs = torch.rand(2, 2, 2, 9, 9)
    with pytest.raises(AssertionError, match="not equivariant under cyclic:4"):
        ob.testing.assert_equivariant(
            lambda pair: pair[:, 1] - pair[:, 0], pairs, group="cyclic:4", task="flow"
        )


def test_no_samples_are_refused():
    with pytest.raises(InputError, match="x: expected at least one sample, got none"):
        ob.testing.equivariance_error(
            POOL, torch.rand(0, 3, 8, 8), group="cyclic:4", task="classification"
        )


@pytest.mark.parametrize("keep", [list, np.asarray, torch.Tensor.tolist])
def test_data_may_be_kept_in_any_way(keep):
    images = torch.rand(3, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    pool = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    ob.testing.assert_equivariant(pool, keep(images), group="cyclic:4", task="classification")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(x=None), "x: expected arrays with a leading sample dimension"),
        (
            dict(x=[torch.rand(3), torch.rand(2)]),
            "x: expected samples of the same shape, got a list of 2",
        ),
        (dict(x=torch.full((2, 3), torch.nan)), "data: expected finite numbers, got NaN"),
        (dict(tolerance="small"), "tolerance: expected a number >= 0, got 'small'"),
        (dict(tolerance=-1e-3), "tolerance: expected a number >= 0, got -0.001"),
        (dict(tolerance=np.nan), "tolerance: expected a number >= 0, got nan"),
    ],
)
def test_what_cannot_be_tested_is_refused(settings, words):
    task = ob.tasks.Regression(input=ob.actions.Vectors(), representation="vector")
    settings = {"x": torch.rand(2, 3)} | settings
    with pytest.raises(InputError) as caught:
        ob.testing.assert_equivariant(lambda v: v, group="rotations3d:4", task=task, **settings)
    assert words in str(caught.value)
    with pytest.raises(InputError, match=r"batch_size: expected .* got 0"):
        ob.testing.equivariance_error(
            lambda v: v, torch.rand(2, 3), group="rotations3d:4", task=task, batch_size=0
        )


def test_data_of_the_wrong_kind_are_refused():
    with pytest.raises(InputError, match="moved by plane"):
        ob.testing.assert_equivariant(
            POOL, torch.rand(1, 3, 8, 8), group="rotations3d:4", task="classification"
        )


def radial(x):
    """A vector along x with a covariance that is wider along x: both turn."""
    along = x[:, :, None] * x[:, None]
    return 2 * x, torch.eye(x.shape[-1], dtype=x.dtype) + along


VECTORS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def judged(model, form, x=VECTORS, group="rotations3d:24", **settings):
    settings = {"input": ob.actions.Vectors(), "representation": "vector"} | settings
    task = ob.tasks.Regression(uncertainty=form, **settings)
    ob.testing.assert_equivariant(model, x, group=group, task=task)


def test_covariances_must_turn_with_their_vectors():
    judged(radial, "covariance")
    fixed = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    with pytest.raises(AssertionError, match=r"relative error \S+ of the covariance at"):
        judged(lambda x: (2 * x, fixed.expand(len(x), 3, 3)), "covariance")
    with pytest.raises(AssertionError, match=r"relative error \S+ at"):
        judged(lambda x: (x.abs(), radial(x)[1]), "covariance")


def test_one_variance_must_stay():
    judged(lambda x: (2 * x, x.square().sum(-1)), "variance")
    with pytest.raises(AssertionError, match="of the variance at"):
        judged(lambda x: (2 * x, 1 + x[:, 0].square()), "variance")


def test_both_parts_of_evidence_must_stay():
    size = VECTORS.square().sum(-1)

    def evidence(x, part):
        one = torch.ones_like(size).repeat(len(x) // len(size))
        return x, 1 + part(x), 2 * one, one

    judged(lambda x: evidence(x, lambda v: v.square().sum(-1)), "evidential")
    with pytest.raises(AssertionError, match="of the epistemic at"):
        judged(lambda x: evidence(x, lambda v: v[:, 0].square()), "evidential")


def test_variances_of_points_are_reordered_with_them():
    clouds = VECTORS[None].repeat(2, 1, 1)
    settings = {"input": ob.actions.Points(), "representation": "trivial", "per_point": True}

    def by_length(x):
        return x.square().sum(-1, keepdim=True), 1 + x.abs().sum(-1, keepdim=True)

    judged(by_length, "variance", clouds, "permutations:6:20", **settings)
    with pytest.raises(AssertionError, match="of the variance at"):
        judged(
            lambda x: (by_length(x)[0], (1.0 + torch.arange(6)[:, None]).expand(len(x), 6, 1)),
            "variance",
            clouds,
            "permutations:6:20",
            **settings,
        )


def handedness(x: torch.Tensor) -> torch.Tensor:
    return torch.det(x)[:, None]


def test_a_model_that_knows_left_from_right_is_found_by_inversion_and_flips_are_refused() -> None:
    points = torch.randn(40, 3, 3, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Points())
    for look in (
        lambda group: ob.scan(handedness, points, group=group, task=task, progress=False),
        lambda group: ob.testing.equivariance_error(handedness, points, group=group, task=task),
    ):
        with pytest.raises(InputError, match=r"plane part of rotations3d:8\*flips moves nothing"):
            look("rotations3d:8*flips")
    error = ob.testing.equivariance_error(
        handedness, points, group="rotations3d:8*inversion", task=task
    )
    assert error.largest > 1
    scan = ob.scan(handedness, points, group="rotations3d:8*inversion", task=task, progress=False)
    assert float(scan.data["invariance_gap"].max()) > 1


def test_an_output_that_the_group_would_leave_alone_by_mistake_is_refused() -> None:
    pytest.importorskip("e3nn", reason="e3nn is not installed")
    points = torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Points(), "1x1o")

    def center(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(x.mean(1), (0, 1))

    for look in (
        lambda: ob.scan(center, points, group="cyclic:4", task=task, progress=False),
        lambda: ob.testing.equivariance_error(center, points, group="cyclic:4", task=task),
    ):
        with pytest.raises(ModelError, match=r"cyclic:4 moves plane.*representation='vector'"):
            look()


torch.manual_seed(0)
POINTWISE = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 2, 1)
)
MAPS = ob.tasks.DenseRegression()


def pictures(smooth):
    """Noise, which interpolation destroys, or blobs, which it hardly changes."""
    if not smooth:
        return torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    y, x = torch.meshgrid(*2 * [torch.linspace(-1, 1, 32)], indexing="ij")
    blobs = [torch.exp(-((x - 0.2 * i) ** 2 + (y + 0.1 * i) ** 2) / 0.1) for i in range(4)]
    return torch.stack(blobs)[:, None]


def by_place(x):
    return torch.cat([x, x * torch.linspace(0, 1, x.shape[-1])], 1)


@pytest.mark.parametrize("smooth", [False, True])
def test_interpolation_is_not_the_fault_of_a_model(smooth):
    x = pictures(smooth)
    error = ob.testing.equivariance_error(POINTWISE, x, group="rotations:8", task=MAPS)
    assert error.largest > 2e-4  # beyond the tolerance of single precision
    assert (error.per_element <= error.interpolation).all()
    assert (error.interpolation[::2] == 0).all()  # quarter turns lose nothing
    with pytest.warns(UserWarning, match=r"only up to interpolation, .* dihedral:4, cyclic:4"):
        ob.testing.assert_equivariant(POINTWISE, x, group="rotations:8", task=MAPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ob.testing.assert_equivariant(POINTWISE, x, group="dihedral:4", task=MAPS)


@pytest.mark.parametrize("smooth", [False, True])
def test_a_model_that_knows_places_fails_beyond_interpolation(smooth):
    x = pictures(smooth)
    with pytest.raises(AssertionError, match="not equivariant under rotations:8"):
        ob.testing.assert_equivariant(by_place, x, group="rotations:8", task=MAPS)
    if smooth:  # of noise, interpolation leaves so little that nothing is decided
        with pytest.raises(AssertionError, match=r"of which interpolation explains \S+ \(dihedral"):
            ob.testing.assert_equivariant(by_place, x, group="rotations:3", task=MAPS)
    else:
        with pytest.warns(UserWarning, match="smaller errors of the model are not seen"):
            ob.testing.assert_equivariant(by_place, x, group="rotations:3", task=MAPS)
