"""The six examples of the equivariant-calibration paper, computed, with what the paper prints.

`orbical study examples` writes `docs/studies/examples.md` and its figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..command_line import say_written
from .page import report


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page into the folder named on the command line."""
    parser = argparse.ArgumentParser(prog="orbical study examples", description=__doc__)
    parser.add_argument(
        "out", nargs="?", type=Path, default=Path("docs/studies"), help="its folder"
    )
    say_written(report(parser.parse_args(arguments).out))
