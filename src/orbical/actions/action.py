"""The base classes of actions, and how a record of a scan names them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, Union
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree, leaves, to_device, tree_map
from ..errors import InputError, WithUsage
from ..groups import Elements, Group

Settings = dict[str, Any]
"""Arguments of a constructor by name, as a record holds them."""


class Action(WithUsage, ABC):
    """How group elements move one kind of data.

    `parts` are the parts of a group that the action knows. `drawn_as` names
    how an interactive display shows such data.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    in_place: ClassVar[tuple[str, ...]] = ()
    """Those of `parts` that change values and leave every place where it is: colors, gains, and
    coordinates of points. What a model predicts at a place is not moved by them."""
    ignored: ClassVar[tuple[str, ...]] = ()
    """Parts that leave the data as they are, beside `parts`, which move them."""
    dims: ClassVar[tuple[str, ...]] = ()
    """The dimensions of a batch, a number for one of fixed size; nothing for any."""
    drawn_as: ClassVar[str] = "values"
    _fixed: ClassVar[frozenset[str]] = frozenset()
    """Public attributes that the constructor does not take."""

    @abstractmethod
    def move(self, elements: Elements, x: Tree) -> Tree:
        """Move `x[K, B, ...]` (or `[1, B, ...]`, shared by all elements) to `[K, B, ...]`."""

    def apply(self, elements: Elements, x: Tree) -> Tree:
        """Move a batch `x[B, ...]` by every element, to `[K, B, ...]`."""
        return self.move(elements, tree_map(lambda leaf: leaf[None], x))

    def valid(self, elements: Elements, x: Tree) -> Tensor | None:
        """Return a mask `[K, (D,) H, W]` of pixels that come from the input; None if all do."""
        return None

    def defect(self, elements: Elements, x: Tree, moved: Tree | None = None) -> Tensor:
        """Measure `||g^-1 g x - x|| / ||x||` for each element and sample, `[K, B]`.

        It is 0 for an exact action; a resampled one loses detail, which must not be read as the
        model's failure. `moved` may hold `apply(elements, x)` where it is known already.
        """
        if self.loses_nothing(elements, x):
            first = next(leaves(x))
            return torch.zeros(len(elements), len(first), device=first.device)
        moved = self.apply(elements, x) if moved is None else moved
        back = self.move(elements.inverse(), moved)
        lost = tree_map(lambda a, b: relative_action_loss(a, b[None]), back, x)
        return torch.stack(list(leaves(lost))).amax(0)

    def loses_nothing(self, elements: Elements, x: Tree) -> bool:
        """Check whether the inverse of these elements restores the data up to rounding."""
        return False

    def areas(self, sides: tuple[int, ...]) -> Tensor | None:
        """Return how much each place of a map counts, 1 on average; None if all count alike."""
        return None

    def difference(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x - y`, by which predictions are compared; of angles the short way around."""
        return x - y

    def mean(self, x: Tensor, weights: Tensor) -> Tensor:
        """Average `x[K, B, ...]` over the elements, to `[B, ...]`.

        Computed as the first plus the mean difference from it, so that rounding does not accumulate
        over many elements when all agree.
        """
        first = x[0]
        apart = self.difference(x, first)
        return first + torch.einsum("k,k...->...", weights.to(x.dtype), apart)

    def check(self, group: Group, x: Tree) -> None:
        """Check that this action can move the data by this group, or raise, before any work."""
        if not isinstance(x, Tensor):
            given = f"fields {field_names(x)}" if isinstance(x, dict | tuple) else type(x).__name__
            raise InputError(
                "data",
                f"one tensor for the action {type(self).__name__}",
                given,
                remedy="pass input= an action for each field; labels are no field: pass (x, y)",
            )
        sizes = zip(self.dims, x.shape, strict=False)
        fixed = all(int(name) == size for name, size in sizes if name.isdigit())
        if self.dims and (x.ndim != len(self.dims) or not fixed):
            raise InputError(
                "data",
                f"samples of shape [{', '.join(self.dims[1:])}] for the action "
                f"{type(self).__name__}",
                list(x.shape[1:]),
                remedy=_remedy_for_action_dims(group, x, self.dims),
            )

    def moved_by(self, x: Tree) -> frozenset[str]:
        """Return the parts of a group that move this data; by default all that the action knows."""
        return frozenset(self.parts)

    def unknown(self, group: Group) -> set[str]:
        """Return the parts of a group whose effect on the data the action does not know."""
        return {*group.parts} - {*self.parts, *self.ignored}

    def doubt(self, x: Tree) -> Tensor | None:
        """Return a flag on the device: whether a batch may hold values that cannot be moved.

        Called for every batch, unlike `check`, which sees only the first samples; so it is cheap
        and never waits for the device. None if any values can be moved, such as NaN as padding.
        """
        return None

    def check_values(self, x: Tree, first: int = 0) -> None:
        """Check that a batch of values can be moved; its samples are counted from `first`.

        Called for the first samples and for batches whose flag is set.
        """

    def encode(self, given: Any) -> Tree:
        """Return a batch as tensors, from what a model receives."""
        return given

    def decode(self, x: Tree) -> Any:
        """Return a batch as models receive it, from tensors `[N, ...]`; texts as strings."""
        return x

    def describe(self) -> Settings:
        """Return the settings that change what the action does, for the record of a scan."""
        settings = {
            key: value.describe() if isinstance(value, Action) else value
            for key, value in sorted(vars(self).items())
            if key[0] != "_"
        }
        return {"action": type(self).__name__, **settings}

    @staticmethod
    def from_record(described: Mapping[str, object]) -> Action:
        """Make an action from what `describe` returned.

        Only actions of orbical and those that `register` has named are made: nothing that a record
        names is ever imported.

        Args:
            described: the description, as the record of a scan holds it.

        Returns:
            The action.

        Example:
            >>> from orbical.actions import Window
            >>> Action.from_record(Window(32).describe()).size
            32
        """
        import orbical.actions as own  # every action imports this module

        name = described.get("action")
        if name == "Fields":
            return own.as_action(_restored_fields(described["fields"]))
        kind = getattr(own, str(name), None) if name in own.__all__ else REGISTERED.get(str(name))
        if not (isinstance(kind, type) and issubclass(kind, Action)) or kind is Action:
            raise InputError(
                "action",
                "an action of orbical or a registered one",
                repr(name),
                remedy="import the file that registers it (--import MODULE), or pass the task "
                "itself",
            )
        kept = described.keys() - kind._fixed - {"action"}
        return kind(**{key: restored_action_setting(described[key]) for key in kept})


ActionTree = Union[Action, Mapping[str, "ActionTree"], Sequence["ActionTree"]]  # noqa: UP007 - recursive
"""An action, or a dictionary or sequence of actions for the fields of the data."""
REGISTERED: dict[str, type[Action]] = {}
Kind = TypeVar("Kind", bound=type[Action])
Kept = TypeVar("Kept")


def register(action: Kind) -> Kind:
    """Register your own action by name, so that saved scans can refer to it; a class decorator.

    A scan that is viewed where the class is registered can show moved inputs and live answers. The
    settings of the action must be arguments of its constructor.

    Args:
        action: the class.

    Returns:
        The class.

    Example:
        >>> from orbical.actions import Points
        >>> @register
        ... class Landmarks(Points):
        ...     '''Points on faces.'''
        >>> type(Action.from_record({"action": "Landmarks"})).__name__
        'Landmarks'
    """
    import orbical.actions as own

    if not (isinstance(action, type) and issubclass(action, Action)):
        raise InputError("action", "a subclass of Action", repr(action))
    if action.__name__ in own.__all__:
        raise InputError("action", "a new name", f"{action.__name__!r}, an action of orbical")
    REGISTERED[action.__name__] = action
    return action


def restored_action_setting(value: Any) -> Any:
    """Return a setting from how a record holds it: an action, where it describes one."""
    return Action.from_record(value) if _describes_action(value) else value


def _describes_action(value: Any) -> bool:
    """Check whether a dictionary names an action; a field of the data may be called "action"."""
    return isinstance(value, Mapping) and isinstance(value.get("action"), str)


def _restored_fields(described: Any) -> Any:
    if _describes_action(described):
        return Action.from_record(described)
    if isinstance(described, Mapping):
        return {key: _restored_fields(part) for key, part in described.items()}
    return tuple(_restored_fields(part) for part in described)


def relative_action_loss(back: Tensor, x: Tensor) -> Tensor:
    """Return `||back - x|| / ||x||` for each element and sample, `[K, B]`."""
    if not back.is_floating_point():  # whole numbers are only ever reordered, or turned exactly
        back = back.double()
    x = x.to(back.dtype)
    lost = torch.linalg.vector_norm((back - x).flatten(2), dim=-1)
    size = torch.linalg.vector_norm(x.flatten(2), dim=-1)
    result: Tensor = (lost / size.clamp_min(torch.finfo(lost.dtype).tiny)).float()
    return result


def _remedy_for_action_dims(group: Group, x: Tensor, dims: tuple[str, ...]) -> str:
    """Name the axis that data of this shape lacks, or the action that it may need."""
    if "columns" in group.parts:
        return "pass a pandas data frame, whose columns have names"
    if {"shift", "gain"} & {*group.parts} and x.ndim <= 3:
        return (
            "pass signals as [sample, channel, time], with the action Signals() (--input signals)"
        )
    lacking = "channel" in dims and x.ndim == len(dims) - 1
    before = ":, " * dims.index("channel") if lacking else ""
    channel = f"if they lack the channel, add it with x[{before}None]; a single sample is x[None]; "
    return (channel if lacking else "") + (
        "for other data, pass its action, such as "
        "task=ob.tasks.Classification(ob.actions.Points()) (--input points)"
    )


class Exact(Action):
    """Actions whose inverse restores the data up to rounding."""

    def loses_nothing(self, elements: Elements, x: Tree) -> bool:
        """Return True."""
        return True


class ByPart(Action):
    """Actions that one part of a group moves; where a group lacks it, a batch is repeated."""

    part: str

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, ...]`."""
        repeated = x.expand(len(elements), *x.shape[1:])
        return self.move_each(elements, repeated) if self.part in elements.parts else repeated

    @abstractmethod
    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K, B, ...]` by K elements that have the part."""


class Trivial(Exact):
    """The trivial action: class labels, energies, atomic numbers under rotations."""

    def move(self, elements: Elements, x: Tree) -> Tree:
        """Repeat the batch for each element, without a copy."""
        return tree_map(lambda leaf: leaf.expand(len(elements), *leaf.shape[1:]), x)

    def check(self, group: Group, x: Tree) -> None:
        """Accept any data."""

    def unknown(self, group: Group) -> set[str]:
        """Return nothing: the data stay as they are, whatever the group."""
        return set()


def field_names(tree: Tree) -> Any:
    """Return the names of the fields of a tree, or their number, or that there are none."""
    if isinstance(tree, Mapping):
        return sorted(tree, key=str)
    if isinstance(tree, tuple | list):
        return len(tree)
    return "none"


def is_own_action(action: Action, method: str = "move") -> bool:
    """Check whether an action moves data by code of your own, and not by that of orbical."""
    home = next(kind for kind in type(action).__mro__ if method in vars(kind))
    return not home.__module__.startswith("orbical.")


def action_matrices(part: np.ndarray, like: Tensor) -> Tensor:
    """Return matrices on the device and in the precision of the data."""
    dtype = like.dtype if like.is_floating_point() else torch.float32
    moved: Tensor = to_device(torch.as_tensor(np.ascontiguousarray(part), dtype=dtype), like.device)
    return moved


def _maybe_lacking(x: Tensor) -> Tensor | None:
    """Return a flag for an array that may hold NaN or infinity, from its sum; None for integers.

    Of numbers too large to be added the mark is set in vain: only a look at each of them knows.
    """
    if not x.is_floating_point():
        return None
    half = x.dtype in (torch.float16, torch.bfloat16)
    return ~torch.isfinite(x.sum(dtype=torch.float32 if half else None))


def nonfinite_sample(x: Tensor) -> int | None:
    """Return the first sample of `x[B, ...]` with NaN or infinity, or None.

    >>> nonfinite_sample(torch.tensor([[1.0, 2.0], [3.0, torch.inf]]))
    1
    """
    doubt = _maybe_lacking(x)
    if doubt is None or not bool(doubt):
        return None
    found = (~torch.isfinite(x[:, None])).flatten(1).any(1).nonzero()
    return int(found[0]) if len(found) else None


class ActionCache:
    """What is computed once for elements, and kept while they are in use.

    A pickled copy begins empty: a cache stays in its process.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Elements, dict[Hashable, Any]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[ActionCache], tuple[()]]:
        return ActionCache, ()

    def of(self, elements: Elements) -> dict[Hashable, Any]:
        """Return what is kept for these elements."""
        return self._kept.setdefault(elements, {})

    def get(self, elements: Elements, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what is kept for these elements under a key, made on first use."""
        kept = self.of(elements)
        if key not in kept:
            kept[key] = make()
        found: Kept = kept[key]
        return found


class OfFinite(Action):
    """Actions that would spread NaN and infinity."""

    def doubt(self, x: Tensor) -> Tensor | None:
        """Return a flag for NaN and infinity."""
        return _maybe_lacking(x)

    def check_values(self, x: Tensor, first: int = 0) -> None:
        """Refuse values that are not finite."""
        sample = nonfinite_sample(x)
        if sample is not None:
            place = (~torch.isfinite(x[sample])).nonzero()[0].tolist()
            axes = max(2, len(self.dims) - 2)
            where = ", ".join(map("{} {}".format, self.dims[-axes:], place[-axes:]))
            raise InputError(
                "data",
                "finite numbers",
                f"NaN or infinity at {where} of sample {first + sample}",
                remedy="orbical.datasets.padded pads samples of different sizes",
            )


def check_affine_action(group: Group, action: str) -> None:
    """Refuse a group that holds homographies, for an action that has a turn for each element."""
    if group.has_homographies:
        raise InputError(
            "group",
            f"affine maps for the action {action}",
            f"homographies in {group.spec}",
            remedy="Images, ColorImages, Boxes and Points move by them",
        )
