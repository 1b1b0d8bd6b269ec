"""Saved outputs of a model: an `.npz` file whose arrays are named after what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._text import number
from ..errors import InputError
from .array_files import read_npz

_FORMS = (
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
        path: an `.npz` file with `labels` and `logits` (which take precedence) or `probs`; or with
            `target` and `mean` with `variance`, `covariance`, or `aleatoric` and `epistemic`; or
            with `target`, `gamma`, `nu`, `alpha` and `beta`.

    Returns:
        `labels` and `logits` or `probs`; or `mean`, `variance`, `target` and, if it is known,
        `aleatoric`.
    """
    arrays = read_npz(path, "files")
    for names in _FORMS:
        if set(names) <= arrays.keys():
            given = {name: arrays[name] for name in names}
            return _gaussian(given, path) if "target" in given else given
    raise InputError(
        path,
        "logits or probs, and labels",
        remedy=f"or mean, variance and target; got {', '.join(sorted(arrays)) or 'nothing'}",
    )


def _gaussian(arrays: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert a regressor's outputs to mean, variance, target and, if known, aleatoric part."""
    from .._arrays import as_array
    from ..tasks import variances

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
        found = variances(tensors)
    except (RuntimeError, IndexError) as error:
        shapes = ", ".join(f"{name} {tuple(part.shape)}" for name, part in tensors.items())
        raise InputError(path, "shapes that fit together", shapes) from error
    variance = found.get("covariance", found["variance"])
    mean = tensors["mean" if "mean" in tensors else "gamma"]
    parts = {"mean": mean, "variance": variance, "target": target}
    parts |= {"aleatoric": found["aleatoric"]} if "aleatoric" in found else {}
    return {name: part.numpy() for name, part in parts.items()}
