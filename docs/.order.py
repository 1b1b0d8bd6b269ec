"""Sort the pages of the documentation into sections, as a hook of mkdocs.

Pages that are not named here come last in their section, by name: a new page is one new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.structure.nav import Section

TABS = {
    "Start": ("index", "install", "tutorials", "faq", "glossary"),
    "Guide": ("guide",),
    "Findings": ("gallery", "audits", "studies"),
    "Reference": ("cli", "api", "metrics"),
    "Background": (
        *("theory", "comparison", "intervals", "benchmarks", "reliability", "design"),
        *("changelog", "releasing"),
    ),
}
"""Five tabs, each with pages and folders directly below `docs`; others come last."""
GUIDES = {
    "Scan and explore": (
        *("scan", "interface", "interface-reference", "groups", "data", "causes", "worst-case"),
        *("ci", "cluster"),
    ),
    "Confidence and limits": (
        *("calibration", "calibration-reference", "uncertainty", "decisions", "bounds", "repair"),
    ),
    "By task": (
        *("dense", "detection", "labels", "language-models", "signals", "volumes", "points"),
        "molecules",
    ),
    "Connect and extend": ("integrations", "own-task", "own-group"),
}
PAGED = ("actions", "bounds", "calibration", "groups", "tasks")
"""Modules whose reference has several pages."""
TITLES = {"Api": "API"} | {name.title(): f"orbical.{name}" for name in PAGED}


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Make the tabs, the groups of guides, and the links to the page before and after each."""
    for item in nav.items:
        _retitle(item)
        if _place(item) == "guide":
            item.children = _grouped(item.children)
    named = {place for places in TABS.values() for place in places}
    others = tuple(sorted({_place(item) for item in nav.items} - named))
    tabs = {**TABS, "Background": (*TABS["Background"], *others)}
    items = {_place(item): item for item in nav.items}
    nav.items = [
        Section(title, [items[place] for place in places if place in items])
        for title, places in tabs.items()
    ]
    nav.items = [_opened(tab) for tab in nav.items]
    for item in nav.items:
        _adopt(item)
    nav.pages = [page for item in nav.items for page in _pages(item)]
    for page, before, after in zip(
        nav.pages, [None, *nav.pages], [*nav.pages[1:], None], strict=False
    ):
        page.previous_page, page.next_page = before, after
    return nav


def _retitle(item: Any) -> None:
    """Give sections the titles of `TITLES`; a page finds its title later."""
    if item.is_section:
        item.title = TITLES.get(item.title, item.title)
        for child in item.children:
            _retitle(child)


def _opened(tab: Any) -> Any:
    """Return a tab of a single folder as the sections of that folder."""
    if len(tab.children) == 1 and tab.children[0].is_section:
        return Section(tab.title, tab.children[0].children)
    return tab


def on_env(env: Any, config: Any, files: Any) -> Any:
    """Shorten the titles of guides in the menu to what stands before the colon."""
    for file in files.documentation_pages():
        if file.src_uri.startswith("guide/"):
            file.page.title = file.page.title.partition(":")[0]
    return env


def _grouped(guides: list[Any]) -> list[Any]:
    """Return the groups of guides; those that no group names are in the last."""
    named = {name for names in GUIDES.values() for name in names}
    others = tuple(sorted(str(page.file.name) for page in guides if page.file.name not in named))
    groups = {**GUIDES, "Connect and extend": (*GUIDES["Connect and extend"], *others)}
    return [
        Section(title, _ranked([page for page in guides if page.file.name in names], names))
        for title, names in groups.items()
    ]


def _ranked(pages: list[Any], order: tuple[str, ...]) -> list[Any]:
    def rank(page: Any) -> tuple[int, str]:
        name = str(page.file.name)
        return (order.index(name) if name in order else len(order), name)

    return sorted(pages, key=rank)


def _place(item: Any) -> str:
    """Return the page or folder of an item directly below `docs`."""
    return str(next(_pages(item)).file.src_uri).split("/")[0].removesuffix(".md")


def _pages(item: Any) -> Iterator[Any]:
    if item.is_section:
        for child in item.children:
            yield from _pages(child)
    else:
        yield item


def _adopt(item: Any) -> None:
    """Tell children who their parents are: pages show the path to themselves."""
    for child in item.children or ():
        child.parent = item
        _adopt(child)
