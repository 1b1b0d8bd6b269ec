"""Optical flow: a field of displacements between two frames."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..actions import ImagePair, VectorField
from ..errors import InputError, ModelError
from ..groups import Elements
from .base import Reader, Task, Variable, as_truth, common_variables, described, is_real

MAP_SIZE = 16


class Flow(Task):
    """How does everything move between two frames?

    Input are pairs `[N, 2, C, H, W]`, output displacements `[N, 2, H, W]` in pixels (dx to the
    right, dy down). The score is the end-point error, the mean length of the difference over valid
    pixels; a reduced map of it, 16 x 16, is stored for each element. Under reversed time the flow
    changes sign, which is exact for the mid-point flow: a perfect estimator of the forward flow u
    still differs by |u . grad u|.
    """

    name: ClassVar[str] = "flow"
    score_meaning: ClassVar[str] = "end-point error in pixels"
    higher_is_better: ClassVar[bool] = False
    input_view: ClassVar[str] = "pair"
    detail_view: ClassVar[str] = "quiver"

    def __init__(
        self, input: Any = None, interpolation: str = "bilinear", read: Reader | None = None
    ) -> None:
        pair = ImagePair(interpolation) if input is None else input
        super().__init__(pair, VectorField(interpolation), read)

    def __repr__(self) -> str:
        return "Flow()"

    @property
    def truth_dims(self) -> tuple[str, ...]:
        """A field of displacements."""
        return ("axis", "row", "column")

    def read(self, raw: Any, answers: str | None = None) -> Tensor:
        """Read displacements `[N, 2, H, W]`."""
        given = self.picked(raw)
        if not is_real(given) or given.ndim != 4 or given.shape[1] != 2:
            raise ModelError(
                f"model output: {described(given)} given, displacements [sample, 2, row, column] "
                "expected; say with read= how to take them from the raw output"
            )
        return given.float()

    def check_target(self, target: Any, count: int) -> Tensor:
        """Check true displacements `[N, 2, H, W]`."""
        flow = as_truth(target)
        if flow.ndim != 4 or flow.shape[1] != 2 or not flow.is_floating_point():
            raise InputError(
                f"labels: {flow.dtype} of shape {tuple(flow.shape)} given, displacements "
                "[sample, 2, row, column] expected"
            )
        if len(flow) != count:
            raise InputError(f"labels: {len(flow)} given for {count} samples")
        if not bool(torch.isfinite(flow).all()):
            raise InputError("labels: a flow that is NaN or infinite given, numbers expected")
        return flow.float()

    def check_range(self, target: Tensor, outputs: Tensor) -> None:
        """Check that truth and answer have one size."""
        if target.shape[1:] != outputs.shape[1:]:
            raise InputError(
                f"labels: a flow of {tuple(target.shape[2:])} pixels given, but the model answers "
                f"{tuple(outputs.shape[2:])}"
            )

    def variables(self, labelled: bool) -> dict[str, Variable]:
        """Declare the reduced error map."""
        variables = common_variables(labelled, self.truth_dims)
        variables["flow"] = Variable(
            ("sample", "element", *self.truth_dims), "flow field", optional=True
        )
        if labelled:
            variables["error_map"] = Variable(
                ("sample", "element", "map_row", "map_column"),
                "end-point error, means over the valid pixels of blocks",
            )
        return variables

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Give the mean end-point error over valid pixels."""
        return _masked_mean((outputs - reference).norm(dim=2), valid)

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average over the elements that see a pixel."""
        if valid is None:
            return super().average(outputs, weights, valid)
        share = (weights[:, None, None].to(outputs) * valid)[:, None, None]
        return (share * outputs).sum(0) / share.sum(0).clamp_min(1e-12)

    def deviation(self, outputs: Tensor, centre: Tensor, valid: Tensor | None) -> Tensor:
        """Give the mean squared distance over valid pixels, so that the gap is in pixels."""
        squares = (outputs - centre[None]).double().square().sum(2)
        return _masked_mean(squares, valid)

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Give the flow, and the error as a small map."""
        extras = {"flow": outputs}
        if target is not None:
            error = (outputs - self.output.move(elements, target[None])).norm(dim=2)
            extras["error_map"] = _block_means(error, self.output.valid(elements, outputs))
        return extras


def _block_means(error: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce `[K, B, H, W]` to means over the valid pixels of blocks, NaN where there are none."""
    if valid is None:
        return F.adaptive_avg_pool2d(error, MAP_SIZE)
    mask = valid[:, None].to(error.dtype)
    share = F.adaptive_avg_pool2d(mask, MAP_SIZE)
    return F.adaptive_avg_pool2d(error * mask, MAP_SIZE) / share  # 0 / 0 is NaN


def _masked_mean(values: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, H, W]` over the places that are valid for each element."""
    if valid is None:
        return values.mean((-2, -1))
    mask = valid[:, None].to(values.dtype)
    return (values * mask).sum((-2, -1)) / mask.sum((-2, -1)).clamp_min(1)
