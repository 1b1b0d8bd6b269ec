"""The training loop: what it learns, when it stops, and how it goes on after a kill."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from orbical import losses, training
from orbical.errors import InputError, StoreError
from orbical.training import _checkpoints as checkpoints


def problem(seed: int = 0) -> tuple[nn.Sequential, training.Interleaved, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    inputs = torch.randn(96, 5)
    labels = (inputs[:, 0] + 0.5 * torch.randn(96) > 0).long()
    train = DataLoader(TensorDataset(inputs[:64], labels[:64]), batch_size=16, shuffle=True)
    held = DataLoader(TensorDataset(inputs[64:], labels[64:]), batch_size=16, shuffle=True)
    # Dropout draws from the global random state in every step.
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, training.interleave(train, held), optimizer


def trained(epochs: int, folder: Path | None, **options: object) -> tuple[nn.Module, list]:
    model, pairs, optimizer = problem()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    history = training.fit(
        model,
        pairs,
        optimizer=optimizer,
        scheduler=scheduler,
        objective=training.interleaved(losses.esd, weight=1.0),
        epochs=epochs,
        checkpoint=folder,
        **options,  # type: ignore[arg-type]
    )
    return model, history.rows


def assert_same_weights(one: nn.Module, other: nn.Module) -> None:
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_the_loss_falls_and_every_epoch_is_a_row() -> None:
    _, rows = trained(8, None)
    assert [row["epoch"] for row in rows] == list(range(1, 9))
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    straight, rows = trained(6, None)
    trained(2, tmp_path)
    torch.manual_seed(999)  # whatever happened in between does not matter
    np.random.seed(4)  # noqa: NPY002
    resumed, resumed_rows = trained(6, tmp_path)
    assert_same_weights(straight, resumed)
    assert rows == resumed_rows


def test_an_error_in_the_middle_of_an_epoch_resumes_from_its_start(tmp_path: Path) -> None:
    straight, _ = trained(4, None)
    model, pairs, optimizer = problem()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    esd, steps = training.interleaved(losses.esd, weight=1.0), []

    def failing(model: nn.Module, pair: object) -> Tensor:
        steps.append(1)
        if len(steps) == 10:  # the second step of the third epoch
            raise KeyboardInterrupt
        return esd(model, pair)

    with pytest.raises(KeyboardInterrupt):
        training.fit(
            model,
            pairs,
            optimizer=optimizer,
            scheduler=scheduler,
            objective=failing,
            epochs=4,
            checkpoint=tmp_path,
        )
    resumed, _ = trained(4, tmp_path)
    assert_same_weights(straight, resumed)


KILLED = """
import os, signal, sys, torch
from torch import nn
from orbical import training

die_at = int(sys.argv[1])

def validate(model, epoch):
    if epoch == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return {}

for folder in sys.argv[2:]:
    torch.manual_seed(0)
    inputs = torch.randn(64, 3)
    batches = [(inputs, (inputs[:, 0] > 0).long())]
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    training.fit(model, batches, optimizer=torch.optim.Adam(model.parameters()), epochs=5,
                 validate=validate, checkpoint=folder)
    print(sum(float(p.double().sum()) for p in model.parameters()).hex())
"""


@pytest.mark.system
def test_a_killed_process_is_continued_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    done = subprocess.run([sys.executable, "-c", KILLED, "3", one], timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert [file.name for file in (tmp_path / "one").iterdir()] == ["last.safetensors"]
    monkeypatch.setattr(sys, "argv", ["", "0", one, two])
    exec(KILLED, {})
    continued, straight = capsys.readouterr().out.split()
    assert continued == straight


def test_generators_of_the_loaders_are_part_of_the_checkpoint(tmp_path: Path) -> None:
    def run(epochs: int, folder: Path | None) -> nn.Linear:
        torch.manual_seed(0)
        inputs = torch.randn(64, 3)
        own = torch.Generator().manual_seed(8)
        loader = DataLoader(
            TensorDataset(inputs, (inputs[:, 0] > 0).long()), 16, shuffle=True, generator=own
        )
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        training.fit(
            model, loader, optimizer=optimizer, epochs=epochs, checkpoint=folder, generators=[own]
        )
        return model

    straight = run(4, None)
    run(2, tmp_path)
    assert_same_weights(straight, run(4, tmp_path))


def test_patience_stops_and_gives_back_the_best_weights(tmp_path: Path) -> None:
    scores = iter([0.5, 0.3, 0.4, 0.35, 0.1])
    kept: dict[int, Tensor] = {}
    model, pairs, optimizer = problem()

    def validate(model: nn.Module, epoch: int) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        kept[epoch] = model.state_dict()["0.weight"].clone()
        return {"ece": next(scores)}

    history = training.fit(
        model,
        pairs,
        optimizer=optimizer,
        objective=training.interleaved(losses.mmce, weight=1.0),
        epochs=10,
        validate=validate,
        monitor="ece",
        patience=2,
        checkpoint=tmp_path,
    )
    assert history.stopped_early
    assert history.best_epoch == 2
    assert history.column("ece") == [0.5, 0.3, 0.4, 0.35]
    assert torch.equal(model.state_dict()["0.weight"], kept[2])
    # A run that stopped stays stopped, with the same weights.
    again, pairs, optimizer = problem(seed=1)
    history = training.fit(
        again,
        pairs,
        optimizer=optimizer,
        epochs=10,
        validate=validate,
        monitor="ece",
        patience=2,
        checkpoint=tmp_path,
    )
    assert len(history.rows) == 4
    assert torch.equal(again.state_dict()["0.weight"], kept[2])


def test_mixed_precision_trains() -> None:
    _, rows = trained(5, None, autocast=torch.bfloat16)
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_progress_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    trained(1, None, progress=True)
    assert "training" in capsys.readouterr().out


def test_wrong_settings_are_refused_before_any_step() -> None:
    model, pairs, optimizer = problem()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wrong = [
        ({"epochs": 0}, "epochs"),
        ({"patience": 0}, "patience"),
        ({"monitor": "ece"}, "monitor"),
    ]
    for options, word in wrong:
        with pytest.raises(InputError, match=rf"^{word}"):
            training.fit(model, pairs, optimizer=optimizer, **({"epochs": 1} | options))
    with pytest.raises(InputError, match=r"^batches.*empty"):
        training.fit(model, [], optimizer=optimizer, epochs=1)
    with pytest.raises(InputError, match=r"^model"):
        training.fit(nn.Identity(), pairs, optimizer=optimizer, epochs=1)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_monitor_that_validate_does_not_give_is_named() -> None:
    model, pairs, optimizer = problem()
    with pytest.raises(InputError, match=r"^monitor.*'ece'"):
        training.fit(
            model,
            pairs,
            optimizer=optimizer,
            objective=training.interleaved(losses.esd, weight=1.0),
            epochs=1,
            validate=lambda model, epoch: {},
            monitor="ece",
            patience=1,
        )


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    trained(1, tmp_path)
    other = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"^checkpoint.*another model"):
        training.fit(
            other,
            [(torch.zeros(1, 2), torch.tensor([0]))],
            optimizer=torch.optim.SGD(other.parameters()),
            epochs=2,
            checkpoint=tmp_path,
        )


def test_a_checkpoint_holds_no_pickle_and_says_what_it_cannot_hold(tmp_path: Path) -> None:
    trained(1, tmp_path)
    content = (tmp_path / "last.safetensors").read_bytes()
    assert b"\x80\x04" not in content[:2]
    assert int.from_bytes(content[:8], "little") < len(content)  # safetensors' header length
    with pytest.raises(InputError, match=r"state/odd.*object"):
        checkpoints.save(tmp_path / "x.safetensors", {"odd": object()})
    (tmp_path / "broken.safetensors").write_bytes(content[:100])
    with pytest.raises(StoreError, match="cannot be read"):
        checkpoints.load(tmp_path / "broken.safetensors")


def test_all_random_states_come_back(tmp_path: Path) -> None:
    own = torch.Generator().manual_seed(1)

    def draw() -> tuple[float, float, float, float]:
        return (
            random.random(),
            float(np.random.rand()),  # noqa: NPY002
            float(torch.rand(())),
            float(torch.rand((), generator=own)),
        )

    np.random.randn()  # noqa: NPY002 (leaves a cached Gaussian behind)
    checkpoints.save(tmp_path / "r.safetensors", checkpoints.random_state([own]))
    first = draw()
    checkpoints.set_random_state(checkpoints.load(tmp_path / "r.safetensors"), [own])
    assert draw() == first
    with pytest.raises(InputError, match=r"^generators"):
        checkpoints.set_random_state(checkpoints.load(tmp_path / "r.safetensors"), [])


def test_an_optimizer_and_its_scheduler_may_be_made_from_the_parameters() -> None:
    esd = training.interleaved(losses.esd, weight=1.0)
    by_hand, pairs, optimizer = problem()
    steps = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    expected = training.fit(
        by_hand, pairs, objective=esd, optimizer=optimizer, scheduler=steps, epochs=3
    )
    made, pairs, _ = problem()
    found = training.fit(
        made,
        pairs,
        objective=esd,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1),
        epochs=3,
    )
    assert_same_weights(by_hand, made)
    assert found.rows == expected.rows
    with pytest.raises(InputError, match="optimizer: expected a torch Optimizer or a function"):
        training.fit(made, pairs, objective=esd, optimizer="adam", epochs=1)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"scheduler: expected a torch LRScheduler .* got NoneType"
    ):
        training.fit(
            made,
            pairs,
            objective=esd,
            optimizer=torch.optim.Adam,
            scheduler=lambda optimizer: None,  # type: ignore[arg-type, return-value]
            epochs=1,
        )
