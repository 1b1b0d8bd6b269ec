"""Differences between networks, with intervals that cover both sources of chance: images and seeds.

Test images are resampled, the same ones for all networks of a data set, and so are the seeds of
each network. An interval is the estimate plus the deviations of the draws from their own mean, so
that the bias of a resampled ECE, which all networks share, does not move it.

An estimate is an array `[measures, 1 + draws]`: the value on the test set, then the draws. What is
compared is a function of the estimates of all networks of a data set: `orders` or `sizes`.
`coverage` measures how often the intervals contain the truth, on simulated networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from orbical import calibration

from ..framework import Results
from ..framework.statistics import DRAWS, interval, over_seeds, resampled_rows
from .settings import EQUALS, FAMILIES, PLAIN, Settings
from .training import BINS

Pair = tuple[Tensor, Tensor]
Found = Mapping[tuple[str, float], np.ndarray]  # estimates by network and blur
Contrast = tuple[str, float | str, str, np.ndarray]  # family, blur, name and estimate
# The last is signed, confidence minus accuracy. It was added after ECE and ESD had been seen, and
# decides nothing.
MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": lambda confidence, correct: correct.double().mean(-1),
    "ece": lambda confidence, correct: calibration.ece(confidence, correct, bins=BINS),
    "esd": calibration.esd,
    "overconfidence": lambda confidence, correct: (confidence.double() - correct.double()).mean(-1),
}


def measures(confidence: Tensor, correct: Tensor) -> dict[str, Any]:
    """Measure accuracy, ECE, ESD and confidence minus accuracy, with intervals."""
    row: dict[str, Any] = {"galaxies": len(correct), "confidence": float(confidence.mean())}
    found = {
        "accuracy": calibration.share_interval(correct, confidence),
        "ece": calibration.interval("ece", confidence, correct, bins=BINS),
        "esd": calibration.interval("esd", confidence, correct),
        "overconfidence": calibration.mean_interval(
            confidence.double() - correct.double(),
            torch.zeros_like(confidence),
            confidence * (1 - confidence),
        ),
    }
    for name, one in found.items():
        row[name] = float(one.value)
        row[f"{name}_low"], row[f"{name}_high"] = float(one.low), float(one.high)
    row["ece_calibrated"] = float(found["ece"].calibrated)
    row["ece_calibrated_high"] = float(found["ece"].calibrated_high)
    return row


def estimated(seeds: Sequence[Pair], images: Tensor, generator: np.random.Generator) -> np.ndarray:
    """Measure a network over its seeds, on the test images and on resampled images.

    Args:
        seeds: Confidences and correctness of each seed, `[N]`.
        images: Rows of the test set, `[draws, N]`.
        generator: Of the draws of seeds.

    Returns:
        An estimate of all `MEASURES`.
    """
    every = torch.cat([torch.arange(images.shape[1])[None], images])
    drawn = [(confidence[every], correct[every]) for confidence, correct in seeds]
    each = [np.stack([of(*pair).numpy() for pair in drawn], -1) for of in MEASURES.values()]
    return over_seeds(np.stack(each), generator)


def slope(along: Mapping[int, np.ndarray]) -> np.ndarray:
    """Fit the least-squares slope against the logarithm of the order: the change per doubling.

    >>> slope({1: np.array([0.25]), 2: np.array([0.5]), 4: np.array([0.75])})
    array([0.25])
    """
    orders = sorted(along)
    at = np.log2(orders) - np.log2(orders).mean()
    return np.tensordot(at / np.square(at).sum(), np.stack([along[n] for n in orders]), axes=1)


def contrast_rows(
    data: str,
    outputs: Mapping[tuple[str, float], Sequence[Pair]],
    compare: Callable[[Found], Iterator[Contrast]],
) -> list[dict[str, Any]]:
    """Compare the networks of one data set.

    Args:
        data: Its name.
        outputs: Confidences and correctness of each seed, by network and blur.
        compare: What to compare, `orders` or `sizes`.

    Returns:
        Rows with `family`, `blur`, `measure`, `contrast` and the value with its interval. The
        family `both` at the blur `all` is the mean over families and blurs, draw by draw.
    """
    images = torch.from_numpy(resampled_rows(len(next(iter(outputs.values()))[0][0])))
    generator = np.random.default_rng(0)
    found = {key: estimated(seeds, images, generator) for key, seeds in outputs.items()}
    return [
        {"data": data, "family": family, "blur": blur, "measure": measure, "contrast": name}
        | interval(estimate[place])._asdict()
        for contrasts in _with_means([*compare(found)])
        for place, measure in enumerate(MEASURES)
        for family, blur, name, estimate in contrasts
    ]


def _with_means(apart: list[Contrast]) -> tuple[list[Contrast], list[Contrast]]:
    """Return contrasts, and for each name the mean over families and blurs."""
    means: list[Contrast] = []
    for name in dict.fromkeys(name for _, _, name, _ in apart):
        alike = [estimate for _, _, other, estimate in apart if other == name]
        means.append(("both", "all", name, np.mean(alike, axis=0)))
    return apart, means


def orders(found: Found) -> Iterator[Contrast]:
    """Compare groups of several orders with each other and with the plain network.

    `slope` per doubling of the order; `gain` of the largest order over the plain network, `early`
    of order 4 over it, `late` of the largest over order 4; `blur`, most blur minus none of the
    largest; and `gain lost`, the gain without blur minus that with most.
    """
    yield from _along(found)
    yield from _over_blurs(found)


def sizes(found: Found) -> Iterator[Contrast]:
    """Compare a large group with the plain network that has as many parameters.

    `symmetry`, the group's network minus that plain one; `size`, that plain one minus the plain
    network that has as many fields as the group's.
    """
    for group, fields in EQUALS.items():
        family, equal = group.split(":")[0], f"plain:{fields}"
        for blur in sorted({blur for network, blur in found if network == group}):
            if (equal, blur) in found:
                yield family, blur, "symmetry", found[group, blur] - found[equal, blur]
                if (PLAIN, blur) in found:
                    yield family, blur, "size", found[equal, blur] - found[PLAIN, blur]


def _by_order(found: Found, family: str, blur: float) -> dict[int, np.ndarray]:
    return {
        int(network.split(":")[1]): estimate
        for (network, width), estimate in found.items()
        if network.startswith(family) and width == blur
    }


def _along(found: Found) -> Iterator[Contrast]:
    """Compare the networks of each family at each blur with the plain one."""
    for family, blur in product(FAMILIES, sorted({blur for _, blur in found})):
        along = _by_order(found, family, blur)
        plain = found.get((PLAIN, blur))
        if not along or plain is None:
            continue
        last = along[max(along)]
        if len(along) > 1:
            yield family, blur, "slope", slope(along)
        yield family, blur, "gain", last - plain
        if 4 in along:
            yield family, blur, "early", along[4] - plain
            yield family, blur, "late", last - along[4]


def _over_blurs(found: Found) -> Iterator[Contrast]:
    """Compare the largest order of each family without blur and with the most."""
    blurs = sorted({blur for _, blur in found})
    ends = blurs[0], blurs[-1]
    for family in FAMILIES:
        along = [_by_order(found, family, blur) for blur in ends]
        if len(blurs) > 1 and all(along) and all((PLAIN, blur) in found for blur in ends):
            sharp, dim = (each[max(each)] for each in along)
            lost = (sharp - found[PLAIN, ends[0]]) - (dim - found[PLAIN, ends[1]])
            yield family, ends[1], "gain lost", lost
            yield family, ends[1], "blur", dim - sharp


def centered(contrasts: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Shift contrasts of orders to the networks of a table of results, which may have more seeds.

    The widths of their intervals stay: they are those of the seeds that were compared.

    Args:
        contrasts: Rows of `contrast_rows`.
        results: Measures of each network and seed.
    """
    key = ["data", "family", "blur", "measure", "contrast"]
    rows = []
    for data, some in results.groupby("data", sort=False):
        means = some.groupby(["network", "blur"], sort=False)[[*MEASURES]].mean()
        found = {where: each.to_numpy()[:, None] for where, each in means.iterrows()}
        for part in _with_means([*orders(found)]):
            rows += [
                (data, family, str(blur), measure, name, float(value))
                for family, blur, name, estimate in part
                for measure, (value,) in zip(MEASURES, estimate, strict=True)
            ]
    new = pd.DataFrame(rows, columns=[*key, "new"])
    text = contrasts.assign(blur=contrasts["blur"].map(lambda blur: str(_number(blur))))
    shift = text.merge(new, how="left", on=key)["new"].to_numpy() - contrasts["value"].to_numpy()
    moved = {end: contrasts[end] + shift for end in ("value", "low", "high")}
    return contrasts.assign(**moved)


def _number(blur: float | str) -> float | str:
    """Read a blur from a table, where one of all blurs makes the column one of texts."""
    return blur if blur == "all" else float(blur)


GALAXIES, SEEDS = 600, 3
LEAST, MOST = 0.34, 0.999  # confidences of three classes
SEED_SPREAD = 0.01  # deviation over seeds of the skill, and of the confidence beyond it
OVERCONFIDENCE = (0.0, 0.05)
World = tuple[np.ndarray, np.ndarray]  # skill and luck on each galaxy, shared by all networks


def coverage(settings: Settings, results: Results) -> None:
    """Write the table `coverage`."""
    results.write("coverage", coverage_rows(settings.worlds))


def coverage_rows(worlds: int, draws: int = DRAWS) -> list[dict[str, Any]]:
    """Count the worlds in which an interval contains the true difference of two networks.

    In a world the test galaxies have a difficulty that all networks share; each seed differs a
    little in skill, in confidence and in which galaxies it classifies correctly. One network is
    calibrated except for the differences between its seeds, the other too confident.

    Returns:
        Rows with `overconfidence`, `measure`, `worlds` and `covered`, the share of the worlds.
    """
    rows = []
    for more in OVERCONFIDENCE:
        random = np.random.default_rng(0)
        truth = true_differences(more, random)
        covered = dict.fromkeys(truth, 0)
        for number in range(worlds):
            world = _world(random, GALAXIES)
            images = torch.from_numpy(resampled_rows(GALAXIES, draws, seed=number))
            one, other = (
                estimated(_network(extra, world, random), images, random) for extra in (more, 0.0)
            )
            for name, true in truth.items():
                _, low, high = interval((other - one)[[*MEASURES].index(name)])
                covered[name] += low <= true <= high
        rows += [
            {"overconfidence": more, "measure": name, "worlds": worlds, "covered": count / worlds}
            for name, count in covered.items()
        ]
    return rows


def true_differences(more: float, random: np.random.Generator) -> dict[str, float]:
    """Compute the calibrated network minus the other, over many seeds and galaxies."""
    if not more:
        return {"accuracy": 0.0, "esd": 0.0, "overconfidence": 0.0}
    world = _world(random, 50_000)
    one, other = (_network(extra, world, random, seeds=40) for extra in (more, 0.0))

    def mean(name: str, pairs: list[Pair]) -> float:
        return float(np.mean([float(MEASURES[name](*pair)) for pair in pairs]))

    apart = {name: mean(name, other) - mean(name, one) for name in ("esd", "overconfidence")}
    return apart | {"accuracy": 0.0}


def _world(random: np.random.Generator, count: int) -> World:
    return np.clip(random.beta(4, 1.2, size=count), LEAST, MOST), random.random(count)


def _network(
    more: float, world: World, random: np.random.Generator, seeds: int = SEEDS
) -> list[Pair]:
    skill, luck = world
    pairs = []
    for _ in range(seeds):
        own_skill = np.clip(skill + random.normal(0, SEED_SPREAD), LEAST, MOST)
        own_luck = np.where(random.random(len(skill)) < 0.15, random.random(len(skill)), luck)
        confidence = np.clip(own_skill + more + random.normal(0, SEED_SPREAD), LEAST, MOST)
        pairs.append((torch.from_numpy(confidence), torch.from_numpy(own_luck < own_skill)))
    return pairs
