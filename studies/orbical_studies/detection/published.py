"""Published detectors: the tables of their audits, and the order of their boxes (Fig. 9).

The paper shows one dark spot of the IoU of the most confident detection, where a detector finds
the same boxes in another order. The rule, written before the run: YOLOv5s on the key objects of its
audit, at 5 x 5 shifts 4 pixels apart, as in the paper. A dark spot is a shift, not at the rim,
whose IoU of the most confident detection lies 0.2 below the median of its eight neighbors. Another
order explains it if the box that fits the key object best has an IoU of at least 0.5 there. The
claim is confirmed if that explains more than half of the dark spots (95 % interval, resampled over
photographs), contradicted if less, otherwise open; open with less than ten dark spots.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from orbical.calibration import bootstrap_interval

from ..framework import Results, Settings, verdict
from ..framework.audits import audit_rows
from .measures import DARK, Array, neighbors_median, side_of

DETECTORS = {"yolov5": "YOLOv5s", "nanodet": "NanoDet-g"}
STEP, FITS, LEAST = 4, 0.5, 10
"""Pixels between shifts, IoU of a box that fits, and dark spots that decide."""

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


def order_boxes(settings: Settings, results: Results) -> None:
    """Scan YOLOv5s, and count the dark spots of its most confident detection."""
    from orbical_audits import detection
    from orbical_audits.detection_tables import RADIUS, values
    from orbical_audits.environment import FOLDER, prepare
    from orbical_audits.models import yolov5
    from orbical_audits.photographs import key_views, validation_photographs

    prepare(yolov5.NAME, yolov5.audit.packages)
    detector = yolov5.loaded(FOLDER / yolov5.NAME, detection.WINDOW, detection.ENLARGE)
    photographs = validation_photographs()[: detection.QUICK["photographs"]]
    views = key_views(photographs, detection.WINDOW, RADIUS)
    group, store = f"translations:{2 * STEP}:{STEP}", results.work / "order.zarr"
    scan = detection.shifted(detector, views, group, yolov5.WORKING, store)
    results.write("order", dark_spots(values(scan, "top_iou"), values(scan, "iou")))


def dark_spots(first: Array, best: Array) -> list[dict[str, float]]:
    """Count, for each key object, dark spots of the most confident detection, and same boxes there.

    Args:
        first: IoU of the most confident detection at each shift `[n, K]`, a square of them.
        best: IoU of the box that fits best.
    """
    side = side_of(first)
    inside = np.pad(np.ones((side - 2, side - 2), bool), 1).ravel()
    dark = inside & (neighbors_median(first) - first >= DARK)
    return [
        {"object": place, "first": float(first[place].mean()), "best": float(best[place].mean())}
        | {"dark": int(spots.sum()), "reordered": int((spots & (best[place] >= FITS)).sum())}
        for place, spots in enumerate(dark)
    ]


class Order:
    """What explains the dark spots of the most confident detection.

    Args:
        rows: The table `order`.

    Attributes:
        dark: Number of dark spots.
        objects: Key objects that have one.
        share: Of the dark spots where the same box is there, with a 95 % interval over photographs.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        spots = rows[["dark", "reordered"]].to_numpy(float)
        self.objects, self.dark = int((spots[:, 0] > 0).sum()), int(spots[:, 0].sum())
        self.share = bootstrap_interval(spots, _share)

    @property
    def verdict(self) -> str:
        """`confirmed`, `contradicted` or `open`, by the rule."""
        _, low, high = self.share
        enough = self.dark >= LEAST
        return verdict(enough and low > 0.5, refuted=enough and high < 0.5)


def _share(spots: Array) -> float:
    dark, reordered = spots.sum(0)
    return float(reordered / dark) if dark else 0.0
