"""Differences between losses, seed by seed, and what decides: paired t tests, Holm's correction.

The trainings on sentence pairs and on Tiny ImageNet are judged here, by the rules of the page, and
parts of the paper's Table 1, by how near a training is to the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import nct, t, ttest_1samp

from orbical.calibration import holm

from ..framework import verdict, where
from .nli import choices
from .settings import BASELINE, BATCH, FRESH, INNER, SMALLER_BATCHES

ALPHA, POWER = 0.05, 0.8


@dataclass(frozen=True)
class Change:
    """A change of a score, seed by seed.

    Attributes:
        mean: Over seeds.
        deviation: Standard deviation over seeds.
        p: Of a two-sided paired t test.
        detectable: The change that as many seeds detect with a power of 80 %.
        seeds: Their number.
    """

    mean: float
    deviation: float
    p: float
    detectable: float
    seeds: int


def paired(ours: pd.Series, theirs: pd.Series) -> Change:
    """Compare two settings trained with the same seeds.

    Args:
        ours: Scores, indexed by seed.
        theirs: Those that are subtracted; seeds that only one has are left out.

    Returns:
        The change.

    Example:
        >>> seeds = [1, 2, 3, 4]
        >>> found = paired(pd.Series([3.0, 2, 4, 3], seeds), pd.Series([5.0, 4, 5, 4], seeds))
        >>> found.mean, round(found.p, 3), round(found.detectable, 2)
        (-1.5, 0.014, 1.23)
    """
    change = (ours - theirs).dropna().to_numpy()
    if len(change) < 2:
        unknown = float("nan")
        return Change(
            change.mean() if len(change) else unknown, unknown, unknown, unknown, len(change)
        )
    deviation = float(np.std(change, ddof=1))
    p = float(ttest_1samp(change, 0.0).pvalue) if deviation else float(not change.any())
    reach = deviation / len(change) ** 0.5 * _noncentrality(len(change))
    return Change(float(change.mean()), deviation, p, reach, len(change))


@cache
def _noncentrality(count: int) -> float:
    """Return how many standard errors a change must have to be detected."""
    limit = t.ppf(1 - ALPHA / 2, count - 1)
    return float(brentq(lambda size: nct.sf(limit, count - 1, size) - POWER, 0.1, 50.0))


def outcome(changes: Iterable[Change]) -> str:
    """Decide whether all changes go down: `confirmed`, `contradicted` or `open`.

    Confirmed if every one is below 0 with p < 0.05 after Holm's correction for their number,
    contradicted if one is above 0 with that certainty, and open otherwise.

    Example:
        >>> down, up = (Change(size, 0.1, 0.001, 0.1, 5) for size in (-1.0, 1.0))
        >>> outcome([down, down]), outcome([down, up]), outcome([down, Change(-1.0, 9, 0.7, 9, 5)])
        ('confirmed', 'contradicted', 'open')
    """
    given = list(changes)
    certain = [p < ALPHA for p in holm([change.p for change in given])]
    up = any(sure and change.mean > 0 for sure, change in zip(certain, given, strict=True))
    return verdict(all(certain) and not up, refuted=up)


SENSITIVE = 3
"""Standard deviations over seeds that a sensitive loss spans with its inner parameter."""

_SMALLER = [(loss, batch) for batch in SMALLER_BATCHES for loss in (BASELINE, "ESD")]


@dataclass(frozen=True)
class Claim:
    """Differences that decide together, in points.

    Attributes:
        changes: By what is compared.
        missing: What is compared there but was not trained.
    """

    changes: Mapping[str, Change]
    missing: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """`confirmed`, `contradicted` or `open`; without all its trainings never confirmed.

        >>> down, up = (Change(size, 0.1, 0.001, 0.1, 5) for size in (-1.0, 1.0))
        >>> Claim({"ESD": down}).outcome, Claim({"ESD": down}, ("MMCE",)).outcome
        ('confirmed', 'open')
        >>> Claim({"ESD": up}, ("MMCE",)).outcome
        'contradicted'
        """
        never = Change(0.0, 0.0, 1.0, 0.0, 0)  # a difference nobody measured, in Holm's correction
        return outcome([*self.changes.values(), *(never for _ in self.missing)])


Asked = TypeVar("Asked")


def _compared(
    pairs: Mapping[str, tuple[Asked, Asked]], scores: Callable[[Asked], pd.Series], seeds: int
) -> Claim:
    """Compare pairs of settings; those without all seeds are missing.

    Args:
        pairs: Name to what is compared with what.
        scores: Returns the scores of a setting, indexed by seed.
        seeds: How many seeds a comparison needs.

    Returns:
        The claim.
    """
    found = {name: paired(*map(scores, both)) for name, both in pairs.items()}
    missing = tuple(name for name, change in found.items() if change.seeds < seeds)
    return Claim({n: c for n, c in found.items() if n not in missing}, missing)


def _claims_of_table_1(
    losses: Iterable[str],
    scores: Callable[[Any], pd.Series],
    seeds: int,
    **others: Mapping[str, tuple[Any, Any]],
) -> dict[str, Claim]:
    """Return what the paper says of its Table 1, and what we do, by name.

    `lower`: a calibration loss lowers the ECE; `best`: ESD has the lowest; `scaled`: after scaling
    ESD stays ahead; `temperature` (ours): one temperature does better than every loss.

    Args:
        losses: The calibration losses that were trained.
        scores: Returns the scores of `(loss, column)`, indexed by seed.
        seeds: How many seeds a comparison needs.
        others: More claims, as pairs of what `scores` takes.
    """
    own, usual, scaled = [*losses], "test.ece", "test_ts.ece"
    asked = {
        "lower": {loss: ((loss, usual), (BASELINE, usual)) for loss in own},
        "best": {loss: (("ESD", usual), (loss, usual)) for loss in own if loss != "ESD"},
        "scaled": {"ESD": (("ESD", scaled), (BASELINE, scaled))},
        "temperature": {loss: ((BASELINE, scaled), (loss, usual)) for loss in own},
    }
    return {n: _compared(pairs, scores, seeds) for n, pairs in (asked | others).items()}


class SentencePairs:
    """The trainings on sentence pairs.

    Args:
        rows: The table `nli`.

    Attributes:
        chosen: Loss to the lambda that the validation pairs chose.
        claims: Name to what it rests on.
        spans: Loss to the test ECE by inner parameter (points), and how many standard deviations
            over the deciding seeds it spans.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows
        self.chosen = choices(rows.to_dict("records"))
        batch = {
            str(b): (("ESD", "test.ece", b), (BASELINE, "test.ece", b)) for b in SMALLER_BATCHES
        }
        self.claims = _claims_of_table_1(INNER, self._scores, len(FRESH), batch=batch)
        self.spans = {loss: self._span(loss) for loss in ("MMCE", "SB-ECE")}

    def of(self, loss: str, batch: int = BATCH) -> pd.DataFrame:
        """Return the deciding trainings of a loss at its chosen lambda."""
        weight = 0.0 if loss == BASELINE else self.chosen[loss].choice
        usual = INNER.get(loss, (0.0,))[0]
        rows = where(self.rows, loss=loss, weight=weight, inner=usual, batch=batch)
        return rows[rows["seed"].isin(FRESH)]

    @property
    def table(self) -> list[tuple[str, float, int, pd.DataFrame]]:
        """List what was trained at the chosen lambda: loss, lambda, batch size and trainings."""
        every = [*((loss, BATCH) for loss in (BASELINE, *INNER)), *_SMALLER]
        return [
            (loss, 0.0 if loss == BASELINE else self.chosen[loss].choice, batch, found)
            for loss, batch in every
            for found in [self.of(loss, batch)]
        ]

    def _scores(self, asked: tuple[Any, ...]) -> pd.Series:
        loss, column, *batch = asked
        return 100 * self.of(loss, *batch).set_index("seed")[column]

    def _span(self, loss: str) -> tuple[pd.Series, float]:
        rows = where(self.rows, loss=loss, seed=0, weight=self.chosen[loss].choice)
        each = 100 * rows.set_index("inner")["test.ece"].sort_index()
        return each, float((each.max() - each.min()) / (100 * self.of(loss)["test.ece"].std()))

    @property
    def sensitive(self) -> bool:
        """Whether both losses are sensitive to their inner parameter."""
        return all(spanned > SENSITIVE for _, spanned in self.spans.values())


def tiny_claim(rows: pd.DataFrame) -> Claim:
    """Compare each loss on Tiny ImageNet with the likelihood alone, in points of ECE."""
    scores = {loss: 100 * own.set_index("seed")["test.ece"] for loss, own in rows.groupby("loss")}
    plain = scores.pop(BASELINE)
    return Claim({loss: paired(scores[loss], plain) for loss in INNER})


TABLE_1 = {"mnist": (0.988, 0.0091), "cifar10": (0.929, 0.0549), "cifar100": (0.684, 0.238)}
TABLE_1 |= {"snli": (0.902, 0.042), "lingnli": (0.494, 0.359)}
"""Accuracy and ECE of the likelihood alone in the paper's Table 1; LingNLI stands for ANLI."""

ACCURACY, ECE = 0.015, 0.25
"""Difference in accuracy, and share of the paper's ECE, that count as one."""

LOSSES = ("MMCE", "SB-ECE", "ESD")


def distance(paper: tuple[float, float], row: Mapping[str, float]) -> float:
    """Return how far test scores are from the paper's; up to 1 they count as the same regime.

    >>> round(distance((0.929, 0.0549), {"test.accuracy": 0.92, "test.ece": 0.068}), 2)
    0.95
    """
    apart = abs(row["test.accuracy"] - paper[0]) / ACCURACY
    return max(apart, abs(row["test.ece"] / paper[1] - 1) / ECE)


def distance_of(plain: pd.DataFrame, data: str) -> float:
    """Return how far the likelihood alone is from the paper's, as a mean over its trainings."""
    return distance(TABLE_1[data], plain[["test.accuracy", "test.ece"]].mean().to_dict())


class Table1:
    """A part of the paper's Table 1: the likelihood alone, and each loss as it was chosen.

    Args:
        trained: Loss to its trainings with the seeds that decide, the likelihood alone included.
        data: The data set.
        least: How many seeds decide.

    Attributes:
        claims: Name to what it rests on: `lower`, `best`, `scaled` and `temperature`.
    """

    def __init__(self, trained: Mapping[str, pd.DataFrame], data: str, least: int) -> None:
        self.trained = trained
        self.plain, own = trained[BASELINE], (loss for loss in LOSSES if loss in trained)
        self.claims = _claims_of_table_1(own, self._scores, least)
        self.distance = distance_of(self.plain, data)

    def verdict(self, name: str) -> str:
        """Return what a claim of the paper comes to: `open` outside the paper's regime."""
        return self.claims[name].outcome if self.distance <= 1 else "open"

    def change(self, loss: str, column: str = "test.ece") -> Change:
        """Compare a loss with the likelihood alone, in points."""
        return paired(self._scores((loss, column)), self._scores((BASELINE, column)))

    def _scores(self, asked: tuple[str, str]) -> pd.Series:
        loss, column = asked
        return 100 * self.trained[loss].set_index("seed")[column]


def gains(regime: str, trained: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """Yield what each loss gains against the ECE of the likelihood alone, in points.

    Args:
        regime: Data and network.
        trained: Loss to its trainings of as many epochs, the likelihood alone included.
    """
    plain = trained[BASELINE].set_index("seed")
    for loss in LOSSES:
        own = trained[loss].set_index("seed")
        ece, cost = (paired(100 * own[c], 100 * plain[c]) for c in ("test.ece", "test.accuracy"))
        if ece.seeds:
            shared = plain.loc[plain.index.intersection(own.index), "test.ece"]
            yield {
                **{"regime": regime, "epochs": int(plain["epochs"].iloc[0])},
                **{"loss": loss, "seeds": ece.seeds},
                **{"ece": 100 * float(shared.mean()), "gain": -ece.mean, "cost": -cost.mean},
                "deviation": ece.deviation,
            }
