"""`orbical view`: open the interactive view of a scan in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .arrays import read_npy

_MODEL = (
    "A model for live outputs; repeat for more. NAME is as in the scan. SOURCE is "
    "package.module:attribute (a trailing () calls it), a file.onnx or a file.pt2. Import paths "
    "and .pt2 files run their author's code: use only what you trust."
)
_EXPOSE = (
    "Allow an address that others can reach. Anyone with the link and its token can then view the "
    "scan and run your models; the connection is not encrypted."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view")(view)


def view(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A stored scan, or a folder of several.")
    ],
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="NAME=SOURCE", help=_MODEL)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            help="The inputs, if the scan did not keep them: an .npz file, "
            "package.module:attribute, or a built-in name.",
        ),
    ] = None,
    orbits: Annotated[
        Path | None,
        typer.Option(help="An .npy file with the orbit id of each sample, for bounds."),
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(help="package.module:function applied to batches, as in the scan."),
    ] = None,
    read: Annotated[
        str | None,
        typer.Option(help="package.module:function that reads raw outputs, as in the scan."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; by default the next free one from 8420.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    expose: Annotated[bool, typer.Option("--expose", help=_EXPOSE)] = False,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="The origin of pages behind a proxy such as JupyterHub, "
            "https://hub.example.org. Repeatable.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open the interactive view of a scan in the browser.

    \b
    orbical view run.zarr
    orbical view run.zarr --model net=mine.nets:net

    With models, dragging along the orbit runs them between the scanned elements; without, it snaps
    to what was scanned.
    """
    from .._imports import import_attribute
    from ..interface import open_session
    from ..interface.server import Server, serve
    from .scan import _split_model, load_data

    named = dict(_split_model(text) for text in model or [])
    if len(named) < len(model or []):
        raise InputError("--model: expected each name once, got a name twice")
    ids = None if orbits is None else read_npy(orbits, "--orbits")
    session = open_session(
        store,
        named,
        None if data is None else load_data(data),
        preprocess=None if preprocess is None else import_attribute(preprocess, "--preprocess"),
        read=None if read is None else import_attribute(read, "--read"),
        orbits=ids,
    )
    server = Server(session, host, port, expose, allow_origin or ())
    if expose:
        typer.echo(f"exposed on {host}: {_EXPOSE.partition('. ')[2]}", err=True)
    serve(server, browser)
