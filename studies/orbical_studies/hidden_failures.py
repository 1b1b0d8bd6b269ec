"""Failures between the elements of a scan, as `orbical.worst_case` finds them."""

from __future__ import annotations

from typing import Any

import numpy as np

import orbical as ob

from .framework.statistics import wilson

LIMIT = 0.05  # share of hidden failures up to which a scan is said to find the failures


def search_failures(
    networks: dict[str, Any], data: tuple[Any, Any], group: str, task: Any
) -> dict[str, dict[str, Any]]:
    """Scan networks, search between the scanned elements, and count failures by network."""
    how: dict[str, Any] = {"group": group, "task": task, "keep": "inputs", "progress": False}
    scan = ob.scan(networks, data, **how)
    found = ob.worst_case(networks, scan, progress=False)
    seen: np.ndarray = np.asarray(scan.data["correct"].values.astype(bool).all(-1))
    each = zip(networks, seen, strict=True)
    return {name: count_failures(found.sel(model=name), right) for name, right in each}


def count_failures(found: Any, seen: np.ndarray) -> dict[str, Any]:
    """Count failures: upright, at a scanned element, at the worst case, and there alone.

    Args:
        found: Worst cases of one model, as `orbical.worst_case` returns them.
        seen: `[sample]`, whether the model is right at all scanned elements.
    """
    right = {
        place: found["correct"].sel(place=place).values.astype(bool)
        for place in ("identity", "refined")
    }
    row: dict[str, Any] = {
        "samples": len(seen),
        "wrong_upright": int((~right["identity"]).sum()),
        "wrong_scanned": int((~seen).sum()),
        "wrong_found": int((~(seen & right["refined"])).sum()),
        "hidden": int((seen & ~right["refined"]).sum()),
    }
    for word, place in (("upright", "identity"), ("grid", "grid"), ("refined", "refined")):
        for end in ("mean", "mean_low", "mean_high"):
            row[f"{end}_{word}"] = float(found[end].sel(place=place))
    for end in ("mean_missed", "mean_missed_low", "mean_missed_high"):
        row[end] = float(found[end])
    return row


def with_shares(rows: Any, decisions: int) -> Any:
    """Add the share of hidden failures, with an interval of all decisions at once (Bonferroni)."""
    low, high = wilson(rows["hidden"], rows["samples"], 1 - 0.05 / decisions)
    share = rows["hidden"] / rows["samples"]
    return rows.assign(share=share, low=low, high=high, holds=high < LIMIT, refuted=low > LIMIT)
