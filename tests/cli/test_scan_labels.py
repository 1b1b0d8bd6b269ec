"""`orbical scan --task` multilabel, ordinal (of signals) and text, on arrays in a file."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical.cli.arguments import task_options
from orbical.errors import InputError

MODELS = """
import torch
def levels(images):
    return images[:, 0, 0] - 0.5
def reader(images):
    return [f"{value:.1f}" for value in images.mean((1, 2, 3)).tolist()]
def sure_reader(images):
    return reader(images), images.mean((1, 2, 3))
def ends(signals):
    return torch.stack([signals[:, 0, 0], signals[:, 0, -1]], 1)
"""


def test_the_command_scans_labels_grades_and_texts(orbical, tmp_path):
    (tmp_path / "answers.py").write_text(MODELS)
    draw = np.random.default_rng(0)
    images = draw.random((12, 1, 3, 3), np.float32)
    texts = [f"{value:.1f}" for value in images.mean((1, 2, 3))]
    for name, x, y in (
        ("labels", images, draw.integers(0, 2, (12, 3))),
        ("grades", images[:, 0], draw.integers(0, 2, 12)),
        ("texts", images, np.array(texts)),
    ):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y)

    def scanned(name, model, *words):
        given = ["scan", "-m", f"mine=answers:{model}", "-d", f"{name}.npz", "-o", f"{name}.zarr"]
        return orbical(tmp_path, *given, *words)

    said = scanned("labels", "levels", "-t", "multilabel", "-g", "cyclic:4")
    assert "F1 of the predicted labels" in said
    options = ("--score", "jaccard", "--threshold", "0.3", "--classes", "a,b,c", "--overwrite")
    said = scanned("labels", "levels", "-t", "multilabel", "-g", "cyclic:4", *options)
    assert "overlap of predicted and true labels" in said
    kept = ob.load(tmp_path / "labels.zarr")
    assert kept.record.task.settings["threshold"] == 0.3
    assert kept.data["class_name"].values.tolist() == ["a", "b", "c"]
    said = scanned("grades", "ends", "-t", "ordinal", "--input", "signals", "-g", "shifts:1*sign")
    assert "ranked probability score" in said
    said = scanned("texts", "reader", "-t", "text", "-g", "cyclic:4")
    assert "character error rate" in said
    short = ("-t", "text", "-g", "cyclic:4", "--length", "2", "--no-resume")
    assert "at most 2 characters" in orbical(
        tmp_path, "scan", "-m", "mine=answers:reader", "-d", "texts.npz", *short, expect=2
    )
    assert "'confidence'; let the model return a confidence" in orbical(
        tmp_path, "calibration", "texts.zarr", expect=2
    )
    scanned("texts", "sure_reader", "-t", "text", "-g", "cyclic:4", "-m", "plain=answers:reader",
            "--overwrite", "-q")  # fmt: skip
    said = orbical(tmp_path, "calibration", "texts.zarr", "--resamples", "20")
    assert "mine, at the identity" in said
    assert "plain, a" not in said
    assert "'plain': returns no confidence, so it is not measured" in said


def test_options_of_another_task_are_refused():
    assert task_options("multilabel", {"threshold": 0.0, "score": None}) == {"threshold": 0.0}
    with pytest.raises(InputError, match="--score: expected none for the task classification"):
        task_options("classification", {"score": "f1"})
    with pytest.raises(InputError, match=r"--per-point: .* it is an option of regression"):
        task_options("mine.tasks:Task", {"per_point": True})


def test_positions_can_be_named():
    pitch = ob.tasks.Regression(ob.actions.SignalWindow(8), "positions:1/3")
    assert pitch.output.step == pytest.approx(1 / 3)
    assert ob.tasks.Regression(ob.actions.Signals(), "positions").output.step == 1
    with pytest.raises(InputError, match="expected positions:STEP"):
        ob.tasks.Regression(ob.actions.Signals(), "positions:a")
