"""Calibration over the whole orbit has one definition for each name, wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

import orbical as ob
from orbical.calibration import (
    ece,
    gaussian_nll,
    ks,
    mean_over_orbit,
    pooled_over_orbit,
    scan_measures,
)
from orbical.cli import calibration as calibration_command
from orbical.errors import InputError


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    path: Path = tmp_path_factory.mktemp("summary") / "run.zarr"
    settings = dict(group="rotations:6", task="classification", progress=False)
    ob.scan(nets, (images[:70], labels[:70]), out=path, **settings)
    return path


@pytest.fixture(scope="module")
def scan(store: Path) -> ob.Scan:
    return ob.load(store)


def test_the_mean_is_of_positions_and_the_pool_is_one_set(scan: ob.Scan) -> None:
    for model in scan.models:
        data = scan.data.sel(model=model)
        z, y = data["confidence"].values, data["correct"].values
        each = [float(ece(z[:, g], y[:, g], bins=10)) for g in range(6)]
        mean = float(mean_over_orbit(scan, "ece", bins=10).sel(model=model))
        assert mean == pytest.approx(np.mean(each))
        pooled = float(pooled_over_orbit(scan, "ece", bins=10).sel(model=model))
        assert pooled == pytest.approx(float(ece(z.ravel(), y.ravel(), bins=10)))
        assert pooled < mean  # errors of opposite sign cancel in the pool
        other = float(pooled_over_orbit(scan, ks).sel(model=model))
        assert other == pytest.approx(float(ks(z.ravel(), y.ravel())))


def test_the_interval_of_the_pool_is_around_the_same_value(scan: ob.Scan) -> None:
    found = pooled_over_orbit(scan, "ece", interval=True)
    np.testing.assert_allclose(found, pooled_over_orbit(scan, "ece"), atol=1e-12)
    assert bool((found["low"] <= found).all())
    assert bool((found <= found["high"]).all())
    mean = mean_over_orbit(scan, "ece", interval=True, resamples=20)
    assert bool((mean["low"] <= mean["high"]).all())


def test_elements_count_by_their_weights(scan: ob.Scan) -> None:
    weight = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    data = scan.data.assign_coords(weight=("element", weight))
    z, y = (data[name].sel(model="a").values for name in ("confidence", "correct"))
    every = np.broadcast_to(weight, z.shape).ravel()
    expected = float(ece(z.ravel(), y.ravel(), weights=every))
    assert float(pooled_over_orbit(data, "ece").sel(model="a")) == pytest.approx(expected)

    def unweighted(confidence, correct):
        return ks(confidence, correct)

    with pytest.raises(InputError, match="expected one that takes weights"):
        pooled_over_orbit(data, unweighted)


def test_command_check_and_library_agree(scan: ob.Scan, store: Path) -> None:
    app = typer.Typer()
    app.command()(calibration_command.calibration)
    done = CliRunner().invoke(app, [str(store), "--json", "--resamples", "20"])
    rows = {(r["model"], r["measure"], r["place"]): r for r in json.loads(done.stdout)["rows"]}
    limits = {"max_ece": 1.0, "max_pooled_ece": 1.0, "max_worst_ks": 1.0, "max_pooled_ks": 1.0}
    checked = {(row.name, row.model): row.value for row in ob.check(scan, **limits)}
    mean, pooled = mean_over_orbit(scan, "ece"), pooled_over_orbit(scan, "ece")
    for model in scan.models:
        row = rows[model, "ece", "pooled"]
        assert rows[model, "ece", "mean"]["value"] == pytest.approx(float(mean.sel(model=model)))
        assert rows[model, "ece", "mean"]["value"] == pytest.approx(checked["max_ece", model])
        assert row["value"] == pytest.approx(float(pooled.sel(model=model)))
        assert row["value"] == pytest.approx(checked["max_pooled_ece", model])
        assert row["low"] <= row["value"] <= row["high"]
        for place in ("pooled", "worst"):
            value = rows[model, "ks", place]["value"]
            assert value == pytest.approx(checked[f"max_{place}_ks", model])
    lines = [str(row) for row in ob.check(scan, **limits)]
    assert "ECE, mean over the orbit" in lines[0]
    assert "ECE, pooled over the orbit" in lines[2]


def test_regressors_are_pooled_too() -> None:
    x = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="variance")
    scan = ob.scan(
        lambda x: (0.5 * x, x.square() + 0.1), (x, x), group="cyclic:4", task=task, progress=False
    )
    names = [measure.name for measure in scan_measures(scan, listed="orbit")]
    assert "gence" in names
    assert "ence" not in names  # of one target only
    pooled = float(pooled_over_orbit(scan, "gaussian_nll")[0])
    assert pooled == pytest.approx(float(mean_over_orbit(scan, "gaussian_nll")[0]))
    error = torch.as_tensor(scan.data["error"].values[0]).double().reshape(-1, 2)
    variance = torch.as_tensor(scan.data["variance"].values[0]).double().reshape(-1, 2)
    given = torch.zeros_like(error), variance, error
    assert pooled == pytest.approx(float(gaussian_nll(*given)))
    found = float(pooled_over_orbit(scan, "mahalanobis_calibration")[0])
    expected = ob.calibration.mahalanobis_calibration(*given).error
    assert found == pytest.approx(float(expected))
    assert float(pooled_over_orbit(scan, "aleatoric_bleed")[0]) > 0
    with pytest.raises(InputError, match="interval"):
        pooled_over_orbit(scan, "gence", interval=True)
