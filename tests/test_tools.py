"""The tools of developers, in `tools/`."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"


def test_packages_are_found_where_pip_finds_them() -> None:
    places = runpy.run_path(str(TOOLS / "install_packages.py"))["places"]
    listed = (
        ":env:.find-links='/nearer'\n"
        "global.extra-index-url='https://one.example/simple\\nfile:///two'\n"
        "global.find-links='/wheels'\n"
        "global.timeout='9'\n"
    )
    options = places(listed)
    assert [option.removeprefix("--") for option in options] == [
        *("find-links", "/nearer"),
        *("extra-index-url", "https://one.example/simple"),
        *("extra-index-url", "file:///two"),
    ]
    assert places("") == []
