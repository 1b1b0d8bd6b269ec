"""Build a report and write it to disk."""

from __future__ import annotations

import datetime
import hashlib
import html
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import __version__
from ..._text import counted
from ..._warnings import warn
from ...errors import InputError, whole_number
from ...store import Json, Scan
from ..bundling import bundle, icon, web_sources, web_style
from ..session.scan_state import page_title
from ..session.scan_view import ScanView
from ..wire import as_base64
from . import contents
from .report_parts import report_parts_of
from .traveling import RUNTIME, TravelingModels, check_traveling_models, traveling_models

SAMPLES = 2_000
FEW_SAMPLES = 100
_USED = ("orbical", "torch")


def report(
    scan: Scan | str | Path,
    path: str | Path = "report.html",
    *,
    samples: int | None = SAMPLES,
    methods: Sequence[str] | None = None,
    with_models: Mapping[str, str | Path] | None = None,
    data: object = None,
    task: object = None,
    orbits: Any = None,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    worst: object = None,
    title: str | None = None,
    advance: Callable[[str], None] = lambda work: None,
) -> Path:
    """Write a report of a scan as one HTML file that opens in any browser, offline.

    The report is interactive at the scanned resolution: inputs are transformed in the page, outputs
    are those of the scan. Statistics are computed here, with their intervals: for all samples of
    the scan, each class, each named set and the subset of each finding. Of any other subset, such
    as a lasso, the page shows plain means of the samples in the report, and says that it does not
    have the rest. A report of more than 20 MB becomes a
    folder of the same name with `index.html`, which also opens without a server. An earlier report
    of the same name is replaced; other folders are never written to. If the scan has findings, the
    page opens on them, one after the other, and their samples are included.

    Args:
        scan: A scan, or the folder of one.
        path: The file, such as `report.html`.
        samples: How many samples to include: a third with the largest variance along the orbit, a
            third with the worst scores, the rest spread over the map. None includes all.
        methods: Maps of samples to include, for each model and reference: `"pca"`, `"ica"`,
            `"isomap"`, `"tsne"`, `"umap"`, or `"all"`. By default those that take seconds, and
            those that findings show. The footer of the page names what is left out.
        with_models: ONNX files by the names of models in the scan, to run in the page, so that
            dragging along the orbit stays live. For classification of images under a group with
            positions between its elements. Needs the npm package `onnxruntime-web`, which adds
            5 MB.
        data: The inputs, if the scan did not keep them (`keep="inputs"`).
        task: The task, if it cannot be made from the scan's record.
        orbits: The orbit id of each sample, for bounds.
        classes: Names of the classes, in the order of their indices.
        names: Names of the samples, in their order.
        worst: The result of `orbical.worst_case` for the scan, or a netCDF file of it.
        title: The title of the page.
        advance: Called with a short description before each step.

    Returns:
        The path of the page.

    Raises:
        InputError: If the path, the number of samples or a method cannot be used.

    See Also:
        view: With live models.

    Example:
        >>> import orbical as ob, tempfile, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8", keep="inputs",
        ...                task="classification", progress=False)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     page = report(scan, f"{place}/digits.html")
        ...     page.name, page.stat().st_size < 1_000_000
        ('digits.html', True)
    """
    from .. import open_session

    target = _path_to_write_report(path)
    about = {"orbits": orbits, "classes": classes, "names": names, "worst": worst}
    view = open_session(scan, None, data, task=task, **about).scan_view()
    models = None
    if with_models:
        check_traveling_models(view, with_models)
        models = traveling_models(with_models)
    if not view.complete:
        warn(view.scan.caveat)
    heading, parts = report_to_write(
        view, samples=samples, methods=methods, models=models, title=title, advance=advance
    )
    return write_report(target, heading, parts, "" if models is None else models.script)


def _path_to_write_report(path: str | Path) -> Path:
    """Check the path of a report, before any work."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError("path", "a name that ends in .html", repr(str(path)))
    if target.is_dir():
        raise InputError("path", "the name of a file", f"the folder {str(path)!r}")
    there = next(one for one in target.absolute().parents if one.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise _unwritable(target, f"{str(there)!r} is not a folder that you can write to")
    beside = target.with_suffix("")
    if beside.exists() and not _is_report(beside) and not _is_empty(beside):
        expected = "a free name, since a large report becomes a folder"
        raise InputError("path", expected, f"{str(beside)!r}, which exists and is not a report")
    return target


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def report_to_write(
    view: ScanView,
    *,
    samples: int | None = SAMPLES,
    methods: Sequence[str] | None = None,
    models: TravelingModels | None = None,
    title: str | None = None,
    advance: Callable[[str], None] = lambda work: None,
) -> tuple[Heading, dict[str, bytes]]:
    """Build the parts of a report, with its title and footer."""
    contents.check_report_methods(methods)
    if samples is not None:
        samples = whole_number("samples", samples, contents.FEWEST, other="None or ")
    advance("selecting samples")
    chosen = contents.chosen_samples(view, samples)
    plan = contents.planned_report_maps(view, methods, len(chosen.samples))
    about = {**written_report_facts(view, chosen), "maps": plan.note()}
    if models is not None:
        outputs = view.scan.record.task.settings["outputs"]
        about["traveling"] = {"models": models.names, "outputs": outputs}
        about["versions"] |= {RUNTIME: models.version}
    parts = dict(report_parts_of(view, chosen, plan, about, advance))
    parts |= {} if models is None else models.parts
    return (title or page_title(view), report_footer(about)), parts


def report_page(view: ScanView, advance: Callable[[str], None]) -> str:
    """Build a report as one page, with fewer samples if it would be too large for one file."""
    samples = SAMPLES
    while True:
        text = single_page(*report_to_write(view, samples=samples, advance=advance))
        if len(text) <= MOST_BYTES or samples <= FEW_SAMPLES:
            return text
        samples //= 2


def write_report(
    target: Path, heading: Heading, parts: Mapping[str, bytes], runtime: str = ""
) -> Path:
    """Write a report as one file, or as a folder if it is too large."""
    text = single_page(heading, parts, runtime)
    beside = target.with_suffix("")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if len(text) > MOST_BYTES:
            return write_report_folder(beside, heading, parts, runtime)
        remove_report(beside)  # an earlier report of this name would be out of date
        target.write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable(target, error.strerror or error) from error
    return target


def _unwritable(target: Path, why: object) -> InputError:
    return InputError("path", problem=f"{str(target)!r} cannot be written: {why}")


def written_report_facts(view: ScanView, chosen: contents.ReportSamples) -> Json:
    """Return what a reader must know about a report."""
    record = view.scan.record
    now = datetime.datetime.now(datetime.UTC)
    return {
        "samples": len(chosen.samples),
        "of": chosen.of,
        "how": chosen.how,
        "note": _note(chosen),
        "made": now.isoformat(timespec="minutes"),
        "scanned": record.created,
        "models": [f"{entry.name} = {entry.source}" for entry in record.models],
        "group": f"{view.group.spec}, {len(view.group)} elements",
        "versions": {
            "orbical": __version__,
            **{f"scan by {name}": text for name, text in record.versions.items() if name in _USED},
        },
        "data": record.data.fingerprint or record.data.first,
    }


def _note(chosen: contents.ReportSamples) -> str:
    if not chosen.how:
        return ""
    return (
        f"{chosen.how[:1].upper()}{chosen.how[1:]}. Statistics of all samples, classes, named sets "
        "and findings cover the whole scan; means of other subsets cover the samples shown."
    )


def report_footer(about: Mapping[str, Any]) -> list[str]:
    """Return the footer of a report."""
    every = counted(about["of"], "sample")
    count = every if about["samples"] == about["of"] else about["how"]
    maps = f" · {about['maps']}" if about["maps"] else ""
    versions = ", ".join(f"{name} {text}" for name, text in about["versions"].items())
    return [
        f"Report written {about['made'].replace('T', ' ')[:16]} UTC, scan of "
        f"{about['scanned'][:10]} · {about['group']} · {count} · data {about['data']}",
        f"Models: {'; '.join(about['models'])} · {versions} · scores and confidences to 0.0001, "
        "pixels and class probabilities to 1/255, maps and fields to 1/65,000 of their range, "
        f"labels and predicted classes exact{maps} · this page loads and sends nothing",
    ]


MOST_BYTES = 20_000_000
"""A larger report is a folder: browsers are slow to read one large file."""
ENTRY = "hosts/static.js"

Heading = tuple[str, list[str]]
"""The title of a page, and the lines of its footer."""

_MADE_BY = '<meta name="generator" content="orbical">'
_PAGE = Path(__file__).with_name("page.html")


def _written_page(heading: Heading, data: str, from_files: bool, runtime: str = "") -> str:
    """Return the HTML of the page around its data; with a runtime, it may run WebAssembly."""
    title, footer = heading
    program = "\n" + bundle(ENTRY, web_sources()).replace("</script", "<\\/script")
    style = web_style()
    sources = f"{_hash(program)} 'self' file:" if from_files else _hash(program)
    if runtime:
        sources += f" {_hash(runtime)} 'wasm-unsafe-eval'"
        data += f'<script type="module">{runtime}</script>\n'
    policy = (
        f"default-src 'none'; script-src {sources}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.read_text("utf-8").format(
        policy=policy,
        made_by=_MADE_BY,
        title=html.escape(title),
        icon=f"data:image/svg+xml,{quote(icon())}",
        style=style,
        footer="".join(f"<p>{html.escape(line)}</p>" for line in footer),
        data=data,
        program=program,
    )


def single_page(heading: Heading, parts: Mapping[str, bytes], runtime: str = "") -> str:
    """Return a report as one page.

    >>> text = single_page(("digits", ["made today"]), {"state": b"..."})
    >>> "<title>digits</title>" in text, 'id="part:state"' in text
    (True, True)
    """
    data = "".join(
        f'<script type="text/plain" id="part:{html.escape(name)}">{as_base64(part)}</script>\n'
        for name, part in parts.items()
    )
    return _written_page(heading, data, False, runtime)


def write_report_folder(
    path: Path, heading: Heading, parts: Mapping[str, bytes], runtime: str = ""
) -> Path:
    """Write a report as a folder: the page `index.html`, and `parts/` with its data."""
    remove_report(path)
    (path / "parts").mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        kept = f"[{json.dumps(name)}] = {json.dumps(as_base64(part))};\n"
        text = f"(globalThis.orbicalParts ??= {{}}){kept}"
        (path / "parts" / report_file_name(name)).write_text(text, "ascii")
    page = path / "index.html"
    page.write_text(_written_page(heading, "", True, runtime), "utf-8")
    return page


def _is_report(path: Path) -> bool:
    """Check whether a folder is a report that `write_report_folder` wrote."""
    page = path / "index.html"
    if not (page.is_file() and (path / "parts").is_dir()):
        return False
    with page.open("r", encoding="utf-8", errors="replace") as text:
        return _MADE_BY in text.read(4096)


def remove_report(path: Path) -> None:
    """Delete an earlier report, and nothing else in its folder."""
    if not _is_report(path):
        return
    (path / "index.html").unlink()
    shutil.rmtree(path / "parts")
    if not any(path.iterdir()):
        path.rmdir()


def report_file_name(part: str) -> str:
    """Return the file name of a part, as the page does.

    >>> report_file_name("values/score")
    'values_score.js'
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "_", part) + ".js"


def _hash(text: str) -> str:
    return f"'sha256-{as_base64(hashlib.sha256(text.encode()).digest())}'"
