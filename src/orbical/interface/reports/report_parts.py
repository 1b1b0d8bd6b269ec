"""The parts of a report.

`state` describes the scan; `values/NAME` holds responses `[M, n, K]` of the samples in the report;
`rows/NUMBER` inputs and outputs of a block of samples; `maps` their positions; `subset/NUMBER` what
the session answers for a subset of the scan; `bounds` those of the models; `worst` the worst cases
of the samples in the report.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..selection import Selection
from ..session.filter_columns import sample_columns
from ..session.input_pictures import thumbnails
from ..session.sample_maps import sample_map
from ..session.sample_sets import UnknownSet, mask_of_set, packed
from ..session.scan_state import state as state_of
from ..session.scan_state import title_of
from ..session.scan_view import ScanView
from ..session.set_names import saved_sets
from ..session.symmetry_bounds import bounds
from ..session.worst_cases import rows_of
from ..wire import PNG
from .encoding import Array, Quantized, encode_part, quantize, quantize_log_odds
from .maps import encoded_maps, planned_maps
from .recorded_answers import FIELDS, encoded_answers, recorded_subsets, spread_metrics
from .sample_blocks import blocks_of
from .sampling import FEWEST, ChosenSamples, informative_samples
from .story import story, with_findings

_FALLBACKS = {"input": "image", "detail": "values"}
"""The views that replace those drawn in Python."""
Advance = Callable[[str], None]


def chosen_samples(view: ScanView, count: int | None) -> ChosenSamples:
    """Select the samples of a report, among them those of the findings; all for None."""
    if count is None or view.samples <= count >= FEWEST:
        return ChosenSamples(np.arange(view.samples), view.samples, "")
    variable = view.variable(view.metrics["score"], references(view)[0])
    moments = view.moments(variable)
    xy = sample_map(view, Selection(reference=references(view)[0])).xy
    upward = view.metrics["score"].higher_is_better is not False
    means, variances = moments.orbit_mean, moments.orbit_variance
    chosen = informative_samples(means, variances, xy, view.label, count, upward)
    return with_findings(view, chosen)


def references(view: ScanView) -> list[str]:
    """Return what scores can be measured against."""
    return ["truth", "consensus"] if view.scan.labeled else ["consensus"]


def parts_of(
    view: ScanView,
    chosen: ChosenSamples,
    methods: Sequence[str] | None,
    about: dict[str, Any],
    advance: Advance,
) -> Iterator[tuple[str, bytes]]:
    """Yield each part of a report with its name."""
    advance("samples")
    made = blocks_of(view, chosen.samples)
    # Inputs that are small images serve as their own thumbnails.
    pictures = None if made.picture else thumbnails(view, [int(one) for one in chosen.samples])
    facts = {
        **about,
        "complete": chosen.complete,
        "block": made.size,
        "picture": made.picture,
        "thumbnails": pictures is not None,
        "scalars": _scalars(view),
        "recorded": FIELDS,
        "spread_of": spread_metrics(view),
        "left_out": made.left_out,
        "sets": _named_sets(view, chosen.samples),
    }
    plan = planned_maps(view, methods, references(view), len(chosen.samples))
    facts["findings"], sets = story(view, chosen, plan.methods)
    subsets = recorded_subsets(view, [one["view"] for one in facts["findings"]])
    facts["subsets"] = [subset.key for subset in subsets]
    state, arrays = _state(view, chosen, plan.methods, facts)
    arrays["sets"] = sets
    yield "state", encode_part(state, arrays)
    for number, block in enumerate(made):
        yield f"rows/{number}", encode_part({"steps": block.steps}, block.arrays)
    if pictures is not None:
        yield "thumbnails", encode_part({}, {"thumbnail": pictures})
    for variable in _variables(view):
        yield (
            f"values/{variable}",
            encode_part({}, {"values": _values(view, variable, chosen.samples)}),
        )
    yield "columns", _columns(view, chosen.samples)
    advance("maps")
    yield "maps", encoded_maps(view, chosen.samples, plan.maps)
    kinds = [*FIELDS] if state["calibration"] else ["aggregate", "spread", "consistency"]
    kinds = [kind for kind in kinds if kind != "consistency" or state["consistency"]]
    answers = encoded_answers(view, subsets, references(view), kinds)
    for number in range(len(subsets)):
        advance(f"statistics {number + 1} of {len(subsets)}")
        yield f"subset/{number}", next(answers)
    if state["worst"]:
        yield "worst", encode_part(*rows_of(view, chosen.samples))
    if state["bounds"]:
        yield "bounds", encode_part(bounds(view, Selection(), {})[0], {})


def _named_sets(view: ScanView, samples: Array) -> list[dict[str, Any]]:
    """Return the named sets as bits of the report's samples, under their hashes in the scan."""
    found = []
    for one in saved_sets(view):
        with contextlib.suppress(UnknownSet):  # its file was removed or altered
            bits = packed(mask_of_set(view, one.hash)[samples]).tobytes()
            text = base64.b64encode(bits).decode()
            found.append({"name": one.name, "hash": one.hash, "bits": text})
    return found


def _state(
    view: ScanView, chosen: ChosenSamples, methods: Sequence[str], facts: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    state, arrays = state_of(view, [{"name": view.name, "title": title_of(view)}])
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
            part: _FALLBACKS[part] if name == PNG else name for part, name in state["views"].items()
        },
        "report": facts,
    }
    arrays["original"] = chosen.samples.astype(np.int32)
    if "label" in arrays:
        arrays["label"] = arrays["label"][chosen.samples]
    if "rows" in view.group.parts:
        arrays["rows"] = np.asarray(view.group.parts["rows"], np.int32)
    if "invariance_gap" in view.reader:
        arrays["invariance_gap"] = view.reader.whole("invariance_gap")[:, chosen.samples]
    by_class = view.reader.dims.get("consensus", ())[-1:] == ("class",)
    if by_class and "predicted" in view.reader:
        mean = view.reader.whole("consensus")[:, chosen.samples]
        known = np.isfinite(mean).all(-1)
        arrays["consensus_class"] = np.where(known, mean.argmax(-1), -1).astype(np.int32)
    return state, arrays


def _variables(view: ScanView) -> list[str]:
    """List the variables with one number per position that a page may request."""
    found = [
        view.variable(metric, reference)
        for metric in view.metrics.values()
        if metric.per_sample
        for reference in references(view)
    ]
    return [*dict.fromkeys([*found, *_scalars(view)])]


def _scalars(view: ScanView) -> list[str]:
    """List the stored outputs with one number per position."""
    place = ("model", "sample", "element")
    return [name for name, dims in view.reader.dims.items() if dims == place]


def _values(view: ScanView, variable: str, samples: Array) -> Array | Quantized:
    """Return the responses `[M, n, K]` of some samples; M is 1 if they involve no model."""
    shared = variable in view.reader and not view.reader.by_model(variable)
    models = [0] if shared else range(len(view.models))
    found = np.empty((len(models), len(samples), len(view.group)), np.float32)
    for rows in view.blocks(variable):
        here = np.flatnonzero((samples >= rows.start) & (samples < rows.stop))
        for place, model in enumerate(models):
            block = view.responses(variable, rows, model)
            found[place, here] = block[samples[here] - rows.start]
    whole = variable in ("correct", "agrees")
    if whole or _are_bytes(found):
        return quantize(found, 8, 0.0, 254.0 if np.isnan(found).any() else 255.0)
    name = {"score_vs_consensus": "score"}.get(variable, variable)
    if name in view.metrics and view.metrics[name].unit == "share":
        return quantize_log_odds(found)
    return quantize(found, 16) if variable == "action_defect" else found


def _are_bytes(values: Array) -> bool:
    known = values[np.isfinite(values)]
    inside = len(known) == 0 or (known.min() >= 0 and known.max() <= 254)
    return bool(inside and (known == np.rint(known)).all())


def _columns(view: ScanView, samples: Array) -> bytes:
    """Encode the columns of the samples in the report: numbers, codes of categories, texts."""
    arrays: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    for name, column in sample_columns(view).items():
        values = column.read()
        if column.kind == "text":
            texts[name] = [str(values[one]) for one in samples]
        else:
            kind = np.float32 if column.kind == "number" else np.int32
            arrays[name] = values[..., samples].astype(kind)
    return encode_part({"texts": texts}, arrays)
