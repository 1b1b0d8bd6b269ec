"""Sort the pages of the documentation, as a hook of mkdocs.

Pages that are not named here come last, sorted by name: a new page is one new file.
"""

from __future__ import annotations

from typing import Any

FIRST = (
    *(
        "index.md",
        "tutorials",
        "guide",
        "gallery.md",
        "audits",
        "metrics.md",
        "studies",
        "theory.md",
    ),
    "intervals.md",
    *("api", "comparison.md", "benchmarks.md", "reliability.md", "design.md"),
)
GUIDES = (
    "scan",
    "worst-case",
    "groups",
    "data",
    "cluster",
    "calibration",
    "bounds",
    "repair",
    "uncertainty",
    "decisions",
    "interface",
    "integrations",
    "dense",
    "volumes",
    "signals",
    "labels",
    "detection",
    "molecules",
    "points",
    "own-task",
    "own-group",
)
TITLES = {"Api": "API"}


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Sort the sections, and the guides within theirs."""
    nav.items.sort(key=lambda item: _rank(_place(item), FIRST))
    for section in nav.items:
        if section.is_section:
            section.title = TITLES.get(section.title, section.title)
            if _place(section) == "guide":
                section.children.sort(key=lambda page: _rank(_name(page), GUIDES))
    return nav


def _place(item: Any) -> str:
    """Return the file or folder of an item directly below `docs`."""
    while item.is_section:
        item = item.children[0]
    return str(item.file.src_uri).split("/")[0]


def _name(page: Any) -> str:
    return str(page.file.name)


def _rank(name: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
