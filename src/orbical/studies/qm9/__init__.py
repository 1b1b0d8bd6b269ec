"""Properties of molecules: does a correct symmetry change calibration, and where doubt goes?

python -m orbical.studies.qm9 pack FOLDER                  # QM9 in one small file
python -m orbical.studies.qm9 train --pack ... --out ...    # one line of results a network
orbical study qm9 report --pack ... --results ...           # the page, from the results
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step of the study with command-line options; see `--help`."""
    from .commands import main as run_command

    run_command(arguments)


__all__ = ["main"]
