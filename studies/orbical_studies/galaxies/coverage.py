"""How often the intervals of differences hold the truth: simulated networks of known truth."""

from __future__ import annotations

import numpy as np
import torch

from ..pages import Row
from .contrasts import DRAWS, MEASURES, Pair, drawn_images, estimates
from .settings import SEEDS

WORLDS = 200
GALAXIES = 600
LEAST, MOST = 0.34, 0.999
"""Confidences of three classes."""

SEED_SPREAD = 0.01
"""Deviation over seeds of the skill, and of the confidence beyond it."""

OVERCONFIDENCE = (0.0, 0.05)
JUDGED = ("accuracy", "esd", "overconfidence")


def coverage_rows(worlds: int = WORLDS, draws: int = DRAWS) -> list[Row]:
    """Count the worlds in which an interval holds the true difference of two networks.

    In a world the test galaxies have a difficulty that all networks share; each seed differs a
    little in skill, in confidence and in which galaxies it gets right. One network is calibrated
    but for its seeds' differences, the other too confident by a given amount.

    Returns:
        rows with `overconfidence`, `measure`, `worlds` and `covered`, the share of the worlds.
    """
    rows = []
    for more in OVERCONFIDENCE:
        random = np.random.default_rng(0)
        truth = _truth(more, random)
        covered = dict.fromkeys(truth, 0)
        for world in range(worlds):
            skill, luck = _skill(random, GALAXIES), random.random(GALAXIES)
            images = drawn_images(GALAXIES, draws, seed=world)
            one, other = (
                estimates(_network(extra, skill, luck, random), images, random)
                for extra in (more, 0.0)
            )
            for name, true in truth.items():
                _, low, high = (other[name] - one[name]).interval()
                covered[name] += low <= true <= high
        rows += [
            {"overconfidence": more, "measure": name, "worlds": worlds, "covered": count / worlds}
            for name, count in covered.items()
        ]
    return rows


def _skill(random: np.random.Generator, count: int) -> np.ndarray:
    return np.clip(random.beta(4, 1.2, size=count), LEAST, MOST)


def _truth(more: float, random: np.random.Generator) -> dict[str, float]:
    """Differences of the calibrated network less the other, over many seeds and galaxies."""
    if not more:
        return dict.fromkeys(JUDGED, 0.0)
    skill, luck = _skill(random, 50_000), random.random(50_000)
    one, other = (
        [
            {name: float(MEASURES[name](*pair)) for name in JUDGED}
            for pair in _network(extra, skill, luck, random, seeds=40)
        ]
        for extra in (more, 0.0)
    )
    return {
        name: float(np.mean([each[name] for each in other]) - np.mean([each[name] for each in one]))
        for name in ("esd", "overconfidence")
    } | {"accuracy": 0.0}


def _network(
    more: float,
    skill: np.ndarray,
    luck: np.ndarray,
    random: np.random.Generator,
    seeds: int = len(SEEDS),
) -> list[Pair]:
    pairs = []
    for _ in range(seeds):
        own_skill = np.clip(skill + random.normal(0, SEED_SPREAD), LEAST, MOST)
        own_luck = np.where(random.random(len(skill)) < 0.15, random.random(len(skill)), luck)
        confidence = np.clip(own_skill + more + random.normal(0, SEED_SPREAD), LEAST, MOST)
        pairs.append((torch.from_numpy(confidence), torch.from_numpy(own_luck < own_skill)))
    return pairs
