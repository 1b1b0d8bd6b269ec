"""Write a group to a store and read it back: arrays for its parts, JSON for the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..groups import Group, Layout

if TYPE_CHECKING:
    import zarr


def describe_group(group: Group) -> dict[str, Any]:
    """Return what is not stored as an array: names, coordinates and layout."""
    return {
        "spec": group.spec,
        "measure": group.measure,
        "identity": group.identity,
        "closed": group.closed,
        "exact_on_grid": group.exact_on_grid,
        "parts": sorted(group.parts),
        "coords": {name: values.tolist() for name, values in group.coords.items()},
        "layout": group.layout.kind,
        "axes": {name: values.tolist() for name, values in group.layout.axes.items()},
    }


def read_group(root: zarr.Group) -> Group:
    """Return the group of a store."""
    folder: Any = root["group"]
    about: Any = json.loads(folder.attrs["group"])
    weights = np.asarray(folder["weights"][:])
    return Group(
        parts={name: np.asarray(folder[name][:]) for name in about["parts"]},
        count=len(weights),
        exact_on_grid=about["exact_on_grid"],
        spec=about["spec"],
        weights=weights,
        measure=about["measure"],
        coords={name: np.asarray(values) for name, values in about["coords"].items()},
        layout=Layout(
            about["layout"],
            np.asarray(folder["index"][:]),
            {name: np.asarray(values) for name, values in about["axes"].items()},
        ),
        identity=about["identity"],
        closed=about["closed"],
    )
