"""The names of groups: what text can say, and what `orbical groups` lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..errors import InputError
from .group import Group

Constructor = TypeVar("Constructor", bound=Callable[..., Group])


@dataclass(frozen=True)
class Entry:
    """A group that text can name: its constructor, and a text that makes one to show."""

    make: Callable[..., Group]
    example: str

    @property
    def usage(self) -> str:
        """How its text is written, such as `rotations:N`."""
        names = inspect.signature(self.make).parameters
        return ":".join([self.make.__name__, *map(str.upper, names)])

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return inspect.cleandoc(self.make.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


CATALOG: dict[str, Entry] = {}


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
        >>> del groups.catalog.CATALOG["half_turns"]  # forget it again
    """

    def named(make: Constructor) -> Constructor:
        name = make.__name__
        own = __name__.rpartition(".")[0]
        if name in CATALOG and CATALOG[name].make.__module__.startswith(own):
            raise InputError("register", "a new name", f"{name!r}, a group of orbical")
        CATALOG[name] = Entry(make, example or name)
        return make

    return named
