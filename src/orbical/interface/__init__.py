"""The interactive view of a scan: in a browser, in a notebook, or as a report in one file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._imports_and_paths import as_path
from .._lazy import lazy_exports
from ..errors import InputError, StoreError

if TYPE_CHECKING:
    import xarray as xr

    from ..store import Scan
    from .access import check_host
    from .previews.preview import PREVIEW_SAMPLES, Preview
    from .previews.proposals import proposed_preview
    from .previews.settings import PREVIEW_GROUPS
    from .reports import report
    from .server import Server, serve
    from .session import Session
else:  # the commands start fast
    __getattr__ = lazy_exports(
        __name__,
        {
            "access": "check_host",
            "previews.preview": "PREVIEW_SAMPLES Preview",
            "previews.proposals": "proposed_preview",
            "previews.settings": "PREVIEW_GROUPS",
            "reports": "report",
            "server": "Server serve",
            "session": "Session",
        },
    )

__all__ = ["open_session", "report", "tag", "tags", "view"]


def view(
    scan: Scan | str | Path | Sequence[str | Path] | Mapping[str, Scan],
    models: object = None,
    data: object = None,
    *,
    task: object = None,
    preprocess: object = None,
    read: object = None,
    orbits: Any = None,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    worst: object = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    exposed: bool = False,
    allow_origin: Iterable[str] = (),
    open_browser: bool = True,
    block: bool = True,
) -> Any:
    """Open the interactive view of a scan.

    In a notebook it is a widget. Otherwise a local server opens the page in the browser and prints
    its address; the call returns when Ctrl-C ends the server, or at once with `block=False`.

    Args:
        scan: A scan, the folder of one, a folder of several, a list of such folders, or a
            dictionary of scans.
        models: A model, or models by their names in the scan, for live outputs between the scanned
            elements. Without models the view shows what was scanned.
        data: The inputs, if the scan did not keep them (`keep="inputs"`).
        task: The task, if it cannot be made from the scan's record (a custom action).
        preprocess: As passed to `orbical.scan`.
        read: How outputs are read, as passed to the task.
        orbits: The orbit id of each sample, for bounds.
        classes: Names of the classes, in the order of their indices.
        names: Names of the samples, in their order.
        worst: The result of `orbical.worst_case` for the scan, or a netCDF file of it, to mark on
            the orbit plots.
        port: The port; None takes the next free one from 8420.
        host: The address to listen on.
        exposed: Whether to allow an address that others on the network can reach.
        allow_origin: Origins of pages behind a proxy, such as `https://hub.example.org`.
        open_browser: Whether to open the page in a browser.
        block: Whether to wait until the server is interrupted. Otherwise it runs in a thread until
            its `stop()` is called or the program ends.

    Returns:
        The widget in a notebook; the running server with `block=False` (`url`, `stop()`);
        otherwise None, after the server was interrupted.

    Raises:
        InputError: If the scan, the models or the address cannot be used.

    See Also:
        report: A file to share.

    Example:
        >>> view("no-such-folder")
        Traceback (most recent call last):
        orbical.errors.InputError: scan: expected a saved scan, or a folder of them, got ...
    """
    about = {"task": task, "preprocess": preprocess, "read": read, "orbits": orbits}
    about |= {"classes": classes, "names": names, "worst": worst}
    session = open_session(scan, models, data, **about)
    if _in_notebook():
        from .widget import widget

        return widget(session)
    from .server import Server, serve

    return serve(Server(session, host, port, exposed, allow_origin), open_browser, block)


def open_session(
    scan: Scan | str | Path | Sequence[str | Path] | Mapping[str, Scan],
    models: Any = None,
    data: Any = None,
    **about: Any,
) -> Session:
    """Open a session on a scan, folders of scans, or a dictionary of scans.

    Args:
        scan: A scan, the folder of one, a folder of several, a list of such folders, or a
            dictionary of scans.
        models: A model, or models by their names in the scan.
        data: The inputs, if the scan did not keep them.
        about: Further arguments of `Session`.

    Returns:
        The session.

    Raises:
        InputError: If there is no scan, or if the models do not fit it.
    """
    from ..store import Scan
    from .session import Session

    if isinstance(scan, Scan):
        name = "scan" if scan.path is None else scan.path.name.removesuffix(".zarr")
        scans: Mapping[str, Scan | StoreError] = {name: scan}
    elif isinstance(scan, Mapping):
        scans = scan
    else:
        scans = {}
        for one in scan if isinstance(scan, list | tuple) else [scan]:
            for name, found in scans_for_interface(as_path("scan", one)).items():
                scans[f"{one}" if name in scans else name] = found
    if models is not None and not isinstance(models, Mapping):
        first = next(one for one in scans.values() if isinstance(one, Scan))
        if len(first.models) != 1:
            names = ", ".join(first.models)
            raise InputError("models", f"a dictionary with the names {names}", "one model")
        models = {first.models[0]: models}
    return Session(scans, models, data, **about)


def tags(scan: Scan | str | Path) -> xr.DataArray:
    """Return the tags that readers of the page gave to samples, and the sets that they named.

    Args:
        scan: A stored scan, or its folder.

    Returns:
        Whether each sample has each tag, `[sample, tag]`; `to_pandas()` makes a table of it.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> tags(scan).sizes
        Frozen({'sample': 20, 'tag': 0})
    """
    import numpy as np
    import xarray as xr

    from .session.saved_lists import tagged

    view = open_session(scan).scan_view()
    found = tagged(view)
    held = np.stack([*found.values()], 1) if found else np.zeros((view.samples, 0), bool)
    return xr.DataArray(held, dims=("sample", "tag"), coords={"tag": [*found]}, name="tags")


def tag(scan: Scan | str | Path, name: str, samples: Any) -> None:
    """Tag samples, so that the page shows them as a set of that name.

    Args:
        scan: A stored scan, or its folder.
        name: The tag; samples that have it already lose it.
        samples: Indices of samples, or a mask of all samples; none remove the tag.

    Raises:
        InputError: If there are no such samples.

    Example:
        >>> tag("run.zarr", "blurred", [3, 17])  # doctest: +SKIP
        >>> tags("run.zarr").sel(tag="blurred").values.nonzero()  # doctest: +SKIP
        (array([ 3, 17]),)
    """
    from .selection import selected_mask
    from .session.saved_lists import tag as save

    view = open_session(scan).scan_view()
    save(view, name, selected_mask(samples, view.samples))


def scans_for_interface(folder: Path) -> dict[str, Scan | StoreError]:
    """Open the scan in a folder, or every scan in it, by name; of one that is damaged, why.

    Stores of other programs are left out.
    """
    from ..store import Scan, is_remote, load

    if is_remote(folder):
        return {folder.name.removesuffix(".zarr"): load(folder)}
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        remedy = "save one with orbical.scan(..., out=...) or orbical scan --out"
        given = f"{str(folder)!r}, which {state}"
        raise InputError("scan", "a saved scan, or a folder of them", given, remedy=remedy)
    if (folder / "zarr.json").is_file():
        return {folder.resolve().name.removesuffix(".zarr"): load(folder)}
    scans: dict[str, Scan | StoreError] = {}
    for path in sorted(folder.iterdir()):
        about, name = path / "zarr.json", path.name.removesuffix(".zarr")
        if not about.is_file() or name.startswith("."):
            continue
        try:
            scans[name] = load(path)
        except StoreError as error:
            if b"orbical" in about.read_bytes():
                scans[name] = error
    if not any(isinstance(one, Scan) for one in scans.values()):
        remedy = "for a folder of images name the model first, orbical view model.onnx photos/"
        given = f"{str(folder)!r}, which has none"
        raise InputError("scan", "a folder with a scan", given, remedy=remedy)
    return scans


def _in_notebook() -> bool:
    """Check whether this runs in a notebook that can show widgets.

    >>> _in_notebook()
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
