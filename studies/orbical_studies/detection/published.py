"""Published detectors: the tables of their audits, as results of this study."""

from __future__ import annotations

from ..framework import Results, Settings
from ..framework.audits import audit_rows

DETECTORS = {"yolov5": "YOLOv5s", "nanodet": "NanoDet-g"}
TABLES = {"objects": "published", "rings": "published-rings", "map": "published-shifts"}


def copy_audits(settings: Settings, results: Results) -> None:
    """Write the tables of all detectors."""
    for table, target in TABLES.items():
        rows = (
            {"detector": title, **row}
            for name, title in DETECTORS.items()
            for row in audit_rows(name, table)
        )
        results.write(target, rows)
