"""Settings of a study, and the command-line options that follow from them."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from orbical.errors import InputError

S = TypeVar("S", bound="Settings")


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    choices: tuple[Any, ...] = (),
    kind: type | None = None,
) -> Any:
    """Declare a setting that the command line can change.

    Args:
        default: Its value unless given; a tuple takes several values.
        help: What `--help` says about it.
        least: Smallest value allowed.
        choices: The only values allowed.
        kind: Type of a value; needed where the default does not tell it (None, an empty tuple).

    Returns:
        A dataclass field.

    Example:
        >>> @dataclass(frozen=True)
        ... class Tides(Settings):
        ...     days: int = option(7, "days to observe", least=1)
        >>> Tides(days=0)
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: days: expected at least 1, got 0
    """
    about = {"help": help, "least": least, "choices": choices, "kind": kind}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Settings:
    """Base class of a study's settings; fields made with `option` become command-line options.

    A subclass is a frozen dataclass too. One with checks of its own calls `super().__post_init__()`
    first. Fields without `option` are fixed: only Python code changes them.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            given = getattr(self, one.name)
            several = isinstance(given, tuple)
            least, choices = one.metadata.get("least"), one.metadata.get("choices")
            for value in given if several else () if given is None else (given,):
                if least is not None and value < least:
                    raise InputError(one.name, f"at least {least}", value)
                if choices and value not in choices:
                    known = ", ".join(map(str, choices))
                    raise InputError(one.name, f"one of {known}", value)


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """Settings of a study that trains many networks with `framework.training.train`."""

    workers: int = option(0, "worker processes; 0 trains in this one", least=0)
    minutes: float = option(math.inf, "start no training that would end later", least=0)
    only: str = option("", "run only the trainings whose name contains this")

    @property
    def end(self) -> float:
        """The `time.time()` at which the minutes are over, if they begin now."""
        return time.time() + 60 * self.minutes

    def until(self, end: float, share: float = 1.0) -> Self:
        """Return the same settings with a share of the minutes that are left until an `end`."""
        return replace(self, minutes=max(0.0, share * (end - time.time()) / 60))


def add_options(parser: argparse._ActionsContainer, defaults: Settings) -> None:
    """Add one command-line option for each setting declared with `option`."""
    for one in fields(defaults):
        if not one.metadata:
            continue
        default = getattr(defaults, one.name)
        several = isinstance(default, tuple)
        sample = default[0] if several and default else default
        kind = one.metadata["kind"] or type(sample)
        shown = " ".join(map(str, default)) if several else default
        how: dict[str, Any] = {
            "help": (
                one.metadata["help"] + ("" if shown in (None, "") else f" (default: {shown})")
            ).replace("%", "%%")
        }
        if kind is bool:
            how["action"] = argparse.BooleanOptionalAction
        else:
            how |= {"type": kind, "metavar": "PATH" if kind is Path else kind.__name__.upper()}
            how["nargs"] = "+" if several else None
        flag = f"--{one.name.replace('_', '-')}"
        parser.add_argument(flag, dest=one.name, default=default, **how)


def from_options(given: argparse.Namespace, defaults: S) -> S:
    """Make settings from parsed options, keeping the defaults of the others."""
    values = {one.name: getattr(given, one.name) for one in fields(defaults) if one.metadata}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return replace(defaults, **values)
