"""The ESD paper's experiments on real images: six losses, two data sets, before and after scaling.

    python -m orbical.studies.esd pack FOLDER            # the images in two small files
    python -m orbical.studies.esd run --only mnist ...   # train, one result line a configuration
    python -m orbical.studies.esd report ...             # tables, CSV, figures, page

Every finished configuration is one line of JSON in a results file, written at once; a run skips
what its results file already has.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step of the study with command-line options; see `--help`."""
    from .commands import main as run_command

    run_command(arguments)


__all__ = ["main"]
