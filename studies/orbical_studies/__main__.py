"""List the studies, or run one: `orbical-study NAME [STEP] [options]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from orbical.errors import InputError

from . import STUDIES, study


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the first argument names; without one, list them all."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print("Usage: orbical-study NAME [STEP] [options]; NAME --help lists steps and options\n")
        for name, entry in STUDIES.items():
            print(f"  {name:14}{entry.purpose}")
        return
    try:
        chosen = study(given[0])
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    from .framework.command import run_study

    run_study(chosen.study, given[1:])


if __name__ == "__main__":
    main()
