"""Degrees of exactness, on Wigner matrices and spherical harmonics of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical import groups
from orbical.errors import InputError


def wigner_mean(group, degree):
    """The largest entry of the weighted mean of e3nn's Wigner matrices."""
    o3 = pytest.importorskip("e3nn.o3")
    turns = torch.as_tensor(group.linear("space"))
    sign = torch.linalg.det(turns).sign()
    weights = torch.as_tensor(group.weights)
    found = []
    for parity in {1, int(sign.min())}:
        matrices = o3.Irrep(degree, parity).D_from_matrix(turns)
        found.append(torch.einsum("k,kij->ij", weights, matrices.double()).abs().max())
    return float(max(found))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 8])
def test_a_quadrature_is_exact_to_its_degree_and_no_further(degree):
    group = groups.so3_quadrature(degree)
    assert str(group) == f"so3_quadrature:{degree}"
    assert group.measure == f"Haar, exact to degree {degree}"
    assert (group.weights > 0).all()
    assert groups.exact_degree(group) == degree
    for lower in range(1, degree + 1):
        assert wigner_mean(group, lower) < 1e-4  # e3nn computes in single precision
    assert wigner_mean(group, degree + 1) > 1e-2


@pytest.mark.parametrize(
    ("text", "degree"),
    [
        ("pointgroup:222", 1),
        ("tetrahedral", 2),
        ("tetrahedral:full", 2),
        ("octahedral", 3),
        ("octahedral:full", 3),
        ("icosahedral", 5),
        ("icosahedral:full", 5),
        ("inversion", 0),
        ("rotations3d:32", 0),
    ],
)
def test_the_degree_of_point_groups_is_that_of_their_wigner_matrices(text, degree):
    group = groups.parse(text)
    assert groups.exact_degree(group) == degree
    for lower in range(1, degree + 1):
        assert wigner_mean(group, lower) < 1e-4
    assert wigner_mean(group, degree + 1) > 1e-3


@pytest.mark.parametrize("degree", [1, 2, 5, 8, 11])
def test_directions_average_spherical_harmonics_exactly(degree):
    o3 = pytest.importorskip("e3nn.o3")
    group = groups.sphere(degree)
    up = torch.as_tensor(group.linear("space") @ [0.0, 0.0, 1.0])
    weights = torch.as_tensor(group.weights)
    # e3nn counts its polar angle from y: the axis of its harmonics is turned to ours.
    for lower in range(1, degree + 2):
        values = o3.spherical_harmonics(lower, up[:, [1, 2, 0]], normalize=False)
        mean = float((weights @ values).abs().max())
        assert mean < 1e-9 if lower <= degree else mean > 1e-3
    assert len(np.unique(up.numpy().round(6), axis=0)) == len(group)


@pytest.mark.parametrize(
    ("text", "degree"),
    [("rotations:72", 71), ("cyclic:1", 0), ("dihedral:5", 4), ("flips", 1), ("cyclic:4*flips", 3)],
)
def test_in_the_plane_the_degree_is_that_of_fourier_series(text, degree):
    assert groups.exact_degree(groups.parse(text)) == degree


@pytest.mark.parametrize(
    "text", ["trivial", "translations:2", "scales", "time_reversal", "rotations:4*time_reversal",
             "rotations3d:3000", "se3:8:1"]
)  # fmt: skip
def test_other_samples_have_no_degree(text):
    assert groups.exact_degree(groups.parse(text)) is None


def test_an_average_over_a_quadrature_is_equivariant_up_to_rounding():
    """Of a vector-valued polynomial of degree 3 in the rotation, times the matrix that turns it."""
    cloud = np.random.default_rng(0).normal(size=(5, 3))

    def model(points):
        return (points[:, 0] ** 2 * points[:, 1]).sum() * np.array([1.0, 2.0, 3.0])

    def average(points, group):
        turns = group.linear("space")
        return sum(w * turn.T @ model(points @ turn.T)
                   for w, turn in zip(group.weights, turns, strict=True))  # fmt: skip

    other = groups.rotations3d(7).linear("space")[3]
    for group, exact in ((groups.so3_quadrature(4), True), (groups.so3_quadrature(3), False)):
        error = np.abs(average(cloud @ other.T, group) - other @ average(cloud, group)).max()
        assert (error < 1e-12) == exact


def test_sizes_are_checked_before_anything_is_computed():
    with pytest.raises(InputError, match="DEGREE: expected an integer >= 1, got 0"):
        groups.parse("so3_quadrature:0")
    for text in ("so3_quadrature:100000", "sphere:1e6"):
        with pytest.raises(InputError, match="at most 1,048,576 elements"):
            groups.parse(text)
