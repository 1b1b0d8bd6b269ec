"""Hostile inputs: whatever a file or a text holds, the answer is a result or an error of orbical.

The fuzzers are seeded, print their counts, and are large under `slow`.
"""

from __future__ import annotations

import copy
import io
import json
import random
import shutil
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.cli.arguments import load_data
from orbical.errors import InputError, OrbicalError, StoreError

COUNTS = {  # in the default run, and under `slow`
    "group texts": (60, 35_000),
    "npz files": (150, 35_000),
    "COCO files": (150, 35_000),
    "headers of stores": (15, 2_000),
}


def attempts(number: int, attempt: Callable[[random.Random], None], what: str) -> Counter[str]:
    """Try `number` hostile inputs; anything but a result or an `OrbicalError` is raised."""
    seen: Counter[str] = Counter()
    for seed in range(number):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                attempt(random.Random(seed))
                seen["accepted"] += 1
            except OrbicalError as error:
                seen["refused" if str(error) else "speechless"] += 1
            except Exception as error:
                raise AssertionError(f"{what}, seed {seed}: {type(error).__name__}") from error
    print(f"{number:,} {what}: {dict(seen)}", file=sys.stderr)
    return seen


WORDS = ["rotations", "translations", "permutations", "scales", "cyclic", "dihedral", "flips"]
WORDS += ["rotations3d", "slices3d", "euclidean", "time_reversal", "trivial", "inversion"]
NUMBERS = ["1", "0", "-3", "2.5", "1e308", "1e-300", "nan", "inf", "100000000", "", " 4", "x", "٣"]


def group_text(rng: random.Random) -> None:
    """Parse a text of known words, odd numbers and stray signs."""
    factors = [
        ":".join([rng.choice(WORDS), *rng.choices(NUMBERS, k=rng.randrange(4))])
        for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    text = "*".join(factors)
    if "*" in text and "3d" in text:  # sound, but thousands of elements take seconds
        text = text.replace("3d", "4d")
    if rng.random() < 0.3:
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(":*-. \0é") + text[place:]
    ob.groups.parse(text)


def npz_file(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that damages an `.npz` file and reads it as data."""
    plain, packed = io.BytesIO(), io.BytesIO()
    arrays = {"x": np.zeros((3, 1, 4, 4), np.float32), "y": np.arange(3)}
    np.savez(plain, **arrays)  # type: ignore[arg-type]
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    path = folder / "data.npz"

    def attack(rng: random.Random) -> None:
        content = bytearray(rng.choice([plain, packed]).getvalue())
        for _ in range(rng.randrange(1, 6)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        path.write_bytes(bytes(content))
        load_data(str(path))

    return attack


def coco_file(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that damages a file in COCO's format and reads it."""
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3]}
    sound = {
        "images": [{"id": 1, "file_name": "a.png", "width": 8, "height": 8}],
        "annotations": [box],
        "categories": [{"id": 1, "name": "cat"}],
    }
    odd = [None, [], {}, "x", -1, 1e400, [1e308] * 4, [None] * 4, True, [[[[]]]]]
    path = folder / "notes.json"
    (folder / "a.png").write_bytes(b"no image")

    def attack(rng: random.Random) -> None:
        document = json.loads(json.dumps(sound))
        for _ in range(rng.randrange(1, 4)):
            place = document
            while True:
                keys = list(place) if isinstance(place, dict) else range(len(place))
                if not keys:
                    break
                key = rng.choice(list(keys))
                if not isinstance(place[key], dict | list) or rng.random() < 0.4:
                    place[key] = copy.deepcopy(rng.choice(odd))
                    break
                place = place[key]
        text = json.dumps(document)
        if rng.random() < 0.1:
            text = "[" * rng.choice([5, 100_000]) + text
        path.write_text(text, encoding="utf-8")
        ob.datasets.coco(path)

    return attack


def header(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that edits the root of a store, with a valid hash, and reads it."""
    from orbical.store.arrays import _HASH
    from orbical.store.checksums import digest

    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    path = folder / "run.zarr"
    settings = {"group": "rotations:3", "task": "classification", "progress": False}
    ob.scan(net, (images[:2], labels[:2]), out=path, **settings)  # type: ignore[arg-type]
    root = path / "zarr.json"
    sound = json.loads(root.read_text())
    odd = [None, [], {}, "x", -1, 0, 10**9, 10**30, 0.5, True, [10**12], "\0"]

    def damaged(document: object, rng: random.Random) -> None:
        place = document
        while isinstance(place, dict | list) and place:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or rng.random() < 0.1:
                place[key] = copy.deepcopy(rng.choice(odd))
                return
            place = place[key]

    def attack(rng: random.Random) -> None:
        document = json.loads(json.dumps(sound))
        about = json.loads(document["attributes"]["orbical"])
        damaged(rng.choice([document, about["record"], about["files"], document]), rng)
        if isinstance(document.get("attributes"), dict):
            document["attributes"].pop(_HASH, None)
            document["attributes"]["orbical"] = json.dumps(about)
            document["attributes"][_HASH] = digest(document)
        root.write_text(json.dumps(document))
        ob.load(path).data.load()

    return attack


FUZZERS: dict[str, Callable[[Path], Callable[[random.Random], None]]] = {
    "group texts": lambda folder: group_text,
    "npz files": npz_file,
    "COCO files": coco_file,
    "headers of stores": header,
}


@pytest.mark.parametrize("what", FUZZERS)
def test_hostile_inputs_never_end_in_a_traceback(what, tmp_path):
    assert attempts(COUNTS[what][0], FUZZERS[what](tmp_path), what)["refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("what", FUZZERS)
def test_many_hostile_inputs_never_end_in_a_traceback(what, tmp_path):
    attempts(COUNTS[what][1], FUZZERS[what](tmp_path), what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("translations:1e308:1e-300", "expected at most 1,048,576 elements, got inf"),
        ("permutations:100000000:2", "expected at most 8,388,608 rows for 2 permutations"),
    ],
)
def test_groups_that_would_not_fit_into_memory_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        ob.groups.parse(text)


def test_an_npz_file_of_an_unknown_compression_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    content = io.BytesIO()
    np.savez(content, x=np.zeros((2, 1, 4, 4)))
    changed = bytearray(content.getvalue())
    for start in (changed.find(b"PK\x03\x04") + 8, changed.find(b"PK\x01\x02") + 10):
        changed[start] = 97  # a method that Python does not know
    path.write_bytes(bytes(changed))
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((")
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))


def test_labels_without_a_dimension_are_refused():
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(InputError, match="expected one for each of 3 samples, got a single"):
        ob.scan(net, (images[:3], np.array(1)), group="flips", task="classification")


def test_a_store_in_a_zip_or_a_file_is_refused(tmp_path):
    file = tmp_path / "run.zarr"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(StoreError, match="not an orbical store"):
        ob.load(file)
    shutil.rmtree(tmp_path)
