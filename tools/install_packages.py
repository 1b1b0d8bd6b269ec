"""Install packages into this environment with uv, which takes a fraction of pip's time.

uv reads none of pip's settings, so those that say where packages are found are passed on. Where uv
cannot be had, or fails, pip installs: `python tools/install_packages.py -c constraints.txt -e .`.
"""

from __future__ import annotations

import ast
import subprocess
import sys

PIP = [sys.executable, "-m", "pip"]
QUIET = ["--quiet", "--quiet", "--disable-pip-version-check"]
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
AS_PIP = ["--index-strategy", "unsafe-best-match"]  # the best version of all indexes
PLACES = ("find-links", "index-url", "extra-index-url")  # options of both programs


def places(listed: str) -> list[str]:
    """Return uv's options for the output of `pip config list`.

    >>> len(places("global.find-links='/wheels'\\n"))
    2
    """
    settings = {}  # the environment is listed last, and rules
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = str(ast.literal_eval(value)).split()
    return [word for name in PLACES for at in settings.get(name, []) for word in (f"--{name}", at)]


def main(words: list[str]) -> int:
    """Install, and return the exit status."""
    subprocess.run([*PIP, "install", *QUIET, "uv"], stderr=subprocess.DEVNULL)
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout
    done = subprocess.run([*UV, *AS_PIP, *places(listed), *words])
    if done.returncode:
        done = subprocess.run([*PIP, "install", *QUIET, *words])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
