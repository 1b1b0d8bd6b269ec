"""Several outputs of one model: the center of a cloud of points moves, its spread does not."""

from __future__ import annotations

import torch

import orbical as ob


def exact(points):
    return {"center": points.mean(1), "spread": points.var(1).sum(-1)}


def middle_of_box(points):  # a box along the axes does not rotate with the points
    center = (points.amax(1) + points.amin(1)) / 2
    return {"center": center, "spread": points.var(1).sum(-1)}


points = torch.randn(60, 12, 3, generator=torch.Generator().manual_seed(0))
task = ob.tasks.Mixed(
    ob.actions.Points(),
    {"center": "position", "spread": "trivial"},
    units={"center": "Å", "spread": "Å²"},
)
scan = ob.scan(
    {"exact": exact, "middle of the box": middle_of_box},
    (points, exact(points)),
    group="rotations3d:64",
    task=task,
    progress=False,
)
print(scan.data[["gap_center", "gap_spread"]].mean("sample").to_dataframe().round(3))
orbit = ob.nero.aggregate(scan, metric="error_center")
ob.figures.save(ob.figures.aggregate(orbit), "poses.png")
