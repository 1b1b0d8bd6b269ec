"""Attackers of stores: flip a bit or remove a file, and see what a reader makes of it."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import dask
import numpy as np
import torch

import orbical as ob
from orbical.errors import StoreError
from orbical.store.checksums import digest


def linear(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def small_store(path: Path) -> ob.Scan:
    """Scan 6 digits by two models in 3 units each, onto disk."""
    images, labels = ob.datasets.digits()
    models = {"plain": linear(), "other": linear(1)}
    return ob.scan(
        models,
        (images[:6], labels[:6]),
        group="rotations:3",
        task="classification",
        out=path,
        chunk=2,
        progress=False,
    )


def sealed_root(path: Path, change: Any) -> None:
    """Change the root of a store and give it a hash that is right, as an attacker would."""
    document = json.loads((path / "zarr.json").read_text())
    change(document)
    document["attributes"].pop("orbical_checksum")
    document["attributes"]["orbical_checksum"] = digest(document)
    (path / "zarr.json").write_text(json.dumps(document))


def everything(scan: ob.Scan) -> tuple[Any, ...]:
    """All that a reader can see of a scan, in memory."""
    return (
        scan.data.load(),
        scan.record,
        scan.failures,
        scan.done.tolist(),
        {name: np.asarray(part) for name, part in scan.group.parts.items()},
        scan.group.layout.index,
    )


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Check whether two readers saw the same."""
    return (
        one[0].identical(other[0])
        and one[1:4] == other[1:4]
        and one[4].keys() == other[4].keys()
        and all(np.array_equal(one[4][name], other[4][name]) for name in one[4])
        and np.array_equal(one[5], other[5])
    )


def outcome(path: Path, expected: tuple[Any, ...]) -> str:
    """Read a store: refused, told by a warning, unchanged, or silently changed."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with dask.config.set(scheduler="synchronous"):  # threads cost more than they read
                seen = everything(ob.load(path))
        except StoreError:
            return "refused"
    if any("orbical info --repair" in str(one.message) for one in told):
        return "told"
    return "unchanged" if same(seen, expected) else "silent"


def attack(path: Path, number: int, seed: int = 0) -> Counter[str]:
    """Flip a random bit of a random file, or remove it, `number` times; count what readers see."""
    rng = np.random.default_rng(seed)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    sizes = np.array([file.stat().st_size for file in files], float)
    expected = everything(ob.load(path))
    seen: Counter[str] = Counter()
    for turn in range(number):
        # By size, and every third by file, so that small files are met too.
        weights = None if turn % 3 == 0 else sizes / sizes.sum()
        file = files[rng.choice(len(files), p=weights)]
        content = file.read_bytes()
        if rng.random() < 0.1:
            file.unlink()
        else:
            changed = bytearray(content)
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
            file.write_bytes(bytes(changed))
        result = outcome(path, expected)
        seen[result] += 1
        if result == "silent":
            seen[f"silent: {file.relative_to(path)}"] += 1
        file.write_bytes(content)
    return seen
