"""Dense regression: numbers or vectors for each pixel, such as depth, heat maps and normals."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from .._trees import Tree
from ..actions import Images, ValueMaps, Window, as_action, view_of
from ..actions.crops import central
from ..errors import InputError, ModelError, check_name
from ..groups import Elements
from ._maps import masked_mean, middle_pixels, reduced_means, seen_mean
from .base import (
    Move,
    Reader,
    Task,
    Variable,
    as_truth,
    described,
    is_real,
    per_element,
    per_sample,
    unreadable,
)
from .uncertainty import named_parts

__all__ = ["DenseRegression"]

ANSWER = ("component", "row", "column")
MAP = ("map_row", "map_column")
POINTS_SIDE = 16
"""Points along a side where errors and variances are stored: neighbors say much the same."""
_MEANINGS = {
    "trivial": ("mean absolute error", ""),
    "vector": ("mean length of the error", ""),
    "normal": ("mean angle to the true normal in degrees", "degrees"),
}


class DenseRegression(Task):
    """Predict numbers or a vector for each pixel; the maps move with the image.

    Inputs are images `[N, C, H, W]`, outputs and targets maps `[N, components, H, W]`, or
    `[N, H, W]` of one component. NaN in the targets marks pixels whose value is unknown; these, and
    pixels that come from outside the image, are never judged. The score is the mean absolute error,
    for vectors the mean length of the error, for normals the mean angle to the true one in degrees.
    Also stored are

    - `rmse`, the root of the mean squared error over pixels (of angles, for normals);
    - `value_map`, `truth_map`, `error_map` and `map_vs_consensus`, reduced to at most 32 x 32 cells
      for the view: the first component, the length of vectors, or the angle of normals to the line
      of sight;
    - with `uncertainty="variance"`: `mean_std`, `std_map`, and, at points of a 16 x 16 grid in the
      upright image, `error` and `variance`, which `orbical.calibration.along_orbit` reads.

    Args:
        input: the action on the images; `Images()` by default. With `Window(size)` the model sees
            `size` pixels of larger images, and the targets are as large as the images.
        representation: `"trivial"` (depth, heat maps: values only move), `"vector"` (displacements
            in pixels, which also turn, mirror and scale), or `"normal"` (directions, which turn and
            mirror). Vectors are (x to the right, y down) or (x, y, z).
        read: a function that picks the outputs from a raw model output.
        uncertainty: `"variance"` if the model returns (mean, variance) or a dictionary of the two;
            the variance has one component, or as many as the mean where nothing turns.
        interpolation: how maps are resampled: `nearest`, `bilinear` or `bicubic`.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> depth = torch.rand(2, 1, 16, 16)
        >>> scan = ob.scan(lambda images: 2 * images, (depth / 2, depth), group="dihedral:4",
        ...                task="dense_regression", progress=False)
        >>> float(scan.data["score"].max())
        0.0
    """

    name: ClassVar[str] = "dense_regression"
    higher_is_better: ClassVar[bool] = False
    truth_name: ClassVar[str] = "true_map"
    detail_view: ClassVar[str] = "maps"

    def __init__(
        self,
        input: Any = None,
        representation: str = "trivial",
        read: Reader | None = None,
        uncertainty: str | None = None,
        interpolation: str = "bilinear",
    ) -> None:
        given = Images() if input is None else input
        if view_of(as_action(given)) == "volume":
            raise InputError(
                "input: expected images for dense_regression, got volumes; classification, "
                "regression and segmentation take them"
            )
        self.window = given.size if isinstance(given, Window) else None
        super().__init__(given, ValueMaps(representation, interpolation, self.window), read)
        if uncertainty is not None:
            check_name("uncertainty", uncertainty, ("variance",))
        self.representation, self.uncertainty = representation, uncertainty
        self.interpolation = interpolation
        self.score_meaning, self.score_unit = _MEANINGS[representation]
        whole = self.window is None
        self.truth_dims = ANSWER if whole else ("component", "image_row", "image_column")
        self._scalars = ValueMaps("trivial", interpolation, self.window)

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {
            "representation": self.representation,
            "uncertainty": self.uncertainty,
            "interpolation": self.interpolation,
        }

    def read(self, raw: Any, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"mean": [N, C, H, W]}` and the variance `[N, C or 1, H, W]`."""
        parts = named_parts(self.picked(raw), self.uncertainty)
        found = {name: _as_maps(part) for name, part in parts.items()}
        mean = found["mean"]
        if not is_real(mean) or mean.ndim != 4 or 0 in mean.shape[1:]:
            raise unreadable(mean, "maps [sample, component, row, column]")
        if self.representation != "trivial" and mean.shape[1] not in (2, 3):
            raise ModelError(
                f"model output: expected 2 or 3 components of each {self.representation}, got "
                f"{mean.shape[1]}"
            )
        variance = found.get("variance")
        components = (1, mean.shape[1]) if self.representation == "trivial" else (1,)
        if variance is not None and (
            variance.shape[-2:] != mean.shape[-2:] or variance.shape[1] not in components
        ):
            raise ModelError(
                f"model output: expected a variance of {components[-1]} components and of the size "
                f"of the mean {tuple(mean.shape)}, got {tuple(variance.shape)}"
            )
        return found

    def joined(self, outputs: dict[str, Tensor], moved: Tree) -> dict[str, Tensor]:
        """Check that the maps are as large as the images that the model saw."""
        size = tuple(outputs["mean"].shape[-2:])
        if isinstance(moved, Tensor) and size != tuple(moved.shape[-2:]):
            raise ModelError(
                f"model output: expected maps of {tuple(moved.shape[-2:])} pixels, as the images "
                f"have, got {size}; resize them with read="
            )
        return outputs

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark outputs that are not finite, and variances that are not positive."""
        found = super().faults(outputs)
        if "variance" in outputs:
            found["a variance that is not positive"] = (outputs["variance"] <= 0).flatten(2).any(-1)
        return found

    def check_target(self, target: Any, count: int) -> Tensor:
        """Check maps `[N, C, H, W]` or `[N, H, W]`, in which NaN is unknown."""
        maps: Tensor = as_truth(target, count)
        maps = _as_maps(maps if maps.is_floating_point() else maps.float())
        if maps.ndim != 4 or maps.is_complex():
            raise InputError(
                f"labels: expected maps [sample, component, row, column], got {described(maps)}"
            )
        if bool(maps.isinf().any()):
            raise InputError("labels: expected finite numbers, got infinite values; NaN is unknown")
        unknown = maps.isnan().flatten(1).all(1).nonzero()
        if len(unknown):
            raise InputError(
                f"labels: expected some known pixel of each sample, got only NaN for sample "
                f"{int(unknown[0])}"
            )
        return maps.float()

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check that truth and mean have the same shape, or the truth surrounds the window."""
        predicted, true = tuple(outputs["mean"].shape[1:]), tuple(target.shape[1:])
        if self.window is None:
            fits = true == predicted
        else:
            apart = [side - self.window for side in true[1:]]
            fits = true[0] == predicted[0] and min(apart) >= 0 and not any(a % 2 for a in apart)
        if not fits:
            around = "" if self.window is None else ", or as large as the images around the window"
            raise InputError(
                f"labels: expected maps of shape {predicted}, as the model predicts{around}, got "
                f"{true}"
            )

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the errors, the reduced maps, and errors with variances at points."""
        about = self.common_variables(labeled, ANSWER)
        worse: dict[str, Any] = {"unit": self.score_unit, "higher_is_better": False}
        about["predicted_maps"] = per_element("predicted maps", *ANSWER, optional=True)
        about["value_map"] = per_element("prediction, middle pixels of blocks", *MAP)
        about["map_vs_consensus"] = per_element("distance from the consensus, by block", *MAP)
        if self.uncertainty:
            about["mean_std"] = per_element("mean predicted standard deviation")
            about["std_map"] = per_element("predicted standard deviation, block means", *MAP)
            of_one = ("point", "variance_component")
            about["variance"] = per_element("predicted variance at upright points", *of_one)
            about["consensus_variance"] = per_sample("mean variance", *ANSWER, optional=True)
        if labeled:
            about["rmse"] = per_element("root mean square error over pixels", **worse)
            about["truth_map"] = per_element("truth moved along, middle pixels of blocks", *MAP)
            about["error_map"] = per_element("error, means over known pixels of blocks", *MAP)
            if self.uncertainty:
                what = "truth minus prediction at upright points"
                about["error"] = per_element(what, "point", "component")
        return about

    def primary(self, outputs: Tree) -> Tensor:
        """Return the mean."""
        mean: Tensor = outputs["mean"]
        return mean

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """Return the variance, whose values move."""
        if "variance" not in outputs:
            return {}
        return {"variance": (outputs["variance"], self._scalars.move)}

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean error over known pixels `[K, B]`."""
        error = self._errors(outputs, reference)
        return _known_mean(error, valid)

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average over the elements that see a pixel."""
        return seen_mean(outputs, weights, valid)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean squared error from the center over valid pixels, in the score's unit."""
        return masked_mean(self._errors(outputs, center[None]).double().square(), valid)

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> dict[str, Tensor]:
        """Return the variables of a scan from the maps along the orbits of a batch."""
        answers, backward = self.primary(outputs), elements.inverse()
        home, seen = self.output.move(backward, answers), self.output.valid(backward, answers)
        mean = self.average(home, weights, seen)
        gap = torch.einsum("k,kb->b", weights.double(), self.deviation(home, mean, seen))
        moved, valid = self.output.move(elements, mean[None]), self.output.valid(elements, mean)
        summary = {
            "consensus": mean,
            "invariance_gap": gap.sqrt().float(),
            "score_vs_consensus": self.score(answers, moved, valid).nan_to_num(0.0),
            "map_vs_consensus": _reduced(self._errors(answers, moved), valid),
            **self.extras(outputs, target, elements),
        }
        if target is not None:
            truth = self.output.move(elements, target[None])
            summary["score"] = self.score(answers, truth, self.output.valid(elements, target))
            summary["consensus_vs_truth"] = self.score(mean[None], target[None], None)[0]
        if "variance" in outputs:
            spread = self._scalars.move(backward, outputs["variance"])
            summary["consensus_variance"] = seen_mean(spread, weights, seen)
            summary["variance"] = _points(spread, seen)
            if target is not None:
                summary["error"] = _points(self._in_view(target)[None] - home, seen)
        return self._sample_first(summary, target is not None)

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> dict[str, Tensor]:
        """Return the maps, reduced, and with a truth their errors."""
        answers = self.primary(outputs)
        extras = {"predicted_maps": answers, "value_map": middle_pixels(self._shown(answers))}
        if "variance" in outputs:
            std = outputs["variance"].mean(2).sqrt()
            valid = self.output.valid(elements, answers)
            extras |= {"mean_std": masked_mean(std, valid), "std_map": _reduced(std, valid)}
        if target is not None:
            truth = self.output.move(elements, target[None]).expand_as(answers)
            inside = self.output.valid(elements, target)
            error = self._errors(answers, truth)
            shown = self._shown(truth)
            if inside is not None:
                shown = shown.masked_fill(~inside[:, None], torch.nan)
            extras["rmse"] = _known_mean(error.square(), inside).sqrt()
            extras["truth_map"] = middle_pixels(shown)
            extras["error_map"] = _reduced(error, inside)
        return extras

    def _errors(self, outputs: Tensor, reference: Tensor) -> Tensor:
        """Return the error of each pixel `[K, B, H, W]`, NaN where the reference is unknown."""
        reference = self._in_view(reference)
        if self.representation == "trivial":
            return (outputs - reference).abs().mean(2)
        length: Tensor = (outputs - reference).norm(dim=2)
        if self.representation == "vector":
            return length
        a, b = (
            part / part.norm(dim=2, keepdim=True).clamp_min(1e-12) for part in (outputs, reference)
        )
        return torch.rad2deg(2 * torch.atan2((a - b).norm(dim=2), (a + b).norm(dim=2)))

    def _shown(self, maps: Tensor) -> Tensor:
        """Return one number for each pixel of `[K, B, C, H, W]`, to be drawn."""
        if self.representation == "trivial":
            return maps[:, :, 0]
        length: Tensor = maps.norm(dim=2)
        if self.representation == "vector":
            return length
        if maps.shape[2] == 2:  # a direction in the plane
            return torch.rad2deg(torch.atan2(-maps[:, :, 1], maps[:, :, 0]))
        return torch.rad2deg(torch.atan2(maps[:, :, :2].norm(dim=2), maps[:, :, 2].abs()))

    def _in_view(self, reference: Tensor) -> Tensor:
        return reference if self.window is None else central(reference, self.window)


def _as_maps(values: Tensor) -> Tensor:
    """Return maps `[N, H, W]` as `[N, 1, H, W]`, and others as they are."""
    return values[:, None] if values.ndim == 3 else values


def _known_mean(error: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, H, W]` over valid pixels with a known error; NaN where there are none."""
    known = error.isfinite() if valid is None else error.isfinite() & valid[:, None]
    found = masked_mean(error, known)
    return found.masked_fill(~known.any(-1).any(-1), torch.nan)


def _reduced(values: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce `[K, B, H, W]` to means over the valid pixels of blocks that have a value."""
    known = values.isfinite() if valid is None else values.isfinite() & valid[:, None]
    return reduced_means(values, known)


def _points(maps: Tensor, seen: Tensor | None) -> Tensor:
    """Return the values `[K, B, points, C]` of upright maps `[K, B, C, H, W]`, NaN if unseen."""
    if seen is not None:
        maps = maps.masked_fill(~seen[:, None, None], torch.nan)
    return middle_pixels(maps, POINTS_SIDE).flatten(3).transpose(2, 3)
