"""Infrared spectra with evidential heads: where along a spectrum does uncertainty bleed?

python -m orbical.studies.spectra pack FOLDER                 # label molecules, one small file
python -m orbical.studies.spectra train --pack ... --out ...  # one line of results a network
python -m orbical.studies.spectra report --pack ... --out ... # tables, figures and page
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step of the study with command-line options; see `--help`."""
    from .commands import main as run_command

    run_command(arguments)


__all__ = ["main"]
