"""The command `orbical calibration` as tests run it, and outputs to run it on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from typer.testing import CliRunner

from orbical.cli import calibration as command
from orbical.errors import InputError

FEW = ["--resamples", "40"]


def outputs(folder: Path, name: str, sharpness: float = 1.0, seed: int = 0) -> Path:
    """Save logits of a model that is calibrated at sharpness 1; all have the same labels."""
    truth = np.random.default_rng(7).normal(0, 1.5, (400, 4))
    labels = (truth + np.random.default_rng(8).gumbel(size=truth.shape)).argmax(1)
    noise = np.random.default_rng(seed).normal(0, 0.05, truth.shape)
    path = folder / f"{name}.npz"
    np.savez(path, logits=(truth * sharpness + noise).astype(np.float32), labels=labels)
    return path


def run(*words: object) -> str:
    app = typer.Typer()
    app.command()(command.calibration)
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: object) -> str:
    app = typer.Typer()
    app.command()(command.calibration)
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(done.exception, InputError)
    return str(done.exception)
