"""Generated scenes, two detectors, shifts of the field of view."""

from __future__ import annotations

from typing import Any

from . import Made, Order

PURPOSE = "two detectors on generated scenes under shifts; one saw only centered objects"
SAMPLES = 16
STEP = 4
SEED = 2026


def run(order: Order) -> Made:
    """Scan both detectors of equal architecture and budget on scenes that neither has seen."""
    from ...actions import Window
    from ...datasets import scenes
    from ...groups import translations
    from ...scanning.engine import scan
    from ...tasks import Detection
    from ...zoo import detector

    made = scenes(order.samples or SAMPLES, seed=SEED)
    weights = order.folder / "weights" if order.train else None
    if weights is not None:
        _train(weights)
    models = {name: detector.load(name, weights) for name in detector.NAMES}
    result = scan(
        models,
        (made["images"], made["objects"]),
        group=translations(32, STEP),
        task=Detection(Window(128), classes=made["classes"]),
        out=order.store,
        overwrite=order.train or order.overwrite,
        keep="inputs",
    )
    classes = tuple(made["classes"])
    return Made(result, models, figures_of(result, classes))


def _train(folder: Any) -> None:
    """Train both detectors anew, with a smaller budget than those that ship."""
    import torch

    from ...datasets import scenes
    from ...zoo import detector
    from ...zoo.detector_training import Crops, train

    made = scenes(1000, seed=1)
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    crops = Crops(pixels, made["objects"], torch.ones(len(pixels), 5, dtype=torch.bool))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name, jitter in zip(detector.NAMES, (0.0, 1.0), strict=True):
        net = train(crops, jitter, detector.SMALL, steps=1500, device=device, batch=32)
        facts = {"training set": "orbical.datasets.scenes(1000, seed=1)", "jitter": str(jitter)}
        detector.write(net, folder / f"scenes-{name}.safetensors", facts)


def figures_of(scan: Any, classes: tuple[str, ...]) -> dict[str, Any]:
    """Draw the mean score at every shift, and the scene whose score changes most."""
    from ... import figures, nero

    spread = scan.data["score"].std("element").mean("model").values
    sample = int(spread.argmax())
    image = scan.data["input"].values[sample].transpose(1, 2, 0)
    response = nero.individual(scan, sample)
    response = response.assign_coords(label=classes[int(response["label"])])
    return {
        "aggregate": figures.aggregate(nero.aggregate(scan)),
        "individual": figures.individual(response, image=image),
    }
