"""Weights are masses: repetition where a measure counts pairs freely, and never the scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations

import pytest
import torch
from torch import Tensor

from orbical import calibration as c
from orbical.errors import InputError

Measure = Callable[..., Tensor]


def _part(measure: Measure, name: str, *given: Tensor, **options: Tensor) -> Tensor:
    return getattr(measure(*given, **options), name)


def _of_outputs(measure: Measure, p: Tensor, y: Tensor, **options: Tensor) -> Tensor:
    return measure(probs=p, labels=y, **options)


def _parts(p: Tensor, y: Tensor, **options: Tensor) -> Tensor:
    found = c.brier_parts(probs=p, labels=y, **options)
    return torch.stack([found.score, found.calibration, found.refinement, found.uncertainty])


PAIR: dict[str, Measure] = {
    "ece": c.ece,
    "ece l2": partial(c.ece, norm="l2"),
    "ece max": partial(c.ece, norm="max"),
    "ece of equal mass": partial(c.ece, binning="mass", bins=4),
    "ece_loss": c.ece_loss,
    "ece_loss l2": partial(c.ece_loss, norm="l2"),
    "ks": c.ks,
    "mmce": c.mmce,
    "mmce_squared": c.mmce_squared,
    "mmce_weighted": c.mmce_weighted,
    "smooth_ece": c.smooth_ece,
    "sb_ece": c.sb_ece,
}
PAIR_OF_DIFFERENT = {"esd": c.esd, "esd_softened": c.esd_softened, "skce": c.skce}
OUTPUTS: dict[str, Measure] = {
    **{f.__name__: partial(_of_outputs, f) for f in (c.accuracy, c.nll, c.brier, c.s_avuc)},
    **{
        name: partial(_of_outputs, getattr(c, name))
        for name in ("classwise_ece", "classwise_ks", "classwise_mmce", "classwise_smooth_ece")
    },
    "per_class": partial(_of_outputs, partial(c.per_class, c.ece)),
    "brier_parts": _parts,
}
GAUSSIAN: dict[str, Measure] = {
    "ence": partial(c.ence, bins=4),
    "uce": partial(c.uce, bins=4),
    "gence": c.gence,
    "gence_sq": c.gence_sq,
    "gence_fiber": partial(c.gence_fiber, bins=4),
    "gence_sq_fiber": partial(c.gence_sq_fiber, bins=4),
    "gaussian_nll": c.gaussian_nll,
    "gaussian_crps": c.gaussian_crps,
    "quantile_calibration": partial(_part, c.quantile_calibration, "observed"),
    "mahalanobis_calibration": partial(_part, c.mahalanobis_calibration, "error"),
    "aleatoric_bleed": lambda m, s, t, **w: c.aleatoric_bleed(s, **w).total,
    "covariance_bleed": lambda m, s, t, **w: c.covariance_bleed(s[:, None, None], **w).total,
}
OUTPUTS_OF_DIFFERENT = {
    "classwise_esd": partial(_of_outputs, c.classwise_esd),
    "classwise_skce": partial(_of_outputs, c.classwise_skce),
}
GAUSSIAN_OF_DIFFERENT = {
    "regression_esd": c.regression_esd,
    "regression_esd_normalized": c.regression_esd_normalized,
}
REPEATING = {**PAIR, **OUTPUTS, **GAUSSIAN}
OF_OUTPUTS = {**OUTPUTS, **OUTPUTS_OF_DIFFERENT}
EVERY = {**REPEATING, **PAIR_OF_DIFFERENT, **OF_OUTPUTS, **GAUSSIAN_OF_DIFFERENT}


def samples(name: str, size: int = 40, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    z = (torch.rand(size, generator=generator, dtype=torch.float64) * 12).round() / 12  # with ties
    if name in OF_OUTPUTS:
        logits = 2 * torch.randn(size, 3, generator=generator, dtype=torch.float64)
        return logits.softmax(-1), torch.randint(3, (size,), generator=generator)
    if name in PAIR or name in PAIR_OF_DIFFERENT:
        return z, torch.rand(size, generator=generator, dtype=torch.float64) < z**2
    mean, target = torch.randn(2, size, generator=generator, dtype=torch.float64)
    return mean, z + 0.1, target


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", REPEATING)
def test_a_whole_number_as_weight_repeats_a_sample(name: str) -> None:
    given = samples(name)
    weights = torch.randint(0, 4, (40,), generator=torch.Generator().manual_seed(1))
    again = [part.repeat_interleave(weights, 0) for part in given]
    close(EVERY[name](*given, weights=weights), EVERY[name](*again))


@pytest.mark.parametrize("name", EVERY)
def test_equal_weights_of_any_size_change_nothing(name: str) -> None:
    given = samples(name)
    close(EVERY[name](*given, weights=torch.full((40,), 0.3)), EVERY[name](*given))


@pytest.mark.parametrize("name", EVERY)
def test_a_weight_of_zero_removes_a_sample(name: str) -> None:
    given = samples(name)
    weights = torch.rand(40, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weights[::3] = 0
    kept = weights > 0
    expected = EVERY[name](*(part[kept] for part in given), weights=weights[kept])
    close(EVERY[name](*given, weights=weights), expected)


@pytest.mark.parametrize("name", [*PAIR, *PAIR_OF_DIFFERENT])
def test_weights_differ_between_leading_axes(name: str) -> None:
    z, hit = samples(name)
    weights = torch.rand(2, 40, generator=torch.Generator().manual_seed(3))
    together = EVERY[name](z, hit, weights=weights)
    assert together.shape == (2,)
    close(together, torch.stack([EVERY[name](z, hit, weights=row) for row in weights]))


def over_triples(d: Tensor, z: Tensor, w: Tensor, width: float | None = None) -> float:
    """ESD as a weighted mean over all ordered triples of different samples."""

    def below(j: int, i: int) -> float:
        x = float(z[i] - z[j])
        if width is None:
            return float(x >= 0)
        half = torch.exp(torch.tensor(-abs(x) / width, dtype=torch.float64)).item() / 2
        return 1 - half if x >= 0 else half

    total = mass = 0.0
    for i, j, k in permutations(range(len(d)), 3):
        each = float(w[i] * w[j] * w[k])
        mass += each
        total += each * below(j, i) * below(k, i) * float(d[j] * d[k])
    return total / mass


@pytest.mark.parametrize("seed", [0, 1])
def test_weighted_esd_is_the_weighted_mean_over_triples(seed: int) -> None:
    z, hit = samples("esd", 9, seed)
    w = torch.rand(9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    d = hit.double() - z
    assert c.esd(z, hit, weights=w).item() == pytest.approx(over_triples(d, z, w), abs=1e-15)
    distinct = z + 1e-3 * torch.arange(9)
    d = hit.double() - distinct
    found = c.esd_softened(distinct, hit, weights=w, width=0.05)
    assert found.item() == pytest.approx(over_triples(d, distinct, w, 0.05), abs=1e-15)
    mean, variance, target = samples("regression_esd", 9, seed)
    expected = over_triples((target - mean) ** 2 - variance, variance, w)
    assert c.regression_esd(mean, variance, target, weights=w).item() == pytest.approx(expected)


def test_weighted_skce_is_the_weighted_mean_over_pairs() -> None:
    z, hit = samples("skce", 12)
    w = torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    d, total, mass = hit.double() - z, 0.0, 0.0
    for i, j in permutations(range(12), 2):
        mass += float(w[i] * w[j])
        total += float(w[i] * w[j] * d[i] * d[j] * torch.exp(-(z[i] - z[j]).abs() / 0.4))
    assert c.skce(z, hit, weights=w).item() == pytest.approx(total / mass, rel=1e-12)


def test_weighted_cumulative_curve_is_that_of_repeated_samples() -> None:
    z, hit = samples("ks")
    weights = torch.randint(1, 4, (40,), generator=torch.Generator().manual_seed(1))
    curve = c.cumulative_curve(z, hit, weights=weights)
    again = c.cumulative_curve(z.repeat_interleave(weights), hit.repeat_interleave(weights))
    for t in z.unique():
        one, other = (int((part.threshold == t).nonzero()[0]) for part in (curve, again))
        for name in ("quantile", "accuracy", "confidence"):
            close(getattr(curve, name)[one], getattr(again, name)[other])


@pytest.mark.parametrize("name", ["mmce_squared", "mmce_weighted", "sb_ece", "esd_softened"])
def test_gradients_of_weighted_measures_are_finite_differences(name: str) -> None:
    z, hit = samples(name, 8)
    z = (0.02 + 0.9 * z + 1e-3 * torch.arange(8)).requires_grad_()
    weights = torch.rand(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    measure = partial(EVERY[name], weights=weights)
    assert torch.autograd.gradcheck(lambda x: measure(x, hit), z, eps=1e-7, atol=1e-6)


def test_the_gradient_of_weighted_esd_is_a_finite_difference_with_the_order_held() -> None:
    z, hit = samples("esd", 9)
    w = torch.rand(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(c.esd(z, hit, weights=w), z)
    step = 1e-6
    for i in range(9):
        moved = torch.zeros(9, dtype=torch.float64)
        moved[i] = step
        up, down = (
            over_triples(hit.double() - z.detach() - shift, z.detach(), w)
            for shift in (moved, -moved)
        )
        assert gradient[i].item() == pytest.approx((up - down) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("name", OF_OUTPUTS)
def test_an_ignored_label_removes_a_sample(name: str) -> None:
    p, y = samples(name)
    weights = torch.rand(40, generator=torch.Generator().manual_seed(4))
    ignored = y.clone()
    ignored[::4] = -100
    kept = ignored != -100
    close(EVERY[name](p, ignored, ignore_index=-100), EVERY[name](p[kept], y[kept]))
    close(
        EVERY[name](p, ignored, ignore_index=-100, weights=weights),
        EVERY[name](p[kept], y[kept], weights=weights[kept]),
    )


@pytest.mark.parametrize("function", [c.top_label, c.classwise])
def test_a_pair_leaves_out_ignored_samples(function: Measure) -> None:
    p, y = samples("nll")
    ignored = y.clone()
    ignored[::4] = 255
    kept = ignored != 255
    for outputs in (p, p.expand(2, 40, 3)):
        found = function(probs=outputs, labels=ignored, ignore_index=255)
        expected = function(probs=outputs[..., kept, :], labels=y[kept])
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])
    with pytest.raises(InputError, match=r"ignore_index: .* flatten the leading axes"):
        function(
            probs=p.expand(2, 40, 3),
            labels=torch.stack([ignored, ignored.roll(1)]),
            ignore_index=255,
        )
    with pytest.raises(InputError, match="labels: expected class indices 0 to 2"):
        function(probs=p, labels=ignored)


def test_a_class_may_be_ignored() -> None:
    p, y = samples("nll")
    kept = y != 2
    close(c.nll(probs=p, labels=y, ignore_index=2), c.nll(probs=p[kept], labels=y[kept]))


def test_a_sample_of_weight_zero_may_have_an_infinite_score() -> None:
    probs = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert c.nll(probs=probs, labels=[1, 0]) == torch.inf
    found = c.nll(probs=probs, labels=[1, 0], weights=[0, 1])
    assert found.item() == pytest.approx(0.693147, rel=1e-5)


def test_too_few_positive_weights_are_refused() -> None:
    z, hit = samples("esd", 5)
    with pytest.raises(InputError, match="weights: expected at least 3 positive weights, got 2"):
        c.esd(z, hit, weights=[1, 0, 0, 0, 1])
    with pytest.raises(InputError, match="weights: expected at least 2 positive weights, got 1"):
        c.skce(z, hit, weights=[1, 0, 0, 0, 0])
    with pytest.raises(InputError, match="labels: expected at least 1 label other than"):
        c.nll(probs=[[0.5, 0.5]], labels=[-1], ignore_index=-1)
    with pytest.raises(InputError, match="weights: expected 5 values along the last axis"):
        c.ence(z, z + 1, z, weights=[1.0])
