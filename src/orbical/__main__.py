"""The command `orbical`, and `python -m orbical`. Ctrl-C while it starts ends it quietly."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line, which takes a second, and run it."""
    try:
        from .cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as of a program without a handler


if __name__ == "__main__":
    main()
