"""Predictors from Python objects: torch modules, sklearn estimators, functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ..errors import InputError, ModelError
from ..trees import Tree, leaves
from .base import Predictor, as_tensors, batch_size, to_numpy


class TorchPredictor(Predictor):
    """A torch module, run in eval and inference mode; its mode and device are restored."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        kind = type(module)
        self.source = f"{kind.__module__}:{kind.__qualname__}"

    def __call__(self, batch: Tree) -> Any:
        """Call the module; a dictionary batch is passed as it is, a tuple as arguments."""
        return as_tensors(self.module(*batch) if isinstance(batch, tuple) else self.module(batch))

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Put every submodule in eval mode on the device, and restore each of them."""
        modes = {module: module.training for module in self.module.modules()}
        first = next(self.module.parameters(), None)
        home = None if first is None else first.device
        self.module.eval().to(device)
        try:
            with torch.inference_mode():
                yield
        finally:
            for module, training in modes.items():
                module.training = training
            if home is not None and home != device:
                self.module.to(home)

    def fingerprint(self) -> str | None:
        """Hash the architecture's printed form and all parameters and buffers."""
        digest = hashlib.sha256(repr(self.module).encode())
        for name, value in sorted(self.module.state_dict().items()):
            if not isinstance(value, torch.Tensor):
                continue
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data if len(flat) else b"")
        return digest.hexdigest()[:16]


class SklearnPredictor(Predictor):
    """A scikit-learn estimator on flattened inputs: `predict_proba` where it has it."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.source = f"{type(estimator).__module__}:{type(estimator).__qualname__}"
        self.answers = "probabilities" if hasattr(estimator, "predict_proba") else None
        if not hasattr(estimator, "n_features_in_"):
            raise InputError(f"model: {type(estimator).__name__} has not been fitted")

    def __call__(self, batch: Tree) -> Any:
        """Predict class probabilities, or values."""
        columns = [leaf.flatten(1).cpu().numpy() for leaf in leaves(batch)]
        table = np.concatenate(columns, axis=1)
        if self.answers:
            return torch.as_tensor(self.estimator.predict_proba(table))
        return torch.as_tensor(self.estimator.predict(table))


class FunctionPredictor(Predictor):
    """A function on torch tensors, or on NumPy (or JAX) arrays.

    It is called with tensors first; where that raises, with NumPy arrays, and it is remembered
    which worked. `numpy_function` says so beforehand.
    """

    def __init__(self, function: Callable[..., Any], on: str | None = None) -> None:
        self.function = function
        self._on = on
        kind = function if hasattr(function, "__qualname__") else type(function)
        self.source = f"{kind.__module__}:{kind.__qualname__}"

    def __call__(self, batch: Tree) -> Any:
        """Call the function the way it works."""
        if self._on is None:
            self._on = self._find_out(batch)
        return self._call(batch, self._on)

    def _call(self, batch: Tree, on: str) -> Any:
        given = to_numpy(batch) if on == "numpy" else batch
        arguments = given if isinstance(given, tuple) else (given,)
        return as_tensors(self.function(*arguments))

    def _find_out(self, batch: Tree) -> str:
        errors = []
        for on in ("torch", "numpy"):
            try:
                self._call(batch, on)
            except Exception as error:
                errors.append(f"on {on} arrays: {type(error).__name__}: {error}")
            else:
                return on
        raise ModelError(
            f"model {self.source}: raised for a batch of {batch_size(batch)} ({'; '.join(errors)})"
        )

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Keep torch from recording gradients."""
        with torch.inference_mode():
            yield


def numpy_function(function: Callable[..., Any]) -> FunctionPredictor:
    """Say that a function takes NumPy arrays.

    >>> import torch
    >>> numpy_function(lambda x: x.astype(float).mean((1, 2, 3)))(torch.ones(2, 1, 4, 4))
    tensor([1., 1.], dtype=torch.float64)
    """
    return FunctionPredictor(function, on="numpy")
