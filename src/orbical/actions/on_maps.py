"""Actions on what models predict for each pixel, voxel or other place of their inputs.

Such maps move as the inputs do, by the action of the inputs: that of images, of volumes, of a
window, or one of your own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .._trees import Tree
from ..errors import InputError, check_name
from ..groups import Elements, Group
from .action import (
    Action,
    ActionCache,
    ActionTree,
    Trivial,
    action_matrices,
    check_affine_action,
    is_own_action,
)
from .fields import Fields, as_action, flat_actions
from .on_globes import Globe, Periodic
from .on_images import Images, MapView, Window, check_square_images, check_window_fits_images
from .on_volumes import Volumes, check_volume_sides, voxel_frame
from .pixel_grids import pixel_frame

REPRESENTATIONS = ("trivial", "vector", "normal")
_OF_VOLUMES = {"nearest": "nearest", "bilinear": "trilinear"}
_ROUNDING = 1e-3


class _Maps(Action):
    """What all maps share: they move by the action `of` the inputs, resampled by `interpolation`.

    Below a `Window` the result is its view of maps that may be larger.
    """

    def __init__(self, of: ActionTree | None, interpolation: str) -> None:
        self.of = _grid_of(Images() if of is None else as_action(of))
        self.interpolation = interpolation
        self._smooth = _action_on_maps(self.of, interpolation)
        self._kept = ActionCache()

    @property
    def sides(self) -> int:
        """The number of dimensions of a map."""
        return 3 if self.of.drawn_as == "volume" else 2

    def areas(self, sides: tuple[int, ...]) -> Tensor | None:
        """Return how much each place counts, as the inputs state it."""
        return self.of.areas(sides)

    def unknown(self, group: Group) -> set[str]:
        """Return the parts that move the inputs in a way that maps do not follow."""
        return self._smooth.unknown(group) - {*self.of.in_place}

    def _moved(self, action: Action, elements: Elements, x: Tensor) -> Tensor:
        still = {*elements.parts} & {*self.of.in_place}
        if still:
            parts = {name: part for name, part in elements.parts.items() if name not in still}
            elements = Elements(parts, len(elements), elements.exact_on_grid)
        if not elements.parts and is_own_action(self.of):
            return x.expand(len(elements), *x.shape[1:])
        moved: Tensor = action.move(elements, x)
        return moved

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask `[K, ...]` of places that come from inside the map; None if all do."""
        if is_own_action(self.of) and not is_own_action(self.of, "valid"):
            return None  # what it inherits knows nothing of how it moves

        def inside() -> Tensor | None:
            mask = self._smooth.valid(elements, x)
            return None if mask is None or bool(mask.all()) else mask

        # Kept, because looking for one outside waits for an accelerator.
        return self._kept.get(elements, (x.device, tuple(x.shape[-self.sides :])), inside)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the size of the maps."""
        super().check(group, x)
        if isinstance(self._smooth, Volumes):
            check_volume_sides(group, x, self._smooth.spacing)
        elif isinstance(self._smooth, Images):
            check_square_images(group, x)
            if isinstance(self._smooth, MapView):
                check_window_fits_images(x, self._smooth.size)

    def check_places(self, group: Group, x: Tree) -> None:
        """Refuse an action of your own that changes values, because maps should only move.

        A map of ones stays one wherever the action does not pad.
        """
        if not is_own_action(self.of) or not isinstance(x, Tensor):
            return
        moved = self._moved(self._smooth, group, torch.ones_like(x[None, :1], dtype=torch.float32))
        kept = ((moved - 1).abs() < _ROUNDING).flatten(1).float().mean(1)
        if float(kept.min()) < 0.5:
            name, element = type(self.of).__name__, group.name(int(kept.argmin()))
            raise InputError(
                "input",
                "an action that moves maps without changing their values",
                f"{name}, which changes a map of ones at {element} of {group.spec}",
                remedy=f"list the parts that leave places where they are in {name}.in_place, or "
                "pass the task output= the action of its maps",
            )


class ClassMaps(_Maps):
    """Class maps, which move with the inputs.

    Probabilities `[B, C, ...]` are resampled by `interpolation`, labels `[B, ...]` (integers) by
    the nearest neighbor, so that no class is invented; by an action of your own the class of the
    largest share moves. Below a `Window` the result is its central view of maps that may be larger.

    >>> from orbical.groups import cyclic, inversion
    >>> ClassMaps().apply(cyclic(4), torch.tensor([[[1, 2], [3, 4]]]))[1, 0]
    tensor([[2, 4],
            [1, 3]])
    >>> ClassMaps(Volumes()).apply(inversion(), torch.arange(8).reshape(1, 2, 2, 2))[1].flatten()
    tensor([7, 6, 5, 4, 3, 2, 1, 0])
    """

    def __init__(self, of: ActionTree | None = None, interpolation: str = "bilinear") -> None:
        super().__init__(of, interpolation)
        self._nearest = None if is_own_action(self.of) else _action_on_maps(self.of, "nearest")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move probabilities `x[K or 1, B, C, ...]`, or labels `x[K or 1, B, ...]`."""
        if x.is_floating_point():
            return self._moved(self._smooth, elements, x)
        if self._nearest is not None:
            moved = self._moved(self._nearest, elements, x[:, :, None])[:, :, 0]
            return moved.round().to(x.dtype)
        labels, index = x.unique(return_inverse=True)
        shares = F.one_hot(index, len(labels)).movedim(-1, 2).float()
        largest = self._moved(self._smooth, elements, shares).max(2).indices
        classes: Tensor = labels[largest]
        return classes

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask `[K, ...]` of places that come from inside the map; None if all do."""
        return super().valid(elements, x if x.is_floating_point() else x[:, None])

    def check(self, group: Group, x: Tensor) -> None:
        """Check the number of dimensions and the size."""
        if isinstance(x, Tensor) and x.ndim != self.sides + (2 if x.is_floating_point() else 1):
            sides = "depth, row, column" if self.sides == 3 else "row, column"
            raise InputError(
                "class maps",
                f"probabilities [sample, class, {sides}] or integer labels [sample, {sides}]",
                f"{x.dtype} of shape {tuple(x.shape)}",
            )
        super().check(group, x)


class ValueMaps(_Maps):
    """Maps of values or vectors `[B, C, ...]` that move with the inputs; NaN is unknown.

    `representation` is `trivial` (depth, heat maps: values only move), `vector` (displacements in
    pixels or voxels, which an element turns, mirrors and scales) or `normal` (directions, which it
    turns and mirrors). Vectors are (x to the right, y down) or (x, y, z), of images with z along
    the line of sight, which the plane leaves as it is, and of volumes with z along the depth. A
    result that depends on an unknown value is unknown. Actions of your own move values only.

    >>> from orbical.groups import cyclic
    >>> right = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> ValueMaps("normal").apply(cyclic(4), right)[1].flatten() + 0.0    # up: y is down
    tensor([ 0., -1.,  0.])
    """

    def __init__(
        self,
        representation: str = "trivial",
        of: ActionTree | None = None,
        interpolation: str = "bilinear",
    ) -> None:
        check_name("representation", representation, REPRESENTATIONS)
        super().__init__(of, interpolation)
        if representation != "trivial" and is_own_action(self.of):
            raise InputError(
                "representation",
                f"'trivial' for the action {type(self.of).__name__}, of which only the places that "
                "it moves are known",
                repr(representation),
                remedy="pass output= the action of the maps",
            )
        self.representation = representation

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of components that a vector may have."""
        return (3,) if self.sides == 3 else (2, 3)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, ...]`."""
        moved = _move_known(partial(self._moved, self._smooth, elements), x)
        if self.representation == "trivial":
            return moved
        turn, sides = np.tile(np.eye(x.shape[2]), (len(elements), 1, 1)), self.sides
        turn[:, :sides, :sides] = self._linear(elements)
        if self.representation == "normal":
            size = np.abs(np.linalg.det(turn[:, :sides, :sides])) ** (1 / sides)
            turn[:, :sides, :sides] /= size[:, None, None]
        return torch.einsum("kij,kbj...->kbi...", action_matrices(turn, moved), moved)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the number of components, and that directions stay directions."""
        if isinstance(x, Tensor) and x.ndim != 2 + self.sides:
            raise InputError("maps", "values [sample, component, ...]", x)
        super().check(group, x)
        if self.representation == "trivial":
            return
        if x.shape[1] not in self.widths:
            raise InputError(
                "maps",
                f"{' or '.join(map(str, self.widths))} components of each {self.representation}",
                x.shape[1],
            )
        check_affine_action(group, "ValueMaps")
        linear = self._linear(group)
        size = np.abs(np.linalg.det(linear)) ** (2 / self.sides)
        if self.representation == "normal" and not np.allclose(
            linear @ linear.transpose(0, 2, 1), size[:, None, None] * np.eye(self.sides), atol=1e-9
        ):
            raise InputError(
                "group",
                problem=f"{group.spec} shears or stretches, which does not move normals as "
                "directions",
                remedy="use rotations, reflections, shifts and scalings",
            )

    def _linear(self, elements: Elements) -> np.ndarray:
        """Return how an element turns vectors, in pixels or voxels, `[K, sides, sides]`."""
        if "cell" in elements.parts:
            return elements.parts["cell"][:, :2, :2]
        spacing = getattr(self.of, "spacing", None)
        frame = voxel_frame(elements, spacing) if self.sides == 3 else pixel_frame(elements)
        return frame[:, : self.sides, : self.sides]


def _grid_of(action: Action) -> Action:
    """Return the action of the field whose places maps have, of an action on several fields."""
    if not isinstance(action, Fields):
        return action
    leaves = [leaf for leaf in flat_actions(action) if not isinstance(leaf, Trivial)]
    grids = [leaf for leaf in leaves if isinstance(leaf, Images | Volumes | Periodic)] or leaves
    return grids[0] if grids else Images()


def _action_on_maps(action: Action, interpolation: str) -> Action:
    """Return the action that moves maps; the border continues outside."""
    if is_own_action(action):
        return action
    if isinstance(action, Volumes):
        check_name("interpolation", interpolation, _OF_VOLUMES)
        return Volumes(_OF_VOLUMES[interpolation], "border", action.spacing)
    if isinstance(action, Globe):
        return Globe(action.rows, interpolation)
    if isinstance(action, Periodic):
        return Periodic(interpolation)
    if isinstance(action, Window):
        return MapView(action.size, interpolation)
    if isinstance(action, Images):
        return Images(interpolation, "border")
    raise InputError(
        "input",
        "an action on images, volumes or periodic grids, or one of your own, for maps that move "
        "with the inputs",
        type(action),
        remedy="for a class or number at each sample of a signal use task='point_classification' "
        "or Regression(..., per_point=True); otherwise pass output= the action of the maps",
    )


def _move_known(move: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Move values of which NaN is unknown; a result that depends on an unknown one is NaN."""
    known = torch.isfinite(x)
    moved, all_known = move(x.nan_to_num(0.0, 0.0, 0.0)), known.all()
    if not x.is_cuda and bool(all_known):  # an accelerator would be waited for
        return moved
    lost = move(known.to(x.dtype)) < 1 - _ROUNDING
    return moved.masked_fill(lost & ~all_known, torch.nan)
