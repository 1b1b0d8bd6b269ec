"""The worst angle between the scanned ones, and the failures that a scan does not see."""

from __future__ import annotations

from typing import Any

import orbical as ob

from ..framework import Results
from .measures import NETWORKS, Digits, read_digits

SCANNED = (12, 24, 72)
SEARCHED = 1000


def worst(settings: Digits, results: Results) -> None:
    """Search the worst case of the first digits from scans of several numbers of angles."""
    images, labels = (part[:SEARCHED] for part in read_digits(settings))
    networks = {name: ob.zoo.digits.load(name) for name in NETWORKS}
    task = ob.tasks.Classification()
    rows, samples = [], []
    for angles in SCANNED:
        group = ob.groups.rotations(angles)
        how: dict[str, Any] = {"group": group, "task": task, "keep": "inputs", "progress": False}
        scan = ob.scan(networks, (images, labels), **how)
        found = ob.worst_case(networks, scan, progress=False)
        seen = scan.data["correct"].values.astype(bool).all(-1)
        for place, network in enumerate(NETWORKS):
            one = found.sel(model=network)
            rows.append({"network": network, "angles": angles, **numbers(one, seen[place])})
            if angles == max(SCANNED):
                samples += sample_rows(network, one, seen[place], labels.tolist())
    results.write("worst", rows)
    results.write("worst-digits", samples)


def numbers(found: Any, seen: Any) -> dict[str, Any]:
    """Count failures: upright, at a scanned angle, at the worst case, and there alone."""
    correct = {
        place: found["correct"].sel(position=place).values.astype(bool)
        for place in ("upright", "refined")
    }
    row: dict[str, Any] = {
        "samples": len(seen),
        "wrong_upright": int((~correct["upright"]).sum()),
        "wrong_scanned": int((~seen).sum()),
        "wrong_found": int((~(seen & correct["refined"])).sum()),
        "hidden": int((seen & ~correct["refined"]).sum()),
    }
    for place in ("upright", "grid", "refined"):
        for end in ("mean", "mean_low", "mean_high"):
            row[f"{end}_{place}"] = float(found[end].sel(position=place))
    for end in ("mean_missed", "mean_missed_low", "mean_missed_high"):
        row[end] = float(found[end])
    return row


def sample_rows(network: str, found: Any, seen: Any, labels: list[int]) -> list[dict[str, Any]]:
    """Describe the hidden failures: where they are, and how sure the network was of the digit."""
    refined = ~found["correct"].sel(position="refined").values.astype(bool)
    scores = found["score"]
    return [
        {
            "network": network,
            "digit": labels[row],
            "row": row,
            "angle": float(found["angle"][row]),
            "score_scanned": float(scores.sel(position="grid")[row]),
            "score_found": float(scores.sel(position="refined")[row]),
        }
        for row in range(len(seen))
        if seen[row] and refined[row]
    ]
