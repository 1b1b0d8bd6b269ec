"""Finished trainings of a study, a line of JSON each, written at once: a run goes on from there.

A line that a kill cut off is as if it had never been written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from orbical.errors import InputError

from .framework.paths import existing_file

FILE = "trials.jsonl"
Trial = TypeVar("Trial")


class Trials:
    """The trainings of a folder that are finished.

    Args:
        folder: of the results; made where absent.

    Attributes:
        rows: one a training.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Trials(Path(folder)).add({"name": "plain", "accuracy": 0.9})
    ...     Trials(Path(folder)).waiting(["plain", "turned", "other"], only="t")
    ['turned', 'other']
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        written = self.path.read_text() if self.path.is_file() else ""
        if not written.endswith("\n") and written:
            self.path.write_text(written[: written.rfind("\n") + 1])
        self.rows = read_lines(self.path) if written else []

    def waiting(self, trials: Iterable[Trial], only: str = "") -> list[Trial]:
        """Choose the trials that are not finished, of those whose name contains `only`."""
        done = {row["name"] for row in self.rows}
        return [trial for trial in trials if str(trial) not in done and only in str(trial)]

    def add(self, row: dict[str, Any]) -> None:
        """Write the results of one training."""
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of lines of JSON; a last one that a kill cut off is left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     _ = path.write_text('{"name": "plain"}\\n{"name": "tur')
    ...     read_lines(path)
    [{'name': 'plain'}]
    """
    *whole, _ = existing_file(path, "work", "run the step 'train' first").read_text().split("\n")
    try:
        return [json.loads(line) for line in whole]
    except json.JSONDecodeError as broken:
        raise InputError(
            "work", f"lines of JSON in {str(path)!r}", repr(broken.doc[:80])
        ) from broken
