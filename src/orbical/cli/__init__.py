"""The commands: one file a command, each a plain function with typed options.

A command module is light at import time: what it needs is imported when it runs, so that
`orbical --help` answers at once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import typer

from ..errors import OrbicalError

app = typer.Typer(
    name="orbical",
    help="How a model behaves, and how far to trust it, along the orbits of a symmetry group.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: in boxes, 80 columns leave no room, and long words such as paths are cut off.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@cache
def _register() -> None:
    from . import bounds, calibration, check, demo, info, report, scan, view

    for module in (demo, scan, view, report, info, calibration, bounds, check):
        module.register(app)


def main() -> None:
    """Run the command line; expected errors and warnings are one clear line each."""
    _register()
    warnings.showwarning = _warnings_said_once()
    try:
        app()
    except OrbicalError as error:
        _say("[bold red]error:[/]", str(error))
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        _say("[bold red]error:[/]", f"{error.filename}: {error.strerror or error}")
        sys.exit(2)


def _warnings_said_once() -> Callable[..., None]:
    """Show each warning of a command once; Python forgets what it said when filters change."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            _say("[bold yellow]warning:[/]", str(message))

    return show


def _say(heading: str, text: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    # Without emoji, which would be read out of texts such as images:x:y.
    Console(stderr=True, soft_wrap=True, emoji=False).print(
        f"{heading} {escape(text)}", highlight=False
    )
