"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study or a step of it with command-line options; see `--help`."""
    from .commands import main as run_command

    run_command(arguments)


__all__ = ["main"]
