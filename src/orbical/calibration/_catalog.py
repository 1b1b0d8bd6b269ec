"""The entries of all measures that come with orbical."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import unknown_name
from . import _cells, _sorting, by_class, gaussian, generalized, regression, scores
from ._bound import BoundMeasure, OfCells, OfWhitened
from ._interval import Interval
from ._table_inputs import Outputs, Predictions, Settings
from .binned import checked_bins, ece, named_norm
from .bleed import aleatoric_bleed
from .brier_intervals import brier_part_intervals
from .cumulative import esd, ks, ordered_esd
from .inputs import pair, positive, top_label, weighted_mean
from .intervals import interval
from .kernel import mmce, mmce_squared, skce
from .means import mean_interval, share_interval
from .registry import Measure, register
from .smooth import smooth_ece
from .soft import s_avuc, sb_ece

_SQUARED = "probability squared"


# Bindings: a measure with its options set, and its forms on cells of confidence.


def _on_cells(
    name: str,
    value: Callable[..., Tensor],
    cell_distance: OfCells,
    cell_value: OfCells | None = None,
    distance: Callable[..., Tensor] | None = None,
) -> BoundMeasure:
    """Bind a distance, or with a distance of its own the estimate of its square."""
    power = 1 if distance is None else 2
    forms = (_cells.fine_index, cell_value or cell_distance, cell_distance)
    return BoundMeasure(name, value, distance or value, power, *forms)


def _ece(name: str, bins: int = 15, norm: str = "l1", binning: str = "width") -> BoundMeasure:
    checked_bins(bins)
    if binning not in ("width", "mass"):
        raise unknown_name("binning", binning, ("width", "mass"))
    value = partial(ece, bins=bins, norm=named_norm(norm), binning=binning)
    error = partial(_cells.binned_error, norm=norm)
    index = partial(_cells.bins_index, bins=bins, binning=binning)
    return BoundMeasure(name, value, value, 1, index, error, error)


def _ks(name: str) -> BoundMeasure:
    return _on_cells(name, ks, _cells.largest_deviation)


def _esd(name: str) -> BoundMeasure:
    forms = (_cells.cumulative_norm, _cells.unbiased_cumulative)
    return _on_cells(name, esd, *forms, distance=_esd_root)


def _smooth_ece(name: str, bandwidth: float | None = None) -> BoundMeasure:
    if bandwidth is not None:
        positive("bandwidth", bandwidth)
    error = partial(_cells.smoothed_error, bandwidth=bandwidth)
    return _on_cells(name, partial(smooth_ece, bandwidth=bandwidth), error)


def _mmce(name: str, phi: float = 0.4) -> BoundMeasure:
    positive("phi", phi)
    norm = partial(_cells.kernel_norm, phi=phi)
    return _on_cells(name, partial(mmce, phi=phi), norm)


def _mmce_squared(name: str, phi: float = 0.4) -> BoundMeasure:
    positive("phi", phi)
    norm = partial(_cells.kernel_norm, phi=phi)

    def squared(gathered: _cells.Cells) -> Tensor:
        return norm(gathered).square()

    value, distance = (partial(form, phi=phi) for form in (mmce_squared, mmce))
    return _on_cells(name, value, norm, squared, distance)


def _skce(name: str, phi: float = 0.4) -> BoundMeasure:
    positive("phi", phi)
    unbiased = partial(_cells.unbiased_kernel, phi=phi)
    norm = partial(_cells.kernel_norm, phi=phi)
    value, distance = (partial(form, phi=phi) for form in (skce, mmce))
    return _on_cells(name, value, norm, unbiased, distance)


def _sb_ece(name: str, bins: int = 15, temperature: float = 0.01) -> BoundMeasure:
    checked_bins(bins)
    positive("temperature", temperature)
    error = partial(_cells.soft_binned_error, bins=bins, temperature=temperature)
    return _on_cells(name, partial(sb_ece, bins=bins, temperature=temperature), error)


def _cumulative_distance(
    difference: Tensor, order_by: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Return the root of the biased form of `ordered_esd`."""
    ordered, order = _sorting.ascending(order_by)
    share = torch.full_like(difference, 1 / difference.shape[-1])
    if weights is not None:
        share = (weights / weights.sum(-1, keepdim=True)).expand(difference.shape)
    sums = (difference * share).gather(-1, order).cumsum(-1)
    squares = _sorting.ties(ordered).at_last(sums).square()
    return (squares * share.gather(-1, order)).sum(-1).sqrt()


def _esd_root(confidence: Tensor, correct: Tensor, *, weights: Tensor | None = None) -> Tensor:
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    return _cumulative_distance(correct.double() - confidence.double(), confidence, mass)


def _esd_distance(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    error, spread = gaussian.one_target(mean, variance, target)
    return _cumulative_distance(error.square() - spread, spread)


def _normalized_esd_distance(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    error, spread, full = gaussian.vector_target(mean, variance, target)
    return _esd_root_of(*gaussian.whitened(error, spread, full), error.shape[-1])


def _chi_squared(shape: tuple[int, ...], width: int, generator: np.random.Generator) -> np.ndarray:
    return generator.chisquare(width, shape)


def _uniform(shape: tuple[int, ...], width: int, generator: np.random.Generator) -> np.ndarray:
    return generator.random(shape)


def _nll_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return gaussian.nll_of(distance, log_determinant, width).mean(-1)


def _esd_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return ordered_esd(distance / width - 1, log_determinant)


def _esd_root_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return _cumulative_distance(distance / width - 1, log_determinant)


def _unchanged(distance: Tensor, width: int) -> Tensor:
    return distance


def _covered(function: Callable[..., Any], one_target: bool) -> Callable[..., BoundMeasure]:
    """Bind the error of a function that returns a `Coverage`."""

    def bind(name: str, levels: int = 99) -> BoundMeasure:
        def error(
            mean: Tensor, variance: Tensor, target: Tensor, *, weights: Tensor | None = None
        ) -> Tensor:
            found: regression.Coverage = function(
                mean, variance, target, levels=levels, weights=weights
            )
            return found.error

        def of_probabilities(probability: Tensor, _: Tensor, width: int) -> Tensor:
            return regression.coverage_of(probability, levels).error

        regression.checked_levels(levels)
        known = OfWhitened(
            regression.ellipsoid_probability, _uniform, of_probabilities, of_probabilities
        )
        return BoundMeasure(
            name, error, error, one_target=one_target, whitened=None if one_target else known
        )

    return bind


def _binned(function: Callable[..., Tensor]) -> Callable[..., BoundMeasure]:
    def bind(name: str, bins: int = 15) -> BoundMeasure:
        value = partial(function, bins=checked_bins(bins))
        return BoundMeasure(name, value, value, one_target=True)

    return bind


def _binned_square(function: Callable[..., Tensor]) -> Callable[..., BoundMeasure]:
    def bind(name: str, bins: int = 15) -> BoundMeasure:
        value = partial(function, bins=checked_bins(bins))

        def distance(*given: Tensor) -> Tensor:
            return value(*given).sqrt()

        return BoundMeasure(name, value, distance, 2, one_target=False, marginal=True)

    return bind


def _unbinned(
    value: Callable[..., Tensor],
    one_target: bool,
    distance: Callable[..., Tensor] | None = None,
    **settings: Any,
) -> Callable[..., BoundMeasure]:
    """Bind a mean, or with a distance the estimate of its square."""
    power = 1 if distance is None else 2

    def bind(name: str) -> BoundMeasure:
        return BoundMeasure(name, value, distance, power, one_target=one_target, **settings)

    return bind


# Scores of a classifier's outputs, with intervals from exact moments.


def _share_correct(confidence: Tensor, correct: Tensor, *, weights: Tensor | None = None) -> Tensor:
    _, correct, mass = pair(confidence, correct, weights=weights)
    return weighted_mean(correct.double(), mass)


def _accuracy_interval(outputs: Outputs, settings: Settings) -> Interval:
    confidence, correct = outputs.pair
    return share_interval(correct, confidence, settings.level, weights=outputs.weights)


def _accuracy_terms(**outputs: Any) -> Tensor:
    return top_label(**outputs)[1].double()


def _score_terms(terms: Callable[[Outputs], Tensor]) -> Callable[..., Tensor]:
    def of_outputs(*, probs: Any = None, logits: Any = None, labels: Any) -> Tensor:
        return terms(Outputs(probs, logits, labels))

    return of_outputs


def _nll_terms(outputs: Outputs) -> Tensor:
    return scores.nll_terms(outputs.log_probabilities, outputs.labels)


def _brier_terms(outputs: Outputs) -> Tensor:
    return scores.brier_terms(outputs.probabilities, outputs.labels)


def _score_interval(
    terms: Callable[[Outputs], Tensor], if_drawn: Callable[[Outputs], Tensor]
) -> Callable[[Outputs, Settings], Interval]:
    """Return the interval of a score's mean; `if_drawn` are the terms `[N, C]` of each label."""

    def of_outputs(outputs: Outputs, settings: Settings) -> Interval:
        p = outputs.probabilities
        finite = torch.where(p > 0, if_drawn(outputs), 0.0)
        mean = (p * finite).sum(-1)
        variance = (p * finite.square()).sum(-1) - mean.square()
        return mean_interval(
            terms(outputs), mean, variance, settings.level, weights=outputs.weights
        )

    return of_outputs


def _brier_if_drawn(outputs: Outputs) -> Tensor:
    p = outputs.probabilities
    return p.square().sum(-1, keepdim=True) - 2 * p + 1


def _brier_part(name: str) -> tuple[Callable[..., Tensor], Callable[..., Interval]]:
    def value(**outputs: Any) -> Tensor:
        part: Tensor = getattr(scores.brier_parts(**outputs), name)
        return part

    def part(outputs: Outputs, settings: Settings) -> Interval:
        found: dict[str, Interval] = outputs.once(
            "brier parts",
            lambda: brier_part_intervals(**outputs.given, **settings.draws(settings.fewer)),
        )
        return found[f"brier_{name}"]

    return value, part


def _mean_of_classes(name: str) -> Callable[[Outputs, Settings], Interval]:
    """Return the mean of the classes' intervals, which is no narrower than that of their mean."""

    def of_outputs(outputs: Outputs, settings: Settings) -> Interval:
        of_class, is_class = outputs.classwise
        # The mean needs fewer draws the more classes there are.
        draws = settings.draws(max(20, min(settings.fewer, 10_000 // len(of_class))))
        options = {"bins": settings.bins} if name == "ece" else {}
        found = interval(name, of_class, is_class, weights=outputs.weights, **draws, **options)
        means = {key: part.mean(-1) for key, part in vars(found).items() if torch.is_tensor(part)}
        return Interval(**means, level=found.level, method="mean of the classes' intervals")

    return of_outputs


# Scores of a regressor.


def _squared_error_terms(mean: Any, variance: Any, target: Any) -> Tensor:
    return gaussian.vector_target(mean, variance, target)[0].square().sum(-1)


def _squared_error(mean: Any, variance: Any, target: Any) -> Tensor:
    """Return the mean squared error of all components together."""
    return _squared_error_terms(mean, variance, target).mean(-1)


def _squared_error_interval(given: Predictions, settings: Settings) -> Interval:
    """Use mean `tr S` and variance `2 tr S^2` of a calibrated Gaussian's squared error."""
    error, spread, full = gaussian.vector_target(given.mean, given.variance, given.target)
    trace = (spread.diagonal(dim1=-2, dim2=-1) if full else spread).sum(-1)
    square = spread.square().sum((-1, -2) if full else -1)
    return mean_interval(error.square().sum(-1), trace, 2 * square, settings.level)


def _bleed_interval(given: Predictions, settings: Settings) -> Interval:
    terms = given.aleatoric.square().sum(-1)
    none = torch.zeros_like(terms)
    return mean_interval(terms, none, none, settings.level)


_TABLE = ("table",)
_COMPARED = ("table", "comparison")
_ORBIT = ("table", "comparison", "orbit")
_VIEW = ("table", "comparison", "view")

_calibration_part, _calibration_interval = _brier_part("calibration")
_refinement_part, _refinement_interval = _brier_part("refinement")

for _measure in (
    Measure(
        "accuracy",
        _share_correct,
        title="accuracy",
        meaning="accuracy: share of samples whose most probable class is the label",
        unit="share",
        higher_is_better=True,
        target=None,
        metric_class="Accuracy",
        interval="bootstrap",
        listed=_COMPARED,
        terms=_accuracy_terms,
        table_interval=_accuracy_interval,
    ),
    Measure(
        "nll",
        scores.nll,
        title="NLL",
        meaning="negative log-likelihood: mean over the labels",
        kind="outputs",
        unit="nats",
        target=None,
        metric_class="NLL",
        interval="bootstrap",
        listed=_COMPARED,
        terms=_score_terms(_nll_terms),
        table_interval=_score_interval(_nll_terms, lambda outputs: -outputs.log_probabilities),
    ),
    Measure(
        "brier",
        scores.brier,
        title="Brier",
        meaning="Brier score: mean squared distance of the probabilities from the label",
        kind="outputs",
        unit=_SQUARED,
        target=None,
        metric_class="Brier",
        interval="bootstrap",
        listed=_COMPARED,
        terms=_score_terms(_brier_terms),
        table_interval=_score_interval(_brier_terms, _brier_if_drawn),
    ),
    Measure(
        "brier_calibration",
        _calibration_part,
        title="Brier, calibration",
        meaning="part of the Brier score that isotonic recalibration of each class would remove",
        kind="outputs",
        unit=_SQUARED,
        listed=_TABLE,
        table_interval=_calibration_interval,
    ),
    Measure(
        "brier_refinement",
        _refinement_part,
        title="Brier, refinement",
        meaning="part of the Brier score that would remain after isotonic recalibration",
        kind="outputs",
        unit=_SQUARED,
        target=None,
        listed=_TABLE,
        table_interval=_refinement_interval,
    ),
    Measure(
        "ece",
        ece,
        title="ECE",
        meaning="expected calibration error: mean gap between accuracy and confidence over bins",
        unit="probability",
        metric_class="ECE",
        loss="ece",
        binding=_ece,
    ),
    Measure(
        "ece_l2",
        ece,
        title="ECE, l2",
        meaning="expected calibration error in the l2 norm: root mean square gap over bins",
        unit="probability",
        options={"norm": "l2"},
        metric_class="ECE",
        listed=_TABLE,
        binding=_ece,
    ),
    Measure(
        "ece_max",
        ece,
        title="ECE, largest",
        meaning="maximum calibration error: largest gap between accuracy and confidence of any bin",
        unit="probability",
        options={"norm": "max"},
        metric_class="ECE",
        listed=_TABLE,
        binding=_ece,
    ),
    Measure(
        "ece_mass",
        ece,
        title="ECE, equal mass",
        meaning="expected calibration error of equal mass: mean gap over bins of equal mass",
        unit="probability",
        options={"binning": "mass"},
        metric_class="EqualMassECE",
        listed=_TABLE,
        binding=_ece,
    ),
    Measure(
        "smooth_ece",
        smooth_ece,
        title="smooth ECE",
        meaning="smooth calibration error: the gap smoothed by a Gaussian instead of bins",
        unit="probability",
        metric_class="SmoothECE",
        listed=("table", "view"),
        binding=_smooth_ece,
    ),
    Measure(
        "sb_ece",
        sb_ece,
        title="SB-ECE",
        meaning="soft-binned calibration error: root mean square gap over soft bins",
        unit="probability",
        metric_class="SBECE",
        loss="sb_ece",
        listed=_TABLE,
        binding=_sb_ece,
    ),
    Measure(
        "ks",
        ks,
        title="KS",
        meaning="Kolmogorov-Smirnov calibration error: "
        "largest gap between cumulative accuracy and confidence",
        unit="probability",
        metric_class="KS",
        binding=_ks,
    ),
    Measure(
        "esd",
        esd,
        title="ESD",
        meaning="expected squared difference: mean squared gap between cumulative accuracy and "
        "confidence, unbiased",
        unit=_SQUARED,
        metric_class="ESD",
        loss="esd",
        listed=_VIEW,
        minimum=3,
        binding=_esd,
    ),
    Measure(
        "mmce",
        mmce,
        title="MMCE",
        meaning="maximum mean calibration error: norm of the gap under a Laplacian kernel",
        unit="probability",
        metric_class="MMCE",
        loss="mmce",
        listed=_VIEW,
        binding=_mmce,
    ),
    Measure(
        "mmce_squared",
        mmce_squared,
        title="MMCE, squared",
        meaning="squared maximum mean calibration error: differentiable at zero error",
        unit=_SQUARED,
        listed=(),
        binding=_mmce_squared,
    ),
    Measure(
        "skce",
        skce,
        title="SKCE",
        meaning="squared kernel calibration error: unbiased estimate of the squared MMCE",
        unit=_SQUARED,
        metric_class="SKCE",
        listed=_TABLE,
        minimum=2,
        binding=_skce,
    ),
    Measure(
        "s_avuc",
        s_avuc,
        title="S-AvUC",
        meaning="soft accuracy versus uncertainty: log ratio of samples whose certainty "
        "contradicts their correctness",
        kind="outputs",
        target=None,
        metric_class="SAvUC",
        loss="s_avuc",
        interval="none",
        listed=(),
    ),
):
    register(_measure)

for _name, _options in (
    ("ece", {}),
    ("ks", {}),
    ("esd", {"minimum": 3}),
    ("mmce", {}),
    ("skce", {"minimum": 2}),
    ("smooth_ece", {"listed": ()}),
):
    register(
        Measure(
            f"classwise_{_name}",
            getattr(by_class, f"classwise_{_name}"),
            title=f"class-wise {_name.replace('_', ' ').upper().replace('SMOOTH', 'smooth')}",
            meaning=f"mean over classes k of `{_name}` of the probability of class k",
            kind="outputs",
            unit=_SQUARED if _name in ("esd", "skce") else "probability",
            table_interval=_mean_of_classes(_name),
            **{"listed": _TABLE, **_options},  # type: ignore[arg-type]
        )
    )

for _measure in (
    Measure(
        "squared_error",
        _squared_error,
        title="squared error",
        meaning="squared error: mean over samples of the sum over components",
        kind="regression",
        unit="target squared",
        target=None,
        interval="bootstrap",
        listed=_COMPARED,
        one_target=False,
        terms=_squared_error_terms,
        table_interval=_squared_error_interval,
    ),
    Measure(
        "gaussian_nll",
        gaussian.gaussian_nll,
        title="NLL",
        meaning="negative log-likelihood: mean over the targets under the predicted Gaussians",
        kind="regression",
        unit="nats",
        target=None,
        metric_class="GaussianNLL",
        loss="gaussian_nll",
        interval="bootstrap",
        one_target=False,
        terms=gaussian.nll_terms,
        binding=_unbinned(
            gaussian.gaussian_nll,
            False,
            whitened=OfWhitened(_unchanged, _chi_squared, _nll_of, _nll_of),
        ),
    ),
    Measure(
        "ence",
        regression.ence,
        title="ENCE",
        meaning="expected normalized calibration error: relative gap between root mean squared "
        "error and predicted deviation over bins",
        kind="regression",
        unit="1",
        metric_class="ENCE",
        one_target=True,
        binding=_binned(regression.ence),
    ),
    Measure(
        "uce",
        regression.uce,
        title="UCE",
        meaning="uncertainty calibration error: gap between mean squared error and predicted "
        "variance over bins",
        kind="regression",
        unit="target squared",
        metric_class="UCE",
        listed=_COMPARED,
        one_target=True,
        binding=_binned(regression.uce),
    ),
    Measure(
        "quantile_calibration",
        regression.quantile_calibration,
        title="quantile calibration",
        meaning="quantile calibration error: mean gap between a quantile's level and the share of "
        "targets below it",
        kind="regression",
        unit="probability",
        one_target=True,
        binding=_covered(regression.quantile_calibration, True),
    ),
    Measure(
        "gaussian_crps",
        gaussian.gaussian_crps,
        title="CRPS",
        meaning="continuous ranked probability score: mean over the predicted Gaussians",
        kind="regression",
        unit="target",
        target=None,
        metric_class="GaussianCRPS",
        interval="bootstrap",
        listed=_ORBIT,
        one_target=True,
        terms=gaussian.crps_terms,
        binding=_unbinned(gaussian.gaussian_crps, True),
    ),
    Measure(
        "regression_esd",
        regression.regression_esd,
        title="regression ESD",
        meaning="expected squared difference of squared error and variance: unbiased, without bins",
        kind="regression",
        unit="target to the fourth",
        metric_class="RegressionESD",
        listed=_ORBIT,
        one_target=True,
        minimum=3,
        binding=_unbinned(regression.regression_esd, True, _esd_distance),
    ),
    Measure(
        "mahalanobis_calibration",
        regression.mahalanobis_calibration,
        title="Mahalanobis calibration",
        meaning="Mahalanobis calibration error: mean gap between an ellipsoid's probability and "
        "the share of targets inside it",
        kind="regression",
        unit="probability",
        one_target=False,
        binding=_covered(regression.mahalanobis_calibration, False),
    ),
    Measure(
        "gence",
        generalized.gence,
        title="GENCE",
        meaning="generalized expected normalized calibration error: for vectors",
        kind="regression",
        unit="1",
        target=generalized.gence_floor,
        metric_class="GENCE",
        interval="bootstrap",
        one_target=False,
        terms=generalized.gence_terms,
        binding=_unbinned(generalized.gence, False, marginal=True),
    ),
    Measure(
        "gence_sq",
        generalized.gence_sq,
        title="GENCE, squared",
        meaning="generalized expected normalized calibration error of squares: for vectors",
        kind="regression",
        unit="1",
        target=generalized.gence_sq_floor,
        metric_class="GENCESquared",
        interval="bootstrap",
        listed=_COMPARED,
        one_target=False,
        terms=generalized.gence_sq_terms,
        binding=_unbinned(generalized.gence_sq, False, marginal=True),
    ),
    Measure(
        "gence_fiber",
        generalized.gence_fiber,
        title="GENCE, by fiber",
        meaning="generalized normalized calibration error, by fiber: averaged over bins",
        kind="regression",
        unit="1",
        listed=_COMPARED,
        one_target=False,
        binding=_binned_square(generalized.gence_fiber),
    ),
    Measure(
        "gence_sq_fiber",
        generalized.gence_sq_fiber,
        title="GENCE, squared, by fiber",
        meaning="generalized normalized calibration error of squares, by fiber: averaged over bins",
        kind="regression",
        unit="1",
        listed=_TABLE,
        one_target=False,
        binding=_binned_square(generalized.gence_sq_fiber),
    ),
    Measure(
        "regression_esd_normalized",
        regression.regression_esd_normalized,
        title="regression ESD, normalized",
        meaning="expected squared difference of normalized error and 1: unbiased, without bins",
        kind="regression",
        unit="1",
        listed=_ORBIT,
        one_target=False,
        minimum=3,
        binding=_unbinned(
            regression.regression_esd_normalized,
            False,
            _normalized_esd_distance,
            whitened=OfWhitened(_unchanged, _chi_squared, _esd_of, _esd_root_of),
        ),
    ),
    Measure(
        "aleatoric_bleed",
        aleatoric_bleed,
        title="aleatoric bleed",
        meaning="aleatoric bleed: mean squared aleatoric variance ascribed to noise-free data",
        kind="aleatoric",
        unit="target to the fourth",
        interval="bootstrap",
        listed=("table", "orbit"),
        one_target=False,
        table_interval=_bleed_interval,
    ),
):
    register(_measure)
