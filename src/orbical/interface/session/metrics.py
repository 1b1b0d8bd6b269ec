"""The metrics of a scan that the page can draw over an orbit, whatever its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import unknown_name
from .scan_reader import ScanReader

MEASURES = {
    "ece": ("ECE", "expected calibration error: mean gap of confidence and accuracy over 15 bins"),
    "ks": ("KS", "largest gap of cumulative accuracy and confidence"),
    "esd": ("ESD", "expected squared difference of cumulative accuracy and confidence, unbiased"),
    "smooth_ece": ("Smooth ECE", "calibration error with a Gaussian instead of bins"),
    "mmce": ("MMCE", "maximum mean calibration error, by a Laplacian kernel"),
}
REGRESSION_MEASURES = {
    "ence": ("ENCE", "expected normalised calibration error of predicted variances"),
    "quantile_calibration": ("Quantile calibration", "share of truths below each quantile, off by"),
    "mahalanobis_calibration": ("Coverage", "share of truths inside each ellipse, off by"),
    "gence": ("GENCE", "generalised normalised calibration error of errors and variances"),
    "gaussian_nll": ("NLL", "negative log-likelihood of the truth"),
}
OF_ONE_TARGET = ("ence", "quantile_calibration")
_TITLES = {
    "score": "Score",
    "confidence": "Confidence",
    "correct": "Accuracy",
    "action_defect": "Action defect",
}
_GAPS = ("ece", "ks", "smooth_ece")  # measures that are differences of shares
_HIDDEN = ("score_vs_consensus",)  # it is the score, once the consensus is the reference


@dataclass(frozen=True)
class Metric:
    """A quantity over the orbit: of each sample, or of a set of samples."""

    name: str
    title: str
    unit: str
    low: float | None
    high: float | None
    higher_is_better: bool | None
    per_sample: bool
    meaning: str

    def to_json(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return dict(vars(self))


def find_metrics(reader: ScanReader) -> dict[str, Metric]:
    """List the metrics of a scan: arrays with one number per position, and measures of sets."""
    score = reader.scan.record.score
    found: dict[str, Metric] = {}
    names = [name for name in reader.dims if _one_number_a_place(reader, name)]
    for name in ["score", *(name for name in names if name not in ("score", *_HIDDEN))]:
        about = reader.attributes(name)
        unit = score.unit if name == "score" else about.get("units", "")
        better = score.higher_is_better if name == "score" else about.get("higher_is_better")
        share = unit == "share"
        meaning = score.meaning if name == "score" else reader.meanings[name]
        title = meaning[:1].upper() + meaning[1:] if name == "score" else _title(name)
        found[name] = Metric(
            name=name,
            title=title,
            unit=unit if unit in ("share", "px") else "number",
            low=0.0 if share or name == "count" or better is False else None,
            high=1.0 if share else None,
            higher_is_better=better,
            per_sample=True,
            meaning=meaning,
        )
    if {"confidence", "correct"} <= {*names}:
        for name, (title, meaning) in MEASURES.items():
            unit = "share" if name in _GAPS else "number"
            found[name] = Metric(name, title, unit, 0.0, None, False, False, meaning)
    if {"error", "variance"} <= {*reader.dims}:
        several = reader.shape("error")[-1] > 1
        for name, (title, meaning) in REGRESSION_MEASURES.items():
            if several and name in OF_ONE_TARGET:
                continue
            found[name] = Metric(name, title, "number", None, None, False, False, meaning)
    return found


def _one_number_a_place(reader: ScanReader, name: str) -> bool:
    dims = reader.dims[name]
    classes = reader.dtype(name).kind in "iu" and name == "predicted"  # indices have no mean
    return dims in (("model", "sample", "element"), ("sample", "element")) and not classes


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("_", " ").capitalize())


def chosen_metric(metrics: dict[str, Metric], name: str, per_sample: bool = False) -> Metric:
    """Return the metric of a selection.

    A measure of sets has no value for one sample; with `per_sample` the score replaces it.
    """
    if name and name not in metrics:
        raise unknown_name("selection metric", name, metrics)
    metric = metrics[name or "score"]
    return metric if metric.per_sample or not per_sample else metrics["score"]
