"""Actions on trees: one action for each field of the data, and what is asked of all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._trees import Tree, leaves, tree_map
from ..errors import InputError
from ..groups import OF_OUTPUTS, PARTS, Elements, Group, groups_moving, parse
from .action import Action, Settings, field_names


class Fields(Action):
    """An action for each field of a tree, such as `{"pos": Points(), "numbers": Trivial()}`."""

    def __init__(self, actions: Tree) -> None:
        self.actions = actions

    def move(self, elements: Elements, x: Tree) -> Tree:
        """Move each field by its own action."""
        return tree_map(lambda action, leaf: action.move(elements, leaf), self.actions, x)

    def defect(self, elements: Elements, x: Tree, moved: Tree | None = None) -> Tensor:
        """Return the largest defect of the fields."""
        moved = self.apply(elements, x) if moved is None else moved
        each = tree_map(lambda a, leaf, m: a.defect(elements, leaf, m), self.actions, x, moved)
        return torch.stack(list(leaves(each))).amax(0)

    def difference(self, x: Tree, y: Tree) -> Tree:
        """Return the difference of each field."""
        return tree_map(lambda action, a, b: action.difference(a, b), self.actions, x, y)

    def mean(self, x: Tree, weights: Tensor) -> Tree:
        """Average each field."""
        return tree_map(lambda action, leaf: action.mean(leaf, weights), self.actions, x)

    def check(self, group: Group, x: Tree) -> None:
        """Check that the fields match, and check each of them."""
        _check_fields_of_tree(x, self.actions)
        tree_map(lambda action, leaf: action.check(group, leaf), self.actions, x)

    def moved_by(self, x: Tree) -> frozenset[str]:
        """Return the parts that move some field."""
        each = tree_map(lambda action, leaf: action.moved_by(leaf), self.actions, x)
        return frozenset().union(*leaves(each))

    def unknown(self, group: Group) -> set[str]:
        """Return the parts that some field does not know."""
        return set().union(*(leaf.unknown(group) for leaf in flat_actions(self)))

    def doubt(self, x: Tree) -> Tensor | None:
        """Return a flag that is set if the flag of any field is."""
        each = leaves(tree_map(lambda action, leaf: action.doubt(leaf), self.actions, x))
        marks = [mark for mark in each if mark is not None]
        return torch.stack(marks).any() if marks else None

    def check_values(self, x: Tree, first: int = 0) -> None:
        """Check the values of each field."""
        tree_map(lambda action, leaf: action.check_values(leaf, first), self.actions, x)

    def encode(self, given: Any) -> Tree:
        """Encode each field."""
        return tree_map(lambda action, field: action.encode(field), self.actions, given)

    def decode(self, x: Tree) -> Any:
        """Decode each field."""
        return tree_map(lambda action, leaf: action.decode(leaf), self.actions, x)

    def describe(self) -> Settings:
        """Describe each field's action."""
        return {"action": "Fields", "fields": tree_map(lambda a: a.describe(), self.actions)}


def _check_fields_of_tree(x: Tree, actions: Tree, within: str = "") -> None:
    if field_names(x) != field_names(actions):
        given = f"fields {field_names(x)}"
        remedy = "an action for each field (--input pos=points,z=rows)"
        if isinstance(x, Tensor):
            given = "one array"
            remedy = "its action, such as orbical.actions.Points() (--input points)"
        expected = f"fields {field_names(actions)}"
        raise InputError(f"data{within}", expected, given, remedy=f"pass input= {remedy}")
    if isinstance(actions, dict | tuple):
        for key in actions if isinstance(actions, dict) else range(len(actions)):
            _check_fields_of_tree(x[key], actions[key], f"{within}[{key!r}]")


def as_action(action: object) -> Action:
    """Return an action from an action, or from a dictionary or tuple of actions."""
    if isinstance(action, Action):
        return action
    if isinstance(action, dict | tuple | list) and action:
        return Fields(tree_map(as_action, action))
    raise InputError(
        "action",
        "an orbical.actions.Action, such as orbical.actions.Points(), or a dictionary of them",
        repr(action),
    )


def check_group(action: Action, group: Group, x: Tree) -> None:
    """Check that an action can move data by a group, and that each part moves some of it.

    Elements that differ only in such a part would give the same answers, and a model would seem
    to be invariant under it.
    """
    action.check(group, x)
    moved_by = action.moved_by(x)
    idle = sorted({*group.parts} - moved_by - OF_OUTPUTS)
    if idle:
        kinds = ", ".join(type(leaf).__name__ for leaf in flat_actions(action))
        known = " and ".join(sorted(moved_by)) or "nothing"
        users = "; ".join(f"{part} moves {_users(part)}" for part in idle)
        hints = (_HINTS.get((*idle, part), "") for part in sorted(moved_by))
        others = [
            _of_as_many_rows(text, action, x)
            for text in groups_moving(moved_by, group.spec.partition(":")[0])
        ]
        first, more = others[:1], ", ".join(others[1:_MOST_GROUPS])
        ways = f"; for this data use {first[0]}" + f" (or {more})" * bool(more) if first else ""
        raise InputError(
            "group",
            problem=f"the {' and '.join(idle)} part of {group.spec} moves nothing of this data "
            f"({kinds}, moved by {known})",
            remedy=f"{users}{''.join(hints)}{ways}",
        )


def _of_as_many_rows(text: str, action: Action, x: Tree) -> str:
    """Return the text of a group, of the number of rows that the data have if it reorders some."""
    fields = zip(flat_actions(action), leaves(x), strict=False)
    rows = {leaf.shape[1] for each, leaf in fields if "rows" in each.moved_by(leaf)}
    name = text.partition(":")[0]
    reorders = {*parse(text).parts} == {"rows"}
    return group_of_rows(name, rows.pop()) if reorders and len(rows) == 1 else text


def group_of_rows(name: str, rows: int) -> str:
    """Return the text of a group that reorders rows, of more than 24 permutations of some.

    >>> group_of_rows("reversal", 6), group_of_rows("permutations", 6)
    ('reversal:6', 'permutations:6:32')
    """
    return f"{name}:{rows}" + ":32" * (name == "permutations" and rows > 4)


_MOST_GROUPS = 6
_HINTS: dict[tuple[str, ...], str] = {
    ("plane", "space"): "; space is mirrored by inversion",
    ("space", "plane"): "; volumes are [sample, channel, depth, row, column], gray ones x[:, None]",
}
"""What to say of a part that moves nothing, where the data is moved by another."""


def _users(part: str) -> str:
    known = PARTS.get(part)
    return (known and known.moves) or "no known data"


def action_view(action: Action) -> str:
    """Return the view of data moved by an action: that of the first field that can be drawn.

    >>> from orbical.actions import Points, Trivial
    >>> action_view(as_action({"mask": Trivial(), "pos": Points()})), action_view(Trivial())
    ('points', 'values')
    """
    views = [leaf.drawn_as for leaf in flat_actions(action)]
    return next((view for view in views if view != "values"), "values")


def flat_actions(action: Action) -> list[Action]:
    """Return the actions of all fields."""
    if isinstance(action, Fields):
        return [leaf for item in leaves(action.actions) for leaf in flat_actions(item)]
    return [action]


def action_parts_in_place(action: Action) -> frozenset[str]:
    """Return the parts that change values of the data and leave all places where they are.

    >>> from orbical.actions import Points, Rows
    >>> sorted(action_parts_in_place(as_action({"pos": Points(), "mask": Rows()})))
    ['plane', 'space']
    """
    fields = flat_actions(action)
    moving = {part for leaf in fields for part in leaf.parts if part not in leaf.in_place}
    return frozenset(part for leaf in fields for part in leaf.in_place) - moving
