"""The mutation score of the tests: change the code at random places, and count what tests notice.

    .venv/bin/python tools/mutants.py 300 --seed 0

Places are drawn from the packages named in `PACKAGES`, or after `--packages`, and at each one of
the mutations that cosmic-ray knows. Each mutant runs against the unit tests most likely to notice
it, in a copy of what is staged or committed: the doctests of its module, then the test files that
name what the module defines. It is killed by the first test that fails, or by running three times
as long as these tests take. Results are kept in `build/mutants.jsonl`; the same command goes on
where it was interrupted. cosmic-ray is installed into `.venv-mutants`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ["bounds", "calibration", "conformal", "scanning", "store"]
RESULTS = ROOT / "build" / "mutants.jsonl"
PRELOADED = """
dask.array hypothesis matplotlib.figure numpy pandas pytest safetensors.torch scipy.optimize
scipy.spatial.transform scipy.special scipy.stats sklearn.base sklearn.isotonic torch torchmetrics
typer xarray zarr
"""
"""Imported once: each mutant runs in a fork of this process."""
ELSEWHERE = {"browser", "cases", "zoo", "web", "training"}
"""Folders of tests that are of other packages, or not unit tests."""
KIN = {"scanning": {"store", "test_scan.py"}, "store": {"scanning", "test_scan.py"}}
"""Folders and files of tests that run another package from end to end."""
MOST_FILES = 8
"""Test files that a mutant runs against, at most: a survivor may be killed by one that is left."""
BUDGET = 40.0
"""Seconds of processor time that the tests of one mutant take at most where nothing is changed."""


def drawn(count: int, seed: int, packages: list[str]) -> list[dict[str, Any]]:
    """Draw mutants, by cosmic-ray: a place, then one of its mutations."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    classes = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    operators = {name: make() for name, make in classes.items() if not make.arguments()}
    places: dict[tuple[str, tuple[int, int]], list[tuple[str, int]]] = {}
    for package in packages:
        for path in sorted((ROOT / "src" / "orbical" / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            tree, idle = get_ast(text), never_run(text)
            for name, operator in operators.items():
                starts = (at for node in ast_nodes(tree) for at, _ in mutations(operator, node))
                for number, start in enumerate(starts):
                    if start not in idle:
                        key = (path.relative_to(ROOT).as_posix(), start)
                        places.setdefault(key, []).append((name, number))
    rng, found = random.Random(seed), []
    for file, (line, _) in rng.sample(sorted(places), len(places)):
        name, number = rng.choice(places[file, (line, _)])
        text = (ROOT / file).read_text(encoding="utf-8")
        changed = mutate_code(text, operators[name], number)
        if changed is not None and compiles(changed):
            found.append({"file": file, "line": line, "operator": name, "text": changed})
        if len(found) == count:
            break
    return found


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


def likely_tests(tree: Path, file: str) -> list[str]:
    """Return test files by how many of the module's definitions they name, the doctests first."""
    module = ast.parse((tree / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in module.body if isinstance(node, kinds)}
    package, stem = Path(file).parts[2], Path(file).stem
    own = {package, *KIN.get(package, ())}
    ranks = {}
    for path in (tree / "tests").rglob("test_*.py"):
        inside = path.relative_to(tree / "tests").parts
        if not ELSEWHERE & {*inside}:
            named = names & {*re.findall(r"\w+", path.read_text(encoding="utf-8"))}
            rank = 3 * len(named) + 3 * (stem in path.stem) + 2 * bool(own & {*inside})
            if rank:
                ranks[path.relative_to(tree).as_posix()] = rank
    return [file, *sorted(ranks, key=lambda name: (-ranks[name], name))]


def run(tree: Path, tests: list[str], seconds: float) -> tuple[str, float]:
    """Run tests in a fork of this process; return how they ended, and the processor time."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        log = os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(tree)
        sys.path[:0] = [str(tree / folder) for folder in ("src", "studies", "audits")]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
        import pytest

        os._exit(int(pytest.main(["-x", "-p", "no:xdist", "--part", "unit", *tests])))
    latest = time.monotonic() + 30 * seconds  # for tests that wait for ever
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > latest:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    none_collected = 5
    outcomes = {0: "passed", none_collected: "passed", -signal.SIGXCPU: "timeout"}
    outcomes[-signal.SIGKILL] = "timeout"
    return outcomes.get(code, "failed"), used.ru_utime + used.ru_stime


class Bench:
    """A copy of the tree in which mutants are made, and the time that tests take in it."""

    def __init__(self, tree: Path) -> None:
        words = ["git", "checkout-index", "--all", f"--prefix={tree}{os.sep}"]
        subprocess.run(words, cwd=ROOT, check=True)
        self.tree = tree
        self.times: dict[str, float] = {}  # by test file; infinite where it fails unchanged

    def tests(self, file: str) -> list[str]:
        """Return the tests of a module that pass and together fit the budget."""
        chosen, left = [], BUDGET
        for test in likely_tests(self.tree, file)[:MOST_FILES]:
            if test not in self.times:
                outcome, seconds = run(self.tree, [test], BUDGET)
                self.times[test] = seconds if outcome == "passed" else float("inf")
            cost = self.times[test] - min(self.times.values())  # all load the same packages
            if cost <= left:
                chosen.append(test)
                left -= cost
        return chosen

    def outcome(self, mutant: dict[str, Any]) -> str:
        """Return killed, timeout or survived."""
        path, tests = self.tree / mutant["file"], self.tests(mutant["file"])
        whole, old = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutant["text"], encoding="utf-8")
        try:
            outcome, _ = run(self.tree, tests, 3 * BUDGET)
        finally:
            path.write_text(whole, encoding="utf-8")
            os.utime(path, (old.st_atime, old.st_mtime))  # its bytecode is valid again
        return {"passed": "survived", "failed": "killed"}.get(outcome, outcome)


def changed_line(mutant: dict[str, Any]) -> Iterator[str]:
    """Yield the first line that a mutant changes, before and after."""
    old = (ROOT / mutant["file"]).read_text(encoding="utf-8").splitlines()
    new = mutant["text"].splitlines()
    before, after = next(pair for pair in zip(old, new, strict=False) if pair[0] != pair[1])
    yield from (before.strip(), after.strip())


def from_cosmic_ray(words: list[str]) -> list[dict[str, Any]]:
    """Draw mutants in an environment of its own."""
    folder = ROOT / ".venv-mutants"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, ROOT / "tools" / "install_packages.py", "cosmic-ray"], check=True)
    ran = subprocess.run([python, __file__, *words, "--draw"], check=True, stdout=subprocess.PIPE)
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def main(words: list[str]) -> int:
    """Draw mutants, run their tests, and print the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawText)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--draw", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.draw:
        print(json.dumps(drawn(given.count, given.seed, given.packages)))
        return 0
    os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    mutants = from_cosmic_ray(words)
    for name in PRELOADED.split():
        __import__(name)
    RESULTS.parent.mkdir(exist_ok=True)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    known = {tuple(row[:-1]): row[-1] for row in map(json.loads, lines)}
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for mutant in mutants:
            key = (mutant["file"], mutant["line"], mutant["operator"], *changed_line(mutant))
            if key not in known:
                known[key] = bench.outcome(mutant)
                with RESULTS.open("a") as results:
                    results.write(json.dumps([*key, known[key]]) + "\n")
            outcomes[known[key]] += 1
            place = f"{mutant['file'].removeprefix('src/orbical/')}:{mutant['line']}"
            print(f"{known[key]:9}{place}\n    {key[3]}\n    {key[4]}", flush=True)
    from orbical.calibration import wilson_interval

    killed, total = outcomes["killed"] + outcomes["timeout"], outcomes.total()
    low, high = wilson_interval(killed / total, total)
    print(f"{killed} of {total} killed: {killed / total:.1%} ({low:.1%} to {high:.1%})")
    return 0


RawText = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
