"""Arguments that several commands share: models, data and functions, named on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._imports_and_paths import as_path, existing_file, import_attribute, import_module, reading
from .._text import counted
from .._warnings import warn
from ..errors import InputError, OrbicalError, unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..datasets import KeyObjects
    from ..store import Scan
    from ..tasks import Task


Options = dict[str, Any]
"""Options by the names of the arguments that they set."""


def path_or_url(text: str) -> Path:
    """Read the path of a scan or of a file; a URL names a remote scan.

    >>> path_or_url("run.zarr").name
    'run.zarr'
    """
    try:
        return as_path("path", text) if "://" in text else Path(text)
    except InputError as error:
        raise typer.BadParameter(error.problem) from error  # which names the option


def open_scan(path: Path) -> Scan:
    """Open a saved scan, and warn if it is unfinished."""
    from ..store import load

    scan = load(path)
    if not scan.complete:
        warn(scan.caveat)
    return scan


@contextmanager
def arguments_named_as_options(**options: str) -> Iterator[None]:
    """Let errors about an argument of Python name the option that sets it.

    >>> with arguments_named_as_options(path="--figure"):
    ...     raise InputError("path", "a name", "none")
    Traceback (most recent call last):
    orbical.errors.InputError: --figure: expected a name, got none
    """
    try:
        yield
    except InputError as error:
        raise error.about(options.get(error.argument, error.argument)) from error


def save_figure(fig: Figure, path: Path, option: str) -> None:
    """Save the figure of an option."""
    from ..figures import save

    announce_folder(path)
    with arguments_named_as_options(path=option):
        save(fig, path)


Store = Annotated[
    Any,  # older versions of typer would make a local path of a URL
    typer.Argument(
        parser=path_or_url,
        metavar="STORE",
        help="A saved scan, such as run.zarr or s3://bucket/run.zarr.",
    ),
]
Data = Annotated[str | None, typer.Option("--data", "-d")]
Models = Annotated[list[str] | None, typer.Option("--model", "-m", metavar="NAME=SOURCE")]
Names = Annotated[str | None, typer.Option(metavar="NAMES")]
Overwrite = Annotated[bool, typer.Option("--overwrite")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q")]
Seed = Annotated[int, typer.Option(min=0)]
Size = Annotated[
    str | None,
    typer.Option(help="For images in files, as for the scan: PIXELS or HEIGHTxWIDTH."),
]
Unlabeled = Annotated[bool, typer.Option("--unlabeled")]


def number_or_text(text: str) -> int | str:
    """Read an option that is a number or a word, such as `auto`.

    >>> number_or_text("8"), number_or_text("auto")
    (8, 'auto')
    """
    return int(text) if text.isdigit() else text


NumberOrAuto = Annotated[Any, typer.Option(parser=number_or_text, metavar="NUMBER|auto")]
Out = Annotated[Any, typer.Option("--out", "-o", parser=path_or_url, metavar="FOLDER")]
Read = Annotated[
    str | None, typer.Option(help="package.module:function that converts raw outputs for the task.")
]
Preprocess = Annotated[
    str | None,
    typer.Option(
        help="What is applied to transformed batches before the models: package.module:function, "
        "or for images names such as imagenet,bgr,nhwc: unit, bytes, symmetric or imagenet; rgb, "
        "bgr, gray or color (gray images in three channels); nchw or nhwc."
    ),
]


def _import_all(modules: list[str] | None) -> list[str] | None:
    for name in modules or []:
        import_module(name, "--import")
    return modules


Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        callback=_import_all,
        help="Import this module first, such as one that registers your own measures or groups. "
        "It runs its code. Repeatable.",
    ),
]
OwnTask = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="SOURCE", help="package.module:attribute of the task, if it is your own."
    ),
]


def models_from_option(models: Sequence[str], argument: str = "--model") -> dict[str, str]:
    """Return models by name: `NAME=SOURCE`, or the name of the file or of the attribute.

    >>> models_from_option(["a=mine.nets:net", "mine.nets:other()"])
    {'a': 'mine.nets:net', 'other': 'mine.nets:other()'}
    >>> models_from_option(["nets/plain.onnx"])
    Traceback (most recent call last):
    orbical.errors.InputError: --model: expected a file, got 'nets/plain.onnx', which does not exist
    """
    from ..predictors import model_path

    named: dict[str, str] = {}
    for text in models:
        name, _, source = text.rpartition("=")
        path = model_path(source)
        if path is None and ":" not in source:
            raise InputError(
                argument,
                "a file ending in .onnx, .tflite, .pt2, .pt or .gguf, a folder of save_pretrained, "
                "http://host/v1#model or package.module:attribute, optionally as NAME=SOURCE",
                repr(text),
            )
        if path is not None and not path.is_dir():
            existing_file(argument, path)
        own = path.stem if path else source.rpartition(":")[2].removesuffix("()")
        name = name or own
        if name in named:
            remedy = "name them as NAME=SOURCE"
            raise InputError(argument, "each name once", f"{name!r} twice", remedy=remedy)
        named[name] = source
    return named


def check_out_is_free(out: Path, overwrite: bool) -> None:
    """Refuse to replace a file that was not made to be replaced."""
    if out.exists() and not overwrite:
        raise InputError("--out", "a free name", repr(str(out)), remedy="pass --overwrite")


def announce_folder(path: Path | None) -> None:
    """Print that the folder of a file or of a scan will be made, if there is none."""
    from ..store import is_remote

    if path is not None and not is_remote(path) and not path.parent.exists():
        typer.echo(f"folder  {path.parent}   (new)", err=True)


def reader_from_option(text: str | None) -> Any:
    """Import the function of `--read`; return None if nothing is given."""
    return None if text is None else import_attribute(text, "--read")


def own_task(text: str | None) -> Task | None:
    """Import a task of one's own, a class or an object; return None if nothing is given."""
    from ..tasks import Task

    if text is None:
        return None
    found = import_attribute(text, "--task")
    if isinstance(found, type) and not text.endswith("()"):
        found = import_attribute(f"{text}()", "--task")
    if not isinstance(found, Task):
        raise InputError("--task", "a task", f"{text!r}, a {type(found).__name__}")
    return found


def task_of_scan(scan: Scan, own: str | None, read: str | None) -> Task:
    """Return a task of one's own, otherwise that of the record of a scan."""
    from ..tasks import Task

    reader = reader_from_option(read)
    return own_task(own) or Task.from_record(asdict(scan.record.task), reader)


def data_of_scan(scan: Scan, source: str, task: Task, size: str | None) -> object:
    """Load the data of a scan; refuse others, by their number and their first samples."""
    from ..data import Samples
    from ..scanning import describe_data

    data = load_data(source, **image_options(size))
    known, given = scan.record.data, describe_data(Samples(task.take(data)))
    if (known.samples, known.first) != (given.samples, given.first):
        expected = f"the data of the scan, {counted(known.samples, 'sample')} [{known.first}]"
        got = f"{counted(given.samples, 'sample')} [{given.first}]"
        raise InputError("--data", expected, got)
    return data


def task_options(task: str, given: Options, option: str = "") -> Options:
    """Return the options that were given, and refuse those that the task does not have.

    `option` is the name on the command line, if it is not that of the argument.

    >>> task_options("text", {"length": 20, "score": None})
    {'length': 20}
    """
    from ..tasks import TASKS, task_takes

    takers = {
        name: [key for key in TASKS if task_takes(key, name)]
        for name, value in given.items()
        if value is not None
    }
    for name, known in takers.items():
        if task not in known:
            written = option or f"--{name.replace('_', '-')}"
            remedy = f"it is an option of {', '.join(known)}"
            raise InputError(written, f"none for the task {task}", repr(given[name]), remedy=remedy)
    return {name: given[name] for name in takers}


def load_data(text: str | None, **images: object) -> object:
    """Read a data set: a path, an import path, a COCO folder or a built-in name; None for None."""
    return None if text is None else load_data_and_classes(text, **images)[0]


def load_data_and_classes(text: str, **images: object) -> tuple[object, list[str] | None]:
    """Read a data set and, if it has them, the names of its classes.

    `images` are options for images in files: `size`, `unreadable` and the columns of a table.
    """
    from ..data import open_path
    from ..datasets import BUILT_IN, molecules
    from ..tasks import STRUCTURE_SUFFIXES

    if text.startswith("coco:"):
        found = _coco_from_argument(text)
        return (found["images"], found["objects"]), found["classes"]
    if text in BUILT_IN:
        return BUILT_IN[text](), None
    if text.lower().endswith(STRUCTURE_SUFFIXES):
        return molecules(text), None
    if _is_path(text):
        with arguments_named_as_options(**_OPTIONS):
            return open_path(text, **images), None
    if ":" in text:
        return _data_from_argument(text), None
    raise InputError(
        "--data",
        f"a file, a folder, package.module:attribute or one of {', '.join(sorted(BUILT_IN))}",
        f"{text!r}, which does not exist",
        remedy=unknown_name("--data", text, BUILT_IN).remedy,
    )


def is_image_argument(text: str) -> bool:
    """Check whether a data set is a folder or a table of images, which names its own classes.

    >>> is_image_argument("photos/"), is_image_argument("photos.npz"), is_image_argument("digits")
    (True, False, False)
    """
    from ..data import ARRAY_SUFFIXES
    from ..tasks import STRUCTURE_SUFFIXES

    kept = (*ARRAY_SUFFIXES, ".zarr", *STRUCTURE_SUFFIXES)
    return _is_path(text) and not text.lower().endswith(kept) and not text.startswith("coco:")


def _is_path(text: str) -> bool:
    from ..data import SUFFIXES

    return text.lower().endswith(SUFFIXES) or "/" in text or Path(text).expanduser().exists()


_SAME = ("data", "size", "unreadable", "classes", "columns", "root")
_OPTIONS = {name: f"--{name}" for name in _SAME}
_OPTIONS |= {"path": "--path-column", "label": "--label-column", "labeled": "--unlabeled"}


def image_options(
    size: str | None,
    unreadable: str | None = None,
    path_column: str | None = None,
    label_column: str | None = None,
    columns: str | None = None,
    classes: str | None = None,
    root: str | None = None,
    unlabeled: bool = False,
) -> Options:
    """Return the options of images that were given, as the sources take them.

    >>> image_options("224", None, "file"), image_options("224x320", "skip")
    ({'size': 224, 'path': 'file'}, {'size': (224, 320), 'unreadable': 'skip'})
    """
    sides = [] if size is None else size.lower().split("x")
    if len(sides) > 2 or not all(side.isdigit() and int(side) for side in sides):
        raise InputError("--size", "PIXELS or HEIGHTxWIDTH", repr(size))
    pixels = tuple(int(side) for side in sides)
    given = {
        "size": pixels[0] if len(pixels) == 1 else pixels or None,
        "unreadable": unreadable,
        "path": path_column,
        "label": label_column,
        "columns": None if columns is None else _separated(columns),
        "classes": names_from_option(classes, "--classes"),
        "root": root,
        "labeled": False if unlabeled else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _separated(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def names_from_option(text: str | None, option: str) -> list[str] | None:
    """Return names from a text file, one for each line, or separated by commas; None for None.

    >>> names_from_option("cat, dog", "--classes"), names_from_option(None, "--classes")
    (['cat', 'dog'], None)
    """
    if text is None:
        return None
    path = Path(text) if "," in text or not text else as_path(option, text)
    if not path.is_file():
        if "," not in text and ("/" in text or path.suffix):
            expected = "a text file with one name a line, or names separated by commas"
            raise InputError(option, expected, f"{text!r}, which is not a file")
        return _separated(text)
    with reading(option, text, "text"):
        return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]


def _data_from_argument(text: str) -> object:
    """Import a data set, or call the function that returns it."""
    found = import_attribute(text, "--data")
    if not callable(found) or hasattr(found, "shape"):
        return found
    try:
        return found()
    except OrbicalError:
        raise
    except Exception as error:
        problem = f"{text} raised {type(error).__name__}: {error}"
        raise InputError("--data", problem=problem) from error


def _coco_from_argument(text: str) -> KeyObjects:
    """Read the key objects of `coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS`."""
    from ..datasets import coco

    folder, *settings = text.removeprefix("coco:").split(":")
    numbers = settings[:2]
    if len(settings) > 3 or not all(number.isdigit() for number in numbers):
        expected = "coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS, of which the last parts are optional"
        raise InputError("--data", expected, repr(text))
    classes = settings[2].split(",") if len(settings) == 3 else None
    return coco(folder, classes, *(int(number) for number in numbers))


def key_points_from_option(task: str, text: str | None) -> Options:
    """Return settings of the task of key points from text such as `64x48:1-2,3-4`.

    >>> key_points_from_option("key_points", "64x48:1-2")
    {'size': (64, 48), 'swaps': [(1, 2)]}
    """
    if text is None:
        return {}
    task_options(task, {"swaps": text}, "--points")
    sides, _, pairs = text.partition(":")
    try:
        height, width = map(int, sides.split("x"))
        if pairs == "coco":
            from ..tasks import COCO_EDGES, COCO_SIGMAS, COCO_SWAPS

            named = {"swaps": COCO_SWAPS, "sigmas": COCO_SIGMAS, "edges": COCO_EDGES}
            return {"size": (height, width), **named}
        swaps = [] if pairs == "none" else [pair.split("-") for pair in pairs.split(",") if pair]
        found: Options = {"size": (height, width)}
        if pairs:
            found["swaps"] = [(int(first), int(second)) for first, second in swaps]
    except ValueError:
        expected = "HEIGHTxWIDTH, optionally with :PAIRS, such as 64x48:1-2,3-4"
        raise InputError("--points", expected, repr(text)) from None
    return found
