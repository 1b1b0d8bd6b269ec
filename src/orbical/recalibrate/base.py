"""What all calibrators share: named inputs, learned tensors, and a file without code in it."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .._arrays import ArrayLike, as_floating, class_indices, warn_of_probabilities
from ..calibration.inputs import probabilities, working_float
from ..errors import InputError, OrbicalError, StoreError, unknown_name

_REGISTRY: dict[str, type[Calibrator]] = {}


class NotFitted(OrbicalError, RuntimeError):
    """A calibrator is asked for what it learns in `fit`, before `fit`."""


class Calibrator(ABC):
    """A map from a model's outputs to calibrated probabilities, learned from held-out labels."""

    learned: ClassVar[tuple[str, ...]] = ()
    """Names of the learned attributes, all tensors, in the order in which they are saved."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _REGISTRY[cls.__name__] = cls

    @abstractmethod
    def fit(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None, labels: ArrayLike
    ) -> Self:
        """Learn from held-out `logits` or `probs` and their labels; return self."""

    @abstractmethod
    def transform(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None
    ) -> Tensor:
        """Return calibrated probabilities `[..., C]` for `logits` or `probs` `[..., C]`."""

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "self"]
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({arguments})"

    def _fitted(self) -> None:
        if not all(hasattr(self, name) for name in self.learned):
            raise NotFitted(f"{self!r} has not been fitted; call fit(logits=..., labels=...) first")

    def save(self, path: str | Path) -> None:
        """Write what was learned to a safetensors file; `load` reads it back.

        >>> import tempfile
        >>> from orbical.recalibrate import Temperature, load
        >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [0, 0, 1]
        >>> scaling = Temperature().fit(logits=logits, labels=labels)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scaling.save(f"{folder}/temperature.safetensors")
        ...     again = load(f"{folder}/temperature.safetensors")
        >>> again, bool(again.temperature_ == scaling.temperature_)
        (Temperature(), True)
        """
        self._fitted()
        tensors = {name: getattr(self, name).detach().cpu().contiguous() for name in self.learned}
        metadata = {"calibrator": type(self).__name__, "parameters": json.dumps(self.parameters())}
        save_file(tensors, str(path), metadata=metadata)


def load(path: str | Path) -> Calibrator:
    """Read a calibrator that `Calibrator.save` wrote.

    >>> import tempfile
    >>> from orbical.recalibrate import VectorScaling, load
    >>> scaling = VectorScaling().fit(logits=[[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]], labels=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scaling.save(f"{folder}/scaling.safetensors")
    ...     load(f"{folder}/scaling.safetensors")
    VectorScaling(penalty=0.001)
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"path: there is no file {str(path)!r}") from None
    except SafetensorError as error:
        raise StoreError(f"{path}: not a safetensors file ({error})") from error
    kind = metadata.get("calibrator")
    if kind is None:
        raise StoreError(f"{path}: a safetensors file, but not one that a calibrator wrote")
    if kind not in _REGISTRY:
        raise unknown_name("calibrator", kind, [name for name in _REGISTRY if name[0] != "_"])
    calibrator = _REGISTRY[kind](**json.loads(metadata["parameters"]))
    missing = set(calibrator.learned) - set(tensors)
    if missing:
        raise StoreError(f"{path}: {kind} needs {sorted(missing)}, which the file does not hold")
    for name in calibrator.learned:
        setattr(calibrator, name, tensors[name])
    return calibrator


def read_logits(logits: ArrayLike | None, probs: ArrayLike | None) -> Tensor:
    """Return finite logits `[..., C]`, in float32 at least, from exactly one of the two.

    Probabilities become their logarithms; a probability of 0 counts as the smallest normal number
    of its dtype, because a logarithm of 0 has no scaled version.

    >>> read_logits(None, [[0.5, 0.5]])
    tensor([[-0.6931, -0.6931]])
    """
    if (logits is None) == (probs is None):
        given = "neither" if logits is None else "both"
        raise InputError(f"logits, probs: expected exactly one of the two, got {given}")
    if probs is not None:
        checked = _checked_probs(probs)
        smallest = torch.finfo(checked.dtype).smallest_normal
        return working_float(torch.where(checked > 0, checked, smallest)).log()
    scores = _with_classes("logits", as_floating("logits", logits))
    warn_of_probabilities(scores)
    # A finite sum proves finite terms; an overflowing one proves nothing, so look at each.
    detached = scores.detach()
    if not (bool(torch.isfinite(detached.sum())) or bool(torch.isfinite(detached).all())):
        raise InputError("logits: contains NaN or infinity; expected finite values")
    return working_float(scores)


def read_probabilities(logits: ArrayLike | None, probs: ArrayLike | None) -> Tensor:
    """Return probabilities `[..., C]`, in float32 at least, from exactly one of the two.

    >>> read_probabilities([[0.0, 0.0]], None)
    tensor([[0.5000, 0.5000]])
    """
    if logits is None and probs is not None:
        return working_float(_checked_probs(probs))
    return torch.softmax(read_logits(logits, probs), dim=-1)


def read_labels(labels: ArrayLike, samples: int, classes: int, device: torch.device) -> Tensor:
    """Return labels `[N]` as int64, or say what is wrong with them.

    >>> read_labels([0, 1], samples=2, classes=2, device=torch.device("cpu"))
    tensor([0, 1])
    """
    labels = class_indices(labels, classes, device)
    if labels.shape != (samples,):
        hint = "; of one-hot rows take .argmax(-1)" if labels.shape == (samples, classes) else ""
        raise InputError(
            f"labels: expected shape ({samples},), one for each sample, got {tuple(labels.shape)}"
            f"{hint}"
        )
    return labels


def rows_of(outputs: Tensor) -> Tensor:
    """Check that outputs to fit on are `[N, C]`.

    >>> rows_of(torch.zeros(3, 2)).shape
    torch.Size([3, 2])
    """
    if outputs.ndim != 2:
        raise InputError(
            f"logits, probs: expected shape [N, C] to fit on, got {tuple(outputs.shape)}"
        )
    return outputs.detach()


def same_classes(outputs: Tensor, classes: int) -> Tensor:
    """Check that outputs to transform have the number of classes that was fitted.

    >>> same_classes(torch.zeros(3, 2), 2).shape
    torch.Size([3, 2])
    """
    if outputs.shape[-1] != classes:
        raise InputError(
            f"logits, probs: expected {classes} classes, as fitted, got {outputs.shape[-1]}"
        )
    return outputs


def _checked_probs(probs: ArrayLike) -> Tensor:
    tensor = _with_classes("probs", as_floating("probs", probs))
    rows = tensor if tensor.ndim > 1 else tensor[None]
    return probabilities(probs=rows).reshape(tensor.shape)


def _with_classes(name: str, outputs: Tensor) -> Tensor:
    if outputs.ndim == 0 or outputs.shape[-1] < 2:
        raise InputError(
            f"{name}: expected [..., C] with C >= 2 classes, got shape {tuple(outputs.shape)}"
        )
    if outputs.numel() == 0:
        raise InputError(f"{name}: no samples given, shape {tuple(outputs.shape)}")
    return outputs
