"""Mixed: several outputs of one model, each with its own representation, unit and score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from .._arrays import as_array
from .._trees import Tree
from ..actions import Action, ActionTree, Angles, Blocks, Irreps, PixelPosition
from ..errors import InputError, ModelError, check_name
from ..groups import Elements
from .regression import Regression, output_action
from .task import About, Orbit, Reader, Task, Variable, described, is_real, per_element, per_sample

__all__ = ["Mixed"]

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
            name: Action.from_record(form) if isinstance(form, Mapping) else form
            for name, form in representation.items()
        }
        if not forms:
            raise InputError("representation", "an output such as {'center': 'position'}", "none")
        actions = {name: output_action(form) for name, form in forms.items()}
        for argument, given in (("sizes", sizes), ("units", units)):
            for name in given or ():
                check_name(argument, name, forms)
        widths = {name: _width(form, actions[name]) for name, form in forms.items()}
        super().__init__(input, Blocks(actions, {**widths, **(sizes or {})}), read=read)
        self.forms, self.sizes, self.units = forms, dict(sizes or {}), dict(units or {})
        self.representation = forms  # type: ignore[assignment] # one for each output
        angles = {name: of.symbol for name, of in actions.items() if isinstance(of, Angles)}
        self._units = {**angles, **self.units}
        first = next(iter(forms))
        self.score_meaning = f"Euclidean distance of {first} from the truth"
        self.score_unit = self._units.get(first, "")

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
            names = [*given] if isinstance(given, Mapping) else described(given)
            raise error(f"{argument}: expected a dictionary of {', '.join(widths)}, got {names}")
        rows = []
        for name, width in widths.items():
            part = given[name]
            part = part[:, None] if is_real(part) and part.ndim == 1 else part
            if not is_real(part) or part.ndim != 2 or part.shape[1] != width:
                raise error(
                    f"{argument}: expected {name} of shape [sample, {width}], got "
                    f"{described(part)}; pass sizes= for another"
                )
            rows.append(part if part.is_floating_point() else part.float())
        return torch.cat(rows, 1)

    @property
    def _blocks(self) -> Blocks:
        assert isinstance(self.output, Blocks)
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

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> dict[str, Tensor]:
        """Add the error of each output."""
        found = super().extras(outputs, target, elements)
        if target is None:
            return found
        moved = self.output.move(elements, target[None])
        apart = self.output.difference(moved, outputs["mean"])
        each = self._blocks.split(apart.double()).items()
        return found | {f"error_{name}": part.norm(dim=-1).float() for name, part in each}

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: Orbit) -> dict[str, Tensor]:
        """Return the gap of each output."""
        apart = self._blocks.split(
            self.output.difference(orbit.home, orbit.consensus[None]).double()
        )
        squares = {name: part.square().sum(-1) for name, part in apart.items()}
        return {
            f"gap_{name}": torch.einsum("k,kb->b", orbit.weights.double(), part).sqrt().float()
            for name, part in squares.items()
        }


def _width(form: str | Action, action: Action) -> int:
    """Return the usual number of components of a representation."""
    if isinstance(action, Irreps):
        return action.size
    if isinstance(action, PixelPosition):
        return 2
    return _WIDTHS.get(form, 1) if isinstance(form, str) else 1
