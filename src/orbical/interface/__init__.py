"""Looking at a scan: in a browser, in a notebook, in one file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from ..store.scan_result import Scan
    from .session import Session

__all__ = ["open_session", "report", "view"]


def view(
    scan: Scan | str | Path | Mapping[str, Scan],
    models: Any = None,
    data: Any = None,
    *,
    task: Any = None,
    preprocess: Any = None,
    read: Any = None,
    orbits: Any = None,
    classes: list[str] | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    exposed: bool = False,
    allow_origin: Iterable[str] = (),
    open_browser: bool = True,
) -> Any:
    """Show a scan: as a widget in a notebook, otherwise in the browser until interrupted.

    Arguments:
        scan: a scan, the folder of one, a folder of several, or a dictionary of scans.
        models: models by their names in the scan, for live answers between the scanned elements;
            without them the interface shows what was scanned.
        data: the inputs, where the scan did not keep them (`keep="inputs"`).
        task: the task, where it cannot be made from the scan's record (an action of your own).
        preprocess: as given to `orbical.scan`.
        read: how outputs are read, as given to the task.
        orbits: the orbit id of each sample, for bounds.
        classes: names of the classes.
        port: the port; None takes the next free one.
        host: the address to listen on.
        exposed: allow another address than this machine's own.
        allow_origin: origins of pages behind a proxy, such as `https://hub.example.org`.
        open_browser: open the page.

    >>> view("no-such-folder")
    Traceback (most recent call last):
    orbical.errors.InputError: scan: there is no folder 'no-such-folder'
    """
    session = open_session(
        scan,
        models,
        data,
        task=task,
        preprocess=preprocess,
        read=read,
        orbits=orbits,
        classes=classes,
    )
    if in_notebook():
        from .widget import widget

        return widget(session)
    from .server import Server, serve

    return serve(Server(session, host, port, exposed, allow_origin), open_browser)


def open_session(
    scan: Scan | str | Path | Mapping[str, Scan], models: Any = None, data: Any = None, **about: Any
) -> Session:
    """Make the session that answers for a scan, a folder of scans, or a dictionary of them."""
    from ..store.scan_result import Scan
    from .session import Session

    if isinstance(scan, Scan):
        name = "scan" if scan.path is None else scan.path.name.removesuffix(".zarr")
        scans: Mapping[str, Scan] = {name: scan}
    elif isinstance(scan, Mapping):
        scans = scan
    else:
        scans = found_scans(Path(scan))
    if models is not None and not isinstance(models, Mapping):
        first = next(iter(scans.values()))
        if len(first.models) != 1:
            raise InputError(
                f"models: one given, but the scan holds {', '.join(first.models)}; give a "
                "dictionary of names and models"
            )
        models = {first.models[0]: models}
    return Session(scans, models, data, **about)


def found_scans(folder: Path) -> dict[str, Scan]:
    """Open the scan in a folder, or every scan that a folder holds, by their names."""
    from ..errors import StoreError
    from ..store.scan_result import load

    if not folder.is_dir():
        raise InputError(f"scan: there is no folder {str(folder)!r}")
    if (folder / "zarr.json").is_file():
        return {folder.resolve().name.removesuffix(".zarr"): load(folder)}
    scans: dict[str, Scan] = {}
    for path in sorted(folder.iterdir()):
        if not (path / "zarr.json").is_file() or path.name.startswith("."):
            continue
        try:
            scans[path.name.removesuffix(".zarr")] = load(path)
        except StoreError:
            continue  # another program's data may lie beside scans
    if not scans:
        raise InputError(f"scan: {str(folder)!r} holds no scan")
    return scans


def report(*args: Any, **options: Any) -> Any:
    """Write a scan into one file that anybody can open; see `orbical.interface.reports.report`."""
    from .reports import report as write

    return write(*args, **options)


def in_notebook() -> bool:
    """Whether this runs in a notebook that can show widgets.

    >>> in_notebook()
    False
    """
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return True
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and type(shell).__name__ not in ("TerminalInteractiveShell",)
