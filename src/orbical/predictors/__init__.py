"""Any model as one protocol: a batch in, raw outputs out, on the device of the scan.

`as_predictor` adapts torch modules, exported programs (`.pt2`), ONNX files, scikit-learn
estimators, ASE calculators and plain functions on torch, NumPy or JAX arrays. A model named by an
import path or an exported program is the user's own code, and loading it runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._imports import import_attribute
from ..errors import InputError
from .base import Partial, Predictor
from .calculators import CalculatorPredictor, is_calculator
from .files import ExportedPredictor, OnnxPredictor
from .objects import FunctionPredictor, SklearnPredictor, TorchPredictor, numpy_function

__all__ = [
    "CalculatorPredictor",
    "ExportedPredictor",
    "FunctionPredictor",
    "OnnxPredictor",
    "Partial",
    "Predictor",
    "SklearnPredictor",
    "TorchPredictor",
    "as_predictor",
    "numpy_function",
]

_FILES = {".onnx": OnnxPredictor, ".pt2": ExportedPredictor}


def as_predictor(model: Any) -> Predictor:
    """Adapt a model, a file name (`.onnx`, `.pt2`) or an import path `package.module:attribute`.

    >>> as_predictor("torch.nn:Identity()").source
    'torch.nn:Identity()'
    """
    if isinstance(model, Predictor):
        return model
    if isinstance(model, str | Path):
        return _from_text(str(model))
    if isinstance(model, torch.nn.Module):
        return TorchPredictor(model)
    if isinstance(model, torch.export.ExportedProgram):
        return ExportedPredictor(model)
    if is_calculator(model):
        return CalculatorPredictor(model)
    if hasattr(model, "predict_proba") or (hasattr(model, "predict") and hasattr(model, "fit")):
        return SklearnPredictor(model)
    if isinstance(model, type):
        raise InputError(f"model: the class {model.__name__} given, an instance of it expected")
    if callable(model):
        return FunctionPredictor(model)
    raise InputError(
        f"model: a {type(model).__name__} given; a torch module, an exported program, an ONNX "
        "file, an sklearn estimator, an ASE calculator or a callable expected"
    )


def _from_text(text: str) -> Predictor:
    suffix = Path(text).suffix
    if suffix in _FILES:
        if not Path(text).is_file():
            raise InputError(f"model: there is no file {text!r}")
        return _FILES[suffix](text)
    if ":" not in text:
        raise InputError(
            f"model: {text!r} given, package.module:attribute or a file ending in "
            f"{' or '.join(_FILES)} expected"
        )
    predictor = as_predictor(import_attribute(text, "model"))
    predictor.source = text
    if isinstance(predictor, CalculatorPredictor):
        predictor.maker = text  # each worker process imports its own
    return predictor
