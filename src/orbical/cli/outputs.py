"""Saved outputs of a model: an `.npz` file whose arrays are named after what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InputError
from .arrays import read_npz

_FORMS = (
    ("logits", "labels"),
    ("probs", "labels"),
    ("gamma", "nu", "alpha", "beta", "target"),
    ("mean", "aleatoric", "epistemic", "target"),
    ("mean", "covariance", "target"),
    ("mean", "variance", "target"),
)


def read_outputs(path: Path) -> dict[str, Any]:
    """Read saved outputs by the names of their arrays; `logits` take precedence over `probs`."""
    arrays = read_npz(path, "files")
    for names in _FORMS:
        if set(names) <= arrays.keys():
            given = {name: arrays[name] for name in names}
            return _gaussian(given, path) if "target" in given else given
    raise InputError(
        f"{path}: expected logits or probs, and labels; or mean, variance and target; got "
        f"{', '.join(sorted(arrays)) or 'nothing'}"
    )


def _gaussian(arrays: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert a regressor's outputs to mean, variance, target and, if known, aleatoric part."""
    import torch

    from ..errors import InputError
    from ..tasks.uncertainty import variances

    for name, values in arrays.items():
        if values.dtype.kind != "f":
            raise InputError(f"{path}: expected real numbers for {name}, got {values.dtype}")
    if "alpha" in arrays and not bool((arrays["alpha"] > 1).all()):
        raise InputError(f"{path}: expected alpha > 1, got values <= 1, which have no variance")
    for name in {"nu", "beta"} & {*arrays}:
        if not bool((arrays[name] > 0).all()):
            raise InputError(
                f"{path}: expected {name} > 0, got values down to {arrays[name].min():.4g}"
            )
    target = arrays.pop("target")
    found = variances({name: torch.from_numpy(part) for name, part in arrays.items()})
    variance = found.get("covariance", found["variance"])
    answer = {"mean": arrays.get("mean", arrays.get("gamma")), "target": target}
    answer["variance"] = variance.numpy()
    return answer | ({"aleatoric": found["aleatoric"].numpy()} if "aleatoric" in found else {})
