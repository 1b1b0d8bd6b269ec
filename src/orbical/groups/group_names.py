"""The names of groups: groups from text, and what `orbical groups` lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import TypeVar

from ..errors import InputError, check_name
from .group import Group
from .making import product

Constructor = TypeVar("Constructor", bound=Callable[..., Group])


@dataclass(frozen=True)
class NamedGroup:
    """A group that text can name: its constructor, and a text that makes one to show."""

    make: Callable[..., Group]
    example: str

    @property
    def usage(self) -> str:
        """How its text is written, such as `rotations:N[:TO][:SAMPLES]`."""
        settings = inspect.signature(self.make).parameters.values()
        words = (
            f"[:{each.name}]" if each.default is None else f":{each.name}" for each in settings
        )
        return self.make.__name__ + "".join(words).upper()

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return inspect.cleandoc(self.make.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


CATALOG: dict[str, NamedGroup] = {}


def register(example: str = "") -> Callable[[Constructor], Constructor]:
    """Name a group in text, on the command line and in `orbical groups`, by its constructor.

    Text such as `boosts:0.9:17` calls the constructor `boosts(0.9, 17)`. A parameter annotated as
    `str` takes a word, any other a number.

    Args:
        example: a text that makes such a group, for lists; its name alone where nothing is needed.

    Returns:
        A decorator, which returns the constructor unchanged.

    Example:
        >>> from orbical import groups
        >>> @groups.register("half_turns:2")
        ... def half_turns(n: int):
        ...     '''Return a half turn of the plane, `n` times as often as none.'''
        ...     turns = [[[1, 0], [0, 1]], [[-1, 0], [0, -1]]]
        ...     return groups.from_matrices(plane=turns, weights=[1, n])
        >>> groups.parse("half_turns:3").weights.tolist()
        [0.25, 0.75]
        >>> del groups.group_names.CATALOG["half_turns"]  # forget it again
    """

    def named(make: Constructor) -> Constructor:
        name = make.__name__
        own = __name__.rpartition(".")[0]
        if name in CATALOG and CATALOG[name].make.__module__.startswith(own):
            raise InputError("register", "a new name", f"{name!r}, a group of orbical")
        CATALOG[name] = NamedGroup(make, example or name)
        return make

    return named


def parse(text: str) -> Group:
    """Return a group from text: `name:setting:setting`, joined by `*` for products.

    >>> parse("dihedral:4*time_reversal")
    Group('dihedral:4*time_reversal', 16 elements)
    """
    pieces = [piece.strip() for piece in text.split("*")]
    if len(pieces) > 1 and not all(pieces):
        raise InputError("group", "a name on each side of *", repr(text))
    factors = [_parse_one_name(piece) for piece in pieces]
    group = factors[0]
    for factor in factors[1:]:
        group = product(group, factor)
    return group


def groups_moving(parts: Collection[str], like: str) -> list[str]:
    """Return texts of groups that have some of these parts and no others.

    Those with a similar name, or a description that mentions the name `like`, come first.

    >>> groups_moving({"plane"}, "shifts")[0], groups_moving({"space"}, "rotations")[:2]
    ('translations:32:2', ['rotations3d', 'tetrahedral'])
    """

    def likeness(name: str) -> float:
        mentioned = 0.75 * (f" {like} " in CATALOG[name].summary)  # as much as few letters differ
        return max(mentioned, SequenceMatcher(a=name, b=like).ratio())

    made = {name: {*parse(entry.example).parts} for name, entry in CATALOG.items()}
    names = [name for name, own in made.items() if own and own <= {*parts}]
    return [CATALOG[name].example for name in sorted(names, key=likeness, reverse=True)]


def as_group(group: Group | str) -> Group:
    """Return a group from a group or its text."""
    if isinstance(group, Group):
        return group
    if isinstance(group, str):
        return parse(group)
    raise InputError("group", "an orbical.groups.Group or text such as 'rotations:72'", type(group))


def _parse_one_name(text: str) -> Group:
    name, *words = (word.strip() for word in text.split(":"))
    if name == "from_matrices":
        raise InputError(
            "group",
            "a group that its text defines",
            repr(text),
            remedy="pass the group made by orbical.groups.from_matrices",
        )
    about = [known for known, each in CATALOG.items() if len(name) > 3 and name in each.summary]
    if about and not get_close_matches(name, CATALOG):  # a word for what a group does
        raise InputError("group", f"the name of a group, such as {about[0]!r}", repr(name))
    check_name("group", name, CATALOG)
    entry = CATALOG[name]
    signature = inspect.signature(entry.make)
    try:
        bound = signature.bind(*words)
        for key, word in bound.arguments.items():
            if signature.parameters[key].annotation not in ("str", str):
                bound.arguments[key] = _number(word)
    except (TypeError, ValueError, OverflowError):
        raise InputError("group", repr(entry.usage), repr(text)) from None
    try:
        return entry.make(*bound.args)
    except InputError as error:
        if error.argument.split(", ")[0] not in signature.parameters:
            raise
        remedy = str(error.about(error.argument.upper()))
        raise InputError("group", repr(entry.usage), repr(text), remedy=remedy) from None


_LARGEST_INTEGER = 2**53
"""Of those that a float states exactly; NumPy calculates with no larger ones."""


def _number(word: str) -> float:
    number = float(word)
    whole = number == int(number) and abs(number) <= _LARGEST_INTEGER
    return int(number) if whole else number
