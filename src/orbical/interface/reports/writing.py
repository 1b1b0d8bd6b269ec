"""A report: a scan as one file that anybody can open, and drag along its orbits."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import InputError, unknown_name
from ..session.sample_maps import available_methods
from ..session.scan_state import title_of
from .html_page import MOST_BYTES, Heading, is_report, remove, single_page, write_folder
from .parts import chosen_samples, parts_of
from .sampling import ChosenSamples

if TYPE_CHECKING:
    from ...store.scan_result import Scan
    from ..session.scan_view import ScanView

SAMPLES = 2_000


def report(
    scan: Scan | str | Path,
    path: str | Path = "report.html",
    *,
    samples: int | None = SAMPLES,
    methods: Sequence[str] = ("pca",),
    data: Any = None,
    task: Any = None,
    orbits: Any = None,
    classes: list[str] | None = None,
    title: str | None = None,
    advance: Callable[[str], None] = lambda work: None,
) -> Path:
    """Write a scan into one file that anybody can open; nothing is installed, nothing is loaded.

    Everything can be dragged at the scanned resolution: inputs are moved in the page, answers are
    those of the scan. Means and calibration errors are those of all samples of the scan and of each
    class; a lasso is computed from the samples that the report holds. A report of more than 20 MB
    becomes a folder beside it: `index.html`, which opens without a server too, and its data. An
    earlier report of the same name is replaced; into any other folder nothing is written.

    Arguments:
        scan: a scan, or the folder of one.
        path: the file, such as `report.html`.
        samples: how many samples the report holds, the most informative ones: a third whose answers
            vary most, a third with the worst answers, the others spread over the map; None for all.
        methods: maps of samples to hold: `"pca"`, `"ica"`, `"isomap"`, `"tsne"`, `"umap"`.
        data: the inputs, where the scan did not keep them (`keep="inputs"`).
        task: the task, where it cannot be made from the scan's record.
        orbits: the orbit id of each sample, for bounds.
        classes: names of the classes.
        title: the title of the page.
        advance: called with a few words before each piece of work.

    Returns:
        The page that was written.

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

    target = checked_path(path)
    session = open_session(scan, None, data, task=task, orbits=orbits, classes=classes)
    view = session.scan_view()
    heading, parts = build_report(
        view, samples=samples, methods=methods, title=title, advance=advance
    )
    return write(target, heading, parts)


def checked_path(path: str | Path) -> Path:
    """Check where a report is to be written, before any work."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"path: {str(path)!r} given, a name that ends in .html expected")
    if target.is_dir():
        raise InputError(f"path: {str(path)!r} is a folder, the name of a file expected")
    beside = target.with_suffix("")
    if beside.exists() and not is_report(beside) and not _is_empty(beside):
        raise InputError(
            f"path: a large report becomes the folder {str(beside)!r}, which exists and is no "
            "report; another name expected"
        )
    return target


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def build_report(
    view: ScanView,
    *,
    samples: int | None = SAMPLES,
    methods: Sequence[str] = ("pca",),
    title: str | None = None,
    advance: Callable[[str], None] = lambda work: None,
) -> tuple[Heading, dict[str, bytes]]:
    """Make the parts of a report, with its title and footer."""
    _check(samples, methods)
    advance("choosing samples")
    chosen = chosen_samples(view, samples)
    about = facts(view, chosen)
    parts = dict(parts_of(view, chosen, methods, about, advance))
    return (title or title_of(view), footer(about)), parts


def write(target: Path, heading: Heading, parts: Mapping[str, bytes]) -> Path:
    """Write a report as one file, or as a folder where it is too large for one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    text = single_page(heading, parts)
    beside = target.with_suffix("")
    if len(text) > MOST_BYTES:
        return write_folder(beside, heading, parts)
    remove(beside)  # an earlier report of this name, which would now be out of date
    target.write_text(text, "utf-8")
    return target


def facts(view: ScanView, chosen: ChosenSamples) -> dict[str, Any]:
    """Gather what a reader must know of a report."""
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
        "versions": {"orbical": __version__, **_others(record.versions)},
        "data": record.data.fingerprint,
    }


def _others(versions: Mapping[str, str]) -> dict[str, str]:
    return {
        f"scan by {name}": text for name, text in versions.items() if name in ("orbical", "torch")
    }


def _note(chosen: ChosenSamples) -> str:
    if not chosen.how:
        return ""
    return (
        f"{chosen.how[:1].upper()}{chosen.how[1:]}. Means and calibration are of all samples, and "
        "of each class; a lasso is of the samples shown."
    )


def footer(about: Mapping[str, Any]) -> list[str]:
    """Write the small print of a report."""
    all_of_them = "1 sample" if about["of"] == 1 else f"{about['of']:,} samples"
    count = all_of_them if about["samples"] == about["of"] else about["how"]
    versions = ", ".join(f"{name} {text}" for name, text in about["versions"].items())
    return [
        f"Report made {about['made'].replace('T', ' ')[:16]} UTC of a scan from "
        f"{about['scanned'][:10]} · {about['group']} · {count} · data {about['data']}",
        f"Models: {'; '.join(about['models'])} · {versions} · scores and confidences to 0.0001, "
        "pixels and class probabilities to 1/255, maps and fields to 1/65,000 of their range, "
        "labels and predicted classes exact · this page loads nothing and sends nothing",
    ]


def _check(samples: int | None, methods: Sequence[str]) -> None:
    if samples is not None and (
        isinstance(samples, bool) or not isinstance(samples, int) or samples < 3
    ):
        raise InputError(f"samples: {samples!r} given, a whole number >= 3 expected, or None")
    known = available_methods()
    for method in methods:
        if method not in known:
            raise unknown_name("methods", method, known)
    if not methods:
        raise InputError("methods: none given, at least one expected")
