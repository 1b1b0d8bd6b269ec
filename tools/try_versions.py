"""Run a part of the tests with the lowest and with the newest versions of all dependencies.

`make test-versions` makes an environment for each beside `.venv` and runs the tests
named here in it: `.venv-lowest` holds the lowest version that `pyproject.toml` allows of each
package it names, `.venv-newest` the newest. `.venv-losses` holds torch, NumPy and the package
without its dependencies, in which the losses must work. Torch comes from where pip finds it, which
may be a build for GPUs of several GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOR_DEVELOPERS = {"benchmarks", "dev", "docs"}
TEST_TOOLS = ["hypothesis", "pytest", "pytest-timeout"]
TESTS = [
    "tests/calibration/test_metrics.py",  # first: it forks, before others start threads
    "tests/cli/test_scan_command.py",
    "tests/conformal/test_coverage.py",
    "tests/figures/test_orbit.py",
    "tests/interface/test_report.py",
    "tests/interface/test_server.py",
    "tests/predictors",
    "tests/recalibrate/test_sklearn_protocol.py",
    "tests/store",
    "tests/test_embedding.py",
    "tests/test_losses.py",
    "tests/test_nero.py",
    "tests/test_scan.py",
    "tests/test_statistical_claims.py",
]
LOSSES = """
import torch
from orbical import losses
logits, labels = torch.randn(64, 5, requires_grad=True), torch.randint(0, 5, (64,))
mean, spread, target = logits[:, 0], 1 + logits[:, 1].square(), torch.zeros(64)
of_labels = ("ece", "esd", "esd_softened", "mmce", "s_avuc", "sb_ece")
values = [getattr(losses, name)(logits, labels) for name in of_labels]
values += [losses.gaussian_nll(mean, spread, target), losses.beta_nll(mean, spread, target)]
sum(values).backward()
assert bool(torch.isfinite(logits.grad).all()) and bool(logits.grad.any())
"""


def requirement(name: str) -> str:
    """Return a tool of the developers with the bound of the project.

    >>> requirement("pytest").startswith("pytest>=")
    True
    """
    return next(text for text in extras()["dev"] if text.split(">")[0] == name)


def extras() -> dict[str, list[str]]:
    """Return the extras of the project."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)["project"]["optional-dependencies"]
    return found


def environment(name: str, *words: str) -> Path:
    """Make an environment, or complete it, and return its interpreter."""
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, ROOT / "tools" / "install_packages.py", *words], check=True)
    return python


def tested(name: str, *words: str) -> bool:
    """Make an environment with all extras for users, and run the tests in it."""
    users = ",".join(sorted({*extras()} - FOR_DEVELOPERS))
    tools = [requirement(tool) for tool in TEST_TOOLS]
    python = environment(name, *words, "-e", f"{ROOT}[{users}]", *tools)
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    settings.pop("PYTHONPATH", None)
    print(f"Tests with the {name} versions", flush=True)
    ran = subprocess.run([python, "-m", "pytest", "--part", "unit", *TESTS], cwd=ROOT, env=settings)
    return ran.returncode == 0


def losses_alone() -> bool:
    """Use the losses where torch and NumPy are all that is installed."""
    python = environment("losses", "-c", "constraints.txt", "torch", "numpy")
    subprocess.run([python, ROOT / "tools" / "install_packages.py", "--no-deps", ROOT], check=True)
    print("Losses with torch and NumPy alone", flush=True)
    return subprocess.run([python, "-c", LOSSES], cwd=ROOT / "docs").returncode == 0


def main() -> int:
    """Test all environments, and return the exit status."""
    passed = [
        losses_alone(),
        tested("lowest", "--resolution", "lowest-direct"),
        tested("newest", "--upgrade"),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
