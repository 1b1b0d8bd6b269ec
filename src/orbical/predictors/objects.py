"""Predictors from Python objects: torch modules, sklearn estimators, functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .._imports import name_of, words_of
from .._trees import Tree, as_tensors, leaves, tree_map
from ..errors import InputError, ModelError
from .base import Predictor, batch_size, to_numpy

_NEEDS_DERIVATIVES = ("nference tensor", "does not require grad", "not require gradient")
_MOST_CLASSES = 100_000  # whole numbers beyond are names, not places in an answer


class TorchPredictor(Predictor):
    """A torch module, run in eval and inference mode; its mode and device are restored.

    Data are given to it in the precision of its weights. A module that takes derivatives as it
    answers (forces as the slope of an energy) cannot do so in inference mode; where that raises, it
    is run with derivatives, and this is remembered.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.source = name_of(type(module))
        self._precisions = {p.dtype for p in module.parameters() if p.is_floating_point()}
        self._differentiates = False

    def __call__(self, batch: Tree) -> Any:
        """Call the module; a dictionary batch is passed as it is, a tuple as arguments."""
        batch = tree_map(self._cast, batch)
        if not self._differentiates:
            try:
                return self._run(batch)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                if not any(words in str(error) for words in _NEEDS_DERIVATIVES):
                    raise
        answers = self._run_with_derivatives(batch)
        self._differentiates = True
        return answers

    def _run(self, batch: Tree) -> Any:
        return as_tensors(self.module(*batch) if isinstance(batch, tuple) else self.module(batch))

    def _run_with_derivatives(self, batch: Tree) -> Any:
        with torch.inference_mode(False), torch.enable_grad():
            batch = tree_map(lambda leaf: leaf.clone(), batch)  # not made in inference mode
            return _detached(self._run(batch))

    def _cast(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        # A module with weights in several precisions chooses for itself, but for double.
        mixed = len(self._precisions) > 1 and leaf.dtype != torch.float64
        if mixed or not self._precisions or leaf.dtype in self._precisions:
            return leaf
        return leaf.to(max(self._precisions, key=lambda kind: kind.itemsize))

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Put every submodule in eval mode on the device, and restore each of them."""
        modes = {module: module.training for module in self.module.modules()}
        first = next(self.module.parameters(), None)
        home = None if first is None else first.device
        try:
            self._bring(device)
            with torch.inference_mode():
                yield
        finally:
            for module, training in modes.items():
                module.training = training
            if home is not None and home != device:
                self.module.to(home)

    def _bring(self, device: torch.device) -> None:
        try:
            self.module.eval().to(device)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError) as error:
            raise ModelError(
                f"model {self.source}: cannot be brought to {device}: {words_of(error)}"
            ) from error

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


def _detached(raw: Any) -> Any:
    """Take the derivatives off the tensors of a raw output, where they lie in plain containers."""
    if isinstance(raw, torch.Tensor):
        return raw.detach()
    return tree_map(_detached, raw) if type(raw) in (dict, tuple, list) else raw


class SklearnPredictor(Predictor):
    """A scikit-learn estimator on flattened inputs: `predict_proba` where it has it.

    Where its classes are whole numbers, column `c` of the answer is class `c`, also where it never
    saw some of them.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.source = name_of(type(estimator))
        self.outputs = "probabilities" if hasattr(estimator, "predict_proba") else None
        if not _is_fitted(estimator):
            raise InputError(f"model: {type(estimator).__name__} has not been fitted")
        self._columns = _class_columns(estimator)

    def __call__(self, batch: Tree) -> Any:
        """Predict class probabilities, or values."""
        columns = [leaf.flatten(1).cpu().numpy() for leaf in leaves(batch)]
        table = np.concatenate(columns, axis=1)
        if self.outputs is None:
            return torch.as_tensor(self.estimator.predict(table))
        known = torch.as_tensor(self.estimator.predict_proba(table))
        if self._columns is None:
            return known
        every = known.new_zeros(len(known), int(self._columns.max()) + 1)
        every[:, self._columns] = known
        return every


def _is_fitted(estimator: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):  # a look-alike from elsewhere says so by its features
        return hasattr(estimator, "n_features_in_")
    return True


def _class_columns(estimator: Any) -> np.ndarray | None:
    """Give the class of each column of `predict_proba`, None where they are 0, 1, 2, ..."""
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.dtype.kind not in "iu":
        return None
    usual = np.array_equal(classes, np.arange(len(classes)))
    indices = bool(((classes >= 0) & (classes < _MOST_CLASSES)).all())
    return classes if indices and not usual else None


class FunctionPredictor(Predictor):
    """A function on torch tensors, or on NumPy (or JAX) arrays.

    It is called with tensors first; where that raises, with NumPy arrays, and it is remembered
    which worked. `numpy_function` says so beforehand.
    """

    def __init__(self, function: Callable[..., Any], on: str | None = None) -> None:
        self.function = function
        self._on = on
        self.source = name_of(function)

    def __call__(self, batch: Tree) -> Any:
        """Call the function the way it works."""
        return self._first(batch) if self._on is None else self._call(batch, self._on)

    def _call(self, batch: Tree, on: str) -> Any:
        given = to_numpy(batch) if on == "numpy" else batch
        arguments = given if isinstance(given, tuple) else (given,)
        return as_tensors(self.function(*arguments))

    def _first(self, batch: Tree) -> Any:
        """Find out how the function can be called; one that works is called once."""
        errors = []
        for on in ("torch", "numpy"):
            try:
                answer = self._call(batch, on)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                errors.append(f"on {on} arrays: {type(error).__name__}: {words_of(error)}")
            else:
                self._on = on
                return answer
        raise ModelError(
            f"{self.source} raised for a batch of {batch_size(batch)} ({'; '.join(errors)})"
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
