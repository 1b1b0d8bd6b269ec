"""Parts of a scan: independent processes that each run every n-th unit of one store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputError


@dataclass(frozen=True)
class Part:
    """The part `number` of `count`, counted from 1."""

    number: int = 1
    count: int = 1

    def holds(self, chunk: int) -> bool:
        """Check whether a chunk of samples belongs to this part."""
        return chunk % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Part()


def as_part(given: str | None, environment: Mapping[str, str] = os.environ) -> Part:
    """Return the part that a text names; `auto` reads it from a job array or from torchrun.

    >>> as_part("3/16").holds(2), as_part("3/16").holds(3)
    (True, False)
    >>> str(as_part("auto", {"RANK": "0", "WORLD_SIZE": "4"}))
    '1/4'
    """
    if given is None:
        return WHOLE
    if given == "auto":
        return _from_environment(environment)
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", given) if isinstance(given, str) else None
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError("part", "'auto' or i/n with i from 1 to n, such as 3/16", repr(given))
    return Part(int(found[1]), int(found[2]))


def _from_environment(environment: Mapping[str, str]) -> Part:
    array = "SLURM_ARRAY_TASK_ID" in environment
    ranks = "RANK" in environment and "WORLD_SIZE" in environment
    if array == ranks:
        raise InputError(
            "part",
            "a SLURM job array (SLURM_ARRAY_TASK_ID) or torchrun (RANK, WORLD_SIZE) for 'auto'",
            "both" if array else "neither",
            remedy="pass i/n, such as 3/16",
        )
    if ranks:
        rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        return as_part(f"{rank + 1}/{size}")
    names = ("ID", "MIN", "MAX", "STEP", "COUNT")
    task, least, most, step, count = (
        int(environment.get(f"SLURM_ARRAY_TASK_{name}", default))
        for name, default in zip(names, "00110", strict=True)
    )
    if most - least != step * (count - 1):
        raise InputError(
            "part",
            "a job array of regular numbers, such as --array=1-16, for 'auto'",
            f"{count} from {least} to {most}",
            remedy="pass i/n, such as 3/16",
        )
    return Part((task - least) // step + 1, count)
