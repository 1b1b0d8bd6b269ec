"""What an audit declares, and what its run returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbical.errors import Interrupted, MissingExtra, ModelError

from .verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Tables = Mapping[str, Rows]
Size = Mapping[str, Any]
INTERVALS = "Intervals are 95 %, over samples."


@dataclass(frozen=True)
class Package:
    """A package that an audit needs, in the version that was audited.

    Attributes:
        name: As pip or npm know it.
        version: The version audited; the page says so if another was run.
        dependencies: False leaves its own requirements out, where its pins exclude the project's
            packages; list what it really needs as packages of their own.
        source: `pip`, or `npm` or `sdist` (the sources of a pip package, with its tests): these are
            unpacked, not installed, see `environment.unpacked`.
    """

    name: str
    version: str
    dependencies: bool = True
    source: str = "pip"


@dataclass(frozen=True)
class Table:
    """A table: its caption, and rows whose cells are words, numbers or intervals."""

    caption: str
    rows: Rows


@dataclass(frozen=True)
class Picture:
    """A figure, and the words for those who do not see it."""

    figure: Figure
    alt: str


@dataclass(frozen=True)
class Outcome:
    """What a run returns; the first picture stands for the audit on the first page."""

    tables: Mapping[str, Table]
    pictures: Mapping[str, Picture]


@dataclass(frozen=True)
class Audit:
    """One audited model, or a few checkpoints of one family.

    Texts are Markdown. `finding` and `confirmed` are jinja2 templates with the tables by their
    names, so that every number on the page comes from the results.

    Attributes:
        title: The model's name.
        question: One sentence.
        group: The transformations, in words.
        inputs: The samples, and where they come from.
        packages: What to install.
        license: Of code and weights.
        promise: What the authors promise, and where they do.
        promised: The same in a few words, for the table of all verdicts.
        rule: How the verdict is decided, written before the run.
        decide: The rule as a pure function: from the tables to the verdict of each checkpoint.
        finding: What was found, in two or three sentences.
        advice: What somebody who uses such a model does with the finding.
        confirmed: How the finding was confirmed in another way.
        sizes: `quick` (ten minutes on two cores) and `full`.
        run: `run(size, seed, folder)`; the folder keeps large files, among them `scan.zarr`.
        shown: The functions whose code the page shows; the run itself calls them.
        shareable: Why the inputs may be shown in a live report; empty if they may not.
        intervals: What the limits in parentheses are.
        main_table: The table that the page shows; the protocol shows all. Default: the first.
    """

    title: str
    question: str
    group: str
    inputs: str
    license: str
    promise: str
    promised: str
    rule: str
    decide: Callable[[Tables], dict[str, Verdict]]
    finding: str
    advice: str
    confirmed: str
    sizes: Mapping[str, Size]
    run: Callable[[Size, int, Path], Outcome]
    shown: tuple[Callable[..., Any], ...]
    packages: tuple[Package, ...] = field(default=())
    shareable: str = ""
    intervals: str = INTERVALS
    main_table: str = ""


def install_again(name: str) -> str:
    """Return the command that makes the environment of an audit anew, and runs the audit."""
    return f"rm -rf .audits/{name} && make audit NAME={name}"


@contextmanager
def loading(what: str, name: str) -> Iterator[None]:
    """Name the model whose weights do not load, and the remedy.

    >>> with loading("SevenNet-0", "sevennet"):
    ...     raise EOFError("ran out of input")
    Traceback (most recent call last):
        ...
    orbical.errors.ModelError: SevenNet-0: the weights do not load (EOFError: ran out of input); ...
    """
    try:
        yield
    except (Interrupted, MissingExtra):  # another installation would not help
        raise
    except Exception as error:
        raise ModelError(
            f"{what}: the weights do not load ({type(error).__name__}: {error}); install the "
            f"package again with: {install_again(name)}"
        ) from error
