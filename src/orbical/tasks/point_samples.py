"""Samples of points with an answer for each: padded to one size, with a mask of real points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import actions
from .._ragged import NODES, from_ragged, ragged_fields, to_padded
from .._trees import Tree
from ..actions import Action, ActionTree, Frames, flat_actions
from ..errors import InputError
from .reading import wrong_output

CLOUDS = {"pos": actions.Points(), "mask": actions.Rows()}
"""The usual actions on clouds of different sizes."""


def point_action(input: ActionTree | None) -> Action:
    """Return how numbers of points move: with the samples of their signal, or else with rows."""
    leaves = [] if input is None else flat_actions(actions.as_action(input))
    of_signals = (leaf for leaf in leaves if isinstance(leaf, actions.Signals))
    whole = (leaf for leaf in of_signals if not isinstance(leaf, actions.SignalWindow))
    return actions.Rows() if all(map(actions.is_own_action, whole)) else Frames()


def check_point_sample_count(action: Action, count: int, moved: Tree) -> None:
    """Check that there is a prediction for each sample of signals, which it moves with."""
    if not isinstance(action, Frames) or not isinstance(moved, Tensor):
        return
    expected = action.counted(moved.shape[-1])
    if count not in expected:
        what = "samples" if action.hop == 1 else f"frames, {action.hop:g} samples apart,"
        raise wrong_output(
            f"one for each of the {expected[0]} {what} of a signal, [sample, frame, ...]",
            count,
            "for other frames pass their action, orbical.actions.Frames(hop)",
        )


def padded_points(data: Any, action: Action, unknown: float) -> object:
    """Return samples of different sizes, and their targets by point, as padded arrays.

    Takes lists of clouds `[n, d]`, ragged batches with `ptr` or `batch`, and graphs of PyG, whose
    `y` has a row for each node. Clouds of one size, `[N, n, d]`, get a mask if the action has a
    field for it. Other data are returned as they are. Padding has the target `unknown`.

    >>> from orbical.actions import Trivial
    >>> data = [torch.ones(1, 3), torch.ones(2, 3)], [[5], [6, 7]]
    >>> x, y = padded_points(data, Trivial(), -1)
    >>> x["mask"].tolist(), y.tolist()
    ([[True, False], [True, True]], [[5, -1], [6, 7]])
    """
    inputs, targets = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
    if _are_clouds(inputs):
        sizes = torch.tensor([len(cloud) for cloud in inputs])
        rows = torch.cat([torch.as_tensor(cloud) for cloud in inputs])
        fields = {"pos": rows, "ptr": torch.nn.functional.pad(sizes.cumsum(0), (1, 0))}
    else:
        found = ragged_fields(inputs)
        if found is None and not _lacks_mask(inputs, action):
            return data
        if found is None:
            clouds = torch.as_tensor(np.asarray(inputs) if isinstance(inputs, list) else inputs)
            mask = torch.ones(clouds.shape[:2], dtype=torch.bool)
            return {"pos": clouds, "mask": mask}, targets
        fields = {name: field for name, field in found.items() if field is not None}
        own = fields.pop("y", None)
        targets = own if targets is None else targets
        if not {"pos", "x"} & {*fields}:
            raise InputError("data", "points pos or x", f"fields {sorted(fields)}")
    padded = from_ragged(fields, NODES)
    return padded, None if targets is None else _padded_targets_of_points(
        targets, padded["mask"], unknown
    )


def _are_clouds(inputs: object) -> bool:
    """Check for a list of clouds of different sizes."""
    if not isinstance(inputs, list) or not inputs:
        return False
    shapes = {tuple(getattr(cloud, "shape", ())) for cloud in inputs}
    alike = len({shape[1:] for shape in shapes}) == 1
    return len(shapes) > 1 and alike and all(len(shape) == 2 and shape[0] for shape in shapes)


def _lacks_mask(inputs: object, action: Action) -> bool:
    """Check for an array of clouds where the action moves `pos` and `mask`."""
    fields = action.actions if isinstance(action, actions.Fields) else None
    if not isinstance(fields, dict) or {*fields} != {"pos", "mask"}:
        return False
    shape = np.shape(inputs) if isinstance(inputs, list) else getattr(inputs, "shape", ())
    return len(shape) == 3


def _padded_targets_of_points(targets: object, mask: Tensor, unknown: float) -> Tensor:
    """Pad targets of all points one after the other, or of each sample."""
    if isinstance(targets, Sequence) and len(targets) == len(mask):
        each = [torch.as_tensor(one) for one in targets]
        sizes = mask.sum(1).tolist()
        for place, (one, size) in enumerate(zip(each, sizes, strict=True)):
            if one.ndim == 0 or len(one) != size:
                raise InputError(
                    "labels", f"one for each of the {size} points of sample {place}", one
                )
        return _padded(torch.cat(each), mask, unknown)
    if isinstance(targets, Sequence) and any(np.ndim(one) for one in targets):
        raise InputError("labels", f"a list for each of {len(mask)} samples", len(targets))
    rows = torch.as_tensor(targets)
    if rows.shape[:2] == mask.shape:
        return rows
    total = int(mask.sum())
    if rows.ndim == 0 or len(rows) != total:
        raise InputError("labels", f"one for each of {total} points", rows)
    return _padded(rows, mask, unknown)


def _padded(rows: Tensor, mask: Tensor, unknown: float) -> Tensor:
    """Pad rows; whole numbers, which have no NaN, become real ones where that is the padding."""
    return to_padded(rows.double() if np.isnan(unknown) else rows, mask, unknown)


def point_mask(moved: Tree, points: int) -> Tensor | None:
    """Return the mask `[K, B, n]` of moved inputs with a mask, checked; None without one.

    Outputs are of `points` points.
    """
    mask: Tensor | None = moved.get("mask") if isinstance(moved, dict) else None
    if mask is None or mask.ndim != 3:
        return None
    if mask.shape[-1] != points:
        expected = f"a prediction for each of {mask.shape[-1]} points, including padding"
        raise wrong_output(expected, points)
    return mask.bool()


def blank_padding(values: Tensor, mask: Tensor) -> Tensor:
    """Return values `[K, B, n, ...]` with NaN on padding."""
    return values.masked_fill(~_spread(mask, values), torch.nan)


def repeated_point_samples(values: Tensor, mask: Tensor) -> Tensor:
    """Return values `[K, B, n, ...]` with those of the first real point on padding."""
    first = mask.int().argmax(-1)
    element, sample = (torch.arange(size, device=mask.device) for size in first.shape)
    of_first = values[element[:, None], sample, first]
    return values.where(_spread(mask, values), of_first[:, :, None])


def _spread(mask: Tensor, values: Tensor) -> Tensor:
    return mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim))
