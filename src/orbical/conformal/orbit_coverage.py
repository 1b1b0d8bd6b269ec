"""Coverage and size of conformal sets and intervals at each position of the orbit of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from .._arrays import ArrayLike, as_numpy
from .._lazy import pd, xr
from ..calibration import (
    checked_level,
    interval_of_sums,
    labeled_along_elements,
    probabilities,
    share_interval_of_sums,
    top_label,
)
from ..errors import InputError, check_name, real_number, whole_number
from ..groups import Group
from ..store import Scan, ScanArrays, arrays_of, is_scan, opened_scan, responses
from .class_sets import LAC, ConformalSets, conformal_scores
from .quantiles import checked_coverage, conformal_quantile
from .target_intervals import Absolute, ConformalIntervals, Normalized

CALIBRATED = ("identity", "pooled", "position", "average")
"""Where the threshold comes from."""


class OrbitCoverage(NamedTuple):
    """Coverage and size at each position, `[model, element]`.

    Both have the coordinates `low` and `high`, the ends of their intervals, `calibrated`, the
    coverage that was asked for, or the size at the identity, and `held` and `tested`, the numbers
    of samples that calibrated the sets and that tested them.

    Attributes:
        coverage: the share of test samples whose set contains the truth.
        size: the mean number of classes in a set, or the mean width of an interval.
    """

    coverage: xr.DataArray
    size: xr.DataArray


class _Block(NamedTuple):
    """Some samples at K positions: their rows, and the scores of all answers and of the truth."""

    rows: np.ndarray
    at_truth: Tensor  # [n, K]
    answers: Tensor  # [n, K, C] scores of classes, or [n, K] the width of a unit of score


def along_orbit(
    scan: Scan | xr.Dataset | Mapping[str, ArrayLike],
    method: ConformalSets | ConformalIntervals | None = None,
    *,
    calibrate: str | int = "pooled",
    share: float = 0.5,
    level: float = 0.95,
    seed: int = 0,
) -> OrbitCoverage:
    """Measure coverage and size of sets at each position of the orbit, for each model of a scan.

    A random share of the samples calibrates the threshold, and the others are tested. Sets that
    are calibrated on upright inputs and used on rotated ones have no guarantee: there the coverage
    shows how much is lost.

    Args:
        scan: a labeled scan of classification with `keep="probabilities"`, or of regression; or
            its `data`; or the outputs of a model, as `orbical.data.read_outputs` returns them,
            which have a single position. Targets with several components have balls instead of
            intervals, whose radius is a multiple of 1 (`Absolute`) or of the root mean variance
            (`Normalized`).
        method: the method; `LAC(coverage=0.9)` or, for regression, `Absolute(coverage=0.9)` by
            default. Only its parameters are used.
        calibrate: where the threshold comes from: "pooled" for one from all positions, "position"
            for one at each, "identity" or the index of an element for one from there, "average"
            for sets of scores averaged over a closed group, the same at all positions.
        share: the share of the samples that calibrate.
        level: nominal coverage of the intervals, which describe new test samples.
        seed: seed of the choice of samples.

    Returns:
        Coverage and size.

    Raises:
        InputError: if the scan has no probabilities or labels, or if there are too few
            calibration samples for the coverage.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:100], labels[:100]), group="rotations:8",
        ...                task="classification", keep="probabilities", progress=False)
        >>> found = along_orbit(scan, LAC(coverage=0.8), calibrate="identity")
        >>> dict(found.coverage.sizes), bool((found.coverage["low"] <= found.coverage).all())
        ({'model': 1, 'element': 8}, True)
    """
    checked_level(level)
    given: Any = (
        scan if is_scan(scan) or hasattr(scan, "data_vars") else _coverage_at_one_position(scan)
    )
    (data, group), arrays, like = opened_scan(given), arrays_of(given), responses(given, "score")
    chosen = _coverage_method_of(data, method)
    wanted = checked_coverage(chosen.coverage)
    place = _coverage_place(calibrate, group, chosen)
    shape = (like.sizes["model"], like.sizes["element"])
    held, tested, hits = np.zeros((3, *shape))
    powers = np.zeros((4, *shape))  # sums of the sizes, their squares, cubes and fourth powers
    for model in range(shape[0]):
        parts = conformal_halves(
            finished_rows_of_coverage(arrays, str(like.name), model), share, seed
        )
        held[model] = len(parts[0])
        for _, contains, size in conformal_tests(arrays, chosen, model, parts, place):
            tested[model] += len(size)
            hits[model] += contains.sum(0)
            for exponent, sums in enumerate(powers, start=1):
                sums[model] += (size**exponent).sum(0)
    covered = share_interval_of_sums(tested, hits, hits, level)
    total, squares, cubes, fourths = powers
    mean, low, high = interval_of_sums(tested, total, squares, cubes, fourths, level, low=0.0)
    upright = np.repeat(mean[:, [group.identity]], shape[1], axis=1)
    split = {"held": held.astype(int), "tested": tested.astype(int)}
    of_coverage = {
        "meaning": "share of sets that contain the truth",
        "statistic": "",
        "limits": [0.0, 1.0],
        "band": "band: interval of the coverage; dotted: asked for",
    }
    of_size = {
        "meaning": "size of a set",
        "higher_is_better": False,
        "band": "band: interval of the mean; dotted: at the identity",
    }
    return OrbitCoverage(
        _labeled_orbit_coverage(
            "coverage", like, (*covered, np.full(shape, wanted)), split, of_coverage
        ),
        _labeled_orbit_coverage("size", like, (mean, low, high, upright), split, of_size),
    )


def coverage_table(
    scan: Scan | Mapping[str, ArrayLike],
    method: ConformalSets | ConformalIntervals | None = None,
    *,
    calibrate: Sequence[str] | None = None,
    share: float = 0.5,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Measure coverage and size at each position, for several places of calibration.

    Args:
        scan: as in `along_orbit`.
        method: as in `along_orbit`.
        calibrate: where the thresholds come from; by default all that apply.
        share: the share of the samples that calibrate.
        level: nominal coverage of the intervals.
        seed: seed of the choice of samples.

    Returns:
        A row for each place of calibration, `model` and `element`: `coverage` and `size`, with
        `coverage_low` and so on, the `weight` of the element and whether it is the
        `identity`, and the numbers of samples that
        calibrated (`held`) and that were tested (`tested`).

    See Also:
        along_orbit: For one place of calibration.

    Example:
        >>> outputs = {"mean": [0.0] * 40, "target": [float(i) for i in range(40)]}
        >>> found = coverage_table(outputs, Absolute(0.8))
        >>> found[["held", "tested"]].values.tolist()
        [[20, 20]]
    """
    if not is_scan(scan):
        names, usual = [""], ["identity"]
    else:
        names = [scan.group.name(element) for element in range(len(scan.group))]
        averaged = scan.group.closed and not holds_values(scan.data)
        usual = [place for place in CALIBRATED if place != "average" or averaged]
    frames = []
    for place in usual if calibrate is None else calibrate:
        found = along_orbit(scan, method, calibrate=place, share=share, level=level, seed=seed)
        columns = {
            f"{part.name}{end}": values.values.ravel()
            for part in found
            for end, values in (("", part), ("_low", part.low), ("_high", part.high))
        }
        covered = found.coverage
        count, identity = covered.sizes["model"], covered.attrs["identity"]
        about = {
            "model": covered["model"].values.repeat(len(names)),
            "calibrated": place,
            "element": names * count,
            "weight": np.tile(covered["weight"].values, count),
            "identity": np.tile(np.arange(len(names)) == identity, count),
            "held": covered["held"].values.ravel(),
            "tested": covered["tested"].values.ravel(),
        }
        frames.append(pd.DataFrame(about | columns))
    return pd.concat(frames, ignore_index=True)


def _coverage_at_one_position(outputs: Any) -> xr.Dataset:
    """Return outputs as a scan would hold them: of one model, at the identity alone."""
    if holds_values(outputs):
        mean, truth = (as_numpy(name, outputs[name]) for name in ("mean", "target"))
        if truth.shape != mean.shape:
            raise InputError("target", f"shape {mean.shape}, as the mean has", truth)
        away = (truth - mean).reshape(len(mean), -1)
        values = {"score": np.linalg.norm(away, axis=1)[None, :, None], "mean": mean[None, :, None]}
        if "variance" in outputs:
            variance = as_numpy("variance", outputs["variance"])
            if variance.ndim > 2:
                variance = np.diagonal(variance, axis1=1, axis2=2)
            values["variance"] = variance.reshape(1, len(mean), 1, -1)
        coords: dict[str, Any] = {}
        task, last = "regression", "component"
    else:
        given = {name: outputs[name] for name in ("logits", "probs") if name in outputs}
        probs = probabilities(**given).detach().cpu().numpy()
        right = top_label(**given, labels=outputs["labels"])[1].cpu().numpy()[None, :, None]
        truth = as_numpy("labels", outputs["labels"]).reshape(len(probs))
        values = {"probabilities": probs[None, :, None], "score": right * 1.0, "correct": right}
        coords, task, last = {"label": ("sample", truth)}, "classification", "class"
    dims = ("model", "sample", "element", last)
    held = {name: (dims[: part.ndim], part) for name, part in values.items()}
    held["score_vs_consensus"] = (dims[:3], 0.0 * values["score"])
    labels = coords | {"model": ["outputs"], "weight": ("element", [1.0])}
    return xr.Dataset(held, labels, {"task": task, "group": "trivial", "score": "score"})


def conformal_tests(
    arrays: ScanArrays,
    method: Any,
    model: int,
    parts: tuple[np.ndarray, np.ndarray],
    place: str | int,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Calibrate on the first part of the rows and yield rows, hits and sizes of the second.

    Hits and sizes are `[n, K]`: whether each set contains the truth, and how large it is.
    """
    weight = torch.as_tensor(arrays.weights)
    averaged = weight if place == "average" else None
    held, others = parts
    at_truth = [block.at_truth for block in _coverage_blocks(arrays, method, model, held, averaged)]
    threshold = _orbit_coverage_thresholds(
        torch.cat(at_truth), place, checked_coverage(method.coverage), weight
    )
    for block in _coverage_blocks(arrays, method, model, others, averaged):
        hits = (block.at_truth <= threshold).numpy()
        yield block.rows, hits, _sizes(block.answers, threshold).numpy()


def holds_values(data: Any) -> bool:
    """Check whether scanned outputs are numbers, for which methods give intervals, not sets.

    Example:
        >>> holds_values({"mean": [0.5], "target": [0.4]}), holds_values({"probs": [[0.5, 0.5]]})
        (True, False)
    """
    return "mean" in getattr(getattr(data, "data", data), "data_vars", data)


def _coverage_method_of(data: Any, method: Any) -> Any:
    """Return the method for the outputs that are stored, or refuse it."""
    variables = getattr(data, "data_vars", ())
    if holds_values(data) and "score" in variables:
        chosen = Absolute() if method is None else method
        needed: tuple[type, ...] = (Absolute, Normalized)
        if isinstance(chosen, Normalized) and "variance" not in variables:
            raise InputError(
                "scan",
                "variances for Normalized",
                "none",
                remedy="scan with a task that has uncertainty=, or use Absolute",
            )
    else:
        for name, remedy in (
            ("probabilities", "with keep='probabilities' (--keep probabilities)"),
            ("correct", "labeled data"),
            ("label", "data with one class for each sample"),
        ):
            if name not in variables and name not in getattr(data, "coords", ()):
                raise InputError(
                    "scan",
                    f"classification with {name}, or labeled regression",
                    f"{data.attrs.get('task')} without {name!r}",
                    remedy=f"scan {remedy}",
                )
        chosen = LAC() if method is None else method
        needed = (ConformalSets,)
    if not isinstance(chosen, needed):
        names = " or ".join(one.__name__ for one in needed)
        raise InputError("method", f"{names} for a scan of {data.attrs.get('task')}", type(chosen))
    return clone(chosen)


def _coverage_place(calibrate: str | int, group: Group, method: Any) -> str | int:
    """Return the index of an element, or one of the other places by name."""
    if not isinstance(calibrate, str):
        place = whole_number("calibrate", calibrate, 0)
        if place >= len(group):
            raise InputError("calibrate", f"0 to {len(group) - 1}", place)
        return place
    check_name("calibrate", calibrate, CALIBRATED)
    if calibrate == "average" and not isinstance(method, ConformalSets):
        raise InputError("calibrate", "sets for averaged scores", "intervals")
    if calibrate == "average" and not group.closed:
        raise InputError(
            "calibrate",
            "a closed group for averaged scores",
            f"{group.spec}, whose orbit differs from position to position",
        )
    return group.identity if calibrate == "identity" else calibrate


def finished_rows_of_coverage(arrays: ScanArrays, name: str, model: int) -> np.ndarray:
    """Return the samples with a number at every element."""
    blocks = arrays.sample_blocks(name, model=model)
    return np.flatnonzero(np.concatenate([np.isfinite(part).all(1) for _, (part,) in blocks]))


def conformal_halves(samples: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that calibrate and those that are tested, each in ascending order."""
    mixed = np.random.default_rng(whole_number("seed", seed, 0)).permutation(samples)
    count = round(real_number("share", share, "in (0, 1)") * len(mixed))
    if not 0 < count < len(mixed):
        raise InputError("scan", "samples to calibrate and to test", f"{len(mixed)} finished ones")
    return np.sort(mixed[:count]), np.sort(mixed[count:])


def _orbit_coverage_thresholds(
    at_truth: Tensor, place: str | int, wanted: float, weight: Tensor
) -> Tensor:
    """Return the threshold at each position, `[K]` or `[1]`."""
    if place == "position":
        each = [conformal_quantile(column, wanted) for column in at_truth.T]
    elif place == "pooled":
        each = [conformal_quantile(at_truth, wanted, weight)]
    else:
        each = [conformal_quantile(at_truth[:, 0 if place == "average" else int(place)], wanted)]
    return torch.tensor(each, dtype=torch.float64)


def _sizes(answers: Tensor, threshold: Tensor) -> Tensor:
    """Return the size of each set or interval, `[n, K]`."""
    if answers.ndim == 2:
        return 2 * threshold.clamp(min=0) * answers
    return (answers <= threshold[:, None]).double().sum(-1)


def _coverage_blocks(
    arrays: ScanArrays, method: Any, model: int, rows: np.ndarray, averaged: Tensor | None
) -> Iterator[_Block]:
    """Yield the scores of some samples, a block at a time; `averaged` are weights of positions."""
    if isinstance(method, ConformalIntervals):
        yield from _distances(arrays, method, model, rows)
        return
    labels = torch.as_tensor(arrays.read("label")[rows]).long()
    for run, (part,) in rows_of_coverage(arrays, model, rows, "probabilities"):
        probs = torch.from_numpy(part).double()
        scores = method._nonconformity(probs, method._uniform(probs)[:, None, None])
        if averaged is not None:
            scores = (scores * averaged[:, None]).sum(1, keepdim=True)
        yield _Block(rows[run], conformal_scores(scores, labels[run]), scores)


def _distances(
    arrays: ScanArrays, method: ConformalIntervals, model: int, rows: np.ndarray
) -> Iterator[_Block]:
    """Yield the distances of predictions from the truth, and what they are measured in."""
    names = ["score", *(["variance"] if isinstance(method, Normalized) else [])]
    for run, (distance, *variance) in rows_of_coverage(arrays, model, rows, *names):
        far = torch.from_numpy(distance).double()
        scale = torch.ones_like(far)
        if variance:
            scale = torch.from_numpy(variance[0]).double().reshape(*far.shape, -1).mean(-1).sqrt()
        yield _Block(rows[run], far / scale, scale)


def rows_of_coverage(
    arrays: ScanArrays, model: int, rows: np.ndarray, *names: str
) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Yield runs of ascending rows, and what the arrays of a model hold there."""
    for block, parts in arrays.sample_blocks(*names, model=model):
        first, last = np.searchsorted(rows, (block.start, block.stop))
        if first < last:
            yield slice(first, last), [part[rows[first:last] - block.start] for part in parts]


def _labeled_orbit_coverage(
    name: str,
    like: xr.DataArray,
    curves: Sequence[np.ndarray],
    split: Mapping[str, np.ndarray],
    about: Mapping[str, object],
) -> xr.DataArray:
    """Return a curve, its ends and what it should be, with the models and elements of a scan."""
    value, *others = curves
    kept = ("task", "models", "group", "identity", "layout", "layout_index", "layout_axes")
    attrs = {key: like.attrs[key] for key in kept} | {"metric": name, **about}
    more = {**split, **dict(zip(("low", "high", "calibrated"), others, strict=True))}
    return labeled_along_elements(name, like, value, more, attrs)
