"""Probe a model with a few inputs, to learn the shapes of a scan's arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from .._arrays import probability_tolerance
from .._imports_and_paths import words_of
from .._trees import Tree, flatten_leading, leaves, split_leading, tree_map
from .._warnings import warn
from ..actions import Action
from ..data import Samples, is_lazy, to_numpy
from ..errors import InputError, ModelError, OrbicalError
from ..groups import Elements
from ..store import ArraySpec, Fixed, Json
from ..tasks import ACTION_DEFECT, Task
from .forward_passes import (
    Sweep,
    copied_inputs,
    errors_in_pass,
    only_tensor_of_pass,
    refuse_faults_of_pass,
    without_failed_of_pass,
)
from .recipe import Recipe

PROBE_ELEMENTS = 4
_ROUNDING, _ROUNDING_OF_BATCHES = 1e-4, 1e-2
"""Shares of the largest output; batches of other sizes are computed by other kernels."""
CLASSES = "classes"
"""The attribute of the predicted classes that tells how many there are: arrays by class, which
would tell it as well, are not stored where there are many."""


def probe_model_for_scan(sweep: Sweep, name: str, first: Tree, target: Tensor | None) -> Json:
    """Run a model on a few inputs, twice: the shape of its outputs, and whether they repeat."""
    elements = sweep.group[:PROBE_ELEMENTS]
    first = tree_map(lambda leaf: leaf.to(sweep.device), first)
    moved = _moved_probe(sweep.task.input, elements, first)
    inputs = sweep.prepared(moved)
    count = len(next(leaves(first)))
    raw = sweep.answer(name, inputs)
    orbits = sweep.read(name, raw, moved, elements)
    failed = {divmod(place, count): why for place, why in errors_in_pass(raw).items()}
    faults = without_failed_of_pass(sweep.task.faults(orbits), failed)
    refuse_faults_of_pass(f"model {name!r}", faults, sweep.group, first)
    outputs = copied_inputs(flatten_leading(orbits))  # a model may reuse their memory
    try:
        sweep.task.check_outputs(sweep.group, outputs)
    except InputError as error:
        raise ModelError(
            f"model {name!r}: its outputs do not move as the task expects: {error}"
        ) from None
    if target is not None:
        sweep.task.check_range(target, outputs)
    steady = _probe_is_steady(sweep, name, raw, outputs, moved, elements)
    _warn_of_probed_probabilities(sweep, name, raw)
    return {
        "outputs": outputs,
        "raw": raw,
        "deterministic": steady,
        "values": [
            value
            for leaf in leaves(outputs)
            for value in leaf.flatten()[:16].double().nan_to_num(0.0).tolist()
        ],
    }


def _probe_is_steady(
    sweep: Sweep, name: str, raw: object, outputs: Tree, moved: Tree, elements: Elements
) -> bool:
    """Check whether a model repeats its outputs; warn if not, or if they depend on the batch.

    Some of the inputs are run again, in a batch as large that holds each several times and begins
    and ends with others. Only if the outputs differ is the whole batch run again, to tell a model
    that varies from one that looks at all of its batch.
    """

    def change(rows: list[int], samples: list[int]) -> float:
        """Return the largest change of outputs, as a share of the largest output."""
        inputs, first = (
            tree_map(lambda leaf: leaf[rows][:, samples], tree)
            for tree in (moved, split_leading(outputs, len(elements), count))
        )
        repeated = sweep.answer(name, sweep.prepared(inputs))
        sweep.compare(name, raws[-1], repeated)
        raws.append(repeated)
        again = sweep.read(name, repeated, inputs, elements[rows])
        return max(map(_relative_probe_change, leaves(first), leaves(again)))

    raws, count = [raw], next(leaves(moved)).shape[1]
    whole = [*range(len(elements))], [*range(count)]
    alone = sweep.predictors[name].one_at_a_time
    some = whole if alone else (_middle(len(elements)), [count - 1] * count)
    apart = change(*some)
    if apart <= _ROUNDING:
        return True
    if change(*whole) > _ROUNDING:
        warn(
            f"model {name!r} gives different outputs for the same batch (dropout, sampling?); "
            "its orbit plots show this too",
        )
        return False
    if apart > _ROUNDING_OF_BATCHES:
        warn(
            f"model {name!r} gives different outputs for the same inputs in other batches (batch "
            "normalization in training mode?); its results depend on batch_size",
        )
    return True


def _middle(count: int) -> list[int]:
    """Return the middle half of some numbers, as often as there are as many.

    >>> _middle(4), _middle(1)
    ([1, 2, 1, 2], [0])
    """
    half = max(1, count // 2)
    return [count // 4 + place % half for place in range(count)]


def _relative_probe_change(first: Tensor, second: Tensor) -> float:
    """Return the largest difference of two tensors relative to the first; missing agrees."""
    kind = torch.promote_types(first.dtype, torch.float32)
    first, second = first.to(kind), second.to(kind)
    if not torch.equal(first.isnan(), second.isnan()):
        return float("inf")
    change = (first - second).nan_to_num(0.0, 0.0, 0.0).abs()
    scale = first.nan_to_num(0.0, 0.0, 0.0).abs()
    return float(change.max() / scale.max().clamp_min(1e-30)) if change.numel() else 0.0


def _moved_probe(action: Action, elements: Elements, first: Tree) -> Tree:
    """Move a few inputs; what an action of the user does wrong is said before any work."""
    name, shapes = type(action).__name__, [tuple(leaf.shape) for leaf in leaves(first)]
    given = ", ".join(map(str, shapes))
    try:
        moved = action.apply(elements, first)
    except (OrbicalError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(
            "action",
            problem=f"{name} raised {type(error).__name__} for a batch of shape {given}: "
            f"{words_of(error)}",
            remedy="refuse data that it cannot move in its check(group, x)",
        ) from error
    lead = len(elements), shapes[0][0]
    wrong = [tuple(leaf.shape) for leaf in leaves(moved) if leaf.shape[:2] != lead]
    if wrong:
        raise InputError(
            "action",
            f"{name}.move to return [element, sample, ...], here [{lead[0]}, {lead[1]}, ...]",
            f"shape {wrong[0]}",
        )
    return moved


def _warn_of_probed_probabilities(sweep: Sweep, name: str, raw: object) -> None:
    """Warn if what is read as logits looks like probabilities, which would be normalized twice.

    Logits of several labels that all lie in 0 .. 1 would also predict every label of every sample.
    """
    said = sweep.predictors[name].outputs or getattr(sweep.task, "outputs", None)
    given = sweep.task.picked(raw) if said == "logits" else None
    if not isinstance(given, Tensor) or given.ndim != 2:
        return
    if sweep.task.truth_kind == "labels":
        alike, seen = bool((given <= 1).all()), "all are in 0 .. 1"
    else:
        slack = max(probability_tolerance(given.dtype), probability_tolerance(torch.float32))
        alike = bool(((given.double().sum(-1) - 1).abs() < slack).all())
        seen = "every row is >= 0 and sums to 1"
    if alike and bool((given >= 0).all()):
        warn(
            f"model {name!r}: outputs are read as logits but {seen}; if they are probabilities, "
            f"pass task=ob.tasks.{type(sweep.task).__name__}(outputs='probabilities'), or the "
            "option --outputs probabilities",
        )


def probed_array_specs(
    sweep: Sweep, samples: Samples, target: Tensor | None, probes: Json
) -> dict[str, ArraySpec]:
    """Return the shape and type of every array, from summaries of the probes.

    Each variable of any model has an array; all models that return it must agree on its shape.
    """
    number, size = len(samples), len(sweep.group)
    specs: dict[str, ArraySpec] = {}
    for model, probe in probes.items():
        for name, spec in _specs_of_probed_model(sweep, target, model, probe, number).items():
            known = specs.setdefault(name, spec)
            expected, got = (one.attributes.get(CLASSES) for one in (known, spec))
            if expected != got:
                raise ModelError(
                    f"model {model!r}: expected {expected} classes as for "
                    f"{next(iter(probes))!r}, got {got}; scan models with other outputs separately"
                )
            if known.shape != spec.shape:
                axes = ", ".join(spec.dims[1:])
                raise ModelError(
                    f"model {model!r}: expected {name} of shape {known.shape[1:]} ({axes}) as for "
                    f"{next(iter(probes))!r}, got {spec.shape[1:]}; scan models with other outputs "
                    "separately"
                )
    specs["action_defect"] = ArraySpec(
        ("sample", "element"), (number, size), "float32", ACTION_DEFECT.attributes
    )
    if "inputs" in sweep.keep:
        for name, leaf in input_fields(samples.inputs(0, 1)):
            if "/" in name or name in {*specs, sweep.task.truth_name}:
                raise InputError(
                    "keep",
                    "input fields with names of their own and without '/'",
                    repr(name.removeprefix("input_")),
                )
            dims = ("sample", *(f"{name}_{i}" for i in range(leaf.ndim - 1)))
            specs[name] = ArraySpec(
                dims, (number, *leaf.shape[1:]), _dtype(leaf), {"meaning": "input"}
            )
    return specs


def _specs_of_probed_model(
    sweep: Sweep, target: Tensor | None, model: str, probe: Json, number: int
) -> dict[str, ArraySpec]:
    """Return the shapes and types of one model's variables for `number` samples."""
    elements = sweep.group[:PROBE_ELEMENTS]
    outputs = tree_map(
        lambda leaf: leaf.reshape(len(elements), -1, *leaf.shape[1:]), probe["outputs"]
    )
    count = next(leaves(outputs)).shape[1]
    truth = None if target is None else target[:count].to(sweep.device)
    weights = torch.full((len(elements),), 1 / len(elements), device=sweep.device)
    summary = sweep.task.summarize(outputs, truth, elements, weights.double())
    declared = sweep.task.variables(target is not None)
    models, size = len(sweep.predictors), len(sweep.group)
    counts = (v.shape[-1] for name, v in summary.items() if declared[name].dims[-1] == "class")
    count = next(counts, None)
    specs = {}
    for name, values in summary.items():
        variable = declared[name]
        sweep.check_shape(model, name, variable, values)
        if not sweep.stores(name, variable, values):
            continue
        lead = 2 if "element" in variable.dims else 1
        shape = (models, number, *((size,) if lead == 2 else ()), *values.shape[lead:])
        dims = ("model", *variable.dims)
        counted = name == "predicted" and count is not None
        about = variable.attributes | ({CLASSES: count} if counted else {})
        specs[name] = ArraySpec(dims, shape, _dtype(values), about)
    if "outputs" in sweep.keep:
        raw = only_tensor_of_pass(model, probe["raw"])
        tail = tuple(raw.shape[1:])
        dims = ("model", "sample", "element", *(f"output_{i}" for i in range(len(tail))))
        shape = (models, number, size, *tail)
        specs["outputs"] = ArraySpec(dims, shape, _dtype(raw), {"meaning": "raw model outputs"})
    return specs


def unprobed_truth_arrays(task: Task, target: Tensor | None) -> dict[str, Fixed]:
    """Return the array of the targets, if there are any, and the label of several objects."""
    if target is None:
        return {}
    about = {"meaning": "truth", "units": "", "long_name": "truth"}
    values = to_numpy(target)
    found = {task.truth_name: Fixed(("sample", *task.truth_dims), values, about)}
    if task.truth_name == "objects":  # of several the first, around which the view is centered
        name = {"units": "", "long_name": "true class"}
        found["label"] = Fixed(("sample",), values[:, 0, -1].astype(np.int64), name)
    return found


def truth_specs(task: Task, first: Tensor, number: int) -> dict[str, ArraySpec]:
    """Return the arrays of targets that units fill."""
    return {
        name: ArraySpec(one.dims, (number, *one.values.shape[1:]), str(one.values.dtype), about)
        for name, one in unprobed_truth_arrays(task, first).items()
        for about in [one.attributes]
    }


def _dtype(values: Tensor) -> str:
    return str(values.dtype).removeprefix("torch.").replace("bfloat16", "float32")


def input_fields(batch: Tree, name: str = "input") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of an input batch under the names they are stored by."""
    if isinstance(batch, dict):
        for key in sorted(batch, key=str):
            yield from input_fields(batch[key], f"{name}_{key}")
    elif isinstance(batch, tuple):
        for number, part in enumerate(batch):
            yield from input_fields(part, f"{name}_{number}")
    else:
        yield name, batch


_RESERVED = ("class", "element", "group", "label", "model", "name", "sample", "units", "weight")


def unprobed_arrays(recipe: Recipe, results: Mapping[str, ArraySpec]) -> dict[str, Fixed]:
    """Return the arrays that are known before the scan; `results` are those that it fills."""
    target = None if recipe.units_hold_targets else recipe.target
    found = unprobed_truth_arrays(recipe.task, target)
    if recipe.samples.names is not None:
        about = {"units": "", "long_name": "name of the sample"}
        found["name"] = Fixed(("sample",), recipe.samples.names, about)
    classes = getattr(recipe.task, "classes", None)
    if isinstance(classes, list):  # a task of the user's may mean a number by it
        _check_probed_classes(classes, results)
        about = {"meaning": "class names", "units": "", "long_name": "name of the class"}
        found["class_name"] = Fixed(("class",), np.array(classes), about)
    declared = recipe.task.variables(True)  # a score that is none would look like one
    taken = {*_RESERVED, *declared, *results, *found, *recipe.group.coords}
    for name, values in recipe.samples.source.columns.items():
        own = re.sub(r"\W+", "_", str(name)).strip("_")  # xarray separates names by spaces
        if not own or own in taken:
            raise InputError(
                "data",
                "metadata columns with names of their own",
                f"{name!r}, which a scan uses itself",
                remedy="rename it, or choose others with columns= (--columns)",
            )
        taken.add(own)
        about = {"meaning": "metadata", "units": "", "long_name": str(name)}
        found[own] = Fixed(("sample",), values if is_lazy(values) else np.asarray(values), about)
    return found


def _check_probed_classes(classes: Sequence[str], results: Mapping[str, ArraySpec]) -> None:
    """Refuse names of another number of classes than the models have."""
    for spec in results.values():
        sizes = dict(zip(spec.dims, spec.shape, strict=True))
        count = spec.attributes.get(CLASSES, sizes.get("class"))
        if count not in (None, len(classes)):
            raise InputError(
                "classes",
                f"the names of the model's {count} classes",
                len(classes),
                remedy="pass all of them with classes= (--classes)",
            )
