"""Classical optical flow from OpenCV, as models for `orbical.tasks.Flow`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbical._imports_and_paths import import_extra

__all__ = ["Farneback", "InverseSearch"]


@dataclass(frozen=True)
class Farneback:
    """Farnebäck's polynomial-expansion flow.

    Called with pairs `[N, 2, C, H, W]` in 0..1, it returns displacements `[N, 2, H, W]` in pixels,
    dx to the right and dy down. Channels are averaged, and images are scaled to 0..255, the range
    for which the parameters of the method are meant.

    Args:
        levels: Number of levels of the pyramid.
        window: Side of the averaging window in pixels.
        iterations: Number of iterations per level.
        neighborhood: Side of the neighborhood for the polynomial expansion in pixels.
    """

    levels: int = 3
    window: int = 15
    iterations: int = 3
    neighborhood: int = 5

    def __call__(self, pairs: object) -> np.ndarray:
        """Estimate the flow of each pair."""
        smoothing = 1.1 if self.neighborhood <= 5 else 1.5
        sizes = (self.levels, self.window, self.iterations, self.neighborhood)
        estimate = _opencv().calcOpticalFlowFarneback
        return _each_pair(
            pairs, lambda first, second: estimate(first, second, None, 0.5, *sizes, smoothing, 0)
        )


class InverseSearch:
    """Dense inverse search, DIS (Kroeger et al., 2016), called as `Farneback`."""

    def __call__(self, pairs: object) -> np.ndarray:
        """Estimate the flow of each pair."""
        cv2 = _opencv()
        method = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        return _each_pair(pairs, lambda first, second: method.calc(first, second, None))


def _each_pair(
    pairs: object, estimate: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Estimate the flow of gray pairs one by one, as OpenCV does."""
    gray = np.clip(np.asarray(pairs).mean(2) * 255, 0, 255).astype(np.uint8)
    return np.stack([estimate(*pair) for pair in gray]).transpose(0, 3, 1, 2)


def _opencv() -> Any:
    return import_extra("cv2", "flow", "classical optical flow", "opencv-python-headless")
