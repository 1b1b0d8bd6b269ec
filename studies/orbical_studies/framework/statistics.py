"""Intervals over samples, and the correction of several tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def wilson(hits: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Compute the ends of Wilson's interval of hits among samples; numbers or arrays.

    Example:
        >>> low, high = wilson(5, 100)
        >>> round(float(low), 4), round(float(high), 4)
        (0.0215, 0.1118)
    """
    from orbical.calibration import wilson_interval  # loads torch, which listing studies does not

    ends = wilson_interval(np.asarray(hits / count), np.asarray(count), level)
    return ends[0].numpy()[()], ends[1].numpy()[()]


def sign_flip(differences: NDArray[Any], count: int = 20_000, seed: int = 0) -> float:
    """Test whether differences have the mean 0, by random signs; two-sided p value.

    Example:
        >>> sign_flip(np.ones(20)) < 0.001, sign_flip(np.array([-1.0, 1.0]))
        (True, 1.0)
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, len(differences)))
    reached = np.abs(signs @ differences) >= abs(differences.sum()) * (1 - 1e-9)
    return float((reached.sum() + 1) / (count + 1))
