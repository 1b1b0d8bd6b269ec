"""Calibration: can a model's confidence be trusted?

Functions on arrays. Each takes a pair `(confidence, correct)`, made from a model's outputs by
`top_label` or `classwise`, reduces over the last axis, broadcasts over leading ones, and returns
float64.

>>> import orbical as ob
>>> confidence, correct = ob.calibration.top_label(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 0])
>>> ob.calibration.ece(confidence, correct, bins=15)
tensor(0.4500, dtype=torch.float64)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_NAMES = {
    "binned": ("Reliability", "ece", "error_of", "reliability"),
    "cumulative": ("esd", "ordered_esd"),
    "inputs": ("classwise", "pair", "probabilities", "top_label"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .binned import Reliability, ece, error_of, reliability
    from .cumulative import esd, ordered_esd
    from .inputs import classwise, pair, probabilities, top_label

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that a training loop with one loss imports torch and nothing else.
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
