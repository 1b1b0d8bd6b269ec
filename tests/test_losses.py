"""Losses on logits and labels: values, gradients, precision, compilation, many processes."""

from __future__ import annotations

import inspect
import math
import pickle
import socket
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy import stats
from torch import Tensor, nn

from orbical import losses
from orbical.errors import InputError

CLASSIFICATION = {
    "esd": losses.esd,
    "esd_softened": losses.esd_softened,
    "mmce": losses.mmce,
    "sb_ece": losses.sb_ece,
    "s_avuc": losses.s_avuc,
    "ece": losses.ece,
}


def batch(size: int = 40, classes: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (size,), generator=generator)


def pseudo_code_of_the_paper(confidence: Tensor, correct: Tensor) -> Tensor:
    n = len(confidence)
    diff = correct.double() - confidence
    split = torch.ones(n, n, dtype=torch.float64) - torch.eye(n, dtype=torch.float64)
    table = confidence.expand(n, n)
    inequality = torch.le(table, table.T).double()
    x = diff.view(1, n).expand(n, n) * inequality * split
    mean = x.sum(1) / (n - 1)
    variance = (x * x).sum(1) / (n - 2) - (n - 1) / (n - 2) * mean * mean
    return (mean * mean - variance / (n - 1)).sum() / n


def test_esd_and_its_gradient_equal_the_papers_pseudo_code() -> None:
    logits, labels = batch()
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value = losses.esd(ours, labels)
    confidence, predicted = theirs.softmax(-1).max(-1)
    reference = pseudo_code_of_the_paper(confidence, predicted == labels)
    assert value.item() == pytest.approx(reference.item(), abs=1e-15)
    value.backward()
    reference.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)


def test_mmce_equals_the_double_sum() -> None:
    logits, labels = batch()
    confidence, predicted = logits.softmax(-1).max(-1)
    d = (predicted == labels).double() - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence).abs() / 0.4)
    assert losses.mmce(logits, labels).item() == pytest.approx(
        float(d @ kernel @ d) / len(d) ** 2, rel=1e-12
    )


def test_ece_equals_a_loop_over_bins() -> None:
    logits, labels = batch(200)
    confidence, predicted = logits.softmax(-1).max(-1)
    d = (predicted == labels).double() - confidence
    total = 0.0
    for i in range(20):
        inside = (confidence > i / 20) & (confidence <= (i + 1) / 20)
        total += abs(float(d[inside].sum())) / len(d)
    assert losses.ece(logits, labels).item() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("name", ["esd_softened", "sb_ece", "s_avuc"])
def test_smooth_losses_pass_gradcheck(name: str) -> None:
    logits, labels = batch(6, 3)
    assert torch.autograd.gradcheck(
        lambda x: CLASSIFICATION[name](x, labels), logits.requires_grad_(), eps=1e-7, atol=1e-5
    )


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_a_descent_step_lowers_the_loss_of_overconfident_logits(name: str) -> None:
    logits, labels = batch(300)
    logits = (4 * logits).requires_grad_()
    before = CLASSIFICATION[name](logits, labels)
    (gradient,) = torch.autograd.grad(before, logits)
    assert torch.isfinite(gradient).all()
    after = CLASSIFICATION[name](logits - 1e-3 * gradient / gradient.norm(), labels)
    assert after < before


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_bfloat16_logits_under_autocast_lose_only_their_own_rounding(name: str) -> None:
    logits, labels = batch(64)
    rounded = logits.bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = CLASSIFICATION[name](rounded, labels)
    assert value.dtype == torch.float64
    expected = CLASSIFICATION[name](logits.bfloat16().float(), labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-12, abs=1e-15)
    value.backward()
    assert rounded.grad is not None
    assert torch.isfinite(rounded.grad).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_every_loss_compiles_inside_a_training_step(name: str) -> None:
    _equal_when_compiled(name)


def test_esd_compiles_inside_a_training_step() -> None:
    _equal_when_compiled("esd")


def _equal_when_compiled(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    inputs, labels = torch.randn(32, 5), torch.randint(3, (32,))

    def step(x: Tensor) -> Tensor:
        logits = model(x)
        return nn.functional.cross_entropy(logits, labels) + CLASSIFICATION[name](logits, labels)

    # The eager backend runs what dynamo captured; it needs no C++ compiler.
    compiled = torch.compile(step, backend="eager")
    plain, captured = step(inputs), compiled(inputs)
    assert captured.item() == pytest.approx(plain.item(), rel=1e-6)
    (expected,) = torch.autograd.grad(plain, model.weight)
    (gradient,) = torch.autograd.grad(captured, model.weight)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(
    ("logits", "labels", "word"),
    [
        (torch.tensor(0.0), torch.zeros(1, dtype=torch.long), "logits"),
        (torch.zeros(4), torch.full((4,), 2), "labels"),
        (torch.zeros(4, 2, dtype=torch.long), torch.zeros(4, dtype=torch.long), "logits"),
        (torch.zeros(4, 2), torch.zeros(3, dtype=torch.long), "labels"),
        (torch.zeros(4, 2), torch.zeros(4), "labels"),
        (torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]), "labels"),
        (torch.zeros(4, 2), torch.tensor([0, 1, -1, 0]), "labels"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "logits"),
    ],
)
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_wrong_inputs_are_refused_by_name(
    name: str, logits: Tensor, labels: Tensor, word: str
) -> None:
    with pytest.raises(InputError, match=f"^{word}"):
        CLASSIFICATION[name](logits, labels)


@pytest.mark.parametrize("name", ["esd", "ece", "mmce", "sb_ece", "s_avuc", "esd_softened"])
def test_a_loss_of_logits_that_are_no_numbers_is_refused(name: str) -> None:
    loss = getattr(losses, name)
    labels = torch.zeros(5, dtype=torch.long)
    with pytest.raises(InputError, match="logits: expected finite values, got NaN"):
        loss(torch.full((5, 3), torch.nan), labels)


def test_esd_needs_three_samples() -> None:
    for loss in (losses.esd, losses.esd_softened):
        with pytest.raises(InputError, match="logits: expected at least 3 samples, got 2"):
            loss(torch.zeros(2, 2), torch.tensor([0, 1]))


def weighted(name: str, size: int = 30) -> tuple[Tensor, Tensor, Tensor]:
    weights = torch.rand(size, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return *batch(size), weights


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_weights_and_ignored_labels_leave_out_samples(name: str) -> None:
    logits, labels, weights = weighted(name)
    loss, few = CLASSIFICATION[name], torch.arange(30) % 3 > 0
    expected = loss(logits[few], labels[few], weights=weights[few])
    torch.testing.assert_close(loss(logits, labels, weights=weights * few), expected)
    marked = torch.where(few, labels, -100)
    found = loss(logits, marked, weights=weights, ignore_index=-100)
    torch.testing.assert_close(found, expected)
    plain = loss(logits, marked, ignore_index=-100)
    torch.testing.assert_close(plain, loss(logits[few], labels[few]))
    equal = loss(logits, labels, weights=torch.full((30,), 7.0))
    torch.testing.assert_close(equal, loss(logits, labels))
    with pytest.raises(InputError, match=r"^weights"):
        loss(logits, labels, weights=-weights)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_ignored_samples_have_no_gradient(name: str) -> None:
    logits, labels = batch(30)
    logits.requires_grad_()
    labels[::3] = 255
    CLASSIFICATION[name](logits, labels, ignore_index=255).backward()
    assert logits.grad is not None
    assert not logits.grad[::3].any()
    assert logits.grad[1::3].any()


@pytest.mark.parametrize("name", ["esd_softened", "sb_ece", "s_avuc", "mmce"])
def test_weighted_losses_pass_gradcheck(name: str) -> None:
    logits, labels, weights = weighted(name, 6)
    assert torch.autograd.gradcheck(
        lambda x: CLASSIFICATION[name](x, labels, weights=weights),
        logits.requires_grad_(),
        eps=1e-7,
        atol=1e-5,
    )


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_labels_may_be_a_column_and_arrays_need_not_be_tensors(name: str) -> None:
    logits, labels = batch(30)
    expected = CLASSIFICATION[name](logits, labels)
    assert CLASSIFICATION[name](logits, labels[:, None]) == expected
    assert CLASSIFICATION[name](logits.numpy(), labels.tolist()) == expected


REGRESSION = {
    "gaussian_nll": 2,
    "beta_nll": 2,
    "nig_nll": 4,
    "nig_regularizer": 3,
    "covariance_nll": 2,
}


def predictions(name: str, size: int = 7, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Random parameters of a loss, and a target, of vectors of two coordinates."""
    generator = torch.Generator().manual_seed(1)
    center, target = torch.randn(2, size, 2, generator=generator, dtype=dtype)
    rest = 0.5 + torch.rand(REGRESSION[name] - 1, size, 2, generator=generator, dtype=dtype)
    if name == "covariance_nll":
        rest = torch.diag_embed(rest)
    return [center, *rest, target]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", REGRESSION)
def test_reductions_and_weights_of_regression_losses(name: str, dtype: torch.dtype) -> None:
    loss, given = getattr(losses, name), predictions(name, dtype=dtype)
    each = loss(*given, reduction="none")
    assert each.shape == (7,)
    one_by_one = torch.stack([loss(*(part[i : i + 1] for part in given)) for i in range(7)])
    torch.testing.assert_close(each, one_by_one)
    torch.testing.assert_close(loss(*given), each.mean())
    torch.testing.assert_close(loss(*given, reduction="sum"), each.sum())
    weights = torch.tensor([1, 0, 2, 0, 3, 1, 1])
    again = [part.repeat_interleave(weights, 0) for part in given]
    torch.testing.assert_close(loss(*given, weights=weights), loss(*again))
    torch.testing.assert_close(loss(*given, weights=weights, reduction="none"), each * weights)
    assert loss(*given, weights=weights).dtype == dtype
    with pytest.raises(InputError, match=r"^reduction: unknown name 'average'"):
        loss(*given, reduction="average")


@pytest.mark.parametrize("name", [name for name in REGRESSION if name != "beta_nll"])
def test_regression_losses_pass_gradcheck(name: str) -> None:
    loss, given = getattr(losses, name), predictions(name, 4)
    weights = torch.tensor([0.3, 1.0, 0.0, 2.0])
    free = [part.requires_grad_() for part in given[:-1]]

    def of(*parts: Tensor, **options: object) -> Tensor:
        if name == "covariance_nll":  # moved entry by entry, a covariance would not stay symmetric
            parts = parts[0], parts[1] @ parts[1].mT
        return loss(*parts, given[-1], **options)

    for options in ({}, {"weights": weights}, {"reduction": "none"}):
        assert torch.autograd.gradcheck(partial(of, **options), free, eps=1e-7)


MODULES = {
    losses.ESDLoss: losses.esd,
    losses.SoftenedESDLoss: losses.esd_softened,
    losses.MMCELoss: losses.mmce,
    losses.SBECELoss: losses.sb_ece,
    losses.SAvUCLoss: losses.s_avuc,
    losses.ECELoss: losses.ece,
    losses.GaussianNLLLoss: losses.gaussian_nll,
    losses.BetaNLLLoss: losses.beta_nll,
    losses.CovarianceNLLLoss: losses.covariance_nll,
    losses.NIGNLLLoss: losses.nig_nll,
    losses.NIGRegularizerLoss: losses.nig_regularizer,
}


def test_every_loss_function_has_its_module() -> None:
    functions = {getattr(losses, name) for name in losses.__all__ if name.islower()}
    assert set(MODULES.values()) == functions - {losses.gather_across_ranks}
    assert {module.__name__ for module in MODULES} == set(losses.modules.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_its_function(module: type[nn.Module]) -> None:
    function = MODULES[module]
    given = predictions(function.__name__) if function.__name__ in REGRESSION else list(batch(30))
    *outputs, target = given
    inputs = outputs[0] if len(outputs) == 1 else tuple(outputs)
    weights = torch.rand(len(target))
    loss = module()
    assert loss(inputs, target) == function(*given)
    assert loss(inputs, target, weights) == function(*given, weights=weights)
    assert not loss.state_dict()
    assert not list(loss.parameters())
    again = pickle.loads(pickle.dumps(loss))
    assert again(inputs, target) == function(*given)
    with pytest.raises(TypeError, match="unexpected keyword argument 'smoothness'"):
        module(smoothness=1.0)


def test_a_module_shows_and_uses_its_settings() -> None:
    logits, labels = batch(30)
    loss = losses.SBECELoss(bins=7, temperature=0.05, ignore_index=3)
    assert repr(loss) == "SBECELoss(bins=7, temperature=0.05, ignore_index=3)"
    expected = losses.sb_ece(logits, labels, bins=7, temperature=0.05, ignore_index=3)
    assert loss(logits, labels) == expected
    assert list(inspect.signature(losses.MMCELoss).parameters) == ["weight", "phi", "ignore_index"]


def test_class_weights_are_sample_weights_by_label_as_in_cross_entropy() -> None:
    logits, labels = batch(30)
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0])
    labels[::5] = -100
    expected = losses.esd(logits, labels, weights=weight[labels.clamp(min=0)], ignore_index=-100)
    loss = losses.ESDLoss(weight=weight, ignore_index=-100)
    assert loss(logits, labels) == expected
    assert loss.to(torch.float64).weight.dtype == torch.float64
    cross_entropy = nn.CrossEntropyLoss(weight=weight.double(), ignore_index=-100)
    theirs = nn.functional.cross_entropy(logits, labels.clamp(min=0), reduction="none")
    ours = weight[labels.clamp(min=0)] * (labels >= 0)
    assert cross_entropy(logits, labels).item() == pytest.approx(
        ((theirs * ours).sum() / ours.sum()).item()
    )


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_are_captured_in_one_graph(name: str) -> None:
    logits, labels = batch(30)
    labels[::5] = -100

    def loss(x: Tensor) -> Tensor:
        return CLASSIFICATION[name](x, labels, ignore_index=-100)

    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    (expected,) = torch.autograd.grad(loss(logits.requires_grad_()), logits)
    value = compiled(logits)
    torch.testing.assert_close(value, loss(logits))
    torch.testing.assert_close(torch.autograd.grad(value, logits)[0], expected)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_can_be_mapped_over_batches(name: str) -> None:
    logits, labels = torch.randn(3, 12, 4, dtype=torch.float64), torch.randint(4, (3, 12))
    loss = CLASSIFICATION[name]
    values, gradients = torch.vmap(torch.func.grad_and_value(loss))(logits, labels)[::-1]
    for k in range(3):
        alone = logits[k].clone().requires_grad_()
        value = loss(alone, labels[k])
        value.backward()
        torch.testing.assert_close(values[k], value.detach())
        torch.testing.assert_close(gradients[k], alone.grad)


@pytest.mark.parametrize("size", [9, 130])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_gradients_and_second_derivatives_equal_finite_differences(name: str, size: int) -> None:
    logits, labels = batch(size)
    weights = torch.rand(size, dtype=torch.float64)
    direction = torch.randn_like(logits)
    if name in ("esd", "ece"):  # the value jumps where samples change their order or bin
        logits = torch.round(logits * 100) / 100
    at = torch.zeros((), dtype=torch.float64, requires_grad=True)

    def along(t: Tensor) -> Tensor:
        return CLASSIFICATION[name](logits + t * direction, labels, weights=weights)

    checks = {"eps": 1e-7, "atol": 1e-5, "rtol": 1e-4}
    assert torch.autograd.gradcheck(along, at, **checks)
    if name != "ece":  # piecewise linear in the confidences
        assert torch.autograd.gradgradcheck(along, at, **checks)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("size", [64, 4096, 100_000])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_never_wait_for_an_accelerator(name: str, size: int) -> None:
    logits, labels = (part.cuda() for part in batch(size))
    expected = CLASSIFICATION[name](logits, labels)
    logits.requires_grad_()
    torch.cuda.set_sync_debug_mode("error")
    try:
        value = CLASSIFICATION[name](logits, labels)
        value.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(value, expected)


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")


@on_a_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("size", "classes"), [(3, 2), (65, 10), (4096, 10), (500, 1000)])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_on_an_accelerator_equal_those_in_double_precision(
    name: str, size: int, classes: int, dtype: torch.dtype
) -> None:
    logits, labels = batch(size, classes)
    logits[1] = logits[0]  # equal confidences
    labels = torch.where(torch.arange(size) % 5 < 3, logits.argmax(1), labels)
    logits = logits.to(dtype)
    exact, there = logits.double().requires_grad_(), logits.cuda().requires_grad_()
    expected, value = (
        CLASSIFICATION[name](exact, labels),
        CLASSIFICATION[name](there, labels.cuda()),
    )
    torch.testing.assert_close(value.cpu(), expected, rtol=1e-4, atol=1e-7)
    expected.backward()
    value.backward()
    assert there.grad.dtype == dtype
    scale = exact.grad.abs().max().item()
    # Rounding may change the order of two confidences, and with it a term of ESD.
    slack = 1e-2 if dtype == torch.bfloat16 else 1e-3
    torch.testing.assert_close(there.grad.cpu().double(), exact.grad, rtol=0, atol=slack * scale)


@on_a_gpu
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_on_an_accelerator_are_nan_where_logits_are(name: str) -> None:
    logits, labels = (part.cuda() for part in batch())
    logits[7, 1] = torch.nan
    assert CLASSIFICATION[name](logits.float(), labels).isnan()


@on_a_gpu
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_losses_are_captured_in_a_cuda_graph(name: str) -> None:
    logits, labels = (part.cuda() for part in batch())
    logits = logits.float().requires_grad_()
    other = logits.detach().flip(0)

    def step() -> tuple[Tensor, Tensor]:
        value = CLASSIFICATION[name](logits, labels)
        return value, *torch.autograd.grad(value, logits)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        logits.copy_(other)
    graph.replay()
    torch.testing.assert_close(captured, step())


positive = st.floats(0.05, 20)


@settings(deadline=None, max_examples=60)
@given(
    gamma=st.floats(-5, 5),
    nu=positive,
    alpha=st.floats(1.01, 20),
    beta=positive,
    y=st.floats(-9, 9),
)
def test_nig_nll_is_scipys_student_t(
    gamma: float, nu: float, alpha: float, beta: float, y: float
) -> None:
    values = [torch.tensor([v], dtype=torch.float64) for v in (gamma, nu, alpha, beta, y)]
    scale = math.sqrt(beta * (1 + nu) / (alpha * nu))
    expected = -stats.t.logpdf(y, df=2 * alpha, loc=gamma, scale=scale)
    assert losses.nig_nll(*values).item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_nig_nll_of_vectors_is_the_sum_over_coordinates() -> None:
    generator = torch.Generator().manual_seed(0)
    gamma, y = torch.randn(2, 7, 3, generator=generator, dtype=torch.float64)
    nu, alpha, beta = 1.5 + torch.rand(3, 7, 3, generator=generator, dtype=torch.float64)
    scale = torch.sqrt(beta * (1 + nu) / (alpha * nu))
    expected = -stats.t.logpdf(y, df=2 * alpha, loc=gamma, scale=scale).sum(1).mean()
    assert losses.nig_nll(gamma, nu, alpha, beta, y).item() == pytest.approx(expected, abs=1e-12)
    penalty = ((y - gamma).abs() * (2 * nu + alpha)).sum(1).mean()
    assert losses.nig_regularizer(gamma, nu, alpha, y).item() == pytest.approx(penalty.item())


def test_the_density_printed_in_the_equivariance_paper_does_not_integrate_to_one() -> None:
    sigma, freedom = 4.0, 5.0
    t = torch.linspace(-4000, 4000, 2_000_001, dtype=torch.float64)
    constant = math.gamma((freedom + 1) / 2) / (
        math.sqrt(math.pi * freedom * sigma) * math.gamma(freedom / 2)
    )
    printed = constant * (1 + (t / sigma) ** 2 / freedom) ** (-(freedom + 1) / 2)
    assert torch.trapezoid(printed, t).item() == pytest.approx(2.0, rel=1e-3)  # sqrt(sigma)


@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_gaussian_nll_is_scipys_normal(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    mean, y = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
    variance = 0.1 + torch.rand(*shape, generator=generator, dtype=torch.float64)
    expected = -stats.norm.logpdf(y, loc=mean, scale=variance.sqrt()).reshape(6, -1).sum(1).mean()
    assert losses.gaussian_nll(mean, variance, y).item() == pytest.approx(expected, abs=1e-12)
    assert losses.beta_nll(mean, variance, y, beta=0.0).item() == pytest.approx(expected, abs=1e-12)


def test_one_variance_can_serve_a_whole_vector() -> None:
    mean, y = torch.zeros(4, 2), torch.ones(4, 2)
    one, both = torch.full((4, 1), 2.0), torch.full((4, 2), 2.0)
    assert losses.gaussian_nll(mean, one, y) == losses.gaussian_nll(mean, both, y)


def test_beta_one_gives_the_mean_the_gradient_of_the_squared_error() -> None:
    mean = torch.zeros(5, requires_grad=True)
    variance = torch.tensor([0.1, 1.0, 2.0, 5.0, 9.0], requires_grad=True)
    y = torch.arange(5.0)
    loss = losses.beta_nll(mean, variance, y, beta=1.0)
    (gradient,) = torch.autograd.grad(loss, mean, retain_graph=True)
    torch.testing.assert_close(gradient, -y / 5)
    (by_variance,) = torch.autograd.grad(loss, variance)
    torch.testing.assert_close(by_variance, (1 - y**2 / variance.detach()) / 2 / 5)


def test_regression_losses_refuse_what_does_not_fit() -> None:
    y = torch.zeros(4)
    with pytest.raises(InputError, match=r"^variance"):
        losses.gaussian_nll(y, torch.ones(3), y)
    with pytest.raises(InputError, match=r"^mean"):
        losses.gaussian_nll(torch.zeros(4, 2), torch.ones(4), y)
    square = torch.zeros(4, 4)
    with pytest.raises(InputError, match=r"^variance"):  # it would be spread over coordinates
        losses.gaussian_nll(square, torch.ones(4), square)
    with pytest.raises(InputError, match=r"^variance.*positive"):
        losses.beta_nll(y, y, y)
    with pytest.raises(InputError, match=r"^beta"):
        losses.beta_nll(y, y + 1, y, beta=2.0)
    with pytest.raises(InputError, match=r"^nu.*positive"):
        losses.nig_nll(y, y - 1, y + 2, y + 1, y)
    with pytest.raises(InputError, match=r"^target"):
        losses.gaussian_nll(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(0.0))


def test_without_a_process_group_gathering_changes_nothing() -> None:
    logits, labels = batch()
    gathered = losses.gather_across_ranks(logits, labels)
    assert gathered[0] is logits
    assert gathered[1] is labels
    with pytest.raises(InputError, match=r"^labels"):
        losses.gather_across_ranks(logits, labels[:3])


@pytest.mark.system
def test_loss_and_gradient_under_ddp_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    torch.manual_seed(5)
    inputs, labels = torch.randn(22, 6, dtype=torch.float64), torch.randint(4, (22,))
    shared = nn.Linear(6, 4).double().state_dict()
    save_file({**shared, "inputs": inputs, "labels": labels}, tmp_path / "shared.safetensors")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("losses_by_rank.py")
    command = [sys.executable, str(script), str(tmp_path), str(port)]
    subprocess.run(command, check=True, timeout=120)
    compared = 0
    for rank in range(2):
        for key, found in load_file(tmp_path / f"{rank}.safetensors").items():
            model = nn.Linear(6, 4).double()
            model.load_state_dict(shared)
            loss = CLASSIFICATION[key.split("/")[0]](model(inputs), labels)
            loss.backward()
            expected = loss.detach() if key.endswith("loss") else model.weight.grad
            torch.testing.assert_close(found.squeeze(), expected, rtol=1e-11, atol=1e-15)
            compared += 1
    assert compared == 2 * 2 * 3 * 2


def test_a_module_rejects_class_weights_of_another_number_of_classes() -> None:
    logits, labels = batch(30)
    criterion = losses.ESDLoss(weight=torch.ones(logits.shape[-1] - 1))
    with pytest.raises(InputError, match=r"^weight: expected shape .*, got"):
        criterion(logits, labels)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_dense_predictions_are_read_as_cross_entropy_reads_them(name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(2, 4, 5, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(4, (2, 5, 6), generator=generator)
    weights = torch.rand(2, 5, 6, generator=generator, dtype=torch.float64)
    labels[0, 0] = 255
    flat = logits.permute(0, 2, 3, 1).reshape(-1, 4), labels.reshape(-1)
    for mass in (None, weights):
        expected = CLASSIFICATION[name](
            *flat, weights=None if mass is None else mass.reshape(-1), ignore_index=255
        )
        found = CLASSIFICATION[name](logits, labels, weights=mass, ignore_index=255)
        assert found.item() == pytest.approx(expected.item(), rel=1e-12, abs=1e-15)


def test_dense_predictions_pass_through_the_modules() -> None:
    logits, labels = torch.randn(2, 3, 8, 8), torch.randint(3, (2, 8, 8))
    weight = torch.tensor([1.0, 2.0, 3.0])
    found = losses.ESDLoss(weight=weight)(logits, labels)
    flat = logits.permute(0, 2, 3, 1).reshape(-1, 3)
    expected = losses.esd(flat, labels.reshape(-1), weights=weight[labels.reshape(-1)])
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)


def test_dense_labels_of_another_shape_are_refused_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r"^labels: .* \(2, 8, 8\), .* got shape \(2, 64\)"):
        losses.esd(torch.randn(2, 3, 8, 8), torch.zeros(2, 64, dtype=torch.long))
    with pytest.raises(InputError, match=r"movedim"):  # channels last
        losses.esd(torch.randn(2, 8, 8, 3), torch.zeros(2, 8, 8, dtype=torch.long))


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_probabilities_in_place_of_logits_are_warned_of(name: str) -> None:
    logits, labels = batch()
    with pytest.warns(UserWarning, match=r"^logits: expected scores before the softmax") as caught:
        CLASSIFICATION[name](logits.softmax(-1), labels)
    assert caught[0].filename == __file__


def test_a_compiled_loss_of_probabilities_neither_warns_nor_breaks_the_graph() -> None:
    logits, labels = batch()
    compiled = torch.compile(losses.sb_ece, fullgraph=True, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled(logits.softmax(-1), labels)


def test_parameters_of_a_likelihood_come_in_a_tuple() -> None:
    mean, variance, target = torch.zeros(4), torch.ones(4), torch.zeros(4)
    with pytest.raises(InputError, match=r"^input: expected the parameters in a tuple"):
        losses.GaussianNLLLoss()(mean, variance, target)


def test_class_weights_may_be_a_list() -> None:
    logits, labels = batch(30)
    weight = [1.0] * logits.shape[-1]
    weighted, plain = losses.ESDLoss(weight=weight)(logits, labels), losses.esd(logits, labels)
    torch.testing.assert_close(weighted, plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize("ignore_index", [-100, 0])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_a_batch_that_is_ignored_adds_nothing(name: str, ignore_index: int) -> None:
    logits = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.full((5,), ignore_index)
    loss = CLASSIFICATION[name](logits, labels, ignore_index=ignore_index)
    (slope,) = torch.autograd.grad(loss, logits)
    assert float(loss) == 0
    assert not slope.any()


@pytest.mark.parametrize("loss", [losses.esd, losses.esd_softened])
def test_esd_of_fewer_than_three_samples_that_count_adds_nothing(loss) -> None:
    logits = torch.randn(5, 3, requires_grad=True)
    value = loss(logits, torch.tensor([0, 1, -1, -1, -1]), ignore_index=-1)
    value.backward()
    assert float(value) == 0
    assert not logits.grad.any()
    with pytest.raises(InputError, match="at least 3 samples"):
        loss(logits[:2], torch.tensor([0, 1]))
