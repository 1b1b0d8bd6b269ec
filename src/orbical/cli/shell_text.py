"""Errors and warnings in the words of the command line: options, and no Python.

The text of an error is that of Python. Where both differ by more than the names of options, it says
both, as in `pass input=ob.actions.Window(size) (--input window:SIZE)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import typer

from ..errors import InputError

_PLURALS = {"models": "model", "methods": "method", "orbit": "orbits"}
"""Arguments of functions, by those of commands that are named otherwise."""
_SAID_TWICE = re.compile(r"(?:\{[^{}]*\}|\S+)(?: or \S+)* \((--[^()]*)\)")
_KEYWORD = re.compile(r"\b([a-z]\w*)=('[^']*'|[\w.:-]*)(?!\()")
PYTHON = re.compile(
    r"(?<![\w.-])(?:ob|orbical|np|numpy|torch)\.\w|\b[a-z]\w*=|[a-z]\w*\(|\w\[:", re.ASCII
)
"""What only Python understands: a name of a package, a keyword, a call, or an index."""


def error_text_for_shell(
    error: BaseException | str, options: Mapping[str, str], of_scan: Mapping[str, str]
) -> str:
    """Return the text of an error or a warning for a command.

    Keywords become options. A remedy that still needs Python is left out.

    Args:
        error: The error, or the text of a warning.
        options: The options of the command, by the names of their arguments in Python.
        of_scan: Those of `orbical scan`, for advice that begins with "scan".

    Example:
        >>> remedy = "scan with keep='inputs'; see ob.groups"
        >>> error = InputError("group", "a name", "3", remedy=remedy)
        >>> error_text_for_shell(error, {"group": "--group"}, {"keep": "--keep"})
        '--group: expected a name, got 3; scan with --keep inputs'
    """
    if isinstance(error, InputError):
        start, advice = f"{_option(error.argument, options)}: {error.problem}", error.remedy
    else:
        start, _, advice = str(error).partition("; ")
        subject, colon, problem = start.partition(": ")
        start = _option(subject, options) + colon + problem
    said = [_translated(start, options)]
    for clause in filter(None, advice.split("; ")):
        known = of_scan if clause.startswith("scan ") else options
        ways = [_translated(way, known) for way in clause.split(", or ")]
        said.append(", or ".join(way for way in ways if not PYTHON.search(way)))
    return "; ".join(filter(None, said))


def _option(argument: str, options: Mapping[str, str]) -> str:
    side, _, measure = argument.partition("_")
    if argument not in options and side in ("max", "min") and side + "_" in options:
        return f"--{side} {measure}"
    return options.get(argument, argument)


def _translated(text: str, options: Mapping[str, str]) -> str:
    def as_option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in options:
            return found.group()
        return f"{options[name]} {value.strip(chr(39))}".removesuffix(" True").rstrip()

    return _KEYWORD.sub(as_option, _SAID_TWICE.sub(r"\1", text))


def options_of(app: typer.Typer, command: str) -> dict[str, str]:
    """Return what the arguments of a command are called on the command line."""
    known = getattr(typer.main.get_command(app), "commands", {})
    if command not in known:
        return {}
    params = known[command].params
    named = {
        param.name: (param.metavar or param.name).partition(" | ")[0]
        if param.param_type_name == "argument"
        else param.opts[0]
        for param in params
    }
    first = next((name for name in named.values() if not name.startswith("-")), "STORE")
    renamed = {name: named[own] for name, own in _PLURALS.items() if own in named}
    return {"scan": first, "path": first} | renamed | named
