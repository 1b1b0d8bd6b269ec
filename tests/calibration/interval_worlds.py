"""Worlds of known calibration error that intervals are tried in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Accuracy = Callable[[np.ndarray], np.ndarray]


def calibrated(z: np.ndarray) -> np.ndarray:
    return z


def shifted(by: float) -> Accuracy:
    """Overconfidence of one sign: no bias under KS."""
    return lambda z: z - by


def waved(by: float) -> Accuracy:
    """Errors of both signs, which KS and MMCE average out."""
    return lambda z: np.clip(z + by * np.sin(20 * z), 0, 1)


def spotted(by: float) -> Accuracy:
    """One bad bin among good ones: the largest bias of a binned error."""
    return lambda z: z - by * ((z > 0.8) & (z <= 13 / 15))


def drawn(accuracy: Accuracy, worlds: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1, (worlds, size))
    return confidence, rng.random((worlds, size)) < accuracy(confidence)


def regression_world(worlds: int, size: int, scale: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.5, 2, (worlds, size))
    return [np.zeros_like(variance), variance, rng.normal(0, np.sqrt(variance * scale))]
