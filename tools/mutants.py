"""The mutation score of the tests: change the code at random places, and count what tests notice.

    .venv/bin/python tools/mutants.py 300 --seed 0

Places are drawn from the packages named in `PACKAGES`, or after `--packages`, and at each one of
the mutations that cosmic-ray knows. First all unit tests run once, so that the functions that each
test calls, and its time, are known. Then each mutant runs against the tests that call the function
it changes, the cheapest files first, in a copy of what is staged or committed. It is killed by the
first test that fails, or by running three times as long as these tests take. Results are kept in
`build/mutants.jsonl`; the same command goes on where it was interrupted. cosmic-ray is installed
into `.venv-mutants`; `--draw FILE` saves the mutants, and `--drawn FILE` runs them on a machine
without cosmic-ray.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ["bounds", "calibration", "conformal", "scanning", "store"]
RESULTS = ROOT / "build" / "mutants.jsonl"
CONTENT = ("src", "tests", "docs", "examples", "conftest.py", "pyproject.toml", "README.md")
"""What the unit tests read."""
PRELOADED = """
dask.array hypothesis matplotlib.figure numpy pandas pytest safetensors.torch scipy.optimize
scipy.spatial.transform scipy.special scipy.stats sklearn.base sklearn.isotonic torch torchmetrics
typer xarray zarr
"""
"""Imported once: tests run in forks of this process."""
BUDGET = 90.0
"""Seconds that the tests of one mutant take at most where nothing is changed."""
ROUNDS = (2, 6, 30, 1000)
"""Files of tests that run together: most mutants are killed by the first two."""

Mutant = dict[str, Any]
Calls = dict[str, tuple[float, list[str]]]
"""The seconds that a test takes, and the functions that it calls, by its name."""


def drawn(count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """Draw mutants, by cosmic-ray: a place, then one of its mutations."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    classes = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    operators = {name: make() for name, make in classes.items() if not make.arguments()}
    places: dict[tuple[str, tuple[int, int]], list[tuple[str, int]]] = {}
    for package in packages:
        for path in sorted((ROOT / "src" / "orbical" / package).rglob("*.py")):
            if path.name.endswith("_kernels.py"):  # for GPUs, which no unit test has
                continue
            text = path.read_text(encoding="utf-8")
            tree, idle = get_ast(text), never_run(text)
            for name, operator in operators.items():
                starts = (at for node in ast_nodes(tree) for at, _ in mutations(operator, node))
                for number, start in enumerate(starts):
                    if start not in idle:
                        key = (path.relative_to(ROOT).as_posix(), start)
                        places.setdefault(key, []).append((name, number))
    rng, mutants = random.Random(seed), []
    for file, (line, _) in rng.sample(sorted(places), len(places)):
        name, number = rng.choice(places[file, (line, _)])
        text = (ROOT / file).read_text(encoding="utf-8")
        changed = mutate_code(text, operators[name], number)
        if changed is not None and compiles(changed):
            mutants.append(
                {
                    **{"file": file, "line": line, "operator": name, "text": changed},
                    "function": f"{file}:{function_at(text, line)}",
                }
            )
        if len(mutants) == count:
            break
    return mutants


def mutations(operator: Any, node: Any) -> list[Any]:
    """Return the places of an operator in a node; some operators fail on a few nodes."""
    try:
        return list(operator.mutation_positions(node))
    except (AttributeError, IndexError):
        return []


def compiles(text: str) -> bool:
    """Check whether a text is a program: some mutations are not."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def never_run(text: str) -> set[tuple[int, int]]:
    """Return the places of a module in annotations, which are never evaluated.

    >>> sorted(never_run("x: int | None = 1"))[:2]
    [(1, 3), (1, 4)]
    """
    places = set()
    for node in ast.walk(ast.parse(text)):
        for field in ("annotation", "returns"):
            part = getattr(node, field, None)
            if part is not None:
                lines = text.splitlines()
                for line in range(part.lineno, part.end_lineno + 1):
                    first = part.col_offset if line == part.lineno else 0
                    last = part.end_col_offset if line == part.end_lineno else len(lines[line - 1])
                    places |= {(line, column) for column in range(first, last)}
    return places


def function_at(text: str, line: int) -> str:
    """Return the qualified name of the function around a line, or nothing.

    >>> function_at("class A:\\n    def f(self):\\n        pass", 3)
    'A.f'
    """
    name, node = "", ast.parse(text)
    inner: list[str] = []
    body: list[ast.stmt] = node.body
    while body:
        for statement in body:
            first = min([statement.lineno, *lines_of_decorators(statement)])
            if first <= line <= (statement.end_lineno or 0):
                break
        else:
            return name
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            inner.append(statement.name)
            name = ".".join(inner)
            inner.append("<locals>")
        elif isinstance(statement, ast.ClassDef):
            inner.append(statement.name)
        body = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
    return name


def lines_of_decorators(statement: ast.stmt) -> list[int]:
    """Return the lines on which the decorators of a definition start."""
    return [node.lineno for node in getattr(statement, "decorator_list", [])]


class Recorder:
    """A plugin of pytest that notes which functions of the package each test of a file calls.

    What is called outside of tests, by imports and fixtures, counts for all tests that follow.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: Calls = {}
        self.failed: set[str] = set()
        self.before: dict[int, CodeType] = {}
        self.codes = self.before
        self.started = 0.0

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as a profiler."""
        if event == "call":
            self.codes[id(frame.f_code)] = frame.f_code

    def pytest_sessionstart(self) -> None:
        """Start to note calls."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)

    def pytest_runtest_logstart(self) -> None:
        """Note the time."""
        self.started = time.process_time()

    def pytest_runtest_call(self) -> None:
        """Note the calls of a test apart."""
        self.codes = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the calls of a test that passes."""
        if report.outcome != "passed":
            self.failed.add(report.nodeid)
        if report.when == "call":
            seen = {*self.before.values(), *self.codes.values()}
            inside = [(code.co_filename.partition("/src/orbical/")[2], code) for code in seen]
            names = {f"src/orbical/{file}:{code.co_qualname}" for file, code in inside if file}
            self.calls[report.nodeid] = (time.process_time() - self.started, sorted(names))
            self.codes = self.before

    def pytest_sessionfinish(self) -> None:
        """Write the tests that pass."""
        sys.setprofile(None)
        passed = {name: call for name, call in self.calls.items() if name not in self.failed}
        self.path.write_text(json.dumps(passed))


class Chooser:
    """A plugin of pytest that leaves out tests, and runs the cheapest ones first."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times = times

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Choose and sort."""
        items[:] = [item for item in items if item.nodeid in self.times]
        items.sort(key=lambda item: self.times[item.nodeid])


def run(tree: Path, tests: list[str], plugin: Any, seconds: float, latest: float) -> str:
    """Run tests in a fork of this process, and return how they ended."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        log = os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(tree)
        sys.path[:0] = [str(tree / "src")]
        os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")])
        import pytest

        words = ["-x"] * isinstance(plugin, Chooser) + ["-p", "no:xdist", "--part", "unit", *tests]
        os._exit(int(pytest.main(words, plugins=[plugin])))
    latest = min(latest, time.monotonic() + 3 * seconds)  # for tests that wait for ever
    while True:
        ended, status, _ = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > latest:
            with contextlib.suppress(ProcessLookupError):  # it has no group before its first line
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    none_collected = 5
    outcomes = {0: "survived", none_collected: "survived"}
    outcomes |= {-signal.SIGXCPU: "timeout", -signal.SIGKILL: "timeout"}
    return outcomes.get(code, "killed")


class Bench:
    """Copies of the tree, one for each process, in which tests run and mutants are made."""

    def __init__(self, folder: Path, processes: int, latest: float) -> None:
        self.folder, self.latest = folder, latest
        self.record_latest = time.monotonic() + (latest - time.monotonic()) / 3
        first = folder / "0"
        if (ROOT / ".git").exists():
            words = ["git", "checkout-index", "--all", f"--prefix={first}{os.sep}"]
            subprocess.run(words, cwd=ROOT, check=True)
        else:
            copy_content(ROOT, first)
        for number in range(1, processes):
            copy_content(first, folder / str(number))
        self.free = multiprocessing.get_context("fork").SimpleQueue()
        for number in range(processes):
            self.free.put(folder / str(number))
        self.calls: Calls = {}

    def recorded(self, test: str) -> Calls:
        """Run a file of tests once, and return what its tests call, if there is time."""
        if time.monotonic() > self.record_latest:
            return {}
        tree = self.free.get()
        path = tree / "calls.json"
        path.unlink(missing_ok=True)
        run(tree, [test], Recorder(path), 10 * BUDGET, self.record_latest)
        self.free.put(tree)
        calls: Calls = json.loads(path.read_text()) if path.exists() else {}
        return calls

    def times(self, mutant: Mutant) -> dict[str, float]:
        """Return the times of the tests that call the function of a mutant, or its module."""
        file, _, function = mutant["function"].partition(":")
        reached = {
            test: seconds
            for test, (seconds, names) in self.calls.items()
            if (mutant["function"] in names if function else named_of(names, file))
        }
        within, left = {}, BUDGET
        for test in sorted(reached, key=lambda name: reached[name]):
            if reached[test] < left:
                within[test] = reached[test]
                left -= reached[test]
        return within

    def outcome(self, mutant: Mutant) -> str:
        """Return killed, timeout, survived, not called or not run."""
        times = self.times(mutant)
        by_file: dict[str, float] = defaultdict(float)
        for test, seconds in times.items():
            by_file[test.partition("::")[0]] += seconds
        files = sorted(by_file, key=lambda name: by_file[name])
        tree = self.free.get()
        path = tree / mutant["file"]
        whole, old = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutant["text"], encoding="utf-8")
        outcome = "survived" if times else "not called"
        for size in ROUNDS:
            chosen, files = files[:size], files[size:]
            if chosen and outcome == "survived":
                limit = 20 + 3 * sum(by_file[name] for name in chosen)
                outcome = run(tree, chosen, Chooser(times), limit, self.latest)
        path.write_text(whole, encoding="utf-8")
        os.utime(path, (old.st_atime, old.st_mtime))  # its bytecode is valid again
        self.free.put(tree)
        return outcome if time.monotonic() < self.latest else "not run"


def copy_content(source: Path, target: Path) -> None:
    """Copy what the unit tests read."""
    target.mkdir(parents=True)
    for name in CONTENT:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy2
        copy(source / name, target / name)


def named_of(names: Iterable[str], file: str) -> bool:
    """Check whether a function of a file is among the names."""
    return any(name.startswith(f"{file}:") for name in names)


def key_of(mutant: Mutant) -> tuple[str | int, ...]:
    """Return what identifies a mutant: its place and the line that it changes, before and after."""
    old = (ROOT / mutant["file"]).read_text(encoding="utf-8").splitlines()
    new = mutant["text"].splitlines()
    before, after = next(pair for pair in zip(old, new, strict=False) if pair[0] != pair[1])
    return (mutant["file"], mutant["line"], mutant["operator"], before.strip(), after.strip())


def from_cosmic_ray(words: list[str], folder: Path) -> list[Mutant]:
    """Draw mutants in an environment of its own."""
    own = ROOT / ".venv-mutants"
    python, path = own / "bin" / "python", folder / "mutants.json"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", own], check=True)
        subprocess.run([python, ROOT / "tools" / "install_packages.py", "cosmic-ray"], check=True)
    subprocess.run([python, __file__, *words, "--draw", path], check=True)
    mutants: list[Mutant] = json.loads(path.read_text())
    return mutants


def evaluate(mutants: list[Mutant], processes: int, latest: float, folder: Path) -> Counter[str]:
    """Run the tests of mutants, print and keep what comes of each, and count."""
    global bench
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):  # the tests that need it are left out
            __import__(name)
    RESULTS.parent.mkdir(exist_ok=True)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    earlier = {tuple(row[:-1]): row[-1] for row in map(json.loads, lines)}
    outcomes = Counter(earlier[key] for key in map(key_of, mutants) if key in earlier)
    bench, fork = Bench(folder, processes, latest), multiprocessing.get_context("fork")
    started = time.monotonic()
    packages = {Path(mutant["file"]).parts[2] for mutant in mutants}
    with fork.Pool(processes) as pool:
        for calls in pool.imap_unordered(recorded, test_files(folder / "0", packages)):
            bench.calls |= calls
    print(f"{len(bench.calls)} tests pass, in {time.monotonic() - started:.0f} s", flush=True)
    left = [mutant for mutant in mutants if key_of(mutant) not in earlier]
    with fork.Pool(processes) as pool:  # forked again, it has what the tests call
        for mutant, outcome in pool.imap_unordered(outcome_of, left):
            key = key_of(mutant)
            outcomes[outcome] += 1
            if outcome != "not run":
                with RESULTS.open("a") as results:
                    results.write(json.dumps([*key, outcome]) + "\n")
            place = f"{mutant['file'].removeprefix('src/orbical/')}:{mutant['line']}"
            print(f"{outcome:11}{place}\n    {key[3]}\n    {key[4]}", flush=True)
    return outcomes


bench: Bench
"""The bench of this process and its forks."""


def recorded(test: str) -> Calls:
    """Return what the tests of a file call."""
    return bench.recorded(test)


def outcome_of(mutant: Mutant) -> tuple[Mutant, str]:
    """Return a mutant and what comes of it."""
    return mutant, bench.outcome(mutant)


def test_files(tree: Path, packages: set[str]) -> list[str]:
    """Return the files with tests of packages: theirs first, the largest first."""
    tests = [path for path in (tree / "tests").rglob("test_*.py") if "browser" not in path.parts]
    folders = (tree / "src" / "orbical" / package for package in packages)
    modules = [path for folder in folders for path in folder.rglob("*.py")]
    tests += [path for path in modules if ">>>" in path.read_text("utf-8")]
    tests.sort(key=lambda path: (not packages & {*path.parts}, -path.stat().st_size))
    return [path.relative_to(tree).as_posix() for path in tests]


def main(words: list[str]) -> int:
    """Draw mutants, run their tests, and print the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawText)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e6, help="when to stop")
    parser.add_argument("--draw", type=Path, help="save the mutants as JSON, and run none")
    parser.add_argument("--drawn", type=Path, help="run these mutants")
    options = parser.parse_args(words)
    latest = time.monotonic() + options.seconds
    if options.draw:
        mutants = drawn(options.count, options.seed, options.packages)
        options.draw.write_text(json.dumps(mutants))
        return 0
    os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        if options.drawn:
            mutants = json.loads(options.drawn.read_text())[: options.count]
        else:
            mutants = from_cosmic_ray(words, Path(folder))
        outcomes = evaluate(mutants, options.processes, latest, Path(folder) / "trees")
    sys.path.insert(0, str(ROOT / "src"))
    from orbical.calibration import wilson_interval

    killed, total = outcomes["killed"] + outcomes["timeout"], outcomes.total() - outcomes["not run"]
    low, high = wilson_interval(killed / total, total)
    print(f"{killed} of {total} killed: {killed / total:.1%} ({low:.1%} to {high:.1%})")
    return 0


RawText = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
