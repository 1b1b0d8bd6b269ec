"""The forms in which regressors state their uncertainty, what they mean, and their checks.

A form is named by the user and never guessed from shapes:

| `uncertainty` | the model returns |
|---|---|
| None | the mean |
| `"variance"` | mean, variance |
| `"covariance"` | mean, full covariance |
| `"parts"` | mean, aleatoric variance, epistemic variance (of an ensemble, say) |
| `"evidential"` | gamma, nu, alpha, beta of a normal-inverse-gamma distribution |

In every form a bare tensor is a mean without uncertainty, so that models with and without it can be
compared.

A vector of positive variances cannot rotate with the coordinates. Diagonal variances are therefore
accepted where nothing rotates; elsewhere one variance for all coordinates, or a full covariance.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from ..actions import Action, Angles, Frames, Irreps, Pitch, Positions, Rows, Trivial
from ..groups import Elements
from .reading import described_value, is_real, read_precision, wrong_output

FORMS = {
    "variance": ("mean", "variance"),
    "covariance": ("mean", "covariance"),
    "parts": ("mean", "aleatoric", "epistemic"),
    "evidential": ("gamma", "nu", "alpha", "beta"),
}
_CENTERS = ("mean", "gamma")
_ASYMMETRY = 1e-4


def uncertain_outputs(given: object, uncertainty: str | None) -> dict[str, Tensor]:
    """Return the parts of a model's output by name; the center is called mean.

    Example:
        >>> uncertain_outputs((torch.zeros(2), torch.ones(2)), "variance")["variance"]
        tensor([1., 1.])
    """
    names = ("mean",) if uncertainty is None else FORMS[uncertainty]
    if isinstance(given, Tensor):
        names, given = ("mean",), {"mean": given}
    if isinstance(given, tuple | list) and len(given) == len(names):
        given = dict(zip(names, given, strict=True))
    if not isinstance(given, dict) or not {*names} <= {*given}:
        keys = "{" + ", ".join(f"'{name}': ..." for name in names) + "}"
        expected = "a tensor (the mean)" if len(names) == 1 else f"({', '.join(names)})"
        got, remedy = described_value(given), ""
        if uncertainty is None:
            remedy = "pass uncertainty= for more than a mean, such as (mean, variance)"
        else:
            got += f", with uncertainty={uncertainty!r}"
        raise wrong_output(f"{expected} or {keys}", got, remedy)
    if uncertainty is None and {"variance", "covariance"} & {*given}:
        remedy = "pass uncertainty='variance' (or 'covariance') to store it"
        raise wrong_output("a mean", "a variance too", remedy)
    parts = {}
    for name in names:
        values = given[name]
        if not is_real(values) or values.ndim == 0 or len(values) != len(given[names[0]]):
            expected = f"a {name} of real numbers [sample, ...]"
            raise wrong_output(expected, described_value(values))
        parts["mean" if name in _CENTERS else name] = read_precision(values)
    return parts


def _mixes_coordinates(action: Action) -> bool:
    """Check whether an action mixes coordinates, so that each cannot have a variance of its own."""
    if isinstance(action, Irreps):
        from e3nn import o3

        return any(irrep.l > 0 for _, irrep in o3.Irreps(action.irreps))
    return not isinstance(action, Trivial | Rows | Frames | Positions | Angles | Pitch)


def checked_uncertainty(parts: dict[str, Tensor], action: Action) -> dict[str, Tensor]:
    """Bring the other parts to the axes of the mean `[..., d]`, or raise `ModelError`.

    Variances become `[..., 1]` or, where nothing rotates, `[..., d]`; covariances `[..., d, d]`.
    """
    mean = parts["mean"]
    width = mean.shape[-1]
    found = {"mean": mean}
    for name, values in parts.items():
        if name == "mean":
            continue
        if name == "covariance":
            if values.shape != (*mean.shape, width):
                expected = f"a covariance of shape {(*mean.shape, width)}"
                raise wrong_output(expected, tuple(values.shape))
        else:
            values = values[..., None] if values.ndim == mean.ndim - 1 else values
            if values.shape[:-1] != mean.shape[:-1] or values.shape[-1] not in (1, width):
                numbers = f"1 or {width} numbers for each mean of shape {tuple(mean.shape)}"
                raise wrong_output(f"a {name} of {numbers}", f"shape {tuple(values.shape)}")
            if values.shape[-1] > 1 and _mixes_coordinates(action):
                expected = f"one {name} for all components, which rotate"
                raise wrong_output(expected, width, "pass uncertainty='covariance' for one each")
        found[name] = values
    return found


def uncertainty_variances(outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the variance and, where they are known, its two parts.

        evidential: aleatoric = beta / (alpha - 1),   epistemic = beta / (nu (alpha - 1))

    The variance is their sum, or the diagonal of a full covariance. A mean alone has none.

    Example:
        >>> one = torch.ones(1, 1)
        >>> parts = {"mean": one, "nu": 2 * one, "alpha": 3 * one, "beta": 4 * one}
        >>> found = uncertainty_variances(parts)
        >>> {name: float(part) for name, part in found.items()}
        {'variance': 3.0, 'aleatoric': 2.0, 'epistemic': 1.0}
    """
    if {*outputs} <= {"mean", "mask"}:
        return {}
    if "covariance" in outputs:
        whole = outputs["covariance"]
        return {"variance": whole.diagonal(dim1=-2, dim2=-1), "covariance": whole}
    if "variance" in outputs:
        return {"variance": outputs["variance"]}
    if "alpha" in outputs:
        aleatoric = outputs["beta"] / (outputs["alpha"] - 1)
        epistemic = aleatoric / outputs["nu"]
    else:
        aleatoric, epistemic = torch.broadcast_tensors(outputs["aleatoric"], outputs["epistemic"])
    return {"variance": aleatoric + epistemic, "aleatoric": aleatoric, "epistemic": epistemic}


def uncertainty_faults(outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Mark outputs `[K, B]` that are not a distribution, by the reason."""
    marks = {}
    if "variance" in outputs:
        marks["a variance that is not positive"] = _any(outputs["variance"] <= 0)
    if "covariance" in outputs:
        whole = outputs["covariance"]
        size = whole.abs().amax((-1, -2), keepdim=True)
        slanted = ((whole - whole.mT).abs() > _ASYMMETRY * size).flatten(-2).any(-1, keepdim=True)
        marks["a covariance that is not symmetric"] = _any(slanted)
        # In double precision, so that only what is not positive definite fails.
        failed = torch.linalg.cholesky_ex(whole.double()).info > 0
        marks["a covariance that is not positive definite"] = _any(failed[..., None])
    if "alpha" in outputs:
        marks["alpha <= 1, where no variance exists,"] = _any(outputs["alpha"] <= 1)
        for name in ("nu", "beta"):
            marks[f"a {name} that is not positive"] = _any(outputs[name] <= 0)
    if "aleatoric" in outputs:
        for name in ("aleatoric", "epistemic"):
            marks[f"a negative {name} variance"] = _any(outputs[name] < 0)
        total = outputs["aleatoric"] + outputs["epistemic"]
        marks["a variance that is not positive"] = _any(total <= 0)
    return marks


def _any(marks: Tensor) -> Tensor:
    return marks.flatten(2).any(-1)


def moved_uncertainty_covariance(
    action: Action, scalars: Action, elements: Elements, values: Tensor
) -> Tensor:
    """Rotate covariances `[K or 1, B, ..., d, d]` with the representation D, `D S D^T`.

    They also move with their points, as `scalars` do.
    """
    if _mixes_coordinates(action):
        linear = copy.copy(action)
        if hasattr(linear, "per_point"):
            linear.per_point = False  # points are reordered once
        values = linear.move(elements, linear.move(elements, values).mT).mT
    moved: Tensor = scalars.move(elements, values)
    return moved
