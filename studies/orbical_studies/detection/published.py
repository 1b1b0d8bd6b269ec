"""Published detectors: the tables of their audits, as results of this study.

The audits scan them (`make audit NAME=yolov5`, see `audits/README.md`); this step copies what the
page of the study shows, so that the page depends on committed tables alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orbical.errors import InputError

from ..framework import Results, Settings
from ..framework.paths import CHECKOUT

DETECTORS = {"yolov5": "YOLOv5s", "nanodet": "NanoDet-g"}
TABLES = {"objects": "published", "rings": "published-rings", "map": "published-shifts"}
_FOLDER = CHECKOUT / "audits" / "results"


def copy_audits(settings: Settings, results: Results) -> None:
    """Write the tables of all detectors, an interval as three columns."""
    for table, target in TABLES.items():
        results.write(target, _rows(table))


def _rows(table: str) -> Iterator[dict[str, Any]]:
    for name, title in DETECTORS.items():
        path = _FOLDER / f"{name}.json"
        if not path.is_file():
            raise InputError(
                f"results: there is no file {str(path)!r}; run: make audit NAME={name}"
            )
        found = json.loads(path.read_text("utf-8"))["tables"][table]["rows"]
        for row in found:
            yield {"detector": title, **_flat(row)}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose intervals are columns: the value under the name itself.

    >>> _flat({"too sure by": {"value": 0.1, "low": 0.0, "high": 0.2, "n": 9}})
    {'too_sure_by': 0.1, 'too_sure_by_low': 0.0, 'too_sure_by_high': 0.2}
    """
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        key = name.replace(" ", "_")
        if isinstance(cell, Mapping):
            flat |= {key: cell["value"], f"{key}_low": cell["low"], f"{key}_high": cell["high"]}
        else:
            flat[key] = cell
    return flat
