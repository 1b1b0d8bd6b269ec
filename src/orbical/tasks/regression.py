"""Regression: scalars, vectors, vectors per point, or any representation of rotations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._trees import Tree
from ..actions import Action, Images, Irreps, Rows, Trivial, Vectors
from ..errors import InputError, ModelError
from ..groups import Elements
from .base import Move, Reader, Task, Variable, as_truth
from .uncertainty import (
    checked_form,
    fitted,
    moved_covariance,
    moved_variance,
    named_parts,
    variances,
    wrong,
)


class Regression(Task):
    """What is its value? The representation says how the answer moves with the input.

    `representation` is `trivial` (energies, prices: nothing moves), `vector` (dipoles, forces, in
    the plane or in space), an e3nn irreps string with parity (`1x0e + 1x2e`), or an action. With
    `per_point`, outputs are `[N, n, d]` and permutations reorder them; otherwise `[N, d]` or `[N]`.
    The score is the Euclidean error, root mean square over points, and lower is better.

    `uncertainty` says what a model answers beside its mean, as a tuple or by name in a dictionary;
    it is never guessed, and a bare tensor is always a mean alone. `"variance"`: (mean, variance).
    `"covariance"`: (mean, covariance `[N, d, d]`). `"parts"`: (mean, aleatoric, epistemic).
    `"evidential"`: (gamma, nu, alpha, beta). Variances are one number, or where nothing turns one
    for each component. Then `variance` is stored, its parts where they are told apart, the
    `covariance`, and `error`, the truth moved along less the mean, from which
    `orbical.calibration.along_orbit` works.

    >>> import orbical as ob
    >>> ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="evidential")
    Regression(representation='vector', per_point=False, uncertainty='evidential')
    """

    name: ClassVar[str] = "regression"
    score_meaning: ClassVar[str] = "Euclidean distance from the truth"
    higher_is_better: ClassVar[bool] = False
    detail_view: ClassVar[str] = "values"

    def __init__(
        self,
        input: Any = None,
        representation: str | Action = "trivial",
        per_point: bool = False,
        read: Reader | None = None,
        uncertainty: str | None = None,
    ) -> None:
        output = _output_action(representation, per_point)
        super().__init__(Images() if input is None else input, output, read)
        self.representation = representation
        self.per_point = per_point
        self.uncertainty = checked_form(uncertainty)
        if uncertainty is not None:
            self.detail_view = "intervals"  # type: ignore[misc] # the view follows the answers

    @property
    def truth_dims(self) -> tuple[str, ...]:
        """Components, for each point where there are points."""
        return ("point", "component") if self.per_point else ("component",)

    def __repr__(self) -> str:
        sure = "" if self.uncertainty is None else f", uncertainty={self.uncertainty!r}"
        return (
            f"Regression(representation={self.representation!r}, per_point={self.per_point}{sure})"
        )

    def read(self, raw: Any, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"mean": [N, d]}` and what the form of uncertainty has beside it."""
        parts = named_parts(self.picked(raw), self.uncertainty)
        parts["mean"] = self._as_rows(parts["mean"])
        self._check_shape(parts["mean"])
        return fitted(parts, self.output)

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark what is no number, and what is no distribution."""
        return super().faults(outputs) | wrong(outputs)

    def _as_rows(self, values: Tensor) -> Tensor:
        return values[:, None] if values.ndim == 1 else values

    def _check_shape(self, mean: Tensor) -> None:
        if mean.ndim != len(self.truth_dims) + 1:
            raise ModelError(
                f"model output: a mean of shape {tuple(mean.shape)} given, "
                f"[sample, {', '.join(self.truth_dims)}] expected"
            )
        if isinstance(self.output, Vectors) and mean.shape[-1] not in (2, 3):
            raise ModelError(
                f"model output: vectors with {mean.shape[-1]} components given, 2 or 3 expected"
            )

    def check_target(self, target: Any, count: int) -> Tensor:
        """Check values `[N]`, `[N, d]` or `[N, n, d]`."""
        values = as_truth(target)
        if not values.is_floating_point():
            values = values.double().float()
        if len(values) != count:
            raise InputError(f"labels: {len(values)} given for {count} samples")
        values = self._as_rows(values)
        if values.ndim != len(self.truth_dims) + 1:
            raise InputError(
                f"labels: shape {tuple(values.shape)} given, "
                f"[sample, {', '.join(self.truth_dims)}] expected"
            )
        if bool(values.isinf().any()) or (not self.per_point and bool(values.isnan().any())):
            raise InputError(
                "labels: NaN or infinite values given, numbers expected (NaN only for points "
                "without a truth, with per_point)"
            )
        return values

    def check_range(self, target: Tensor, outputs: dict[str, Tensor]) -> None:
        """Check that truth and answer have one shape."""
        if target.shape[1:] != outputs["mean"].shape[1:]:
            raise InputError(
                f"labels: shape {tuple(target.shape[1:])} for each sample given, but the model "
                f"answers {tuple(outputs['mean'].shape[1:])}"
            )

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the mean, and what there is of uncertainty."""
        orbit, points = ("sample", "element"), self.truth_dims[:-1]
        declared = self.common_variables(labeled, self.truth_dims)
        declared["mean"] = Variable((*orbit, *self.truth_dims), "predicted mean")
        if self.uncertainty is None:
            return declared
        one, whole = (*points, "variance_component"), (*self.truth_dims, "with_component")
        declared["variance"] = Variable((*orbit, *one), "predicted variance")
        declared["variance_gap"] = Variable(
            ("sample",), "root mean square distance of un-transformed variances from their mean"
        )
        if self.uncertainty == "covariance":
            declared["covariance"] = Variable((*orbit, *whole), "predicted covariance")
            declared["consensus_covariance"] = Variable(
                ("sample", *whole), "mean of the un-transformed covariances"
            )
        else:
            declared["consensus_variance"] = Variable(
                ("sample", *one), "mean of the un-transformed variances"
            )
        if self.uncertainty in ("parts", "evidential"):
            declared["aleatoric"] = Variable((*orbit, *one), "variance ascribed to the data")
            declared["epistemic"] = Variable((*orbit, *one), "variance ascribed to the model")
        if labeled:
            declared["error"] = Variable(
                (*orbit, *self.truth_dims), "truth moved along, less the predicted mean"
            )
        return declared

    def primary(self, outputs: Tree) -> Tensor:
        """The mean is what moves."""
        return outputs["mean"]

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """A variance and its parts stay, or are reordered with their points; a covariance turns."""
        found = variances(outputs)
        if "covariance" in found:
            turn = partial(moved_covariance, self.output, per_point=self.per_point)
            return {"covariance": (found["covariance"], turn)}
        return {
            name: (values, partial(moved_variance, per_point=self.per_point))
            for name, values in found.items()
        }

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Give the Euclidean error, root mean square over the points that have a truth."""
        squares = (outputs - reference).double().square().sum(-1)
        if self.per_point:
            squares = squares.nanmean(-1)
        return squares.sqrt().float()

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> dict[str, Tensor]:
        """Give mean, variances and the signed error."""
        found = {"mean": outputs["mean"], **variances(outputs)}
        if target is not None and self.uncertainty is not None:
            found["error"] = self.output.move(elements, target[None]) - outputs["mean"]
        return found

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> dict[str, Tensor]:
        """Add the mean of the un-transformed variances, and how far they are from it."""
        summary = super().summarize(outputs, target, elements, weights)
        found = self.companions(outputs)
        if not found:
            return summary
        name = "covariance" if "covariance" in found else "variance"
        values, move = found[name]
        home = move(elements.inverse(), values)
        consensus = self.average(home, weights, None)
        gap = torch.einsum("k,kb->b", weights.double(), self.deviation(home, consensus, None))
        return summary | {f"consensus_{name}": consensus, "variance_gap": gap.sqrt().float()}

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor other than `input` and `read`."""
        form = self.representation
        return {
            "representation": form.describe() if isinstance(form, Action) else form,
            "per_point": self.per_point,
            "uncertainty": self.uncertainty,
        }

    @classmethod
    def _restored(cls, settings: Mapping[str, Any], input: Action, read: Reader | None) -> Task:
        form = settings["representation"]
        form = Action.from_record(form) if isinstance(form, Mapping) else form
        return super()._restored({**settings, "representation": form}, input, read)


def _output_action(representation: str | Action, per_point: bool) -> Action:
    if isinstance(representation, Action):
        return representation
    if representation == "trivial":
        return Rows() if per_point else Trivial()
    if representation == "vector":
        return Vectors(per_point=per_point)
    return Irreps(representation, per_point)
