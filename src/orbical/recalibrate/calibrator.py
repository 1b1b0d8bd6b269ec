"""The estimator that every calibrator is: how it reads scores, and the file that it is saved to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from .._arrays import (
    ArrayLike,
    as_array,
    both_classes,
    check_finite,
    row_sum_tolerance,
    single_precision,
    warn_of_probabilities,
)
from .._imports_and_paths import existing_file
from ..errors import InputError, StoreError, WithUsage, check_name, unknown_name

_OUTPUTS = ("logits", "probabilities")
_FLOATS = (np.float64, np.float32, np.float16)


class ScoreReader(WithUsage, BaseEstimator):  # type: ignore[misc]
    """An estimator whose features are the scores of a model: column k is the score of class k."""

    classes_: np.ndarray
    n_features_in_: int

    def __init__(self, *, outputs: str = "logits") -> None:
        self.outputs = outputs

    def _read(self, X: ArrayLike, *, reset: bool) -> Tensor:
        """Return checked outputs `[..., C]`, and record or check their number of columns."""
        check_name("outputs", self.outputs, _OUTPUTS)
        X = X if hasattr(X, "shape") else np.asarray(X)
        shape = tuple(X.shape)
        if len(shape) == 1 and (reset or self.n_features_in_ == 1):  # else it is a row, refused
            X = X[:, None] if isinstance(X, Tensor) else np.reshape(X, (-1, 1))
        if isinstance(X, Tensor):
            rows = _checked_calibrator_scores(X)
            validate_data(self, rows, reset=reset, skip_check_array=True)
        else:
            flat = np.reshape(X, (-1, shape[-1])) if len(shape) > 2 else X
            checks = {"dtype": _FLOATS, "order": "C", "force_writeable": True}
            rows = torch.as_tensor(validate_data(self, flat, reset=reset, **checks))
        rows = both_classes(rows, logits=self.outputs == "logits")
        if self.outputs == "probabilities":
            rows = _checked_calibrator_probabilities(rows)
        elif reset:  # what is fitted has been warned of
            remedy = "pass outputs='probabilities' to the constructor"
            warn_of_probabilities(rows, remedy, "X")
        return single_precision(rows).reshape(*(shape[:-1] or (-1,)), rows.shape[-1])

    def _read_labels(self, y: ArrayLike, outputs: Tensor, given: ArrayLike | None = None) -> Tensor:
        """Return class indices `[N]`, and record the classes, in the dtype of the labels."""
        samples, columns = len(outputs), outputs.shape[-1]
        labels = _labels_of_calibrator(y, samples)
        if given is not None:
            self.classes_ = _column_classes(given, columns)
        elif _are_indices(labels, columns):
            indices = np.arange(columns)
            kept = indices.astype(labels.dtype)
            self.classes_ = kept if np.array_equal(kept, indices) else indices
            return torch.as_tensor(labels.astype(np.int64)).to(outputs.device)
        else:
            check_classification_targets(labels)
            self.classes_ = np.unique(labels)
        if len(self.classes_) != columns:
            raise InputError(
                "y",
                f"column indices 0 to {columns - 1} or {columns} distinct labels",
                f"{len(self.classes_)} distinct ones, from {self.classes_[0]} to "
                f"{self.classes_[-1]}",
                remedy="pass one column of X for each class, or the labels of all columns as "
                "classes=",
            )
        return torch.as_tensor(_calibrator_label_indices(labels, self.classes_)).to(outputs.device)

    def _logits(self, outputs: Tensor) -> Tensor:
        """Return logits; a probability of 0 counts as the smallest normal number of its dtype."""
        if self.outputs == "logits":
            return outputs
        smallest = torch.finfo(outputs.dtype).smallest_normal
        return torch.where(outputs > 0, outputs, smallest).log()

    def _probabilities(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, dim=-1) if self.outputs == "logits" else outputs


def calibrator_weights(
    name: str, weights: ArrayLike | None, size: int, device: torch.device | None = None
) -> Tensor:
    """Return weights `[size]` in double precision with sum 1; equal ones for None.

    >>> calibrator_weights("sample_weight", [1, 3], 2)
    tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    if weights is None:
        return torch.full((size,), 1 / size, dtype=torch.float64, device=device)
    tensor = as_array(name, weights, device).double()
    if tensor.shape != (size,):
        raise InputError(name, f"shape ({size},)", tensor)
    if not bool(torch.isfinite(tensor).all()) or bool((tensor < 0).any()) or tensor.sum() <= 0:
        low, high = tensor.min().item(), tensor.max().item()
        raise InputError(
            name, "finite weights >= 0 that are not all zero", f"values in [{low:.6g}, {high:.6g}]"
        )
    return tensor / tensor.sum()


def _checked_calibrator_scores(X: Tensor) -> Tensor:
    """Return the rows `[N, C]` of a tensor of finite scores `[..., C]`."""
    if not X.is_floating_point():
        raise InputError("X", "floating-point scores", X.dtype, remedy="pass X.float()")
    if X.ndim < 2 or X.numel() == 0:
        raise InputError(
            "X", "scores [..., C] of one sample at least", X, remedy="pass X[None] for a single row"
        )
    rows = X.reshape(-1, X.shape[-1])
    check_finite("X", rows, "scores")
    return rows


def _checked_calibrator_probabilities(rows: Tensor) -> Tensor:
    seen = single_precision(rows.detach())
    low, sums = seen.min().item(), seen.sum(-1)
    farthest = sums[(sums - 1).abs().argmax()].item()
    if low < 0 or abs(farthest - 1) > row_sum_tolerance(rows.dtype):
        raise InputError(
            "X",
            "probabilities, values >= 0 in rows that sum to 1",
            f"the value {low:.6g} and the sum {farthest:.6g}",
            remedy="pass outputs='logits' for scores before the softmax",
        )
    return rows


def _are_indices(labels: np.ndarray, classes: int) -> bool:
    """Check whether labels are whole numbers from 0 to `classes - 1`, of any numeric dtype."""
    if labels.dtype.kind not in "biuf" or not (labels.min() >= 0 and labels.max() < classes):
        return False
    return labels.dtype.kind != "f" or bool((labels % 1 == 0).all())


def _column_classes(classes: ArrayLike, columns: int) -> np.ndarray:
    """Return the distinct labels of all columns."""
    names = np.asarray(classes)
    if names.shape != (columns,) or len(np.unique(names)) != columns:
        raise InputError("classes", f"{columns} distinct labels, one for each column of X", classes)
    return names


def _calibrator_label_indices(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes, in any order."""
    order = np.argsort(classes)
    near = np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)
    index: np.ndarray = order[near]
    unknown = labels[classes[index] != labels]
    if len(unknown):
        raise InputError("y", f"labels among classes={classes.tolist()}", repr(unknown[0]))
    return index


def _labels_of_calibrator(y: ArrayLike, samples: int) -> np.ndarray:
    """Return labels of any kind as an array `[N]`."""
    if y is None:
        raise InputError(
            "y",
            "labels of shape (N,)",
            "None",
            remedy="fit requires y to be passed, but the target y is None",
        )
    if isinstance(y, Tensor):
        labels = y.detach().cpu().numpy()
        labels = labels.reshape(-1) if y.shape == (samples, 1) else labels
    else:
        labels = np.asarray(y)
    if labels.shape == (samples, 1):
        labels = column_or_1d(labels, warn=True)
    if labels.shape != (samples,):
        hint = "pass y.argmax(-1) for one-hot rows" if labels.ndim == 2 else ""
        raise InputError(
            "y", f"shape ({samples},), one label for each row of X", labels, remedy=hint
        )
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)


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
            raise InputError("X", "shape [N, C] to fit on", outputs)
        labels = self._read_labels(y, outputs, classes)
        weight = calibrator_weights("sample_weight", sample_weight, len(outputs), outputs.device)
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
