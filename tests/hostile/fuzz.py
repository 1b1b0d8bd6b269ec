"""Fuzz every reader of orbical: the attacks of `attacks.py`, for as long as one likes.

    python tests/hostile/fuzz.py "images"     count what becomes of 10,000 seeded inputs
    python tests/hostile/fuzz.py              the same for every attack
    make fuzz HOURS=8                         with atheris, by coverage

With atheris, the bytes of an input are the decisions of an attack, so that what it learns from the
coverage of orbical chooses them. Its corpus is kept in `.fuzzing`, a folder for each attack, and
grows with each run; it begins with the decisions of the first seeds.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

CORPUS = Path(".fuzzing")
SEEDS, BYTES = 64, 256


class Decisions(random.Random):
    """A generator whose numbers are those of an input; zeros follow its end."""

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._left = iter(content)

    def getrandbits(self, k: int) -> int:
        """Return k bits."""
        found = bytes(next(self._left, 0) for _ in range(-(-k // 8)))
        return int.from_bytes(found, "big") >> (-k % 8)

    def random(self) -> float:
        """Return a number from 0 to 1."""
        return self.getrandbits(16) / 2**16


def count(names: list[str], number: int | None, first: int) -> None:
    """Try seeded inputs, and print what became of them; the first traceback ends the program."""
    from attacks import COUNTS, FUZZERS, attempts

    for name in names or FUZZERS:
        many = number or COUNTS[name][1]
        with tempfile.TemporaryDirectory() as folder:
            seen = attempts(many, FUZZERS[name](Path(folder)), name, first)
        kinds = f"refused {seen['refused']:,}, read {seen['accepted']:,}, tracebacks 0"
        print(f"result: {many:,}: {kinds}", flush=True)


def by_coverage(name: str, seconds: int) -> None:
    """Let atheris choose the inputs of an attack; the first that fails ends it and is kept."""
    import atheris

    with atheris.instrument_imports(include=["orbical"]):
        from attacks import FUZZERS

        from orbical.errors import OrbicalError

        # What an attack imports when it runs is instrumented too.
        with tempfile.TemporaryDirectory() as folder, suppress(OrbicalError):
            FUZZERS[name](Path(folder))(random.Random(0))

    warnings.simplefilter("ignore")
    corpus = CORPUS / name.replace(" ", "-")
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in range(SEEDS):
        start = corpus / f"seed-{seed}"
        if not start.exists():
            start.write_bytes(random.Random(seed).randbytes(BYTES))

    def one_input(content: bytes) -> None:
        with suppress(OrbicalError):
            attack(Decisions(content))

    with tempfile.TemporaryDirectory() as folder:
        attack = FUZZERS[name](Path(folder))
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={corpus}/failed-", str(corpus)]
        atheris.Setup([sys.argv[0], *options], one_input)
        atheris.Fuzz()


def main() -> None:
    """Read the options, and attack."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="the attacks; all of them by default")
    parser.add_argument("--count", type=int, help="inputs of each attack")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--hours", type=float, help="fuzz by coverage for so long, with atheris")
    given = parser.parse_args()
    if given.hours is None:
        count(given.names, given.count, given.first)
    elif len(given.names) == 1:
        by_coverage(given.names[0], int(given.hours * 3600))
    else:  # each in a process of its own: a fuzzer ends its process
        from attacks import FUZZERS

        names = given.names or [*FUZZERS]
        share = str(given.hours / len(names))
        ends = [subprocess.call([sys.executable, __file__, one, "--hours", share]) for one in names]
        sys.exit(f"failed: {[*filter(None, ends)]}" if any(ends) else 0)


if __name__ == "__main__":
    main()
