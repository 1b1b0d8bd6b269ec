"""Classical optical flow from OpenCV, as models for `orbical.tasks.Flow`."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbical.errors import MissingExtra


class Farneback:
    """Farnebäck's polynomial-expansion flow, on pairs `[N, 2, C, H, W]` with values in 0..1.

    Answers displacements `[N, 2, H, W]` in pixels, dx to the right and dy down. Channels are
    averaged; the images are scaled to 0..255, for which the method's parameters are made.
    """

    def __init__(
        self, levels: int = 3, window: int = 15, iterations: int = 3, neighborhood: int = 5
    ) -> None:
        self.levels = levels
        self.window = window
        self.iterations = iterations
        self.neighborhood = neighborhood

    def __call__(self, pairs: Any) -> np.ndarray:
        """Estimate the flow of each pair; OpenCV takes them one at a time."""
        cv2 = _opencv()
        smoothing = 1.1 if self.neighborhood <= 5 else 1.5
        frames = _gray(pairs)
        flows = [
            cv2.calcOpticalFlowFarneback(
                first,
                second,
                None,
                0.5,
                self.levels,
                self.window,
                self.iterations,
                self.neighborhood,
                smoothing,
                0,
            )
            for first, second in frames
        ]
        return np.stack(flows).transpose(0, 3, 1, 2)


class InverseSearch:
    """DIS flow (Kroeger et al., 2016), on the same pairs as `Farneback`."""

    def __call__(self, pairs: Any) -> np.ndarray:
        """Estimate the flow of each pair; OpenCV takes them one at a time."""
        cv2 = _opencv()
        method = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        flows = [method.calc(first, second, None) for first, second in _gray(pairs)]
        return np.stack(flows).transpose(0, 3, 1, 2)


def _gray(pairs: Any) -> np.ndarray:
    result: np.ndarray = np.clip(np.asarray(pairs).mean(2) * 255, 0, 255).astype(np.uint8)
    return result


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingExtra("opencv-python-headless", "flow", "classical optical flow") from None
    return cv2
