"""The record of a scan: what was scanned, by which models, and how. Typed, and versioned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np

Json = dict[str, Any]
"""An object of JSON: texts, numbers, lists and further objects by name."""
FORMAT = 6
_PROBE_TOLERANCE = 1e-3

_MOST_MODELS = 10_000
MOST_UNITS = 1_000_000
"""Of a model: more would be more files than a folder should have."""


@dataclass(frozen=True)
class TaskEntry:
    """A task as `Task.describe` writes it; `Task.from_record` makes the task again."""

    name: str
    input: Json
    output: Json
    read: str | None
    settings: Json


@dataclass(frozen=True)
class ScoreEntry:
    """What the score of the task means."""

    meaning: str
    unit: str
    higher_is_better: bool
    invariant: bool


@dataclass(frozen=True)
class ViewsEntry:
    """The views that an interactive display uses for inputs and outputs."""

    input: str
    detail: str


@dataclass(frozen=True)
class GroupEntry:
    """The group, by its text and a hash of its elements."""

    spec: str
    fingerprint: str


@dataclass(frozen=True)
class DataEntry:
    """The data, by what identifies them without reading them all.

    Attributes:
        samples: their number.
        labeled: whether they have targets.
        first: a hash of the first samples.
        stamp: a hash of the names, sizes and times of files, if the data are in files.
        fingerprint: the text that the user gave to identify the data, if any.
    """

    samples: int
    labeled: bool
    first: str
    stamp: str | None
    fingerprint: str | None

    def contradicts(self, other: DataEntry) -> bool:
        """Check whether two data sets differ for sure, by what is known without reading them."""
        mine, its = ((entry.samples, entry.labeled, entry.first) for entry in (self, other))
        named = None not in (self.fingerprint, other.fingerprint)
        return mine != its or (named and self.fingerprint != other.fingerprint)

    def confirms(self, other: DataEntry) -> bool:
        """Check whether two data sets are the same for sure, without reading them.

        Their fingerprint was given and is the same, or the names, sizes and times of their files.
        """
        named = self.fingerprint is not None and self.fingerprint == other.fingerprint
        return named or (self.stamp is not None and self.stamp == other.stamp)


@dataclass(frozen=True)
class ModelEntry:
    """A model: its name, its origin, a hash of its weights, and its outputs on a few inputs."""

    name: str
    source: str
    fingerprint: str | None
    deterministic: bool
    probe: list[float]

    def is_known_not_to_be(self, fingerprint: str | None) -> bool:
        """Check whether a fingerprint is of other weights; functions have none."""
        return bool(self.fingerprint and fingerprint and self.fingerprint != fingerprint)

    def reproduced_by(self, outputs: Sequence[float] | np.ndarray) -> bool:
        """Check whether outputs on the same few inputs are those of the model, up to rounding.

        Small outputs are compared by the largest of them. Large ones are not, each is by its own
        size: coordinates of boxes would hide their scores, and energies the forces.
        """
        known, given = np.asarray(self.probe), np.asarray(outputs)
        if known.shape != given.shape:
            return False
        size = min(1.0, np.abs(known).max(initial=0.0))
        return np.allclose(given, known, rtol=_PROBE_TOLERANCE, atol=_PROBE_TOLERANCE * size)


@dataclass(frozen=True)
class RunEntry:
    """How the scan is run. A resumed run with the same settings gives the same bits."""

    device: str
    threads: int
    batch_size: int
    chunk: int


@dataclass(frozen=True)
class Record:
    """What was scanned, by which models, and how; `run_id` is that of no other scan."""

    run_id: str
    created: str
    versions: dict[str, str]
    task: TaskEntry
    score: ScoreEntry
    views: ViewsEntry
    group: GroupEntry
    data: DataEntry
    models: tuple[ModelEntry, ...]
    keep: list[str]
    preprocess: str | None
    run: RunEntry
    format: int = FORMAT

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return [entry.name for entry in self.models]

    @property
    def chunks(self) -> int:
        """The number of chunks that the samples are divided into."""
        return -(-self.data.samples // self.run.chunk)

    def rows(self, chunk: int) -> slice:
        """Return the samples of a chunk."""
        start = chunk * self.run.chunk
        return slice(start, min(start + self.run.chunk, self.data.samples))

    def origin(self, model: int | None) -> str:
        """Return a hash of this scan and a model, which the units of both carry.

        Units of another scan of the same layout, or of another model in the same place, would
        otherwise pass for theirs.
        """
        entry = None if model is None else asdict(self.models[model])
        text = json.dumps([self.run_id, entry], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def to_json(self) -> Json:
        """Return the record as plain dictionaries, lists, text and numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Json) -> Record:
        """Read what `to_json` wrote; anything else raises one of Python's own errors."""
        given = {one.name: record[one.name] for one in fields(cls)}
        for name, kind in get_type_hints(cls).items():
            if isinstance(kind, type) and is_dataclass(kind):
                given[name] = kind(**given[name])
        given["models"] = tuple(ModelEntry(**entry) for entry in given["models"])
        read = cls(**given)
        sizes = (read.data.samples, read.run.chunk, read.run.batch_size, len(read.models))
        if not all(type(size) is int and size > 0 for size in sizes) or read.chunks > MOST_UNITS:
            raise ValueError("its sizes are impossible")
        if len(read.models) > _MOST_MODELS:
            raise ValueError("it has too many models")
        return read
