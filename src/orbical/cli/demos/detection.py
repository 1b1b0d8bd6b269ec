"""Two detectors on generated scenes, under shifts of the field of view."""

from __future__ import annotations

import orbical as ob

from . import DemoOptions, DemoResult, most_variable, usual_figures

PURPOSE = "two detectors on generated scenes under shifts; one was trained on centered objects only"
SAMPLES = 16
STEP = 4
SEED = 2026


def run(options: DemoOptions) -> DemoResult:
    """Scan two detectors of the same architecture and budget on new scenes."""
    from ...zoo import detector

    made = ob.datasets.scenes(options.samples or SAMPLES, seed=SEED)
    models = {name: detector.load(name, options.weights) for name in detector.NAMES}
    result = options.scan(
        models,
        (made["images"], made["objects"]),
        group=ob.groups.translations(32, STEP),
        task=ob.tasks.Detection(ob.actions.Window(128), classes=made["classes"]),
        keep="inputs",
    )
    sample = most_variable(result)
    image = result.data["input"].values[sample].transpose(1, 2, 0)
    return DemoResult(result, models, usual_figures(result, sample, image, made["classes"]))
