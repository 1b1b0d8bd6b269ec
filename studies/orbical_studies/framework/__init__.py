"""The framework that all studies share: settings, results, pages and one command.

Importing it loads neither torch, pandas, jinja2 nor matplotlib, so that a training step runs on a
machine that has only torch and NumPy.
"""

from __future__ import annotations

from .formatting import count, fixed, number, percent, spread, table, verdict
from .paths import Paths
from .results import Results, rows_of, where
from .settings import Settings, TrainingSettings, option
from .study import Study

__all__ = [
    "Paths", "Results", "Settings", "Study", "TrainingSettings", "count", "fixed", "number",
    "option", "percent", "rows_of", "spread", "table", "verdict", "where",
]  # fmt: skip
