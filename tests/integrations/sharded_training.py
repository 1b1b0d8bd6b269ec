"""A rank of a sharded training with a callback: `sharded_training.py RANK WORLD FILE KIND`."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import orbical as ob
from orbical.errors import InputError
from orbical.integrations.lightning import OrbitCallback

IMAGES = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(12) % 3
SETTINGS: dict[str, Any] = {"group": "cyclic:4", "task": "classification"}


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    )


def train(model: Any, steps: int = 2) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        torch.nn.functional.cross_entropy(model(IMAGES), LABELS).backward()
        optimizer.step()
        optimizer.zero_grad()


def sharded(kind: str) -> Any:
    if kind == "fsdp1":
        return FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
    model: Any = net()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[1], model[3], model):
        fully_shard(layer, mesh=mesh)
    return model


def main(rank: int, world: int, file: str, kind: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    logged: dict[str, float] = {}
    model = sharded(kind)
    model.log_dict = lambda scores, rank_zero_only: logged.update(scores)
    trainer = SimpleNamespace(strategy=SimpleNamespace(model=model), current_epoch=0)
    callback = OrbitCallback((IMAGES, LABELS), **SETTINGS)
    try:
        callback.on_train_start(trainer, model)
    except InputError as error:
        print(f"refused: {error}")
        return
    callback.on_train_epoch_end(trainer, model)  # before any step, too
    for _ in range(2):
        train(model)
        callback.on_train_epoch_end(trainer, model)
    alone = net()
    train(alone, 4)
    scan = ob.scan(alone, (IMAGES, LABELS), progress=False, **SETTINGS)
    expected = float(scan.data["confidence"].mean())
    assert abs(logged["orbit/confidence_mean"] - expected) < 1e-5, (logged, expected)
    print("scanned by all")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
