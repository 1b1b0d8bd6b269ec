"""The parts of a report.

`state` describes the scan; `values/NAME` holds responses `[M, n, K]` of the samples in the report;
`rows/NUMBER` inputs and outputs of a block of samples; `maps` their positions; `subset/NUMBER` what
the session answers for a subset of the scan; `bounds` those of the models; `worst` the worst cases
of the samples in the report.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial

import numpy as np
import torch

from ... import __version__
from ..._text import percent
from ...store import Json
from .. import wire
from ..selection import Selection
from ..session.calibration_plots import subset_calibration_plots
from ..session.class_answers import consensus_classes
from ..session.filter_columns import sample_columns
from ..session.input_pictures import (
    THUMBNAIL,
    drawn_on_page,
    input_picture_fields,
    thinned_for_page,
    thumbnails,
)
from ..session.sample_views import STILL, reference_action, sample_references_of
from ..session.saved_lists import SETS
from ..session.scan_state import headline, page_title, sample_noun_of_state
from ..session.scan_state import state as state_of
from ..session.scan_view import PLACE, ScanView
from ..session.subset_request import SubsetRequest, UnknownSubset, mask_of_subset, packed_subset
from ..session.worst_cases_and_bounds import bounds, worst_case_rows
from . import contents

Array = np.ndarray

_FALLBACKS = {"input": "image", "detail": "values"}
"""The views that replace those drawn in Python."""
Advance = Callable[[str], None]


def report_parts_of(
    view: ScanView,
    chosen: contents.ReportSamples,
    plan: contents.ReportMapPlan,
    about: Json,
    advance: Advance,
) -> Iterator[tuple[str, bytes]]:
    """Yield each part of a report with its name."""
    advance("samples")
    made, numbers = ReportBlocks(view, chosen.samples), chosen.samples.tolist()
    # Inputs that are small images serve as their own thumbnails.
    pictures = None if made.picture else thumbnails(view, numbers)
    facts = {
        **about,
        "complete": chosen.complete,
        "block": made.size,
        "picture": made.picture,
        "thumbnails": pictures is not None,
        "scalars": _scalars(view),
        "recorded": contents.FIELDS,
        "spread_of": contents.report_spread_metrics(view),
        "left_out": made.left_out,
        "sets": _report_part_of_sets(view, chosen.samples),
        "failed": {n: view.failed[i] for n, i in enumerate(numbers) if i in view.failed},
        "without_result": np.flatnonzero(view.without_result[chosen.samples]).tolist(),
        "cover": report_part_of_cover(view),
    }
    found, _ = headline(SubsetRequest(view))
    facts["headline"] = {**found, "sample": int(np.searchsorted(chosen.samples, found["sample"]))}
    facts["findings"], sets = contents.report_story(view, chosen, plan.methods)
    subsets = contents.report_subsets(view, [one["view"] for one in facts["findings"]])
    facts["subsets"] = [subset.key for subset in subsets]
    state, arrays = _report_part_of_state(view, chosen, plan.methods, facts)
    arrays["sets"] = sets
    yield "state", wire.encode_report_part(state, arrays)
    for number, (steps, rows) in enumerate(made):
        yield f"rows/{number}", wire.encode_report_part({"steps": steps}, rows)
    if pictures is not None:
        yield "thumbnails", wire.encode_report_part({}, {"thumbnail": pictures})
    for variable in _variables(view):
        values = _report_part_of_values(view, variable, chosen.samples)
        yield f"values/{variable}", wire.encode_report_part({}, {"values": values})
    yield "columns", _report_part_of_columns(view, chosen.samples)
    advance("maps")
    yield "maps", contents.encoded_report_maps(view, chosen.samples, plan.maps)
    kinds = [*contents.FIELDS] if state["calibration"] else ["aggregate", "spread", "consistency"]
    kinds = [kind for kind in kinds if kind != "consistency" or state["consistency"]]
    answers = contents.encoded_report_answers(
        view, subsets, contents.report_references(view), kinds
    )
    for number in range(len(subsets)):
        advance(f"statistics {number + 1} of {len(subsets)}")
        yield f"subset/{number}", next(answers)
    if state["worst"]:
        yield "worst", wire.encode_report_part(*worst_case_rows(view, chosen.samples))
    if state["bounds"]:
        yield "bounds", wire.encode_report_part(bounds(SubsetRequest(view))[0], {})


def report_part_of_cover(view: ScanView) -> list[tuple[str, str]]:
    """Return what a report is about, as titles and words: models, data, verdicts, versions."""
    record, count = view.scan.record, view.samples
    sources = [f"{one.name} ({one.source})" if one.source else one.name for one in record.models]
    noun = (
        sample_noun_of_state(view) if count != 1 else sample_noun_of_state(view).removesuffix("s")
    )
    truth = "labeled" if view.scan.labeled else "without labels"
    share = "" if view.complete else f", {percent(view.scan.share_done)} scanned"
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    lines = [
        ("Models", ", ".join(sources)),
        ("Data", f"{count:,} {noun}, {truth}{share}"),
        ("Orbit", f"{view.group.spec}, {len(view.group)} positions"),
        ("Task", f"{record.task.name}; score: {record.score.meaning}"),
    ]
    about, _ = subset_calibration_plots(SubsetRequest(view, Selection(scope="orbit")))
    verdicts = [
        f"{one['model']} {one['verdict']}, ECE {one['value']:.3f} ({one['low']:.3f} to "
        f"{one['high']:.3f})"
        for one in about.get("measures", ())
    ]
    if verdicts:
        lines.append(("Calibration over the orbit", "; ".join(verdicts)))
    return [
        *lines,
        ("Scanned", f"{record.created[:10]} with {versions}"),
        ("Report", f"{date.today().isoformat()} with orbical {__version__}"),
    ]


def _report_part_of_sets(view: ScanView, samples: Array) -> list[Json]:
    """Return the named sets as bits of the report's samples, under their hashes in the scan."""
    found = []
    for one in SETS.saved(view):
        with contextlib.suppress(UnknownSubset):  # its file was removed or altered
            bits = packed_subset(mask_of_subset(view, one.hash)[samples])
            found.append(
                {"name": one.name, "hash": one.hash, "bits": wire.as_base64(bits.tobytes())}
            )
    return found


def _report_part_of_state(
    view: ScanView, chosen: contents.ReportSamples, methods: Sequence[str], facts: Json
) -> tuple[Json, Json]:
    state, arrays = state_of(view, [{"name": view.name, "title": page_title(view)}])
    traveling = facts.get("traveling", {}).get("models", [])
    state |= {
        "samples": len(chosen.samples),
        "names": [state["names"][one] for one in chosen.samples] if state["names"] else [],
        "methods": list(methods),
        "models": [{**model, "live": model["name"] in traveling} for model in state["models"]],
        "live": bool(traveling),
        "warnings": view.warnings,
        "exports": ["csv", "indices"],
        "move": {**state["move"], "exact": view.group.exact_on_grid},
        "views": {
            part: _FALLBACKS[part] if name == wire.PNG else name
            for part, name in state["views"].items()
        },
        "report": facts,
    }
    if not {"confidence", "correct"} <= view.metrics.keys():  # pixels are in orbical view alone
        state |= {"answers": [], "calibration": False}
    arrays["original"] = chosen.samples.astype(np.int32)
    if "label" in arrays:
        arrays["label"] = arrays["label"][chosen.samples]
    if "rows" in view.group.parts:
        arrays["rows"] = np.asarray(view.group.parts["rows"], np.int32)
    if "invariance_gap" in view.reader:
        arrays["invariance_gap"] = view.reader.whole("invariance_gap")[:, chosen.samples]
    by_class = view.reader.dims.get("consensus", ())[-1:] == ("class",)
    if by_class and "predicted" in view.reader:
        arrays["consensus_class"] = consensus_classes(view)[:, chosen.samples].astype(np.int32)
    return state, arrays


def _variables(view: ScanView) -> list[str]:
    """List the variables with one number per position that a page may request."""
    metrics = [metric for metric in view.metrics.values() if metric.per_sample]
    every = itertools.product(metrics, contents.report_references(view))
    return [*dict.fromkeys([*itertools.starmap(view.variable, every), *_scalars(view)])]


def _scalars(view: ScanView) -> list[str]:
    """List the stored outputs with one number per position."""
    return [name for name, dims in view.reader.dims.items() if dims == PLACE]


def _report_part_of_values(view: ScanView, variable: str, samples: Array) -> Array | wire.Quantized:
    """Return the responses `[M, n, K]` of some samples; M is 1 if they involve no model."""
    shared = variable in view.reader and not view.reader.by_model(variable)
    models = [0] if shared else range(len(view.models))
    found = np.empty((len(models), len(samples), len(view.group)), np.float32)
    for rows in view.reader.blocks(variable):
        here = np.flatnonzero((samples >= rows.start) & (samples < rows.stop))
        for place, model in enumerate(models):
            block = view.reader.responses(variable, rows, model)
            found[place, here] = block[samples[here] - rows.start]
    whole = variable in ("correct", "agrees")
    if whole or _are_bytes(found):
        return wire.quantize(found, 8, 0.0, 254.0 if np.isnan(found).any() else 255.0)
    name = {"score_vs_consensus": "score"}.get(variable, variable)
    if name in view.metrics and view.metrics[name].unit == "share":
        return wire.quantize_log_odds(found)
    return wire.quantize(found, 16) if variable == "action_defect" else found


def _are_bytes(values: Array) -> bool:
    known = values[np.isfinite(values)]
    inside = len(known) == 0 or (known.min() >= 0 and known.max() <= 254)
    return bool(inside and (known == np.rint(known)).all())


def _report_part_of_columns(view: ScanView, samples: Array) -> bytes:
    """Encode the columns of the samples in the report: numbers, codes of categories, texts."""
    arrays: Json = {}
    texts: dict[str, list[str]] = {}
    for name, column in sample_columns(view).items():
        values = column.read()
        if column.kind == "text":
            texts[name] = [str(values[one]) for one in samples]
        else:
            kind = np.float32 if column.kind == "number" else np.int32
            arrays[name] = values[..., samples].astype(kind)
    return wire.encode_report_part({"texts": texts}, arrays)


BLOCK_BYTES = 4 << 20
MOST_BYTES = 256 << 20
"""Outputs larger than this, over all samples of a report, are left out."""
MOST_MOVED_BYTES = 64 << 20
"""The same for truth and consensus transformed along the orbit."""


Block = tuple[dict[str, int], dict[str, Array | wire.Quantized]]
"""The steps and arrays of some samples: `input/NAME [n, ...]`, `detail/NAME [M, n, K, ...]`, ..."""


class ReportBlocks:
    """The blocks of a report, planned at once and made one at a time.

    Attributes:
        view: The scan.
        samples: The samples of the report.
        size: The number of samples in a block.
        picture: The name of the input that is an image of at most thumbnail size, or "".
        spans: The range of each input that is stored in 256 steps.
        details: The outputs with several numbers per position, and the bytes of a sample.
        references: The arrays of `consensus` and `truth`, if there are any.
        moved: Those of them that are stored transformed along the orbit.
        left_out: Names of outputs that are too large.
    """

    def __init__(self, view: ScanView, samples: Array) -> None:
        self.view, self.samples = view, samples
        self.details, self.left_out = _outputs_that_fit_report_parts(view, len(samples))
        row = sum(self.details.values())
        self.spans: dict[str, tuple[float, float]] = {}
        self.picture = ""
        for name, values in _inputs(view, samples[:1]).items():
            row += values[0].size
            if values.ndim >= 4:  # [n, C, H, W], or a pair of them
                self.spans[name] = span = _span(view, name, samples)
                small = values.ndim == 4 and max(values.shape[-2:]) <= THUMBNAIL
                if small and values.shape[1] in (1, 3) and span == (0.0, 1.0):
                    self.picture = name
        self.references = sample_references_of(view)
        self.moved: list[str] = []
        for kind, name in self.references.items():
            bytes_moved = _moved_report_part_bytes(view, kind, name, samples)
            if 0 < bytes_moved * len(samples) <= MOST_MOVED_BYTES:
                self.moved.append(kind)
                row += bytes_moved
        self.size = max(1, BLOCK_BYTES // max(1, row))

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, max(1, len(self.samples)), self.size):
            yield self._block(self.samples[start : start + self.size])

    def _block(self, samples: Array) -> Block:
        arrays: dict[str, Array | wire.Quantized] = {}
        for name, values in _inputs(self.view, samples).items():
            span = self.spans.get(name)
            arrays[f"input/{name}"] = values if span is None else wire.quantize(values, 8, *span)
        steps: dict[str, int] = {}
        for name in self.details:
            values, step = _thinned(self._shown(name, samples), 3)
            if step > 1:
                steps[name] = step
            arrays[f"detail/{name}"] = self._drawn(name, _once(values))
        for kind, name in self.references.items():
            if kind in self.moved:
                moved = _moved_report_part(self.view, name, samples)
                arrays[f"{kind}/moved"] = self._drawn(name, moved)
            else:
                still = _thinned(self._shown(name, samples), 2)[0]
                arrays[f"{kind}/{STILL[kind]}"] = self._drawn(name, still)
        return steps, arrays

    def _shown(self, name: str, samples: Array) -> Array:
        return drawn_on_page(_rows(self.view, name, samples), self.view.reader.dims[name])

    def _drawn(self, name: str, values: Array) -> Array | wire.Quantized:
        """Quantize class probabilities to 256 steps, maps and fields to 65,536; keep the rest."""
        row, column = self.view.reader.dims[name][-2:]
        if name == "probabilities" or (name == "consensus" and column == "class"):
            return wire.quantize(values, 8, 0.0, 1.0)
        is_map = row.endswith("row") and column.endswith("column")
        return wire.quantize(values, 16) if is_map else values


def _outputs_that_fit_report_parts(
    view: ScanView, samples: int
) -> tuple[dict[str, int], list[str]]:
    """Return outputs with several numbers per position, with bytes a sample; and what is larger."""
    several = {
        name: view.reader.shape(name)
        for name, dims in view.reader.dims.items()
        if dims[:3] == PLACE and dims != PLACE and name != "outputs"
    }
    sizes = {
        name: shape[0] * int(np.prod(shape[2:])) * (1 if name == "probabilities" else 4)
        for name, shape in several.items()
    }
    fitting = {name: size for name, size in sizes.items() if size * samples <= MOST_BYTES}
    return fitting, [name for name in sizes if name not in fitting]


def _moved_report_part_bytes(view: ScanView, kind: str, name: str, samples: Array) -> int:
    """Return the bytes of one sample's transformed reference; 0 if it is not transformed."""
    if reference_action(view, kind) is None:
        return 0
    shape = view.reader.shape(name)
    row = int(np.prod(shape[2:] if view.reader.by_model(name) else shape[1:])) * 4
    if row * len(view.group) > MOST_MOVED_BYTES:  # before anything is transformed
        return 0
    return int(_moved_report_part(view, name, samples[:1]).nbytes)


def _moved_report_part(view: ScanView, name: str, samples: Array) -> Array:
    """Return references transformed by every element, `[M, n, K, ...]`, as they are drawn."""
    assert view.live.task is not None
    action, dims = view.live.task.output, view.reader.dims[name]
    still = _rows(view, name, samples)
    flat = torch.from_numpy(np.ascontiguousarray(still.reshape(-1, *still.shape[2:])))
    moved = (action.apply(view.group, one[None])[:, 0].numpy() for one in flat)
    each = [_thinned(drawn_on_page(one, dims), 1)[0] for one in moved]
    return np.stack(each).reshape(*still.shape[:2], *np.shape(each[0]))


def _once(values: Array) -> Array:
    """Keep one copy, `[1, n, K, ...]`, of what is the same for all models, such as the truth."""
    alike = all(np.array_equal(values[0], other, equal_nan=True) for other in values[1:])
    return values[:1] if alike else values


def _thinned(values: Array, lead: int) -> tuple[Array, int]:
    """Thin large fields as the session does, keeping the first `lead` dimensions."""
    each, step = thinned_for_page(values.reshape(-1, *values.shape[lead:]))
    return each.reshape(*values.shape[:lead], *each.shape[1:]), step


def _span(view: ScanView, name: str, samples: Array) -> tuple[float, float]:
    """Return the range of the images, at least 0 to 1."""
    low, high = 0.0, 1.0
    for start in range(0, len(samples), 256):
        values = _inputs(view, samples[start : start + 256])[name]
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high


def _inputs(view: ScanView, samples: Array) -> dict[str, Array]:
    """Return inputs by name, `[n, ...]`; empty if they are not available."""
    if not view.live.has_inputs or not len(samples):
        return {}
    rows = [input_picture_fields(view.live.input(int(one)), 1, view.input_view) for one in samples]
    return {name: np.stack([row[name].numpy() for row in rows]) for name in rows[0]}


def _rows(view: ScanView, name: str, samples: Array) -> Array:
    """Read rows of every model, `[M, n, ...]`; M is 1 for arrays without a model dimension."""
    models = range(len(view.models)) if view.reader.by_model(name) else [None]
    read = partial(view.reader.row, name)
    return np.stack([np.stack([read(int(one), model) for one in samples]) for model in models])
