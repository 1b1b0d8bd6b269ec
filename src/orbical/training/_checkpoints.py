"""The state of a training run as one safetensors file: tensors as they are, the rest as JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError, StoreError

TENSOR = "__tensor__"


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested dictionaries, lists, numbers, strings and tensors to one file, atomically.

    Args:
        path: the file; replaced only once the new one is complete.
        state: the nested state.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     file = Path(there) / "state.safetensors"
        ...     save(file, {"epoch": 3, "weights": {"a": torch.arange(2)}})
        ...     load(file)
        {'epoch': 3, 'weights': {'a': tensor([0, 1])}}
    """
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {}

    def strip(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            # A copy each: safetensors refuses tensors that share memory.
            tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
            return {TENSOR: name}
        if isinstance(value, Mapping):
            # As pairs, because the keys of an optimizer's state are integers.
            return {"pairs": [[key, strip(v, f"{name}/{key}")] for key, v in value.items()]}
        if isinstance(value, (list, tuple)):
            return [strip(v, f"{name}/{i}") for i, v in enumerate(value)]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise InputError(
            name,
            "tensors, numbers, strings, or dictionaries and lists of them",
            type(value).__name__,
        )

    tree = strip(state, "state")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    save_file(tensors, unfinished, metadata={"tree": json.dumps(tree)})
    unfinished.replace(path)


def load(path: Path) -> dict[str, Any]:
    """Read a file of `save`, with tensors on the CPU and tuples as lists.

    Args:
        path: the file.

    Returns:
        The nested state.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tree = json.loads((file.metadata() or {})["tree"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as broken:
        raise StoreError(
            f"checkpoint: expected a file of `fit`, got {str(path)!r}, which cannot be read "
            f"({broken})"
        ) from broken

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            if TENSOR in value:
                return tensors[value[TENSOR]]
            return {key: fill(v) for key, v in value["pairs"]}
        return [fill(v) for v in value] if isinstance(value, list) else value

    state: dict[str, Any] = fill(tree)
    return state


def random_state(generators: Sequence[torch.Generator]) -> dict[str, Any]:
    """Return every random state a training step may draw from, as tensors and numbers.

    Args:
        generators: the loaders' own generators, beside the global ones.

    Returns:
        The states of torch (CPU and each CUDA device), NumPy, Python and the generators.

    Example:
        >>> before = random_state([])
        >>> first = torch.rand(2)
        >>> set_random_state(before, [])
        >>> bool((torch.rand(2) == first).all())
        True
    """
    name, keys, position, has_gauss, gauss = cast(tuple[Any, ...], np.random.get_state())  # noqa: NPY002
    version, words, gauss_next = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [name, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
        "python": [version, torch.tensor(words, dtype=torch.int64), gauss_next],
        "generators": [generator.get_state() for generator in generators],
    }


def set_random_state(state: Mapping[str, Any], generators: Sequence[torch.Generator]) -> None:
    """Restore the states that `random_state` returned.

    Args:
        state: as returned by `random_state`.
        generators: the same generators, in the same order.
    """
    if len(state["generators"]) != len(generators):
        raise InputError(
            "generators",
            f"{len(state['generators'])}, as when the checkpoint was written",
            len(generators),
        )
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    version, words, gauss_next = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss_next))
    for generator, own in zip(generators, state["generators"], strict=True):
        generator.set_state(own)
