"""Three networks on point clouds of generated furniture, under rotations of space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import Made, Request, most_variable, usual_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...store import Scan

PURPOSE = "three networks on generated point clouds under rotations of space; one is invariant"
SAMPLES = 80
AZIMUTHS, ANGLES = 24, 7


def run(request: Request) -> Made:
    """Scan the networks on new furniture.

    One was trained on upright furniture, one on rotated furniture, and one is invariant by
    construction; it needs the extra `equivariant` and is skipped if that is not installed.
    """
    from ...actions import Points
    from ...datasets import BUILDERS, furniture
    from ...groups import slices3d
    from ...tasks import Classification
    from ...zoo import pointnet_training

    weights = request.weights(lambda folder: pointnet_training.main(["--out", str(folder)]))
    count = request.samples or SAMPLES
    clouds = furniture(-(-count // len(BUILDERS)), pointnet_training.POINTS)
    models = _models(weights)
    result = request.scan(
        models,
        (clouds.points[:count], clouds.labels[:count]),
        group=slices3d(AZIMUTHS, ANGLES),
        task=Classification(input=Points(), classes=clouds.classes),
        keep=("probabilities", "inputs"),
    )
    return Made(result, models, figures_of(result, clouds.classes))


def _models(weights: Path | None) -> dict[str, object]:
    from ...errors import MissingExtra
    from ...zoo import pointnet

    models: dict[str, object] = {}
    for name in pointnet.NAMES:
        try:
            models[name] = pointnet.load(name, weights)
        except MissingExtra as error:
            print(f"{name} skipped: {error}")
    return models


def figures_of(scan: Scan, classes: tuple[str, ...]) -> dict[str, Figure]:
    """Draw the aggregate plot, the cloud whose score varies most, and the embedding."""
    from ... import embedding, figures
    from ...figures import cloud_picture

    sample = most_variable(scan, "augmented")
    cloud = cloud_picture(scan.data["input"].values[sample])
    placed = embedding.embed(scan, model="plain")
    made = usual_figures(scan, sample, cloud, classes)
    return {**made, "embedding": figures.embedding(placed, color="label")}
