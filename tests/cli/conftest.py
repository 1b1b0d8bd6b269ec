"""The command line for tests: as a program of its own, or in this process."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from orbical.cli import main

sys.path.insert(0, str(Path(__file__).parent))  # for what these tests share

Command = Callable[..., str]


@pytest.fixture
def program() -> Command:
    """`orbical WORDS` as a user runs it in a folder: `program(folder, *words, expect=0)`."""

    def run(folder: Path, *words: str, expect: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "orbical", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def orbical(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The same in this process, where Python and torch need not start anew for each line."""

    def run(folder: Path, *words: str, expect: int = 0) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["orbical", *words])
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        loaded = {*sys.modules}
        status: object = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
        finally:
            # Another test's folder has other modules of the same names.
            for name in {*sys.modules} - loaded:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                    del sys.modules[name]
        said = capsys.readouterr()
        assert status == expect, said.out + said.err
        return said.out + said.err

    return run
