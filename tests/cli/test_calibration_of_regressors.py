"""`orbical calibration` on saved outputs of regressors, evidential ones too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from calibration_command import FEW, outputs, refused, run

import orbical as ob


def test_regression_outputs_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.5, 2, 200)
    path = tmp_path / "reg.npz"
    np.savez(path, mean=np.zeros(200), variance=variance, target=rng.normal(0, variance**0.5))
    answer = json.loads(run(path, "--json", *FEW))["outputs"]["reg"]
    assert {"ence", "gence", "gaussian_nll", "gaussian_crps"} <= set(answer)
    assert answer["gence"]["calibrated"] == pytest.approx(np.pi / 2 - 1, abs=0.1)
    vectors = tmp_path / "vectors.npz"
    wide = rng.uniform(0.5, 2, (100, 2))
    np.savez(vectors, mean=np.zeros((100, 2)), variance=wide, target=rng.normal(0, wide**0.5))
    answer = json.loads(run(vectors, "--json", *FEW))["outputs"]["vectors"]
    assert "mahalanobis_calibration" in answer
    assert "ence" not in answer


def regressor(folder: Path, name: str, scale: float = 1.0, width: int | None = None) -> Path:
    """Save Gaussian predictions of one noise; the variance is right at scale 1."""
    rng = np.random.default_rng(3)
    shape = (300,) if width is None else (300, width)
    variance = rng.uniform(0.5, 2, shape)
    target = rng.normal(0, variance**0.5)
    path = folder / f"{name}.npz"
    np.savez(path, mean=np.zeros(shape), variance=variance * scale, target=target)
    return path


def test_regressors_are_compared_in_pairs(tmp_path: Path) -> None:
    good, timid = regressor(tmp_path, "good"), regressor(tmp_path, "timid", scale=3.0)
    rows = json.loads(run(good, timid, "--json", "--resamples", "200"))["comparisons"]
    by_measure = {row["measure"]: row for row in rows}
    assert by_measure["squared_error"]["difference"] == 0  # their means are the same
    for name in ("gaussian_nll", "gaussian_crps", "ence", "uce", "mahalanobis_calibration"):
        assert by_measure[name]["high"] < 0, name
        assert by_measure[name]["p_value"] < 0.05
    vectors = regressor(tmp_path, "a", width=2), regressor(tmp_path, "b", scale=2.0, width=2)
    rows = json.loads(run(*vectors, "--json", *FEW))["comparisons"]
    assert "gaussian_crps" not in {row["measure"] for row in rows}
    assert "Differences on the same samples" in run(good, timid, *FEW)


def test_a_classifier_and_a_regressor_are_not_compared(tmp_path: Path) -> None:
    paths = outputs(tmp_path, "net"), regressor(tmp_path, "reg")
    with pytest.warns(UserWarning, match="one is a classifier and one a regressor"):
        run(*paths, "--json", *FEW)
    other = tmp_path / "other.npz"
    np.savez(other, mean=np.zeros(300), variance=np.ones(300), target=np.zeros(300))
    with pytest.warns(UserWarning, match="their targets differ"):
        run(paths[1], other, "--json", *FEW)


def test_evidential_outputs_and_parts_of_a_variance_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, one = rng.normal(size=200), np.ones(200)
    evidential = tmp_path / "evidential.npz"
    np.savez(evidential, gamma=0 * one, nu=4 * one, alpha=3 * one, beta=1.6 * one, target=target)
    parts = tmp_path / "parts.npz"
    np.savez(parts, mean=0 * one, aleatoric=0.8 * one, epistemic=0.2 * one, target=target)
    answers = [json.loads(run(path, "--json", *FEW))["outputs"] for path in (evidential, parts)]
    first, second = answers[0]["evidential"], answers[1]["parts"]
    assert first["gaussian_nll"]["value"] == pytest.approx(second["gaussian_nll"]["value"])
    for table in (first, second):
        assert table["aleatoric_bleed"]["value"] == pytest.approx(0.64)
    full = tmp_path / "full.npz"
    np.savez(
        full,
        mean=np.zeros((50, 2)),
        covariance=np.tile(np.eye(2), (50, 1, 1)),
        target=rng.normal(size=(50, 2)),
    )
    assert "mahalanobis_calibration" in json.loads(run(full, "--json", *FEW))["outputs"]["full"]
    np.savez(evidential, gamma=one, nu=one, alpha=one, beta=one, target=target)
    assert "expected alpha > 1" in refused(evidential)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nu", 0.0, "expected nu > 0, got values down to 0"),
        ("beta", -2.0, "expected beta > 0, got values down to -2"),
        ("alpha", 1.0, "expected alpha > 1"),
        ("alpha", np.nan, "expected alpha > 1"),
        ("target", np.nan, "target: expected finite values, got NaN or infinity"),
    ],
)
def test_evidence_that_is_none_is_named_with_its_file(
    tmp_path: Path, name: str, value: float, words: str
) -> None:
    arrays = {key: np.full(9, 2.0) for key in ("gamma", "nu", "alpha", "beta", "target")}
    arrays[name][4] = value
    np.savez(tmp_path / "net.npz", **arrays)
    message = refused(tmp_path / "net.npz", *FEW)
    assert re.match(r"FILES: \S*net(\.npz)?: ", message)
    assert words in message


def test_of_maps_of_values_some_points_are_measured_and_the_table_says_so():
    from orbical.calibration.scan_tables import _kinds_of_scan_table

    def net(images):
        return images, torch.full_like(images, 0.01)

    maps = torch.rand(9, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.DenseRegression(uncertainty="variance")
    scan = ob.scan(net, (maps, maps), group="flips", task=task, progress=False)
    ((name, outputs),) = _kinds_of_scan_table(scan)
    assert name == ", 85 of 256 points"  # 9 x 85 of 9 x 256
    assert outputs.sizes["point"] == 85
    few = ob.scan(net, (maps[:2], maps[:2]), group="flips", task=task, progress=False)
    assert _kinds_of_scan_table(few) == [("", few)]
