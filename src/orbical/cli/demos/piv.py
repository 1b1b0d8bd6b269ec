"""Generated particle pairs, learned and classical flow, 16 elements of D4 x time reversal."""

from __future__ import annotations

from typing import Any

from . import Made, Order

PURPOSE = "flow in generated particle images, turned, mirrored and reversed in time (16 elements)"
SAMPLES = 30
SIZE = 96
SEED = 7


def run(order: Order) -> Made:
    """Scan two networks of equal budget, and OpenCV's methods where it is installed."""
    from ...datasets import particle_pairs
    from ...scanning.engine import scan
    from ...tasks import Flow
    from ...zoo import flownet, flownet_training

    weights = order.folder / "weights" if order.train else None
    if weights is not None:
        flownet_training.main(["--out", str(weights)])
    made = particle_pairs(order.samples or SAMPLES, size=SIZE, seed=SEED)
    models = {name: flownet.load(name, weights) for name in flownet.NAMES} | classical()
    result = scan(
        models,
        (made["pair"], made["flow"]),
        group="dihedral:4*time_reversal",
        task=Flow(),
        out=order.store,
        overwrite=order.train or order.overwrite,
        keep=("inputs",),
        batch_size=8,  # larger ones leave the cache of a processor
    )
    return Made(result, models, figures_of(result))


def classical() -> dict[str, Any]:
    """Give OpenCV's methods where it is installed; the demo does without it as well."""
    from importlib.util import find_spec

    from ...zoo.classical_flow import Farneback, InverseSearch

    if find_spec("cv2") is None:
        return {}
    return {"farneback": Farneback(), "dis": InverseSearch()}


def figures_of(scan: Any) -> dict[str, Any]:
    """Draw the aggregate plot, the pair whose error changes most, and the embedding."""
    from ... import embedding, figures, nero

    error = scan.data["score"].sel(model="directed").values
    most = int((error.std(1) / error.mean(1)).argmax())
    frame = scan.data["input"].values[most, 0]
    made = {
        "aggregate": figures.aggregate(nero.aggregate(scan)),
        "individual": figures.individual(nero.individual(scan, most), image=frame),
    }
    if scan.data.sizes["sample"] > 8:
        made["embedding"] = figures.embedding(embedding.embed(scan, model="directed"))
    return made
