"""Labels of points on one orbit, where the group moves classes too, in the frame of the orbit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from .._arrays import ArrayLike, as_numpy
from ..actions import ActionTree, Classes
from ..groups import Group, as_group, with_classes
from .matching import Orbits, match_elements

Array = np.ndarray


def in_frame_of_orbits(
    x: object,
    classes: Mapping[str, ArrayLike],
    group: Group | str,
    orbits: Orbits,
    representation: str | Mapping[str, Mapping[str | int, str | int]],
    names: Sequence[str] | None,
    action: ActionTree | None,
) -> tuple[Orbits, dict[str, Array], Array, Array]:
    """Return classes as those of the first point of each orbit, one row for each way to a point.

    Where `x = g r`, class c of x is class `pi_g^-1(c)` of the representative r. An equivariant
    classifier predicts probabilities that no stabilizer of r changes, so its accuracy on an orbit
    is at most the largest mass of a class, averaged over all ways to reach each point.

    Args:
        x, group, action: as in `match_orbits`.
        classes: labels or predictions `[N]`, by name.
        orbits: from `match_orbits`.
        representation: `"options"`, or the classes that elements exchange.
        names: the names of the classes.

    Returns:
        The orbits, classes and masses `[R]` of the rows, and the point of each.
    """
    moving = as_group(group)
    if not isinstance(representation, str):
        moving = with_classes(moving, representation, names)
    part = Classes("rows" if isinstance(representation, str) else "classes")
    point, element, undone = match_elements(x, group, orbits, action=action)
    back = moving[element].inverse().compose(moving[undone])
    pulled = {
        name: part.move(back, torch.as_tensor(as_numpy(name, each))[point][:, None])[:, 0].numpy()
        for name, each in classes.items()
    }
    ways = np.bincount(point, minlength=len(orbits.orbit))[point]
    rows = replace(orbits, orbit=orbits.orbit[point], stabilizer=None)
    return rows, pulled, 1 / ways / len(orbits.orbit), point
