"""Groups from text, as on the command line."""

from __future__ import annotations

import inspect

from ..errors import InputError, check_name
from .catalog import CATALOG
from .combining import product
from .group import Group


def parse(text: str) -> Group:
    """Return a group from text: `name:setting:setting`, joined by `*` for products.

    >>> parse("dihedral:4*time_reversal")
    Group('dihedral:4*time_reversal', 16 elements)
    """
    pieces = [piece.strip() for piece in text.split("*")]
    if len(pieces) > 1 and not all(pieces):
        raise InputError("group", "a name on each side of *", repr(text))
    factors = [_parse_one(piece) for piece in pieces]
    group = factors[0]
    for factor in factors[1:]:
        group = product(group, factor)
    return group


def as_group(group: Group | str) -> Group:
    """Return a group from a group or its text."""
    if isinstance(group, Group):
        return group
    if isinstance(group, str):
        return parse(group)
    raise InputError(
        "group", "an orbical.groups.Group or text such as 'rotations:72'", type(group).__name__
    )


def _parse_one(text: str) -> Group:
    name, *words = (word.strip() for word in text.split(":"))
    if name == "from_matrices":
        raise InputError(
            "group",
            "a group that its text defines",
            repr(text),
            remedy="pass the group made by orbical.groups.from_matrices",
        )
    check_name("group", name, CATALOG)
    entry = CATALOG[name]
    signature = inspect.signature(entry.make)
    try:
        bound = signature.bind(*words)
        given = {
            key: word if signature.parameters[key].annotation in ("str", str) else _number(word)
            for key, word in bound.arguments.items()
        }
    except (TypeError, ValueError, OverflowError):
        raise InputError("group", repr(entry.usage), repr(text)) from None
    try:
        return entry.make(**given)
    except InputError as error:
        if error.argument.split(", ")[0] not in signature.parameters:
            raise
        remedy = str(error.about(error.argument.upper()))
        raise InputError("group", repr(entry.usage), repr(text), remedy=remedy) from None


def _number(word: str) -> float:
    number = float(word)
    return int(number) if number == int(number) else number
