"""The errors orbical raises, and the words they use.

Every message names the argument, says what was given and what is expected,
and is raised before any work starts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OrbicalError(Exception):
    """Base class of every error that orbical raises on purpose."""


class InputError(OrbicalError, ValueError):
    """An argument cannot be used; the message says which, and what is expected."""


class ModelError(OrbicalError, RuntimeError):
    """A model cannot be loaded, or answers something the task cannot read."""


class StoreError(OrbicalError, RuntimeError):
    """A result store cannot be read, written or continued."""


class Interrupted(OrbicalError, KeyboardInterrupt):
    """The user stopped a long work; the message says how to go on."""


class MissingExtra(OrbicalError, ImportError):
    """An optional package is needed; the message says which extra brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'orbical[{extra}]'")


def unknown_name(argument: str, given: object, known: Iterable[str]) -> InputError:
    """Make the error for an unknown name, suggesting the nearest known one.

    >>> print(unknown_name("group", "rotation", ["rotations", "flips"]))
    group: unknown name 'rotation'; did you mean 'rotations'? (known: flips, rotations)
    >>> print(unknown_name("measure", "eSD", ["KSE", "ESD"]))
    measure: unknown name 'eSD'; did you mean 'ESD'? (known: ESD, KSE)
    """
    names = sorted(known)
    in_lower_case = {name.lower(): name for name in names}
    nearest = difflib.get_close_matches(str(given).lower(), in_lower_case, n=1, cutoff=0.5)
    hint = f"; did you mean {in_lower_case[nearest[0]]!r}?" if nearest else ""
    return InputError(f"{argument}: unknown name {str(given)!r}{hint} (known: {', '.join(names)})")
