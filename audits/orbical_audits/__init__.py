"""Published models, audited: one file a model in `models/`. See `audits/README.md`."""

from __future__ import annotations

import importlib
from pathlib import Path

from orbical.errors import check_name

from .audit import Audit, Outcome, Package, Picture, Table, loading
from .statistics import holm, interval, share
from .verdicts import Verdict

__all__ = [
    "Audit", "Outcome", "Package", "Picture", "Table", "Verdict", "find", "holm", "interval",
    "loading", "names", "share",
]  # fmt: skip


def names() -> list[str]:
    """Return the names of all audits: the files of the folder `models`."""
    files = (Path(__file__).parent / "models").glob("[!_]*.py")
    return sorted(path.stem for path in files)


def find(name: str) -> Audit:
    """Import one audit by its name; an unknown name is refused with the known ones.

    Example:
        >>> find("digits").title
        'The two digit networks of the demo'
    """
    check_name("NAME", name, names())
    return importlib.import_module(f"{__name__}.models.{name}").audit
