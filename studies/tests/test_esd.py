"""The ESD study: packing, batches, shifts, a tiny run of the whole pipeline, tables and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from orbical import studies
from orbical.errors import InputError
from orbical_studies.esd import (
    batches,
    commands,
    files,
    findings,
    packing,
    page,
    settings,
    shifts,
    summaries,
    tables,
    trial,
)
from orbical_studies.esd.results import Results
from orbical_studies.esd.settings import BATCH, EPOCHS, GRID, Configuration
from orbical_studies.networks.classifiers import CompactResNet
from orbical_studies.trials import Trials, read_lines


@pytest.mark.parametrize("channels", [1, 3])
def test_packing_is_lossless_for_any_bytes(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 7, 9, channels), dtype=np.uint8)
    pixels[:5] = np.where(pixels[:5] > 127, 255, 0)  # the largest jumps there are
    assert (packing.decode(packing.encode(pixels), pixels.shape) == pixels).all()


def made_up(name: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images that a network can learn in a few steps: the class is where the bright bar lies."""
    shape = (28, 28, 1) if name == "mnist" else (32, 32, 3)
    count = 240 if split == "train" else 90
    generator = np.random.default_rng(count)
    labels = np.arange(count, dtype=np.uint8) % 10
    pixels = generator.integers(0, 90, (count, *shape), dtype=np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[2 * label + 3 : 2 * label + 5] += 160
    return pixels, labels


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "source", made_up)
        commands.pack(folder)
    return folder


def test_unpacked_digits_are_32_pixels_wide(packed: Path) -> None:
    pixels, labels = packing.unpack(packed, "mnist")["train"]
    assert pixels.shape == (240, 32, 32, 1)
    assert pixels.dtype == torch.uint8
    assert labels.dtype == torch.int64
    photographs, _ = packing.unpack(packed, "cifar10")["test"]
    assert (photographs.numpy() == made_up("cifar10", "test")[0]).all()
    with pytest.raises(InputError, match=r"^data.*mnist\.npz.*pack"):
        packing.unpack(packed / "elsewhere", "mnist")


def test_the_parts_are_disjoint_and_cover_the_training_images() -> None:
    labels = torch.arange(1000)
    parts = batches.partition(batches.Split(torch.zeros(1000, 1, 1, 1, dtype=torch.uint8), labels))
    assert [len(parts[n]) for n in ("fit", "calibration", "validation")] == [810, 90, 100]
    assert torch.equal(torch.cat([p.labels for p in parts.values()]).sort().values, labels)


def test_a_crop_is_a_window_of_the_framed_image() -> None:
    pixels = torch.arange(1, 65, dtype=torch.uint8).reshape(1, 8, 8, 1).repeat(50, 1, 1, 1)
    split = batches.Split(pixels, torch.zeros(50, dtype=torch.long))
    loader = batches.Batches(split, 50, torch.Generator().manual_seed(0), crop=True)
    ((images, _),) = list(loader)
    framed = torch.nn.functional.pad(pixels[0, :, :, 0], (4, 4, 4, 4))
    places = framed.unfold(0, 8, 1).unfold(1, 8, 1).flatten(0, 1)
    windows = {tuple(window.flatten().tolist()) for window in places}
    seen = {tuple(((i[0] + 1) * 127.5).round().int().flatten().tolist()) for i in images}
    assert seen <= windows
    assert len(seen) > 20


def test_every_image_is_seen_once_an_epoch_in_a_new_order() -> None:
    split = batches.Split(torch.zeros(12, 1, 1, 1, dtype=torch.uint8), torch.arange(12))
    loader = batches.Batches(split, 4, torch.Generator().manual_seed(0), crop=False)
    first, second = (torch.cat([labels for _, labels in loader]) for _ in range(2))
    assert len(loader) == 3
    assert torch.equal(first.sort().values, second.sort().values)
    assert not torch.equal(first, second)


def test_shifts_do_what_their_names_say() -> None:
    images = torch.full((1, 1, 32, 32), -1.0)
    images[0, 0, 16, 28] = 1.0
    turned = shifts.rotated(images, 90.0)  # right of the centre goes to above it
    assert divmod(int(turned.flatten().argmax()), 32) == (3, 16)
    blurred = shifts.blurred(images + 1, 1.0)
    assert blurred.sum().item() == pytest.approx(2.0, rel=1e-3)
    assert blurred.max() < 0.5
    noise = shifts.noisy(torch.zeros(4, 3, 32, 32), 0.1)
    assert noise.std().item() == pytest.approx(0.2, rel=0.05)
    assert torch.equal(noise, shifts.noisy(torch.zeros(4, 3, 32, 32), 0.1))


def test_the_whole_study_runs_resumes_and_reports(
    packed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(commands, "GRID", (2.0,))
    monkeypatch.setattr(summaries, "GRID", (2.0,))
    monkeypatch.setattr(settings, "LOSSES", {n: settings.LOSSES[n] for n in ("ESD", "ECE")})
    monkeypatch.setattr(commands, "SMALLER_BATCHES", (64,))
    monkeypatch.setattr(trial, "CompactResNet", lambda: CompactResNet(widths=(4, 8)))
    results = tmp_path / "results.jsonl"
    parts = ["mnist", "cifar10", "ablation"]
    commands.run(parts, packed, results, device="cpu", seeds=1, epochs=2)
    rows = read_lines(results)
    assert len({row["key"] for row in rows}) == 3 + 3 + 2
    assert sum(row["batch"] == 64 for row in rows) == 2
    first = next(row for row in rows if row["data"] == "mnist")
    assert {point["shift"] for point in first["shifts"]} == set(shifts.STRENGTHS)
    assert [point["epoch"] for point in first["curve"]] == [1, 2]

    before = results.read_text()
    commands.run(parts, packed, results, device="cpu", seeds=1, epochs=2)
    assert results.read_text() == before
    assert "0 configurations to train, 3 already there" in capsys.readouterr().out

    text = tmp_path / "esd.md"
    text.write_text("".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in tables.TABLES))
    page.report([results], text)
    assert "| +ESD | 2 |" in text.read_text()
    assert {file.name for file in (tmp_path / "esd").glob("*.png")} >= {
        "epochs.png",
        "batch-sizes.png",
        "lambda.png",
        "shifts-cifar10.png",
    }
    with np.load(tmp_path / "outputs.npz") as kept:
        assert kept["mnist/labels"].shape == (90,)
        assert sum(kept[key].shape == (90, 10) for key in kept) == 6


@pytest.mark.slow
def test_two_workers_give_the_result_of_one_process(packed: Path, tmp_path: Path) -> None:
    from orbical_studies.esd import pool

    device = torch.device("cpu")
    splits = {"mnist": pool.load(packed, "mnist", device)}
    runs = [Configuration("mnist", loss, 1.0, seed=3, batch=64) for loss in ("NLL", "MMCE")]
    found = []
    for workers in (0, 2):
        file = Results(tmp_path / f"{workers}.jsonl")
        pool.run_all(
            runs, file, splits, device=device, workers=workers, deadline=1e12, say=lambda line: None
        )
        found.append({row["key"]: row["test"]["accuracy"] for row in file.rows})
    assert found[0] == found[1]


def test_a_cut_off_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "te')
    assert [row["key"] for row in read_lines(path)] == ["a"]
    path.write_text('{"key": "a"\n{"key": "b"}\n')
    with pytest.raises(InputError, match=r"^results: line 1"):
        read_lines(path)


def test_a_training_after_a_cut_off_line_begins_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "trials.jsonl").write_text('{"name": "a"}\n{"name": "b", "te')
    trials = Trials(tmp_path)
    assert trials.waiting(["a", "b"]) == ["b"]
    trials.add({"name": "b"})
    assert [row["name"] for row in read_lines(tmp_path / "trials.jsonl")] == ["a", "b"]


def row_of(configuration: Configuration, accuracy: float, ece: float) -> dict[str, Any]:
    scores = {"accuracy": round(accuracy, 4), "ece": round(ece, 4), "esd": -0.0005}
    point = {"shift": "blur", "strength": 0.5, **scores, "ece_ts": 0.25, "esd_ts": 1e-7}
    return {
        "key": configuration.key(),
        **configuration.settings(),
        "temperature": 1.25,
        "nll": 0.5,
        **dict.fromkeys(files.PARTS, scores),
        "shifts": [point],
        "curve": [{"epoch": 1, "training_loss": 0.25, "train_ece": 0.125, "test_ece": 0.5}],
        "images": 100,
        "seconds_training": 1.5,
        "seconds": 2.5,
    }


def rows_of_a_study() -> list[dict[str, Any]]:
    rows = []
    for seed in range(3):
        for loss, weight, accuracy, ece in [
            ("NLL", 0.0, 0.90, 0.10),
            ("ESD", 0.6, 0.895, 0.06),
            ("ESD", 2.0, 0.89, 0.04),
            ("ESD", 6.0, 0.80, 0.01),
        ]:
            run = Configuration("cifar10", loss, weight, seed, epochs=EPOCHS["cifar10"])
            rows.append(row_of(run, accuracy + 0.001 * seed, ece + 0.001 * seed))
    return rows


def test_lambda_is_chosen_on_validation_and_differences_are_taken_seed_by_seed() -> None:
    rows = rows_of_a_study()
    assert summaries.chosen_weights(rows, "cifar10") == {"NLL": 0.0, "ESD": 2.0}
    weight, summary = summaries.table_1(rows, "cifar10")["ESD"]
    assert weight == 2.0
    assert summary["ECE"].mean == pytest.approx(0.041)
    assert summary["ECE"].deviation == pytest.approx(0.001)
    assert summary["ECE"].count == 3
    # Both move together with the seed, so their difference has no spread; the paper's is -2.41.
    assert "-6.00 ± 0.00 [-2.41]" in tables.differences(rows, "cifar10")
    for row in rows:
        if row["weight"] == 2.0:
            row["validation"] = {**row["validation"], "accuracy": 0.5}
    assert summaries.chosen_weights(rows, "cifar10")["ESD"] == 0.6


def test_results_survive_the_csv_files(tmp_path: Path) -> None:
    rows = rows_of_a_study()
    rows.append(
        {
            "key": "cost/x",
            "data": "mnist",
            "loss": "ESD",
            "step_ms": 1.5,
            "loss_ms": 0.0,
            "device": "CPU",
        }
    )
    files.write(tmp_path, rows)
    assert files.read(tmp_path) == json.loads(json.dumps(rows))


def test_of_several_results_the_last_and_longest_count() -> None:
    rows = rows_of_a_study()
    short = row_of(Configuration("cifar10", "NLL", 0.0, 0, epochs=1), 0.1, 0.9)
    again = {**rows[0], "nll": 9.0}
    kept = page.latest([short, *rows, again])
    assert len(kept) == len(rows)
    assert kept[0]["nll"] == 9.0


def test_the_papers_differences_are_those_of_its_table() -> None:
    for data in EPOCHS:
        assert set(settings.PAPER_TABLE_1[data]) == {"NLL", "MMCE", "SB-ECE", "ESD"}
    assert settings.PAPER_TABLE_1["cifar10"]["ESD"][1] == settings.PAPER_TABLE_2[BATCH][1] == 3.08


def test_wrong_options_are_refused_by_name(packed: Path, tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    with pytest.raises(InputError, match=r"^only: unknown name 'cifar'; did you mean 'cifar10'"):
        commands.run(["cifar"], packed, results)
    with pytest.raises(InputError, match=r"^seeds"):
        commands.run(["mnist"], packed, results, seeds=0)
    with pytest.raises(InputError, match=r"^results: no finished CIFAR-10 runs"):
        commands.run(["ablation"], packed, results, device="cpu")
    with pytest.raises(InputError, match=r"^page"):
        page.report([results], tmp_path / "none.md")
    with pytest.raises(SystemExit, match="2"):
        studies.study("esd").main(["run", "--only", "x", "--data", "d", "--results", str(results)])


def test_the_plan_has_every_loss_and_weight_once_a_seed() -> None:
    plan = settings.grid("mnist", GRID, [0, 1, 2], epochs=5)
    assert len(plan) == len({run.key() for run in plan}) == 3 * (1 + 5 * 3)
    assert [run.seed for run in plan] == sorted(run.seed for run in plan)


MADE_UP = {
    # ECE before and after one temperature, and accuracy, as changed from the likelihood's.
    "MMCE": (-0.001, 0.002, -0.001),
    "SB-ECE": (-0.03, 0.002, -0.002),
    "ESD": (-0.002, 0.002, -0.003),
    "ECE": (-0.01, 0.002, -0.001),
}


def both_data_sets(
    shifted: float = 0.6, before: float = 0.1, **changes: tuple[float, float, float]
) -> list[dict[str, Any]]:
    """Runs of both data sets, three seeds; the ESD's own ECE swings by half a point."""
    rows = []
    for data in EPOCHS:
        for seed in range(3):
            for loss, change in ({"NLL": (0.0, 0.0, 0.0)} | MADE_UP | changes).items():
                weight = 0.0 if loss == "NLL" else 2.0
                run = Configuration(data, loss, weight, seed, epochs=EPOCHS[data])
                swing = 0.005 * (seed - 1) if loss == "ESD" else 0.0
                row = row_of(run, 0.9 + change[2], before + change[0] + swing)
                row["test_ts"] = {**row["test_ts"], "ece": 0.01 + change[1]}
                row["shifts"] = [{**point, "ece": shifted} for point in row["shifts"]]
                rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("changes", "usual", "changed"),
    [
        (
            {"ECE": (-0.095, 0.002, -0.001)},
            "On MNIST no loss does as well as one temperature",
            "On MNIST ECE does better than one temperature",
        ),
        ({"ESD": (-0.03, 0.0, 0.0)}, "does not appear at", "appears at"),
        ({"ESD": (-0.02, 0.0, 0.0)}, "by no more than seeds do, at", "by less than in the paper"),
        ({"ESD": (-0.05, 0.0, 0.0)}, "by no more than seeds do, at", "by no less than in the"),
        ({"ESD": (0.03, 0.0, 0.0)}, "by no more than seeds do, at", "ESD raises the ECE"),
        (
            {"ESD": (-0.05, 0.0, 0.0)},
            "The order of the losses is not the paper's",
            "The order of the losses is the paper's",
        ),
        (
            {"SB-ECE": (-0.004, 0.0, 0.0)},
            "The order of the losses is not the paper's",
            "The order of the losses differs from the paper's by no more",
        ),
        (
            {"ECE": (-0.095, 0.002, -0.001)},
            "likelihood outdoes every loss",
            "likelihood does not outdo every loss",
        ),
        ({"ESD": (-0.002, -0.005, 0.0)}, "ours does not", "ours as well"),
        ({"shifted": 0.1}, "no loss is safe", "an ECE up to 20% keep: "),
    ],
)
def test_findings_are_chosen_by_the_numbers(
    changes: dict[str, Any], usual: str, changed: str
) -> None:
    before = findings.findings(both_data_sets())
    after = findings.findings(both_data_sets(**changes))
    assert usual in before
    assert changed not in before
    assert changed in after
    assert usual not in after


def test_findings_wait_for_both_data_sets() -> None:
    assert findings.findings(rows_of_a_study()) == "(no results yet)"
