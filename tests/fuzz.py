"""A fuzzing target that can run for hours: the attacks of `test_hostile_inputs.py` without an end.

    python tests/fuzz.py "Parquet tables" 100000            # seeded, and counted
    python tests/fuzz.py "Parquet tables" -max_total_time=3600 CORPUS   # with atheris, by coverage

With atheris, the bytes of an input are the decisions of an attack, so that what it learns from the
coverage of orbical chooses them. The corpus is made by code: the decisions of the first seeds.
"""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from orbical.errors import OrbicalError
from test_hostile_inputs import FUZZERS, attempts

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


def make_corpus(folder: Path) -> None:
    """Write the first inputs, unless there are some."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(SEEDS):
        (folder / f"seed-{seed}").write_bytes(random.Random(seed).randbytes(BYTES))


def main(what: str, *options: str) -> None:
    """Attack with a count of seeded inputs, or with what atheris finds."""
    with tempfile.TemporaryDirectory() as folder:
        attack = FUZZERS[what](Path(folder))
        if options and options[0].isdecimal():
            attempts(int(options[0]), attack, what)
            return
        import atheris

        def one_input(content: bytes) -> None:
            with suppress(OrbicalError):
                attack(Decisions(content))

        for option in options:
            if not option.startswith("-"):
                make_corpus(Path(option))
        atheris.instrument_all()
        atheris.Setup([sys.argv[0], *options], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in FUZZERS:
        sys.exit(f"usage: python tests/fuzz.py NAME COUNT|OPTIONS; NAME is one of {[*FUZZERS]}")
    main(*sys.argv[1:])
