"""A first look: a coarse scan of a few samples, then a finer one of more, behind the page."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._warnings import silent
from ...actions import Images
from ...data import ImageFiles, data_hash
from ...errors import InputError, Interrupted, OrbicalError, StoreError
from ...groups import as_group
from ...predictors import Predictor
from ...store import Json
from ...tasks import TASKS, Task, task_takes
from ..access import private_folder
from ..background import BackgroundPool
from .proposals import Proposal, full_command, proposed_groups
from .settings import NONE

if TYPE_CHECKING:
    from ..session import Session

REST_S = 0.4
"""How long the scan waits after the last request of the reader, who has precedence."""
LEAST_BETWEEN_S = 2.0
"""The least time between two updates of the page."""


class PreviewStatus:
    """The number of the current run, and what the page is told about it.

    A newer run ends an older one, which finds out at its next `check`.

    >>> status = PreviewStatus()
    >>> first, second = status.begin("scanning"), status.begin("scanning")
    >>> status.tell(first, share=0.5)
    >>> status.read()["share"]
    0.0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run = 0
        self._told: Json = {
            "phase": "scanning",
            "version": 0,
            "look": 0,
            "share": 0.0,
            "seconds_left": None,
            "sentence": "",
            "error": "",
        }

    def begin(self, phase: str, **news: object) -> int:
        """Begin a run, or end the current one without another; return its number."""
        with self._lock:
            self._run += 1
            self._told |= {"phase": phase, "error": "", "seconds_left": None, **news}
            return self._run

    def tell(self, number: int, **news: Any) -> None:
        """Note news of a run, unless it was ended."""
        with self._lock:
            if number == self._run:
                self._told |= news

    def shown(self, number: int, sentence: str, anew: bool) -> None:
        """Note that the page can show more; anew, if its plots must be made again."""
        with self._lock:
            if number == self._run:
                self._told["version"] += 1
                self._told["look"] += anew
                self._told["sentence"] = sentence

    def check(self, number: int) -> None:
        """Raise if a run was ended."""
        if number != self._run:
            raise Interrupted("stopped")

    def read(self) -> Json:
        """Return what the page is told."""
        with self._lock:
            return dict(self._told)

    @contextmanager
    def reported(self, number: int) -> Iterator[None]:
        """Report errors of a run to the page; one that was ended is left in silence."""
        try:
            yield
        except Interrupted:
            pass
        except Exception as error:  # shown in the page, which goes on
            text = str(error) if isinstance(error, OrbicalError) else repr(error)
            self.tell(number, phase="failed", error=text, seconds_left=None)


@dataclass
class PreviewRefinement:
    """The fine scan as it goes on: its share, the time left, and updates of the page.

    Attributes:
        status: what the page is told.
        number: the number of the run.
        unit: the evaluations of a unit.
        idle_s: returns how long ago the reader moved.
        update: shows the finished units; True the first time.
    """

    status: PreviewStatus
    number: int
    unit: int
    idle_s: Callable[[], float]
    update: Callable[[bool], None]

    def __post_init__(self) -> None:
        self._begun: tuple[float, int] | None = None
        self._rested = 0.0
        self._units, self._updated_at, self._updates = 0, time.monotonic(), 0

    def advance(self, done: int, total: int) -> None:
        """Let the reader go first; note progress; update the page when units are finished."""
        self._wait_for_reader()
        now = time.monotonic()
        self._begun = self._begun or (now, done)
        since, before = self._begun
        took = now - since - self._rested
        left = None if done <= before else (total - done) * took / (done - before)
        self.status.tell(self.number, share=done / total, seconds_left=left)
        units = (done - 1) // self.unit  # a unit is written after its last evaluation
        if units > self._units and now - self._updated_at > LEAST_BETWEEN_S:
            self._units, self._updated_at = units, now
            self.show()

    def show(self) -> None:
        """Update the page."""
        self.update(self._updates == 0)
        self._updates += 1

    def _wait_for_reader(self) -> None:
        start = time.monotonic()
        self.status.check(self.number)
        while self.idle_s() < REST_S:
            self.status.check(self.number)
            time.sleep(0.02)
        if self._begun is not None:
            self._rested += time.monotonic() - start


PREVIEW_SAMPLES = 120
FEWEST, MOST_FIRST = 4, 12
SECONDS_FOR_FIRST = 1.5
"""About how long the coarse scan may take, before the page can open."""
COARSE, FINE = 0, 1


class Preview:
    """The scans of a first look, one after the other, and how far they are.

    Args:
        models: the models as they were named, by name.
        predictors: the models.
        data: the data as they were named.
        proposal: how they are scanned.
        samples: how many samples are scanned at most.
        out: where the scan is saved; by default in the user's temporary folder.
        classes: the names of the classes as the command line had them.
    """

    def __init__(
        self,
        models: Mapping[str, str],
        predictors: Mapping[str, Predictor],
        data: str,
        proposal: Proposal,
        samples: int = PREVIEW_SAMPLES,
        out: Path | None = None,
        classes: str | None = None,
    ) -> None:
        self._classes = classes
        self._models, self._predictors, self._data = dict(models), dict(predictors), data
        self._samples, self._out = min(samples, len(proposal.source)), out
        self._status = PreviewStatus()
        self._session: Session | None = None
        self._pool = BackgroundPool(1, "first look")
        self._proposal = proposal
        given = proposal.source.stamp() or str(Path(data).absolute())
        known = (f"{name} {one.fingerprint() or one.source}" for name, one in predictors.items())
        self._identity = [*known, given]
        self._first_key = self._key()

    def open(self) -> Session:
        """Scan a few samples coarsely and return the session; then refine behind it."""
        number = self._status.begin("scanning")
        self._session, sentence = self._opened(self._coarse(number))
        self._session.preview = self
        self._status.tell(number, sentence=sentence)
        self._pool.submit(self._refine, number)
        return self._session

    def answer(self, message: Mapping[str, object]) -> Json:
        """Answer how far the scan is; with `settings` or `action`, change or stop it first."""
        changes, action = message.get("settings"), message.get("action")
        if changes is not None:
            if not isinstance(changes, Mapping):
                raise InputError("settings", "an object", repr(changes))
            self._change({str(name): str(value) for name, value in changes.items()})
        elif action == "stop":
            self._status.begin("stopped")
        elif action == "resume" and self._status.read()["phase"] == "stopped":
            self._pool.submit(self._refine, self._status.begin("scanning"))
        return {
            **self._status.read(),
            "settings": [one.as_json() for one in self._proposal.settings.values()],
            "command": self.command,
            "path": str(self.path),
            "total": self._samples,
        }

    @property
    def shown(self) -> dict[str, int]:
        """What the page can show: a number that grows with it, and one of its plots."""
        told = self._status.read()
        return {"version": told["version"], "look": told["look"]}

    @property
    def command(self) -> str:
        """The command that scans all samples."""
        return full_command(self._proposal, self._models, self._data, self._classes)

    @property
    def path(self) -> Path:
        """The path of the fine scan; with other settings than the first it has another."""
        key = self._key()
        if self._out is None:
            return _temporary() / f"look-{key}.zarr"
        if key == self._first_key:
            return self._out
        return self._out.with_name(f"{self._out.stem}-{key[:6]}{self._out.suffix}")

    def last_words(self) -> str:
        """Return what was found, where it is saved, and the command that repeats it in full."""
        told = self._status.read()
        done = "" if told["phase"] == "finished" else f" ({told['share']:.0%} done)"
        where = f"scan    {self.path}{done}   (the same command continues it)"
        return "\n".join([told["sentence"], where, f"in full {self.command}"])

    def close(self) -> None:
        """End the scan; finished units stay in the store."""
        phase = self._status.read()["phase"]
        self._status.begin("stopped" if phase == "scanning" else phase)
        self._pool.shutdown()

    def _change(self, changes: dict[str, str]) -> None:
        proposal = self._proposal.changed(changes)
        files = isinstance(proposal.source, ImageFiles)
        folders = TASKS[proposal["task"]].truth_kind == "class"
        if not folders and files and proposal["labels"] != NONE:
            proposal = proposal.changed({"labels": NONE})
        self._proposal = proposal
        self._pool.submit(self._again, self._status.begin("scanning", share=0.0, sentence=""))

    def _again(self, number: int) -> None:
        """Look again with other settings; the page keeps what it shows until there is more."""
        with self._status.reported(number):
            self._status.check(number)
            self._show(number, self._coarse(number), anew=True)
            self._refine(number)

    def _refine(self, number: int) -> None:
        assert self._session is not None
        path, session = self.path, self._session
        group = as_group(proposed_groups(self._proposal["group"])[FINE])
        with self._status.reported(number):
            self._status.check(number)
            unit = self._unit * len(group) * len(self._predictors)
            update = partial(self._show, number, path)
            refinement = PreviewRefinement(
                self._status, number, unit, lambda: session.idle_s, update
            )
            self._scan(FINE, path, None, refinement.advance)
            refinement.show()
            self._status.tell(number, phase="finished", share=1.0, seconds_left=None)

    def _coarse(self, number: int) -> Path:
        """Scan the first unit of a store with all samples, at the coarse group."""
        path = _temporary() / f"first-{self._key()}.zarr"
        units = -(-self._samples // self._unit)
        self._scan(COARSE, path, f"1/{units}", lambda *_: self._status.check(number))
        return path

    def _scan(
        self, level: int, path: Path, part: str | None, progress: Callable[[int, int], None]
    ) -> None:
        from ...scanning import scan

        proposal = self._proposal
        settings: Json = {
            "group": proposed_groups(proposal["group"])[level],
            "task": _task(proposal),
            "out": path,
            "keep": "inputs",
            "chunk": self._unit,
            "preprocess": proposal.preprocess,
            "part": part,
            "progress": progress,
        }
        run = partial(scan, self._predictors, proposal.chosen(self._samples), **settings)
        try:
            run()
        except StoreError:
            if path.parent != _temporary():  # a store that the user named is not replaced
                raise
            shutil.rmtree(path, ignore_errors=True)
            run()

    @property
    def _unit(self) -> int:
        """The samples of a unit: as many as can be scanned before the page opens."""
        size = len(as_group(proposed_groups(self._proposal["group"])[COARSE]))
        most = SECONDS_FOR_FIRST / max(self._proposal.seconds * size, 1e-6)
        return int(max(FEWEST, min(MOST_FIRST, most)))

    def _show(self, number: int, path: Path, anew: bool) -> None:
        """Let the page show the finished units of a scan."""
        assert self._session is not None
        session, sentence = self._opened(path)
        self._status.check(number)
        self._session.show(session)
        self._status.shown(number, sentence, anew)  # only now: the page asks at once

    def _opened(self, path: Path) -> tuple[Session, str]:
        """Open a scan, complete or not, and say in a sentence what was found."""
        from ...nero import headline
        from ...store import load
        from ..session import Session

        with silent():  # of a unit that is being written
            scan = load(path)
            name = Path(self._data).name or "look"
            session = Session({name: scan}, self._predictors, classes=self._proposal.classes)
        return session, headline(scan)

    def _key(self) -> str:
        """Return what distinguishes a look from others: models, data and settings."""
        values = [f"{name} {one.value}" for name, one in self._proposal.settings.items()]
        return data_hash([*self._identity, *values, str(self._samples)])


def _task(proposal: Proposal) -> Task:
    kind: Callable[..., Task] = TASKS[proposal["task"]]
    given: Json = {"outputs": proposal["outputs"], "classes": proposal.classes}
    if task_takes(proposal["task"], "size"):
        given |= {"input": Images(), "size": [*proposal.source.read(0, 1)[0].shape[-2:]]}
    return kind(**{name: one for name, one in given.items() if task_takes(proposal["task"], name)})


def _temporary() -> Path:
    """Return a folder of this user alone, the same each time, so that a look can be continued."""
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    folder = Path(tempfile.gettempdir()) / f"orbical{user}"
    if private_folder(folder) is None:
        expected = f"{str(folder)!r} to be a folder of yours alone"
        raise InputError("out", expected, remedy="pass --out FOLDER")
    return folder
