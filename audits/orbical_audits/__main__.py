"""Run audits: `python -m orbical_audits NAME [--full]`; without a name, list them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

from orbical.errors import OrbicalError

from . import find, names, pages
from .environment import CHECKOUT, FOLDER, installed, prepare


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one audit or all; errors raised on purpose, and Ctrl-C, end it without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m orbical_audits", description=__doc__)
    parser.add_argument("name", nargs="?", help="the audit; default: list them")
    parser.add_argument("--all", action="store_true", help="run every audit")
    parser.add_argument("--full", action="store_true", help="the full size instead of the quick")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--here", action="store_true", help="in this environment, make none")
    parser.add_argument("--pages", action="store_true", help="write the pages from the results")
    given = parser.parse_args(arguments)
    try:
        if given.pages:
            print(*(f"wrote {path}" for path in pages.write_all()), sep="\n")
        elif given.all:
            run_all([word for word in ("--full",) if given.full])
        elif not given.name:
            print(*(f"{name:20}{find(name).question}" for name in names()), sep="\n")
        elif given.here:
            run_here(given.name, "full" if given.full else "quick", given.seed)
        else:
            run_apart(given.name, sys.argv[1:] if arguments is None else arguments)
    except OrbicalError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt:
        if not given.here:  # the process that was started in the audit's environment stops too
            print("stopped; the same command continues", file=sys.stderr)
        raise SystemExit(130) from None


def run_all(words: Sequence[str]) -> None:
    """Run every audit; one that fails does not stop the others, and is named at the end."""
    command = [sys.executable, "-m", "orbical_audits"]
    failed = [name for name in names() if subprocess.call([*command, name, *words])]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def run_apart(name: str, arguments: Sequence[str]) -> None:
    """Make the environment of an audit, and run it there."""
    python = prepare(name, find(name).packages)
    done = subprocess.call([python, "-m", "orbical_audits", *arguments, "--here"], cwd=CHECKOUT)
    if done:
        raise SystemExit(done)


def run_here(name: str, size: str, seed: int) -> None:
    """Run an audit, and write its results, figures and page."""
    audit = find(name)
    versions = installed(name, audit.packages)
    for note in pages.other_versions(audit, versions):
        print(f"note: {note}")
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    resumed = any((FOLDER / name).glob("*.zarr"))
    start, busy = time.perf_counter(), time.process_time()
    outcome = audit.run(audit.sizes[size], seed, FOLDER / name)
    about = {
        "size": size,
        "settings": dict(audit.sizes[size]),
        "seed": seed,
        "seconds": round(time.perf_counter() - start),
        "processor_seconds": round(time.process_time() - busy),  # also on a busy machine
        "resumed": resumed,
        "packages": versions,
    }
    pages.save(name, outcome, about)
    print(*(f"wrote {path}" for path in pages.write_all()), sep="\n")
    for model, verdict in audit.decide(pages.read(name)["tables"]).items():
        print(f"{model}: {verdict}")


if __name__ == "__main__":
    main()
