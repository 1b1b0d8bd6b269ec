"""Which part of the tests a test belongs to; `make test` runs the part `unit`.

    pytest --part browser    the tests of one part
    pytest tests/store       the tests of a folder, except those of `LATER`

A test belongs to the first part of `PARTS` that it is marked with, otherwise to that of its folder,
otherwise to `unit`.
"""

from __future__ import annotations

import pytest

PARTS = {
    "benchmark": "a claim of speed or memory, for an otherwise idle machine",
    "peers": "compares with a library of the extra benchmarks, in an environment of its own",
    "slow": "takes more than about ten seconds",
    "docs": "runs what the documentation shows: pages, guides, examples, demos",
    "system": "whole programs: processes that are killed, clusters, servers under load, cases",
    "browser": "drives a real Chromium; skipped by name where none is installed",
    "studies": "of the studies and the audits",
    "unit": "all others, and the journeys in a browser that every change must keep",
}
FOLDERS = {
    "audits": "studies",
    "studies": "studies",
    "tests/browser": "browser",
    "tests/cases": "system",
}
LATER = {"benchmark", "slow", "peers"}
"""Parts that run only if they are asked for."""


def part_of(item: pytest.Item) -> str:
    """Return the part of a test."""
    marks = {mark.name for mark in item.iter_markers()}
    path = item.path.relative_to(item.config.rootpath)
    own = (FOLDERS[str(folder)] for folder in path.parents if str(folder) in FOLDERS)
    return next((part for part in PARTS if part in marks), next(own, "unit"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let parts be chosen."""
    text = "run only the tests of a part (may be repeated)"
    parser.addoption("--part", action="append", choices=[*PARTS], default=[], help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Make the parts known as marks."""
    for part, meaning in PARTS.items():
        config.addinivalue_line("markers", f"{part}: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts."""
    unasked = set() if config.option.markexpr else LATER
    chosen = {*config.option.part} or {*PARTS} - unasked
    left_out = [item for item in items if part_of(item) not in chosen]
    items[:] = [item for item in items if part_of(item) in chosen]
    config.hook.pytest_deselected(items=left_out)
