"""Run the commands in the tables of docs/reliability.md, and write what they print into their rows.

    python tools/reliability.py            all rows (about half an hour)
    python tools/reliability.py kills.py   the rows whose command contains a word

A command prints its result in a line that begins with `result: `.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
_ROW = re.compile(r"^(\|.*\|) ([^|]*) \| `([^`|]+)` \|$", re.MULTILINE)
_RESULT = re.compile(r"^result: (.*)$", re.MULTILINE)


def found_by(command: str) -> str:
    """Return what a command found."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    words = [sys.executable, "-m", *words] if words[0] == "pytest" else words
    ran = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    print(f"{command}\n{ran.stdout}", flush=True)  # with what a result only counts
    return _RESULT.findall(ran.stdout)[-1]


def main(wanted: str = "") -> None:
    """Run the commands that contain a text; each row is written when its command has ended."""
    for _, _, command in _ROW.findall(PAGE.read_text("utf-8")):
        if wanted in command:
            found = found_by(command)

            def row(match: re.Match[str], command: str = command, found: str = found) -> str:
                same = match[3] == command
                return f"{match[1]} {found} | `{command}` |" if same else match[0]

            PAGE.write_text(_ROW.sub(row, PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
