"""For the DDP test: two ranks, each with its share of one batch.

    python losses_by_rank.py FOLDER PORT

reads `shared.safetensors`, the model and the batch of both, and writes what each rank found.
The process imports everything once and then forks, which takes milliseconds.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import distributed, nn

from orbical import losses

if importlib.util.find_spec("torch._dynamo.aot_compile"):  # since torch 2.9
    import torch._dynamo.aot_compile  # by DDP otherwise, in each rank

LOSSES = ("esd", "mmce", "ece")
SIZES = ((11, 11), (9, 13))


def main(folder: Path, port: int, rank: int) -> None:
    address, patience = f"tcp://127.0.0.1:{port}", timedelta(minutes=2)
    distributed.init_process_group(
        "gloo", init_method=address, rank=rank, world_size=2, timeout=patience
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
    distributed.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    other = os.fork()
    main(Path(sys.argv[1]), int(sys.argv[2]), 0 if other else 1)
    failed = bool(other) and os.waitpid(other, 0)[1] != 0
    os._exit(
        failed
    )  # taking the group apart can wait for ever: gloo joins a thread that needs Python
