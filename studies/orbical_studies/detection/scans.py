"""The detection study's results as they are stored: summaries of all, whole scans of one seed."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np

from orbical.datasets.key_objects import KeyObjects
from orbical.errors import InputError
from orbical.groups import Group, translations

from ..pages import Row
from ..trials import FILE, read_lines
from .material import first_objects, split, test_views
from .settings import JITTERS, RADIUS, WHOLE, Trial, complete_seeds, trials
from .summaries import Array, Summary


@dataclass(frozen=True)
class Results:
    """What was trained, scanned and measured.

    Attributes:
        summaries: of each training, by level and seed; every seed has all levels.
        trained: rows of all trainings, those of seeds that lack a level too: steps, loss, time.
    """

    summaries: dict[Trial, Summary]
    trained: list[Row]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read what `train` wrote."""
        rows = sorted(read_lines(folder / FILE), key=lambda row: (row["seed"], row["jitter"]))
        seeds = complete_seeds(rows)
        if WHOLE not in seeds:
            found = {row["name"] for row in rows}
            lacking = [name for name in map(str, trials(WHOLE + 1)) if name not in found]
            raise InputError(
                f"results: {', '.join(lacking)} not found in {str(folder)!r}; make it with "
                "`orbical study detection train`"
            )
        whole = [Trial(jitter, seed) for seed in seeds for jitter in JITTERS]
        summaries = {trial: Summary.read(folder / trial.summary) for trial in whole}
        shapes = {(len(one.score), len(one.labels)) for one in summaries.values()}
        if len(shapes) > 1:
            raise InputError(
                f"results: summaries of {sorted(shapes)} shifts and key objects given, as many "
                "of each in every training expected"
            )
        return cls(summaries, rows)

    @property
    def seeds(self) -> list[int]:
        """The seeds of which all levels are there."""
        return list(dict.fromkeys(trial.seed for trial in self.summaries))

    def of(self, jitter: int) -> list[Summary]:
        """Give the summaries of one level, one for each seed."""
        return [self.summaries[Trial(jitter, seed)] for seed in self.seeds]

    @cached_property
    def group(self) -> Group:
        """The shifts."""
        return translations(RADIUS, self.of(JITTERS[0])[0].step_px)


@dataclass(frozen=True)
class WholeScans:
    """The whole scans of one seed, for plots of single objects.

    Attributes:
        scans: jitter in percent to variables by name.
        data: the key objects.
        group: the shifts.
        folder: where the results lie.
    """

    scans: dict[int, dict[str, Array]]
    data: KeyObjects
    group: Group
    folder: Path

    @classmethod
    def read(cls, folder: Path, group: Group, data: KeyObjects | None = None) -> WholeScans:
        """Read them; the key objects from the data set where they are not given."""
        scans = {}
        for jitter in JITTERS:
            content = member(folder, jitter, "npz")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                scans[jitter] = {name: arrays[name].astype(np.float32) for name in arrays.files}
        data = test_views(split()["test"]) if data is None else data
        shapes = {scan["iou"].shape for scan in scans.values()}
        objects, shifts = max(shapes)
        if len(shapes) > 1 or objects > len(data["images"]) or shifts != len(group):
            raise InputError(
                f"results: scans of {sorted(shapes)} key objects and shifts given, at most "
                f"{len(data['images'])} objects at {len(group)} shifts expected at every level"
            )
        return cls(scans, first_objects(data, objects), group, folder)

    def score(self, jitter: int) -> Array:
        """IoU x confidence of every key object at every shift, `[n, K]`."""
        scan = self.scans[jitter]
        return scan["iou"] * scan["match_confidence"]

    @property
    def side(self) -> int:
        """Shifts along one side of the heat map."""
        return round(len(self.group) ** 0.5)


def member(folder: Path, jitter: int, suffix: str) -> bytes:
    """Read one file of a level's archive."""
    trial = Trial(jitter, WHOLE)
    path = folder / trial.archive
    if not path.is_file():
        raise InputError(
            f"results: there is no file {path.name!r} in {str(folder)!r}; make it with "
            f"`orbical study detection train --only {trial}`"
        )
    with tarfile.open(path) as archive:
        stream = archive.extractfile(f"{trial.level}.{suffix}")
        if stream is None:
            raise InputError(f"results: {path.name!r} holds no .{suffix}")
        return stream.read()
