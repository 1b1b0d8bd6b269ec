"""A script of its own for the DDP test: two ranks, each with its share of one batch.

    python losses_by_rank.py FOLDER

writes what each rank found, and the model and batch they shared.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import distributed, multiprocessing, nn

from orbical import losses

LOSSES = ("esd", "mmce", "ece")
SIZES = ((11, 11), (9, 13))


def main(folder: Path) -> None:
    torch.manual_seed(5)
    model = nn.Linear(6, 4).double()
    inputs, labels = torch.randn(22, 6, dtype=torch.float64), torch.randint(4, (22,))
    shared = {name: value.detach() for name, value in model.named_parameters()}
    save_file({**shared, "inputs": inputs, "labels": labels}, folder / "shared.safetensors")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    multiprocessing.spawn(one_rank, (port, folder), nprocs=2)


def one_rank(rank: int, port: int, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    shared = load_file(folder / "shared.safetensors")
    inputs, labels = shared.pop("inputs"), shared.pop("labels")
    plain = nn.Linear(6, 4).double()
    plain.load_state_dict(shared)
    model = nn.parallel.DistributedDataParallel(plain)
    values = {}
    for sizes in SIZES:
        own_inputs, own_labels = (part.split(list(sizes))[rank] for part in (inputs, labels))
        for name in LOSSES:
            model.zero_grad()
            loss = getattr(losses, name)(*losses.gather_across_ranks(model(own_inputs), own_labels))
            loss.backward()
            values[f"{name}/{sizes}/loss"] = loss.detach().reshape(1)
            values[f"{name}/{sizes}/gradient"] = plain.weight.grad.clone()
    save_file(values, folder / f"{rank}.safetensors")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
