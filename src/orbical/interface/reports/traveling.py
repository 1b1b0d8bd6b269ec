"""Models that travel inside a report: ONNX files, run in the page by onnxruntime-web.

The runtime is foreign code and no part of this package: it is read from an npm package that the
user installs, and written into the report, where it runs in one thread, without a server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from ..._trees import leaves
from ...errors import InputError, check_name
from ...predictors import OnnxPredictor, external_files
from ...tasks import CLASS_PROBABILITY, class_probabilities
from ..orbit_positions import OrbitLocator
from ..session.scan_view import ScanView
from ..wire import encode_report_part

MOST_BYTES = 10_000_000
"""The largest model that travels; the page must read it before it answers."""
RUNTIME = "onnxruntime-web"
INSTALL = f"npm install {RUNTIME}@1.30"
_SCRIPT = "ort.wasm.bundle.min.mjs"
_BINARY = "ort-wasm-simd-threaded.wasm"
_EXPORT = (
    "torch.onnx.export(net, (images[:2],), 'net.onnx', external_data=False, "
    'dynamic_shapes=({0: "batch"},))'
)
_BETWEEN = "a group with positions between its elements"
_PROBES, _TOLERANCE = 4, 0.01
_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?\s*$")


@dataclass(frozen=True)
class TravelingModels:
    """Models and the runtime, as parts of a report.

    Attributes:
        names: The models, in the order of the parts `model/0`, `model/1`, ...
        parts: The parts of the report, by name.
        script: The JavaScript of the runtime.
        version: Its version.
    """

    names: list[str]
    parts: dict[str, bytes]
    script: str
    version: str


def check_traveling_models(view: ScanView, models: Mapping[str, str | Path]) -> None:
    """Check that models can run in the page of a report, before any work."""
    record, live = view.scan.record, view.live
    task, action = record.task, record.task.input.get("action")
    score = record.score.meaning
    wanted = [
        (f"a score that is the {CLASS_PROBABILITY}", score == CLASS_PROBABILITY, score),
        ("outputs as they are", task.read is None, f"outputs read by {task.read}"),
        ("inputs as they are", record.preprocess is None, f"preprocess {record.preprocess}"),
        ("images that rotate, shift or scale", action in ("Images", "Window"), action),
        (_BETWEEN, OrbitLocator(view.group).continuous, view.group.spec),
        ("inputs in the scan, or data=", live.has_inputs, "none"),
    ]
    for expected, holds, got in wanted:
        if not holds:
            raise InputError("with_models", expected, got)
    for name, path in models.items():
        check_name("with_models", name, view.models)
        _check_traveling_file(view, name, Path(path))


def traveling_models(models: Mapping[str, str | Path]) -> TravelingModels:
    """Read checked models, and the runtime that they need."""
    folder = traveling_runtime_folder()
    about = json.loads((folder.parent / "package.json").read_text("utf-8"))
    parts = {"runtime": _bytes_part((folder / _BINARY).read_bytes())}
    for number, path in enumerate(models.values()):
        parts[f"model/{number}"] = _bytes_part(Path(path).read_bytes())
    script = _runtime_script_of_traveling((folder / _SCRIPT).read_text("utf-8"))
    return TravelingModels([*models], parts, script, str(about["version"]))


def traveling_runtime_folder() -> Path:
    """Find the runtime in `node_modules` of this folder or one above it."""
    here = Path.cwd()
    for place in (here, *here.parents):
        folder = place / "node_modules" / RUNTIME / "dist"
        if (folder / _SCRIPT).is_file() and (folder / _BINARY).is_file():
            return folder
    expected = f"the npm package {RUNTIME} in {str(here)!r} or above"
    raise InputError("with_models", expected, "none", remedy=INSTALL)


def _runtime_script_of_traveling(text: str) -> str:
    """Return a module as a script that leaves its exports in `globalThis.ort`.

    An inline script cannot be imported by another.

    >>> _runtime_script_of_traveling("const a = 1;export{a as env};")
    'const a = 1;globalThis.ort={env:a};'
    """
    text = re.sub(r"//# sourceMappingURL=.*", "", text)
    found = _EXPORTS.search(text)
    if found is None:
        raise InputError("with_models", f"a module of {RUNTIME} 1.30", "another", remedy=INSTALL)
    pairs = [[word.strip() for word in one.split(" as ")] for one in found[1].split(",")]
    named = ",".join(f"{pair[-1]}:{pair[0]}" for pair in pairs)
    script = f"{text[: found.start()]}globalThis.ort={{{named}}};"
    return script.replace("</script", "<\\/script")


def _check_traveling_file(view: ScanView, name: str, path: Path) -> None:
    def require(holds: bool, expected: str, got: object, remedy: str = _EXPORT) -> None:
        if not holds:
            raise InputError(f"with_models {name}", expected, got, remedy=remedy)

    is_file = path.suffix.lower() == ".onnx" and path.is_file()
    require(is_file, "an .onnx file", repr(str(path)), f"write one with {_EXPORT}")
    size, large = path.stat().st_size, "use orbical view for large models"
    require(size <= MOST_BYTES, f"at most {MOST_BYTES:,} bytes", f"{size:,}", large)
    apart = b"location" in path.read_bytes() and bool(external_files(path))
    require(not apart, "weights inside the file", "them in another")
    predictor = OnnxPredictor(str(path))
    moved = view.live.moved(0, view.group[[view.group.identity]])
    require(isinstance(moved, Tensor), "data of one tensor", "several", "")
    shape = [1, *next(leaves(moved)).shape[2:]]
    for declared, kind in predictor.declared_inputs.values():
        sides = zip(declared, shape, strict=False)
        fits = len(declared) == len(shape) and not any(
            isinstance(side, int) and side != own for side, own in sides
        )
        alone = len(predictor.declared_inputs) == 1 and kind == "tensor(float)"
        require(alone and fits, f"one float input of shape {shape}", f"{kind} {declared}")
    _check_traveling_answers(view, name, predictor)


def _check_traveling_answers(view: ScanView, name: str, predictor: OnnxPredictor) -> None:
    """Check that a model answers as the one that was scanned, on a few untransformed inputs."""
    start = view.group.identity
    outputs = view.scan.record.task.settings["outputs"]
    for sample in range(min(_PROBES, view.samples)):
        moved = view.live.moved(sample, view.group[[start]])
        assert isinstance(moved, Tensor)
        found = class_probabilities(predictor(moved[0]), outputs).max().item()
        known = view.response("confidence", sample, view.models.index(name))[start]
        if np.isfinite(known) and abs(found - known) > _TOLERANCE:
            got = f"one with the confidence {found:.3f} at sample {sample}, not {known:.3f}"
            raise InputError(f"with_models {name}", "the model that was scanned", got)


def _bytes_part(content: bytes) -> bytes:
    return encode_report_part({}, {"content": np.frombuffer(content, np.uint8)})
