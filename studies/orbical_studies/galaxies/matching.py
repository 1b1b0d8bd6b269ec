"""Which galaxies share an orbit: exactly for generated ones, never for photographs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from orbical.actions import Images
from orbical.bounds import OrbitTable, classification, match_orbits
from orbical.calibration import share_interval
from orbical.groups import dihedral

from ..framework.results import Row
from .contrasts import Pair
from .training import BINS, coarse

COARSE, TURNS = 32, 24


def neighbor_rows(data: str, images: Tensor, labels: Tensor) -> list[Row]:
    """Find each galaxy's nearest other after the best element of a group, on coarse images.

    Distances are relative to the galaxy's own norm. `turning` is how far a galaxy lies from itself
    after a rotation and its inverse: a tolerance below it is meaningless.

    Args:
        data: Its name.
        images: Test images, `[n, channels, h, w]`.
        labels: `[n]`.

    Returns:
        One row a group: the `least` and the median distance `nearest`; how many galaxies are
        `matched` within `turning`, into how many `orbits`, and the accuracy `ceiling` of those;
        and the share `wrong` of nearest ones of another class.
    """
    small = coarse(images, COARSE)
    best, turning = _least_squares(small)
    head = {"galaxies": len(small), "turning": turning}
    norms = small.flatten(1).norm(dim=1)
    return [
        {"data": data, "group": name, **head, **_nearest_others(squared, norms, labels, turning)}
        for name, squared in best.items()
    ]


def _least_squares(images: Tensor) -> tuple[dict[str, Tensor], float]:
    """Return squared distances `[n, n]` after the best element of each group, and `turning`."""
    group, action = dihedral(TURNS), Images("bicubic")
    linear = group.linear("plane")
    angles = np.degrees(np.arctan2(linear[:, 1, 0], linear[:, 0, 0])).round(6) % 360
    mirrored = np.linalg.det(linear) < 0
    members = {
        "trivial": (angles == 0) & ~mirrored,
        "C_4": (angles % 90 == 0) & ~mirrored,
        "rotations": ~mirrored,
        "rotations and mirrors": np.ones(len(group), dtype=bool),
    }
    flat = images.flatten(1)
    squares = flat.square().sum(1)
    best = {name: torch.full((len(flat),) * 2, torch.inf, dtype=flat.dtype) for name in members}
    lost = []
    for k in range(len(group)):
        element = group[k : k + 1]
        moved = action.apply(element, images)
        lost.append(action.defect(element, images, moved)[0])
        turned = moved[0].flatten(1)
        squared = turned.square().sum(1)[:, None] + squares - 2 * turned @ flat.T
        for name in (name for name, inside in members.items() if inside[k]):
            torch.minimum(best[name], squared, out=best[name])
    return best, float(torch.stack(lost).median(0).values.median())


def _nearest_others(squared: Tensor, norms: Tensor, labels: Tensor, turning: float) -> Row:
    """Measure how near the nearest others are, which of them share an orbit, and their labels."""
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
        "ceiling": OrbitTable.from_labels(orbit, labels.numpy()).accuracy_ceiling,
        "wrong": float(share.value),
        "wrong_low": float(share.low),
        "wrong_high": float(share.high),
    }


def bound_rows(
    data: str, images: Tensor, labels: Tensor, outputs: Mapping[str, Sequence[Pair]]
) -> list[Row]:
    """Evaluate the bounds of a mirror-invariant classifier, on orbits that are matched exactly.

    Args:
        data: Its name.
        images: Test images with their mirrored copies.
        labels: `[n]`.
        outputs: Confidence and predicted class of each seed, by network.

    Returns:
        One row a network and seed: accuracy and its ceiling, ECE and its sharp interval, both of
        the orbit's mean prediction, and how much mirroring an image changes the prediction.
    """
    orbit = match_orbits(images.numpy(), dihedral(1), action=Images()).orbit
    first = np.unique(orbit, return_index=True)[1]
    count = int(labels.max()) + 1
    rows: list[Row] = []
    for network, seeds in outputs.items():
        for seed, (confidence, classes) in enumerate(seeds):
            given, predicted = confidence.double().numpy(), classes.numpy()
            mean = (np.bincount(orbit, weights=given) / np.bincount(orbit))[orbit]
            one = {"confidence": mean, "predicted": predicted[first][orbit]}
            table = OrbitTable.from_labels(orbit, labels.numpy(), labels=count, **one)
            found = classification(table, bins=BINS)
            rows.append(
                {"data": data, "network": network, "seed": seed, "galaxies": len(orbit)}
                | {"orbits": len(first), "accuracy": table.accuracy}
                | {"ceiling": table.accuracy_ceiling, "ece": found["ece"].value}
                | {"lower": found["forced_ece"].value, "upper": found["sharp_upper"].value}
                | {"mirror_gap": float(np.abs(given - mean).max())}
                | {"changed": float((predicted != predicted[first][orbit]).mean())}
            )
    return rows
