"""The interface of predictors, and how a batch is passed to a model."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from .._imports_and_paths import words_of
from .._trees import Tree, tree_map
from ..errors import ModelError, WithUsage

Raw = Any
"""What a model returns, before a task reads it."""
Shape = Sequence[int | str | None]
"""The sizes that a model file declares: a number, a name, or None where any size fits."""


@dataclass(frozen=True)
class PartialOutputs:
    """The outputs of a model that failed on some inputs of a batch; a scan records the errors.

    Attributes:
        outputs: raw outputs for the whole batch, with NaN for the inputs that failed.
        errors: messages by index in the batch.
    """

    outputs: object
    errors: dict[int, str]


class Predictor(WithUsage, ABC):
    """A model with the interface of a scan. Subclass it to adapt a model of another kind.

    Attributes:
        source: where the model comes from, for records.
        outputs: what it returns, such as `"probabilities"` for a scikit-learn classifier; None
            if only the user knows.
        one_at_a_time: whether it evaluates inputs one by one, and perhaps slowly; a scan then
            stores its outputs sample by sample.
        quantities: the requested quantities, for models that compute several.
        takes_unit_images: whether it wants images with values in 0..1, and normalizes them itself.
        classes: the names of its classes, if its file has them.
    """

    source: str
    outputs: str | None = None
    one_at_a_time: bool = False
    quantities: tuple[str, ...] = ()
    takes_unit_images: bool = False
    classes: list[str] | None = None

    @abstractmethod
    def __call__(self, batch: Tree) -> Raw:
        """Return the raw outputs for a batch.

        Args:
            batch: a tensor `[N, ...]`, or a dictionary or tuple of them.

        Returns:
            Outputs with a leading dimension N, or `PartialOutputs`.
        """

    def request(self, quantities: tuple[str, ...]) -> None:
        """Set the quantities that the task needs.

        Args:
            quantities: their names; a model with a single output may ignore them.
        """
        self.quantities = quantities

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Prepare the model for a scan on a device, and restore it afterwards.

        Args:
            device: where batches are.
        """
        return nullcontext()

    def fingerprint(self) -> str | None:
        """Return a hash of the model's content, or None if it cannot be read."""
        return None


class Wrapper(Predictor):
    """A predictor around another one, which is prepared and asked through it.

    Args:
        model: the inner predictor.
        about: what makes another model of it, for the fingerprint.
    """

    def __init__(self, model: Predictor, about: str) -> None:
        self.model, self._about = model, about
        self.source, self.outputs = model.source, model.outputs
        self.one_at_a_time = model.one_at_a_time

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Prepare the inner model."""
        return self.model.ready(device)

    def request(self, quantities: tuple[str, ...]) -> None:
        """Pass the quantities that the task needs to the inner model."""
        self.model.request(quantities)

    def fingerprint(self) -> str | None:
        """Return a hash of the inner model and of what is done around it, None if it has none."""
        inner = self.model.fingerprint()
        return None if inner is None else predictor_state_hash(f"{inner} {self._about}", {})


def to_numpy(batch: Tree) -> Tree:
    """Convert a batch of tensors to NumPy arrays."""
    return tree_map(lambda leaf: leaf.detach().cpu().numpy(), batch)


def call_model(function: Callable[..., object], batch: Tree, named: frozenset[str]) -> Raw:
    """Call a model: a tuple as arguments, a dictionary as keywords if all keys are `named`.

    >>> call_model(lambda x, mask: x * mask, {"x": 3, "mask": 2}, frozenset({"x", "mask"}))
    6
    >>> call_model(len, {"x": 3, "mask": 2}, frozenset())
    2
    """
    if isinstance(batch, tuple):
        return function(*batch)
    if isinstance(batch, dict) and named.issuperset(batch):
        return function(**batch)
    return function(batch)


def takes_nothing(function: Callable[..., object]) -> bool:
    """Check whether a function is known to have no parameters.

    >>> takes_nothing(lambda: 1), takes_nothing(lambda *x: x), takes_nothing(max)
    (True, False, False)
    """
    return _parameters(function) == []


def parameter_names(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of the parameters that can be passed by keyword.

    >>> sorted(parameter_names(lambda x, /, mask=None, **others: x))
    ['mask']
    """
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(one.name for one in _parameters(function) or () if one.kind in kinds)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter] | None:
    """Return the parameters of a function; one written in C may have no signature."""
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return None


@contextmanager
def model_on_device(device: torch.device, module: torch.nn.Module, source: str) -> Iterator[None]:
    """Run a module on a device in inference mode, and move it back afterwards.

    Weights that processes share (FSDP2) are gathered in the first pass and kept for training, which
    cannot use tensors of inference mode.
    """
    sharded = any(hasattr(weight, "full_tensor") for weight in module.parameters())
    held = [part.device for part in (*module.parameters(), *module.buffers())]
    home = held[0] if held else device
    try:
        if any(place != device for place in held):
            _move_model(module, device, source)
        with torch.no_grad() if sharded else torch.inference_mode():
            yield
    finally:
        if home != device:
            module.to(home)


def _move_model(module: torch.nn.Module, device: torch.device, source: str) -> None:
    try:
        module.to(device)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, NotImplementedError) as error:
        raise ModelError(
            f"model {source}: expected a module that can be moved to {device}, got "
            f"{words_of(error)}"
        ) from error


def predictor_state_hash(about: str, state: Mapping[str, object]) -> str:
    """Return a hash of a text and of named tensors, whatever an accelerator is busy with."""
    digest = hashlib.sha256(about.encode())
    tensors = {name: one for name, one in state.items() if isinstance(one, torch.Tensor)}
    busy = next((one.device for one in tensors.values() if one.is_cuda), None)
    with torch.cuda.stream(None if busy is None else torch.cuda.Stream(busy)):
        for name, value in sorted(tensors.items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            own: torch.Tensor = getattr(value, "to_local", lambda value=value: value)()
            flat = own.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data if len(flat) else b"")
    return digest.hexdigest()[:16]


def count_inputs(batch: Tree) -> int:
    """Count the inputs in a batch of tensors, or of lists of texts."""
    while isinstance(batch, dict | tuple):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return len(batch)
