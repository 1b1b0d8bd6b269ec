"""The first page of the studies: a picture of each, and every item of the three papers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from . import INDEX, STUDIES
from . import study as load
from .framework import Results, Settings, Study


def facts(results: Results) -> dict[str, Any]:
    """Return the facts of every study under its name, with underscores."""
    folder = results.folder.parent
    return {
        name.replace("-", "_"): SimpleNamespace(**load(name).study.facts(Results(folder / name)))
        for name in STUDIES
    }


study = Study(INDEX, __doc__, Settings(), {}, __name__)
