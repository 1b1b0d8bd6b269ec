"""Where a model fails: subsets of the samples at parts of the orbit, found on one half of them.

A finding is a subset (a label, a value or a quantile of a column, a cluster) at some elements.
All subsets and all arcs are searched on one random half of the samples, and what was found is
judged on the other half, where it was not selected: its numbers are not the best of many by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import overload

import numpy as np

from .._lazy import xr
from .._text import counted, number, percent, plain, printable
from ..calibration import bounded_mean_interval, checked_level, unbounded_mean_interval
from ..errors import InputError, unknown_name, whole_number
from ..groups import Group
from ..store import FINISHED, Scan, ScanArrays, arrays_of
from ..tasks import quantity_rounding
from .molecule_violations import molecule_score_scope
from .sums_and_means import known_mean

Array = np.ndarray

LEAST = 8
"""Subsets with fewer samples in either half are not searched: too few to be confirmed."""
MOST_VALUES = 50
"""Columns of more texts than that name samples, not subsets."""
BINS = 4
"""Parts of equal size that a column of numbers is cut into."""
_EVERYTHING = "all samples"
_TINY = 1e-300
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Failure:
    """A subset of the samples that a model fails on at some elements.

    Shares and means are those of the half of the samples that was not searched; those of a sample
    are averaged over elements first.

    Attributes:
        model: The name of the model.
        column: What the subset is chosen by, such as `label`; empty for all samples.
        value: Its value in the column, or the range of it.
        elements: The indices of the elements.
        where: The elements, in words.
        samples: The samples of the subset among those that were not searched.
        wrong: The share of wrong predictions; NaN where there is no right and wrong.
        confidence: The mean confidence; NaN without one.
        harm: What failures are ranked by: the mean confidence in wrong predictions, which is 0
            where a prediction is right; of tasks without confidence the share of wrong
            predictions, and of tasks without classes `1 - score`, or the error.
        low: Lower limit of the harm, corrected for what was judged before.
        others: The same for all other samples at the same elements; NaN if there are none.
        elsewhere: The same for these samples at all other elements; NaN if there are none.
        excess: Harm in excess of the larger of the two, summed over samples and elements: about
            so many confidently wrong predictions would not be there without this failure.
        confirmed: Whether the harm is shown to be larger than both.
        sentence: The finding in a sentence.
    """

    model: str
    column: str
    value: str
    elements: tuple[int, ...]
    where: str
    samples: int
    wrong: float
    confidence: float
    harm: float
    low: float
    others: float
    elsewhere: float
    excess: float
    confirmed: bool
    sentence: str

    def to_dict(self) -> dict[str, object]:
        """Return the fields in plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Failures(Sequence[Failure]):
    """The confirmed failures of a scan, most harmful first.

    Attributes:
        found: Those that are confirmed; they are also the items of this sequence.
        open: Those that the searched half suggests and the other half does not confirm.
        searched: The number of subsets times parts of the orbit, and models, that were compared.
        level: The probability that none of the confirmed ones is due to chance.
        subsets: `[N]` for each subset by its column and value: which samples belong to it.
        scope: Which quantity of atoms was judged, and which were not, in a sentence; empty for
            other tasks.
    """

    found: tuple[Failure, ...]
    open: tuple[Failure, ...]
    searched: int
    level: float
    subsets: Mapping[tuple[str, str], Array]
    scope: str = ""

    @overload
    def __getitem__(self, index: int) -> Failure: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Failure, ...]: ...
    def __getitem__(self, index: int | slice) -> Failure | tuple[Failure, ...]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def samples_of(self, failure: Failure) -> Array:
        """Return the indices of all samples of a failure's subset, of both halves."""
        return np.flatnonzero(self.subsets[failure.column, failure.value])

    def to_dict(self) -> dict[str, object]:
        """Return the results in plain values, without the members of the subsets."""
        parts = {"found": self.found, "open": self.open}
        lists = {name: [one.to_dict() for one in part] for name, part in parts.items()}
        return {**lists, "searched": self.searched, "level": self.level, "scope": self.scope}

    def __str__(self) -> str:
        lines = [one.sentence for one in self.found]
        if not lines:
            some = f"; {counted(len(self.open), 'suspicion')} not confirmed" if self.open else ""
            among = f"{self.searched:,} subsets and parts of the orbit"
            lines = [f"no failure found among {among}{some}"]
        return "\n".join(filter(None, [*lines, self.scope]))


def failures(
    scan: Scan | xr.Dataset,
    by: Sequence[str] | str | None = None,
    *,
    columns: Mapping[str, object] | None = None,
    clusters: int = 0,
    most: int = 10,
    level: float = 0.95,
    seed: int = 0,
) -> Failures:
    r"""Find subsets of the samples and parts of the orbit where a model is confidently wrong.

    Subsets are labels, values of metadata columns and quarters of numeric ones, and all samples.
    Parts are arcs of a circle, intervals of a line, and any elements of other groups. With `h` the
    confidence in a wrong prediction (0 if it is right), the search takes the subset `S` and the
    part `I` with the largest

        E / sqrt(m (1 - m / M)),   E = sum of h - (mean of h) over S x I,   m = mass of S x I

    on one half of the samples, explains `h` there by its mean, and goes on, so that no failure is
    found twice. Each is then judged on the other half: it is confirmed if its mean `h` is larger
    than that of all other samples at the same elements, and for these samples larger than at all
    other elements, by the limits of `orbical.calibration.bounded_mean_interval` (of scores without
    bounds, `unbounded_mean_interval`, which are approximate). The j-th may err
    with probability `(1 - level) / 2^j`, and with what confirmed ones just before it may (the
    fallback procedure of Wiens and Dmitrienko, 2005). So, with independent samples, the probability
    that anything is confirmed by chance is at most `1 - level`, whatever was searched. The guide
    [from finding to cure](../guide/causes.md) shows its size and power.

    Args:
        scan: a scan, or its `data`.
        by: columns to choose subsets by; by default the labels and all metadata columns.
        columns: further columns `[N]`. They must not be computed from the predictions of the same
            model, as clusters of the map of responses are: samples that were chosen because they
            fail do fail.
        clusters: the number of clusters of the inputs (k-means), as further subsets; the scan must
            store its inputs, `keep="inputs"`.
        most: how many failures to judge, for each model. If none of them is confirmed or is about
            all samples, the positions at which all samples together fail most are judged, too.
        level: the probability that no confirmed failure is due to chance.
        seed: seed of the halves.

    Returns:
        The confirmed failures, and those that remain open.

    Raises:
        InputError: if there is no such column, or too few samples for two halves.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> def upper_half(images):  # finds light above, and is wrong if it is turned
        ...     return 9 * torch.stack([images[..., :4, :].sum((1, 2, 3)),
        ...                             images[..., 4:, :].sum((1, 2, 3))], 1)
        >>> scan = ob.scan(upper_half, (images, upper_half(images).argmax(1)),
        ...                group="rotations:12", task="classification", progress=False)
        >>> found = ob.nero.failures(scan)
        >>> found[0].where, found[0].confirmed
        ('between 120° and 270°', True)

    See Also:
        summary: How good a model is, all samples together.
        orbical.advise: What helps.

    References:
        Kulldorff, A spatial scan statistic, Communications in Statistics 1997; Neill, Fast subset
        scan for spatial pattern detection, JRSS B 2012, for elements without an order.
    """
    arrays = arrays_of(scan)
    most = whole_number("most", most, 1)
    checked_level(level)
    random = np.random.default_rng(whole_number("seed", seed, 0))
    clustered = {"cluster": _clusters_to_search(arrays, clusters, seed)} if clusters else {}
    subsets = _subsets_to_search(arrays, by, {**(columns or {}), **clustered})
    half = random.permutation(arrays.samples) < arrays.samples // 2
    subsets = {
        key: members
        for key, members in subsets.items()
        if min((members & half).sum(), (members & ~half).sum()) >= LEAST
    }
    if not subsets:
        raise InputError("scan", f"{2 * LEAST} samples at least", counted(arrays.samples, "sample"))
    members = np.stack([*subsets.values()])
    searched, judged = members & half, members & ~half
    shared, error = _shared(searched), (1 - level) / len(arrays.models)
    judged_failures: list[Failure] = []
    for model in range(len(arrays.models)):
        sums = _sums_of_failures(arrays, model, searched)
        candidates = [*_search_failures(sums, shared, arrays, most)]
        judge = partial(_judge_failures, arrays, model, names=[*subsets], members=judged)
        of_model = [*judge(candidates, error=error)]
        if not any(one.confirmed for one in of_model) and all(subset for subset, _ in candidates):
            # Small subsets can stand out more than what all samples suffer together.
            everything = [*_search_failures(sums[:, :1], shared[:1, :1], arrays, 1)]
            of_model += judge(everything, error=error / 2 ** len(candidates))
        judged_failures += of_model
    ranked = sorted(judged_failures, key=lambda one: -one.excess)
    return Failures(
        tuple(one for one in ranked if one.confirmed),
        tuple(one for one in ranked if not one.confirmed),
        len(subsets) * _count_parts(arrays.group) * len(arrays.models),
        level,
        subsets,
        molecule_score_scope(
            arrays, arrays.attributes(arrays.response_name("score")).get("units", "")
        ),
    )


def _subsets_to_search(
    arrays: ScanArrays, by: Sequence[str] | str | None, columns: Mapping[str, object]
) -> dict[tuple[str, str], Array]:
    """Return which samples belong to each subset, by column and value."""
    stored = [
        name
        for name, dims in arrays.dims.items()
        if dims[:1] == ("sample",) and np.prod(arrays.shape(name)) == arrays.samples
        if arrays.attributes(name).get("meaning") in ("truth", "metadata")
    ]
    given = {name: np.asarray(values) for name, values in columns.items()}
    for name, values in given.items():
        if values.shape != (arrays.samples,):
            expected = f"{arrays.samples} values of {name!r}"
            raise InputError("columns", expected, f"the shape {values.shape}")
    names = [*stored, *given] if by is None else [by] if isinstance(by, str) else [*by]
    subsets = {("", _EVERYTHING): np.ones(arrays.samples, bool)}
    for name in names:
        if name not in stored and name not in given:
            raise unknown_name("by", name, [*stored, *given])
        values = given[name] if name in given else arrays.read(name).reshape(-1)
        classes = arrays.settings.get("classes") if name == "label" else None
        for value, chosen in _column_subsets_to_search(values, classes):
            subsets[name, value] = chosen
    return subsets


def _clusters_to_search(arrays: ScanArrays, count: int, seed: int) -> Array:
    """Return the cluster of each sample's input, by k-means."""
    from sklearn.cluster import MiniBatchKMeans

    whole_number("clusters", count, 2)
    inputs = [name for name in arrays.dims if arrays.attributes(name).get("meaning") == "input"]
    if not inputs:
        remedy = "scan with keep='inputs'"
        raise InputError("clusters", "a scan with inputs", "none stored", remedy=remedy)
    rows = [arrays.read(name).reshape(arrays.samples, -1).astype(np.float32) for name in inputs]
    means = MiniBatchKMeans(count, random_state=seed, n_init=3)
    return np.asarray(means.fit_predict(np.nan_to_num(np.concatenate(rows, 1))))


def _column_subsets_to_search(values: Array, classes: object) -> Iterator[tuple[str, Array]]:
    """Yield the subsets of a column: its values, or quarters of many numbers."""
    numeric = values.dtype.kind in "iuf"
    names = classes if isinstance(classes, list) else []
    distinct = np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    if numeric and len(distinct) > MOST_VALUES and not names:
        edges = np.unique(np.nanquantile(values, np.linspace(0, 1, BINS + 1)))
        for low, high in pairwise(edges):
            chosen = (values >= low) & ((values < high) | ((values == high) & (high == edges[-1])))
            yield f"{number(low)} to {number(high)}", chosen
    elif len(distinct) <= max(MOST_VALUES, len(names)):
        text = str if values.dtype.kind == "b" else plain
        for value in distinct:
            named = names and 0 <= int(value) < len(names)
            yield text(names[int(value)] if named else value.item()), values == value


def _failure_harm(arrays: ScanArrays, rows: slice, model: int) -> tuple[Array, Array, Array]:
    """Return harm, what is wrong, and confidence, `[n, K]` each; NaN where there is none."""
    none = np.full(1, np.nan)
    if arrays.has_responses("correct"):
        wrong = 1 - arrays.responses("correct", rows, model, keep=False)
        if not arrays.has_responses("confidence"):
            return wrong, wrong, none
        sure = arrays.responses("confidence", rows, model, keep=False)
        return wrong * sure, wrong, sure
    name = arrays.response_name("score")
    values = arrays.responses(name, rows, model, keep=False)
    about = arrays.attributes(name)
    if about.get("higher_is_better", True):
        return (1.0 if _is_bounded(arrays) else 0.0) - values, none, none
    rounding = quantity_rounding(about.get("units", ""), higher_is_better=False)
    return np.where(np.abs(values) <= rounding, 0.0, values), none, none


def _is_bounded(arrays: ScanArrays) -> bool:
    """Check whether harm is between 0 and 1."""
    name = arrays.response_name("score")
    return arrays.has_responses("correct") or arrays.attributes(name).get("units") == "share"


def _shared(members: Array) -> Array:
    """Return how many samples two subsets have in common, `[S, S]`."""
    from scipy.sparse import csr_array

    chosen = csr_array(members.astype(np.float32))
    return np.asarray((chosen @ chosen.T).todense(), np.float64)


def _sums_of_failures(arrays: ScanArrays, model: int, members: Array) -> Array:
    """Return the number of values and the sum of harm of each subset, `[2, S, K]`."""
    from scipy.sparse import csr_array

    sums = np.zeros((2, len(members), len(arrays.group)))
    for rows in arrays.blocks(FINISHED):
        chosen = csr_array(members[:, rows].astype(np.float32))
        harm = _failure_harm(arrays, rows, model)[0]
        seen = np.isfinite(harm)
        sums[0] += members[:, rows].sum(1)[:, None] if seen.all() else chosen @ seen
        sums[1] += chosen @ np.where(seen, harm, 0)
    return sums


def _search_failures(
    sums: Array, shared: Array, arrays: ScanArrays, most: int
) -> Iterator[tuple[int, Array]]:
    """Yield subsets, by their index, and elements where there is harm in excess, most first.

    Args:
        sums: the number of values and the harm of each subset at each element, `[2, S, K]`.
        shared: how many samples two subsets have in common, `[S, S]`.
        arrays: the arrays of the scan.
        most: how many to yield at most.
    """
    mass, harm = sums * arrays.weights
    left = harm - mass * harm[0].sum() / max(mass[0].sum(), _TINY)
    least = _ROUNDING * float(np.abs(harm).max(initial=0))
    for _ in range(most):
        best, subset, elements = max(
            _best_parts_of_failures(left, mass, arrays.group), key=lambda one: one[0]
        )
        if not best > least:  # all is explained: what is left is rounding
            return
        yield subset, elements
        each = left[subset, elements] / np.maximum(mass[subset, elements], _TINY)
        left[:, elements] -= shared[:, [subset]] * each * arrays.weights[elements]


def _best_parts_of_failures(
    left: Array, mass: Array, group: Group
) -> Iterator[tuple[float, int, Array]]:
    """Yield for each length of arc, or for each subset, the part of the largest excess."""
    total, order = mass[0].sum(), _element_order(group)
    if order is None:  # the best elements of a subset are those with the most excess for their mass
        ranks = np.argsort(-left / np.maximum(mass, _TINY), 1, kind="stable")
        sums = [np.take_along_axis(part, ranks, 1).cumsum(1) for part in (left, mass)]
        score = _scan_statistic(sums[0], sums[1], total)
        for subset, last in enumerate(score.argmax(1)):
            yield float(score[subset, last]), subset, np.sort(ranks[subset, : last + 1])
        return
    closed, size = group.layout.kind == "circle", len(order)
    order = np.tile(order, 1 + closed)
    excess, masses = (np.pad(part[:, order].cumsum(1), ((0, 0), (1, 0))) for part in (left, mass))
    for length in range(1, size + 1):
        starts = size if closed else size - length + 1
        ends = slice(length, length + starts)
        sums = [part[:, ends] - part[:, :starts] for part in (excess, masses)]
        score = _scan_statistic(sums[0], sums[1], total)
        subset, start = map(int, np.unravel_index(score.argmax(), score.shape))
        yield float(score[subset, start]), subset, order[start : start + length]


def _element_order(group: Group) -> Array | None:
    """Return the elements in the order of a circle or a line; None for other groups."""
    order = group.layout.index.reshape(-1)
    known = group.layout.kind in ("circle", "line") and len(order) == len(group)
    return order if known else None


def _count_parts(group: Group) -> int:
    """Return the number of arcs or intervals, or of elements where there is no order."""
    size = len(group)
    if _element_order(group) is None:
        return size
    return size * (size - 1) + 1 if group.layout.kind == "circle" else size * (size + 1) // 2


def _scan_statistic(excess: Array, mass: Array, total: float) -> Array:
    """Return the excess in units of its deviation; that of nothing and of everything is 0."""
    size = mass * (1 - mass / total)
    known = (size > 1e-9 * total) & (excess > 0)
    return np.where(known, excess / np.sqrt(np.where(known, size, 1.0)), 0.0)


def _judge_failures(
    arrays: ScanArrays,
    model: int,
    candidates: Sequence[tuple[int, Array]],
    names: Sequence[tuple[str, str]],
    members: Array,
    error: float,
) -> Iterator[Failure]:
    """Judge candidates of a model on the samples `members` `[S, N]`, which were not searched.

    With probability `1 - error` none is confirmed by chance: the j-th may err with probability
    `error / 2^j`, and with what those just before it did not need, as they were confirmed.
    """
    inside = np.zeros((len(candidates), len(arrays.group)))
    for place, (_, elements) in enumerate(candidates):
        inside[place, elements] = arrays.weights[elements]
    outside = np.where(inside > 0, 0, arrays.weights)
    harm, harm_out, wrong, wrong_out, sure = np.full((5, len(candidates), arrays.samples), np.nan)
    for rows in arrays.blocks(FINISHED):
        one, two, three = _failure_harm(arrays, rows, model)
        for target, part, weight in (
            *((harm, one, inside), (harm_out, one, outside)),
            *((wrong, two, inside), (wrong_out, two, outside), (sure, three, inside)),
        ):
            target[:, rows] = _means(np.broadcast_to(part, one.shape), weight)
    bounded, carried = _is_bounded(arrays), 0.0
    for place, (subset, elements) in enumerate(candidates):
        chosen, others = members[subset], members[0] & ~members[subset]
        count = int(np.isfinite(harm[place, chosen]).sum())
        allowed = carried + error / 2 ** (place + 1)
        own = _failure_mean_limits(harm[place, chosen], 1 - allowed, bounded)
        besides = _failure_mean_limits(harm[place, others], 1 - allowed, bounded)
        apart = known_mean(harm_out[place, chosen])
        gains = harm[place, chosen] - harm_out[place, chosen]
        more = _failure_mean_limits(gains, max(1 - 2 * allowed, 1e-9), bounded, -1.0)
        # Without a mean there is nothing to compare with; a mean without limits shows nothing.
        exceeds_others = own[1] > (-np.inf if np.isnan(besides[0]) else besides[2])
        exceeds_elsewhere = np.isnan(more[0]) or more[1] > 0
        confirmed = bool(exceeds_others and exceeds_elsewhere)
        carried = allowed if confirmed else 0.0
        base = np.nanmax([besides[0], apart])
        failure = Failure(
            model=arrays.models[model],
            column=names[subset][0],
            value=names[subset][1],
            elements=tuple(map(int, elements)),
            where=_failed_elements_in_words(arrays.group, elements),
            samples=count,
            wrong=known_mean(wrong[place, chosen]),
            confidence=known_mean(sure[place, chosen]),
            harm=own[0],
            low=own[1],
            others=besides[0],
            elsewhere=apart,
            excess=float((own[0] - base) * count * len(elements)),
            confirmed=confirmed,
            sentence="",
        )
        rest = known_mean(wrong[place, others]), known_mean(wrong_out[place, chosen])
        yield replace(failure, sentence=_failure_search_sentence(failure, arrays, *rest))


def _means(values: Array, weights: Array) -> Array:
    """Return the weighted means `[P, n]` of values `[n, K]`, over those that are known."""
    seen = np.isfinite(values)
    mass = weights @ seen.T
    return weights @ np.where(seen, values, 0).T / np.where(mass > 0, mass, np.nan)


def _failure_mean_limits(
    values: Array, level: float, bounded: bool, least: float = 0.0
) -> tuple[float, float, float]:
    """Return the mean of what is known, and its limits."""
    known = values[np.isfinite(values)]
    if bounded:
        mean, low, high = bounded_mean_interval(known, level, low=least)
    else:
        mean, low, high = unbounded_mean_interval(known, level)
    return float(mean), float(low), float(high)


def _failed_elements_in_words(group: Group, elements: Array) -> str:
    """Describe which elements these are.

    >>> from orbical.groups import dihedral, rotations
    >>> [_failed_elements_in_words(rotations(12), np.array(n)) for n in ([10, 11, 0, 1], range(12))]
    ['between 300° and 30°', 'at all positions']
    >>> [_failed_elements_in_words(dihedral(4), np.array(n)) for n in ([1], range(5))]
    ['at angle 90, flip plain', 'at 5 of 8 positions']
    """
    if len(elements) == len(group):
        return "at all positions"
    ends = elements[[0, -1]]
    if len(elements) > 1 and _element_order(group) is not None:
        axis, *_ = group.layout.axes
        values = np.asarray(group.coords[axis])[ends] if axis in group.coords else ends
        sign = "°" if axis == "angle" else ""
        what = "" if axis == "angle" else f"{axis} "
        return f"{what}between {plain(values[0])}{sign} and {plain(values[1])}{sign}"
    if len(elements) <= 2:
        return "at " + " and ".join(group.name(int(element)) for element in elements)
    return f"at {len(elements)} of {len(group)} positions"


def _failure_search_sentence(
    failure: Failure, arrays: ScanArrays, others: float, elsewhere: float
) -> str:
    """Describe what was found, and the shares that are wrong in `others` and `elsewhere`."""
    subset = f"{failure.column} {failure.value}" if failure.column else failure.value
    model = f"{failure.model}: " if len(arrays.models) > 1 else ""
    if np.isnan(failure.wrong):
        what = "1 - score" if _is_bounded(arrays) else "error"
        finding = f"{what} {number(failure.harm)}"
        others, elsewhere = failure.others, failure.elsewhere
    else:
        finding = f"{_share(failure.wrong)} wrong"
        if not np.isnan(failure.confidence):
            finding += f" at {_share(failure.confidence)} mean confidence"
    rest = [
        f"{words} {number(value) if np.isnan(failure.wrong) else _share(value)}"
        for words, value in (("other samples there", others), ("these elsewhere", elsewhere))
        if not np.isnan(value)
    ]
    rest = [rest[0].replace("these elsewhere", "elsewhere")] if len(rest) == 1 else rest
    text = f"{model}{subset} {failure.where}: {finding}, n = {failure.samples}; {', '.join(rest)}"
    return printable(text)


def _share(value: float) -> str:
    return percent(value).replace("%", " %")
