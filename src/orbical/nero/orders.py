"""What the order of options does to answers: positions that are preferred, worst orders, means."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from .._lazy import xr
from ..calibration import bounded_mean_interval, ece
from ..errors import InputError, whole_number
from ..groups import Group, cyclic_orders
from ..store import FINISHED, Scan, ScanArrays, arrays_of
from .sums_and_means import table_of_models, with_ends

Array = np.ndarray
_ANSWERS = 10**7
"""So many answers at most are computed for one number of orders: a second of work."""
_AT_ONCE = 10**6
_ROUNDING = 1e-5
"""The relative difference of equal probabilities that are computed in another order."""
NO_WORST = "no order is worse"


def position_bias(scan: Scan | xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Compute how often each position is chosen, and how far that is from fair.

        chosen(p)  share of answers at position p, over questions and orders
        fair(p)    share of answers there if every option were chosen as often wherever it is shown
        bias(p)    chosen(p) - fair(p)

    A model that ignores the order has a bias of exactly 0 at each position, with any sample of
    orders. Where all options come equally often to each position, as by all orders or the cyclic
    ones, fair is 1 / n, and the interval of the bias is that of chosen less 1 / n. Elsewhere, what
    is fair depends on the question, and the interval is that of the mean difference.

    Args:
        scan: a scan whose classes are the options that its group reorders, or its `data`.
        level: nominal coverage of the intervals, which are over questions.

    Returns:
        A dataset of `chosen`, `fair` and `bias` `[model, position]` with `chosen_low`,
        `chosen_high`, `bias_low` and `bias_high`; `distance` `[model]`, half the sum of all |bias|,
        an estimate that chance makes larger than 0; `log_bias` `[model, position]`, the mean log
        probability at a position less that of the same options anywhere, which is what a model
        adds to the logit there, less its mean (NaN without probabilities, or if one is 0, whose log
        is unknown); and with labels `accuracy` of questions whose right option is shown at a
        position, with `accuracy_low` and `accuracy_high`.

    Raises:
        InputError: if classes are not the options of an order.

    See Also:
        worst_orders: The order of each question that a model answers worst.
        order_averages: What averaging over orders gains.

    Example:
        >>> import orbical as ob
        >>> def first(question, options):
        ...     return [[2.0, 0.0, 0.0] for row in options]
        >>> data = [("Which is a fruit?", ["a stone", "an apple", "a hat"], "B")]
        >>> scan = ob.scan(first, data, group="permutations:3", task="choice", progress=False)
        >>> ob.nero.position_bias(scan)["bias"].values.round(3).tolist()
        [[0.667, -0.333, -0.333]]
    """
    arrays = arrays_of(scan)
    orders, weights = _orders(arrays), arrays.weights / arrays.weights.sum()
    tables = []
    for model in range(len(arrays.models)):
        predicted, probabilities, done = _chosen_options(arrays, model)
        labels = arrays.read("label")[done] if "label" in arrays else None
        tables.append(
            _position_shares_of_orders(predicted, probabilities, labels, orders, weights, level)
        )
    names = [chr(65 + place) for place in range(orders.shape[1])]
    return table_of_models(arrays, tables, {"position": names}, level=level)


def _position_shares_of_orders(
    predicted: Array,
    probabilities: Array | None,
    labels: Array | None,
    orders: Array,
    weights: Array,
    level: float,
) -> dict[str, Array]:
    """Return what is known of one model's positions, from predicted options `[N, K]`."""
    count = orders.shape[1]
    place = np.argsort(orders, axis=1)  # of option o in order k
    among = predicted < count  # a tie or a refusal has no position
    shown = np.where(among, np.take_along_axis(place, np.minimum(predicted, count - 1).T, 1).T, -1)
    chosen = np.stack([(shown == p) @ weights for p in range(count)], -1)
    by_option = np.stack([(predicted == o) @ weights for o in range(count)], -1)
    at = np.stack([(place == p).T @ weights for p in range(count)], -1)  # [option, position]
    fair = by_option @ at
    table = _mean_shares("chosen", chosen, level)
    table |= _mean_shares("bias", chosen - fair, level, -at.max(0), 1 - at.min(0))
    table |= {"fair": fair.mean(0), "distance": np.asarray(np.abs(table["bias"]).sum() / 2)}
    table["log_bias"] = _log_bias_of_orders(probabilities, orders, weights)
    if labels is None or not (labels < count).any():
        return table
    placed = labels < count  # a tie that is right has no position
    right = (predicted == labels[:, None])[placed].astype(float)
    where = place.T[labels[placed]]  # [N, K], where the right option is shown
    inside = (where[..., None] == np.arange(count)) * weights[:, None]
    with np.errstate(invalid="ignore"):
        share = np.einsum("nk,nkp->np", right, inside) / inside.sum(1)
    return table | _mean_shares("accuracy", share, level)


def _mean_shares(
    name: str, values: Array, level: float, low: Array | float = 0.0, high: Array | float = 1.0
) -> dict[str, Array]:
    """Return the mean over samples of `[N, P]`, and the ends of its interval, by their names.

    The interval is that of a share, moved and stretched to `low` and `high`, so that a share less a
    constant has the interval of the share less the constant.
    """
    width = np.subtract(high, low)
    shares = np.clip(((values - low) / width).T, 0, 1)
    whole = shares.round()
    exact = np.allclose(shares, whole, rtol=0, atol=1e-12)  # sums of weights are rounded
    found = bounded_mean_interval(whole.astype(bool) if exact else shares, level)
    return with_ends(name, (np.asarray(low + width * part) for part in found))


def _log_bias_of_orders(probabilities: Array | None, orders: Array, weights: Array) -> Array:
    """Return what a model adds to the log probability of each position, less its mean."""
    count = orders.shape[1]
    if probabilities is None or not (probabilities[..., :count] > 0).all():
        return np.full(count, np.nan)
    options = np.log(probabilities[..., :count].astype(float))
    options = options - options.mean(-1, keepdims=True)  # without the normalization of each order
    apart = options - np.einsum("k,nko->no", weights, options)[:, None]
    by_position = np.take_along_axis(apart, orders[None], 2)
    bias: Array = np.einsum("k,nkp->p", weights, by_position) / len(by_position)
    return bias


def worst_orders(scan: Scan | xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Find the worst order of each question, and how many questions every order answers correctly.

    Args:
        scan: a labeled scan of a choice among options, or its `data`.
        level: nominal coverage of the intervals, which are over questions.

    Returns:
        A dataset of `order` `[model, sample]`, the name of the worst order by the probability of
        the right option (the first of several that differ by rounding alone, and "no order is
        worse" where all do), its `score`, and `correct`, the share of orders that are answered
        correctly; and of `always`, `sometimes` and `never` `[model]`, the shares of questions that
        are answered correctly in all, some or no orders, each with `_low` and `_high`.

    Raises:
        InputError: if there are no labels, or classes are not the options of an order.

    See Also:
        position_bias: How often each position is chosen.

    Example:
        >>> import orbical as ob
        >>> def first(question, options):
        ...     return [[2.0, 0.0] for row in options]
        >>> data = [("Which is a fruit?", ["a stone", "an apple"], "B")]
        >>> scan = ob.scan(first, data, group="permutations:2", task="choice", progress=False)
        >>> found = ob.nero.worst_orders(scan)
        >>> found["order"].values.tolist(), found["sometimes"].values.tolist()
        ([['A B']], [1.0])
    """
    arrays = arrays_of(scan)
    if "correct" not in arrays:
        raise InputError("scan", "a labeled choice", "one without right and wrong predictions")
    tables = (_worst_order_of_each(arrays, model, level) for model in range(len(arrays.models)))
    return table_of_models(arrays, tables, {"sample": None}, level=level)


def _worst_order_of_each(arrays: ScanArrays, model: int, level: float) -> dict[str, Array]:
    """Return the worst order of each question for one model, and shares of questions."""
    group = arrays.group
    names = np.array([group.name(place).removeprefix("order ") for place in range(len(group))])
    score = arrays.read("score", model=model)
    done = np.isfinite(score).all(1)
    known = np.where(np.isnan(score), np.inf, score)
    tied = known <= known.min(1, keepdims=True) * (1 + _ROUNDING)
    worst = tied.argmax(1)
    correct = arrays.read("correct", model=model).astype(float).mean(1)
    table: dict[str, Array] = {
        "order": np.where(done, np.where(tied.all(1), NO_WORST, names[worst]), ""),
        "score": np.where(done, score[np.arange(len(score)), worst], np.nan),
        "correct": np.where(done, correct, np.nan),
    }
    always, never = correct == 1, correct == 0
    for kind, marks in (("always", always), ("never", never), ("sometimes", ~(always | never))):
        table |= with_ends(kind, bounded_mean_interval(marks[done], level))
    return table


def order_averages(
    scan: Scan | xr.Dataset,
    random: Sequence[int] = (2, 4, 8),
    *,
    bins: int = 15,
    level: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Compute what averaging over orders gains in accuracy and calibration, and what it costs.

    Probabilities of options that a scan stored are averaged over some orders, so no model runs
    again: one order; k random ones; those of a cycle, if the scan has them; and all. Numbers are
    means over all sets of orders that could be used. Only where sets of k orders, times questions,
    are more than 10 million, sets are drawn, so many that this product is 10 million.

    Args:
        scan: a labeled scan of a choice among options, or its `data`.
        random: numbers of random orders.
        bins: bins of the calibration error.
        level: nominal coverage of the intervals of accuracies, which are over questions.
        seed: seed of the sets that are drawn.

    Returns:
        A dataset of `accuracy` with `accuracy_low` and `accuracy_high`, of `ece`, and of `changed`,
        the share of questions whose answer depends on which orders are averaged; of
        `accuracy_error` and `ece_error`, standard errors of what is drawn, 0 for means over all
        sets, `[model, orders]`; and of `cost` `[orders]`, the passes of the model for one answer.

    Raises:
        InputError: if the scan has no labels or probabilities of options.

    See Also:
        position_bias: What averaging removes.
        averaging: The same for other groups.

    Example:
        >>> import orbical as ob
        >>> def longest(question, options):
        ...     return [[len(text) + 4.0 * (p == 0) for p, text in enumerate(row)]
        ...             for row in options]
        >>> data = [("Which is a fruit?", ["a stone", "an apple", "a hat"], "B")]
        >>> scan = ob.scan(longest, data, group="permutations:3", task="choice", progress=False)
        >>> found = ob.nero.order_averages(scan, random=[2])
        >>> found["orders"].values.tolist(), found["accuracy"].values.round(2).tolist()
        (['1', '2 random', 'cyclic', 'all'], [[0.33, 0.6, 1.0, 1.0]])
    """
    arrays = arrays_of(scan)
    _orders(arrays)
    for name in ("probabilities", "label"):
        if name not in arrays:
            raise InputError("scan", "a labeled choice with probabilities", f"none of {name}")
    size = len(arrays.group)
    numbers = {whole_number("random", number, 1) for number in random}
    drawn = [number for number in sorted(numbers) if 1 < number < size]
    cycles = _cyclic_sets_of_orders(arrays.group)
    costs = {"1": 1, **{f"{number} random": number for number in drawn}}
    costs |= {"cyclic": cycles.shape[1]} if len(cycles) else {}
    costs |= {"all": size}
    tables = []
    for model in range(len(arrays.models)):
        _, probabilities, done = _chosen_options(arrays, model)
        assert probabilities is not None
        labels = arrays.read("label")[done]
        each = []
        for name, cost in costs.items():
            sets, every = _sets_of_orders(size, cost, len(labels), seed), math.comb(size, cost)
            if name == "cyclic":
                sets, every = iter([cycles]), len(cycles)
            each.append(_measure_order_averages(probabilities, labels, sets, every, bins, level))
        tables.append({name: np.array([one[name] for one in each]) for name in each[0]})
    means = table_of_models(arrays, tables, {"orders": [*costs]}, level=level)
    return means.assign(cost=("orders", [*costs.values()]))


def _measure_order_averages(
    probabilities: Array, labels: Array, sets: Iterable[Array], every: int, bins: int, level: float
) -> dict[str, float]:
    """Measure the means over sets of orders `[S, k]`, which come in parts, of so many in all."""
    right, changed = np.zeros(len(labels)), np.zeros(len(labels), bool)
    first, of_sets = None, []
    by_order = probabilities.swapaxes(0, 1).astype(np.float64)
    for chosen in sets:
        shares = np.zeros((len(chosen), len(by_order)))
        np.put_along_axis(shares, chosen, 1 / chosen.shape[1], 1)
        means = np.tensordot(shares, by_order, 1)
        confidence = means.max(-1)
        predicted = (means >= confidence[..., None] * (1 - _ROUNDING)).argmax(-1)  # first of a tie
        first = predicted[0] if first is None else first
        correct = predicted == labels
        right += correct.sum(0)
        changed |= (predicted != first).any(0)
        errors = ece(torch.as_tensor(confidence), torch.as_tensor(correct), bins=bins)
        of_sets.append(np.stack([correct.mean(1), errors.numpy()]))
    each = np.concatenate(of_sets, 1)
    count = each.shape[1]
    terms = right.astype(bool) if count == 1 else right / count
    spreads = each.std(1) / math.sqrt(count) * (count < every)
    return with_ends("accuracy", map(float, bounded_mean_interval(terms, level))) | {
        "ece": float(each[1].mean()),
        "changed": float(changed.mean()),
        "accuracy_error": float(spreads[0]),
        "ece_error": float(spreads[1]),
    }


def _sets_of_orders(size: int, number: int, questions: int, seed: int) -> Iterator[Array]:
    """Yield all sets of so many of the orders, or random ones if those are too many."""
    most, part = max(1, _ANSWERS // max(1, questions)), max(1, _AT_ONCE // max(questions, size))
    if math.comb(size, number) <= most:
        every = itertools.combinations(range(size), number)
        while some := list(itertools.islice(every, part)):
            yield np.array(some)
        return
    rng = np.random.default_rng(seed)
    for start in range(0, most, part):
        draws = rng.random((min(part, most - start), size))
        yield draws.argpartition(number, axis=1)[:, :number]


def _cyclic_sets_of_orders(group: Group) -> Array:
    """Return the sets `[S, n]` of elements of a scan that turn an order, if it has whole ones."""
    turns = cyclic_orders(group.parts["rows"].shape[1])
    if len(turns) >= len(group):
        return np.zeros((0, len(turns)), int)
    cycles = [
        group.index_of(turns.compose(group[np.full(len(turns), place)]))
        for place in range(len(group))
    ]
    whole = {tuple(sorted(cycle.tolist())) for cycle in cycles if (cycle >= 0).all()}
    return np.array(sorted(whole), int).reshape(-1, len(turns))


def _orders(arrays: ScanArrays) -> Array:
    """Return the orders `[K, n]` of a scan of options, or refuse another one."""
    of_options = "position" in arrays or arrays.settings.get("representation") == "options"
    if not of_options or "rows" not in arrays.group.parts or "predicted" not in arrays:
        expected = "a scan of options that the group reorders"
        remedy = "scan with task='choice', or with representation='options'"
        raise InputError("scan", expected, arrays.group.spec, remedy=remedy)
    return arrays.group.parts["rows"]


def _chosen_options(arrays: ScanArrays, model: int) -> tuple[Array, Array | None, Array]:
    """Return chosen options `[N, K]` and their probabilities `[N, K, C]` of finished questions."""
    done = np.isfinite(arrays.read(FINISHED, model=model)).all(1)
    predicted = arrays.read("predicted", model=model)[done].astype(int)
    if "probabilities" not in arrays:
        return predicted, None, done
    return predicted, arrays.read("probabilities", model=model)[done], done
