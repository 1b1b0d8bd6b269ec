"""The results file: one line of JSON a finished configuration, and logits of one seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..pages import Row
from ..trials import read_lines


class Results:
    """Rows of a results file, and what was in it before; every new row is written at once.

    Args:
        path: the file, `.jsonl`; made if absent. Logits go to `outputs.npz` beside it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     Results(Path(there) / "results.jsonl").add({"key": "a", "value": 1})
        ...     len(Results(Path(there) / "results.jsonl").rows)
        1
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = read_lines(path) if path.is_file() else []
        self.outputs = path.with_name("outputs.npz")

    @property
    def keys(self) -> set[str]:
        """Keys of all rows."""
        return {row["key"] for row in self.rows}

    def add(self, row: Row) -> None:
        """Append one row."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)

    def keep_outputs(self, key: str, logits: Tensor, labels: Tensor) -> None:
        """Add the logits of one run, in half precision, and the labels of its test images."""
        kept: dict[str, Any] = {}
        if self.outputs.is_file():
            with np.load(self.outputs) as arrays:
                kept = dict(arrays)
        kept[f"{key}/logits"] = logits.half().numpy()
        kept[f"{key.split('/')[0]}/labels"] = labels.numpy().astype(np.uint8)
        np.savez(self.outputs, **kept)
