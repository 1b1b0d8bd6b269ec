"""Measures of answers to multiple-choice questions at several orders of the options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from orbical import calibration

from .statistics import interval, share

LETTERS = "ABCDEFGH"
DRAWS = 50
"""Random choices of k orders for each question."""


@dataclass(frozen=True)
class OptionAnswers:
    """What a model answers to N questions with C options at K orders of them.

    Attributes:
        probabilities: `[N, K, C]`; the last axis are the options as the data list them.
        right: The right option `[N]`.
        orders: `[K, C]`: place p of order k shows option `orders[k, p]`; the first is as given.
    """

    probabilities: np.ndarray
    right: np.ndarray
    orders: np.ndarray

    @cached_property
    def predicted(self) -> np.ndarray:
        """The option of the largest probability, `[N, K]`."""
        return np.asarray(self.probabilities.argmax(-1))

    @cached_property
    def correct(self) -> np.ndarray:
        """Whether it is the right one, `[N, K]`."""
        return np.asarray(self.predicted == self.right[:, None])

    @cached_property
    def confidence(self) -> np.ndarray:
        """The largest probability, `[N, K]`."""
        return np.asarray(self.probabilities.max(-1))

    def places(self, options: np.ndarray) -> np.ndarray:
        """Return the places `[N, K]` at which options `[N, K]` stand."""
        standing = self.orders.argsort(1)
        return np.asarray(standing[np.arange(len(self.orders)), options])

    @cached_property
    def cyclic_classes(self) -> list[np.ndarray]:
        """The orders in classes that arise from each other by cyclic shifts."""
        classes: dict[tuple[int, ...], list[int]] = {}
        for index, order in enumerate(self.orders):
            start = int(np.flatnonzero(order == 0)[0])
            classes.setdefault(tuple(np.roll(order, -start)), []).append(index)
        return [np.array(members) for members in classes.values()]


def changes(answers: OptionAnswers, seed: int) -> dict[str, Any]:
    """Return accuracy, confidence and how much depends on the order."""
    correct, confidence = answers.correct.astype(float), answers.confidence
    largest = np.ptp(answers.probabilities, axis=1).max()
    return {
        "accuracy as given": interval(correct[:, 0], seed=seed),
        "accuracy, all orders": interval(correct.mean(1), seed=seed),
        "confidence": interval(confidence.mean(1), seed=seed),
        "confidence minus accuracy": interval((confidence - correct).mean(1), seed=seed),
        "answer changes": share((answers.predicted != answers.predicted[:, :1]).any(1)),
        "two orders disagree": interval(disagreement(answers.predicted), seed=seed),
        "largest change of a probability": float(largest),
    }


def disagreement(predicted: np.ndarray) -> np.ndarray:
    """Return the chance `[N]` that two different orders, drawn at random, disagree.

    >>> disagreement(np.array([[0, 0, 1], [2, 2, 2]])).round(3).tolist()
    [0.667, 0.0]
    """
    orders = predicted.shape[1]
    agreeing = (predicted[:, :, None] == predicted[:, None]).sum((1, 2)) - orders
    return np.asarray(1 - agreeing / (orders * (orders - 1)))


def chosen_shares(answers: OptionAnswers) -> np.ndarray:
    """Return how often each place is chosen, `[N, C]`, over the orders of a question."""
    chosen = answers.places(answers.predicted)
    return np.stack([(chosen == place).mean(1) for place in range(answers.orders.shape[1])], 1)


def distance_from_fair(shares: np.ndarray) -> float:
    """Return the share of choices that would have to move to make all places equally frequent.

    >>> distance_from_fair(np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]))
    0.5
    """
    mean = shares.mean(0)
    return float(np.abs(mean - 1 / len(mean)).sum() / 2)


def bias(answers: OptionAnswers, seed: int) -> dict[str, Any]:
    """Return the place that is chosen most, how often, and how far the choices are from fair."""
    shares = chosen_shares(answers)
    most = int(shares.mean(0).argmax())
    return {
        "chosen most": LETTERS[most],
        "chosen": interval(shares[:, most], seed=seed),
        "fair": 1 / shares.shape[1],
        "distance from fair": interval(shares, distance_from_fair, seed=seed),
    }


def by_place(answers: OptionAnswers, seed: int) -> Iterator[dict[str, Any]]:
    """Yield for each place how often it is chosen, and accuracy if the right option is there."""
    shares = chosen_shares(answers)
    standing = answers.places(np.broadcast_to(answers.right[:, None], answers.predicted.shape))
    for place in range(shares.shape[1]):
        here = standing == place

        def mean_here(values: np.ndarray, here: np.ndarray = here) -> np.ndarray:
            return np.asarray((values * here).sum(1) / here.sum(1))

        yield {
            "letter": LETTERS[place],
            "chosen": interval(shares[:, place], seed=seed),
            "accuracy, right answer here": interval(mean_here(answers.correct), seed=seed),
            "confidence, right answer here": interval(mean_here(answers.confidence), seed=seed),
        }


def by_order(answers: OptionAnswers) -> dict[str, Any]:
    """Return the best and the worst order, for all questions and for each of them."""
    accuracy = answers.correct.mean(0)
    errors = errors_by_order(answers)
    worst, best = int(accuracy.argmin()), int(accuracy.argmax())
    return {
        "worst order": order_name(answers.orders[worst]),
        "its accuracy": float(accuracy[worst]),
        "best order": order_name(answers.orders[best]),
        "accuracy of the best": float(accuracy[best]),
        "ECE from": float(errors.min()),
        "ECE to": float(errors.max()),
        "right at every order": share(answers.correct.all(1)),
        "right at some order": share(answers.correct.any(1)),
    }


def order_name(order: Iterable[int]) -> str:
    """Return the letters that the options had as given, in their new order.

    >>> order_name([1, 0, 2, 3])
    'B A C D'
    """
    return " ".join(LETTERS[option] for option in order)


def errors_by_order(answers: OptionAnswers) -> np.ndarray:
    """Return the expected calibration error at each order, `[K]`."""
    return calibration.ece(answers.confidence.T, answers.correct.T).numpy()


def averaged(answers: OptionAnswers, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what averaging the probabilities over some orders gains, and how many passes it takes.

    Each strategy is a set of ways to average, each of which gives one probability vector for
    each question; accuracy and ECE are means over these ways.
    """
    questions, orders, options = answers.probabilities.shape
    generator = np.random.default_rng(seed)

    def of_random(count: int) -> np.ndarray:
        draws = [
            [generator.choice(orders, count, replace=False) for _ in range(questions)]
            for _ in range(DRAWS)
        ]
        rows = np.arange(questions)[None, :, None]
        return np.asarray(answers.probabilities[rows, np.array(draws)].mean(2))  # [way, N, C]

    def of_classes(classes: Iterable[np.ndarray]) -> np.ndarray:
        return np.stack([answers.probabilities[:, members].mean(1) for members in classes])

    one = of_classes(np.arange(orders)[:, None])
    strategies = {
        "one order": (1, one),
        "2 random orders": (2, of_random(2)),
        f"{options} random orders": (options, of_random(options)),
        f"{options} cyclic orders": (options, of_classes(answers.cyclic_classes)),
        f"all {orders} orders": (orders, of_classes([np.arange(orders)])),
    }
    baseline = pairs_of(one, answers.right)
    for name, (passes, ways) in strategies.items():
        pairs = pairs_of(ways, answers.right)
        both = np.concatenate([pairs, baseline], 1)

        def gain(rows: np.ndarray, ways: int = len(ways)) -> float:
            return mean_error(rows[:, :ways]) - mean_error(rows[:, ways:])

        correct, start = pairs[..., 1].mean(1), baseline[..., 1].mean(1)
        yield {
            "averaged over": name,
            "passes": passes,
            "accuracy": interval(correct, seed=seed),
            "gain in accuracy": interval(correct - start, seed=seed),
            "ECE": mean_error(pairs),
            "change of ECE": interval(both, gain, resamples=200, seed=seed),
        }


def pairs_of(ways: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return confidence and correctness `[N, way, 2]` of averaged probabilities `[way, N, C]`."""
    return np.stack([ways.max(-1), ways.argmax(-1) == right], -1).swapaxes(0, 1)


def mean_error(pairs: np.ndarray) -> float:
    """Return the mean over ways of the expected calibration error of pairs `[N, way, 2]`."""
    return float(calibration.ece(pairs[..., 0].T, pairs[..., 1].T).mean())
