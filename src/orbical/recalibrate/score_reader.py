"""How estimators read a model's scores and labels: columns are classes, rows are samples."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor

from .._arrays import ArrayLike, as_array, both_classes, warn_of_probabilities
from ..calibration import tolerance, working_float
from ..errors import InputError, check_name

_OUTPUTS = ("logits", "probabilities")
_FLOATS = (np.float64, np.float32, np.float16)
_SLACK = 1e-3  # scikit-learn's GaussianNB misses a sum of 1 by 3e-4 in single precision


class ScoreReader(BaseEstimator):  # type: ignore[misc]
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
            rows = _checked_tensor(X)
            validate_data(self, rows, reset=reset, skip_check_array=True)
        else:
            flat = np.reshape(X, (-1, shape[-1])) if len(shape) > 2 else X
            checks = {"dtype": _FLOATS, "order": "C", "force_writeable": True}
            rows = torch.as_tensor(validate_data(self, flat, reset=reset, **checks))
        rows = both_classes(rows, logits=self.outputs == "logits")
        if self.outputs == "probabilities":
            rows = _checked_probabilities(rows)
        elif reset:  # what is fitted has been warned of
            remedy = "pass outputs='probabilities' to the constructor"
            warn_of_probabilities(rows, remedy, "X")
        return working_float(rows).reshape(*(shape[:-1] or (-1,)), rows.shape[-1])

    def _read_labels(self, y: ArrayLike, outputs: Tensor, given: ArrayLike | None = None) -> Tensor:
        """Return class indices `[N]`, and record the classes, in the dtype of the labels."""
        samples, columns = len(outputs), outputs.shape[-1]
        labels = _label_array(y, samples)
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
        return torch.as_tensor(_places(labels, self.classes_)).to(outputs.device)

    def _logits(self, outputs: Tensor) -> Tensor:
        """Return logits; a probability of 0 counts as the smallest normal number of its dtype."""
        if self.outputs == "logits":
            return outputs
        smallest = torch.finfo(outputs.dtype).smallest_normal
        return torch.where(outputs > 0, outputs, smallest).log()

    def _probabilities(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, dim=-1) if self.outputs == "logits" else outputs


def read_weights(
    name: str, weights: ArrayLike | None, size: int, device: torch.device | None = None
) -> Tensor:
    """Return weights `[size]` in double precision with sum 1; equal ones for None.

    >>> read_weights("sample_weight", [1, 3], 2)
    tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    if weights is None:
        return torch.full((size,), 1 / size, dtype=torch.float64, device=device)
    tensor = as_array(name, weights, device).double()
    if tensor.shape != (size,):
        raise InputError(name, f"shape ({size},)", tuple(tensor.shape))
    if not bool(torch.isfinite(tensor).all()) or bool((tensor < 0).any()) or tensor.sum() <= 0:
        low, high = tensor.min().item(), tensor.max().item()
        raise InputError(
            name, "finite weights >= 0 that are not all zero", f"values in [{low:.6g}, {high:.6g}]"
        )
    return tensor / tensor.sum()


def _checked_tensor(X: Tensor) -> Tensor:
    """Return the rows `[N, C]` of a tensor of finite scores `[..., C]`."""
    if not X.is_floating_point():
        raise InputError("X", "floating-point scores", X.dtype, remedy="pass X.float()")
    if X.ndim < 2 or X.numel() == 0:
        raise InputError(
            "X",
            "scores [..., C] of one sample at least",
            f"shape {tuple(X.shape)}",
            remedy="pass X[None] for a single row",
        )
    rows = X.reshape(-1, X.shape[-1])
    # A finite sum proves finite terms; an overflowing one proves nothing, so look at each.
    seen = rows.detach()
    if not (bool(torch.isfinite(seen.sum())) or bool(torch.isfinite(seen).all())):
        raise InputError("X", "finite scores", "NaN or infinity")
    return rows


def _checked_probabilities(rows: Tensor) -> Tensor:
    seen = working_float(rows.detach())
    low, sums = seen.min().item(), seen.sum(-1)
    farthest = sums[(sums - 1).abs().argmax()].item()
    if low < 0 or abs(farthest - 1) > max(tolerance(rows.dtype), _SLACK):
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


def _places(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes, in any order."""
    order = np.argsort(classes)
    near = np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)
    index: np.ndarray = order[near]
    unknown = labels[classes[index] != labels]
    if len(unknown):
        raise InputError("y", f"labels among classes={classes.tolist()}", repr(unknown[0]))
    return index


def _label_array(y: ArrayLike, samples: int) -> np.ndarray:
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
            "y", f"shape ({samples},), one label for each row of X", labels.shape, remedy=hint
        )
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)
