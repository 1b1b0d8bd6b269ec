"""Tasks: what a model predicts, how its outputs are read, and how they are scored."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .. import actions
from ..actions import REGISTERED, Action
from ..errors import InputError, check_name
from ._maps import (
    UNSEEN,
    Places,
    chosen_map_slices,
    map_middle,
    map_of_volume_slices,
    map_slices_at,
    reduced_label_maps,
)
from .answers import answer_changes, answer_code_changes, answer_variables
from .atoms import DEFAULT_QUANTITIES, Atoms
from .classification import CLASS_PROBABILITY, Choice, Classification, Ordinal, class_probabilities
from .dense_regression import DenseRegression
from .detection import Detection
from .detection_matching import average_precision, iou
from .flow import Flow
from .key_points import COCO_EDGES, COCO_SIGMAS, COCO_SWAPS, KeyPoints
from .multilabel import MultiLabel
from .point_classification import PointClassification
from .quantities import SMALL, UNITS, Quantities, quantity_rounding
from .reading import read_class_names
from .regression import Mixed, Regression
from .segmentation import Segmentation
from .structures import (
    STRUCTURE_SUFFIXES,
    SYMBOLS,
    batch_structures,
    is_structure,
    read_structure_file,
    structure_display_name,
)
from .task import ACTION_DEFECT, Reader, Task, Variable
from .text_lines import Text
from .uncertainties import uncertainty_variances

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        Atoms,
        Choice,
        Classification,
        DenseRegression,
        Detection,
        Flow,
        KeyPoints,
        Mixed,
        MultiLabel,
        Ordinal,
        PointClassification,
        Regression,
        Segmentation,
        Text,
    )
}
INPUTS: dict[str, Callable[..., Action]] = {
    "adjacency": actions.Adjacency,
    "color-images": actions.ColorImages,
    "edges": actions.Edges,
    "globe": actions.Globe,
    "images": actions.Images,
    "pair": actions.ImagePair,
    "pair-window": actions.PairWindow,
    "periodic": actions.Periodic,
    "points": actions.Points,
    "rows": actions.Rows,
    "signal-window": actions.SignalWindow,
    "signals": actions.Signals,
    "trivial": actions.Trivial,
    "texts": actions.Texts,
    "vectors": actions.Vectors,
    "versions": actions.Versions,
    "volumes": actions.Volumes,
    "window": actions.Window,
}


def as_task(task: Task | str) -> Task:
    """Return a task from a task or its name."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        given = f"the class {task.__name__}" if isinstance(task, type) else type(task).__name__
        raise InputError("task", "a task such as orbical.tasks.Flow()", given)
    check_name("task", task, TASKS)
    return TASKS[task]()  # type: ignore[call-arg]


def task_takes(task: str, argument: str) -> bool:
    """Check whether the constructor of a task, by its name, has an argument.

    >>> task_takes("detection", "classes"), task_takes("regression", "classes")
    (True, False)
    """
    return argument in inspect.signature(TASKS[task]).parameters


def parse_input(text: str) -> Action:
    """Make an input action from text, such as `images`, `images:bicubic:reflect` or `window:128`.

    Data with several fields have an action for each: `pos=points,numbers=rows`.

    Args:
        text: the name of an action with its settings, or `FIELD=ACTION,FIELD=ACTION`.

    Returns:
        The action.

    Raises:
        InputError: if the text cannot be read.

    Example:
        >>> parse_input("window:128").size
        128
        >>> sorted(parse_input("pos=points,numbers=trivial").actions)
        ['numbers', 'pos']
    """
    if "=" not in text:
        return _parse_task_input(text)
    fields = [piece.strip().partition("=") for piece in text.split(",")]
    for field, equals, action in fields:
        if not (field and equals and action):
            raise InputError("input", "FIELD=ACTION,FIELD=ACTION", repr(text))
    return actions.as_action({field: _parse_task_input(action) for field, _, action in fields})


def _parse_task_input(text: str) -> Action:
    name, *settings = text.split(":")
    known = INPUTS | REGISTERED
    check_name("input", name, known)
    given = [int(word) if word.isdigit() else word for word in settings]
    try:
        inspect.signature(known[name]).bind(*given)
        return known[name](*given)
    except TypeError:
        raise InputError("input", f"settings that {name} takes", repr(text)) from None


__all__ = [
    "CLASS_PROBABILITY", "COCO_EDGES", "COCO_SIGMAS", "COCO_SWAPS", "Atoms", "Choice",
    "Classification", "DenseRegression", "Detection", "Flow", "KeyPoints", "Mixed",
    "MultiLabel", "Ordinal", "PointClassification", "Regression", "Segmentation", "Task",
    "Text", "Variable", "average_precision", "parse_input",
]  # fmt: skip
