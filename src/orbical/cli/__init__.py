"""The command line: one module per command, each a function with typed options.

The `Args` of a command's docstring are the help of its options.

Command modules import what they need when they run, so that `orbical --help` is fast.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from ..errors import OrbicalError

app = typer.Typer(
    name="orbical",
    help="Evaluate how models behave, and how well they are calibrated, under symmetries.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: in boxes, long words such as paths are cut off at 80 columns.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"orbical {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@cache
def _register() -> None:
    for name in (
        "demo",
        "scan",
        "view",
        "report",
        "info",
        "calibration",
        "conformal",
        "bounds",
        "check",
        "groups",
        "worst_case",
    ):
        command = _documented(getattr(import_module(f".{name}", __name__), name))
        app.command(name.replace("_", "-"))(command)


def _documented(command: Callable[..., None]) -> Callable[..., None]:
    """Move the `Args` of a command's docstring to its options, as their help."""
    text, _, args = inspect.cleandoc(command.__doc__ or "").partition("\n\nArgs:\n")
    entries = re.split(r"^ {4}(\w+): ", args, flags=re.MULTILINE)
    parameters = {
        name: one.replace(annotation=_shown(one.annotation))
        for name, one in inspect.signature(command, eval_str=True).parameters.items()
    }
    for name, words in zip(entries[1::2], entries[2::2], strict=True):
        given = parameters[name].annotation
        kind, about = getattr(given, "__origin__", given), getattr(given, "__metadata__", None)
        option = copy.copy(about[0]) if about else typer.Option()
        option.help = " ".join(words.split())
        parameters[name] = parameters[name].replace(annotation=Annotated[kind, option])
    command.__doc__ = text
    command.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return command


class _PathOrUrl:
    """What a parser of paths and URLs returns, by the name that the help shows."""


_PathOrUrl.__name__ = "path"


def _shown(annotation: Any) -> Any:
    """Return an annotation for the help, which would show `Any` to users."""
    named = {Any: _PathOrUrl, list[Any] | None: list[_PathOrUrl] | None}
    about = getattr(annotation, "__metadata__", None)
    if about is None or annotation.__origin__ not in named:
        return annotation
    return Annotated[named[annotation.__origin__], about[0]]


def main() -> None:
    """Run the command line; print expected errors and warnings as one line each."""
    _register()
    warnings.showwarning = _print_warnings_once()
    try:
        app()
    except SystemExit as end:  # as every command ends
        _leave(end.code)
        raise
    except OrbicalError as error:
        _print_error("[bold red]error:[/]", _in_shell(error))
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        _print_error("[bold red]error:[/]", f"{error.filename}: {error.strerror or error}")
        sys.exit(2)


def _leave(status: Any) -> None:
    """End the program here if a model of the view is still at work."""
    threads = sys.modules.get("orbical.interface.background")
    if threads is not None:
        threads.leave(status if isinstance(status, int) else 0)


def _print_warnings_once() -> Callable[..., None]:
    """Return a hook that prints each warning once, even if the filters change."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            _print_error("[bold yellow]warning:[/]", _in_shell(str(message)))

    return show


def _in_shell(error: OrbicalError | str) -> str:
    from .shell_text import in_shell, options_of

    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    return in_shell(error, options_of(app, command), options_of(app, "scan"))


def _print_error(heading: str, text: str) -> None:
    from rich.markup import escape

    from .._console import Console

    Console(stderr=True, soft_wrap=True).print(f"{heading} {escape(text)}", highlight=False)
