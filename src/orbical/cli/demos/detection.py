"""Two detectors on generated scenes, under shifts of the field of view."""

from __future__ import annotations

from pathlib import Path

from . import Made, Request, most_variable, usual_figures

PURPOSE = "two detectors on generated scenes under shifts; one was trained on centered objects only"
SAMPLES = 16
STEP = 4
SEED = 2026


def run(request: Request) -> Made:
    """Scan two detectors of the same architecture and budget on new scenes."""
    from ...actions import Window
    from ...datasets import scenes
    from ...groups import translations
    from ...tasks import Detection
    from ...zoo import detector

    made = scenes(request.samples or SAMPLES, seed=SEED)
    weights = request.weights(_train)
    models = {name: detector.load(name, weights) for name in detector.NAMES}
    result = request.scan(
        models,
        (made["images"], made["objects"]),
        group=translations(32, STEP),
        task=Detection(Window(128), classes=made["classes"]),
        keep="inputs",
    )
    sample = most_variable(result)
    image = result.data["input"].values[sample].transpose(1, 2, 0)
    return Made(result, models, usual_figures(result, sample, image, made["classes"]))


def _train(folder: Path) -> None:
    """Train both detectors again, with a smaller budget than those that ship."""
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
