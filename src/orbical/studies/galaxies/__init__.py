"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration.

python -m orbical.studies.galaxies pack FOLDER               # both catalogues in one small file
python -m orbical.studies.galaxies train --pack ... --out ... # one line of results a network
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step of the study with command-line options; see `--help`."""
    from .commands import main as run_command

    run_command(arguments)


__all__ = ["main"]
