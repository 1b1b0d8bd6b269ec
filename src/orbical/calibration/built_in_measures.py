"""The entries of all measures that come with orbical."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import number_of_bins
from .intervals import cells
from .intervals.brier_intervals import brier_part_intervals
from .intervals.cautions import (
    CautionEvidence,
    caution,
    caution_evidence_of_pairs,
    caution_evidence_of_predictions,
)
from .intervals.interval_ends import Interval, largest_gap_ends, mapped_intervals
from .intervals.mean_intervals import mean_interval, share_interval
from .intervals.measure_intervals import cell_intervals, interval
from .measure_tables import MeasureTableSettings, TableOutputs, TablePredictions
from .measures import by_class, gaussian, proper_scores, variance_errors
from .measures.binned import ece, ece_debiased
from .measures.bleed import aleatoric_bleed
from .measures.cumulative import cumulative_distance, esd, ks, ordered_esd
from .measures.kernel_errors import mmce, mmce_squared, skce
from .measures.smooth import smooth_ece
from .measures.soft import s_avuc, sb_ece
from .pairs.from_outputs import top_label
from .pairs.pairs_and_weights import pair, weighted_mean
from .registry import MEASURES, BoundMeasure, Measure, OfCells, WhitenedMeasure, register

_Function = Callable[..., Tensor]
_Binding = Callable[..., BoundMeasure]
"""A measure with its options set, and its forms on cells of confidence."""


def _bound(value: _Function, distance: _Function | None = None, **known: Any) -> _Binding:
    """Bind a mean; or with a distance, that itself or the estimate of its square."""

    def bind(name: str, **options: Any) -> BoundMeasure:
        function = partial(value, **options)
        if distance is None or distance is value:
            return BoundMeasure(name, function, distance and function, **known)
        return BoundMeasure(name, function, partial(distance, **options), power=2, **known)

    return bind


def _cell_measure(
    value: _Function,
    cell_distance: OfCells,
    cell_value: OfCells | None = None,
    distance: _Function | None = None,
) -> _Binding:
    """Bind a distance, or with a distance of its own the estimate of its square."""
    bind_samples = _bound(value, distance or value, index=cells.fine_cell_index)

    def bind(name: str, **options: object) -> BoundMeasure:
        root = partial(cell_distance, **options)
        of_cells = root if cell_value is None else partial(cell_value, **options)
        return replace(bind_samples(name, **options), cell_value=of_cells, cell_distance=root)

    return bind


def _in_bins(name: str, bins: int = 15, norm: str = "l1", binning: str = "width") -> BoundMeasure:
    bins = number_of_bins(bins)
    value = partial(ece, bins=bins, norm=norm, binning=binning)
    error = partial(cells.binned_error, norm=norm)
    index = partial(cells.bin_cell_index, bins=bins, binning=binning)
    ends = largest_gap_ends if norm == "max" else None
    return BoundMeasure(name, value, value, 1, index, error, error, bin_ends=ends)


def _debiased(name: str, bins: int = 15) -> BoundMeasure:
    root = _in_bins(name, bins, "l2")
    value = partial(ece_debiased, bins=bins)
    return replace(root, value=value, power=2, cell_value=cells.debiased_error)


def _binned_square(value: _Function, moment: int) -> _Binding:
    def distance(*given: Tensor, **options: Any) -> Tensor:
        return value(*given, **options).sqrt()

    return _bound(value, distance, marginal=True, moment=moment)


def _coverage_measure(
    function: Callable[..., variance_errors.Coverage], known: bool = False
) -> _Binding:
    """Bind the error of a function that returns a `Coverage`, of Mahalanobis distances if known."""

    def bind(name: str, levels: int = 99) -> BoundMeasure:
        def error(*given: Tensor, weights: Tensor | None = None) -> Tensor:
            return function(*given, levels=levels, weights=weights).error

        def of_probabilities(probability: Tensor, _: Tensor, width: int) -> Tensor:
            return variance_errors.coverage_of(probability, levels).error

        whitened = WhitenedMeasure(
            variance_errors.error_ellipsoid_probability,
            lambda shape, width, generator: generator.random(shape),
            of_probabilities,
            of_probabilities,
        )
        return BoundMeasure(name, error, error, whitened=whitened if known else None)

    return bind


def _esd_root(confidence: Tensor, correct: Tensor, *, weights: Tensor | None = None) -> Tensor:
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    return cumulative_distance(correct.double() - confidence.double(), confidence, mass)


def _esd_distance(*given: Tensor, weights: Tensor | None = None) -> Tensor:
    error, spread = gaussian.gaussian_target(*given)
    return cumulative_distance(error.square() - spread, spread, weights)


def _normalized_esd_distance(*given: Tensor, weights: Tensor | None = None) -> Tensor:
    error, spread, full = gaussian.gaussian_vector_target(*given)
    distance, log_determinant = gaussian.gaussian_whitened(error, spread, full)
    return cumulative_distance(distance / error.shape[-1] - 1, log_determinant, weights)


_of_distances = partial(
    WhitenedMeasure,
    lambda distance, width: distance,
    lambda shape, width, generator: generator.chisquare(width, shape),
)


def _nll_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return gaussian.gaussian_nll_of(distance, log_determinant, width).mean(-1)


def _esd_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return ordered_esd(distance / width - 1, log_determinant)


def _esd_root_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return cumulative_distance(distance / width - 1, log_determinant)


# Scores of a classifier's outputs, with intervals from exact moments.


def _share_correct(confidence: Tensor, correct: Tensor, *, weights: Tensor | None = None) -> Tensor:
    _, correct, mass = pair(confidence, correct, weights=weights)
    return weighted_mean(correct.double(), mass)


def _accuracy(name: str) -> BoundMeasure:
    def own(confidence: Tensor, correct: Tensor, level: float, weights: Any) -> Interval:
        return share_interval(correct, confidence, level, weights=weights)

    return BoundMeasure(name, _share_correct, None, own_interval=own)


def _accuracy_terms(**outputs: Any) -> Tensor:
    return top_label(**outputs)[1].double()


def _nll_terms(outputs: TableOutputs) -> Tensor:
    return proper_scores.nll_terms(outputs.log_probabilities, outputs.labels)


def _brier_terms(outputs: TableOutputs) -> Tensor:
    return proper_scores.brier_terms(outputs.probabilities, outputs.labels)


def _score_measure(
    terms: Callable[[TableOutputs], Tensor], if_drawn: Callable[[TableOutputs], Tensor]
) -> dict[str, Any]:
    """Return the terms and the interval of a score; `if_drawn` are the terms `[N, C]` by label."""

    def of_arrays(*, probs: Any = None, logits: Any = None, labels: Any) -> Tensor:
        return terms(TableOutputs(probs, logits, labels))

    def of_outputs(outputs: TableOutputs, settings: MeasureTableSettings) -> Interval:
        p = outputs.probabilities
        finite = torch.where(p > 0, if_drawn(outputs), 0.0)
        mean = (p * finite).sum(-1)
        apart = finite - mean[..., None]
        variance, third = ((p * apart.pow(power)).sum(-1) for power in (2, 3))
        rest: dict[str, object] = {"calibrated_third": third, "weights": outputs.weights}
        found = mean_interval(terms(outputs), mean, variance, settings.level, **rest)
        low, usual = (end.clamp(min=0) for end in (found.low, found.calibrated_low))
        return replace(found, low=low, calibrated_low=usual)  # no term is negative

    return {"terms": of_arrays, "table_interval": of_outputs}


def _brier_if_drawn(outputs: TableOutputs) -> Tensor:
    p = outputs.probabilities
    return p.square().sum(-1, keepdim=True) - 2 * p + 1


def _brier_part_measure(part: str, meaning: str, **settings: Any) -> Measure:
    name = f"brier_{part}"

    def value(**outputs: Any) -> Tensor:
        found: Tensor = getattr(proper_scores.brier_parts(**outputs), part)
        return found

    def of_outputs(outputs: TableOutputs, settings: MeasureTableSettings) -> Interval:
        draws = settings.draws(settings.fewer)
        found: dict[str, Interval] = outputs.once(
            "brier parts", lambda: brier_part_intervals(**outputs.given, **draws)
        )
        return found[name]

    settings |= {"kind": "outputs", "unit": _SQUARED, "table_interval": of_outputs}
    return Measure(name, value, f"Brier, {part}", meaning, listed=_TABLE, **settings)


def _interval_of_built_in_classwise_measure(
    name: str,
) -> Callable[[TableOutputs, MeasureTableSettings], Interval]:
    """Return the mean of the classes' intervals, no narrower than that of their mean.

    Of many calibrated classes some show an error by chance, and the mean of their lower ends is not
    0. The lower end is therefore at most what the mean exceeds the mean of independent calibrated
    classes by.
    """

    def of_outputs(outputs: TableOutputs, settings: MeasureTableSettings) -> Interval:
        weighted = outputs.weights is not None
        of_class, is_class = outputs.classwise if weighted else outputs.classwise_in_order
        # The mean needs fewer draws the more classes there are.
        draws = max(20, min(settings.fewer, 10_000 // len(of_class)))
        seeds = [settings.seed + one for one in range(len(of_class))]
        drawn: dict[str, Any] = {"level": settings.level, "resamples": draws, "seed": seeds}
        if name in _SHARING and not weighted:
            names = [one for one in _SHARING if MEASURES[one].minimum <= of_class.shape[-1]]
            bound = [MEASURES[one].bind() for one in names]
            every = outputs.once(
                "classwise", lambda: cell_intervals(bound, of_class, is_class, **drawn)
            )
            found = every[names.index(name)]
        else:
            options = {"bins": settings.bins} if name == "ece" else {}
            found = interval(name, of_class, is_class, weights=outputs.weights, **drawn, **options)
        mean = mapped_intervals(lambda part: part.mean(-1), found)
        beyond = (found.calibrated_high - found.calibrated).square().sum(-1).sqrt() / len(of_class)
        above = (mean.value - mean.calibrated - beyond).clamp(min=0)
        limit = caution(name, caution_evidence_of_pairs(outputs.pair[1]))  # not of a single class
        method = "mean of the classes' intervals"
        return replace(mean, low=torch.minimum(mean.low, above), method=method, caution=limit)

    return of_outputs


_SHARING = ("ks", "esd", "mmce", "skce")
"""Measures of each class that are drawn together."""


# Scores of a regressor.


def _squared_error_terms(mean: Any, variance: Any, target: Any) -> Tensor:
    return gaussian.gaussian_vector_target(mean, variance, target)[0].square().sum(-1)


def _squared_error(*given: Any) -> Tensor:
    return _squared_error_terms(*given).mean(-1)


def _built_in_squared_error_interval(
    given: TablePredictions, settings: MeasureTableSettings
) -> Interval:
    """Use the moments `tr S`, `2 tr S^2`, `8 tr S^3` of the squared error of a Gaussian.

    Those of spread are of a Gaussian with errors as large as observed, if these are larger.
    """
    error, spread, full = gaussian.gaussian_vector_target(given.mean, given.variance, given.target)
    sizes = torch.linalg.eigvalsh(spread) if full else spread
    mean, variance, third = (n * sizes.pow(k).sum(-1) for n, k in ((1, 1), (2, 2), (8, 3)))
    terms = error.square().sum(-1)
    larger = (terms.mean(-1) / mean.mean(-1)).clamp(min=1)[..., None]
    variance, third = variance * larger.square(), third * larger.pow(3)
    rest: dict[str, object] = {"calibrated_third": third, "weights": given.weights}
    found = mean_interval(terms, mean, variance, settings.level, **rest)
    seen = caution_evidence_of_predictions(given.mean, given.variance, given.target)
    return replace(found, caution=caution("squared_error", seen))


def _bleed_interval(given: TablePredictions, settings: MeasureTableSettings) -> Interval:
    terms = given.aleatoric.square().sum(-1)
    none = torch.zeros_like(terms)
    found = mean_interval(terms, none, none, settings.level, weights=given.weights)
    few = caution("aleatoric_bleed", CautionEvidence(samples=terms.shape[-1]))
    return replace(found, caution=few or found.caution)


# The entries. Each function is known by its own name unless another is given.


def _entry(function: Callable[..., Any], title: str, name: str = "", **fields: Any) -> Measure:
    return Measure(name or function.__name__, function, title, **fields)


_SQUARED = "probability squared"
_TABLE = ("table",)
_COMPARED = ("table", "comparison")
_ORBIT = ("table", "comparison", "orbit")
_VIEW = ("table", "comparison", "view")

_pair = partial(_entry, unit="probability")
_outputs = partial(_entry, kind="outputs", target=None)
_scalar = partial(_entry, kind="regression", one_target=True)
_vector = partial(_entry, kind="regression", one_target=False)
_mean: dict[str, Any] = {"interval": "bootstrap", "target": None}

# fmt: off
_CLASSIFICATION = (
    _pair(_share_correct, "accuracy", "accuracy", unit="share", higher_is_better=True, **_mean,
          meaning="accuracy: share of samples whose most probable class is the label",
          metric_class="Accuracy", listed=_COMPARED, terms=_accuracy_terms, binding=_accuracy),
    _outputs(proper_scores.nll, "NLL", unit="nats", interval="bootstrap", metric_class="NLL",
             meaning="negative log-likelihood: mean over the labels",
             listed=_COMPARED,
             **_score_measure(_nll_terms, lambda outputs: -outputs.log_probabilities)),
    _outputs(proper_scores.brier, "Brier", unit=_SQUARED, interval="bootstrap",
             meaning="Brier score: mean squared distance of the probabilities from the label",
             metric_class="Brier", listed=_COMPARED,
             **_score_measure(_brier_terms, _brier_if_drawn)),
    _brier_part_measure(
        "calibration",
        "part of the Brier score that isotonic recalibration of each class would remove"),
    _brier_part_measure(
        "refinement", "part of the Brier score that would remain after isotonic recalibration",
        target=None),
    _pair(ece, "ECE", metric_class="ECE", loss="ece", binding=_in_bins,
          meaning="expected calibration error: mean gap between accuracy and confidence over bins"),
    _pair(ece, "ECE, l2", "ece_l2", options={"norm": "l2"}, metric_class="ECE", binding=_in_bins,
          meaning="expected calibration error in the l2 norm: root mean square gap over bins",
          listed=_TABLE),
    _pair(ece, "ECE, largest", "ece_max", options={"norm": "max"}, metric_class="ECE",
          meaning="maximum calibration error: "
          "largest gap between accuracy and confidence of any bin",
          binding=_in_bins, listed=_TABLE),
    _pair(ece, "ECE, equal mass", "ece_mass", options={"binning": "mass"}, binding=_in_bins,
          meaning="expected calibration error of equal mass: mean gap over bins of equal mass",
          metric_class="EqualMassECE", listed=_TABLE),
    _pair(smooth_ece, "smooth ECE", metric_class="SmoothECE", listed=("table", "view"),
          meaning="smooth calibration error: the gap smoothed by a Gaussian instead of bins",
          binding=_cell_measure(smooth_ece, cells.smoothed_error)),
    _pair(sb_ece, "SB-ECE", metric_class="SBECE", loss="sb_ece", listed=_TABLE,
          meaning="soft-binned calibration error: root mean square gap over soft bins",
          binding=_cell_measure(sb_ece, cells.soft_binned_error)),
    _pair(ks, "KS", metric_class="KS", binding=_cell_measure(ks, cells.largest_deviation),
          meaning="Kolmogorov-Smirnov calibration error: "
          "largest gap between cumulative accuracy and confidence"),
    _pair(esd, "ESD", unit=_SQUARED, metric_class="ESD", loss="esd", listed=_VIEW, minimum=3,
          meaning="expected squared difference: mean squared gap between cumulative accuracy and "
          "confidence, unbiased",
          binding=_cell_measure(esd, cells.cumulative_norm, cells.unbiased_cumulative, _esd_root)),
    _pair(mmce, "MMCE", metric_class="MMCE", loss="mmce", listed=_VIEW,
          meaning="maximum mean calibration error: norm of the gap under a Laplacian kernel",
          binding=_cell_measure(mmce, cells.kernel_norm)),
    _pair(mmce_squared, "MMCE, squared", unit=_SQUARED, loss="mmce", listed=(),
          meaning="squared maximum mean calibration error: differentiable at zero error",
          binding=_cell_measure(mmce_squared, cells.kernel_norm, cells.kernel_norm_squared,
                            mmce)),
    _pair(skce, "SKCE", unit=_SQUARED, metric_class="SKCE", listed=_TABLE, minimum=2,
          meaning="squared kernel calibration error: unbiased estimate of the squared MMCE",
          binding=_cell_measure(skce, cells.kernel_norm, cells.unbiased_kernel, mmce)),
    _pair(ece_debiased, "ECE, debiased", unit=_SQUARED, listed=_TABLE, minimum=2,
          meaning="debiased calibration error: squared gap over bins less its noise, which is 0 on "
          "average if calibrated",
          binding=_debiased),
    _outputs(s_avuc, "S-AvUC", metric_class="SAvUC", loss="s_avuc", interval="none", listed=(),
             meaning="soft accuracy versus uncertainty: log ratio of samples whose certainty "
             "contradicts their correctness"),
)

_CLASSWISE = tuple(
    _outputs(getattr(by_class, f"classwise_{name}"), f"class-wise {title}", target=0.0,
             meaning=f"mean over classes k of `{name}` of the probability of class k",
             unit=unit, minimum=minimum, listed=listed,
             table_interval=_interval_of_built_in_classwise_measure(name))
    for name, title, unit, minimum, listed in (
        ("ece", "ECE", "probability", 1, _TABLE),
        ("ks", "KS", "probability", 1, _TABLE),
        ("esd", "ESD", _SQUARED, 3, _TABLE),
        ("mmce", "MMCE", "probability", 1, _TABLE),
        ("skce", "SKCE", _SQUARED, 2, _TABLE),
        ("smooth_ece", "smooth ECE", "probability", 1, ()),
    )
)

_REGRESSION = (
    _vector(_squared_error, "squared error", "squared_error", unit="target squared", **_mean,
            meaning="squared error: mean over samples of the sum over components",
            listed=_COMPARED, terms=_squared_error_terms,
             table_interval=_built_in_squared_error_interval),
    _vector(gaussian.gaussian_nll, "NLL", unit="nats", **_mean,
            meaning="negative log-likelihood: mean over the targets under the predicted Gaussians",
            metric_class="GaussianNLL", loss="gaussian_nll", terms=gaussian.gaussian_nll_terms,
            binding=_bound(gaussian.gaussian_nll, whitened=_of_distances(_nll_of, _nll_of))),
    _scalar(variance_errors.ence, "ENCE", unit="1", metric_class="ENCE",
            binding=_bound(variance_errors.ence, variance_errors.ence, moment=2),
            meaning="expected normalized calibration error: relative gap between root mean squared "
            "error and predicted deviation over bins"),
    _scalar(variance_errors.uce, "UCE", unit="target squared", metric_class="UCE", listed=_COMPARED,
            binding=_bound(variance_errors.uce, variance_errors.uce, moment=2),
            meaning="uncertainty calibration error: gap between mean squared error and predicted "
            "variance over bins"),
    _scalar(variance_errors.quantile_calibration, "quantile calibration", unit="probability",
            meaning="quantile calibration error: mean gap between a quantile's level and the share "
            "of targets below it", binding=_coverage_measure(variance_errors.quantile_calibration)),
    _scalar(gaussian.gaussian_crps, "CRPS", unit="target", metric_class="GaussianCRPS", **_mean,
            meaning="continuous ranked probability score: mean over the predicted Gaussians",
            listed=_ORBIT, terms=gaussian.gaussian_crps_terms),
    _scalar(variance_errors.regression_esd, "regression ESD", unit="target to the fourth",
            meaning="expected squared difference of squared error and variance: "
            "unbiased, without bins", metric_class="RegressionESD", listed=_ORBIT, minimum=3,
            binding=_bound(variance_errors.regression_esd, _esd_distance, moment=2)),
    _vector(variance_errors.mahalanobis_calibration, "Mahalanobis calibration", unit="probability",
            meaning="Mahalanobis calibration error: mean gap between an ellipsoid's probability "
            "and the share of targets inside it",
            binding=_coverage_measure(variance_errors.mahalanobis_calibration, known=True)),
    _vector(variance_errors.gence, "GENCE", unit="1", target=variance_errors.gence_floor,
            meaning="generalized expected normalized calibration error: for vectors",
            metric_class="GENCE", interval="bootstrap", terms=variance_errors.gence_terms,
            binding=_bound(variance_errors.gence, marginal=True)),
    _vector(variance_errors.gence_sq, "GENCE, squared", unit="1", listed=_COMPARED,
            meaning="generalized expected normalized calibration error of squares: for vectors",
            metric_class="GENCESquared", interval="bootstrap",
            target=variance_errors.gence_sq_floor, terms=variance_errors.gence_sq_terms,
            binding=_bound(variance_errors.gence_sq, marginal=True)),
    _vector(variance_errors.gence_fiber, "GENCE, by fiber", unit="1", listed=_COMPARED,
            meaning="generalized normalized calibration error, by fiber: averaged over bins",
            binding=_binned_square(variance_errors.gence_fiber, moment=1)),
    _vector(variance_errors.gence_sq_fiber, "GENCE, squared, by fiber", unit="1", listed=_TABLE,
            meaning="generalized normalized calibration error of squares, by fiber: averaged over "
            "bins", binding=_binned_square(variance_errors.gence_sq_fiber, moment=2)),
    _vector(variance_errors.regression_esd_normalized, "regression ESD, normalized", unit="1",
            meaning="expected squared difference of normalized error and 1: unbiased, without bins",
            listed=_ORBIT, minimum=3, binding=_bound(
                variance_errors.regression_esd_normalized, _normalized_esd_distance, moment=2,
                whitened=_of_distances(_esd_of, _esd_root_of))),
    _vector(aleatoric_bleed, "aleatoric bleed", kind="aleatoric", unit="target to the fourth",
            meaning="aleatoric bleed: mean squared aleatoric variance ascribed to noise-free data",
            interval="bootstrap", listed=("table", "orbit"), table_interval=_bleed_interval),
)
# fmt: on

for _measure in (*_CLASSIFICATION, *_CLASSWISE, *_REGRESSION):
    register(_measure)
