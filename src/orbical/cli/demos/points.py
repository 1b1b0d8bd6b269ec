"""Three networks on point clouds of generated furniture, under rotations of space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orbical as ob

from . import DemoOptions, DemoResult, most_variable, usual_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...store import Scan

PURPOSE = "three networks on generated point clouds under rotations of space; one is invariant"
SAMPLES = 80
AZIMUTHS, ANGLES, POINTS = 24, 7, 256


def run(options: DemoOptions) -> DemoResult:
    """Scan the networks on new furniture.

    One was trained on upright furniture, one on rotated furniture, and one is invariant by
    construction; it needs the extra `equivariant` and is skipped if that is not installed.
    """
    count = options.samples or SAMPLES
    clouds = ob.datasets.furniture(-(-count // len(ob.datasets.BUILDERS)), POINTS)
    models = _points_models(options.weights)
    result = options.scan(
        models,
        (clouds.points[:count], clouds.labels[:count]),
        group=ob.groups.slices3d(AZIMUTHS, ANGLES),
        task=ob.tasks.Classification(input=ob.actions.Points(), classes=clouds.classes),
        keep=("probabilities", "inputs"),
    )
    return DemoResult(result, models, points_figures(result, clouds.classes))


def _points_models(weights: Path | None) -> dict[str, object]:
    from ...errors import MissingExtra
    from ...zoo import pointnet

    models: dict[str, object] = {}
    for name in pointnet.NAMES:
        try:
            models[name] = pointnet.load(name, weights)
        except MissingExtra as error:
            print(f"{name} skipped: {error}")
    return models


def points_figures(scan: Scan, classes: tuple[str, ...]) -> dict[str, Figure]:
    """Draw the aggregate plot, the cloud whose score varies most, and the embedding."""
    sample = most_variable(scan, "augmented")
    cloud = ob.figures.cloud_picture(scan.data["input"].values[sample])
    placed = ob.embedding.embed(scan, model="plain")
    made = usual_figures(scan, sample, cloud, classes)
    return {**made, "embedding": ob.figures.embedding(placed, color="label")}
