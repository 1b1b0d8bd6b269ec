"""Arrays in files, without code: an `.npz` file with names, a single `.npy`, saved outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .._imports_and_paths import existing_file
from .._text import number
from ..errors import InputError

OUTPUT_SUFFIXES = (".npz", ".csv", ".tsv", ".parquet")
"""Files that `read_outputs` reads."""


def read_npz(path: Path, argument: str) -> dict[str, Any]:
    """Read every array of an `.npz` file; error messages begin with `argument`.

    >>> read_npz(Path("gone.npz"), "--data")
    Traceback (most recent call last):
    orbical.errors.InputError: --data: expected a file, got 'gone.npz', which does not exist
    """
    found = _load(path, argument)
    if not hasattr(found, "files"):
        raise InputError(
            argument,
            "an .npz file with named arrays, as numpy.savez writes it",
            f"a single array in {str(path)!r}",
        )
    with found as file:
        return {
            name: _loaded(partial(file.__getitem__, name), argument, f"{name} of {str(path)!r}")
            for name in file.files
        }


def read_npy(path: Path, argument: str, mapped: bool = False) -> Any:
    """Read the array of an `.npy` file, or map it, so that it stays on disk.

    >>> read_npy(Path("gone.npy"), "--orbits")
    Traceback (most recent call last):
    orbical.errors.InputError: --orbits: expected a file, got 'gone.npy', which does not exist
    """
    found = _load(path, argument, "r" if mapped else None)
    if hasattr(found, "files"):
        with found as file:
            names = ", ".join(file.files)
        raise InputError(
            argument,
            "an .npy file with one array, as numpy.save writes it",
            f"{names} in {str(path)!r}",
        )
    return found


def _load(path: Path, argument: str, mode: Literal["r"] | None = None) -> Any:
    import numpy as np

    existing_file(argument, path)
    return _loaded(lambda: np.load(path, mode, allow_pickle=False), argument, repr(str(path)))


def _loaded(load: Callable[[], object], argument: str, name: str) -> Any:
    try:
        return load()
    except Exception as error:  # a file that is damaged, encrypted or no archive may raise anything
        raise InputError(
            argument,
            problem=f"{name} cannot be read as numbers{_reason_array_file_is_unread(error)}",
        ) from error


def _reason_array_file_is_unread(error: Exception) -> str:
    """Return the reason; NumPy's own messages suggest loading pickles, which can run code."""
    text = str(error)
    if "Object arrays" in text:
        return (
            ": it contains Python objects; number the names of classes with numpy.unique(names, "
            "return_inverse=True)[1], and pad samples of unequal sizes, with a mask "
            "(orbical.datasets.padded)"
        )
    return ": it is not an .npz or .npy file of NumPy" if "pickle" in text else f" ({text})"


_SETS_OF_NAMES = (
    ("logits", "labels"),
    ("probs", "labels"),
    ("gamma", "nu", "alpha", "beta", "target"),
    ("mean", "aleatoric", "epistemic", "target"),
    ("mean", "covariance", "target"),
    ("mean", "variance", "target"),
)


def read_outputs(path: Path) -> dict[str, Any]:
    """Read the saved outputs of a model by the names of their arrays.

    Args:
        path: an `.npz` file with `labels` and `logits` or `probs`, or both, which must agree; or
            with `target` and `mean` with `variance`, `covariance`, or `aleatoric` and `epistemic`;
            or with `target`, `gamma`, `nu`, `alpha` and `beta`. Or a table `.csv`, `.tsv` or
            `.parquet` of probabilities: a column for each class, named after it, and `label`.

    Returns:
        `labels` and `logits` or `probs`; or `mean`, `variance`, `target` and, if it is known,
        `aleatoric`.
    """
    if path.suffix.lower() in OUTPUT_SUFFIXES[1:]:
        from .tables import read_probability_table

        return read_probability_table(path)
    arrays = read_npz(path, "files")
    if {"logits", "probs", "labels"} <= {*arrays}:
        _check_probs_of_array_file(arrays["probs"], arrays["logits"], path)
    for names in _SETS_OF_NAMES:
        if set(names) <= arrays.keys():
            given = {name: arrays[name] for name in names}
            return _mean_and_variance_of_array_file(given, path) if "target" in given else given
    deviation = next((name for name in ("std", "sigma", "stddev") if name in arrays), None)
    raise InputError(
        path,
        "logits or probs, and labels; or mean, variance and target",
        ", ".join(sorted(arrays)) or "nothing",
        remedy=f"save {deviation}**2 as variance"
        if deviation
        else "save them in the file under these names",
    )


def _check_probs_of_array_file(probs: Any, logits: Any, path: Path) -> None:
    """Refuse probabilities that are not the softmax of the logits beside them, but for rounding."""
    import torch

    from .._arrays import as_floating, probability_tolerance

    given, scores = as_floating("probs", probs), as_floating("logits", logits)
    one_column = scores.ndim == 1 or scores.shape[-1] == 1
    made = scores.double().sigmoid() if one_column else scores.double().softmax(-1)
    slack = max(map(probability_tolerance, (torch.float32, given.dtype, scores.dtype)))
    if given.shape != made.shape:
        problem = f"probs of shape {probs.shape} beside logits of shape {logits.shape}"
    elif (apart := float((given.double() - made).abs().max())) > slack:
        problem = f"probabilities that differ by up to {number(apart)}"
    else:
        return
    raise InputError(
        path,
        f"probs to be the softmax of logits within {slack:.0e}",
        problem,
        remedy="save the one of the two that the model predicts",
    )


def _mean_and_variance_of_array_file(arrays: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert a regressor's outputs to mean, variance, target and, if known, aleatoric part."""
    from .._arrays import as_array
    from ..tasks import uncertainty_variances

    for name, values in arrays.items():
        if values.dtype.kind != "f":
            raise InputError(path, f"real numbers for {name}", values.dtype)
    if "alpha" in arrays and not bool((arrays["alpha"] > 1).all()):
        raise InputError(path, "alpha > 1", "values <= 1, which have no variance")
    for name in {"nu", "beta"} & {*arrays}:
        if not bool((arrays[name] > 0).all()):
            raise InputError(path, f"{name} > 0", f"values down to {number(arrays[name].min())}")
    tensors = {name: as_array(f"{path}: {name}", part) for name, part in arrays.items()}
    target = tensors.pop("target")
    try:
        found = uncertainty_variances(tensors)
    except (RuntimeError, IndexError) as error:
        shapes = ", ".join(f"{name} {tuple(part.shape)}" for name, part in tensors.items())
        raise InputError(path, "shapes that fit together", shapes) from error
    variance = found.get("covariance", found["variance"])
    mean = tensors["mean" if "mean" in tensors else "gamma"]
    parts = {"mean": mean, "variance": variance, "target": target}
    parts |= {"aleatoric": found["aleatoric"]} if "aleatoric" in found else {}
    return {name: part.numpy() for name, part in parts.items()}
