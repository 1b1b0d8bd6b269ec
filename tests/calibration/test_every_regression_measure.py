"""What every regression measure keeps: shapes, leading axes, gradients, precision, refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from gaussian_predictions import covariances, predictions
from torch import Tensor

from orbical.calibration.measures import gaussian, variance_errors
from orbical.errors import InputError

SCALAR = {
    "ence": variance_errors.ence,
    "uce": variance_errors.uce,
    "regression_esd": variance_errors.regression_esd,
    "gaussian_crps": gaussian.gaussian_crps,
    "quantile_calibration": lambda m, s, y: variance_errors.quantile_calibration(m, s, y).error,
}
VECTOR = {
    "gence": variance_errors.gence,
    "gence_sq": variance_errors.gence_sq,
    "gence_fiber": variance_errors.gence_fiber,
    "gence_sq_fiber": variance_errors.gence_sq_fiber,
    "gaussian_nll": gaussian.gaussian_nll,
    "regression_esd_normalized": variance_errors.regression_esd_normalized,
    "mahalanobis_calibration": lambda m, s, y: (
        variance_errors.mahalanobis_calibration(m, s, y).error
    ),
}
DIFFERENTIABLE = {
    **{name: SCALAR[name] for name in ("ence", "uce", "regression_esd", "gaussian_crps")},
    **{name: f for name, f in VECTOR.items() if name != "mahalanobis_calibration"},
}


@pytest.mark.parametrize("name", [name for name in VECTOR if "fiber" not in name])
def test_a_diagonal_covariance_and_its_matrix_score_alike(name: str) -> None:
    mean, variance, target = predictions(40, 2)
    torch.testing.assert_close(
        VECTOR[name](mean, variance, target),
        VECTOR[name](mean, torch.diag_embed(variance), target),
    )


@pytest.mark.parametrize("name", VECTOR)
def test_one_variance_for_all_coordinates_is_the_repeated_one(name: str) -> None:
    mean, variance, target = predictions(40, 3)
    shared = variance[:, :1]
    torch.testing.assert_close(
        VECTOR[name](mean, shared, target), VECTOR[name](mean, shared.expand(-1, 3), target)
    )


@pytest.mark.parametrize("name", SCALAR)
def test_leading_axes_of_one_target_are_answered_one_by_one(name: str) -> None:
    mean, variance, target = (t.T.reshape(2, 3, 60) for t in predictions(60, 6))
    together = SCALAR[name](mean, variance, target)
    assert together.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        torch.testing.assert_close(
            together[i, j], SCALAR[name](mean[i, j], variance[i, j], target[i, j])
        )


@pytest.mark.parametrize("name", VECTOR)
def test_leading_axes_of_vectors_are_answered_one_by_one(name: str) -> None:
    mean, variance, _ = (t.reshape(60, 2, 3).transpose(0, 1) for t in predictions(60, 6))
    target = predictions(60, 3, seed=9)[2]
    together = VECTOR[name](mean, variance, target)
    assert together.shape == (2,)
    for i in range(2):
        torch.testing.assert_close(together[i], VECTOR[name](mean[i], variance[i], target))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    mean, variance, target = predictions(12)
    inputs = [tensor.clone().requires_grad_() for tensor in (mean, variance, target)]
    measure: Callable[..., Tensor] = DIFFERENTIABLE[name]
    assert torch.autograd.gradcheck(measure, inputs, eps=1e-7, atol=1e-5)


def test_an_errorless_bin_has_a_finite_gradient() -> None:
    mean = torch.zeros(6, requires_grad=True)
    variance_errors.ence(mean, torch.ones(6), torch.zeros(6), bins=2).backward()
    assert torch.isfinite(mean.grad).all()


def test_half_precision_and_float32_are_summed_in_float64() -> None:
    size = 300_000
    variance = torch.full((size,), 0.1, dtype=torch.float16)
    target = torch.full((size,), 0.5, dtype=torch.float16)
    mean = torch.zeros(size, dtype=torch.float16)
    exact = 0.25 - float(torch.tensor(0.1, dtype=torch.float16))
    assert variance_errors.uce(mean, variance, target).item() == pytest.approx(exact, rel=1e-12)
    assert variance_errors.uce(mean, variance, target).dtype == torch.float64


@pytest.mark.parametrize("name", [*SCALAR, *VECTOR])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_variances_that_are_none_are_refused(name: str, bad: float) -> None:
    mean, variance, target = predictions(10)
    variance[4] = bad
    with pytest.raises(InputError, match=r"variance: .*expected"):
        {**SCALAR, **VECTOR}[name](mean, variance, target)


@pytest.mark.parametrize("name", [*SCALAR, *VECTOR])
def test_nan_predictions_and_targets_are_refused_by_name(name: str) -> None:
    measure = {**SCALAR, **VECTOR}[name]
    mean, variance, target = predictions(10)
    broken = mean.clone()
    broken[0] = math.nan
    with pytest.raises(InputError, match="mean: expected finite values, got NaN"):
        measure(broken, variance, target)
    with pytest.raises(InputError, match="target: expected finite values, got NaN"):
        measure(mean, variance, broken)
    with pytest.raises(InputError, match="target: expected"):
        measure(mean, variance, target[:-1])
    with pytest.raises(InputError, match="variance: "):
        measure(mean, variance[:-1], target)
    with pytest.raises(
        InputError, match=r"mean: expected no empty axis|target: expected no empty axis|at least"
    ):
        measure(mean[:0], variance[:0], target[:0])


def test_covariances_that_are_none_are_refused() -> None:
    mean, _, target = predictions(10, 2)
    indefinite = covariances(10, 2)
    indefinite[3] = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(
        InputError, match=r"expected positive definite covariances, .* the first at sample 3"
    ):
        gaussian.gaussian_nll(mean, indefinite, target)
    skewed = covariances(10, 2)
    skewed[0, 0, 1] += 1
    with pytest.raises(InputError, match="variance: expected symmetric covariances"):
        variance_errors.mahalanobis_calibration(mean, skewed, target)
    with pytest.raises(InputError, match=r"variance: expected .* for mean"):
        gaussian.gaussian_nll(mean, covariances(10, 3), target)
    with pytest.raises(InputError, match="variance: expected as many axes"):
        gaussian.gaussian_nll(mean[:, 0], covariances(10, 2), target[:, 0])


def test_too_few_samples_bins_and_levels_are_refused() -> None:
    mean, variance, target = predictions(2)
    for measure in (variance_errors.regression_esd, variance_errors.regression_esd_normalized):
        with pytest.raises(InputError, match="mean: expected at least 3 samples, got 2"):
            measure(mean, variance, target)
    with pytest.raises(InputError, match="bins: expected an integer"):
        variance_errors.ence(mean, variance, target, bins=0)
    with pytest.raises(InputError, match="levels: expected an integer"):
        variance_errors.quantile_calibration(mean, variance, target, levels=0)
    with pytest.raises(InputError, match="mean: expected floating-point"):
        variance_errors.ence([0, 1], [1.0, 1.0], [0.0, 1.0])
