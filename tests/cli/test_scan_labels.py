"""`orbical scan --task` multilabel, ordinal (of signals) and text, on arrays in a file."""

from __future__ import annotations

import numpy as np

MODELS = """
import torch
def levels(images):
    return images[:, 0, 0] - 0.5
def reader(images):
    return [f"{value:.1f}" for value in images.mean((1, 2, 3)).tolist()]
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
    said = scanned("grades", "ends", "-t", "ordinal", "--input", "signals", "-g", "shifts:1*sign")
    assert "ranked probability score" in said
    said = scanned("texts", "reader", "-t", "text", "-g", "cyclic:4")
    assert "character error rate" in said
    assert "without 'confidence'" in orbical(tmp_path, "calibration", "texts.zarr", expect=2)
