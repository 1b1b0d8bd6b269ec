"""Last layers that add an uncertainty to any torch backbone.

    model = torch.nn.Sequential(backbone, training.EvidentialHead(64, targets=3))
    loss = losses.nig_nll(*model(x), y)

A head predicts in the units of the targets. Internally, targets have mean 0 and standard deviation
1; `fit_scale(y)` measures both, and `forward` undoes the scaling. Variances are the softplus of a
linear map, in single precision at least, with a floor that keeps likelihoods finite.

Equivariant networks have heads of their own: vectors with one variance, evidence, or a full
covariance. Equivariant outputs are computed from vectors alone and invariant ones from scalars
alone, so a head is exactly as equivariant as its backbone. A vector of variances cannot rotate;
these can:

* **one variance** for all coordinates, from the scalars;
* **a full covariance** `R Sigma R^T`, made from a symmetric matrix A: its trace gives the size, the
  exponential of the rest the shape. It commutes with rotations, `exp(R A R^T) = R exp(A) R^T`, and
  is positive definite for every A. In irreducible parts A is 0e + 2e.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._arrays import single_precision
from .._imports_and_paths import import_extra
from ..errors import InputError, whole_number

__all__ = [
    "Evidence", "EvidentialHead", "IrrepsCovarianceHead", "IrrepsVarianceHead", "MeanCovariance",
    "MeanVariance", "MeanVarianceHead", "VectorCovarianceHead", "VectorEvidentialHead",
    "VectorVarianceHead", "positive_definite", "symmetric_from_irreps",
]  # fmt: skip


FLOOR = 1e-6
"""The smallest variance that a head predicts, in units of the targets' variance."""


class MeanVariance(NamedTuple):
    """A Gaussian for each sample.

    Attributes:
        mean: `[n]` or `[n, d]`.
        variance: of the mean's shape, or `[n, 1]`.
    """

    mean: Tensor
    variance: Tensor


class Evidence(NamedTuple):
    """A normal-inverse-gamma distribution for each sample, as `losses.nig_nll` takes it.

    Attributes:
        gamma: the predicted value, `[n]` or `[n, d]`.
        nu: evidence for the mean, of that shape or `[n, 1]`.
        alpha: evidence for the variance, greater than 1.
        beta: scale of the variance.
    """

    gamma: Tensor
    nu: Tensor
    alpha: Tensor
    beta: Tensor

    @property
    def aleatoric(self) -> Tensor:
        """Return the expected variance of the data, `beta / (alpha - 1)`."""
        return self.beta / (self.alpha - 1)

    @property
    def epistemic(self) -> Tensor:
        """Return the variance of the mean, `beta / (nu (alpha - 1))`."""
        return self.aleatoric / self.nu

    @property
    def variance(self) -> Tensor:
        """Return the sum of both, the variance of the predictive Student t distribution."""
        return self.aleatoric + self.epistemic


def floored_softplus(raw: Tensor, floor: float = FLOOR) -> Tensor:
    """Return `softplus(raw) + floor`, in single precision at least: positive and finite.

    >>> floored_softplus(torch.tensor([-1e4, 0.0])).tolist()[0] == FLOOR
    False
    >>> bool((floored_softplus(torch.tensor([-1e4, 0.0, 1e4])) > 0).all())
    True
    """
    return functional.softplus(single_precision(raw)) + floor


def _checked_head_targets(targets: Tensor, width: int) -> Tensor:
    """Return targets `[n]` or `[n, d]` as `[n, d]` in double precision.

    >>> _checked_head_targets(torch.tensor([1.0, 2.0]), 1).shape
    torch.Size([2, 1])
    """
    values = torch.as_tensor(targets).detach().double()
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != width or len(values) < 2:
        raise InputError("targets", f"shape [n, {width}] with n >= 2", values)
    if not bool(torch.isfinite(values).all()):
        raise InputError("targets", "finite values", "NaN or infinity")
    return values


class _ScaledHead(nn.Module):
    """A linear layer that predicts a center and other numbers for each coordinate."""

    others: ClassVar[int]
    """How many numbers there are beside the center."""
    center: Tensor
    scale: Tensor

    def __init__(self, features: int, targets: int = 1, shared: bool = False) -> None:
        super().__init__()
        self.targets = whole_number("targets", targets)
        self.shared = shared
        self.widths = [self.targets, *[1 if shared else self.targets] * self.others]
        self.linear = nn.Linear(whole_number("features", features), sum(self.widths))
        self.register_buffer("center", torch.zeros(targets))
        self.register_buffer("scale", torch.ones(1 if shared else targets))

    def fit_scale(self, targets: Tensor) -> Self:
        """Set the units from training targets: their mean and standard deviation.

        A constant coordinate keeps the deviation 1. With a shared variance all coordinates share
        one deviation, their root mean square.

        Args:
            targets: `[n]` or `[n, d]`.

        Returns:
            The head itself.
        """
        values = _checked_head_targets(targets, self.targets)
        variance = values.var(0, correction=0)
        if self.shared:
            variance = variance.mean(0, keepdim=True)
        deviation = torch.where(variance > 0, variance.sqrt(), 1.0)
        self.center.copy_(values.mean(0))
        self.scale.copy_(deviation)
        return self

    def _parts(self, features: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the center in the units of the targets, and the other numbers as they are."""
        center, *others = self.linear(features).split(self.widths, dim=-1)
        return self.center + self.scale * single_precision(center), others

    def _shaped(self, values: Tensor) -> Tensor:
        """Return single targets as `[n]`, the shape of their labels."""
        return values[..., 0] if self.targets == 1 else values


class MeanVarianceHead(_ScaledHead):
    """A Gaussian for each sample: mean, and a variance for each coordinate.

        mean = center + scale * m,   variance = scale^2 (softplus(v) + floor)

    with m and v linear in the features. Train with `losses.gaussian_nll` or `losses.beta_nll`, scan
    with `tasks.Regression(uncertainty="variance")`.

    Args:
        features: the width of the backbone's last layer.
        targets: the number d of coordinates; 1 gives `[n]`, more give `[n, d]`.
        shared: one variance `[n, 1]` for all coordinates, as targets that rotate need.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), MeanVarianceHead(16, targets=3))
        >>> mean, variance = model(torch.randn(4, 5))
        >>> mean.shape, variance.shape, bool((variance > 0).all())
        (torch.Size([4, 3]), torch.Size([4, 3]), True)
    """

    others = 1

    def forward(self, features: Tensor) -> MeanVariance:
        """Return the distributions for features `[n, features]`."""
        mean, (spread,) = self._parts(features)
        variance = self.scale.square() * floored_softplus(spread)
        return MeanVariance(self._shaped(mean), self._shaped(variance))


def _evidence(gamma: Tensor, raw: Iterable[Tensor], scale: Tensor) -> Evidence:
    """Return a center with what a linear map gives for nu, alpha and beta, made positive."""
    nu, alpha, beta = map(floored_softplus, raw)
    return Evidence(gamma, nu, 1 + alpha, scale.square() * beta)


class EvidentialHead(_ScaledHead):
    """A normal-inverse-gamma distribution for each sample (Amini et al. 2020).

        gamma = center + scale * g,   nu = softplus + floor,   alpha = 1 + softplus + floor,
        beta = scale^2 (softplus + floor)

    so that alpha > 1 and both parts of the variance exist. Train with `losses.nig_nll` and
    `losses.nig_regularizer`, scan with `tasks.Regression(uncertainty="evidential")`.

    Args:
        features: the width of the backbone's last layer.
        targets: the number d of coordinates; 1 gives `[n]`, more give `[n, d]`.
        shared: one nu, alpha and beta `[n, 1]` for all coordinates, as targets that rotate need.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> head = EvidentialHead(16).fit_scale(torch.tensor([10.0, 14.0]))
        >>> found = head(torch.zeros(2, 16))
        >>> found.gamma.shape, bool((found.alpha > 1).all())
        (torch.Size([2]), True)
        >>> torch.allclose(found.variance, found.aleatoric + found.epistemic)
        True

    Paper: the equivariance paper's section 3.5 and appendix E.
    """

    others = 3

    def forward(self, features: Tensor) -> Evidence:
        """Return the distributions for features `[n, features]`."""
        return Evidence(*map(self._shaped, _evidence(*self._parts(features), self.scale)))


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
    matrix = single_precision(matrix)
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
    basis = _covariance_head_quadrupoles().to(quadrupole)
    eye = torch.eye(3, dtype=quadrupole.dtype, device=quadrupole.device) / 3**0.5
    return scalar[..., None, None] * eye + torch.einsum("...m,mij->...ij", quadrupole, basis)


def _covariance_head_quadrupoles() -> Tensor:
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
        values = _checked_head_targets(values, values.shape[-1] if values.ndim else 1)
        size = values.square().mean().sqrt()
        self.scale.copy_(torch.where(size > 0, size, 1.0))
        return self


class _VectorHead(_HeadInUnits):
    """A mean made from vectors."""

    invariants = 1
    """How many numbers are made from scalars."""

    def __init__(self, scalars: int, vectors: int) -> None:
        super().__init__()
        self.mean = nn.Linear(whole_number("vectors", vectors), 1, bias=False)
        self.invariant = nn.Linear(whole_number("scalars", scalars), self.invariants)

    def _parts(self, features: object) -> tuple[Tensor, Tensor, Tensor]:
        """Check features; return the mean, the invariants and the vectors `[..., V, d]`."""
        if not isinstance(features, tuple | list) or len(features) != 2:
            raise InputError("features", "(scalars [n, S], vectors [n, V, d])", type(features))
        scalars, vectors = features
        if vectors.ndim != scalars.ndim + 1 or vectors.shape[:-2] != scalars.shape[:-1]:
            raise InputError(
                "features",
                "scalars [n, S] and vectors [n, V, d]",
                f"shapes {tuple(scalars.shape)} and {tuple(vectors.shape)}",
            )
        mean = self.scale * single_precision(self.mean(vectors.mT)[..., 0])
        return mean, single_precision(self.invariant(scalars)), vectors


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

    def forward(self, features: tuple[Tensor, Tensor]) -> MeanVariance:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        mean, spread, _ = self._parts(features)
        return MeanVariance(mean, self.scale.square() * floored_softplus(spread))


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

    invariants = 3

    def forward(self, features: tuple[Tensor, Tensor]) -> Evidence:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        gamma, raw, _ = self._parts(features)
        return _evidence(gamma, raw.chunk(3, dim=-1), self.scale)


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
        self.invariants = 1 + vectors  # before the layers are made
        super().__init__(scalars, vectors)
        self.axes = nn.Linear(vectors, vectors, bias=False)

    def forward(self, features: tuple[Tensor, Tensor]) -> MeanCovariance:
        """Return the distributions for `(scalars [n, S], vectors [n, V, d])`."""
        mean, raw, vectors = self._parts(features)
        axes = single_precision(self.axes(vectors.mT).mT)
        # Bounded: the covariance takes directions from the vectors, and sizes from the scalars.
        weight = raw[..., 1:] / (1 + axes.square().sum(-1))
        exponent = torch.einsum("...k,...ki,...kj->...ij", weight, axes, axes)
        eye = torch.eye(vectors.shape[-1], dtype=mean.dtype, device=mean.device)
        exponent = exponent + raw[..., :1, None] * eye
        return MeanCovariance(mean, self.scale.square() * positive_definite(exponent))


class _IrrepsHead(_HeadInUnits):
    """A linear map of e3nn features to a vector and what else a head needs."""

    needed: ClassVar[str]
    """The irreps of both."""

    def __init__(self, irreps: str) -> None:
        super().__init__()
        o3 = import_extra("e3nn.o3", "equivariant", "a head on irreps")
        given = o3.Irreps(irreps)
        for _, irrep in o3.Irreps(self.needed):
            if irrep not in given:
                raise InputError("irreps", f"features of {irrep}", repr(irreps))
        self.irreps = str(given)
        self.linear = o3.Linear(given, o3.Irreps(self.needed), biases=True)


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

    needed = "1x1o + 1x0e"

    def forward(self, features: Tensor) -> MeanVariance:
        """Return the distributions for features `[n, D]`."""
        mean, spread = self.linear(features).split([3, 1], dim=-1)
        return MeanVariance(self.scale * mean, self.scale.square() * floored_softplus(spread))


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

    needed = "1x1o + 1x0e + 1x2e"

    def forward(self, features: Tensor) -> MeanCovariance:
        """Return the distributions for features `[n, D]`."""
        mean, scalar, quadrupole = self.linear(features).split([3, 1, 5], dim=-1)
        exponent = symmetric_from_irreps(scalar[..., 0], quadrupole)
        return MeanCovariance(self.scale * mean, self.scale.square() * positive_definite(exponent))
