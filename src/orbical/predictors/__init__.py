"""One interface to any model: a batch in, raw outputs out, on the device of the scan.

`as_predictor` adapts torch modules (compiled, scripted and `DataParallel` ones included), models,
pipelines and folders of Hugging Face transformers, exported programs (`.pt2`), TorchScript (`.pt`),
ONNX and TensorFlow Lite files, scikit-learn estimators, ASE calculators and functions on torch,
NumPy or JAX arrays. Loading an import path or an exported program runs code.
`OrbitAverage` averages any of them over a group; `RaggedPredictor` passes graphs of different sizes
without padding.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from .._imports_and_paths import existing_file, import_attribute, local_file
from .._ragged import to_ragged
from ..errors import InputError
from .calculators import CalculatorPredictor, is_calculator
from .detectors import DetectorPredictor, as_detector
from .hugging_face_models import (
    HuggingFacePredictor,
    hugging_face_predictor,
    is_causal_model,
    is_model_folder,
    processed_for_model,
)
from .language_models import CausalLM, Endpoint
from .model_files import (
    ExportedPredictor,
    OnnxPredictor,
    ScriptedPredictor,
    TflitePredictor,
    external_files,
)
from .model_objects import (
    FunctionPredictor,
    RaggedPredictor,
    SklearnPredictor,
    TorchPredictor,
    numpy_function,
    to_pyg,
)
from .orbit_average import OrbitAverage
from .predictor import PartialOutputs, Predictor, Raw, count_inputs

__all__ = [
    "CalculatorPredictor", "CausalLM", "DetectorPredictor", "Endpoint", "ExportedPredictor",
    "FunctionPredictor", "HuggingFacePredictor", "OnnxPredictor", "OrbitAverage",
    "PartialOutputs", "Predictor", "RaggedPredictor", "ScriptedPredictor", "SklearnPredictor",
    "TflitePredictor", "TorchPredictor", "as_predictor", "numpy_function", "to_pyg", "to_ragged",
]  # fmt: skip

_FILES: dict[str, Callable[[str], Predictor]] = {
    ".onnx": OnnxPredictor,
    ".pt2": ExportedPredictor,
    ".tflite": TflitePredictor,
    **dict.fromkeys((".pt", ".pth", ".torchscript"), ScriptedPredictor),
}
_WEIGHTS = ".gguf"  # of a language model


def as_predictor(model: object) -> Predictor:
    """Adapt a model of any supported kind.

    Args:
        model: a model, a file name (`.onnx`, `.tflite`, `.pt2` of `torch.export`, `.pt` of
            TorchScript; `yolo.onnx:yolov8` names the decoding of a detector, and `yolo.onnx:raw`
            keeps its outputs as they are), a folder that `save_pretrained` of transformers wrote,
            or an import path `package.module:attribute`. Language models are folders or `.gguf`
            files, and `FOLDER:likelihood` names their scoring; `http://host/v1#model` is one that
            is served.

    Returns:
        The predictor; a predictor is returned as it is.

    Raises:
        InputError: If the model is of no supported kind.
        ModelError: If its file cannot be read.

    See Also:
        Predictor: What to subclass for a model of another kind.

    Example:
        >>> as_predictor("torch.nn:Identity()").source
        'torch.nn:Identity()'
    """
    if isinstance(model, Predictor):
        return model
    if isinstance(model, str | Path):
        return _predictor_from_text(str(model))
    adapted = hugging_face_predictor(model)
    if adapted is not None:
        return adapted
    if isinstance(model, torch.nn.Module):
        return TorchPredictor(model)
    if isinstance(model, torch.export.ExportedProgram):
        return ExportedPredictor(model)
    if is_calculator(model):
        return CalculatorPredictor(model)
    if hasattr(model, "predict_proba") or (hasattr(model, "predict") and hasattr(model, "fit")):
        return SklearnPredictor(model)
    if isinstance(model, type):
        name = model.__name__
        raise InputError("model", "an instance", f"the class {name}", remedy=f"pass {name}()")
    if callable(model):
        return FunctionPredictor(model)
    kinds = "a torch module, an exported program, an ONNX file, a scikit-learn estimator"
    raise InputError("model", f"{kinds}, an ASE calculator or a function", type(model))


def model_path(text: str) -> Path | None:
    """Return the file or the folder that a text names as a model, None for an import path.

    >>> str(model_path("nets/yolo.onnx:yolov8")), model_path("package.module:net")
    ('nets/yolo.onnx', None)
    >>> str(model_path("gemma.gguf:likelihood"))
    'gemma.gguf'
    """
    place = _split_decoding(text)[0]
    if Path(place).suffix in (*_FILES, _WEIGHTS):
        return local_file("model", place)
    return Path(place).expanduser() if is_model_folder(text) else None


def _split_decoding(text: str) -> tuple[str, str | None]:
    path, separator, decoding = text.rpartition(":")
    named = bool(separator) and Path(path).suffix in (*_FILES, _WEIGHTS)
    return (path, decoding) if named else (text, None)


def _is_language_model(place: str) -> bool:
    return bool(place) and (Path(place).suffix == _WEIGHTS or is_causal_model(place))


def _is_endpoint(text: str) -> bool:
    """Check for the address of a server of language models rather than of a file.

    >>> _is_endpoint("http://localhost:8000/v1#llama.pt"), _is_endpoint("https://host/net.onnx")
    (True, False)
    """
    of_file = "#" not in text and Path(_split_decoding(text)[0]).suffix in _FILES
    return text.startswith(("http://", "https://")) and not of_file


def _predictor_from_text(text: str) -> Predictor:
    if _is_endpoint(text):
        url, _, name = text.partition("#")
        return Endpoint(url, name)
    place, _, scoring = text.rpartition(":")
    if not _is_language_model(place):
        place, scoring = text, "letters"
    if _is_language_model(place):
        return CausalLM(place, scoring=scoring)
    path = model_path(text)
    if path is not None and path.suffix not in _FILES:
        return HuggingFacePredictor.load(str(path))
    if path is not None:
        network = _FILES[path.suffix](str(existing_file("model", path)))
        return as_detector(network, _split_decoding(text)[1])
    if ":" not in text:
        file = f"package.module:attribute, a file ending in {' or '.join(_FILES)}"
        folder = "a folder that save_pretrained of transformers wrote"
        raise InputError("model", f"{file}, or {folder}", repr(text))
    predictor = as_predictor(import_attribute(text, "model"))
    predictor.source = text
    if isinstance(predictor, CalculatorPredictor):
        predictor.maker = text  # each worker process imports its own
    return predictor
