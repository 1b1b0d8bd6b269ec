"""The command line: one module per command, each a function with typed options.

The `Args` of a command's docstring are the help of its options.

Command modules import what they need when they run, so that `orbical --help` is fast.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import OrbicalError

_COMMANDS = (
    *("demo", "scan", "view", "report", "info", "calibration", "conformal", "bounds", "check"),
    *("failures", "why", "advise", "groups", "orders", "worst_case"),
)
_TYPES = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "path": "PATH"}
_METAVARS = {  # of options by their names: types would say less
    "ACTION": {"input", "representation"},
    "DATA": {"data", "train"},
    "DEVICE": {"device"},
    "FILE": {"config", "draw", "figure", "junit", "orbits", "worst"},
    "FOLDER": {"root", "weights"},
    "FUNCTION": {"read"},
    "GROUP": {"group"},
    "KIND": {"outputs", "uncertainty"},
    "METHOD": {"method"},
    "NAME": {"label_column", "model", "path_column"},
    "NAME,NAME": {"columns", "quantities"},
    "NAMES": {"classes", "names"},
    "PIXELS": {"size"},
    "SCORE": {"score"},
    "STEPS": {"preprocess"},
    "TASK": {"task"},
    "raise|skip": {"unreadable"},
}

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


class _Command(TyperCommand):
    """A command whose help lists options by subject, with types that everybody knows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a command; an unknown option is answered with close ones only."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if near := getattr(error, "possibilities", None):
                close = difflib.get_close_matches(error.option_name, near, cutoff=0.8)  # type: ignore[attr-defined]
                error.possibilities = close or near[:1]  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each subject, in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                name, words = record
                if param.param_type_name == "argument":
                    title, name = "Arguments", name.partition(" <")[0]  # its name says what it is
                else:
                    title = getattr(param, "rich_help_panel", None) or "Options"
                    if kind := re.search(r"<(\w+)[^>]*>", name):
                        known = (word for word, of in _METAVARS.items() if param.name in of)
                        name = name.replace(kind[0], next(known, _TYPES[kind[1]]))
                sections.setdefault(title, []).append((name, words))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@cache
def _register() -> None:
    for name in _COMMANDS:
        command = _documented_command(getattr(import_module(f".{name}", __name__), name))
        app.command(name.replace("_", "-"), cls=_Command)(command)


def _documented_command(command: Callable[..., None]) -> Callable[..., None]:
    """Move the `Args` of a command's docstring to its options, as their help.

    The sections after `Args` have the options of one subject each, which is their title.
    """
    text, *sections = re.split(
        r"\n\n(\w.*):\n(?= {4}\w+: )", inspect.cleandoc(command.__doc__ or "")
    )
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    for title, section in zip(sections[::2], sections[1::2], strict=True):
        entries = re.split(r"^ {4}(\w+): ", section, flags=re.MULTILINE)
        for name, words in zip(entries[1::2], entries[2::2], strict=True):
            annotation = parameters[name].annotation
            about = getattr(annotation, "__metadata__", None)
            option = copy.copy(about[0]) if about else typer.Option()
            option.help = " ".join(words.split())
            option.rich_help_panel = None if title == "Args" else title
            kind = annotation.__origin__ if about else annotation
            parameters[name] = parameters[name].replace(annotation=Annotated[kind, option])
    command.__doc__ = text
    command.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return command


def main() -> None:
    """Run the command line; print expected errors and warnings as one line each."""
    _register()
    warnings.showwarning = _command_line_warning_hook()
    try:
        app()
    except SystemExit as end:  # as every command ends
        _leave(end.code)
        raise
    except (OrbicalError, OSError, MemoryError, RuntimeError) as error:
        words = command_line_error_text(error)
        if words is None:
            raise
        _print_error("[bold red]error:[/]", words)
        sys.exit(2)


def command_line_error_text(error: BaseException) -> str | None:
    """Return what to print of an error that its user can mend; None for a mistake of orbical."""
    if isinstance(error, OrbicalError):
        return _in_shell(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        why = " ".join(str(error).rpartition("DefaultCPUAllocator: ")[2].split())
        return f"memory is too short: {why or 'no reason is known'}"
    return None


def _leave(status: object) -> None:
    """End the program here if a model of the view is still at work."""
    threads = sys.modules.get("orbical.interface.background")
    if threads is not None:
        threads.exit_despite_background(status if isinstance(status, int) else 0)


def _command_line_warning_hook() -> Callable[..., None]:
    """Return a hook that prints each warning once, even if the filters change."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            _print_error("[bold yellow]warning:[/]", _in_shell(str(message)))

    return show


def _in_shell(error: OrbicalError | str) -> str:
    from .shell_text import error_text_for_shell, options_of

    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    return error_text_for_shell(error, options_of(app, command), options_of(app, "scan"))


def _print_error(heading: str, text: str) -> None:
    from rich.markup import escape

    from .._console import Console

    Console(stderr=True, soft_wrap=True).print(f"{heading} {escape(text)}", highlight=False)
