"""Heads of equivariant networks: vectors with one variance, evidence, or a full covariance.

Equivariant outputs are computed from vectors alone and invariant ones from scalars alone, so a head
is exactly as equivariant as its backbone. A vector of variances cannot rotate; these can:

* **one variance** for all coordinates, from the scalars;
* **a full covariance** `R Sigma R^T`, made from a symmetric matrix A: its trace gives the size, the
  exponential of the rest the shape. It commutes with rotations, `exp(R A R^T) = R exp(A) R^T`, and
  is positive definite for every A. In irreducible parts A is 0e + 2e.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._imports import import_extra
from ..errors import InputError, whole_number
from .heads import FLOOR, Evidence, MeanVariance, checked_targets, single, softened

__all__ = [
    "IrrepsCovarianceHead", "IrrepsVarianceHead", "MeanCovariance", "VectorCovarianceHead",
    "VectorEvidentialHead", "VectorVarianceHead", "positive_definite", "symmetric_from_irreps",
]  # fmt: skip

_LARGEST = 12.0
"""Frobenius norm that an exponent without trace approaches: variances of all shapes stay finite."""


class MeanCovariance(NamedTuple):
    """A Gaussian with a full covariance for each sample.

    Attributes:
        mean: `[..., d]`.
        covariance: `[..., d, d]`.
    """

    mean: Tensor
    covariance: Tensor


def positive_definite(matrix: Tensor, floor: float = FLOOR) -> Tensor:
    """Map symmetric matrices to covariances, equivariantly.

        A = a I + T,  tr T = 0,   C = softplus(a) exp(T c tanh(|T| / c) / |T|),  c = 12
        C + (floor + 4 eps tr C) I,  eps = 2^-23

    Trace and Frobenius norm are invariant, and the exponential rotates with T. Its determinant is
    1, so a is the size of the covariance and T its shape: a multiple of the identity goes down to
    the floor. The bound on T keeps the exponential finite, and the share of the trace lets the
    smallest eigenvalue survive the rounding of the largest in single precision.

    Args:
        matrix: symmetric matrices A `[..., d, d]`.
        floor: the smallest variance.

    Returns:
        Positive definite matrices `[..., d, d]`.

    Example:
        >>> positive_definite(torch.zeros(2, 2), floor=0.0).diagonal()  # log 2
        tensor([0.6931, 0.6931])
    """
    matrix = single(matrix)
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    size = _trace(matrix) / matrix.shape[-1]
    traceless = matrix - size * eye
    square = traceless.square().sum((-1, -2), keepdim=True)
    length = (square + 1e-12).sqrt()  # a root that has a gradient at 0
    shape = torch.linalg.matrix_exp(traceless * (_LARGEST * torch.tanh(length / _LARGEST) / length))
    whole: Tensor = functional.softplus(size) * (shape + shape.mT) / 2
    # Of single precision whatever the matrix has, so that the result does not depend on that.
    rounding = 4 * torch.finfo(torch.float32).eps
    return whole + (floor + rounding * _trace(whole)) * eye


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]


def symmetric_from_irreps(scalar: Tensor, quadrupole: Tensor) -> Tensor:
    """Return the symmetric matrices whose irreducible parts are 0e and 2e.

        A = scalar I / sqrt(3) + sum_m quadrupole_m Q_m

    with Q_m the orthonormal symmetric matrices of trace 0 in e3nn's order, so that the norm of A
    is that of its parts.

    Args:
        scalar: the part 0e, `[...]`.
        quadrupole: the part 2e, `[..., 5]`.

    Returns:
        Symmetric matrices `[..., 3, 3]`.

    Example:
        >>> symmetric_from_irreps(torch.tensor(0.0), torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0]))
        tensor([[0.0000, 0.7071, 0.0000],
                [0.7071, 0.0000, 0.0000],
                [0.0000, 0.0000, 0.0000]])
    """
    basis = _quadrupoles().to(quadrupole)
    eye = torch.eye(3, dtype=quadrupole.dtype, device=quadrupole.device) / 3**0.5
    return scalar[..., None, None] * eye + torch.einsum("...m,mij->...ij", quadrupole, basis)


def _quadrupoles() -> Tensor:
    """Return `[5, 3, 3]`, the harmonics xz, xy, 2y^2 - x^2 - z^2, yz, z^2 - x^2 as matrices."""
    off, six = 0.5**0.5, 6**-0.5
    x, y, z = 0, 1, 2
    basis = torch.zeros(5, 3, 3, dtype=torch.float64)
    for m, (i, j) in ((0, (x, z)), (1, (x, y)), (3, (y, z))):
        basis[m, i, j] = basis[m, j, i] = off
    basis[2] = torch.diag(torch.tensor([-six, 2 * six, -six], dtype=torch.float64))
    basis[4] = torch.diag(torch.tensor([-off, 0.0, off], dtype=torch.float64))
    return basis


class _HeadInUnits(nn.Module):
    """A head that predicts in units of the targets' root mean square."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(()))

    def fit_scale(self, targets: Tensor) -> Self:
        """Set the unit to the root mean square of training targets `[n, d]`; return the head."""
        values = torch.as_tensor(targets)
        values = checked_targets(values, values.shape[-1] if values.ndim else 1)
        size = values.square().mean().sqrt()
        self.scale.copy_(torch.where(size > 0, size, 1.0))
        return self


class _VectorHead(_HeadInUnits):
    """A mean made from vectors."""

    def __init__(self, scalars: int, vectors: int, invariants: int) -> None:
        super().__init__()
        self.mean = nn.Linear(whole_number("vectors", vectors), 1, bias=False)
        self.invariant = nn.Linear(whole_number("scalars", scalars), invariants)

    def _parts(self, features: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Check features; return the mean, the invariants and the vectors `[..., V, d]`."""
        if not isinstance(features, tuple | list) or len(features) != 2:
            raise InputError(
                "features", "(scalars [n, S], vectors [n, V, d])", type(features).__name__
            )
        scalars, vectors = features
        if vectors.ndim != scalars.ndim + 1 or vectors.shape[:-2] != scalars.shape[:-1]:
            raise InputError(
                "features",
                "scalars [n, S] and vectors [n, V, d]",
                f"shapes {tuple(scalars.shape)} and {tuple(vectors.shape)}",
            )
        mean = self.scale * single(self.mean(vectors.mT)[..., 0])
        return mean, single(self.invariant(scalars)), vectors


class VectorVarianceHead(_VectorHead):
    """A vector and one variance: mean from the vectors, variance `[n, 1]` from the scalars.

    Train with `losses.gaussian_nll`, scan with `tasks.Regression(representation="vector",
    uncertainty="variance")`.

    Args:
        scalars: number S of invariant features `[n, S]`.
        vectors: number V of equivariant features `[n, V, d]`, in the plane or in space.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> head = VectorVarianceHead(scalars=4, vectors=2)
        >>> mean, variance = head((torch.randn(6, 4), torch.randn(6, 2, 3)))
        >>> mean.shape, variance.shape
        (torch.Size([6, 3]), torch.Size([6, 1]))
    """

    def __init__(self, scalars: int, vectors: int) -> None:
        super().__init__(scalars, vectors, invariants=1)

    def forward(self, features: tuple[Tensor, Tensor]) -> MeanVariance:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        mean, spread, _ = self._parts(features)
        return MeanVariance(mean, self.scale.square() * softened(spread))


class VectorEvidentialHead(_VectorHead):
    """Evidence for a vector: gamma from the vectors; nu, alpha and beta `[n, 1]` from the scalars.

    Train with `losses.nig_nll`, scan with `tasks.Regression(representation="vector",
    uncertainty="evidential")`.

    Args:
        scalars: number S of invariant features `[n, S]`.
        vectors: number V of equivariant features `[n, V, d]`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> found = VectorEvidentialHead(4, 2)((torch.randn(6, 4), torch.randn(6, 2, 3)))
        >>> found.gamma.shape, found.alpha.shape
        (torch.Size([6, 3]), torch.Size([6, 1]))
    """

    def __init__(self, scalars: int, vectors: int) -> None:
        super().__init__(scalars, vectors, invariants=3)

    def forward(self, features: tuple[Tensor, Tensor]) -> Evidence:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        gamma, raw, _ = self._parts(features)
        nu, alpha, beta = raw.chunk(3, dim=-1)
        return Evidence(
            gamma, softened(nu), 1 + softened(alpha), self.scale.square() * softened(beta)
        )


class VectorCovarianceHead(_VectorHead):
    """A vector and its full covariance, from scalars and vectors, in the plane or in space.

        A = a I + sum_k b_k u_k u_k^T / (1 + |u_k|^2),   covariance = scale^2 P(A)

    with u_k mixtures of the vectors, a and b_k linear in the scalars, and P `positive_definite`.
    Train with `losses.covariance_nll`, scan with `tasks.Regression(representation="vector",
    uncertainty="covariance")`.

    Args:
        scalars: number S of invariant features `[n, S]`.
        vectors: number V of equivariant features `[n, V, d]`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> found = VectorCovarianceHead(4, 2)((torch.randn(6, 4), torch.randn(6, 2, 3)))
        >>> bool((torch.linalg.eigvalsh(found.covariance) > 0).all())
        True
    """

    def __init__(self, scalars: int, vectors: int) -> None:
        super().__init__(scalars, vectors, invariants=1 + vectors)
        self.axes = nn.Linear(vectors, vectors, bias=False)

    def forward(self, features: tuple[Tensor, Tensor]) -> MeanCovariance:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        mean, raw, vectors = self._parts(features)
        axes = single(self.axes(vectors.mT).mT)
        # Bounded: the covariance takes directions from the vectors, and sizes from the scalars.
        weight = raw[..., 1:] / (1 + axes.square().sum(-1))
        exponent = torch.einsum("...k,...ki,...kj->...ij", weight, axes, axes)
        eye = torch.eye(vectors.shape[-1], dtype=mean.dtype, device=mean.device)
        exponent = exponent + raw[..., :1, None] * eye
        return MeanCovariance(mean, self.scale.square() * positive_definite(exponent))


class _IrrepsHead(_HeadInUnits):
    """A linear map of e3nn features to a vector and what else a head needs."""

    def __init__(self, irreps: str, needed: str) -> None:
        super().__init__()
        o3 = import_extra("e3nn.o3", "equivariant", "a head on irreps")
        given = o3.Irreps(irreps)
        for _, irrep in o3.Irreps(needed):
            if irrep not in given:
                raise InputError("irreps", f"features of {irrep}", repr(irreps))
        self.irreps = str(given)
        self.linear = o3.Linear(given, o3.Irreps(needed), biases=True)


class IrrepsVarianceHead(_IrrepsHead):
    """A vector and one variance from e3nn features that hold 0e and 1o.

    Args:
        irreps: the irreps of the features `[n, D]`, such as `"16x0e + 8x1o"`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> mean, variance = IrrepsVarianceHead("4x0e + 2x1o")(torch.randn(6, 10))
        >>> mean.shape, variance.shape
        (torch.Size([6, 3]), torch.Size([6, 1]))
    """

    def __init__(self, irreps: str) -> None:
        super().__init__(irreps, "1x1o + 1x0e")

    def forward(self, features: Tensor) -> MeanVariance:
        """Return the distributions for features `[n, D]`."""
        mean, spread = self.linear(features).split([3, 1], dim=-1)
        return MeanVariance(self.scale * mean, self.scale.square() * softened(spread))


class IrrepsCovarianceHead(_IrrepsHead):
    """A vector and its full covariance from e3nn features that hold 0e, 1o and 2e.

        covariance = scale^2 P(A)

    with A of the irreducible parts 0e + 2e, and P `positive_definite`.

    Args:
        irreps: the irreps of the features `[n, D]`, such as `"16x0e + 8x1o + 4x2e"`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> found = IrrepsCovarianceHead("4x0e + 2x1o + 1x2e")(torch.randn(6, 15))
        >>> found.covariance.shape
        torch.Size([6, 3, 3])
    """

    def __init__(self, irreps: str) -> None:
        super().__init__(irreps, "1x1o + 1x0e + 1x2e")

    def forward(self, features: Tensor) -> MeanCovariance:
        """Return the distributions for features `[n, D]`."""
        mean, scalar, quadrupole = self.linear(features).split([3, 1, 5], dim=-1)
        exponent = symmetric_from_irreps(scalar[..., 0], quadrupole)
        return MeanCovariance(self.scale * mean, self.scale.square() * positive_definite(exponent))
