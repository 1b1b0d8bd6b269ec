"""Results on disk, and the pages made from them."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from orbical.errors import InputError

from . import find, names
from .audit import Audit, Outcome, Rows
from .environment import CHECKOUT
from .verdicts import CHANGES, Verdict

DOCS = CHECKOUT / "docs" / "audits"
RESULTS = CHECKOUT / "audits" / "results"
WIDTH = 1400  # pixels of a picture; of a thumbnail a quarter


def save(name: str, outcome: Outcome, about: Mapping[str, Any]) -> None:
    """Write the results and the figures of a run."""
    from orbical.figures import save as save_figure

    tables = {key: vars(table) for key, table in outcome.tables.items()}
    pictures = {f"{key}.webp": picture.alt for key, picture in outcome.pictures.items()}
    found = {**about, "tables": tables, "pictures": pictures}
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False, default=float, allow_nan=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", "utf-8")
    (DOCS / name).mkdir(parents=True, exist_ok=True)
    for place, (key, picture) in enumerate(outcome.pictures.items()):
        path = save_figure(picture.figure, DOCS / name / f"{key}.png")
        _shrink(path, path.with_suffix(".webp"), WIDTH)
        if not place:
            _shrink(path, path.with_name("thumbnail.webp"), WIDTH // 4)
        path.unlink()


def _shrink(path: Path, target: Path, width: int) -> None:
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB")
    small.thumbnail((width, 10 * width), Image.Resampling.LANCZOS)
    small.save(target, quality=88, method=6)


def read(name: str) -> dict[str, Any]:
    """Read the committed results of an audit; `tables` are rows, `captions` their captions."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise InputError(
            "NAME",
            problem=f"there are no results of {name!r}",
            remedy=f"run: make audit NAME={name}",
        )
    found = json.loads(path.read_text("utf-8"))
    found["captions"] = {key: table["caption"] for key, table in found["tables"].items()}
    found["tables"] = {key: table["rows"] for key, table in found["tables"].items()}
    return dict(found)


def other_versions(audit: Audit, versions: Mapping[str, str]) -> list[str]:
    """Return a sentence for each package that was run in another version than audited."""
    return [
        f"{package.name} {versions[package.name]} was run; version {package.version} was audited."
        for package in audit.packages
        if versions.get(package.name, package.version) != package.version
    ]


def number(value: float) -> str:
    """Format a number to three significant figures.

    >>> number(4.3512), number(0.25), number(3.1e-7), number(0.0), number(1234.5), number(17)
    ('4.35', '0.250', '3.1e-07', '0', '1,234', '17')
    """
    if value == 0 or isinstance(value, int):
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:#.3g}"


def percent(value: Any) -> str:
    """Format a share in percent, for texts; with its interval if it has one.

    >>> percent(0.5), percent({"value": 0.0547, "low": 0.0284, "high": 0.1, "n": 9}), percent(1e-3)
    ('50 %', '5.5 % (2.8 to 10)', '0.10 %')
    """
    if isinstance(value, Mapping):
        low, high = (percent(value[end]).removesuffix(" %") for end in ("low", "high"))
        return f"{percent(value['value'])} ({low} to {high})"
    digits = 0 if value == 0 or abs(value) >= 0.0995 else 1 if abs(value) >= 0.00995 else 2
    return f"{100 * value:.{digits}f} %"


def counted(rows: Rows) -> str:
    """Return the numbers of samples behind the intervals of a table; empty without any.

    >>> counted([{"a": {"value": 1, "n": 9}, "b": {"value": 1, "n": 20}}]), counted([{"a": 1}])
    ('n = 9 to 20.', '')
    """
    counts = sorted({int(c["n"]) for row in rows for c in row.values() if isinstance(c, Mapping)})
    if not counts:
        return ""
    least, most = counts[0], counts[-1]
    return f"n = {least if least == most else f'{least} to {most}'}."


def cell(value: Any) -> str:
    """Format a cell of a table: an interval, a number, or words.

    >>> cell({"value": 4.351, "low": 4.1, "high": 4.6, "n": 9}), cell(None), cell("Se")
    ('4.35 (4.10 to 4.60)', '', 'Se')
    >>> cell({"value": 9e-16, "low": 0.0, "high": 0.09, "n": 9})
    '0 (0 to 0.0900)'
    """
    if isinstance(value, Mapping):
        low, high = value["low"], value["high"]
        rounding = abs(value["value"]) < 1e-12 * max(abs(low), abs(high))
        found = "0" if rounding else number(value["value"])
        return f"{found} ({number(low)} to {number(high)})"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return number(value) if isinstance(value, float) else str(value)


def table(rows: Rows) -> str:
    """Write rows as a Markdown table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([cell(row.get(key)) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render(name: str) -> dict[Path, str]:
    """Return the page of an audit and its protocol by their paths, from its committed results."""
    audit, found = find(name), read(name)
    tables = found["tables"]
    filters = _environment().from_string
    keys = sorted(tables, key=lambda key: key != audit.main_table)  # the page shows the first
    captions = {key: f"{found['captions'][key]} {counted(tables[key])}".strip() for key in keys}
    words = {
        **found,
        "name": name,
        "audit": audit,
        "finding": filters(audit.finding).render(tables).strip(),
        "confirmed": filters(audit.confirmed).render(tables),
        "verdicts": grouped(audit.decide(tables)),
        "numbers": [f"{captions[key]}\n\n{table(tables[key])}" for key in keys],
        "pictures": [*found["pictures"].items()],
        "tested": any("p" in row for rows in tables.values() for row in rows),
        "code": "\n\n\n".join(inspect.getsource(function).strip() for function in audit.shown),
        "notes": other_versions(audit, found["packages"]),
    }
    files = {"page.md": DOCS / f"{name}.md", "protocol.md": DOCS / name / "protocol.md"}
    return {path: _template(template).render(words) for template, path in files.items()}


def grouped(verdicts: Mapping[str, Verdict]) -> dict[Verdict, str]:
    """Return what got each verdict, from the worst to the best, without the words all begin with.

    >>> found = grouped({"Net tiny, sign": Verdict.OPEN, "Net full, sign": Verdict.INVARIANT})
    >>> {str(verdict): models for verdict, models in found.items()}
    {'open': 'tiny, sign', 'invariant': 'full, sign'}
    >>> [*grouped({"Net": Verdict.INVARIANT}).values()]
    ['Net']
    """
    words = [name.split(" ") for name in verdicts]
    alike = [len({*column}) == 1 for column in zip(*words, strict=False)]
    shared = alike.index(False) if False in alike else 0
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in reversed(Verdict)}
    for name, verdict in verdicts.items():
        found[verdict].append(" ".join(name.split(" ")[shared:]))
    return {verdict: "; ".join(models) for verdict, models in found.items() if models}


def render_index() -> str:
    """Return the first page: the verdicts of every audit that has results, a row for each."""
    order = list(Verdict)
    lines = []
    counts = dict.fromkeys(order, 0)
    for name in names():
        if not (RESULTS / f"{name}.json").is_file():
            continue
        audit, found = find(name), read(name)
        verdicts = audit.decide(found["tables"])
        for verdict in verdicts.values():
            counts[verdict] += 1
        ranks = sorted((order.index(verdict) for verdict in verdicts.values()), reverse=True)
        lines.append({
            "name": name, "audit": audit, "size": found["size"], "verdicts": grouped(verdicts),
            "rank": " ".join(map(str, ranks)), "alt": next(iter(found["pictures"].values())),
        })  # fmt: skip
    return _template("index.md").render(
        lines=lines, counts=counts, changed=sum(counts[verdict] for verdict in CHANGES)
    )


def write_all() -> Iterator[Path]:
    """Write every page that has results, and yield each file."""
    texts = {DOCS / "index.md": render_index()}
    for name in names():
        if (RESULTS / f"{name}.json").is_file():
            texts |= render(name)
    for path, text in texts.items():
        path.write_text(text, "utf-8")
        yield path


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    )
    environment.filters.update(
        cell=cell, number=number, percent=percent, escaped=lambda text: escape(str(text))
    )
    return environment


def _template(name: str) -> Any:
    return _environment().get_template(name)
