"""The errors that orbical raises.

A message names the argument, what was expected and what was given, and the remedy if there is one:
`labels: expected integers of shape (N,), got float32 of shape (100, 10); pass class indices`.
"""

from __future__ import annotations

import difflib
import inspect
import numbers
import sys
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from pathlib import Path
from typing import Literal, ParamSpec, TypeGuard, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class OrbicalError(Exception):
    """Base class of every error that orbical raises on purpose."""


class InputError(OrbicalError, ValueError):
    """An argument cannot be used.

    The text reads `argument: expected ..., got ...; remedy`. Whoever presents it in other words, as
    the command line does, uses the attributes and never cuts the text.

    Args:
        argument: The name of the argument, or the file that is wrong.
        expected: What can be used.
        got: What was passed: in words, as a value whose text says it, as an array, of which the
            shape is said, or as a type, of which the name is; "" leaves it out.
        remedy: What to do about it, if that is known.
        problem: A sentence for what `expected` and `got` cannot say; it replaces both.

    Example:
        >>> print(InputError("bins", "an integer >= 1", 0, remedy="the default is 15"))
        bins: expected an integer >= 1, got 0; the default is 15
        >>> print(InputError("data", problem="scan.csv cannot be read as a table"))
        data: scan.csv cannot be read as a table
        >>> import numpy as np
        >>> print(InputError("boxes", "shape (N, 4)", np.zeros((3, 2))))
        boxes: expected shape (N, 4), got shape (3, 2)
    """

    def __init__(
        self,
        argument: str | Path,
        expected: str = "",
        got: object = "",
        *,
        remedy: str = "",
        problem: str = "",
    ) -> None:
        self.argument, self.expected, self.got = str(argument), expected, _in_words(got)
        self.remedy = remedy
        self.problem = problem or f"expected {expected}" + (f", got {self.got}" if self.got else "")
        super().__init__(self.argument, expected, self.got)

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}" + (f"; {self.remedy}" if self.remedy else "")

    def about(self, argument: str, *, remedy: str = "") -> InputError:
        """Return the same error about another argument, and with another remedy if one is given.

        >>> print(InputError("data", "numbers", "text").about("x"))
        x: expected numbers, got text
        """
        remedy = remedy or self.remedy
        return InputError(argument, self.expected, self.got, remedy=remedy, problem=self.problem)


def _in_words(got: object) -> str:
    if isinstance(got, type):
        return got.__name__
    if hasattr(got, "dtype") and hasattr(got, "shape") and not isinstance(got, numbers.Number):
        return f"shape {tuple(got.shape)}"
    return str(got)


class ModelError(OrbicalError, RuntimeError):
    """A model cannot be loaded, or the task cannot read its outputs."""


class StoreError(OrbicalError, RuntimeError):
    """A result store cannot be read, written or continued."""


class Interrupted(OrbicalError, KeyboardInterrupt):
    """The user stopped a long computation; the message says how to continue."""


class MissingExtra(OrbicalError, ImportError):
    """An optional package is missing; the message names the extra that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'orbical[{extra}]'")


_FEW_NAMES = 20


def unknown_name(
    argument: str, given: object, known: Iterable[str], cutoff: float = 0.5
) -> InputError:
    """Return the error for an unknown name, with the nearest known one as a suggestion.

    All names are listed where they are few, or where none is near: similar by the `cutoff` or more.

    >>> print(unknown_name("group", "rotation", ["rotations", "flips"]))
    group: unknown name 'rotation'; did you mean 'rotations'? (known: flips, rotations)
    >>> print(unknown_name("measure", "eSD", ["KSE", "ESD"]))
    measure: unknown name 'eSD'; did you mean 'ESD'? (known: ESD, KSE)
    >>> print(unknown_name("group", "so3", ["o3", "so3_quadrature"]))
    group: unknown name 'so3'; did you mean 'so3_quadrature'? (known: o3, so3_quadrature)
    """
    names = sorted(known)
    in_lower_case = {name.lower(): name for name in names}
    wanted = str(given).lower()
    begun = [name for name in in_lower_case if len(wanted) > 2 and name.startswith(wanted)]
    nearest = sorted(begun, key=len) or difflib.get_close_matches(wanted, in_lower_case, 1, cutoff)
    problem, everything = f"unknown name {str(given)!r}", f"(known: {', '.join(names) or 'none'})"
    if not nearest:
        return InputError(argument, problem=f"{problem} {everything}")
    remedy = f"did you mean {in_lower_case[nearest[0]]!r}?"
    remedy += f" {everything}" if len(names) <= _FEW_NAMES else ""
    return InputError(argument, problem=problem, remedy=remedy)


def check_name(argument: str, given: object, known: Collection[str]) -> None:
    """Raise the error of `unknown_name` unless a name is known.

    >>> check_name("group", "flips", ["rotations", "flips"])
    """
    if given not in known:
        raise unknown_name(argument, given, known)


def errors_with_usage(
    usage: str = "", elsewhere: Callable[[str], str] = lambda _: ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function answer arguments that it does not take with the call that works.

    That is its signature unless `usage` says another. `elsewhere` says where an argument belongs
    that users look for here, or nothing.

    >>> @errors_with_usage("(probs=probs)", lambda name: "pass g(size=...)" * (name == "size"))
    ... def f(*, probs=None, bins=15): ...
    >>> f([0.5])
    Traceback (most recent call last):
    orbical.errors.InputError: f: too many positional arguments; call f(probs=probs)
    >>> f(bin=3)
    Traceback (most recent call last):
    orbical.errors.InputError: f: unknown name 'bin'; did you mean 'bins'? (known: bins, probs)
    >>> f(size=3)
    Traceback (most recent call last):
    orbical.errors.InputError: f: has no argument 'size'; pass g(size=...)
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature, makes = inspect.signature(function), function.__name__ == "__init__"
        taken = [*signature.parameters.values()][makes:]  # without self
        plain = [one.replace(annotation=one.empty) for one in taken]
        names = [one.name for one in plain]

        @wraps(function)
        def run(*args: _P.args, **options: _P.kwargs) -> _R:
            try:
                return function(*args, **options)
            except (TypeError, InputError):  # which what a function hands on raises elsewhere
                check(args, options)
                raise

        def check(args: tuple[object, ...], options: dict[str, object]) -> None:
            try:
                signature.bind(*args, **options)
            except TypeError as error:
                name = type(args[0]).__name__ if makes else function.__name__
                for option in [key for key in options if key not in names]:
                    if remedy := elsewhere(option):
                        problem = f"has no argument {option!r}"
                        raise InputError(name, problem=problem, remedy=remedy) from None
                    raise unknown_name(name, option, names, cutoff=0.55) from None
                remedy = f"call {name}{usage or inspect.Signature(plain)}"
                raise InputError(name, problem=str(error), remedy=remedy) from None

        return run

    return decorate


class WithUsage:
    """A class whose constructor, and that of each subclass, answers as `errors_with_usage` does.

    >>> class Bins(WithUsage):
    ...     def __init__(self, *, number=15): ...
    >>> class Few(Bins): ...
    >>> Few(numbers=3)
    Traceback (most recent call last):
    orbical.errors.InputError: Few: unknown name 'numbers'; did you mean 'number'? (known: number)
    >>> Few(3)
    Traceback (most recent call last):
    orbical.errors.InputError: Few: too many positional arguments; call Few(*, number=15)
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = errors_with_usage()(cls.__init__)  # type: ignore[method-assign]


def check_type(argument: str, value: object, kind: type, expected: str) -> None:
    """Raise with what was expected, in words, unless a value is of a type.

    >>> check_type("name", "ece", str, "the name of a measure")
    """
    if not isinstance(value, kind):
        raise InputError(argument, expected, type(value))


def whole_number(argument: str, value: object, least: int = 1, other: str = "") -> int:
    """Return an integer that is large enough, or raise; `other` names what else was possible.

    >>> whole_number("bins", 15.0)
    15
    """
    if not _is_finite(value) or int(value) != value or value < least:
        raise InputError(argument, f"{other}an integer >= {least}", repr(value))
    return int(value)


MOST_BINS = 1 << 16


def number_of_bins(value: object) -> int:
    """Return a number of bins, or raise; memory grows with it, and no data fill so many.

    >>> number_of_bins(15)
    15
    >>> number_of_bins(10**11)
    Traceback (most recent call last):
    orbical.errors.InputError: bins: expected an integer from 1 to 65,536, got 100000000000
    """
    bins = whole_number("bins", value)
    if bins > MOST_BINS:
        raise InputError("bins", f"an integer from 1 to {MOST_BINS:,}", repr(value))
    return bins


Range = Literal["", "> 0", ">= 0", ">= 1", "in (0, 1)", "in [0, 1]"]
_WITHIN: dict[str, Callable[[float], bool]] = {
    "": lambda _: True,
    "> 0": lambda value: value > 0,
    ">= 0": lambda value: value >= 0,
    ">= 1": lambda value: value >= 1,
    "in (0, 1)": lambda value: 0 < value < 1,
    "in [0, 1]": lambda value: 0 <= value <= 1,
}


def real_number(argument: str, value: object, within: Range = "", what: str = "a number") -> float:
    """Return a finite number within a range, or raise; integers stay integers.

    >>> real_number("level", 0.95, "in (0, 1)")
    0.95
    >>> real_number("level", 95, "in (0, 1)")
    Traceback (most recent call last):
    orbical.errors.InputError: level: expected a number in (0, 1), got 95; did you mean 0.95?
    """
    if not _is_finite(value) or not _WITHIN[within](value):
        remedy = ""
        if within.startswith("in") and _is_finite(value) and value > 1:
            remedy = if_percent(value, _WITHIN[within])
        raise InputError(argument, f"{what} {within}".rstrip(), repr(value), remedy=remedy)
    return value


def if_percent(value: float, allows: Callable[[float], bool]) -> str:
    """Return the remedy for a share that was given in percent, if it is allowed as one."""
    return f"did you mean {value / 100:.4g}?" if allows(value / 100) else ""


_LARGEST = sys.float_info.max  # a constant: torch 2.5 cannot compile the attribute


def _is_finite(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    real = value if isinstance(value, int) else float(value)  # of any width
    return -_LARGEST <= real <= _LARGEST
