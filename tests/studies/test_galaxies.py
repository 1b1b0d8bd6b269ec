"""The trainings of the galaxy study: resumed, measured, invariant where they must be."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from orbical.datasets import galaxies
from orbical.studies.galaxies import commands, training
from orbical.studies.galaxies.settings import Trial, trials


@pytest.fixture
def packed(tmp_path):
    """Generated galaxies in the form of the packed catalogues."""
    arrays = {}
    for part, seed in (("train", 0), ("test", 1)):
        images, labels = galaxies(132, size=24, seed=seed)
        arrays[f"efigi-{part}-pixels"] = images.expand(-1, 3, -1, -1).mul(255).byte().numpy()
        arrays[f"efigi-{part}-labels"] = labels.numpy()
    np.savez(tmp_path / "galaxies.npz", **arrays)
    return tmp_path / "galaxies.npz"


def test_every_group_blur_data_and_seed_is_trained_once():
    named = [str(trial) for trial in trials()]
    assert len(named) == len({*named}) == (2 * 7 + 1) * (3 + 3 + 1) * 3


def test_a_training_is_measured_along_the_circle_and_not_repeated(packed, tmp_path, capsys):
    words = ["train", "--pack", str(packed), "--out", str(tmp_path / "out"), "--epochs", "1"]
    words += ["--seeds", "0", "--only", "efigi/cyclic:4/blur 0/"]
    commands.main(words)
    rows = [json.loads(line) for line in (tmp_path / "out" / "trials.jsonl").open()]
    assert [row["name"] for row in rows] == ["efigi/cyclic:4/blur 0/seed 0"]
    assert rows[0]["defect_group"] < 1e-4
    assert 0 < rows[0]["action_defect"] < 0.2
    assert rows[0]["refitted_nll"] < rows[0]["nll"]  # it has seen the labels
    (file,) = (tmp_path / "out").glob("*.npz")
    with np.load(file) as kept:
        accuracy, confidence, _ = kept["curves"].astype(float)
        right = kept["logits"].argmax(1) == np.load(packed)["efigi-test-labels"]
    assert accuracy[0] == pytest.approx(right.mean(), abs=2e-3)
    assert np.allclose(accuracy[::9], accuracy[0], atol=0.03)  # quarter turns, up to resampling
    assert ((confidence > 0) & (confidence <= 1)).all()
    commands.main(words)
    assert "0 networks to train" in capsys.readouterr().out.splitlines()[-1]


def test_images_are_blurred_once_and_keep_their_disc():
    images = torch.rand(2, 3, 24, 24)
    kept = training.prepared(images, 0.0)
    assert float(kept[..., 0, 0].max()) == 0
    assert torch.equal(kept[..., 10:14, 10:14], images[..., 10:14, 10:14])
    assert training.prepared(images, 2.0)[..., 8:16, 8:16].std() < 0.3 * images.std()


def test_a_refitted_regression_solves_its_penalised_problem():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    features, labels = torch.randn(90, 5), torch.arange(90) % 3
    ours = training._refitted(features, labels).softmax(1)
    theirs = LogisticRegression(max_iter=1000, tol=1e-8).fit(features, labels)
    assert np.allclose(ours, theirs.predict_proba(features), atol=1e-3)


def test_the_gap_is_the_root_mean_square_distance_from_the_orbits_mean():
    probabilities = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    assert training._gap(probabilities) == pytest.approx(0.5)


def test_a_trial_prints_as_its_name():
    assert str(Trial("efigi", "cyclic:1", 0.0, 0, width=5)) == "efigi/cyclic:1 x 5/blur 0/seed 0"
    assert str(Trial("efigi", "cyclic:8", 1.25, 2)) == "efigi/cyclic:8/blur 1.25/seed 2"
