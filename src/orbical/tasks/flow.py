"""Optical flow: a field of displacements between two frames."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from .. import actions
from ..actions import Action, ActionTree
from ..errors import InputError
from ..groups import Elements
from ._maps import MAP, MapTask, map_block_means, masked_map_mean, vector_map_lengths
from .reading import read_output, read_truth, wrong_truth
from .task import Reader, Results, Variable, per_element

MAP_SIZE = 16
ANSWER_DIMS = ("axis", "row", "column")


class Flow(MapTask):
    """Predict the displacement of every pixel between two frames.

    Inputs are pairs `[N, 2, C, H, W]`, outputs displacements `[N, 2, H, W]` in pixels (dx to the
    right, dy down). The score is the end-point error, the mean length of the difference over valid
    pixels. Also stored are

    - `rmse`, the root of the mean squared length of the difference (the NERO paper's error);
    - `angular_error`, the mean angle between (u, v, 1) and its truth in degrees (Barron et al.);
    - `flow_map`, `truth_map` and `error_map`: flow, truth and error as means over 16 x 16 blocks,
      small enough to be drawn at every element.

    Under reversed time the flow changes sign, which is exact for the mid-point flow: a perfect
    estimator of the forward flow u still differs by |u . grad u|.

    Args:
        input: the action on the pairs; `ImagePair` by default, `PairWindow` with `window`.
        interpolation: how pairs and fields are resampled.
        read: a function that picks the outputs from a raw model output.
        window: the side of the central square of larger pairs that the model sees. The truth is
            then as large as the pairs, so that no rotation needs padding at the border.
        output: the action on the flow, for an input action of your own.

    Example:
        >>> Flow(window=96)
        Flow(window=96)
    """

    name: ClassVar[str] = "flow"
    score_meaning = "end-point error in pixels"
    higher_is_better: ClassVar[bool] = False
    score_unit = "px"
    input_view: ClassVar[str] = "pair"
    detail_view: ClassVar[str] = "quiver"

    def __init__(
        self,
        input: ActionTree | None = None,
        interpolation: str = "bilinear",
        read: Reader | None = None,
        window: int | None = None,
        output: Action | None = None,
    ) -> None:
        given = [] if input is None else actions.flat_actions(actions.as_action(input))
        if output is None and any(map(actions.is_own_action, given)):
            raise InputError(
                "output",
                f"the action on the flow of pairs that {type(input).__name__} moves",
                "None",
                remedy="displacements turn with the plane only as ImagePair and PairWindow move it",
            )
        if window is None and isinstance(input, actions.PairWindow):
            window = input.size
        pair: Action = actions.ImagePair(interpolation)
        field: Action = actions.VectorField(interpolation)
        if window is not None:
            pair = actions.PairWindow(window, interpolation)
            field = actions.FieldWindow(window, interpolation)
        super().__init__(input or pair, output or field, read)
        self.keep_map_settings(interpolation, output, "axis", window=window)

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read displacements `[N, 2, H, W]`."""
        return read_output(
            self.picked(raw), "displacements", "sample", "2", "row", "column"
        ).float()

    def check_target(self, target: object, count: int) -> Tensor:
        """Check true displacements `[N, 2, H, W]`."""
        flow = read_truth(target, count)
        if flow.ndim != 4 or flow.shape[1] != 2 or not flow.is_floating_point():
            raise wrong_truth("floating-point displacements [sample, 2, row, column]", flow)
        if actions.nonfinite_sample(flow) is not None:
            raise InputError("labels", "a finite flow", "NaN or infinite values")
        return flow.float()

    def check_range(self, target: Tensor, outputs: Tensor) -> None:
        """Check that truth and output have the same size, or the truth surrounds the window."""
        self.check_size(tuple(target.shape[2:]), tuple(outputs.shape[2:]))

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the errors and the block means."""
        variables = self.common_variables(labeled, ANSWER_DIMS)
        variables["flow"] = per_element("flow field", *ANSWER_DIMS, optional=True)
        variables["flow_map"] = per_element("flow, means over blocks", "axis", *MAP)
        if labeled:
            variables["rmse"] = per_element(
                "root mean square error in pixels", unit="px", higher_is_better=False
            )
            variables["angular_error"] = per_element(
                "mean angular error in degrees", unit="degrees", higher_is_better=False
            )
            what = "true flow moved along, means over blocks"
            variables["truth_map"] = per_element(what, "axis", *MAP)
            what = "end-point error, means over the valid pixels of blocks"
            variables["error_map"] = per_element(what, *MAP)
        return variables

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean end-point error over valid pixels, in the window if there is one."""
        return masked_map_mean(vector_map_lengths(outputs - self.in_view(reference)), valid)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean squared distance over valid pixels, so that the gap is in pixels."""
        squares = (outputs - center[None]).double().square().sum(2)
        return masked_map_mean(squares, valid)

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Return the flow, its errors, and block means of them."""
        extras = {"flow": outputs, "flow_map": _block_vectors(outputs, None)}
        if target is not None:
            truth = self.output.move(elements, target[None]).expand_as(outputs)
            seen = self.output.valid(elements, target)
            error = vector_map_lengths(outputs - truth)
            extras["rmse"] = masked_map_mean(error.square(), seen).sqrt()
            extras["angular_error"] = masked_map_mean(flow_angle(outputs, truth), seen)
            extras["truth_map"] = _block_vectors(truth, seen)
            extras["error_map"] = map_block_means(error, seen, MAP_SIZE)
        return extras


def flow_angle(flow: Tensor, truth: Tensor) -> Tensor:
    """Return the angle in degrees between (u, v, 1) of two flows.

    The third component, one frame, makes the angle of two still pixels 0 (Barron, Fleet and
    Beauchemin, 1994). Computed from cross and dot product, so that small angles are exact too.

    Args:
        flow: `[K, B, 2, H, W]`.
        truth: of the same shape.

    Returns:
        Angles `[K, B, H, W]`.

    Example:
        >>> still, right = torch.zeros(1, 1, 2, 1, 1), torch.eye(2)[:1].reshape(1, 1, 2, 1, 1)
        >>> round(float(flow_angle(still, right)), 3)
        45.0
    """
    dot = 1 + (flow * truth).sum(2)
    difference = (flow - truth).square().sum(2)
    turn = flow[:, :, 0] * truth[:, :, 1] - flow[:, :, 1] * truth[:, :, 0]
    return torch.rad2deg(torch.atan2((difference + turn.square()).sqrt(), dot))


def _block_vectors(field: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce `[K, B, 2, H, W]` to `[K, B, 2, 16, 16]`, component by component."""
    return torch.stack([map_block_means(part, valid, MAP_SIZE) for part in field.unbind(2)], 2)
