"""Sort the pages of the documentation into sections, as a hook of mkdocs.

Pages that are not named here come last in their section, by name: a new page is one new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.structure.nav import Section

TABS = (
    *("index.md", "tutorials", "guide", "gallery.md", "audits", "metrics.md", "studies"),
    "api",
)
BACKGROUND = ("theory", "comparison", "intervals", "benchmarks", "reliability", "design")
GUIDES = {
    "Scan and explore": ("scan", "interface", "groups", "data", "causes", "worst-case", "cluster"),
    "Confidence and limits": ("calibration", "uncertainty", "decisions", "bounds", "repair"),
    "By task": (
        *("dense", "detection", "labels", "language-models", "signals", "volumes", "points"),
        "molecules",
    ),
    "Connect and extend": ("integrations", "own-task", "own-group"),
}
TITLES = {"Api": "API"}


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Make the tabs, the groups of guides, and the links to the page before and after each."""
    background = [item for item in nav.items if _place(item) not in TABS]
    tabs = [item for item in nav.items if _place(item) in TABS]
    tabs.sort(key=lambda item: TABS.index(_place(item)))
    for tab in tabs:
        if tab.is_section:  # a page finds its title later
            tab.title = TITLES.get(tab.title, tab.title)
        if _place(tab) == "guide":
            tab.children = _grouped(tab.children)
    nav.items = [*tabs, Section("Background", _ranked(background, BACKGROUND))]
    for item in nav.items:
        _adopt(item)
    nav.pages = [page for item in nav.items for page in _pages(item)]
    for page, before, after in zip(
        nav.pages, [None, *nav.pages], [*nav.pages[1:], None], strict=False
    ):
        page.previous_page, page.next_page = before, after
    return nav


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
    """Return the file or folder of an item directly below `docs`."""
    return str(next(_pages(item)).file.src_uri).split("/")[0]


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
