"""What a study is made of."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .results import Results
from .settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Step = Callable[[Any, Results], None]


def deferred(path: str) -> Step:
    """Return a step that is imported when it runs, as its module may need packages others do not.

    Args:
        path: `package.module:function`.

    Example:
        >>> deferred("builtins:print")("settings", "results")
        settings results
    """
    return partial(_run, path)


def _run(path: str, settings: Any, results: Results) -> None:
    module, _, name = path.partition(":")
    getattr(importlib.import_module(module), name)(settings, results)


def deferred_steps(package: str, paths: Mapping[str, str]) -> dict[str, Step]:
    """Return the steps of a study's package, each imported when it runs.

    Args:
        package: Import path.
        paths: Name of a step to `module:function`, a module of the package.
    """
    return {name: deferred(f"{package}.{path}") for name, path in paths.items()}


@dataclass(frozen=True)
class Study:
    """A study: its settings, its steps, and the module that reports on its results.

    Args:
        name: As the command line and the files know it.
        description: What `--help` begins with, usually the package's docstring.
        settings: The default settings.
        steps: Name to function, in the order in which they run; each takes `(settings, results)`
            and writes tables with `results.write` or large files into `results.work`.
        report: Import path of the module with the functions `facts(results)` and, if the page
            shows figures, `figures(results)`. It is imported only to write the page.
        palette: Number of colors of the stored figures, at most 256; None stores all.
    """

    name: str
    description: str
    settings: Settings
    steps: Mapping[str, Step]
    report: str
    palette: int | None = None

    def facts(self, results: Results) -> dict[str, Any]:
        """Return what the page's template refers to: numbers, series, data frames, functions."""
        return dict(importlib.import_module(self.report).facts(results))

    def figures(self, results: Results) -> Iterator[tuple[str, Figure]]:
        """Draw the figures one by one, each with its file name, in the style of orbical."""
        from orbical.figures import styled

        with styled():
            draw = getattr(importlib.import_module(self.report), "figures", None)
            yield from draw(results) if draw else ()
