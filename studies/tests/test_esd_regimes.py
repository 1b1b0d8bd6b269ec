"""The ESD study in the paper's regime: stacked digits, overfitted networks, what they decide."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch

from orbical_studies.esd import mnist_grid, overfitted
from orbical_studies.esd.batches import Split
from orbical_studies.esd.claims import Table1, gains
from orbical_studies.esd.settings import Settings
from orbical_studies.esd.stacks import Samples
from orbical_studies.framework import Results


def digits(count: int, draw: torch.Generator) -> Samples:
    labels = torch.randint(2, (count,), generator=draw)
    shade = 0.1 * torch.randn(count, 1, 32, 32, generator=draw) + labels[:, None, None, None]
    return Samples(shade, labels)


def test_the_grid_is_trained_once_and_what_it_chooses_with_new_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(0)
    sizes = {"fit": 30, "calibration": 12, "validation": 10, "test": 10}
    parts = {name: digits(size, draw) for name, size in sizes.items()}
    monkeypatch.setattr(mnist_grid, "samples", lambda settings, results: parts)
    monkeypatch.setattr(mnist_grid, "PAPERS", (1.0, 4.0))
    monkeypatch.setattr(mnist_grid, "INNER", {"MMCE": (0.2, 0.4), "SB-ECE": (0.1,), "ESD": (0.0,)})
    monkeypatch.setattr(mnist_grid, "FRESH", (1, 2))
    results = Results(tmp_path / "results", tmp_path / "work")
    mnist_grid.train_mnist(Settings(epochs=2), results)
    mnist_grid.collect_mnist(Settings(epochs=2), results)
    rows = results["mnist"]
    assert rows.groupby("seed").size().to_dict() == {0: 1 + 8, 1: 1 + 4, 2: 1 + 4}
    kept = rows[rows["test_ts.ece"].notna()]
    chosen = mnist_grid.chosen_settings(rows)
    assert {*kept[mnist_grid.SETTING].itertuples(index=False)} == {*chosen.itertuples(index=False)}
    assert len(results["mnist-epochs"]) == 4 * 3  # likelihood and three losses, three seeds
    table = mnist_grid.table_1(rows)
    assert all(len(own) == 2 for own in table.trained.values())
    assert set(mnist_grid.spans(rows)) == {"MMCE", "SB-ECE"}
    monkeypatch.setattr(mnist_grid, "MORE", (3, 4, 5, 6, 7))
    mnist_grid.train_mnist_seeds(Settings(epochs=2), results)
    mnist_grid.collect_mnist(Settings(epochs=2), results)
    more = results["mnist"]
    assert mnist_grid.chosen_settings(more).equals(chosen)  # new seeds decide and do not choose
    assert {n: [*own["seed"]] for n, own in mnist_grid.table_1(more).trained.items()} == {
        loss: [3, 4, 5, 6, 7] for loss in ("NLL", "MMCE", "SB-ECE", "ESD")
    }
    lost = more[(more["loss"] != "ESD") | (more["seed"] < 4)]
    assert mnist_grid.deciding(lost) == [1, 2]  # one seed with every loss is too few
    assert len(more) == len(rows) + 5 * 4


def test_losses_train_in_the_regime_that_the_likelihood_alone_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(0)

    def split(count: int) -> Split:
        pixels = torch.randint(256, (count, 32, 32, 3), dtype=torch.uint8, generator=draw)
        return Split(pixels, torch.arange(count) % 10)

    splits = {"train": split(100), "test": split(40)}
    monkeypatch.setattr(overfitted, "unpack_all", lambda *given: splits)
    shares = ((0.5, 0.0), (0.0, 0.1, 0.5))
    widths = {"constant": (2,), "cycle": (4, 4, 4)}
    once = dict.fromkeys(overfitted.WEIGHTS, (1.0,))
    ways = {n: replace(overfitted.WAYS[n], widths=each, weights=once) for n, each in widths.items()}
    assert [way.shares for way in ways.values()] == [*shares]
    monkeypatch.setattr(overfitted, "WAYS", ways)
    monkeypatch.setattr(overfitted, "FRESH", (1,))
    results = Results(tmp_path / "results", tmp_path / "work")
    settings = Settings(fronts=("cifar10",), epochs=1)
    overfitted.train_overfitted(settings, results)
    overfitted.collect_overfitted(settings, results)
    rows = results["overfitted"]
    for way, tried in zip(ways, shares, strict=True):
        own = rows[rows["way"] == way].groupby("loss").size().to_dict()
        assert own == {"NLL": len(tried) + 1, "MMCE": 2, "SB-ECE": 2, "ESD": 2}
        verdict = overfitted.table_1(rows, "cifar10", way).verdict("best")
        assert verdict == "open"  # one seed decides nothing


def test_a_longer_training_is_tried_only_outside_the_papers_regime() -> None:
    def scored(trial: overfitted.Trial, accuracy: float, ece: float) -> dict[str, object]:
        point = {"epoch": trial.epochs, "test.accuracy": accuracy, "test.ece": ece}
        return {"name": str(trial), **vars(trial), "curve": [point]}

    plan = partial(overfitted.planned, "cifar10", "cycle")
    first = plan([])
    short, long = overfitted.WAYS["cycle"].lengths
    assert {trial.epochs for trial in first} == {short}
    far = [scored(trial, 0.90, 0.02) for trial in first]
    assert {trial.epochs for trial in plan(far)} == {long}
    near = [*far[:-1], scored(first[-1], 0.925, 0.05)]
    assert {(trial.epochs, trial.mirrors) for trial in plan(near)} == {(short, first[-1].mirrors)}
    assert {trial.loss for trial in plan(near)} == {"NLL", "MMCE", "SB-ECE", "ESD"}


def made_up(eces: dict[str, float], accuracy: float = 0.929) -> dict[str, pd.DataFrame]:
    def rows(ece: float) -> pd.DataFrame:
        noise = [0.0005 * (-1) ** seed * (1 + 5 * ece) for seed in range(4)]
        each = {"seed": range(4), "test.accuracy": accuracy, "test.ece": [ece + n for n in noise]}
        return pd.DataFrame(each | {"test_ts.ece": [0.02 - n for n in noise]})

    return {loss: rows(ece) for loss, ece in eces.items()}


def test_a_verdict_is_about_the_paper_only_with_its_accuracy_and_its_ece() -> None:
    eces = {"NLL": 0.055, "MMCE": 0.05, "SB-ECE": 0.045, "ESD": 0.03}
    same = Table1(made_up(eces), "cifar10", 4)
    assert {name: same.verdict(name) for name in ("lower", "best")} == {
        "lower": "confirmed",
        "best": "confirmed",
    }
    assert same.change("ESD").mean == pytest.approx(-2.5)
    for other in (made_up(eces, 0.90), made_up(eces | {"NLL": 0.07})):
        apart = Table1(other, "cifar10", 4)
        assert (apart.verdict("best"), apart.claims["best"].outcome) == ("open", "confirmed")


def test_a_gain_is_the_error_saved_on_the_seeds_that_both_have() -> None:
    own = made_up({"NLL": 0.06, "MMCE": 0.05, "SB-ECE": 0.04, "ESD": 0.065})
    own["ESD"] = own["ESD"][:2]
    own = {loss: rows.assign(epochs=3) for loss, rows in own.items()}
    found = {row["loss"]: row for row in gains("made up", own)}
    assert {loss: row["gain"] for loss, row in found.items()} == pytest.approx(
        {"MMCE": 1.0, "SB-ECE": 2.0, "ESD": -0.5}, abs=0.01
    )
    assert (found["ESD"]["seeds"], found["ESD"]["epochs"]) == (2, 3)
