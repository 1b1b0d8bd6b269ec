"""Groups from text, as on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..errors import InputError, check_name
from .combining import product
from .discrete import permutations, time_reversal, trivial
from .group import Group
from .plane import cyclic, dihedral, euclidean, flips, rotations, scales, translations
from .space import inversion, rotations3d, slices3d

CONSTRUCTORS: dict[str, Callable[..., Group]] = {
    maker.__name__: maker
    for maker in (
        trivial,
        cyclic,
        dihedral,
        rotations,
        flips,
        translations,
        scales,
        rotations3d,
        inversion,
        slices3d,
        permutations,
        euclidean,
        time_reversal,
    )
}


def parse(text: str) -> Group:
    """Return a group from text: `name:number:number`, joined by `*` for products.

    >>> parse("dihedral:4*time_reversal")
    Group('dihedral:4*time_reversal', 16 elements)
    """
    factors = [_parse_one(piece.strip()) for piece in text.split("*")]
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
        "group: expected an orbical.groups.Group or text such as 'rotations:72', got "
        f"{type(group).__name__}"
    )


def _parse_one(text: str) -> Group:
    name, *numbers = (word.strip() for word in text.split(":"))
    if name == "from_matrices":
        raise InputError(
            f"group: expected a group that its text defines, got {text!r}; pass the group made by "
            "orbical.groups.from_matrices"
        )
    check_name("group", name, CONSTRUCTORS)
    signature = inspect.signature(CONSTRUCTORS[name])
    usage = ":".join([name, *(parameter.upper() for parameter in signature.parameters)])
    try:
        arguments = [float(number) for number in numbers]
        bound = signature.bind(*(int(a) if a == int(a) else a for a in arguments))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"group: expected {usage!r}, got {text!r}") from None
    try:
        return CONSTRUCTORS[name](*bound.args)
    except InputError as error:
        names, _, rest = str(error).partition(": ")
        if names.split(", ")[0] not in signature.parameters:
            raise
        raise InputError(
            f"group: expected {usage!r}, got {text!r}; {names.upper()}: {rest}"
        ) from None
