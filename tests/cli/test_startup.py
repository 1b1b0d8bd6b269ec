"""How the command starts: quickly, and quietly where it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import orbical

SOURCES = str(Path(orbical.__file__).parents[1])


def start(*words: str, before: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python; modules in the folder `before` take precedence."""
    path = f"{before}:{SOURCES}" if before else SOURCES
    return subprocess.run(
        [sys.executable, *words],
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        # A test run in the background ignores Ctrl-C, and so would its children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_help_imports_no_package_that_is_slow_to_import() -> None:
    slow = "{'torch', 'numpy', 'xarray', 'zarr', 'matplotlib', 'pandas', 'scipy', 'sklearn'}"
    code = f"import sys, orbical.cli as c; c._register(); print(sorted({slow} & {{*sys.modules}}))"
    done = start("-c", code)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("groups", []),
        ("groups cyclic:4*time_reversal --json", []),
        ("info {run}", []),
        ("check {run} --max-gap 1", []),
        ("check {run} --min-score 0 --min-worst-accuracy 0 --max-accuracy-drop 1", []),
        ("check {run} --max-gap 1 --max-changed 1", ["torch"]),
    ],
)
def test_commands_import_no_slow_package_that_they_do_not_need(
    tmp_path: Path, words: str, needed: list[str]
) -> None:
    """Importing torch, or xarray with dask, takes longer than these commands take to run."""
    run = tmp_path / "run.zarr"
    if "{run}" in words:
        images = torch.rand(4, 1, 8, 8)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
        data = images, torch.arange(4) % 3
        orbical.scan(net, data, group="cyclic:4", out=run, progress=False)
    line = ["orbical", *words.format(run=run).split()]
    slow = {"torch", "xarray", "dask", "pandas", "matplotlib"}
    code = (
        f"import sys, orbical.cli as cli; sys.argv = {line!r}\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert end.code in (None, 0, 3), end.code\n"
        f"sys.stderr.write(str(sorted({slow!r} & {{*sys.modules}})))"
    )
    done = start("-c", code)
    assert (done.returncode, done.stderr) == (0, str(needed))
    assert done.stdout


@pytest.mark.system
@pytest.mark.parametrize(
    ("during", "command"), [("typer", "info"), ("rich", "calibration"), ("zarr", "info")]
)
def test_ctrl_c_during_the_imports_ends_quietly(tmp_path: Path, during: str, command: str) -> None:
    """A traceback was printed for the first seconds of every command."""
    stop = "import signal, time; signal.raise_signal(signal.SIGINT); time.sleep(20)"
    (tmp_path / f"{during}.py").write_text(stop)
    done = start("-m", "orbical", command, "run.zarr", before=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
