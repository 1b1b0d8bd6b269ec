"""Build what would be published, and install it in clean environments.

    make release-check                     every Python of `VERSIONS` that runs here
    make release-check ARGS="3.11"         some of them

Nothing is uploaded. Environments are made in a temporary folder. Torch comes from where pip finds
it, which may be a build for GPUs of several GB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
FIRST_STEPS = """
import orbical as ob
images, labels = ob.datasets.digits()
def model(x):
    return -(x.flatten(1)[:, None] - images[:10].flatten(1)[None]).square().sum(-1)
scan = ob.scan(model, (images[:20], labels[:20]), group="rotations:4", task="classification",
               progress=False, out="run.zarr")
ob.report(scan, "report.html")
ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "orbit.png")
print(ob.nero.headline(scan))
"""
SDIST_TESTS = ("tests/test_losses.py", "tests/test_statistical_claims.py", "tests/test_nero.py")


def run(*words: object, cwd: Path = ROOT) -> None:
    """Run a command without the settings of this checkout, and stop if it fails."""
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    settings |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    subprocess.run([str(word) for word in words], cwd=cwd, check=True, env=settings)


def interpreter(version: str) -> str | None:
    """Return the Python of this version, if there is one that runs.

    A version manager leaves commands for versions that are not active; they only fail.
    """
    command = shutil.which(f"python{version}")
    works = command and subprocess.run([command, "-c", ""], capture_output=True).returncode == 0
    return command if works else None


def built(folder: Path) -> tuple[Path, Path]:
    """Build both distributions, check their metadata and how an index shows the README."""
    run(sys.executable, "-m", "venv", folder / "tools")
    python = folder / "tools" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "build", "twine")
    run(python, "-m", "build", "-q", "--outdir", folder / "dist", ROOT)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def installed(wheel: Path, command: str, folder: Path) -> Path:
    """Install the wheel as a user would, take the first steps, and return the interpreter."""
    run(command, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    run(python, "-m", "pip", "check")
    run(folder / "bin" / "orbical", "--version", cwd=folder)
    run(python, "-c", FIRST_STEPS, cwd=folder)
    run(folder / "bin" / "orbical", "check", "run.zarr", "--max-changed", "1", cwd=folder)
    run(python, "-m", "pip", "install", "-q", "orbical[parquet]")  # as `MissingExtra` says
    return python


def tested(sdist: Path, python: Path, folder: Path) -> None:
    """Run some tests of the source distribution against what was installed."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    shutil.rmtree(source / "src")  # the installed package is tested, not the source beside it
    run(python, "-m", "pip", "install", "-q", "pytest", "pytest-timeout", "hypothesis")
    run(python, "-m", "pytest", "--part", "unit", *SDIST_TESTS, cwd=source)


def main(versions: list[str]) -> int:
    """Check all versions, and return the exit status."""
    commands = {version: interpreter(version) for version in versions}
    present = {version: command for version, command in commands.items() if command}
    with TemporaryDirectory(prefix="orbical-release-") as name:
        folder = Path(name)
        wheel, sdist = built(folder)
        for version, command in present.items():
            print(f"Python {version}", flush=True)
            start = time.monotonic()
            python = installed(wheel, command, folder / version)
            tested(sdist, python, folder / f"source-{version}")
            shutil.rmtree(folder / version)
            print(f"Passed in {time.monotonic() - start:.0f} s", flush=True)
    print("Passed: " + (", ".join(present) or "none"))
    if absent := [version for version in versions if version not in present]:
        print("Not installed here, not checked: " + ", ".join(absent))
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*VERSIONS]))
