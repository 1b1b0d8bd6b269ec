"""`orbical study NAME`: the papers' experiments, one command a study."""

from __future__ import annotations

from collections.abc import Callable

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    from orbical.studies import STUDIES

    studies = typer.Typer(
        help="Repeat the papers' experiments.\n\n"
        "`orbical study NAME --help` shows a study's own options.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name, listed in STUDIES.items():
        # A study reads its own options, so that it also runs where typer is not installed.
        studies.command(
            name,
            help=listed.purpose,
            short_help=listed.purpose,  # a short one is never cut off
            add_help_option=False,
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        )(_command(name))
    app.add_typer(studies, name="study")


def _command(name: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        from orbical.studies import study

        study(name).main(context.args)

    return run
