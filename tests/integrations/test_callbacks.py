"""Callbacks in real, tiny training runs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import orbical as ob
from orbical.errors import InputError, MissingExtra

IMAGES = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(12) % 3
NAMES = {
    f"orbit/{name}_{place}"
    for name in ("accuracy", "confidence", "score", "ece")
    for place in ("identity", "mean", "worst")
} | {"orbit/invariance_gap"}


def expected(model: torch.nn.Module) -> dict[str, float]:
    scan = ob.scan(
        model, (IMAGES, LABELS), group="rotations:4", task="classification", progress=False
    )
    correct = scan.data["correct"].isel(model=0).values
    confidence = scan.data["confidence"].isel(model=0).values
    return {
        "orbit/accuracy_identity": correct[:, 0].mean(),
        "orbit/accuracy_mean": correct.mean(),
        "orbit/accuracy_worst": correct.mean(0).min(),
        "orbit/confidence_mean": confidence.mean(),
    }


def test_lightning_logs_scores_along_the_orbit_in_each_epoch(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")
    from orbical.integrations.lightning import OrbitCallback

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Flatten(),
                torch.nn.Linear(64, 8),
                torch.nn.Dropout(),
                torch.nn.Linear(8, 3),
            )

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.layers(images)

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            images, labels = batch
            return torch.nn.functional.cross_entropy(self(images), labels)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    logged: list[dict[str, float]] = []

    class Recorder(lightning.pytorch.loggers.logger.DummyLogger):
        def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
            logged.append(metrics)

    torch.manual_seed(0)
    net = Net()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=Recorder(),
        callbacks=[OrbitCallback((IMAGES, LABELS), group="rotations:4")],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
        log_every_n_steps=1,
    )
    trainer.fit(net, DataLoader(TensorDataset(IMAGES, LABELS), batch_size=6))
    epochs = [row for row in logged if "orbit/accuracy_mean" in row]
    assert len(epochs) == 2
    assert set(epochs[0]) >= NAMES
    assert epochs[0]["orbit/score_mean"] != epochs[1]["orbit/score_mean"], "the net has learned"
    for name, value in expected(net).items():
        assert trainer.callback_metrics[name].item() == pytest.approx(value, abs=1e-6)


def test_transformers_logs_scores_along_the_orbit_in_the_epochs_chosen(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    from orbical.integrations.transformers import OrbitCallback

    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        num_channels=1,
        num_labels=3,
    )
    model = transformers.ViTForImageClassification(config)
    rows = [
        {"pixel_values": image, "labels": label}
        for image, label in zip(IMAGES, LABELS, strict=True)
    ]
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=2,
            per_device_train_batch_size=6,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        ),
        train_dataset=rows,
    )
    trainer.add_callback(
        OrbitCallback((IMAGES, LABELS), group="rotations:4", every_n_epochs=2, trainer=trainer)
    )
    trainer.train()
    found = [row for row in trainer.state.log_history if "orbit/accuracy_mean" in row]
    assert [row["epoch"] for row in found] == [2.0]
    assert set(found[0]) >= NAMES
    for name, value in expected(model).items():
        assert found[0][name] == pytest.approx(value, abs=1e-6)


def test_scores_without_labels_are_those_that_need_none() -> None:
    from orbical.integrations._scores import CallbackScores

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    scores = CallbackScores(IMAGES, group="rotations:4", prefix="")._scores(net)
    assert "accuracy_mean" not in scores
    assert np.isfinite(scores["confidence_mean"])
    with pytest.raises(InputError, match="every_n_epochs: expected a whole number >= 1, got 0"):
        CallbackScores(IMAGES, group="rotations:4", every_n_epochs=0)


@pytest.mark.parametrize("package", ["lightning", "transformers"])
def test_a_missing_package_is_named_with_its_extra(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (package, f"{package}.pytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"orbical.integrations.{package}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'orbical\[{package}\]'"):
        importlib.import_module(f"orbical.integrations.{package}")


def test_a_single_measure_is_named_without_a_list() -> None:
    from orbical.integrations._scores import CallbackScores

    assert CallbackScores((IMAGES, LABELS), group="rotations:4", measures="ks").measures == ["ks"]
    with pytest.raises(InputError, match="measures: unknown name 'kss'; did you mean 'ks'"):
        CallbackScores((IMAGES, LABELS), group="rotations:4", measures="kss")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"measures": ["ece", "nll"]}, "such as ece, got 'nll', which needs the outputs"),
        ({"data": IMAGES, "measures": "ece"}, "measures: expected none without labels, got 'ece'"),
        ({"data": DataLoader(TensorDataset(IMAGES), shuffle=True)}, "that does not shuffle"),
        ({"group": "rotatons:4"}, "group: unknown name 'rotatons'; did you mean 'rotations'"),
        ({"task": "clasification"}, "task: unknown name 'clasification'"),
        ({"data": (IMAGES, LABELS[:5])}, "labels: expected one for each of 12 samples, got 5"),
        (
            {"data": (IMAGES, LABELS[:, None]), "task": ob.tasks.Regression(ob.actions.Images())},
            "measures: expected none without confidence or uncertainty, got 'ece'",
        ),
    ],
)
def test_what_cannot_be_scanned_is_refused_before_training(
    changed: dict[str, object], message: str
) -> None:
    from orbical.integrations._scores import CallbackScores

    given = {"data": (IMAGES, LABELS), "group": "rotations:4", "measures": "ece"} | changed
    with pytest.raises(InputError, match=message):
        CallbackScores(**given)


def test_the_repr_of_a_callback_leaves_out_its_data() -> None:
    from orbical.integrations._scores import CallbackScores

    assert "tensor" not in repr(CallbackScores((IMAGES, LABELS), group="rotations:4"))


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "said"),
    [("fsdp2", "scanned by all"), ("fsdp1", "refused: model: expected weights that are whole")],
)
def test_all_ranks_of_a_sharded_training_scan_or_refuse_at_the_start(
    kind: str, said: str, tmp_path: Path
) -> None:
    """Rank 0 scanned alone, and waited for the weights of the other until the run timed out."""
    pytest.importorskip("lightning", reason="lightning is not installed")
    program = str(Path(__file__).with_name("sharded_training.py"))
    ranks = [
        subprocess.Popen(
            [sys.executable, program, str(rank), "2", str(tmp_path / "meeting"), kind],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert all(said in one for one in told), told
