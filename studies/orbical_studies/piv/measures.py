"""What the particle-flow study measures of one scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from orbical.actions import VectorField
from orbical.groups import Group, parse

Row = dict[str, Any]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
HARD = 0.1


def self_advection(flow: Tensor) -> Tensor:
    """Compute the length of u . grad u: how flow at one frame differs from flow at the other.

    Args:
        flow: displacements `[n, 2, h, w]`.

    Returns:
        `[n, h, w]` in pixels.

    >>> x = torch.arange(4.0).expand(4, 4)
    >>> float(self_advection(torch.stack([0.5 * x, 0 * x])[None])[0, 2, 2])    # u = x / 2
    0.5
    """
    down, across = torch.gradient(flow, dim=(-2, -1))
    return (flow[:, :1] * across + flow[:, 1:] * down).norm(dim=1)


def carried(flow: Tensor, share: float) -> Tensor:
    """Carry the flow of the mid-time to another time, where particles are `share` of a step later.

    The flow F there has `F(x) = u(x - share F(x))`, found by iterating. `share` = -1/2 gives the
    flow as seen from the first frame, which estimators of forward flow aim at.

    Args:
        flow: displacements `[n, 2, h, w]` at the mid-time.
        share: of a step.

    >>> still = carried(torch.ones(1, 2, 8, 8), -0.5)
    >>> bool((still == 1).all())
    True
    """
    found = flow
    for _ in range(8):
        found = fetched(flow, found, -share)
    return found


def fetched(
    values: Tensor, flow: Tensor, share: float, shift: float = 0.0, mode: str = "bicubic"
) -> Tensor:
    """Read `values[n, c, h, w]` where a share of the flow and a common shift point."""
    height, width = flow.shape[-2:]
    y = torch.arange(height)[:, None] + 0.5 + shift
    x = torch.arange(width) + 0.5 + shift
    across, down = x + share * flow[:, 0], y + share * flow[:, 1]
    places = torch.stack([across * (2 / width) - 1, down * (2 / height) - 1], -1)
    return F.grid_sample(values, places, mode, padding_mode="border", align_corners=False)


def truth_time_rows(name: str, data: Mapping[str, Any]) -> list[Row]:
    """Correlate the frames carried by the given flow to several times: which one is the truth's?

    If the flow belongs to the time `share` of a step after the first frame, the first frame read
    at x - share u and the second at x + (1 - share) u look alike. Both are read between pixels
    (half a pixel off), so that blur favors neither.

    Returns:
        A row for each pair and share; the `likeness` is the correlation of the two.
    """
    rows: list[Row] = []
    inner = (slice(None), slice(None), slice(12, -12), slice(12, -12))
    for number, (pair, flow) in enumerate(zip(data["pair"], data["flow"], strict=True)):
        there = fetched(flow[None], torch.zeros_like(flow)[None], 0.0, 0.5, mode="bilinear")
        for share in SHARES:
            first = fetched(pair[0][None], there, -share, 0.5)[inner].flatten()
            second = fetched(pair[1][None], there, 1 - share, 0.5)[inner].flatten()
            likeness = float(torch.corrcoef(torch.stack([first, second]))[0, 1])
            label = {"kind": data["kinds"][number], "name": data["names"][number]}
            rows.append({"set": name, **label, "share": share, "likeness": likeness})
    return rows


def sample_rows(name: str, kind: str, names: list[str], data: Any) -> list[Row]:
    """Return a row for each model and pair: errors, gaps, consensus, what time reversal does.

    `data` is a scan over D4 x time reversal that kept its flows.
    """
    truth = torch.from_numpy(data["target"].values)
    group = parse(str(data.attrs["group"]))
    advection = self_advection(truth).mean((1, 2))
    seen_first = carried(truth, -0.5)
    rows: list[Row] = []
    for model in data["model"].values:
        one = data.sel(model=model)
        for number, label in enumerate(names):
            here = one.isel(sample=number)
            error = here["score"].values.astype(float)
            flows = torch.from_numpy(here["flow"].values)
            home = VectorField().move(group.inverse(), flows[:, None])[:, 0]
            lengths = (home[0] - truth[number]).norm(dim=0)
            columns = unmoved_columns(home, truth[number], seen_first[number], group)
            rows.append(
                {
                    "set": name,
                    "kind": kind,
                    "name": label,
                    "model": str(model),
                    "speed": float(truth[number].norm(dim=0).mean()),
                    "error": float(error[group.identity]),
                    "error_over_orbit": float(error.mean()),
                    "error_spread": float(error.std()),
                    "error_worst": float(error.max()),
                    "error_best": float(error.min()),
                    "rmse": float(here["rmse"].values.mean()),
                    "angular_error": float(here["angular_error"].values.mean()),
                    "gap": float(here["invariance_gap"]),
                    "gap_plane": columns["gap_plane"],
                    "time_difference": columns["time_difference"],
                    "self_advection": float(advection[number]),
                    "error_forward_truth": columns["error_forward_truth"],
                    "consensus_error": float(here["consensus_vs_truth"]),
                    "consensus_likeness": _likeness(error, here["score_vs_consensus"].values),
                    "hard_share": _share_of_worst(lengths),
                }
            )
    return rows


def unmoved_columns(home: Tensor, truth: Tensor, seen_first: Tensor, group: Group) -> Row:
    """Measure the answers to one pair along the orbit, moved back.

    Args:
        home: Answers `[16, 2, h, w]`.
        truth: The flow `[2, h, w]`.
        seen_first: The flow carried to the first frame.
        group: The 16 elements.

    Returns:
        Gaps over all elements and over those without time reversal, the mean distance of answers
        in forward and reversed time, the error against the carried flow, the error of the mean
        answer, and the root mean square error, all in pixels.
    """
    forward = group.parts["time"] > 0
    return {
        "gap": _gap(home),
        "gap_plane": _gap(home[forward]),
        "time_difference": float((home[forward] - home[~forward]).norm(dim=1).mean()),
        "error_forward_truth": float((home[group.identity] - seen_first).norm(dim=0).mean()),
        "consensus_error": float((home.mean(0) - truth).norm(dim=0).mean()),
        "rmse": float((home - truth).double().square().sum(1).mean().sqrt()),
    }


def principal_components(responses: NDArray[Any]) -> NDArray[Any]:
    """Return the first two principal components `[n, 2]` of responses `[n, K]`.

    >>> rows = principal_components(np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]]))
    >>> np.abs(rows.round(2)).tolist()
    [[1.73, 0.0], [0.0, 0.0], [1.73, 0.0]]
    """
    left, sizes, _ = np.linalg.svd(responses - responses.mean(0), full_matrices=False)
    return (left * sizes)[:, :2]


def milliseconds(model: Callable[[Tensor], Any], pairs: Tensor) -> list[float]:
    """Measure the processor time of one answer to each pair `[n, 2, c, h, w]`, after a warm-up."""
    model(pairs[:1])
    taken = []
    for pair in pairs:
        started = time.process_time()
        model(pair[None])
        taken.append(1000 * (time.process_time() - started))
    return taken


def _gap(home: Tensor) -> float:
    """Return the root mean square distance of flows `[k, 2, h, w]` from their mean, in pixels."""
    return float((home - home.mean(0)).double().square().sum(1).mean().sqrt())


def _likeness(first: np.ndarray, second: np.ndarray) -> float:
    """Correlate two responses along an orbit; NaN where one of them is flat."""
    if min(first.std(), second.std()) < 1e-9:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _share_of_worst(lengths: Tensor) -> float:
    """Return the share of the squared error that the worst tenth of the pixels holds."""
    squares = lengths.double().square().flatten().sort(descending=True).values
    worst = max(1, round(HARD * len(squares)))
    return float(squares[:worst].sum() / squares.sum().clamp_min(1e-300))
