"""The ESD study: packing, batches, shifts, the choice of lambda, claims, and a tiny run."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from orbical import losses
from orbical.errors import InputError
from orbical_studies.__main__ import main
from orbical_studies.esd import (
    batches,
    cumulative,
    fronts,
    lemmas,
    packing,
    papers_grid,
    quick_training,
    report,
    settings,
    study,
    timing,
    training,
)
from orbical_studies.esd.settings import BATCH, EPOCHS, Settings, grid, selections, smaller_batches
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.framework.training import Trials, read_lines
from orbical_studies.networks.classifiers import CompactResNet

PATHS = Paths.in_checkout("esd")


SPLITS = {"mnist": ("train", "test"), "cifar10": ("train", "test", "more")}
SPLITS["cifar100"] = SPLITS["mnist"]


def made_up(name: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Make images that a network can learn in a few steps: the class is where the bright bar is."""
    shape = (28, 28, 1) if name == "mnist" else (32, 32, 3)
    count = 240 if split == "train" else 90
    generator = np.random.default_rng(count)
    labels = np.arange(count) % 10
    pixels = generator.integers(0, 90, (count, *shape), dtype=np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[2 * label + 3 : 2 * label + 5] += 160
    return pixels, labels


@pytest.fixture
def made_up_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write made-up images as the files of all data sets."""
    for name, splits in SPLITS.items():
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        for split in splits:
            stem = {"test": "t10k"}.get(split, split)
            pixels, labels = made_up(name, split)
            if name == "mnist":
                for kind, values in (("images-idx3", pixels[..., 0]), ("labels-idx1", labels)):
                    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
                    content = gzip.compress(header + values.astype(np.uint8).tobytes())
                    (folder / f"{stem}-{kind}-ubyte.gz").write_bytes(content)
            else:
                sheet = pixels.reshape(-1, 10, 32, 32, 3).swapaxes(1, 2).reshape(-1, 320, 3)
                Image.fromarray(sheet).save(folder / f"{split}_00.png")
                np.save(folder / f"{split}_labels.npy", labels.astype(np.uint8))
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("made_up_files")
def test_the_study_runs_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "GRID", (2.0,))
    monkeypatch.setattr(settings, "WEIGHTS", (0.0, 2.0))
    monkeypatch.setattr(settings, "BEYOND_GRID", ())
    monkeypatch.setattr(settings, "SMALLER_BATCHES", (64,))
    for module in (settings, training, timing):
        monkeypatch.setattr(module, "LOSSES", {"ESD": losses.esd, "ECE": losses.ece})
    monkeypatch.setattr(timing, "WARM_UP", 1)
    monkeypatch.setattr(timing, "REPEATS", 1)
    monkeypatch.setattr(training, "CompactResNet", lambda: CompactResNet(widths=(8, 16)))
    monkeypatch.setattr(training, "STRENGTHS", {"blur": (0.5, 1.0)})
    options = ["--seeds", "1", "--epochs", "2", "--images", "200"]
    options += ["--results", str(tmp_path), "--work", str(tmp_path / "work")]
    for step in ("pack", "train", "ablation", "cost", "collect", "train"):
        main(["esd", step, *options])
    assert "0 trainings to run, 8 finished before" in capsys.readouterr().out
    results = Results(tmp_path)
    rows = results["results"]
    assert len(rows) == 3 + 3 + 2
    assert (rows["batch"] == 64).sum() == 2
    assert list(rows.columns) == list(Results(PATHS.results)["results"].columns)
    assert rows["images"].tolist()[:2] == [2 * BATCH, 2 * 2 * BATCH]
    assert results["curves"]["epoch"].tolist() == [1, 2] * 8
    assert len(results["shifts"]) == 2 * 6  # two strengths; smaller batches are not shifted
    assert results["cost"]["loss"].tolist()[:3] == ["NLL, both batches", "NLL", "ESD"]
    assert (results["cost"]["step_ms"] > 0).all()
    name = "mnist-NLL-lambda=0-batch=512-epochs=2-seed=0.npz"
    with np.load(tmp_path / "work" / name) as kept:
        right = kept["logits"].argmax(1) == np.arange(90) % 10
    assert rows["test.accuracy"][0] == pytest.approx(right.mean(), abs=1e-6)


@pytest.mark.usefixtures("made_up_files")
def test_packed_images_come_back_32_pixels_wide(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with pytest.raises(InputError, match=r"no folder .*mnist.*run the step 'pack'"):
        packing.unpack(Settings(), results, torch.device("cpu"))
    packing.pack(Settings(), results)
    found = packing.unpack(Settings(), results, torch.device("cpu"))
    assert found["mnist"]["train"].pixels.shape == (240, 32, 32, 1)
    assert found["mnist"]["train"].pixels.dtype == torch.uint8
    assert (found["cifar10"]["test"].pixels.numpy() == made_up("cifar10", "test")[0]).all()


@pytest.mark.usefixtures("made_up_files")
def test_fronts_train_every_weight_and_then_the_chosen_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fronts, "WEIGHTS", {"SB-ECE": (2.0, 4.0), "ESD": (2.0, 4.0)})
    monkeypatch.setattr(fronts, "INNER", {"SB-ECE": (0.01, 0.1), "ESD": (0.0,)})
    monkeypatch.setattr(fronts, "FRESH", (1,))
    monkeypatch.setattr(fronts, "COSTS", (0.5, 0.9, 1.0))
    monkeypatch.setattr(fronts, "DECAYS", {"cifar100": (1e-4, 1e-3)})
    monkeypatch.setattr(fronts, "BATCHES", {"ESD": (8,), "ECE": (16,)})
    monkeypatch.setattr(fronts, "BATCH_SEEDS", (1,))
    monkeypatch.setattr(quick_training, "WIDTHS", (2, 2, 2))
    monkeypatch.setattr(fronts, "REPEATS", 1)
    monkeypatch.setattr(papers_grid, "PAPERS", (2.0, 3.0))
    monkeypatch.setattr(timing, "WARM_UP", 1)
    options = ["--images", "60", "--fronts", "cifar100", "--epochs", "1"]
    options += ["--results", str(tmp_path), "--work", str(tmp_path / "work")]
    for step in ("pack", "fronts", "time-fronts", "collect-fronts", "fronts"):
        main(["esd", step, *options])
    # Decays, the likelihood again, weights, another inner parameter, chosen, smaller batches.
    trained = 2 + 1 + 2 * 2 + 1 + 2 + 2
    assert capsys.readouterr().out.count(f"0 trainings to run, {trained} finished before") == 3
    rows = Results(tmp_path)["fronts"]
    assert len(rows) == trained
    assert rows[rows["seed"] == 1]["loss"].tolist() == ["NLL", "SB-ECE", "ESD", "ESD", "ECE"]
    assert rows["batch"].tolist()[-2:] == [8, 16]
    spans = Results(tmp_path)["fronts-intervals"]
    assert (spans["low"] <= spans["ece"] + 1e-6).all()
    merged = spans[~spans["scaled"]].merge(rows, on="key")
    assert merged["ece"].to_numpy() == pytest.approx(merged["test.ece"].to_numpy(), abs=1e-4)
    assert Results(tmp_path)["fronts-cost"]["loss"].tolist() == ["NLL", "SB-ECE", "ESD"]
    for step in ("grid", "collect-grid"):
        main(["esd", step, *options])
    other = Results(tmp_path)["grid"]
    assert other[["loss", "weight"]].to_numpy().tolist() == [["SB-ECE", 3.0], ["ESD", 3.0]]
    assert {*other["decay"]} == {fronts.chosen_decay(rows, "cifar100")}


def test_a_trend_over_weights_is_called_by_the_rule() -> None:
    weights = np.arange(1.0, 15.0)
    front = SimpleNamespace(data="cifar100", first=lambda loss: pd.DataFrame())
    rows = [
        {"data": "cifar100", "loss": loss, "weight": weight, "test.accuracy": accuracy}
        for loss, accuracies in {
            "MMCE": -weights, "SB-ECE": weights, "ESD": np.tile([0.0, 1.0], 7),
        }.items()
        for weight, accuracy in zip(weights, accuracies, strict=True)
    ]  # fmt: skip
    noise = np.random.default_rng(0).normal(size=len(rows))
    found = papers_grid.trends(front, pd.DataFrame(rows).assign(**{"test.ece": noise}))
    outcomes = found.set_index(["loss", "column"])["outcome"]
    assert outcomes.xs("test.accuracy", level="column").to_dict() == {
        "MMCE": "falls", "SB-ECE": "rises", "ESD": "open",
    }  # fmt: skip
    assert {*outcomes.xs("test.ece", level="column")} == {"open"}
    assert (found["n"] == 14).all()


@pytest.mark.usefixtures("made_up_files")
def test_fronts_take_all_training_images(tmp_path: Path) -> None:
    packing.pack(Settings(data=()), Results(tmp_path))
    for data, count in (("cifar10", 330), ("cifar100", 240)):
        found = packing.unpack_all(Results(tmp_path).work, data, torch.device("cpu"))
        assert [len(split) for split in found.values()] == [count, 90]
    with pytest.raises(InputError, match=r"no folder .*cifar10.*run the step 'pack'"):
        packing.unpack_all(tmp_path / "none", "cifar10", torch.device("cpu"))


def test_curves_end_at_accuracy_and_mean_confidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logits").mkdir()
    draw = np.random.default_rng(0)
    probs = draw.dirichlet(np.full(5, 0.3), 400).astype(np.float32)
    labels = [draw.choice(5, p=p / p.sum()) for p in np.sqrt(probs.astype(float))]
    path = tmp_path / "logits" / "some.npz"
    np.savez(path, probs=probs, labels=np.array(labels, dtype=np.uint8))
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path))
    monkeypatch.setattr(cumulative, "NETWORKS", ("some",))
    results = Results(tmp_path / "results")
    cumulative.write_curves(Settings(), results)
    scores = results["cumulative-scores"]
    ends = results["cumulative"].groupby("scaled").last()
    assert ends["accuracy"].tolist() == pytest.approx(scores["accuracy"].tolist(), abs=1e-5)
    assert ends["share"].tolist() == [1, 1]
    assert scores["ks"][1] < scores["ks"][0]
    assert 1.5 < scores["temperature"][0] < 2.7


def test_at_each_cost_the_weight_of_lowest_validation_ece_is_chosen() -> None:
    scores = {0.2: (0.94, 0.05), 2.0: (0.93, 0.03), 20.0: (0.92, 0.01)}
    rows = [("NLL", 0.0, 0.0, seed, 0.94, 0.06) for seed in (0, 1)]
    rows += [("ESD", weight, 0.0, 0, *score) for weight, score in scores.items()]
    rows += [("ESD", 0.2, 0.0, 1, 0.99, 0.0), ("SB-ECE", 2.0, 0.01, 0, 0.90, 0.0)]
    columns = ["loss", "weight", "inner", "seed", "validation.accuracy", "validation.ece"]
    frame = pd.DataFrame(rows, columns=columns).assign(data="cifar10", batch=512, decay=1e-3)
    found = fronts.choices(frame, "cifar10")
    assert found == {"MMCE": {}, "SB-ECE": {}, "ESD": {0.005: 0.2, 0.015: 2.0, 0.03: 20.0}}
    trials = fronts.later_trials(frame, "cifar10", 24, 1e-3)
    assert [trial.weight for trial in trials if trial.seed == 5] == [2.0, 0.2, 20.0]
    with pytest.raises(InputError, match=r"^work: expected finished trainings of cifar100"):
        fronts.later_trials(frame, "cifar100", 24, 1e-3)


def test_the_smallest_decay_with_the_papers_accuracy_is_chosen() -> None:
    columns = ["data", "loss", "seed", "decay", "test.accuracy"]
    rows = [("cifar10", "NLL", 0, *one) for one in ((1e-3, 0.95), (1e-4, 0.93), (1e-5, 0.92))]
    frame = pd.DataFrame([*rows, ("cifar10", "ESD", 0, 1e-6, 0.99)], columns=columns)
    assert fronts.chosen_decay(frame, "cifar10") == 1e-4
    short = frame.assign(**{"test.accuracy": frame["test.accuracy"] - 0.1})
    assert fronts.chosen_decay(short, "cifar10") == 1e-3


def test_half_the_images_are_mirrored() -> None:
    pixels = torch.arange(64, dtype=torch.uint8).reshape(1, 1, 64, 1).repeat(400, 2, 1, 1)
    split = batches.Split(pixels, torch.zeros(400, dtype=torch.long))
    loader = quick_training.Flipped(split, 400, torch.Generator().manual_seed(0), crop=False)
    ((images, _),) = list(loader)
    assert 150 < int((images[:, 0, 0, 0] > images[:, 0, 0, -1]).sum()) < 250


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
    split = batches.Split(torch.zeros(13, 1, 1, 1, dtype=torch.uint8), torch.arange(13))
    loader = batches.Batches(split, 4, torch.Generator().manual_seed(0), crop=False)
    first, second = (torch.cat([labels for _, labels in loader]) for _ in range(2))
    assert len(loader) == 3
    assert len(first.unique()) == len(second.unique()) == 12
    assert not torch.equal(first, second)


def test_shifts_do_what_their_names_say() -> None:
    images = torch.full((1, 1, 32, 32), -1.0)
    images[0, 0, 16, 28] = 1.0
    turned = training.rotated(images, 90.0)  # right of the center goes to above it
    assert divmod(int(turned.flatten().argmax()), 32) == (3, 16)
    blurred = training.blurred(images + 1, 1.0)
    assert blurred.sum().item() == pytest.approx(2.0, rel=1e-3)
    assert blurred.max() < 0.5
    noise = training.noisy(torch.zeros(4, 3, 32, 32), 0.1)
    assert noise.std().item() == pytest.approx(0.2, rel=0.05)
    assert torch.equal(noise, training.noisy(torch.zeros(4, 3, 32, 32), 0.1))


def test_every_loss_and_weight_is_trained_once_a_seed() -> None:
    names = [str(trial) for trial in grid(Settings(data=("mnist",)))]
    assert len(names) == len({*names}) == 3 * (1 + 5 * 3) + 5 * 2
    assert names[0] == "mnist/NLL/lambda=0/batch=512/epochs=40/seed=0"
    seeds = [trial.seed for trial in grid(Settings(data=("mnist",)))]
    assert seeds == sorted(seeds)


@pytest.fixture
def runs() -> pd.DataFrame:
    """Return trainings of CIFAR-10 with three seeds; score and seed move together."""
    settings = [("NLL", 0.0, 0.90, 0.10), ("ESD", 0.6, 0.895, 0.06), ("ESD", 2.0, 0.89, 0.04)]
    settings += [("ESD", 6.0, 0.80, 0.01), ("ECE", 2.0, 0.90, 0.09)]
    return pd.DataFrame(
        {"data": "cifar10", "loss": loss, "weight": weight, "seed": seed, "batch": BATCH}
        | {"epochs": EPOCHS["cifar10"], "validation.accuracy": accuracy + 0.001 * seed}
        | {"validation.ece": ece + 0.001 * seed, "test.ece": ece + 0.001 * seed}
        for seed in range(3)
        for loss, weight, accuracy, ece in settings
    )


def test_lambda_is_chosen_on_validation(runs: pd.DataFrame) -> None:
    found = selections(runs, "cifar10")
    assert {loss: each.choice for loss, each in found.items()} == {"ESD": 2.0, "ECE": 2.0}
    assert found["ESD"].admissible == (0.6, 2.0)
    assert found["ESD"].ece == pytest.approx(0.041)
    inaccurate = runs["validation.accuracy"].where(runs["weight"] != 2.0, 0.5)
    changed = selections(runs.assign(**{"validation.accuracy": inaccurate}), "cifar10")
    assert changed["ESD"].choice == 0.6
    assert selections(runs, "mnist") == {}


def test_smaller_batches_take_the_chosen_lambda(runs: pd.DataFrame) -> None:
    trials = smaller_batches(Settings(), runs)
    assert [trial.batch for trial in trials] == [64] * 6 + [128] * 6 + [256] * 6
    assert {(trial.loss, trial.weight) for trial in trials} == {("ESD", 2.0), ("ECE", 2.0)}
    with pytest.raises(InputError, match=r"^work: expected finished CIFAR-10 trainings"):
        smaller_batches(Settings(epochs=7), runs)


def test_differences_are_taken_seed_by_seed(runs: pd.DataFrame, tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.write("results", runs)
    change = report.Runs(results).change("cifar10", "ESD", "test.ece")
    assert report.points(change) == "-6.00 ± 0.00"  # they move together with the seed


def test_of_several_lengths_the_longest_is_collected(tmp_path: Path) -> None:
    results = Results(tmp_path)
    kept = Trials(results.work)
    for epochs in (1, 40):
        row = {"name": f"{epochs}", "data": "mnist", "epochs": epochs, "test.ece": 0.5}
        kept.add(row | {"curve": [{"epoch": 1, "test_ece": 0.5}], "shifts": []})
    training.collect(Settings(), results)
    assert results["results"]["key"].tolist() == [40]
    assert results["curves"]["key"].tolist() == [40]


def test_a_cut_off_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "te')
    assert [row["key"] for row in read_lines(path)] == ["a"]
    path.write_text('{"key": "a"\n{"key": "b"}\n')
    with pytest.raises(InputError, match=r"^work: expected lines of JSON .* got '{\"key\": \"a\"'"):
        read_lines(path)


def test_a_training_after_a_cut_off_line_begins_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "trials.jsonl").write_text('{"name": "a"}\n{"name": "b", "te')
    trials = Trials(tmp_path)
    assert trials.waiting(["a", "b"]) == ["b"]
    trials.add({"name": "b"})
    assert [row["name"] for row in read_lines(tmp_path / "trials.jsonl")] == ["a", "b"]


def test_the_papers_tables_agree_where_they_overlap() -> None:
    assert report.PAPER["cifar10"]["ESD"][1] == report.PAPER_BATCHES["ESD"][BATCH][1] == 3.08


def test_figures_are_drawn_from_the_committed_results() -> None:
    drawn = dict(report.figures(Results(PATHS.results)))
    assert {*drawn} == {path.name for path in PATHS.figures.glob("*.png")}
    band = drawn["shifts-mnist.png"].axes[0].lines[0]
    assert band.get_xdata().tolist() == [0.0, *training.STRENGTHS["rotation"]]


def test_claims_are_decided_by_the_numbers(tmp_path: Path) -> None:
    committed, changed = Results(PATHS.results), Results(tmp_path)
    rows = committed["results"].copy()
    esd = rows["loss"] == "ESD"
    rows.loc[esd, ["test.ece", "test_ts.ece"]] -= 0.2
    changed.write("results", rows)
    changed.write("shifts", committed["shifts"].assign(ece=0.1))
    for name in ("cost", "cumulative-scores", "published", "fronts-cost"):
        changed.write(name, committed[name])
    for name in ("nli", "tiny", "fronts-intervals", "grid", "corruptions", "corruptions-change"):
        changed.write(name, committed[name])
    for name in ("mnist", "mnist-epochs", "overfitted", "overfitted-epochs", "transformer"):
        changed.write(name, committed[name])
    changed.write("curves", committed["curves"])
    trained = committed["fronts"]
    trained.loc[(trained["loss"] == "ESD") & (trained["data"] == "cifar10"), "test.ece"] -= 0.02
    # as overconfident as the paper's
    trained.loc[(trained["loss"] == "NLL") & (trained["data"] == "cifar10"), "test.ece"] += 0.0367
    changed.write("fronts", trained)
    before = PATHS.protocol.read_text(encoding="utf-8").splitlines()
    after = parted(render(study, changed, PATHS.template), study.name)[1].splitlines()
    never = "not confirmed here"
    for claim, usual, other in (
        ("With all images of CIFAR-10, ESD has", "open outside this regime", "confirmed"),
        ("On MNIST, ESD lowers", never, "confirmed"),
        ("On CIFAR-10, ESD lowers", never, "confirmed"),
        ("After scaling, ESD stays", never, "confirmed"),
        (
            "*Ours:* with the small networks one temperature",
            "open on MNIST, confirmed on CIFAR-10",
            "contradicted on MNIST, contradicted on CIFAR-10",
        ),
        ("*Ours:* on shifted images", "confirmed", never),
    ):
        for lines, verdict in ((before, usual), (after, other)):
            (line,) = (line for line in lines if line.startswith(f"| {claim}"))
            assert line.endswith(f"| {verdict} |"), claim


def world_of_two_confidences() -> list[tuple[float, int, float]]:
    """List confidence, outcome and probability."""
    return [(0.4, 0, 0.1), (0.4, 1, 0.4), (0.9, 0, 0.05), (0.9, 1, 0.45)]


def test_lemmas_2_1_and_3_1_of_the_esd_paper_hold_in_an_enumerated_world() -> None:
    world, samples = world_of_two_confidences(), 5
    for z, _, _ in world[::2]:
        truth = sum(p * (y - c) for c, y, p in world if c <= z)
        first = second = 0.0
        for drawn in itertools.product(world, repeat=samples - 1):
            g = np.array([(y - c) * (c <= z) for c, y, _ in drawn])
            estimate = g.mean() ** 2 - lemmas.variance_of_mean(g)
            chance = np.prod([p for _, _, p in drawn])
            first, second = first + chance * estimate, second + chance * estimate**2
        assert first == pytest.approx(truth**2, abs=1e-12)  # 2.1
        assert second - first**2 <= 2  # 3.1


def test_the_identity_in_lemma_3_2_is_false_and_its_bound_holds() -> None:
    draw = np.random.default_rng(0)
    assert lemmas.lemma_3_2([0.7] * 9)["true"] == pytest.approx(0, abs=1e-15)
    assert lemmas.lemma_3_2([0.7] * 9)["printed"] == pytest.approx(0.1157, abs=1e-4)
    for count in (2, 3, 10, 100):
        worst = np.resize([1.0, -1.0], count)
        for values in (worst, draw.uniform(-1, 1, count), draw.choice([-1.0, 0, 1], count)):
            both = lemmas.lemma_3_2(values)
            assert both["true"] <= both["bound"]
            assert abs(values.mean()) <= 1


def test_lemmas_3_3_and_3_4_hold_where_samples_are_enumerated_or_many() -> None:
    world = world_of_two_confidences()
    product = {}
    for i, j in ((0, 1), (2, 0)):  # 3.3: any two samples
        total = 0.0
        for drawn in itertools.product(world, repeat=4):
            means = [
                np.mean(
                    [(y - c) * (c <= drawn[k][0]) for m, (c, y, _) in enumerate(drawn) if m != k]
                )
                for k in (i, j)
            ]
            total += np.prod([p for _, _, p in drawn]) * np.prod(np.square(means))
        product[i, j] = total
    assert product[0, 1] == pytest.approx(product[2, 0])
    d = {z: sum(p * (y - c) for c, y, p in world if c <= z) for z in (0.4, 0.9)}
    limit = sum(p * d[c] ** 2 for c, _, p in world) ** 2
    draw = np.random.default_rng(0)
    picked = draw.choice(4, size=(2_000, 400), p=[p for _, _, p in world])
    c, y = (np.array([row[k] for row in world])[picked] for k in (0, 1))
    means = [((y - c) * (c <= c[:, k : k + 1]))[:, 2:].mean(1) for k in (0, 1)]
    assert np.mean(np.square(means[0] * means[1])) == pytest.approx(limit, rel=0.1)  # 3.4


def test_the_lines_of_the_page_train_with_esd() -> None:
    text = PATHS.page.read_text(encoding="utf-8")
    loop, module = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 3)
    batch = (torch.randn(8, 2), torch.arange(8) % 3)
    names = {"model": model, "train_loader": [batch], "calibration_loader": [batch]}
    names["optimizer"] = torch.optim.SGD(model.parameters(), 0.1)
    before = model.weight.detach().clone()
    exec(loop, names)
    assert not torch.equal(before, model.weight)
    lightning = pytest.importorskip("lightning")
    names |= {"lightning": lightning, "torch": torch}
    names["trainer"] = lightning.Trainer(max_epochs=1, accelerator="cpu", barebones=True)
    before = model.weight.detach().clone()
    exec(module, names)
    assert not torch.equal(before, model.weight)
