"""Which galaxies share an orbit: exactly for generated ones, never for photographs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbical import bounds
from orbical.actions import Images
from orbical.calibration import share_interval
from orbical.groups import dihedral

from ..pages import Row
from .contrasts import Pair
from .training import BINS, prepared

COARSE = 32
TURNS = 24


def neighbour_rows(data: str, images: Tensor, labels: Tensor) -> list[Row]:
    """Find each galaxy's nearest other after the best element of a group, on coarse images.

    Distances are relative to the galaxy's own norm. `turning` is how far a galaxy lies from itself
    after a turn and the turn back: no tolerance below it means anything.

    Args:
        data: its name.
        images: test images, `[n, channels, h, w]`.
        labels: `[n]`.

    Returns:
        one row a group: the `least` and the median distance `nearest`; how many galaxies are
        `matched` within `turning`, into how many `orbits`, and the accuracy `ceiling` of those;
        and the share `wrong` of nearest ones of another class.
    """
    grey = prepared(images, 0.0).mean(1, keepdim=True)
    coarse = functional.avg_pool2d(grey, grey.shape[-1] // COARSE)
    best, turning = _least_squares(coarse)
    facts = {"galaxies": len(coarse), "turning": turning}
    norms = coarse.flatten(1).norm(dim=1)
    return [
        {"data": data, "group": name, **facts, **_nearest_others(squared, norms, labels, turning)}
        for name, squared in best.items()
    ]


def _least_squares(coarse: Tensor) -> tuple[dict[str, Tensor], float]:
    """Give squared distances `[n, n]` after the best element of each group, and `turning`."""
    group, action = dihedral(TURNS), Images("bicubic")
    angles, mirrored = _angles(group), _mirrored(group)
    members = {
        "trivial": (angles == 0) & ~mirrored,
        "C_4": (angles % 90 == 0) & ~mirrored,
        "rotations": ~mirrored,
        "rotations and mirrors": np.ones(len(group), dtype=bool),
    }
    flat = coarse.flatten(1)
    squares = flat.square().sum(1)
    best = {name: torch.full((len(flat),) * 2, torch.inf, dtype=flat.dtype) for name in members}
    lost = []
    for k in range(len(group)):
        element = group[k : k + 1]
        moved = action.apply(element, coarse)
        lost.append(action.defect(element, coarse, moved)[0])
        turned = moved[0].flatten(1)
        squared = turned.square().sum(1)[:, None] + squares - 2 * turned @ flat.T
        for name in (name for name, inside in members.items() if inside[k]):
            torch.minimum(best[name], squared, out=best[name])
    return best, float(torch.stack(lost).median(0).values.median())


def _nearest_others(squared: Tensor, norms: Tensor, labels: Tensor, turning: float) -> Row:
    """Give how near the nearest others are, which of them share an orbit, and their labels."""
    from scipy.sparse.csgraph import connected_components

    distances = squared.fill_diagonal_(torch.inf).clamp_min(0).sqrt()
    least, place = distances.min(0)
    relative = least / norms
    orbits, orbit = connected_components((distances <= turning * norms).numpy(), directed=False)
    wrong = labels[place] != labels
    share = share_interval(wrong, torch.ones(len(wrong)))
    return {
        "least": float(relative.min()),
        "nearest": float(relative.median()),
        "matched": int((relative <= turning).sum()),
        "orbits": int(orbits),
        "ceiling": bounds.OrbitTable.from_labels(orbit, labels.numpy()).accuracy_ceiling,
        "wrong": float(share.value),
        "wrong_low": float(share.low),
        "wrong_high": float(share.high),
    }


def _angles(group: Any) -> np.ndarray:
    linear = group.linear("plane")
    return np.degrees(np.arctan2(linear[:, 1, 0], linear[:, 0, 0])).round(6) % 360


def _mirrored(group: Any) -> np.ndarray:
    return np.linalg.det(group.linear("plane")) < 0


def bound_rows(
    data: str, images: Tensor, labels: Tensor, answers: Mapping[str, Sequence[Pair]]
) -> list[Row]:
    """Evaluate the bounds of a mirror-invariant classifier, on orbits that are matched exactly.

    Args:
        data: its name.
        images: test images with their mirrored copies.
        labels: `[n]`.
        answers: confidence and predicted class of each seed, by network.

    Returns:
        one row a network and seed: the accuracy and its ceiling, the ECE and its sharp interval,
        both of the orbit's mean answer, and how far the mirrored answer lies from the upright one.
    """
    mirror = dihedral(1)
    orbit = bounds.match_orbits(images.numpy(), mirror, action=Images()).orbit
    count = int(labels.max()) + 1
    size = np.bincount(orbit)
    rows = []
    for network, seeds in answers.items():
        for seed, (confidence, predicted) in enumerate(seeds):
            mean = np.bincount(orbit, weights=confidence.double().numpy()) / size
            gap = float(np.abs(confidence.double().numpy() - mean[orbit]).max())
            first = predicted.numpy()[np.unique(orbit, return_index=True)[1]]
            table = bounds.OrbitTable.from_labels(
                orbit, labels.numpy(), labels=count, confidence=mean[orbit], predicted=first[orbit]
            )
            found = bounds.classification(table, bins=BINS)
            rows.append(
                {
                    "data": data,
                    "network": network,
                    "seed": seed,
                    "galaxies": len(orbit),
                    "orbits": int(orbit.max()) + 1,
                    "accuracy": table.accuracy,
                    "ceiling": table.accuracy_ceiling,
                    "ece": found["ece"].value,
                    "lower": found["sharp_lower"].value,
                    "upper": found["sharp_upper"].value,
                    "mirror_gap": gap,
                    "changed": float((predicted.numpy() != first[orbit]).mean()),
                }
            )
    return rows
