"""How often the intervals of differences contain the truth: simulated networks of known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..framework import Results
from ..resampling import DRAWS, interval, resampled_rows
from .contrasts import MEASURES, Pair, estimated
from .settings import Settings

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
            images = resampled_rows(GALAXIES, draws, seed=number)
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
