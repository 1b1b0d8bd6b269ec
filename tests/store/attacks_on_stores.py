"""Attackers of stores: damage a file, and see what readers make of it: `python FILE 10000`."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
import torch
import xarray as xr

import orbical as ob
from orbical.errors import OrbicalError, StoreError
from orbical.store.checksums_and_units import json_digest


def linear(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def small_store(path: Path, overwrite: bool = False) -> ob.Scan:
    """Scan 6 digits by two models in 3 units each, onto disk."""
    images, labels = ob.datasets.digits()
    models = {"plain": linear(), "other": linear(1)}
    return ob.scan(
        models,
        (images[:6], labels[:6]),
        group="rotations:3",
        task="classification",
        out=path,
        overwrite=overwrite,
        chunk=2,
        progress=False,
    )


def sealed_root(path: Path, change: Any) -> None:
    """Change the root of a store and give it a hash that is right, as an attacker would."""
    document = json.loads((path / "zarr.json").read_text())
    change(document)
    document["attributes"].pop("orbical_checksum")
    document["attributes"]["orbical_checksum"] = json_digest(document)
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


def command(*words: object) -> Callable[[Path], tuple[int, str]]:
    """Return a reader that runs a command in this process: its exit status and what it printed."""
    from typer.testing import CliRunner

    from orbical.cli import _register, app

    _register()

    def reader(path: Path) -> tuple[int, str]:
        given = [str(path if word == "STORE" else word) for word in words]
        result = CliRunner().invoke(app, given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return reader


def orbits_beside(path: Path) -> Path:
    """Write an orbit for each sample of the scan, as `orbical bounds` reads them."""
    np.save(path.parent / "ids.npy", np.arange(6) // 2)
    return path.parent / "ids.npy"


def viewed(path: Path) -> list[tuple[Any, bytes]]:
    """Ask what a page asks first; an error that it would show is raised."""
    from orbical.interface import open_session

    session, found = open_session(path, None, None), []
    try:
        for kind in ("aggregate", "sample", "place", "classes", "consistency"):
            message = {"kind": kind, "sequence": 1, "selection": {"sample": 3}}
            for frame in session.frames(message, lambda: False):
                start = 4 + int.from_bytes(frame[:4], "little")
                header = json.loads(frame[4:start])
                if "error" in header:  # of whichever kind was asked for
                    raise StoreError(header["error"])
                del header["took_ms"]
                found.append((header, frame[start:]))
    finally:
        session.close()
    return found


READERS: dict[str, Callable[[Path], Any]] = {
    "data": lambda path: everything(ob.load(path)),
    "summary": lambda path: ob.nero.summary(ob.load(path)).load(),
    "info": command("info", "--verify", "STORE"),
    "check": command("check", "STORE", "--min-score", 0.0, "--resamples", 20),
    "calibration": command("calibration", "STORE", "--resamples", 20, "--json"),
    "bounds": lambda path: command("bounds", "STORE", "--orbits", orbits_beside(path))(path),
    "view": viewed,
}


def agree(one: Any, other: Any) -> bool:
    """Check whether a reader saw the same twice."""
    if isinstance(one, xr.Dataset):
        return bool(one.identical(other))
    plain = isinstance(one, list) or len(one) == 2  # frames, or the end of a command
    return bool(one == other) if plain else same(one, other)


def outcome(path: Path, expected: Any, reader: str = "data") -> str:
    """Read a store: refused, told by a warning, unchanged, or silently changed."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with dask.config.set(scheduler="synchronous"):  # threads cost more than they read
                seen = READERS[reader](path)
        except OrbicalError:
            return "refused"
        except Exception as error:
            return f"traceback ({reader}: {type(error).__name__})"
    if any("orbical info --repair" in str(one.message) for one in told):
        return "told"
    if reader == "info" and seen[0] == 1 and expected[0] == 0:
        return "told"
    return "unchanged" if agree(seen, expected) else "silent"


def attack(path: Path, number: int, seed: int = 0, readers: Sequence[str] = ()) -> Counter[str]:
    """Flip a random bit of a random file, or remove it, `number` times; count what readers see.

    Each damage is read as data, and by one of the other readers in turn.
    """
    rng = np.random.default_rng(seed)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    sizes = np.array([file.stat().st_size for file in files], float)
    expected = {name: READERS[name](path) for name in ("data", *readers)}
    seen: Counter[str] = Counter()
    for turn in range(number):
        # By size, and every third by file, so that small files are met too.
        weights = None if turn % 3 == 0 else sizes / sizes.sum()
        file = files[rng.choice(len(files), p=weights)]
        content = file.read_bytes()
        how = rng.random()
        if how < 0.1:
            file.unlink()
        elif how < 0.15:
            file.write_bytes(content[: rng.integers(len(content))])
        else:
            changed = bytearray(content)
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
            file.write_bytes(bytes(changed))
        for name in ("data", *(readers[turn % len(readers) :][:1] if readers else ())):
            result = outcome(path, expected[name], name)
            seen[result] += 1
            if result == "silent" or "traceback" in result:
                seen[f"{result} {name}: {file.relative_to(path)}"] += 1
        file.write_bytes(content)
    return seen


def main(number: int) -> None:
    """Attack a small store, and print the counts."""
    others = [name for name in READERS if name != "data"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.zarr"
        small_store(path)
        seen = attack(path, number, 1, others)
    tracebacks = sum(count for name, count in seen.items() if name.startswith("traceback ("))
    odd = {name: count for name, count in seen.items() if "silent" in name or "traceback" in name}
    print(odd or "nothing odd")
    print(
        f"result: {number:,} damages, each read twice: refused {seen['refused']:,}, a warning "
        f"{seen['told']:,}, of no effect on what was read {seen['unchanged']:,}, silent "
        f"{seen['silent']}, tracebacks {tracebacks}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
