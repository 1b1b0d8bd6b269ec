"""Actions and tasks made again from their description in the record of a scan.

Only orbical's own classes are made, by name: a record may come from anywhere, and nothing it names
is ever imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .. import actions
from ..actions import Action, as_action
from ..errors import InputError
from ..tasks import TASKS, Task
from ..tasks.base import Reader


def remake_action(described: Mapping[str, Any]) -> Action:
    """Make an action from what its `describe` gave.

    >>> remake_action(actions.Window(32).describe()).size
    32
    """
    name = described.get("action")
    if name == "Fields":
        return as_action(_fields(described["fields"]))
    kind = getattr(actions, str(name), None) if name in actions.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Action)) or kind is Action:
        raise InputError(f"action: {name!r} is none of orbical's own; give the task itself")
    return kind(**_settings(kind, described))


def _fields(described: Any) -> Any:
    if isinstance(described, Mapping) and "action" in described:
        return remake_action(described)
    if isinstance(described, Mapping):
        return {key: _fields(part) for key, part in described.items()}
    return tuple(_fields(part) for part in described)


def remake_task(described: Mapping[str, Any], read: Reader | None = None) -> Task:
    """Make a task from what its `describe` gave.

    Without the reader it had, it can move, score and show what is stored; only to read a model's
    raw answer is refused, by the reader's name.

    >>> from orbical.tasks import Classification
    >>> remake_task(Classification(outputs="probabilities").describe())
    Classification(outputs='probabilities')
    """
    name = str(described.get("task"))
    if name not in TASKS:
        raise InputError(f"task: {name!r} is none of orbical's own; give the task itself")
    if read is None and had_reader(described):
        read = _refuser(described)
    kind: Any = TASKS[name]
    given = _settings(kind, described)
    known = inspect.signature(kind.__init__).parameters
    given |= {"input": remake_action(described["input"]), "read": read}
    if "representation" in known:
        given["representation"] = remake_action(described["output"])
    if "interpolation" in known and "interpolation" in described["output"]:
        given["interpolation"] = described["output"]["interpolation"]
    task: Task = kind(**{key: value for key, value in given.items() if key in known})
    if task.describe() != {**described, "read": task.describe()["read"]}:
        raise InputError(f"task: {name!r} has settings that its record does not hold")
    return task


def had_reader(described: Mapping[str, Any]) -> bool:
    """Whether a task read answers by a function of one's own, which no record can hold."""
    return described.get("read") is not None


def reader_wanted(described: Mapping[str, Any]) -> str:
    """Say which reader must be given for models to be asked."""
    return f"outputs were read by {described['read']}; give it as read"


def _refuser(described: Mapping[str, Any]) -> Reader:
    """Give what stands in the place of a reader that is not at hand."""

    def refuse(raw: Any) -> Any:
        raise InputError(f"task: {reader_wanted(described)}")

    return refuse


def _settings(kind: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    """Take from a description what the constructor asks for."""
    known = inspect.signature(kind.__init__).parameters
    return {key: value for key, value in described.items() if key in known and key not in ("read",)}
