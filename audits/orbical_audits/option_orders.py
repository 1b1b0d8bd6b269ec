"""Tables of what the order of options does to the answers of a scan of questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import orbical as ob

from .statistics import bounded

if TYPE_CHECKING:
    import xarray as xr

CALIBRATED = {"identity": "as given", "pooled": "at all orders", "average": "averaged scores"}
"""Where the threshold of prediction sets comes from, in words."""
SPLITS = 20
"""Random halves that calibrate prediction sets."""


def cell(found: xr.Dataset, name: str, count: int) -> dict[str, float]:
    """Return a number with the ends of its interval as a cell of a table."""
    ends = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {end: float(found[key]) for end, key in ends.items()} | {"n": count}


def changes(scan: ob.Scan, model: str) -> dict[str, Any]:
    """Return accuracy, confidence and how much depends on the order."""
    data = scan.data.sel(model=model)
    correct, confidence = data["correct"].values.astype(float), data["confidence"].values
    stable = ob.nero.consistency(scan).sel(model=model)
    return {
        "accuracy as given": bounded(correct[:, scan.group.identity]),
        "accuracy, all orders": bounded(correct.mean(1)),
        "confidence": bounded(confidence.mean(1)),
        "confidence minus accuracy": bounded((confidence - correct).mean(1), -1.0),
        "answer changes": cell(stable, "changed", len(correct)),
        "two orders disagree": cell(stable, "pairs", len(correct)),
        "largest change of a probability": float(np.ptp(data["probabilities"].values, 1).max()),
    }


def by_letter(scan: ob.Scan, model: str) -> Iterator[dict[str, Any]]:
    """Yield for each letter how often it is chosen, and accuracy if the right option has it."""
    found, data = ob.nero.position_bias(scan).sel(model=model), scan.data.sel(model=model)
    places = np.argsort(scan.group.parts["rows"], 1)[:, scan.data["label"].values].T
    for place, letter in enumerate(found["position"].values):
        here, at = places == place, found.sel(position=letter)
        confidence = (data["confidence"].values * here).sum(1) / here.sum(1)
        yield {
            "letter": str(letter),
            "chosen": cell(at, "chosen", len(here)),
            "more than fair": cell(at, "bias", len(here)),
            "accuracy, right answer here": cell(at, "accuracy", len(here)),
            "confidence, right answer here": bounded(confidence),
        }


def by_order(scan: ob.Scan, model: str) -> dict[str, Any]:
    """Return the worst and the best order, of all questions and of each."""
    data, each = scan.data.sel(model=model), ob.nero.worst_orders(scan).sel(model=model)
    accuracy = data["correct"].values.mean(0)
    errors = ob.calibration.along_orbit(scan, "ece").sel(model=model).values
    worst, best = int(accuracy.argmin()), int(accuracy.argmax())
    names = data["order"].values
    return {
        "worst order": str(names[worst]),
        "its accuracy": float(accuracy[worst]),
        "best order": str(names[best]),
        "accuracy of the best": float(accuracy[best]),
        "ECE from": float(errors.min()),
        "ECE to": float(errors.max()),
        "right at every order": cell(each, "always", len(data["label"])),
        "right at no order": cell(each, "never", len(data["label"])),
    }


def averages(scan: ob.Scan, model: str) -> Iterator[dict[str, Any]]:
    """Yield what averaging the probabilities over some orders gains, and what it costs."""
    options, orders = scan.group.parts["rows"].shape[1], len(scan.group)
    found = ob.nero.order_averages(scan, random=[2, options]).sel(model=model)
    gains = ob.nero.averaging(scan, [1, orders]).sel(model=model)
    for name in found["orders"].values:
        at = found.sel(orders=name)
        yield {
            "orders": str(name),
            "passes": int(at["cost"]),
            "accuracy": cell(at, "accuracy", len(scan.data["label"])),
            "gain": cell(gains.sel(elements=orders), "gain", len(scan.data["label"]))
            if name == "all"
            else None,
            "ECE": float(at["ece"]),
            "answer depends on the choice": float(at["changed"]),
        }


def sets(scan: ob.Scan, model: str, calibrate: str) -> dict[str, Any]:
    """Return coverage and size of prediction sets, by where their threshold comes from."""
    splits = [
        ob.conformal.along_orbit(scan, calibrate=calibrate, seed=seed) for seed in range(SPLITS)
    ]
    coverage, size = (
        np.mean([getattr(split, what).sel(model=model).values for split in splits], 0)
        for what in ("coverage", "size")
    )
    return {
        "calibrated": CALIBRATED[calibrate],
        "coverage": float(coverage.mean()),
        "lowest coverage of an order": float(coverage.min()),
        "options in a set": float(size.mean()),
    }
