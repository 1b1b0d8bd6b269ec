"""Checks of arguments."""

from __future__ import annotations

from orbical.errors import InputError


def check_integer(argument: str, value: object, least: int) -> None:
    """Raise an error unless a value is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{argument}: expected an integer of at least {least}, got {value!r}")
