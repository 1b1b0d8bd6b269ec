"""The worst element of a continuous group for each sample: a coarse grid, then refinement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from .._interrupts import stoppable
from .._text import percent
from .._trees import Tree, to_device
from ..calibration import bounded_mean_interval, unbounded_mean_interval
from ..data import preprocessing_of_scan, read_rows
from ..errors import InputError, ModelError, errors_with_usage, real_number, whole_number
from ..groups import Array, Chart, Group, as_group, chart_of
from ..nero import circle_bracket, molecule_score_scope, order_for_spectra
from ..scanning import Recipe, Sweep, UnitRunner, plan, ready_unit_runner, scan_progress_bar
from ..store import Scan, row_runs
from ..tasks import Task, as_task
from .descent import Objective, descend_to_worst, golden_section, lowest_elements, nearest_elements

PLACES = ("identity", "grid", "refined")
_FEWEST, _STEPS = 16, 20  # samples that are searched together, and steps of the progress bar
_MEANINGS = {
    "score": "score of each sample at the identity, at the worst sampled element, at the worst",
    "correct": "whether the predicted class is the true one there",
    "missed": "how much worse the worst element is than the worst sampled one",
    "bound": "score that no element is beyond, if the assumption about the response holds",
    "degree": "degree that the bound assumes of the response along the circle; -1 for none",
    "refuted": "share of samples whose search went beyond the bound, which is then left out",
    "element": "index of the worst sampled element",
    "nearest": "index of the sampled element nearest to the worst one",
    "method": "how the search went on between the sampled elements",
    "mean": "mean score over samples",
    "mean_missed": "mean over samples of what the sampled elements missed",
}


@errors_with_usage('(models, scan), or (models, data, group="rotations:72", task="classification")')
def worst_case(
    models: object,
    data: object,
    *,
    group: Group | str | None = None,
    task: Task | str | None = None,
    starts: int = 3,
    rounds: int = 16,
    batch_size: int | str = "auto",
    device: str = "auto",
    preprocess: object = None,
    lipschitz: float | None = None,
    level: float = 0.95,
    progress: bool = True,
) -> xr.Dataset:
    """Search for the element of a continuous group that hurts a model most, for each sample.

    The search begins at the worst of the sampled elements, as a scan finds them, and goes on
    between them: along the gradient of the score where torch can differentiate the model and
    the score, otherwise by golden section along each coordinate. It is deterministic, and its
    result is never better for the model than the worst sampled element. That is a lower bound of
    the harm. For equally spaced rotations of the plane there is a bound from the other side too:
    the score that no angle is beyond if the response has the degree that its sampled spectrum
    shows (`orbical.nero.circle_bracket`), or if it changes no faster than `lipschitz`. The search
    tests this: where it finds a worse score, there is no bound.

    Args:
        models: a model, or a dictionary of names and models, as for `orbical.scan`.
        data: the inputs, or `(inputs, targets)`, as for `orbical.scan`; or a scan of these models
            with `keep="inputs"`, whose scores are used again. Scores are against the truth or,
            without targets, against the consensus along the orbit.
        group: the sampled group, or its text; that of the scan by default. Windows of shifts and
            scales are those of the sample.
        task: the task, or its name; that of the scan by default.
        starts: how many elements to start from, neighbors not counted.
        rounds: steps of each search.
        batch_size: the number of inputs in a forward pass, or `"auto"`.
        device: a torch device, or `"auto"`.
        preprocess: what is applied to each transformed batch, as for `orbical.scan`; a scan knows
            its own, if that was a name such as `"imagenet"`.
        lipschitz: the most that a score changes by one degree of the angle, if it is known.
        level: nominal coverage of the intervals.
        progress: whether to show a progress bar.

    Returns:
        A dataset with, `[model, sample]`: the coordinates of the worst element, such as `angle`,
        and `nearest`, the index of the sampled element beside it; `missed`, how much worse the
        score is there than at the worst sampled element; and `element`, the index of that one.
        On a circle also `bound`, the score that no angle is beyond, NaN where the sampled spectrum
        does not support one; `degree`, what it assumes, -1 for none or a Lipschitz constant; and
        `refuted` `[model]`, the share of samples whose search contradicts it.
        `score` `[model, sample, place]`, and `correct` for labeled classification, are at the
        places `identity`, `grid` (the worst sampled element) and `refined`. `mean`
        `[model, place]` and `mean_missed` `[model]` are means over samples, with intervals to
        `mean_low`, `mean_high` and so on. `method` `[model]` is `"gradient"`, `"golden section"`,
        or `"grid"` for a group without continuous coordinates, of which only the elements are
        tried. Of atoms the attribute `scope` says which quantity was searched and which were not.
        `orbical.view(scan, worst=...)` marks it on the orbits of a scan.

    Raises:
        InputError: an argument cannot be used.
        ModelError: a model cannot be loaded, or its outputs do not repeat or are not the scan's.

    See Also:
        orbical.flips: Where along the orbit predictions change.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> found = ob.worst_case(net, (images[:20], labels[:20]), group="rotations:12",
        ...                       task="classification")
        >>> found["method"].values.tolist(), bool((found["missed"] >= 0).all())
        (['gradient'], True)

    Paper: Zhao et al., Evaluating Machine Learning Models with NERO, section 4.
    """
    scan = data if isinstance(data, Scan) else None
    if scan is not None:
        models, data, group, task = searched_scan(scan, models, group, task)
        preprocess = preprocessing_of_scan(preprocess, scan.record.preprocess)
    for argument, value in (("group", group), ("task", task)):
        if value is None:
            raise InputError(argument, "one, because data is not a scan", "None")
    starts, rounds = whole_number("starts", starts, 1), whole_number("rounds", rounds, 1)
    if lipschitz is not None:
        real_number("lipschitz", lipschitz, ">= 0")
    settings = {"batch_size": batch_size, "device": device, "preprocess": preprocess}
    recipe = search_recipe(models, data, group, task, **settings)
    chart = chart_of(recipe.group)
    found: dict[str, list[dict[str, Array]]] = {name: [] for name in recipe.models}
    searches = len(found) * len(recipe.samples)
    with (
        stoppable(kept=False),
        ready_unit_runner(recipe) as runner,
        scan_progress_bar(searches, 0, len(found), progress, "worst case", "searches") as advance,
    ):
        check_searched_models(runner, scan)
        grids = _grids_to_search(runner) if scan is None else _stored_grids_to_search(runner, scan)
        for grid in grids:
            found[grid.model].append(
                _refined_worst_cases(runner, grid, chart, starts, rounds, lipschitz)
            )
            advance(len(grid.score))
    joined = {
        name: {key: np.concatenate([one[key] for one in parts]) for key in parts[0]}
        for name, parts in found.items()
    }
    return _labeled_worst_cases(joined, runner, level)


def search_recipe(models: Any, data: Any, group: Any, task: Any, **settings: Any) -> Recipe:
    """Return the recipe of a search with live models, which stores nothing."""
    settings |= {"group": as_group(group), "task": as_task(task)}
    return plan(models, data, keep="consensus", threads=torch.get_num_threads(), **settings)


@dataclass(frozen=True)
class _WorstCaseGrid:
    """One model's results at the sampled elements, of a chunk of samples."""

    model: str
    batch: Tree
    target: Tensor | None
    reference: Tensor
    score: Array  # [B, K]
    correct: Array | None


@dataclass(frozen=True)
class _Found:
    """The worst elements `[B]`: the sampled ones they belong to, and where they lie."""

    base: Array
    coords: Array  # [B, d]
    value: Array
    method: str


def searched_scan(
    scan: Scan,
    models: object,
    group: Group | str | None,
    task: Task | str | None,
    needed: bool = True,
) -> tuple[dict[str, object], object, Group, Task]:
    """Return the models by their names in a scan, its data if `needed`, its group and its task."""
    if group is not None and as_group(group).fingerprint() != scan.group.fingerprint():
        raise InputError("group", f"none, or that of the scan, {scan.group.spec}")
    if not scan.complete:
        raise InputError("data", "a complete scan", f"one of {percent(scan.share_done)}")
    if not isinstance(models, Mapping):
        models = {scan.models[0] if len(scan.models) == 1 else "model": models}
    unknown = [name for name in models if name not in scan.models]
    if unknown:
        raise InputError(
            "models",
            f"names of the scan, {scan.models}",
            repr(unknown[0]),
            remedy=f"pass {{{scan.models[0]!r}: model}} (--model NAME=SOURCE)",
        )
    chosen = Task.from_record(asdict(scan.record.task)) if task is None else as_task(task)
    inputs = {
        str(name).removeprefix("input").removeprefix("_"): values.values
        for name, values in sorted(scan.data.data_vars.items())
        if values.attrs.get("meaning") == "input"
    }
    if not inputs and needed:
        raise InputError(
            "data",
            "a scan that stores its inputs",
            "one without",
            remedy="scan with keep='inputs', or pass the data of the scan as data= (--data PATH); "
            "worst_case then needs group= and task=",
        )
    given: Any = inputs.get("", inputs or None)
    if inputs and all(key.isdigit() for key in inputs):
        given = tuple(inputs[key] for key in sorted(inputs, key=int))
    if given is not None and scan.labeled:
        given = given, scan.data[chosen.truth_name].values
    return dict(models), given, scan.group, chosen


def _chunks(runner: UnitRunner) -> Iterator[tuple[slice, Tree, Tensor | None]]:
    """Yield samples with their targets: at most a batch, and few enough that progress is seen."""
    recipe = runner.recipe
    size = min(runner.sweep.batch_size, max(_FEWEST, len(recipe.samples) // _STEPS))
    for rows in row_runs(len(recipe.samples), size):
        read = read_rows(recipe.samples, rows)
        target = recipe.target_of(rows, read.targets)
        runner.check_range(target)
        yield rows, read.inputs, target


def _grids_to_search(runner: UnitRunner) -> Iterator[_WorstCaseGrid]:
    """Evaluate the models at the sampled elements."""
    sweep = runner.sweep
    for rows, batch, target in _chunks(runner):
        unit = sweep.run(batch, target, list(sweep.predictors))
        unit.wait(sweep.task.input, sweep.group, rows.start)
        for name, summary in unit.summaries.items():
            reference = sweep.task.reference(summary["consensus"]) if target is None else target
            score = summary["score_vs_consensus" if target is None else "score"]
            correct = summary["correct"].numpy() if _classifies(summary) else None
            yield _WorstCaseGrid(name, batch, target, reference, score.double().numpy(), correct)


def _stored_grids_to_search(runner: UnitRunner, scan: Scan) -> Iterator[_WorstCaseGrid]:
    """Read what a scan has stored at the sampled elements."""
    if not scan.labeled and "consensus" not in scan.data:
        raise InputError(
            "data", "a scan with a consensus", "none", remedy="keep='consensus' (--keep consensus)"
        )
    for rows, batch, target in _chunks(runner):
        for name in runner.sweep.predictors:
            own = scan.data.sel(model=name).isel(sample=rows)
            reference = target
            if reference is None:
                stored = torch.from_numpy(own["consensus"].values)
                reference = runner.sweep.task.reference(stored)
            score = own["score_vs_consensus" if target is None else "score"].values.astype(float)
            correct = own["correct"].values.astype(bool) if _classifies(own) else None
            yield _WorstCaseGrid(name, batch, target, reference, score, correct)


def _classifies(results: Any) -> bool:
    """Check whether there is one predicted class, and one true class, for each sample."""
    return "correct" in results and "predicted" in results


def _refined_worst_cases(
    runner: UnitRunner,
    grid: _WorstCaseGrid,
    chart: Chart | None,
    starts: int,
    rounds: int,
    lipschitz: float | None,
) -> dict[str, Array]:
    """Search on from the worst sampled elements of each sample; return arrays `[B, ...]`."""
    sweep, identity = runner.sweep, runner.sweep.group.identity
    sign = 1.0 if sweep.task.higher_is_better else -1.0
    lost = np.where(np.isnan(grid.score), np.inf, sign * grid.score)
    every, element = np.arange(len(lost)), lost.argmin(1)
    lowest = lost[every, element]
    found = _Found(element, np.zeros((len(lost), 0)), lowest, "grid")
    correct = None if grid.correct is None else grid.correct[every, element]
    if chart is not None:
        batch, reference = to_device((grid.batch, grid.reference), sweep.device)
        labeled = grid.target is not None
        objective = Objective(sweep, grid.model, chart, batch, reference, labeled, sign)
        found = _searched_worst(objective, lost, starts, rounds)
        if correct is not None and grid.target is not None:
            predicted = objective.predicted(every, found.coords, found.base)
            correct = predicted == grid.target.cpu().numpy()
    score = sign * np.stack([lost[:, identity], lowest, found.value], 1)
    result = {
        "element": element,
        "nearest": element if chart is None else nearest_elements(chart, found.coords, found.base),
        "score": np.where(np.isfinite(score), score, np.nan),
        "missed": np.subtract(
            lowest, found.value, out=np.zeros(len(lost)), where=np.isfinite(lowest)
        ),
        "method": np.full(len(lost), found.method),
        **_coordinates(sweep.group, chart, found),
        **_bounds_of_worst_score(sweep, lost, found.value, sign, lipschitz),
    }
    if grid.correct is not None:
        at = grid.correct[:, identity], grid.correct[every, element], correct
        result["correct"] = np.stack(at, 1)  # type: ignore[arg-type]
    return result


def _bounds_of_worst_score(
    sweep: Sweep, lost: Array, value: Array, sign: float, lipschitz: float | None
) -> dict[str, Array]:
    """Return what no score on a circle is beyond, and the assumed degree; nothing elsewhere."""
    order = order_for_spectra(sweep.group)
    if order is None or chart_of(sweep.group) is None:
        return {}
    lost = lost[:, order]
    if lipschitz is None:
        low, _, degree = circle_bracket(lost)
    else:
        step = 360 / lost.shape[1]
        low = ((lost + np.roll(lost, 1, axis=1) - lipschitz * step) / 2).min(1)
        low, degree = np.minimum(low, lost.min(1)), np.full(len(lost), -1)
    if sweep.task.score_unit == "share":
        low = np.maximum(low, 0.0 if sign > 0 else -1.0)
    # Resampled images repeat only to rounding.
    refuted = value < low - 1e-6 * np.abs(np.where(np.isfinite(lost), lost, 0.0)).max(1)
    low = np.where(refuted | ~np.isfinite(low), np.nan, low)
    return {"bound": sign * low, "degree": np.where(refuted, -1, degree), "refuted": refuted}


def _searched_worst(objective: Objective, lost: Array, starts: int, rounds: int) -> _Found:
    """Search from several elements for each row of `lost[B, K]`, and keep the best."""
    chart, every = objective.chart, np.arange(len(lost))
    begin = lowest_elements(lost, chart, min(starts, lost.shape[1]))
    sample, base = np.repeat(every, begin.shape[1]), begin.reshape(-1)
    if objective.has_gradient:
        method = "gradient"
        coords, value = descend_to_worst(objective.gradients, chart, sample, base, rounds)
    else:
        method = "golden section"
        coords, value = golden_section(objective.values, chart, sample, base, rounds)
    best = value.reshape(begin.shape).argmin(1) + every * begin.shape[1]
    element = lost.argmin(1)
    better = value[best] < lost[every, element]
    return _Found(
        np.where(better, base[best], element),
        np.where(better[:, None], coords[best], chart.start[element]),
        np.minimum(value[best], lost[every, element]),
        method,
    )


def _coordinates(group: Group, chart: Chart | None, found: _Found) -> dict[str, Array]:
    """Return the coordinates of elements: continuous ones, and those that a factor holds."""
    kept = group.coords if chart is None else chart.held
    held = {name: np.asarray(group.coords[name])[found.base] for name in kept}
    return held if chart is None else dict(zip(chart.names, found.coords.T, strict=True)) | held


def check_searched_models(runner: UnitRunner, scan: Scan | None) -> None:
    """Refuse models whose outputs do not repeat, or are not those of the scan."""
    known = {} if scan is None else {entry.name: entry for entry in scan.record.models}
    for name, probe in runner.probes.items():
        if not probe["deterministic"]:
            raise ModelError(f"model {name!r}: expected outputs that repeat, got others each time")
        entry = known.get(name)
        if entry and entry.deterministic and not entry.reproduced_by(probe["values"]):
            raise ModelError(
                f"model {name!r}: expected the outputs of the scan for its first samples, got "
                "others; pass the model that was scanned"
            )


def _labeled_worst_cases(
    found: dict[str, dict[str, Array]], runner: UnitRunner, level: float
) -> xr.Dataset:
    """Return the labeled result, with means over samples."""
    recipe, task = runner.recipe, runner.recipe.task
    labeled = recipe.first_target is not None
    stacked = {
        key: np.stack([one[key] for one in found.values()]) for key in next(iter(found.values()))
    }
    stacked["method"] = stacked["method"][:, 0]
    if "refuted" in stacked:
        stacked["refuted"] = stacked["refuted"].mean(1)
    dims = ("model", "sample", "place")
    variables = {key: (dims[: values.ndim], values) for key, values in stacked.items()}
    interval = bounded_mean_interval if task.score_unit == "share" else unbounded_mean_interval
    for name, of in (("mean", "score"), ("mean_missed", "missed")):
        ends = interval(np.moveaxis(stacked[of], 1, -1), level)
        for ending, values in zip(("", "_low", "_high"), ends, strict=True):
            variables[name + ending] = (("model", "place")[: values.ndim], values)
    coords: dict[str, object] = {"model": list(found), "place": list(PLACES)}
    coords["sample"] = np.arange(stacked["missed"].shape[1])
    if recipe.samples.names is not None:
        coords["name"] = ("sample", [*recipe.samples.names])
    if recipe.target is not None and recipe.target.ndim == 1:
        coords[task.truth_name] = ("sample", recipe.target.cpu().numpy())
    table = xr.Dataset(variables, coords=coords)
    for variable in table.data_vars.values():
        name = str(variable.name)
        meaning = "end of the interval" if name.endswith(("_low", "_high")) else "coordinate"
        variable.attrs = {"meaning": _MEANINGS.get(name, f"{meaning} of the worst element")}
    return table.assign_attrs(
        group=recipe.group.spec,
        task=task.name,
        reference="truth" if labeled else "consensus",
        metric=task.score_meaning if labeled else "score against the consensus",
        higher_is_better=task.higher_is_better,
        level=level,
        scope=molecule_score_scope(task.variables(labeled), task.score_unit),
        searched="between the sampled elements"
        if chart_of(recipe.group) is not None
        else f"only the elements of {recipe.group.spec}, which has no continuous coordinates",
    )
