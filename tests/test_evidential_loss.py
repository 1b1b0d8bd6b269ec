"""The evidential likelihood in one pass is the formula, and so is its gradient."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from orbical import losses
from orbical.errors import InputError
from orbical.losses.regression_losses import _BLOCK


def evidence(size: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    gamma, target = (torch.randn(size, generator=generator) for _ in range(2))
    nu, beta = (torch.rand(size, generator=generator) * 3 + 0.05 for _ in range(2))
    alpha = 10 ** (torch.rand(size, generator=generator) * 6 - 2)  # .01 to 10,000
    return [gamma, nu, alpha, beta, target]


@pytest.mark.parametrize("size", [1, 7, _BLOCK + 3])
def test_single_precision_gives_the_value_and_gradient_of_double(size: int) -> None:
    single = [part.clone().requires_grad_() for part in evidence(size)]
    double = [part.double().requires_grad_() for part in evidence(size)]
    values = [losses.nig_nll(*given) for given in (single, double)]
    assert values[0].dtype == torch.float32
    assert values[0].item() == pytest.approx(values[1].item(), rel=1e-5, abs=1e-5)
    for value in values:
        value.backward()
    for one, other in zip(single, double, strict=True):
        # Terms of size alpha cancel, here as in the formula written out in single precision.
        allowed = 2e-5 * other.grad.abs() + 2e-6 * (1 + double[2]) / size
        assert bool(((one.grad.double() - other.grad).abs() <= allowed).all())


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 1.0001, 2.0, 30.0, 1e5, 1e8])
def test_single_precision_is_scipys_student_t(alpha: float) -> None:
    given = [torch.tensor([value]) for value in (0.3, 1.7, alpha, 0.8, 1.1)]
    scale = (0.8 * (1 + 1.7) / (alpha * 1.7)) ** 0.5
    expected = -stats.t.logpdf(1.1, 2 * alpha, loc=0.3, scale=scale)
    assert losses.nig_nll(*given).item() == pytest.approx(expected, rel=1e-5, abs=1e-5 * alpha**0.5)


def test_shared_evidence_of_vectors_gathers_its_gradient() -> None:
    gamma, target = torch.randn(5, 3), torch.randn(5, 3)
    shared = [(torch.rand(5, 1) + 1.1).requires_grad_() for _ in range(3)]
    losses.nig_nll(gamma, *shared, target).backward()
    wide = [part.detach().double().requires_grad_() for part in shared]
    losses.nig_nll(gamma.double(), *wide, target.double()).backward()
    for one, other in zip(shared, wide, strict=True):
        assert one.grad.shape == (5, 1)
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-5)


def test_nothing_is_differentiated_that_need_not_be() -> None:
    given = evidence(10)
    assert not losses.nig_nll(*given).requires_grad
    given[2].requires_grad_()
    losses.nig_nll(*given).backward()
    assert given[0].grad is None
    assert given[2].grad is not None


@pytest.mark.parametrize("place", [1, 2, 3])
def test_evidence_that_is_not_positive_is_named(place: int) -> None:
    name = ("gamma", "nu", "alpha", "beta")[place]
    for bad in (0.0, -1.0, float("nan")):
        given = evidence(10)
        given[place][4] = bad
        with pytest.raises(InputError, match=f"{name}: expected positive values"):
            losses.nig_nll(*given)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_weighted_likelihoods_agree_where_a_covariance_has_one_variance(beta: float) -> None:
    torch.manual_seed(0)
    mean, target = torch.randn(2, 6, 3, dtype=torch.float64)
    variance = (0.1 + torch.rand(6, 1, dtype=torch.float64)).requires_grad_()
    whole = losses.covariance_nll(mean, torch.diag_embed(variance.expand(6, 3)), target, beta=beta)
    plain = losses.beta_nll(mean, variance, target, beta=beta)
    torch.testing.assert_close(whole, plain)
    slopes = [torch.autograd.grad(one, variance)[0] for one in (whole, plain)]
    torch.testing.assert_close(*slopes)
    with pytest.raises(InputError, match=r"^beta"):
        losses.covariance_nll(mean, torch.eye(3).expand(6, 3, 3), target, beta=2.0)


def test_covariance_nll_is_scipys_normal() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(4, 3, 3, generator=generator, dtype=torch.float64)
    covariance = root @ root.mT + torch.eye(3)
    mean, target = (torch.randn(4, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    expected = -sum(
        stats.multivariate_normal.logpdf(target[i], mean[i], covariance[i]) for i in range(4)
    )
    assert losses.covariance_nll(mean, covariance, target).item() == pytest.approx(expected / 4)
    diagonal = torch.diag_embed(torch.rand(4, 3, generator=generator) + 0.5)
    variance = diagonal.diagonal(dim1=-2, dim2=-1)
    given = mean.float(), target.float()
    torch.testing.assert_close(
        losses.covariance_nll(given[0], diagonal, given[1]),
        losses.gaussian_nll(given[0], variance, given[1]),
    )


def test_a_covariance_that_is_none_is_named() -> None:
    mean = torch.zeros(2, 2)
    wrong = torch.stack([torch.eye(2), -torch.eye(2)])
    with pytest.raises(InputError, match=r"covariance: expected positive definite .* sample 1"):
        losses.covariance_nll(mean, wrong, mean)
    with pytest.raises(InputError, match="covariance: expected shape"):
        losses.covariance_nll(mean, torch.ones(2, 2), mean)


def test_the_evidential_loss_compiles() -> None:
    given = evidence(64)
    compiled = torch.compile(losses.nig_nll, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*given), losses.nig_nll(*given), rtol=1e-4, atol=1e-4)


EXTREMES = [  # error, nu, alpha, beta
    (2.0, 1.0, 1e5, 1e5),  # nearly a Gaussian of variance 2
    (0.1, 3.0, 1e7, 1e7),
    (1e3, 1e-4, 1.001, 1e-3),
    (1e-3, 1e4, 50.0, 1e3),
    (5.0, 1e-6, 2.0, 1e-6),
    (1e2, 1e6, 1e-2, 1.0),
    (30.0, 1e-3, 1e6, 1.0),
]


@pytest.mark.parametrize("weights", [None, torch.ones(1)])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_single_precision_has_the_gradient_of_double_at_extreme_parameters(
    extreme: tuple[float, ...], weights: torch.Tensor | None
) -> None:
    error, *others = extreme
    given = [torch.tensor([value]) for value in (0.0, *others, error)]
    single = [part.clone().requires_grad_() for part in given]
    double = [part.double().requires_grad_() for part in given]
    ours, exact = losses.nig_nll(*single, weights=weights), losses.nig_nll(*double)
    assert ours.item() == pytest.approx(exact.item(), rel=1e-4, abs=1e-4)
    ours.backward()
    exact.backward()
    for one, other in zip(single, double, strict=True):
        assert one.grad.item() == pytest.approx(other.grad.item(), rel=1e-3, abs=1e-30)
