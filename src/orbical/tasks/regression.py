"""Regression: scalars, vectors, vectors per point, or any representation of rotations."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from ..actions import Action, Images, Irreps, Rows, Trivial, Vectors
from ..errors import InputError, ModelError
from ..groups import Elements
from ..trees import Tree
from .base import (
    Reader,
    Task,
    Variable,
    as_truth,
    common_variables,
    described,
    is_real,
    single_or_double,
)


class Regression(Task):
    """What is its value? The representation says how the answer moves with the input.

    `representation` is `trivial` (energies, prices: nothing moves), `vector` (dipoles, forces, in
    the plane or in space), an e3nn irreps string with parity (`1x0e + 1x2e`), or an action. With
    `per_point`, outputs are `[N, n, d]` and permutations reorder them; otherwise `[N, d]` or `[N]`.
    A model answers with a tensor, the mean, or with `(mean, variance)`, also as a dictionary.
    The score is the Euclidean error, root mean square over points, and lower is better.
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
    ) -> None:
        output = _output_action(representation, per_point)
        super().__init__(Images() if input is None else input, output, read)
        self.representation = representation
        self.per_point = per_point

    @property
    def truth_dims(self) -> tuple[str, ...]:
        """Components, for each point where there are points."""
        return ("point", "component") if self.per_point else ("component",)

    def __repr__(self) -> str:
        return f"Regression(representation={self.representation!r}, per_point={self.per_point})"

    def read(self, raw: Any, answers: str | None = None) -> dict[str, Tensor]:
        """Read `{"mean": [N, d]}`, with `"variance"` where the model gives one."""
        given = self.picked(raw)
        if isinstance(given, tuple | list) and len(given) == 2:
            given = {"mean": given[0], "variance": given[1]}
        if isinstance(given, Tensor):
            given = {"mean": given}
        if not isinstance(given, dict) or not isinstance(given.get("mean"), Tensor):
            raise ModelError(
                f"model output: {type(given).__name__} given, a tensor (the mean), (mean, "
                "variance) or {'mean': ..., 'variance': ...} expected"
            )
        answered = {key: given[key] for key in ("mean", "variance") if key in given}
        for key, values in answered.items():
            if not is_real(values) or values.ndim == 0 or len(values) != len(given["mean"]):
                raise ModelError(
                    f"model output: a {key} that is {described(values)} given, real numbers "
                    "[sample, ...] expected"
                )
        outputs = {key: self._as_rows(single_or_double(part)) for key, part in answered.items()}
        self._check_shape(outputs["mean"])
        if "variance" in outputs and not bool((outputs["variance"] > 0).all()):
            raise ModelError("model output: a variance that is not positive given")
        return outputs

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

    def variables(self, labelled: bool) -> dict[str, Variable]:
        """Declare mean and variance."""
        return common_variables(labelled, self.truth_dims) | {
            "mean": Variable(("sample", "element", *self.truth_dims), "predicted mean"),
            "variance": Variable(
                ("sample", "element", *(f"variance_{name}" for name in self.truth_dims)),
                "predicted variance",
            ),
        }

    def primary(self, outputs: Tree) -> Tensor:
        """The mean is what moves."""
        return outputs["mean"]

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Give the Euclidean error, root mean square over the points that have a truth."""
        squares = (outputs - reference).double().square().sum(-1)
        if self.per_point:
            squares = squares.nanmean(-1)
        return squares.sqrt().float()

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> dict[str, Tensor]:
        """Give mean and variance."""
        return dict(outputs)

    def describe(self) -> dict[str, Any]:
        """Add the representation."""
        return {**super().describe(), "per_point": self.per_point}


def _output_action(representation: str | Action, per_point: bool) -> Action:
    if isinstance(representation, Action):
        return representation
    if representation == "trivial":
        return Rows() if per_point else Trivial()
    if representation == "vector":
        return Vectors(per_point=per_point)
    return Irreps(representation, per_point)
