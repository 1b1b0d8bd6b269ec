"""One sample: its response along the orbit, its input, and the outputs at a position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._trees import Tree, leaves
from ...groups import Elements, Group
from ...store import AGREES, Json
from ...tasks import Places, Task, map_middle, map_slices_at, reduced_label_maps
from ..live_models import LiveAnswer
from ..selection import sample_numbers_of_request
from ..wire import PNG
from .filter_columns import metadata_by_title
from .input_pictures import drawn_on_page, input_arrays, thinned_for_page, thumbnails
from .saved_lists import tags_of
from .scan_state import group_json
from .scan_view import PLACE, ScanView
from .subset_curves import page_curve_header
from .subset_request import Answer, SubsetRequest

Array = np.ndarray

STILL = {"consensus": "answer", "truth": "still"}
"""The names of references that are not transformed."""


def sample(request: SubsetRequest) -> Answer:
    """Answer one sample's response along its orbit, for each model shown."""
    view, number = request.view, request.sample
    metric, models = request.sample_metric, request.models
    wanted = {"values": request.variable}
    against = view.variable(metric, "consensus")
    if request.selection.reference == "both" and against != wanted["values"]:
        wanted["consensus_values"] = against
    if "correct" in view.metrics:
        wanted["correct"] = view.variable(view.metrics["correct"], request.reference)
    found = {
        name: np.stack([view.response(variable, number, model) for model in models])
        for name, variable in wanted.items()
    }
    curves = [values for name, values in found.items() if name != "correct"]
    tags = tags_of(view, number)
    about: Json = {
        "sample": number,
        "label": None if view.label is None else int(view.label[number]),
        "name": view.names[number] if view.names else "",
        "facts": metadata_by_title(view, number),
        **({"tags": tags} if tags else {}),
        **({"failed": view.failed[number]} if number in view.failed else {}),
        "consensus": [_consensus_class(view, number, model) for model in models],
        **page_curve_header(request, metric, np.stack(curves)),
    }
    arrays: Json = {}
    if "predicted" in view.reader:
        answered = [view.reader.row("predicted", number, model) for model in models]
        arrays["predicted"] = np.stack(answered).astype(np.int32)
    dense = request.selection.dense and view.live.models
    group = view.live.locator.finer() if dense else None
    if group is not None:
        fine = {"index": group.layout.index.astype(np.int32)}
        shown = {**about, "group": group_json(group)}
        for share, finer, errors in _sample_drawn_densely(request, wanted, group):
            shown |= {"errors": errors} if errors else {}
            if np.isnan(finer["values"]).all():
                about |= {"errors": errors} if errors else {}
                continue
            found, about = finer, shown
            answer = (
                dict(about),
                {**arrays, **fine, **_with_flags(_sample_view_without_gaps(found))},
            )
            request.progress.tell(share, "", answer)
        arrays |= fine if "group" in about else {}
    return about, {**arrays, **_with_flags(found)}


def _with_flags(found: dict[str, Array]) -> dict[str, Array]:
    """Return responses with `correct` as 0 and 1."""
    flags = {"correct": (found["correct"] > 0).astype(np.uint8)} if "correct" in found else {}
    return {**found, **flags}


def _sample_view_without_gaps(found: dict[str, Array]) -> dict[str, Array]:
    """Fill places `[M, K]` that no model has answered yet with the one before them.

    >>> row = {"values": np.array([[0.5, np.nan, 1.0, np.nan]])}
    >>> _sample_view_without_gaps(row)["values"].tolist()
    [[0.5, 0.5, 1.0, 1.0]]
    """
    known = np.isfinite(found["values"]).any(0)
    last = np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))
    return {name: values[:, last] for name, values in found.items()}


def _sample_drawn_densely(
    request: SubsetRequest, wanted: dict[str, str], group: Group
) -> Iterator[tuple[float, dict[str, Array], dict[str, str]]]:
    """Yield live responses at the elements of a finer group, NaN where there is none yet.

    With them comes the share of the elements, and the errors of models that cannot run.
    """
    view, number = request.view, request.sample
    shape = (len(request.models), len(group))
    found = {name: np.full(shape, np.nan, np.float32) for name in wanted}
    errors: dict[str, str] = {}
    done = 0
    for places, answers in view.live.ask_along(number, group, request.names):
        errors |= {name: answer.error for name, answer in answers.items() if answer.error}
        for row, model in enumerate(request.models):
            said = answers.get(view.models[model])
            variables = {} if said is None else said.variables
            if AGREES in wanted.values() and "predicted" in variables:
                consensus = _consensus_class(view, number, model)
                variables = {**variables, AGREES: variables["predicted"] == consensus}
            for name, variable in wanted.items():
                if variable in variables:
                    found[name][row, places] = variables[variable]
        done += len(places)
        yield done / len(group), found, errors


def hovered_samples(request: SubsetRequest) -> Answer:
    """Answer the responses of a few samples, with thumbnails of their inputs."""
    view, variable = request.view, request.variable
    chosen = [view.sample(one) for one in sample_numbers_of_request(request.message.get("samples"))]
    values = [[view.response(variable, one, model) for model in request.models] for one in chosen]
    arrays: Json = {"values": np.array(values)}
    pictures = thumbnails(view, chosen)
    if pictures is not None:
        arrays["thumbnail"] = pictures
    if view.label is not None:
        arrays["label"] = view.label[chosen].astype(np.int32)
    sums = view.cache.get(("moments", variable))
    known = arrays["values"] if sums is None else np.array([sums.low, sums.high])
    about = {
        "samples": chosen,
        "names": [view.names[one] for one in chosen] if view.names else [],
        "facts": [metadata_by_title(view, one) for one in chosen],
        **page_curve_header(request, request.sample_metric, known),
    }
    return about, arrays


def sample_at_position(request: SubsetRequest) -> Answer:
    """Answer the transformed input at a position, and the output of each model shown."""
    view, message, number = request.view, request.message, request.sample
    live, models, names = view.live, request.models, request.names
    here = live.locator.at(request.element, request.selection.position)
    moved: Tree | None = live.moved(number, here.elements)
    # While someone drags, what is beside the selected sample takes the stored results.
    asked = names if message.get("live", True) is not False else []
    answers = live.ask(number, here.elements, asked, moved)
    running = {name: answer for name, answer in answers.items() if not answer.error}
    if not here.scanned and not running:
        here = live.locator.at(here.element)  # no model answers between the scanned elements
        moved = live.moved(number, here.elements)
    about: Json = {
        "sample": number,
        "element": here.element,
        "position": list(here.position),
        "scanned": here.scanned,
        "name": here.name,
        "models": names,
        "live": bool(running),
        "milliseconds": {name: round(answer.milliseconds, 3) for name, answer in running.items()},
        "errors": {name: answer.error for name, answer in answers.items() if answer.error},
        "truth": None if view.label is None else int(view.label[number]),
        "consensus": [_consensus_class(view, number, model) for model in models],
    }
    arrays: Json = {}
    pictures, spans = input_arrays(moved, view.input_view)
    still = live.input(number)
    wanted = message.get("scene", True) is not False  # a page requests a scene once
    if wanted and view.input_view == "window" and isinstance(still, Tensor):
        around, wider = input_arrays(still[None])  # the window is drawn inside the scene
        pictures["whole"], spans["whole"] = around["image"], wider["image"]
    for name, values in pictures.items():
        arrays[f"input/{name}"] = values
    about["input"] = {"view": view.input_view, "fields": [*pictures], "range": spans}
    rows = _sample_output_rows(view, number, models, here.element, running)
    slices = _shown_slices(moved, request.selection.slices)
    if slices is not None:
        sides = next(leaves(moved)).shape[-3:]
        other = slices != map_middle(sides)
        places = (here.elements, slices)
        made = redrawn_sample_view(live.task, rows, live.truth(number), *places) if other else None
        rows, slices = (rows, map_middle(sides)) if made is None else (made, slices)
    with map_slices_at(slices):
        details = _sample_outputs_drawn(view, rows)
        _sample_references(view, number, models, here.elements, arrays)
    steps: dict[str, int] = {}
    for name, values in details.items():
        arrays[f"detail/{name}"], step = thinned_for_page(values)
        if step > 1:
            steps[name] = step
    about["detail"] = {
        "view": view.scan.record.views.detail,
        "fields": [*details],
        "steps": steps,
        **({} if slices is None else {"slices": list(slices)}),
    }
    _draw(live.task, {"input": (moved,), "detail": (details, names)}, about, arrays)
    return about, arrays


def _draw(task: Any, parts: dict[str, tuple[Any, ...]], about: Json, arrays: Json) -> None:
    """Draw the views of a task that are named `png`, which need no JavaScript."""
    for part, given in parts.items():
        draw = getattr(task, f"draw_{part}", None)
        if about[part]["view"] == PNG and draw is not None and given[0] is not None:
            arrays[f"{part}/png"] = draw(*given)
            about[part]["fields"].append("png")


def _sample_output_rows(
    view: ScanView, number: int, models: list[int], element: int, answers: dict[str, LiveAnswer]
) -> list[dict[str, Array]]:
    """Collect the variables of each model at the position: of its live answer, else stored."""
    reader = view.reader
    rows: list[dict[str, Array]] = []
    for model in models:
        if (answer := answers.get(view.models[model])) is not None:
            rows.append({name: values[0] for name, values in answer.variables.items()})
            continue
        row = {
            name: reader.row(name, number, model)[element]
            for name, axes in reader.dims.items()
            if axes[:3] == PLACE and name != "outputs"
        }
        if {"class_map", "probabilities"} <= row.keys():  # all pixels, as of live models
            row.setdefault("segments", row["probabilities"].argmax(0))
        rows.append(row)
    return rows


def _sample_outputs_drawn(view: ScanView, rows: list[dict[str, Array]]) -> dict[str, Array]:
    """Return each variable of some models `[M, ...]`, as it is drawn; NaN where one has it not."""
    task = view.live.task
    declared = {} if task is None else task.variables(True)
    dims = {name: one.dims for name, one in declared.items()} | view.reader.dims
    found: dict[str, Array] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        shape = next(row[name].shape for row in rows if name in row)
        parts = [row.get(name, np.full(shape, np.nan)) for row in rows]
        drawn = [drawn_on_page(part, dims.get(name, ())) for part in parts]
        found[name] = np.stack([np.asarray(part, np.float32) for part in drawn])
    return found


def sample_references_of(view: ScanView) -> dict[str, str]:
    """Return the arrays of consensus and truth; classes are labels and have none."""
    named = {"consensus": "consensus", "truth": view.truth}
    return {kind: name for kind, name in named.items() if name and name in view.reader}


def reference_action(view: ScanView, kind: str) -> Any:
    """Return the action that transforms a reference along the orbit; None for classes."""
    task = view.live.task
    if task is None or (kind == "consensus" and "label" in view.reader):
        return None
    return task.output


def _sample_references(
    view: ScanView, number: int, models: list[int], elements: Elements, arrays: Json
) -> None:
    """Add consensus and truth, transformed to the position if the task transforms them."""
    for kind, name in sample_references_of(view).items():
        owners = models if view.reader.by_model(name) else [None]
        values = np.stack([view.reader.row(name, number, owner) for owner in owners])
        action = reference_action(view, kind)
        if action is not None:
            values = action.apply(elements, torch.from_numpy(values))[0].numpy()
        ignored = getattr(view.live.task, "ignore_index", None) if kind == "truth" else None
        values = values if ignored is None else np.where(values == ignored, -1, values)
        values = drawn_on_page(values, view.reader.dims[name])
        arrays[f"{kind}/{STILL[kind] if action is None else 'moved'}"], _ = thinned_for_page(values)


def _consensus_class(view: ScanView, number: int, model: int) -> int | None:
    reader = view.reader
    if not {"consensus", "predicted"} <= reader.dims.keys():
        return None
    if reader.dims["consensus"][-1] != "class":
        return None
    mean = reader.row("consensus", number, model)
    return int(mean.argmax()) if np.isfinite(mean).all() else None


def pinned_samples(request: SubsetRequest) -> Answer:
    """Answer the input and the predictions of each pinned sample at the position.

    The arrays of the n-th are those of `sample_at_position` under `n/`, without outputs larger
    than one number.
    """
    message = request.message
    scenes = message.get("held")  # those that the page has
    held = sample_numbers_of_request(scenes) if scenes else ()
    about: list[Json] = []
    arrays: Json = {}
    for order, number in enumerate(request.selection.pins):
        asked = {"scene": number not in held, "live": message.get("live", True)}
        one = replace(request.but(sample=number), message=asked)
        header, found = sample_at_position(one)
        about.append(header)
        for name, values in found.items():
            if name.startswith("input/") or (name.startswith("detail/") and np.ndim(values) == 1):
                arrays[f"{order}/{name}"] = values
    return {"pins": about}, arrays


Row = dict[str, np.ndarray]


def _shown_slices(moved: Tree | None, chosen: tuple[int, ...]) -> Places | None:
    """Return the slices of a volume `[1, 1, C, D, H, W]` to show, None for other inputs."""
    if not isinstance(moved, Tensor) or moved.ndim != 6:
        return None
    sides = tuple(moved.shape[-3:])
    if len(chosen) != 3:
        return map_middle(sides)
    depth, row, column = np.clip(chosen, 0, np.array(sides) - 1).tolist()
    return depth, row, column


def redrawn_sample_view(
    task: Task | None, rows: list[Row], truth: Tensor | None, elements: Elements, places: Places
) -> list[Row] | None:
    """Return the variables of each model with maps at other slices; None if one is not known there.

    A live model answers for the whole volume; a scan has what it was told to keep.
    """
    with map_slices_at(places):
        made = [_maps_of_sample_view(task, row, truth, elements) for row in rows]
    if any(maps is None for maps in made):
        return None
    return [
        {name: values for name, values in row.items() if not _is_map(name)} | (maps or {})
        for row, maps in zip(rows, made, strict=True)
    ]


def _is_map(name: str) -> bool:
    return name.endswith("_map") or name == "map_vs_consensus"


def _maps_of_sample_view(
    task: Any, row: Row, truth: Tensor | None, elements: Elements
) -> Row | None:
    whole = {name: torch.from_numpy(np.array(row[name]))[None, None] for name in row.keys() & _FULL}
    if task is None or not whole:
        return None
    if "segments" in whole and "probabilities" not in whole:
        return {"class_map": reduced_label_maps(whole["segments"])[0, 0].numpy()}
    outputs: Tree = whole.get("probabilities")
    if outputs is None:
        outputs = {"mean": whole["predicted_maps"]}
    made = task.extras(outputs, truth, elements)
    return {name: values[0, 0].numpy() for name, values in made.items() if _is_map(name)}


_FULL = {"probabilities", "segments", "predicted_maps"}
