"""Regression: scalars, vectors, vectors per point, any representation of rotations, or several."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from .. import actions
from .._arrays import as_array
from .._trees import Tree
from ..actions import Action, ActionTree
from ..errors import InputError, ModelError, check_name
from ..groups import Elements
from . import point_samples, uncertainties
from .reading import check_as_predicted, described_value, is_real, read_truth, wrong_output
from .task import About, Move, Reader, Results, Task, TaskOrbit, Variable, per_element, per_sample


class Regression(Task):
    """Predict numbers; the representation states how they move with the input.

    The score is the Euclidean error, root mean square over points, and lower is better.

    With `uncertainty`, the model returns a tuple, or a dictionary of the same names:
    `"variance"`: (mean, variance). `"covariance"`: (mean, covariance `[N, d, d]`). `"parts"`:
    (mean, aleatoric, epistemic). `"evidential"`: (gamma, nu, alpha, beta). It is never guessed, and
    a bare tensor is always a mean alone. A variance is one number, or one for each component where
    nothing rotates. A scan then stores `variance`, its parts or the `covariance`, and `error`, the
    moved truth minus the mean, which `orbical.calibration.along_orbit` reads.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`, or `{"pos": Points(), "mask": Rows()}` of clouds of
            different sizes.
        representation: `"trivial"` (energies, prices: nothing moves), `"vector"` (dipoles, forces,
            in the plane or in space), `"position"` (a centroid, which is shifted too; in images
            `"position:HEIGHT:WIDTH"`, as (x, y) pixels from the upper left corner), `"angle"` (a
            direction in the plane, counterclockwise from x; `"angle:radians"`, or
            `"angle:degrees:180"` of axes, which have a period of 180°), `"positions"` or
            `"positions:STEP"` along a signal, `"pitch"` of a sound in semitones or `"pitch:hertz"`,
            an e3nn irreps string with parity (`"1x0e + 1x2e"`),
            or an action.
        per_point: whether outputs are `[N, n, d]` or `[N, n]`, reordered by permutations, instead
            of `[N, d]` or `[N]`. Where the data have `mask [N, n]`, padding does not count; samples
            may be clouds of different sizes, a ragged batch or graphs of PyG, with a target for
            each point, NaN where there is none.
        read: a function that picks the outputs from a raw model output.
        uncertainty: the form of the outputs, as above; None for a mean alone.

    See Also:
        DenseRegression: Numbers for each pixel.
        Atoms: Energies and forces.
        Mixed: Several quantities at once.

    Example:
        >>> import orbical as ob
        >>> ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="evidential")
        Regression(representation='vector', uncertainty='evidential')
    """

    name: ClassVar[str] = "regression"
    primary_output: ClassVar[str | None] = "mean"
    score_meaning = "Euclidean distance from the truth"
    higher_is_better: ClassVar[bool] = False
    detail_view: ClassVar[str] = "values"

    def __init__(
        self,
        input: ActionTree | None = None,
        representation: str | Action = "trivial",
        per_point: bool = False,
        read: Reader | None = None,
        uncertainty: str | None = None,
    ) -> None:
        self._scalars = point_samples.point_action(input) if per_point else actions.Trivial()
        super().__init__(
            input, _output_action_of_regression(representation, per_point, self._scalars), read
        )
        self.representation = representation
        self.per_point = per_point
        self.truth_dims = ("point", "component") if per_point else ("component",)
        if per_point:
            self.score_meaning = "root mean square distance of points from the truth"
        if uncertainty is not None:
            check_name("uncertainty", uncertainty, uncertainties.FORMS)
        self.uncertainty = uncertainty
        self.has_mean = uncertainty not in ("covariance", "evidential")
        if isinstance(self.output, actions.Angles):
            self.score_meaning, self.score_unit = "angle to the truth", self.output.symbol
            self.gap_unit = self.score_unit
        if uncertainty is not None:
            self.detail_view = "intervals"  # type: ignore[misc] # the view follows the outputs

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"mean": [N, d]}` and the uncertainty in its form."""
        parts = uncertainties.uncertain_outputs(self.picked(raw), self.uncertainty)
        mean = self._as_rows(parts["mean"], "model output", ModelError)
        if isinstance(self.output, actions.Vectors) and mean.shape[-1] not in (2, 3):
            raise wrong_output("vectors of 2 or 3 components", mean.shape[-1])
        return uncertainties.checked_uncertainty({**parts, "mean": mean}, self.output)

    def take(self, data: object) -> object:
        """Pad samples of different sizes, and their targets by point."""
        if not self.per_point:
            return data
        moving = actions.as_action(point_samples.CLOUDS) if self._input_by_shape else self.input
        return point_samples.padded_points(data, moving, torch.nan)

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Blank the outputs on padding, where the data have a mask of points."""
        point_samples.check_point_sample_count(self.output, outputs["mean"].shape[2], moved)
        mask = point_samples.point_mask(moved, outputs["mean"].shape[2]) if self.per_point else None
        if mask is None:
            return outputs
        return {
            **{name: point_samples.blank_padding(part, mask) for name, part in outputs.items()},
            "mask": mask,
        }

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark outputs that are not finite, padding aside, and those that form no distribution."""
        mask = outputs.get("mask")
        given = {
            name: part if mask is None else point_samples.repeated_point_samples(part, mask)
            for name, part in outputs.items()
            if name != "mask"
        }
        return super().faults(given) | uncertainties.uncertainty_faults(given)

    def _as_rows(self, values: Tensor, argument: str, error: type[Exception]) -> Tensor:
        """Return values `[N]`, by point `[N, n]`, with a last dimension of 1; check dimensions."""
        rows = values[..., None] if values.ndim == len(self.truth_dims) else values
        if rows.ndim != len(self.truth_dims) + 1:
            dims = ", ".join(self.truth_dims)
            raise error(f"{argument}: expected [sample, {dims}], got shape {tuple(rows.shape)}")
        return rows

    def check_target(self, target: object, count: int) -> Tensor:
        """Check values `[N]`, `[N, d]` or `[N, n, d]`."""
        values = read_truth(target, count)
        if not values.is_floating_point():
            values = values.double().float()
        values = self._as_rows(values, "labels", InputError)
        if bool(values.isinf().any()) or (not self.per_point and bool(values.isnan().any())):
            raise InputError(
                "labels",
                "finite numbers",
                "NaN or infinite values",
                remedy="NaN marks points without a truth, with per_point=True",
            )
        return values

    def check_range(self, target: Tensor, outputs: dict[str, Tensor]) -> None:
        """Check that truth and mean have the same shape."""
        true, predicted = tuple(target.shape[1:]), tuple(outputs["mean"].shape[1:])
        check_as_predicted(true, predicted, f"shape {predicted} for each sample")

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the mean and the uncertainty."""
        dims = self.truth_dims
        declared = self.common_variables(labeled, dims)
        declared["mean"] = per_element("predicted mean", *dims)
        if self.uncertainty is None:
            return declared
        one, whole = (*dims[:-1], "variance_component"), (*dims, "with_component")
        declared["variance"] = per_element("predicted variance", *one)
        declared["variance_gap"] = per_sample(
            "root mean square distance of un-transformed variances from their mean"
        )
        consensus = "mean of the un-transformed"
        if self.uncertainty == "covariance":
            declared["covariance"] = per_element("predicted covariance", *whole)
            declared["consensus_covariance"] = per_sample(f"{consensus} covariances", *whole)
        else:
            declared["consensus_variance"] = per_sample(f"{consensus} variances", *one)
        if self.uncertainty in ("parts", "evidential"):
            declared["aleatoric"] = per_element("variance ascribed to the data", *one)
            declared["epistemic"] = per_element("variance ascribed to the model", *one)
        if labeled:
            declared["error"] = per_element("moved truth minus the predicted mean", *dims)
        return declared

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """Return variances, which stay or follow their points, or the covariance, which rotates."""
        found = uncertainties.uncertainty_variances(outputs)
        if "covariance" in found:
            turn = partial(uncertainties.moved_uncertainty_covariance, self.output, self._scalars)
            return {"covariance": (found["covariance"], turn)}
        return {name: (values, self._scalars.move) for name, values in found.items()}

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the Euclidean error, root mean square over the points that have a truth."""
        squares = self._apart(outputs, reference).double().square().sum(-1)
        if self.per_point:
            squares = squares.nanmean(-1)
        return squares.sqrt().float()

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared distance of un-transformed outputs from their mean, `[K, B]`."""
        apart = self._apart(outputs, center[None]).nan_to_num(0.0)
        return apart.double().square().flatten(2).sum(-1)

    def _apart(self, outputs: Tensor, reference: Tensor) -> Tensor:
        """Return what is measured of the difference from a reference, `[K, B, ..., d]`."""
        return self.output.difference(outputs, reference)

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return the mean, the variances and the signed error."""
        found = {"mean": outputs["mean"], **uncertainties.uncertainty_variances(outputs)}
        if target is not None and self.uncertainty is not None:
            moved = self.output.move(elements, target[None])
            found["error"] = self.output.difference(moved, outputs["mean"])
        return found

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: TaskOrbit) -> Results:
        """Return the mean of the un-transformed variances, and their distance from it."""
        found = self.companions(outputs)
        if not found:
            return {}
        name = "covariance" if "covariance" in found else "variance"
        values, move = found[name]
        home = move(orbit.elements.inverse(), values)
        consensus = self._scalars.mean(home, orbit.weights)
        apart = super().deviation(home.nan_to_num(0.0), consensus.nan_to_num(0.0), None)
        gap = torch.einsum("k,kb->b", orbit.weights.double(), apart)
        return {f"consensus_{name}": consensus, "variance_gap": gap.sqrt().float()}


def _output_action_of_regression(
    representation: str | Action, per_point: bool = False, scalars: Action | None = None
) -> Action:
    """Return the action on outputs of a representation."""
    if isinstance(representation, Action):
        return representation
    if not isinstance(representation, str):
        raise InputError(
            "representation",
            "text or an action",
            type(representation),
            remedy="for several outputs, each with its own, use orbical.tasks.Mixed",
        )
    if representation == "trivial":
        return scalars or actions.Trivial()
    if representation == "vector":
        return actions.Vectors(per_point=per_point)
    name, _, step = representation.partition(":")
    if name == "angle":
        unit, _, period = step.partition(":")
        return actions.Angles(
            unit or "degrees", _number(period, "angle:UNIT:PERIOD") if period else None
        )
    if name == "positions":
        return actions.Positions(_number(step or "1", "positions:STEP, such as positions:1/3"))
    if name == "pitch":
        return actions.Pitch(step or "semitones")
    if name == "position":
        return _position_action_of_regression(step, per_point)
    return actions.Irreps(representation, per_point)


def _position_action_of_regression(size: str, per_point: bool) -> Action:
    """Return the action on positions, in images of a size such as `64:48`."""
    sides = size.split(":") if size else []
    if sides and not (len(sides) == 2 and all(side.isdigit() for side in sides)):
        raise InputError("representation", "position:HEIGHT:WIDTH, such as position:64:48", size)
    if sides:
        of_images = actions.PixelPoints if per_point else actions.PixelPosition
        return of_images(int(sides[0]), int(sides[1]))
    return actions.Points() if per_point else actions.Position()


def _number(text: str, expected: str) -> float:
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise InputError("representation", expected, repr(text)) from None


_WIDTHS = {"trivial": 1, "vector": 3, "position": 3}


class Mixed(Regression):
    """Predict several quantities at once, each of which moves in its own way, such as a pose.

    A model returns a dictionary with an array `[N, d]` (or `[N]`) for each name, and the truth is
    one, too. Stored for each are `error_NAME`, its Euclidean distance from the moved truth, and
    `gap_NAME`, the root mean square distance from its mean over the orbit, in its own unit; nothing
    is added across units. `score` and `invariance_gap` are those of the first.

    Args:
        input: the action on the inputs, or a tree of actions; as for `Regression`.
        representation: how each output moves, by name: `{"center": "position", "energy":
            "trivial"}`, with what `Regression` takes; or as text, `center=position,energy=trivial`.
        sizes: the numbers of components, by name; by default 3 of vectors and positions (2 of
            points of the plane), 2 of positions in images, and 1 of what does not move.
        units: the units, by name; angles have their own.
        read: a function that picks the dictionary from a raw model output.

    Raises:
        InputError: if there is no output, or a name is none of them.

    Example:
        >>> import orbical as ob
        >>> def model(points):
        ...     return {"center": points.mean(1), "spread": points.var(1).sum(-1)}
        >>> task = ob.tasks.Mixed(ob.actions.Points(), {"center": "position", "spread": "trivial"})
        >>> scan = ob.scan(model, torch.randn(4, 9, 3), group="se3:8", task=task, progress=False)
        >>> bool(scan.data["gap_center"].max() < 1e-5), bool(scan.data["gap_spread"].max() < 1e-4)
        (True, True)
    """

    name: ClassVar[str] = "mixed"

    def __init__(
        self,
        input: ActionTree | None = None,
        representation: Mapping[str, str | Action] | str = "",
        sizes: Mapping[str, int] | None = None,
        units: Mapping[str, str] | None = None,
        read: Reader | None = None,
    ) -> None:
        if isinstance(representation, str):
            pairs = (pair.partition("=") for pair in representation.split(",") if pair.strip())
            representation = {name.strip(): kind.strip() for name, _, kind in pairs}
        forms = {
            name: actions.restored_action_setting(form) for name, form in representation.items()
        }
        if not forms:
            raise InputError("representation", "an output such as {'center': 'position'}", "none")
        moves = {name: _output_action_of_regression(form) for name, form in forms.items()}
        for argument, given in (("sizes", sizes), ("units", units)):
            for name in given or ():
                check_name(argument, name, forms)
        widths = {name: _width(form, moves[name]) for name, form in forms.items()}
        super().__init__(input, actions.Blocks(moves, {**widths, **(sizes or {})}), read=read)
        self.forms, self.sizes, self.units = forms, dict(sizes or {}), dict(units or {})
        self.representation = forms  # type: ignore[assignment] # one for each output
        angles = {name: of.symbol for name, of in moves.items() if isinstance(of, actions.Angles)}
        self._units = {**angles, **self.units}
        first = next(iter(forms))
        self.score_meaning = f"Euclidean distance of {first} from the truth"
        self.score_unit = self._units.get(first, "")

    @classmethod
    def _restored(cls, settings: Mapping[str, Any], input: Action, read: Reader | None) -> Task:
        return cls(input=input, read=read, **settings)  # by output, which may be called "action"

    def for_inputs(self, x: Tree, action: ActionTree | None = None) -> Task:
        """Return the task for these inputs: vectors and positions of points of the plane have 2."""
        task = super().for_inputs(x, action)
        forms = {name: form for name, form in self.forms.items() if form in ("vector", "position")}
        unstated = [name for name in forms if name not in self.sizes]
        plane = isinstance(x, Tensor) and "plane" in task.input.moved_by(x) and x.shape[-1] == 2
        if not plane or not unstated:
            return task
        sizes = {**dict.fromkeys(unstated, 2), **self.sizes}
        return Mixed(task.input, self.forms, sizes, self.units, self._read)

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read the outputs side by side, `{"mean": [N, D]}`."""
        return {"mean": self._joined(self.picked(raw), "model output", ModelError)}

    def take(self, data: object) -> object:
        """Put the targets of all outputs side by side."""
        if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], Mapping):
            truth = {name: as_array(name, values) for name, values in data[1].items()}
            plain = hasattr(data[0], "shape")
            suited = self.for_inputs(as_array("data", data[0])) if plain else self
            assert isinstance(suited, Mixed)
            return data[0], suited._joined(truth, "labels", InputError)
        return data

    def _joined(self, given: object, argument: str, error: type[Exception]) -> Tensor:
        """Return the parts of a dictionary side by side, each of its width."""
        widths = self._blocks.widths
        if not isinstance(given, Mapping) or not {*widths} <= {*given}:
            names = [*given] if isinstance(given, Mapping) else described_value(given)
            raise error(f"{argument}: expected a dictionary of {', '.join(widths)}, got {names}")
        rows = []
        for name, width in widths.items():
            part = given[name]
            part = part[:, None] if is_real(part) and part.ndim == 1 else part
            if not is_real(part) or part.ndim != 2 or part.shape[1] != width:
                raise error(
                    f"{argument}: expected {name} of shape [sample, {width}], got "
                    f"{described_value(part)}; pass sizes= for another"
                )
            rows.append(part if part.is_floating_point() else part.float())
        return torch.cat(rows, 1)

    @property
    def _blocks(self) -> actions.Blocks:
        assert isinstance(self.output, actions.Blocks)
        return self.output

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the error and the gap of each output."""
        declared = super().variables(labeled)
        for name in self.forms:
            about: About = {"unit": self._units.get(name, ""), "higher_is_better": False}
            declared[f"gap_{name}"] = per_sample(f"invariance gap of {name}", **about)
            if labeled:
                declared[f"error_{name}"] = per_element(f"distance of {name} from truth", **about)
        return declared

    def _apart(self, outputs: Tensor, reference: Tensor) -> Tensor:
        """Return the difference of the first output, which is scored."""
        apart = super()._apart(outputs, reference)
        return next(iter(self._blocks.split(apart).values()))

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Add the error of each output."""
        found = super().extras(outputs, target, elements)
        if target is None:
            return found
        moved = self.output.move(elements, target[None])
        apart = self.output.difference(moved, outputs["mean"])
        each = self._blocks.split(apart.double()).items()
        return found | {f"error_{name}": part.norm(dim=-1).float() for name, part in each}

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: TaskOrbit) -> Results:
        """Return the gap of each output."""
        apart = self.output.difference(orbit.home, orbit.consensus[None]).double()
        found, weights = {}, orbit.weights.double()
        for name, part in self._blocks.split(apart).items():
            mean = torch.einsum("k,kb->b", weights, part.square().sum(-1))
            found[f"gap_{name}"] = mean.sqrt().float()
        return found


def _width(form: str | Action, action: Action) -> int:
    """Return the usual number of components of a representation."""
    if isinstance(action, actions.Irreps):
        return action.size
    if isinstance(action, actions.PixelPosition):
        return 2
    return _WIDTHS.get(form, 1) if isinstance(form, str) else 1
