"""`orbical view`: open the interactive view of a scan in the browser."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data import read_npy
from ..errors import InputError
from . import arguments

if TYPE_CHECKING:
    from ..interface import Session

_EXPOSED = (
    "Anyone with the link and its token can then view the scan and run your models; the connection "
    "is not encrypted."
)


def view(
    what: Annotated[list[str], typer.Argument(metavar="STORE... | MODEL... DATA")],
    model: arguments.Models = None,
    data: arguments.Data = None,
    size: arguments.Size = None,
    unreadable: str | None = None,
    unlabeled: arguments.Unlabeled = False,
    orbits: Path | None = None,
    worst: Path | None = None,
    classes: arguments.Names = None,
    names: str | None = None,
    preprocess: arguments.Preprocess = None,
    read: arguments.Read = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    expose: Annotated[bool, typer.Option("--expose")] = False,
    allow_origin: Annotated[
        list[str] | None, typer.Option("--allow-origin", metavar="ORIGIN")
    ] = None,
    browser: bool = True,
    task: arguments.OwnTask = None,
    group: Annotated[str | None, typer.Option("--group", "-g")] = None,
    samples: Annotated[int | None, typer.Option(min=4)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FOLDER")] = None,
    imports: arguments.Import = None,
) -> None:
    """Open the view of a scan, or take a first look at a model.

    \b
    orbical view run.zarr
    orbical view run.zarr --model net=mine.nets:net
    orbical view before.zarr after.zarr
    orbical view model.onnx photos/

    With models, dragging along the orbit evaluates them between the scanned elements; without
    models, it snaps to the scanned elements. If you pass models and data instead of a scan, a few
    images are scanned before the page opens, and more while you look. The page shows which settings
    were guessed, and you can change them there.

    Args:
        what: Saved scans, or folders of them; a menu chooses one. For a first look: models, each a
            file.onnx, a file.tflite, a file.pt2, a folder written by transformers' save_pretrained
            or package.module:attribute, optionally as NAME=SOURCE, and last the data, a folder of
            images or an .npz file.
        model: A model to run live; repeat for more. NAME is its name in the scan. SOURCE is
            package.module:attribute (a trailing () calls it), a file.onnx or a file.pt2. Import
            paths, .pt2 and .pt files run their author's code: use only what you trust.
        data: The inputs, if they are not in the scan, as for the scan: a folder of images, a table,
            an .npz file, package.module:attribute, or a built-in name.
        unreadable: For images in files that cannot be decoded: raise (default) or skip.
        unlabeled: For a folder of images: its subfolders are not classes.
        orbits: An .npy file with the orbit of each sample, as an integer, for bounds.
        worst: A file of orbical worst-case, to mark on the orbit plots.
        classes: The names of the classes in their order: a text file with one per line, or names
            separated by commas. Default: those of the scan. For a first look: of all classes of the
            model.
        names: The names of the samples in their order, likewise; for a saved scan.

    First look:
        group: The symmetry group. Default: rotations.
        samples: The number of samples. Default: 120.
        out: Save the scan here. Default: a temporary folder.

    Server:
        port: The port. Default: the first free one from 8420.
        host: The address to listen on.
        expose: Allow an address that others can reach. {exposed}
        allow_origin: Accept pages from this origin, such as https://hub.example.org for a
            JupyterHub proxy. Repeatable.
        browser: Open the page in a browser.
    """
    from ..interface import check_host

    check_host(host, expose)
    if len(what) > 1 and not _names_a_scan(what[0]):
        kinds = ("a first look", "a saved scan, orbical view run.zarr")
        live = " ".join(model or []) or None
        _refuse(kinds, model=live, data=data, orbits=orbits, worst=worst, names=names, read=read)
        given = {"group": group, "task": task, "preprocess": preprocess, "classes": classes}
        pictures = arguments.image_options(size, unreadable, classes=classes, unlabeled=unlabeled)
        arguments.announce_folder(out)
        session = first_look_of_view_command(what[:-1], what[-1], given, pictures, samples, out)
    else:
        from ..interface import open_session
        from ..predictors import model_path

        if model_path(what[0]) is not None:
            expected = "a folder of images or an .npz file after the model"
            raise InputError("DATA", expected, f"only {what[0]!r}")
        kinds = ("a saved scan", "a first look, orbical view model.onnx photos/")
        _refuse(kinds, group=group, samples=samples, out=out)
        pictures = arguments.image_options(size, unreadable, unlabeled=unlabeled)
        session = open_session(
            [arguments.path_or_url(one) for one in what],
            arguments.models_from_option(model or []),
            arguments.load_data(data, **pictures),
            task=arguments.own_task(task),
            preprocess=preprocess,
            read=arguments.reader_from_option(read),
            orbits=None if orbits is None else read_npy(orbits, "--orbits"),
            worst=worst,
            classes=arguments.names_from_option(classes, "--classes"),
            names=arguments.names_from_option(names, "--names"),
        )
    from ..interface import Server, serve

    session.command = True
    server = Server(session, host, port, expose, allow_origin or ())
    if expose:
        typer.echo(f"exposed on {host}: {_EXPOSED}", err=True)
    serve(server, browser)
    if session.preview is not None:
        typer.echo(session.preview.last_words(), err=True)


view.__doc__ = f"{view.__doc__}".replace("{exposed}", _EXPOSED)


def _names_a_scan(text: str) -> bool:
    """Check whether a text names a saved scan, which need not exist, or a folder of them.

    >>> _names_a_scan("runs/first.zarr/"), _names_a_scan("net.onnx")
    (True, False)
    """
    folder = Path(text).expanduser()
    stores = [*folder.glob("zarr.json"), *folder.glob("*/zarr.json")]
    return text.rstrip("/").endswith(".zarr") or bool(stores)


def _refuse(kinds: tuple[str, str], **given: object) -> None:
    """Refuse options for the first of two kinds of view that only the second takes."""
    for name, value in given.items():
        if value is not None:
            remedy = f"it is an option of {kinds[1]}"
            raise InputError(f"--{name}", f"none for {kinds[0]}", repr(str(value)), remedy=remedy)


def first_look_of_view_command(
    models: Sequence[str],
    data: str,
    given: dict[str, Any],
    images: dict[str, Any],
    samples: int | None,
    out: Path | None,
) -> Session:
    """Scan a few samples and return a session, behind which more are scanned."""
    sources = arguments.models_from_option(models, "MODEL")
    if not Path(data).expanduser().exists():
        raise InputError("DATA", "a folder or a file", f"{data!r}, which does not exist")
    from ..groups import as_group
    from ..interface import PREVIEW_GROUPS, PREVIEW_SAMPLES, Preview, proposed_preview
    from ..predictors import as_predictor

    # The page's own libraries load while the models are tried, which mostly runs C code.
    threading.Thread(target=import_module, args=("orbical.interface.server",), daemon=True).start()
    if given.get("group") is not None and given["group"] not in PREVIEW_GROUPS:
        as_group(given["group"])
    predictors = {name: as_predictor(source) for name, source in sources.items()}
    for predictor in predictors.values():
        module = getattr(predictor, "module", None)
        if module is not None:
            module.eval()  # the scan and the page use it at the same time
    proposal = proposed_preview(predictors, data, given, **images)
    preview = Preview(
        sources, predictors, data, proposal, samples or PREVIEW_SAMPLES, out, given.get("classes")
    )
    return preview.open()
