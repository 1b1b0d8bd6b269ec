"""List the studies, or run one: `orbical-study NAME [options]`."""

from __future__ import annotations

import sys

from orbical.errors import InputError

from . import STUDIES, study


def main() -> None:
    """Run the study that the first argument names; without one, list them all."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("Usage: orbical-study NAME [options]\n")
        for name, entry in STUDIES.items():
            print(f"  {name:14}{entry.purpose}")
        return
    try:
        chosen = study(sys.argv[1])
    except InputError as error:
        sys.exit(f"error: {error}")
    chosen.main(sys.argv[2:])


if __name__ == "__main__":
    main()
