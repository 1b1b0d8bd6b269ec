"""The estimator that every calibrator is, and the file that it is saved to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
from torch import Tensor

from .._arrays import ArrayLike
from .._imports import existing_file
from ..errors import InputError, StoreError, unknown_name
from .score_reader import ScoreReader, read_weights

_REGISTRY: dict[str, type[Calibrator]] = {}


class Calibrator(ClassifierMixin, TransformerMixin, ScoreReader, ABC):  # type: ignore[misc]
    """A map from class scores to calibrated probabilities, fitted on held-out labels.

    A scikit-learn classifier and transformer whose features are the scores of a model: column k
    of `X` is the score of class k. One column, `[N]` or `[N, 1]`, is the score of class 1 of two.
    Torch tensors give torch tensors on their device; anything else gives NumPy arrays.

    Args:
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        classes_: the class of each column, `[C]`.
        n_features_in_: the number of columns of `X` in `fit`.
    """

    learned: ClassVar[tuple[str, ...]] = ()
    """Names of the fitted numbers and arrays, in the order in which they are saved."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _REGISTRY[cls.__name__] = cls

    @abstractmethod
    def _fit(self, outputs: Tensor, labels: Tensor, weight: Tensor) -> None:
        """Fit to outputs `[N, C]`, class indices `[N]` and weights `[N]` that sum to 1."""

    @abstractmethod
    def _apply(self, outputs: Tensor) -> Tensor:
        """Return calibrated probabilities for outputs `[..., C]`."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit on data used neither for training nor for evaluation.

        Args:
            X: class scores `[N, C]`, or those of class 1 of two, `[N]` or `[N, 1]`.
            y: labels `[N]`: column indices, or C distinct labels whose sorted order is that of
                the columns, as in scikit-learn's `classes_`.
            sample_weight: weights `[N]`, not negative; None for equal ones.
            classes: the label of each column, such as the model's `classes_`, where `y` lacks some
                of them; None takes them from `y`.

        Returns:
            The fitted calibrator itself.

        Raises:
            InputError: If the data cannot be read, or if no optimum exists.
        """
        outputs = self._read(X, reset=True)
        if outputs.ndim != 2:
            raise InputError("X", "shape [N, C] to fit on", tuple(outputs.shape))
        labels = self._read_labels(y, outputs, classes)
        weight = read_weights("sample_weight", sample_weight, len(outputs), outputs.device)
        counted = weight > 0
        if not bool(counted.all()):
            outputs, labels, weight = outputs[counted], labels[counted], weight[counted]
        self._fit(outputs.detach(), labels, weight)
        return self

    def predict_proba(self, X: ArrayLike) -> Any:
        """Return calibrated probabilities.

        Args:
            X: class scores `[..., C]` with at least two axes, such as `[N, C]` or the orbits
                `[N, K, C]`.

        Returns:
            Probabilities `[..., C]`.
        """
        check_is_fitted(self)
        probs = self._apply(self._read(X, reset=False))
        return probs if isinstance(X, Tensor) else probs.numpy()

    def predict_log_proba(self, X: ArrayLike) -> Any:
        """Return the logarithm of `predict_proba`, `[..., C]`; that of 0 is minus infinity."""
        with np.errstate(divide="ignore"):
            return (torch if isinstance(X, Tensor) else np).log(self.predict_proba(X))

    def transform(self, X: ArrayLike) -> Any:
        """Return calibrated probabilities, as `predict_proba` does."""
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the columns of `transform`: the calibrator and the class.

        Args:
            input_features: the names of the columns of `X`, which are only checked.

        Returns:
            The names `[C]`. They are the columns of data frames after
            `set_output(transform="pandas")`.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        lead = type(self).__name__.lower()
        return np.array([f"{lead}_{name}" for name in self.classes_], dtype=object)

    def predict(self, X: ArrayLike) -> Any:
        """Return the most probable class of each row, `[...]`."""
        index = self.predict_proba(X).argmax(-1)
        if not isinstance(X, Tensor):
            return self.classes_[index]
        if self.classes_.dtype.kind not in "biuf":
            return self.classes_[index.cpu().numpy()]
        return torch.as_tensor(self.classes_, device=index.device)[index]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # features that are no scores cannot be calibrated
        tags.input_tags.positive_only = self.outputs == "probabilities"
        return tags

    def save(self, path: str | Path) -> None:
        """Write a fitted calibrator to a safetensors file, which holds no code.

        Args:
            path: the file; `load` reads it.

        Example:
            >>> import tempfile
            >>> from orbical.recalibrate import Temperature, load
            >>> scaling = Temperature().fit([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [0, 0, 1])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     scaling.save(f"{folder}/temperature.safetensors")
            ...     again = load(f"{folder}/temperature.safetensors")
            >>> again.temperature_ == scaling.temperature_
            True
        """
        check_is_fitted(self)
        arrays = {name: np.array(getattr(self, name), order="C") for name in self.learned}
        header = {
            "parameters": self.get_params(),
            "classes": self.classes_.tolist(),
            "dtype": self.classes_.dtype.str,
            "features": self.n_features_in_,
        }
        metadata = {name: json.dumps(value) for name, value in header.items()}
        save_file(arrays, str(path), metadata={"calibrator": type(self).__name__, **metadata})


def load(path: str | Path) -> Calibrator:
    """Read a calibrator that `Calibrator.save` wrote.

    Args:
        path: the file.

    Returns:
        The fitted calibrator.

    Raises:
        InputError: If there is no such file.
        StoreError: If no calibrator wrote the file.

    Example:
        >>> import tempfile
        >>> from orbical.recalibrate import VectorScaling, load
        >>> scaling = VectorScaling(penalty=0.1)
        >>> scaling = scaling.fit([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scaling.save(f"{folder}/scaling.safetensors")
        ...     load(f"{folder}/scaling.safetensors")
        VectorScaling(penalty=0.1)
    """
    try:
        with safe_open(existing_file("path", path), framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise StoreError(f"path: expected a safetensors file, got {path} ({error})") from error
    kind = metadata.get("calibrator")
    if kind is None:
        raise StoreError(f"path: expected a file of Calibrator.save, got {path}, of another writer")
    if kind not in _REGISTRY:
        raise unknown_name("calibrator", kind, [name for name in _REGISTRY if name[0] != "_"])
    calibrator = _REGISTRY[kind](**json.loads(metadata["parameters"]))
    missing = set(calibrator.learned) - set(arrays)
    if missing:
        raise StoreError(f"path: expected {sorted(missing)} of {kind} in {path}, got none")
    for name in calibrator.learned:
        setattr(calibrator, name, arrays[name] if arrays[name].ndim else arrays[name].item())
    names, dtype = (json.loads(metadata[part]) for part in ("classes", "dtype"))
    calibrator.classes_ = np.array(names, dtype=dtype)
    calibrator.n_features_in_ = json.loads(metadata["features"])
    return calibrator
