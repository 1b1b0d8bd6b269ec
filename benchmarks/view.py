"""How fast the view is, in a real browser: from the pointer to the picture.

Run: python benchmarks/view.py [live slow click ready million report look diagnosis] [--json FILE].
Needs Chromium and playwright. Every page is served by `orbical view` in a process of its own, and
driven by the real mouse of the browser; times are taken in the page, from an event to the frame
painted after its answer. On a machine that does other work as well these are upper ends. The
failure finder and the switches of what-if are processor time of their answers.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import timing
from timing import Row

import orbical as ob
from orbical.interface import open_session
from orbical.interface.reports import report as write_report
from orbical.store.creation import create
from orbical.store.layout import ArraySpec, Fixed
from orbical.store.zarr_store import Store

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
NETWORKS = ("plain", "augmented")
MANY = 100_000
MILLION = 1_000_000
SECTIONS = ("aggregate", "embedding", "calibration", "individual")

# Listens beside the page: when a request of a kind left, on which event, and when the frame after
# its answer was painted.
LISTEN = """
(() => {
  const log = (window.orbicalLog = { event: 0, sent: {}, painted: [], ready: null });
  const note = () => (log.event = performance.now());
  for (const kind of ["move", "down", "up"]) addEventListener(`pointer${kind}`, note, true);
  addEventListener("pointerup", () => (log.up = performance.now()), true);
  const afterPaint = (call) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => call(performance.now());
    channel.port2.postMessage(0);
  });
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...words) {
      super(...words);
      this.addEventListener("message", ({ data }) => {
        if (typeof data === "string") return;
        const length = new DataView(data).getUint32(0, true);
        const header = new TextDecoder().decode(new Uint8Array(data, 4, length));
        const { kind, sequence } = JSON.parse(header);
        const from = log.sent[sequence];
        afterPaint((now) => log.painted.push({ kind, sequence, from, now }));
      });
    }
    send(text) {
      const { sequence } = JSON.parse(text);
      log.sent[sequence] = log.event;
      super.send(text);
    }
  };
  const wanted = %s;
  const look = () => {
    if (wanted.every((name) => document.querySelector(`.section.${name}[data-state=ready]`))) {
      afterPaint((now) => (log.ready = now));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""


@dataclass
class Served:
    """A running `orbical view`."""

    url: str
    process: subprocess.Popen[str]
    started: float

    def megabytes(self) -> float:
        """Give the largest memory that the server has held."""
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(row for row in status if row.startswith("VmHWM")).split()[1]) / 1024


@contextlib.contextmanager
def served(scan: Path, *words: str, path: Path | None = None) -> Iterator[Served]:
    """Serve a scan by the command, as a user does."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    started = time.time()
    process = subprocess.Popen(
        [sys.executable, "-m", "orbical", "view", str(scan), "--no-browser", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"http://\S+token=\S+", line)
            if found:
                yield Served(found[0], process, started)
                return
        raise RuntimeError("the server did not start")
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()


def opened(browser: Any, address: str, sections: tuple[str, ...] = SECTIONS) -> Any:
    """Open a page and wait until its sections are drawn."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.add_init_script(LISTEN % [*sections])
    tab.goto(address, wait_until="commit")
    tab.wait_for_function("() => window.orbicalLog?.ready", timeout=60_000)
    return tab


def painted(tab: Any, kind: str) -> list[dict[str, Any]]:
    """Give the answers of a kind that were painted, with the event that each goes back to."""
    found = tab.evaluate("kind => orbicalLog.painted.filter(one => one.kind === kind)", kind)
    return list(found)


def dragged(tab: Any, seconds: float) -> tuple[list[float], float, float]:
    """Drag around the individual dial: latencies in ms, updates a second, ms behind on release."""
    ring = tab.locator(".individual .orbit-plot svg circle[fill=none]")
    boxes = [box for box in (one.bounding_box() for one in ring.all()) if box]
    box = max(boxes, key=lambda one: one["width"])
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] * 0.4

    def place(turn: float) -> tuple[float, float]:
        return x - radius * np.sin(turn), y - radius * np.cos(turn)

    tab.mouse.move(*place(0.0))
    tab.mouse.down()
    for step in range(30):  # the first answers wake the models
        tab.mouse.move(*place(0.01 * step))
    tab.wait_for_timeout(500)
    tab.evaluate("() => (orbicalLog.painted = [])")
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        tab.mouse.move(*place(2 * np.pi * (time.perf_counter() - start) / seconds))
    took = time.perf_counter() - start
    tab.mouse.up()
    tab.wait_for_timeout(1000)
    found = painted(tab, "place")
    up = float(tab.evaluate("() => orbicalLog.up"))
    last = max(one["now"] for one in found)
    latencies = [one["now"] - one["from"] for one in found if one["from"]]
    return latencies, len(found) / took, max(0.0, last - up)


def quantile(values: list[float], share: float) -> float:
    """Give a quantile."""
    return float(np.quantile(values, share))


def under(work: str, milliseconds: float, limit: float) -> Row:
    """Hold a time against its limit, both in ms."""
    return timing.at_most(work, milliseconds / 1000, "target", limit / 1000, 1.0)


def digit_scan(folder: Path, count: int) -> Path:
    """Scan digits along 72 rotations with the demo's networks."""
    from orbical.zoo import digits

    parts = [ob.datasets.mnist(split=split) for split in ("test", "train")]
    images, labels = (np.concatenate([np.asarray(part[i]) for part in parts]) for i in (0, 1))
    path = folder / "digits.zarr"
    ob.scan(
        {name: digits.load(name) for name in NETWORKS},
        (images[:count], labels[:count]),
        group="rotations:72",
        task="classification",
        out=path,
        keep=("inputs", "probabilities"),
        progress=False,
    )
    return path


def live() -> Iterator[Row]:
    """Drag with the demo's networks at work."""
    yield from _drags("demo CNNs live", "", 30.0, 50.0)


def slow() -> Iterator[Row]:
    """Drag with networks that take 50 ms."""
    code = (
        "import time\nfrom orbical.zoo import digits\n\n"
        "def padded(name):\n"
        "    net = digits.load(name).eval()\n"
        "    def answer(images):\n"
        "        end = time.perf_counter() + 0.05\n"
        "        out = net(images)\n"
        "        time.sleep(max(0.0, end - time.perf_counter()))\n"
        "        return out\n"
        "    return answer\n\n"
        + "".join(f"def {name}():\n    return padded({name!r})\n" for name in NETWORKS)
    )
    yield from _drags("model padded to 50 ms", code, None, 100.0)


def _drags(work: str, code: str, median: float | None, ninety_fifth: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        scan = digit_scan(folder, 300)
        (folder / "padded_digits.py").write_text(code)
        module = "padded_digits" if code else "orbical.zoo.digits"
        models = [f"--model={one}={module}:{one}()" for one in NETWORKS]
        with served(scan, *models, path=folder) as server:
            tab = opened(browser, server.url)
            latencies, rate, behind = dragged(tab, 5.0)
    if median is not None:
        yield under(f"drag to repaint, {work}, median", statistics.median(latencies), median)
    yield under(f"drag to repaint, {work}, p95", quantile(latencies, 0.95), ninety_fifth)
    if median is not None:
        ours, target = f"{rate:.0f} / s", "30 / s"
        yield Row(f"updates, {work}", ours, "target", target, rate / 30, ">= 1", rate >= 30)
    else:
        yield under(f"behind on release, {work}", behind, 150.0)


def large_scan(path: Path, samples: int = MANY, elements: int = 72) -> int:
    """Write a scan of many samples along rotations by 2 models; give the bytes of its arrays."""
    group = ob.groups.rotations(elements)
    images, labels = ob.datasets.mnist(split="test")
    from orbical.zoo import digits

    nets = {name: digits.load(name) for name in NETWORKS}
    small = ob.scan(nets, (images[:32], labels[:32]), group=group, task="classification",
                    progress=False)  # fmt: skip
    record = replace(
        small.record,
        data=replace(small.record.data, samples=samples),
        run=replace(small.record.run, chunk=1024 * 72 // elements),  # files of one size
    )
    specs = {}
    for name, array in small.arrays.items():
        if name == "label":
            continue
        dims = array.metadata.dimension_names
        shape = tuple(samples if dim == "sample" else size
                      for dim, size in zip(dims, array.shape, strict=True))  # fmt: skip
        specs[name] = ArraySpec(dims, shape, str(array.dtype), dict(array.attrs))
    label = np.random.default_rng(0).integers(0, 10, samples)
    truth = {"label": Fixed(("sample",), label, {"meaning": "truth"})}
    store = create(path, record, specs, group, truth)
    for chunk in range(store.done.shape[1]):
        _fill(store, chunk, group, label[record.rows(chunk)])
    return sum(int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize for one in specs.values())


def _fill(store: Store, chunk: int, group: Any, label: np.ndarray) -> None:
    """Write one chunk of responses like those of a plain and of an augmented network."""
    rng = np.random.default_rng(chunk)
    rows = store.record.rows(chunk)
    count, angle = rows.stop - rows.start, np.deg2rad(group.coords["angle"])
    defect = rng.random((count, len(angle)), np.float32) * 0.1
    store.finish(None, chunk, {"action_defect": defect})
    for model, depth in enumerate((4.0, 0.6)):
        turn = np.cos(angle - rng.normal(0, 0.3, (count, 1)))
        odds = 2 + rng.normal(0, 1, (count, 1)) + depth * (turn - 1)
        odds += 0.3 * rng.normal(size=odds.shape)
        score = (1 / (1 + np.exp(-odds))).astype(np.float32)
        correct = score > 0.5
        sure = np.maximum(score, 1 - score)
        wrong = (label[:, None] + 1 + rng.integers(0, 9, correct.shape)) % 10
        mean = np.full((count, 10), 0.01, np.float32)
        mean[np.arange(count), label] = score.mean(1)
        answers = {
            "score": score,
            "score_vs_consensus": score,
            "confidence": sure,
            "correct": correct,
            "predicted": np.where(correct, label[:, None], wrong).astype(np.int32),
            "consensus": mean,
            "consensus_vs_truth": score.mean(1),
            "invariance_gap": score.std(1),
        }
        store.finish(model, chunk, answers)


def clicked(tab: Any) -> list[float]:
    """Click on 25 places of the embedding: ms until the individual plot is painted."""
    box = tab.locator(".embedding .scatter").bounding_box()
    rng = np.random.default_rng(0)
    times = []
    for x, y in 0.35 + 0.3 * rng.random((25, 2)):
        tab.evaluate("() => (orbicalLog.painted = [])")
        tab.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
        tab.wait_for_timeout(400)
        times += [one["now"] - one["from"] for one in painted(tab, "sample")[-1:]]
    return times


def million() -> Iterator[Row]:
    """Open a scan of 1,000,000 samples x 8 elements x 2 models, click in it, and filter it."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        path = Path(name) / "million.zarr"
        large_scan(path, MILLION, 8)
        yield under("filter by two columns, 1,000,000 samples, worst of 4", filtered(path), 50.0)
        with served(path) as server:
            tab = opened(browser, server.url)
            shown = float(tab.evaluate("() => orbicalLog.ready"))
            tab.wait_for_timeout(8000)
            times = clicked(tab)
    yield under("page ready, 1,000,000 x 8 x 2", shown, 3500.0)
    yield under("click to individual plot, 1,000,000 samples, median", np.median(times), 60.0)
    yield under("click to individual plot, 1,000,000 samples, worst of 25", max(times), 60.0)


def filtered(path: Path) -> float:
    """Filter by columns that were computed before: ms from the request to the mask."""
    session = open_session(path)
    clauses = ["label:{}", "confidence@plain:0.{}..0.9", "gap:0.{}..", "first_failure:..4{}"]
    times = []
    for number in range(3):  # the first computes the columns; no mask is asked for twice
        for one, other in itertools.pairwise([*clauses, clauses[0]]):
            chosen = [clause.format(number) for clause in (one, other)]
            start = time.perf_counter()
            session.handle({"kind": "subset", "selection": {"filter": chosen}})
            times.append((time.perf_counter() - start) * 1000)
    return max(times[len(clauses) :])


def click() -> Iterator[Row]:
    """Click in the embedding of 100,000 samples."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        path = Path(name) / "large.zarr"
        large_scan(path)
        with served(path) as server:
            tab = opened(browser, server.url)
            tab.wait_for_timeout(2000)
            times = clicked(tab)
    yield under("click to individual plot, 100,000 samples, median", np.median(times), 60.0)
    yield under("click to individual plot, 100,000 samples, worst of 25", max(times), 60.0)


def photo_network(folder: Path) -> Path:
    """Write an ONNX file of a small network for photographs of 224 x 224, with random weights."""
    import torch

    torch.manual_seed(0)
    widths = (3, 16, 32, 64, 128)
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [torch.nn.Conv2d(before, after, 3, 2, 1), torch.nn.ReLU()]
    end = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(widths[-1], 1000)]
    path = folder / "network.onnx"
    example = (torch.zeros(2, 3, 224, 224),)
    batch = torch.export.Dim("n", min=1)
    net = torch.nn.Sequential(*layers, *end).eval()
    torch.onnx.export(net, example, path, dynamic_shapes=[{0: batch}], verbose=False)
    return path


def look() -> Iterator[Row]:
    """Take a first look at a network on photographs: from the command to the first picture."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        rng = np.random.default_rng(0)
        (folder / "photos").mkdir()
        for number in range(200):
            coarse = rng.integers(0, 256, (15, 20, 3), np.uint8)
            photo = Image.fromarray(coarse).resize((640, 480))
            photo.save(folder / "photos" / f"{number}.jpg")
        here = mock.patch.dict(os.environ, TMPDIR=name)  # a look taken before is not continued
        with here, served(photo_network(folder), str(folder / "photos")) as server:
            opened(browser, server.url, ("aggregate", "embedding", "individual"))
            since = (time.time() - server.started) * 1000
    yield under("command to first picture, network.onnx photos/", since, 8000.0)


def ready() -> Iterator[Row]:
    """Open a scan of 100,000 samples x 72 elements x 2 models."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        size = large_scan(folder / "large.zarr") / 1e6
        large_scan(folder / "small.zarr", 2000)
        with served(folder / "small.zarr") as server:
            opened(browser, server.url)
            bare = server.megabytes()
        with served(folder / "large.zarr") as server:
            tab = opened(browser, server.url)
            since = (time.time() - server.started) * 1000
            shown = float(tab.evaluate("() => orbicalLog.ready"))
            held = server.megabytes() - bare
    yield under("page ready, 100,000 x 72 x 2", shown, 3000.0)
    yield under("command to usable page, 100,000 x 72 x 2", since, 10_000.0)
    ratio = held / size
    yield Row(
        "server memory above that of a small scan",
        f"{held:.0f} MB",
        "arrays of the scan",
        f"{size:.0f} MB",
        ratio,
        "<= 1",
        ratio <= 1,
    )


def report() -> Iterator[Row]:
    """Write a report of 2,000 digits, and open it."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        scan = digit_scan(folder, 2000)
        path = write_report(scan, folder / "report.html")
        size = path.stat().st_size / 1e6
        tab = opened(browser, path.as_uri())
        shown = float(tab.evaluate("() => orbicalLog.ready"))
    met = size <= 6
    yield Row("report of 2,000 samples", f"{size:.2f} MB", "target", "6 MB", size / 6, "<= 1", met)
    yield under("report of 2,000 samples opens", shown, 1000.0)


def diagnosis() -> Iterator[Row]:
    """Find failures among 100,000 samples, and turn each switch of what-if to each choice."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large_scan(folder / "large.zarr")
        open_session(digit_scan(folder, 300)).handle({"kind": "failures"})  # imports
        session = open_session(folder / "large.zarr")
        took = timing.processor_seconds(lambda: session.handle({"kind": "failures"}))
        yield timing.at_most("failure finder, 100,000 x 72 x 2", took, "target", 2.0, 1.0)
        session = open_session(digit_scan(folder / "more", 2000))
        about, _ = session.handle({"kind": "whatif"})
        changes = [{part: one} for part, known in about["choices"].items() for one in known[1:]]
        times = [
            timing.processor_seconds(partial(session.handle, {"kind": "whatif", "change": change}))
            for change in changes
        ]
    work = f"what-if switch, 2,000 x 72 x 2, worst of {len(times)}"
    yield under(work, 1000 * max(times), 200.0)


if __name__ == "__main__":
    timing.run([live, slow, click, ready, million, report, look, diagnosis], __doc__ or "")
