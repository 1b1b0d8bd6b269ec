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

    @classmethod
    def of_package(
        cls, package: str, name: str, settings: Settings, steps: Mapping[str, str], **look: Any
    ) -> Study:
        """Return the study of a package, described by its docstring, with the module `report`.

        Args:
            package: Import path.
            name: As the command line and the files know it.
            settings: The default settings.
            steps: Name to `module:function`, a module of the package that is imported when the step
                runs, as it may need packages that others do not.
            look: `palette`, the number of colors of the stored figures.

        Example:
            >>> study = Study.of_package("json", "texts", Settings(), {"read": "decoder:scan"})
            >>> study.report, *study.steps
            ('json.report', 'read')
        """
        description = str(importlib.import_module(package).__doc__)
        deferred = {step: partial(_run, f"{package}.{path}") for step, path in steps.items()}
        return cls(name, description, settings, deferred, f"{package}.report", **look)

    def facts(self, results: Results) -> dict[str, Any]:
        """Return what the page's template refers to: numbers, series, data frames, functions."""
        return dict(importlib.import_module(self.report).facts(results))

    def figures(self, results: Results) -> Iterator[tuple[str, Figure]]:
        """Draw the figures one by one, each with its file name, in the style of orbical."""
        from orbical.figures import styled

        with styled():
            draw = getattr(importlib.import_module(self.report), "figures", None)
            yield from draw(results) if draw else ()


def _run(path: str, settings: Any, results: Results) -> None:
    module, _, name = path.partition(":")
    getattr(importlib.import_module(module), name)(settings, results)
