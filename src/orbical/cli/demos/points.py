"""Generated furniture as point clouds, three networks, rotations in three planes of axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import Made, Order

PURPOSE = "networks on generated point clouds under rotations in space; one cannot see them at all"
SAMPLES = 80
AZIMUTHS, ANGLES = 24, 7


def run(order: Order) -> Made:
    """Scan the networks on furniture that they have not seen.

    One saw upright furniture only, one saw it turned, and one is invariant by construction, which
    needs the extra `equivariant` and is left out where that is not installed.
    """
    from ...actions import Points
    from ...datasets.furniture_clouds import BUILDERS, furniture
    from ...groups import slices3d
    from ...scanning.engine import scan
    from ...tasks import Classification
    from ...zoo import pointnet, pointnet_training

    weights = order.folder / "weights" if order.train else None
    if weights is not None:
        pointnet_training.main(["--out", str(weights)])
    count = order.samples or SAMPLES
    clouds = furniture(-(-count // len(BUILDERS)), pointnet_training.POINTS)
    models = _models(pointnet, weights)
    result = scan(
        models,
        (clouds.points[:count], clouds.labels[:count]),
        group=slices3d(AZIMUTHS, ANGLES),
        task=Classification(input=Points(), classes=clouds.classes),
        out=order.store,
        overwrite=order.train or order.overwrite,
        keep=("probabilities", "inputs"),
    )
    return Made(result, models, figures_of(result, clouds.classes))


def _models(pointnet: Any, weights: Path | None) -> dict[str, Any]:
    from ...errors import MissingExtra

    models = {}
    for name in pointnet.NAMES:
        try:
            models[name] = pointnet.load(name, weights)
        except MissingExtra as error:
            print(f"{name} left out: {error}")
    return models


def figures_of(scan: Any, classes: tuple[str, ...]) -> dict[str, Any]:
    """Draw the aggregate plot, the cloud whose answer changes most, and the embedding."""
    from ... import embedding, figures, nero
    from ...figures.clouds import cloud_picture

    spread = scan.data["score"].sel(model="augmented").values.std(1)
    sample = int(spread.argmax())
    cloud = scan.data["input"].values[sample]
    response = nero.individual(scan, sample)
    response = response.assign_coords(label=classes[int(response["label"])])
    return {
        "aggregate": figures.aggregate(nero.aggregate(scan)),
        "individual": figures.individual(response, cloud_picture(cloud)),
        "embedding": figures.embedding(embedding.embed(scan, model="plain"), color="label"),
    }
