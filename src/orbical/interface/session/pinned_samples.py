"""Pinned samples: several of them side by side, at the same position of their orbits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..selection import Selection, sample_numbers
from .sample_views import place
from .scan_view import ScanView
from .subsets import Answer


def pinned(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer the input and the predictions of each pinned sample at the position.

    The arrays of the n-th are those of `place` under `n/`, without outputs larger than one number.
    """
    held = sample_numbers(message["held"]) if message.get("held") else ()  # scenes the page has
    live = message.get("live", True)
    about: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for order, number in enumerate(selection.pins):
        asked = {"scene": number not in held, "live": live}
        header, found = place(view, replace(selection, sample=number), asked)
        about.append(header)
        arrays |= {
            f"{order}/{name}": values for name, values in found.items() if _small(name, values)
        }
    return {"pins": about}, arrays


def _small(name: str, values: Any) -> bool:
    return name.startswith("input/") or (name.startswith("detail/") and np.ndim(values) == 1)
