"""`orbical report`: write a scan as one HTML file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from . import arguments


def report(
    store: arguments.Store,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE")] = Path("report.html"),
    overwrite: arguments.Overwrite = False,
    samples: str = "2000",
    method: Annotated[list[str] | None, typer.Option("--method", metavar="METHOD")] = None,
    with_models: Annotated[
        list[str] | None, typer.Option("--with-models", metavar="NAME=FILE")
    ] = None,
    data: arguments.Data = None,
    size: arguments.Size = None,
    title: str | None = None,
    worst: Path | None = None,
    classes: arguments.Names = None,
    names: str | None = None,
    task: arguments.OwnTask = None,
    imports: arguments.Import = None,
) -> None:
    """Write a scan as a single interactive HTML file.

    \b
    orbical report run.zarr -o report.html

    The file contains all its data and loads nothing else. Means and calibration cover the whole
    scan, whichever samples are included.

    Args:
        out: The file to write; a report over 20 MB becomes a folder.
        overwrite: Replace an existing report.
        samples: Number of samples to include, or 'all'. Chosen are the most variable, the worst,
            and others spread over the map.
        method: An embedding of the samples to include: pca, ica, isomap, tsne, umap, or all.
            Repeatable. Default: those that take seconds, and those that findings show.
        with_models: A model of the scan as an .onnx file that runs in the page, so that dragging
            stays live. Repeatable. Needs npm install onnxruntime-web@1.30, which adds 5 MB.
        data: The inputs, if they are not in the scan (--keep inputs), as for the scan: a folder of
            images, a table, an .npz file, package.module:attribute, or a built-in name.
        title: The title of the page.
        worst: A file of orbical worst-case, to mark on the orbit plots.
        classes: The names of the classes in their order: a text file with one per line, or names
            separated by commas. Default: those of the scan.
        names: The names of the samples in their order, likewise.
    """
    from .._console import Console
    from ..interface import report as write
    from ..store import load

    scan = load(store)
    for page in (out, out.with_suffix("") / "index.html"):  # a large report is a folder
        arguments.check_out_is_free(page, overwrite)
    arguments.announce_folder(out)
    console = Console(soft_wrap=True)
    with console.status("opening") as status, arguments.arguments_named_as_options(path="--out"):
        page = write(
            scan,
            out,
            samples=_number_or_all(samples),
            methods=method,
            with_models=_files_by_name(with_models or []),
            data=arguments.load_data(data, **arguments.image_options(size)),
            task=arguments.own_task(task),
            worst=worst,
            classes=arguments.names_from_option(classes, "--classes"),
            names=arguments.names_from_option(names, "--names"),
            title=title,
            advance=status.update,
        )
    written = sum(file.stat().st_size for file in _files_of_report(page)) / 1e6
    console.print(f"report  {page}   ({written:.1f} MB)")
    if page.name == "index.html":
        console.print(
            "The report is larger than 20 MB, so it is a folder; index.html opens from the folder "
            "or from any web server."
        )


def _number_or_all(samples: str) -> int | None:
    if samples == "all":
        return None
    if not samples.isdigit():
        raise InputError("--samples", "an integer or 'all'", repr(samples))
    return int(samples)


def _files_by_name(given: list[str]) -> dict[str, str]:
    for one in given:
        if not re.fullmatch(r"[^=]+=.+", one):
            raise InputError("--with-models", "NAME=FILE", repr(one))
    return dict(one.split("=", 1) for one in given)


def _files_of_report(page: Path) -> list[Path]:
    parts = page.parent / "parts"
    return [page, *parts.iterdir()] if page.name == "index.html" and parts.is_dir() else [page]
