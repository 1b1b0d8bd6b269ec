"""Downloads: tables of what is shown, the subset, one row for each sample, a report."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._imports_and_paths import import_extra
from .._text import csv_text
from ..errors import check_name
from ..store import Json
from .background import BackgroundProgress
from .reports.writing import report_page
from .session.filter_columns import filter_column_values, sample_columns
from .session.input_pictures import thumbnails
from .session.sample_maps import sample_map
from .session.sample_views import sample
from .session.saved_lists import tagged
from .session.scan_view import ScanView
from .session.subset_curves import aggregate
from .session.subset_request import Answer, SubsetRequest

Array = np.ndarray
REPORT_STEPS = 7
"""About how many steps the making of a report tells of."""
File = tuple[str, str, bytes]
"""The name, type and content of a file."""


def exported(request: SubsetRequest) -> Answer:
    """Answer a request for a file."""
    what = request.message.get("what")
    check_name("what", what, FILES)
    name, kind, content = FILES[str(what)](request)
    return {"filename": name, "type": kind}, {"file": np.frombuffer(content, np.uint8)}


def available_exports() -> list[str]:
    """List the exports that are available with the installed packages."""
    return [name for name in FILES if name != "parquet" or find_spec("pyarrow") is not None]


def csv(request: SubsetRequest) -> File:
    """Write the metric at every element, for the subset with its interval and for the sample.

    One row for each element with its coordinates. Each model shown has the columns
    `METRIC_MODEL`, `METRIC_low_MODEL`, `METRIC_high_MODEL` (if there is an interval) and
    `sample_NUMBER_MODEL`.
    """
    about, of_subset = aggregate(request)
    _, of_sample = sample(request.but(dense=False))  # at the scanned elements
    group, number = request.view.group, request.sample
    columns: Json = {"element": np.arange(len(group)), **group.coords}
    for place, model in enumerate(about["models"]):
        for part in ("values", "low", "high"):
            if part in of_subset:
                end = "" if part == "values" else f"_{part}"
                columns[f"{about['metric']}{end}_{model}"] = of_subset[part][place]
        columns[f"sample_{number}_{model}"] = of_sample["values"][place]
    rows = zip(*(map(_shown, column) for column in columns.values()), strict=True)
    return f"{request.view.name}.csv", "text/csv", csv_text([columns, *rows]).encode()


def _shown(value: object) -> Any:
    if isinstance(value, float | np.floating):
        return f"{value:.7g}" if np.isfinite(value) else ""
    return value


def indices(request: SubsetRequest) -> File:
    """Write the indices of the samples in the subset, one per line."""
    text = "".join(f"{one}\n" for one in np.flatnonzero(request.subset.members))
    return f"{request.view.name}-samples.txt", "text/plain", text.encode()


def parquet(request: SubsetRequest) -> File:
    """Write one row for each sample of the subset, for other tools (extra `parquet`).

    Columns: `sample`; `name` if samples have names; `label` if there are labels, and `class`, its
    name; the metadata; `tag_NAME`, whether it has a tag; `COLUMN_MODEL`, what the page filters by,
    such as `confidence`; `mean_MODEL`, the mean score over the orbit, and `invariance_gap_MODEL`;
    `x` and `y`, its position on the map; `image`, a thumbnail as PNG, if inputs are images and
    available.
    """
    pa = import_extra("pyarrow", "parquet", "an export to Parquet")
    pq = import_extra("pyarrow.parquet", "parquet", "an export to Parquet")
    view, chosen = request.view, np.flatnonzero(request.subset.members)
    columns: Json = {"sample": chosen.astype(np.int32)}
    if view.names is not None:
        columns["name"] = [view.names[one] for one in chosen]
    if view.label is not None:
        columns["label"] = view.label[chosen].astype(np.int32)
    if view.class_names is not None and view.label is not None:
        known = [*view.classes, ""]  # the last for -1, a sample without a class
        columns["class"] = [str(known[one]) for one in view.label[chosen]]
    metadata = view.scan.metadata
    columns |= {name: values[chosen] for name, values in metadata.items() if name not in columns}
    columns |= {f"tag_{name}": mask[chosen] for name, mask in tagged(view).items()}
    for column in sample_columns(view).values():  # of models, as the page filters by them
        for name in view.models if column.by_model else ():
            values = filter_column_values(view, column, name)[chosen]
            keys = [*column.keys, None] if column.keys is not None else None
            columns[f"{column.name}_{name}"] = values if keys is None else [keys[k] for k in values]
    mean = view.moments(view.variable(view.metrics["score"], request.reference)).orbit_mean
    gap = view.reader.whole("invariance_gap") if "invariance_gap" in view.reader else None
    for model, name in enumerate(view.models):
        columns[f"mean_{name}"] = mean[model, chosen]
        if gap is not None:
            columns[f"invariance_gap_{name}"] = gap[model, chosen].astype(np.float32)
    xy = sample_map(request).xy
    columns |= {"x": xy[chosen, 0], "y": xy[chosen, 1]}
    if (pictures := _exported_pictures(view, chosen, request.progress)) is not None:
        columns["image"] = pictures
    facts = {"group": view.group.spec, "score": view.scan.record.score.meaning}
    facts |= {"reference": request.reference, "map": request.selection.method}
    table = pa.table(columns).replace_schema_metadata(facts)
    held = io.BytesIO()
    pq.write_table(table, held)
    return f"{view.name}.parquet", "application/vnd.apache.parquet", held.getvalue()


def _exported_pictures(
    view: ScanView, samples: Array, progress: BackgroundProgress
) -> list[Json] | None:
    """Return thumbnails as other tools expect them: `{"bytes": PNG, "path": None}` each."""
    if not len(samples) or thumbnails(view, [int(samples[0])]) is None:
        return None
    made = []
    for done, one in enumerate(samples):
        progress.tell(done / len(samples), "images")
        made.append({"bytes": _png(thumbnails(view, [int(one)])), "path": None})
    return made


def _png(picture: Array | None) -> bytes:
    from PIL import Image

    assert picture is not None
    pixels = picture[0] if picture.shape[-1] == 3 else picture[0, ..., 0]
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "png")
    return held.getvalue()


def _report(request: SubsetRequest) -> File:
    steps = itertools.count()

    def advance(work: str) -> None:
        request.progress.tell(min(0.9, next(steps) / REPORT_STEPS), work)

    text = report_page(request.view, advance)
    return f"{request.view.name}.html", "text/html", text.encode()


FILES: dict[str, Callable[[SubsetRequest], File]] = {
    "csv": csv,
    "indices": indices,
    "parquet": parquet,
    "report": _report,
}
