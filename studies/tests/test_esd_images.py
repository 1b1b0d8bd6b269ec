"""The ESD study on Tiny ImageNet, on corrupted images and on published outputs: tiny runs."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from orbical.errors import InputError
from orbical_studies.__main__ import main
from orbical_studies.data.corrupted_images import CORRUPTIONS, corrupted
from orbical_studies.esd import STEPS, corruptions, cumulative, tiny
from orbical_studies.framework import Results
from orbical_studies.framework.packs import write_pack
from orbical_studies.networks.classifiers import WhitenedNet


def jpeg(brightness: int) -> bytes:
    content = io.BytesIO()
    Image.fromarray(np.full((64, 64), brightness, np.uint8)).save(content, "JPEG")
    return content.getvalue()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write images of three classes, dark, gray and bright, gray ones without colors."""
    folder = tmp_path / "data" / "tinyimagenet25"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "tiny25.zip", "w") as file:
        for place, name in enumerate(("n1", "n2", "n3")):
            for number in range(20):
                file.writestr(f"train/{name}/{number:02}.JPEG", jpeg(80 * place + number))
            for number in range(4):
                file.writestr(f"val/{name}/{number}.JPEG", jpeg(80 * place + number))
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("archive")
def test_tiny_imagenet_is_trained_with_every_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tiny, "SEEDS", (0,))
    monkeypatch.setattr(tiny, "WIDTHS", (8, 16))
    options = ["--epochs", "1", "--results", str(tmp_path), "--work", str(tmp_path / "work")]
    with pytest.raises(SystemExit):
        main(["esd", "tiny", *options])
    assert "run the step 'pack-tiny' first" in capsys.readouterr().err
    for step in ("pack-tiny", "tiny", "collect-tiny"):
        main(["esd", step, *options])
    rows = Results(tmp_path)["tiny"]
    assert rows["loss"].tolist() == ["NLL", "MMCE", "SB-ECE", "ESD"]
    assert rows["accuracy"].tolist() == pytest.approx(rows["test.accuracy"].tolist())
    assert (rows["test.low"] <= rows["test.high"]).all()


@pytest.mark.usefixtures("archive")
def test_the_parts_of_tiny_imagenet_have_the_right_labels(tmp_path: Path) -> None:
    path = tmp_path / "data" / "tinyimagenet25" / "tiny25.zip"
    parts = tiny.unpack(path, torch.device("cpu"))
    assert {name: len(part) for name, part in parts.items()} == {
        **{"fit": 49, "calibration": 5, "validation": 6, "test": 12},
    }
    for part in parts.values():
        brightness = part.pixels.float().mean((1, 2, 3))
        assert torch.equal((brightness / 80).floor().long(), part.labels)
    few = tiny.unpack(path, torch.device("cpu"), images=6)
    assert few["test"].labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_mirror_images_double_a_part() -> None:
    split = tiny.Split(torch.arange(6, dtype=torch.uint8).reshape(1, 2, 3, 1), torch.zeros(1))
    both = tiny._with_mirror_images(split).pixels[..., 0]
    assert both[1].tolist() == [[2, 1, 0], [5, 4, 3]]


def made_up_cifar(folder: Path) -> None:
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for split in ("train", "more", "test"):
        sheet = draw.integers(0, 255, (32, 32 * 20, 3), dtype=np.uint8)
        Image.fromarray(sheet).save(folder / f"{split}_00.png")
        np.save(folder / f"{split}_labels.npy", (np.arange(20) % 2).astype(np.uint8))


def front_rows() -> list[dict[str, object]]:
    """Return trainings of which SB-ECE's weight 2 is chosen, and ESD's costs too much."""
    shared = {"data": "cifar10", "batch": 512, "decay": 5e-5, "test.accuracy": 0.95}
    scores = [("NLL", 0.0, 0.0, 0.94, 0.06), ("SB-ECE", 2.0, 0.01, 0.93, 0.02)]
    scores += [("SB-ECE", 4.0, 0.01, 0.80, 0.01), ("ESD", 2.0, 0.0, 0.80, 0.01)]
    return [
        {"key": f"{loss}-{seed}" if weight < 4 else f"other-{seed}", "loss": loss, **shared}
        | {"weight": weight, "inner": inner, "seed": seed}
        | {"validation.accuracy": accuracy, "validation.ece": ece}
        for loss, weight, inner, accuracy, ece in scores
        for seed in (0, 1)
    ]


def test_networks_are_asked_about_corrupted_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_cifar(tmp_path / "data" / "cifar10")
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(corruptions, "RESAMPLES", 4)
    monkeypatch.setattr(corruptions, "EACH", 4)
    monkeypatch.setattr(corruptions, "CORRUPTIONS", ("fog", "snow"))
    monkeypatch.setattr(corruptions, "CLASSES", {"cifar10": 2})
    monkeypatch.setattr(corruptions, "WIDTHS", (4, 4, 4))
    monkeypatch.setattr(
        corruptions, "corrupted", lambda images, name, severity: images // (severity + 1)
    )
    options = ["--results", str(tmp_path), "--work", str(tmp_path / "work")]
    main(["esd", "pack-corruptions", *options])
    for seed, loss in enumerate(("NLL", "SB-ECE")):
        torch.manual_seed(seed)
        state = WhitenedNet(torch.rand(9, 3, 32, 32), 2, (4, 4, 4)).state_dict()
        arrays = {f"weights/{name}": value.half().numpy() for name, value in state.items()}
        write_pack(tmp_path / f"work/fronts/cifar10/{loss}-1.npz", arrays)
    Results(tmp_path).write("fronts", front_rows())
    main(["esd", "corruptions", *options])
    rows = Results(tmp_path)["corruptions"]
    assert len(rows) == 2 * (1 + 5 * 2)
    clean = rows[rows["corruption"] == "none"]
    assert clean["severity"].tolist() == [0, 0]
    network = corruptions.read_network(tmp_path / "work/fronts/cifar10/NLL-1.npz")
    pixels, labels = corruptions.sample(4)
    logits = network(corruptions.as_images(torch.from_numpy(pixels)))
    right = (logits.argmax(1).numpy() == labels).mean()
    assert clean["accuracy"].iloc[0] == pytest.approx(right)
    changes = Results(tmp_path)["corruptions-change"]
    at = rows[rows["severity"] == 3].groupby("loss")["ece"].mean()
    (found,) = changes.query("severity == 3 and not scaled")["change"]
    assert found == pytest.approx(at["SB-ECE"] - at["NLL"], abs=1e-5)
    (mean,) = changes.query("severity == 0 and not scaled")["change"]
    every = changes.query("severity > 0 and not scaled")["change"].mean()
    assert mean == pytest.approx(every, abs=1e-5)


def test_networks_of_the_papers_cost_are_found_by_their_trainings(tmp_path: Path) -> None:
    rows = pd.DataFrame(front_rows())
    assert corruptions.chosen_networks(rows) == {"NLL": "NLL-1", "SB-ECE": "SB-ECE-1"}
    with pytest.raises(InputError, match=r"^results: expected a training of SB-ECE with lambda 2 "):
        corruptions.chosen_networks(rows[rows["key"] != "SB-ECE-1"])
    write_pack(tmp_path / "empty.npz", {"correct": np.ones(3)})
    with pytest.raises(InputError, match=r"^work: expected weights in 'empty.npz', got none"):
        corruptions.read_network(tmp_path / "empty.npz")


def test_every_corruption_runs_and_repeats() -> None:
    pytest.importorskip("skimage")
    if importlib.util.find_spec("imagecorruptions") is None:
        pytest.skip("imagecorruptions is not installed")
    images = np.random.default_rng(0).integers(0, 255, (1, 32, 32, 3), dtype=np.uint8)
    for name in CORRUPTIONS:
        found = corrupted(images, name, 3)
        assert (found.shape, found.dtype) == (images.shape, np.uint8)
        assert (found != images).any(), name
        assert (corrupted(images, name, 3) == found).all(), name
    assert not hasattr(np, "float_")


def test_an_unknown_corruption_is_refused() -> None:
    with pytest.raises(InputError, match=r"^name: unknown name 'rain'"):
        corrupted(np.zeros((1, 32, 32, 3), np.uint8), "rain", 1)


def test_scaling_of_published_outputs_is_fitted_on_the_other_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(0)
    probs = draw.dirichlet(np.full(5, 0.3), 800).astype(np.float32)
    labels = [draw.choice(5, p=p / p.sum()) for p in np.sqrt(probs.astype(float))]
    (tmp_path / "logits").mkdir()
    path = tmp_path / "logits" / "some.npz"
    np.savez(path, probs=probs, labels=np.array(labels, dtype=np.uint8))
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path))
    monkeypatch.setattr(cumulative, "PUBLISHED", ("some",))
    main(["esd", "published", "--results", str(tmp_path / "results")])
    (row,) = Results(tmp_path / "results")["published"].to_dict("records")
    assert 1.6 < row["temperature"] < 2.5
    assert row["test_ts.ece"] < row["test.ece"]
    first, second = cumulative.halves("some")
    assert len(first[1]) == len(second[1]) == 400


def test_every_step_is_a_function_of_its_module() -> None:
    for path in STEPS.values():
        module, _, name = path.partition(":")
        assert callable(getattr(importlib.import_module(f"orbical_studies.esd.{module}"), name))
