"""The commands: one file a command, each a plain function with typed options.

A command module is light at import time: what it needs is imported when it runs, so that
`orbical --help` answers at once.
"""

from __future__ import annotations

import sys

import typer

from ..errors import OrbicalError

app = typer.Typer(
    name="orbical",
    help="How a model behaves, and how far to trust it, along the orbits of a symmetry group.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _register() -> None:
    from . import bounds, calibration, check, demo, info, scan, study

    for module in (demo, scan, info, calibration, bounds, check, study):
        module.register(app)


def main() -> None:
    """Run the command line; expected errors are one clear line, not a traceback."""
    _register()
    try:
        app()
    except OrbicalError as error:
        from rich.console import Console
        from rich.markup import escape

        console = Console(stderr=True, soft_wrap=True)
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
