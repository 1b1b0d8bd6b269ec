"""Tables of the audits of published models, as results of a study.

The audits measure models that people use (`make audit`, see `audits/README.md`). A study copies
what its page shows, so that the page depends on committed tables alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .paths import CHECKOUT, existing_file

FOLDER = CHECKOUT / "audits" / "results"


def audit_rows(name: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of an audit, an interval as three columns."""
    path = existing_file(FOLDER / f"{name}.json", "results", f"run: make audit NAME={name}")
    for row in json.loads(path.read_text("utf-8"))["tables"][table]["rows"]:
        yield _flat(row)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose intervals are columns: the value under the name itself.

    >>> _flat({"mean score": {"value": 0.1, "low": 0.0, "high": 0.2, "n": 9}})
    {'mean_score': 0.1, 'mean_score_low': 0.0, 'mean_score_high': 0.2}
    """
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        key = name.replace(" ", "_")
        if isinstance(cell, Mapping):
            flat |= {key: cell["value"], f"{key}_low": cell["low"], f"{key}_high": cell["high"]}
        else:
            flat[key] = cell
    return flat
