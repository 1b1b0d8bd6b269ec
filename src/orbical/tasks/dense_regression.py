"""Dense regression: numbers or vectors for each pixel or voxel: depth, heat maps, normals."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from .._trees import Tree
from ..actions import Action, ActionTree, ValueMaps, nonfinite_sample
from ..errors import InputError, check_name
from ..groups import Elements
from ._maps import (
    MAP,
    MapTask,
    map_values_on_grid,
    masked_map_mean,
    reduced_mean_maps,
    reduced_value_maps,
    seen_map_mean,
    vector_map_lengths,
)
from .reading import read_output, read_truth, wrong_output, wrong_truth
from .task import About, Move, Reader, Results, TaskOrbit, Variable, per_element, per_sample
from .uncertainties import uncertain_outputs

POINTS_SIDE = {2: 16, 3: 6}
"""Points along a side of an image or a volume where errors and variances are stored.

Neighbors say much the same."""
_MEANINGS = {
    "trivial": ("mean absolute error", ""),
    "vector": ("mean length of the error", ""),
    "normal": ("mean angle to the true normal in degrees", "degrees"),
}


class DenseRegression(MapTask):
    """Predict numbers or a vector for each pixel; the maps move with the image.

    Inputs are images `[N, C, H, W]`, outputs and targets maps `[N, components, H, W]`, or
    `[N, H, W]` of one component; of volumes `[N, C, D, H, W]`, which a group of space moves, every
    map has a depth too, and its pixels are voxels. NaN in the targets marks pixels whose value is
    unknown; these, and pixels that come from outside the image, are never judged. The score is the
    mean absolute error, for vectors the mean length of the error, for normals the mean angle to the
    true one in degrees. Also stored are

    - `rmse`, the root of the mean squared error over pixels (of angles, for normals);
    - `value_map`, `truth_map`, `error_map` and `map_vs_consensus`, reduced to at most 32 x 32 cells
      for the view: the first component, the length of vectors, or the angle of normals to the line
      of sight; of volumes, the three middle slices;
    - with `uncertainty="variance"`: `mean_std`, `std_map`, and, at points of a 16 x 16 grid in the
      upright image (6 x 6 x 6 in a volume), `error` and `variance`, which
      `orbical.calibration.along_orbit` reads.

    Args:
        input: the action on the images; by default `Images()`, or `Volumes()` of inputs with a
            depth. With `Window(size)` the model sees `size` pixels of larger images, and the
            targets are as large as the images.
        representation: `"trivial"` (depth, heat maps: values only move), `"vector"` (displacements
            in pixels, which also turn, mirror and scale), or `"normal"` (directions, which turn and
            mirror). Vectors are (x to the right, y down) or (x, y, z); of volumes, (x along the
            columns, y down the rows, z along the depth).
        read: a function that picks the outputs from a raw model output.
        uncertainty: `"variance"` if the model returns (mean, variance) or a dictionary of the two;
            the variance has one component, or as many as the mean where nothing turns.
        interpolation: how maps are resampled: `nearest`, `bilinear` (of volumes, trilinear) or
            `bicubic` (of images).
        output: the action on the maps. By default they move by the action of the inputs, also by
            one of your own, whose parts in `in_place` leave maps as they are.

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
    primary_output: ClassVar[str | None] = "mean"
    higher_is_better: ClassVar[bool] = False
    truth_name: ClassVar[str] = "true_map"
    unseen_score: ClassVar[float | None] = 0.0

    def __init__(
        self,
        input: ActionTree | None = None,
        representation: str = "trivial",
        read: Reader | None = None,
        uncertainty: str | None = None,
        interpolation: str = "bilinear",
        output: Action | None = None,
    ) -> None:
        self._scalars = output or ValueMaps("trivial", input, interpolation)
        super().__init__(input, output or ValueMaps(representation, input, interpolation), read)
        self.keep_map_settings(interpolation, output, "component")
        if uncertainty is not None:
            check_name("uncertainty", uncertainty, ("variance",))
        self.representation, self.uncertainty = representation, uncertainty
        self.score_meaning, self.score_unit = _MEANINGS[representation]

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"mean": [N, C, ...]}` and the variance `[N, C or 1, ...]`."""
        parts = uncertain_outputs(self.picked(raw), self.uncertainty)
        found = {name: self._as_maps(part) for name, part in parts.items()}
        mean = found["mean"]
        read_output(mean, "maps", "sample", "component", *self._sides)
        many = getattr(self.output, "widths", mean.shape[1:2])
        if self.representation != "trivial" and mean.shape[1] not in many:
            some = " or ".join(map(str, many))
            raise wrong_output(f"{some} components of each {self.representation}", mean.shape[1])
        variance = found.get("variance")
        components = (1, mean.shape[1]) if self.representation == "trivial" else (1,)
        if variance is not None and (
            variance.shape[2:] != mean.shape[2:] or variance.shape[1] not in components
        ):
            size = f"the size of the mean {tuple(mean.shape)}"
            expected = f"a variance of {components[-1]} components and of {size}"
            raise wrong_output(expected, tuple(variance.shape))
        return found

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark outputs that are not finite, and variances that are not positive."""
        found = super().faults(outputs)
        if "variance" in outputs:
            found["a variance that is not positive"] = (outputs["variance"] <= 0).flatten(2).any(-1)
        return found

    def check_target(self, target: object, count: int) -> Tensor:
        """Check maps `[N, C, ...]` or `[N, ...]`, in which NaN is unknown."""
        maps: Tensor = read_truth(target, count)
        maps = self._as_maps(maps if maps.is_floating_point() else maps.float())
        if maps.ndim != 2 + len(self._sides) or maps.is_complex():
            raise wrong_truth(f"maps [sample, component, {', '.join(self._sides)}]", maps)
        lacking = nonfinite_sample(maps) is not None
        if lacking and bool(maps.isinf().any()):
            raise InputError("labels", "finite numbers", "infinite values", remedy="NaN is unknown")
        unknown = maps.isnan().flatten(1).all(1).nonzero() if lacking else torch.zeros(0)
        if len(unknown):
            got = f"only NaN for sample {int(unknown[0])}"
            raise InputError("labels", "some known pixel of each sample", got)
        return maps.float()

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check that truth and mean have the same shape, or the truth surrounds the window."""
        predicted, true = tuple(outputs["mean"].shape[1:]), tuple(target.shape[1:])
        if true[0] != predicted[0]:
            raise InputError("labels", f"{predicted[0]} components, as the model predicts", true[0])
        self.check_size(true[1:], predicted[1:])

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the errors, the reduced maps, and errors with variances at points."""
        answer = ("component", *self._sides)
        about = self.common_variables(labeled, answer)
        worse: About = {"unit": self.score_unit, "higher_is_better": False}
        about["predicted_maps"] = per_element("predicted maps", *answer, optional=True)
        about["value_map"] = per_element("prediction, middle pixels of blocks", *MAP)
        about["map_vs_consensus"] = per_element("distance from the consensus, by block", *MAP)
        if self.uncertainty:
            about["mean_std"] = per_element("mean predicted standard deviation")
            about["std_map"] = per_element("predicted standard deviation, block means", *MAP)
            of_one = ("point", "variance_component")
            about["variance"] = per_element("predicted variance at upright points", *of_one)
            about["consensus_variance"] = per_sample("mean variance", *answer, optional=True)
        if labeled:
            about["rmse"] = per_element("root mean square error over pixels", **worse)
            about["truth_map"] = per_element("truth moved along, middle pixels of blocks", *MAP)
            about["error_map"] = per_element("error, means over known pixels of blocks", *MAP)
            if self.uncertainty:
                what = "truth minus prediction at upright points"
                about["error"] = per_element(what, "point", "component")
        return about

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """Return the variance, whose values move."""
        if "variance" not in outputs:
            return {}
        return {"variance": (outputs["variance"], self._scalars.move)}

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean error over known pixels `[K, B]`."""
        error = self._errors(outputs, reference)
        return _known_mean(error, valid, self.areas(error))

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean squared error from the center over valid pixels, in the score's unit."""
        apart = self._errors(outputs, center[None]).double().square()
        return masked_map_mean(apart, valid, self.areas(apart))

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: TaskOrbit) -> Results:
        """Return where answers differ from the consensus, and errors and variances at points."""
        against = self._errors(orbit.answers, orbit.moved)
        found = {"map_vs_consensus": _reduced(against, orbit.valid)}
        if "variance" in outputs:
            spread = self._scalars.move(orbit.elements.inverse(), outputs["variance"])
            found["consensus_variance"] = seen_map_mean(spread, orbit.weights, orbit.seen)
            found["variance"] = self._at_points(spread, orbit.seen)
            if target is not None:
                away = self.in_view(target)[None] - orbit.home
                found["error"] = self._at_points(away, orbit.seen)
        return found

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return the maps, reduced, and with a truth their errors."""
        answers = self.primary(outputs)
        extras = {"predicted_maps": answers, "value_map": reduced_value_maps(self._shown(answers))}
        if "variance" in outputs:
            std = outputs["variance"].mean(2).sqrt()
            valid = self.output.valid(elements, answers)
            extras |= {"mean_std": masked_map_mean(std, valid), "std_map": _reduced(std, valid)}
        if target is not None:
            truth = self.output.move(elements, target[None]).expand_as(answers)
            inside = self.output.valid(elements, target)
            error = self._errors(answers, truth)
            shown = self._shown(truth)
            if inside is not None:
                shown = shown.masked_fill(~inside[:, None], torch.nan)
            extras["rmse"] = _known_mean(error.square(), inside, self.areas(error)).sqrt()
            extras["truth_map"] = reduced_value_maps(shown)
            extras["error_map"] = _reduced(error, inside)
        return extras

    def _errors(self, outputs: Tensor, reference: Tensor) -> Tensor:
        """Return the error of each pixel `[K, B, ...]`, NaN where the reference is unknown."""
        reference = self.in_view(reference)
        if self.representation == "trivial":
            apart = (outputs - reference).abs_()
            return apart[:, :, 0] if apart.shape[2] == 1 else apart.mean(2)
        if self.representation == "vector":
            return vector_map_lengths(outputs - reference)
        a, b = (
            part / vector_map_lengths(part)[:, :, None].clamp_min(torch.finfo(outputs.dtype).tiny)
            for part in (outputs, reference)
        )
        return torch.rad2deg(2 * torch.atan2(vector_map_lengths(a - b), vector_map_lengths(a + b)))

    def _shown(self, maps: Tensor) -> Tensor:
        """Return one number for each pixel of `[K, B, C, ...]`, to be drawn."""
        if self.representation == "trivial":
            return maps[:, :, 0]
        if self.representation == "vector":
            return vector_map_lengths(maps)
        if maps.shape[2] == 2:  # a direction in the plane
            return torch.rad2deg(torch.atan2(-maps[:, :, 1], maps[:, :, 0]))
        return torch.rad2deg(torch.atan2(vector_map_lengths(maps[:, :, :2]), maps[:, :, 2].abs()))

    def _as_maps(self, values: Tensor) -> Tensor:
        """Return maps `[N, ...]` of one component as `[N, 1, ...]`, and others as they are."""
        return values[:, None] if values.ndim == 1 + len(self._sides) else values

    def _at_points(self, maps: Tensor, seen: Tensor | None) -> Tensor:
        """Return values `[K, B, points, C]` of upright maps `[K, B, C, ...]`, NaN if unseen."""
        if seen is not None:
            maps = maps.masked_fill(~seen[:, None, None], torch.nan)
        sides = len(self._sides)
        return map_values_on_grid(maps, sides, POINTS_SIDE[sides]).flatten(3).transpose(2, 3)


def _known_mean(error: Tensor, valid: Tensor | None, areas: Tensor | None) -> Tensor:
    """Average `[K, B, ...]` over valid pixels with a known error; NaN where there are none."""
    known = _known(error, valid)
    found = masked_map_mean(error, known, areas)
    return found.masked_fill(~known.flatten(2).any(-1), torch.nan)


def _reduced(values: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce `[K, B, ...]` to means over the valid pixels of blocks that have a value."""
    return reduced_mean_maps(values, _known(values, valid))


def _known(values: Tensor, valid: Tensor | None) -> Tensor:
    """Return a mask `[K, B, ...]` of valid pixels that have a value; `isfinite` is slower."""
    known = values == values
    return known if valid is None else known & valid[:, None]
