"""Predictions of volumes at the slices that the page shows, where they are known in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._trees import Tree
from ...groups import Elements
from ...tasks import Task
from ...tasks._maps import Places, middle_of, reduced_labels, slices_at

Row = dict[str, np.ndarray]


def shown_slices(moved: Tree | None, chosen: tuple[int, ...]) -> Places | None:
    """Return the slices of a volume `[1, 1, C, D, H, W]` to show, None for other inputs."""
    if not isinstance(moved, Tensor) or moved.ndim != 6:
        return None
    sides = tuple(moved.shape[-3:])
    if len(chosen) != 3:
        return middle_of(sides)
    depth, row, column = (
        min(max(place, 0), side - 1) for place, side in zip(chosen, sides, strict=True)
    )
    return depth, row, column


def redrawn(
    task: Task | None, rows: list[Row], truth: Tensor | None, elements: Elements, places: Places
) -> list[Row] | None:
    """Return the variables of each model with maps at other slices; None if one is not known there.

    A live model answers for the whole volume; a scan has what it was told to keep.
    """
    with slices_at(places):
        made = [_maps_of(task, row, truth, elements) for row in rows]
    if any(maps is None for maps in made):
        return None
    return [
        {name: values for name, values in row.items() if not _is_map(name)} | (maps or {})
        for row, maps in zip(rows, made, strict=True)
    ]


def _is_map(name: str) -> bool:
    return name.endswith("_map") or name == "map_vs_consensus"


def _maps_of(task: Any, row: Row, truth: Tensor | None, elements: Elements) -> Row | None:
    whole = {name: torch.from_numpy(np.array(row[name]))[None, None] for name in row.keys() & _FULL}
    if task is None or not whole:
        return None
    if "segments" in whole and "probabilities" not in whole:
        return {"class_map": reduced_labels(whole["segments"])[0, 0].numpy()}
    outputs: Tree = whole.get("probabilities")
    if outputs is None:
        outputs = {"mean": whole["predicted_maps"]}
    made = task.extras(outputs, truth, elements)
    return {name: values[0, 0].numpy() for name, values in made.items() if _is_map(name)}


_FULL = {"probabilities", "segments", "predicted_maps"}
