"""Hostile inputs: whatever a file or a text holds, the answer is a result or an error of orbical.

The fuzzers are seeded, print their counts, and are large under `slow`.
"""

from __future__ import annotations

import copy
import io
import json
import math
import random
import re
import resource
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
from PIL import Image

import orbical as ob
from orbical.cli.arguments import load_data
from orbical.errors import InputError, OrbicalError, StoreError
from orbical.groups.group_names import CATALOG

COUNTS = {  # in the default run, and under `slow`
    "group texts": (60, 35_000),
    "npz files": (150, 35_000),
    "COCO files": (150, 35_000),
    "headers of stores": (15, 5_000),
    "tables of thresholds": (100, 20_000),
    "saved outputs": (30, 5_000),
    "molecule files": (40, 5_000),
    "binary molecule files": (40, 5_000),
    "worst cases": (10, 2_000),
    "Parquet tables": (40, 10_000),
    "Zarr arrays": (15, 5_000),
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


WORDS = sorted(CATALOG)
NUMBERS = ["1", "0", "-3", "2.5", "1e308", "1e-300", "nan", "inf", "100000000", "", " 4", "x", "٣"]
NUMBERS += ["full", "mmm", "-43"]


def group_text(rng: random.Random) -> None:
    """Parse a text of known words, odd numbers and stray signs."""
    factors = [
        ":".join([rng.choice(WORDS), *rng.choices(NUMBERS, k=rng.randrange(4))])
        for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    text = "*".join(factors)
    if "*" in text:  # sound, but thousands of elements take seconds
        text = text.replace("3d", "4d").replace("o3", "o4")
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
    box = {"image_id": 1, "category_id": 1, "bbox": [12, 12, 8, 8]}
    sound = {
        "images": [{"id": 1, "file_name": "a.png", "width": 32, "height": 32}],
        "annotations": [box],
        "categories": [{"id": 1, "name": "cat"}],
    }
    odd = [None, [], {}, "x", -1, 1e400, [1e308] * 4, [None] * 4, True, [[[[]]]]]
    path = folder / "notes.json"
    Image.new("RGB", (32, 32)).save(folder / "a.png")

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
        ob.datasets.coco(path, window=16, radius=4)

    return attack


def header(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that edits the root of a store, with a valid hash, and reads it."""
    from orbical.store.checksums import digest
    from orbical.store.zarr_store import _HASH

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


TOML_VALUES = ["0.05", "1", "-1", "nan", "inf", "true", "'x'", "[]", "{}", "1e400", "9" * 400, "0"]
TOML_VALUES += ["9" * 5000, "[" * 50_000, "1979-05-27", "''", "0x10", "\x00", "\u00e9", "{a = {}}"]
TOML_NAMES = [
    "max_ece",
    "min_accuracy",
    "max-gap",
    "bins",
    "level",
    "resamples",
    "strict",
    "x",
    "''",
]
TOML_NAMES += ["max_worst_", "max_", "min", "max_pooled_score", "a.b", "\u00e9", "max_identity_ks"]


def thresholds(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that writes odd thresholds into a pyproject.toml and reads them."""
    from orbical.checks import configured

    path, sound = folder / "pyproject.toml", folder / "sound.npz"
    np.savez(sound, probs=np.full((7, 3), 1 / 3), labels=np.arange(7) % 3)

    def attack(rng: random.Random) -> None:
        headings = ["[tool.orbical.check]"] * 6 + ["[tool.orbical]", "[tool]", "[[tool]]", ""]
        lines = [rng.choice(headings), "max_ece = 0.05"]
        for _ in range(rng.randrange(3)):
            lines.append(f"{rng.choice(TOML_NAMES)} = {rng.choice(TOML_VALUES)}")
        content = bytearray("\n".join(lines).encode())
        if content and rng.random() < 0.2:
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(bytes(content))
        settings = configured(path, {})
        settings.pop("strict", None)
        ob.check(sound, **settings)

    return attack


SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (7, 3), (7, 1), (0, 3), (7, 3, 3), (6, 3)]
NAMES = ["logits", "probs", "labels", "mean", "variance", "covariance", "target", "aleatoric"]
NAMES += ["epistemic", "gamma", "nu", "alpha", "beta"]
KINDS = ["f4", "f8", "i8", "?", "c16", "U3", "f2", "M8[s]", ">f8", "u8"]


def outputs(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that saves outputs of odd shapes, kinds and values, and checks them."""
    from orbical.data.array_files import _FORMS

    path = folder / "outputs.npz"

    sound = {name: np.linspace(1.1, 2.0, 7) for name in NAMES}
    sound |= {
        "logits": np.ones((7, 3)),
        "probs": np.full((7, 3), 1 / 3),
        "labels": np.arange(7) % 3,
    }
    sound["covariance"] = np.ones((7, 1, 1))

    def odd(rng: random.Random) -> np.ndarray:
        shape = rng.choice(SHAPES)
        values = np.array([rng.choice([0.0, 1.0, 2.0, 0.3, -1.0]) for _ in range(math.prod(shape))])
        if values.size and rng.random() < 0.3:
            values[0] = rng.choice([np.nan, np.inf, 1e300])
        with np.errstate(all="ignore"):
            return values.reshape(shape).astype(rng.choice(KINDS))

    def attack(rng: random.Random) -> None:
        names = rng.choice(_FORMS) if rng.random() < 0.8 else rng.sample(NAMES, 3)
        arrays = {name: odd(rng) if rng.random() < 0.4 else sound[name] for name in names}
        np.savez(path, **arrays)  # type: ignore[arg-type]
        classes = ["max_ece", "max_nll", "min_accuracy", "max_smooth_ece"]
        regression = ["max_gaussian_nll", "max_ence", "max_bleed", "max_mahalanobis"]
        limits = {rng.choice(classes if "labels" in names else regression): 0.5}
        ob.check(path, resamples=3, **limits)

    return attack


XYZ = """2
Lattice="5 0 0 0 5 0 0 0 5" Properties=species:S:1:pos:R:3:forces:R:3 energy=-1.5 pbc="T T T"
O 0.0 0.0 0.0 0.1 0.0 0.0
H 0.0 0.0 0.9 -0.1 0.0 0.0
"""
CIF = """data_a
_cell_length_a 5
_cell_length_b 5
_cell_length_c 5
_cell_angle_alpha 90
_cell_angle_beta 90
_cell_angle_gamma 90
_symmetry_space_group_name_H-M 'P 1'
loop_
_atom_site_label
_atom_site_fract_x
_atom_site_fract_y
_atom_site_fract_z
Na 0 0 0
Cl 0.5 0.5 0.5
"""
TOKENS = [
    "-1",
    "nan",
    "1e308",
    "999999999",
    "Xx",
    "",
    "0 0 0",
    '"',
    "\x00",
    "é",
    "loop_",
    "T",
    "\n",
]


def molecule_file(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that damages a file of molecules and reads it."""
    files = [("a.xyz", XYZ), ("a.extxyz", XYZ), ("a.cif", CIF), ("a.xyz", XYZ * 2)]

    def attack(rng: random.Random) -> None:
        name, text = rng.choice(files)
        words = re.split(r"(\s+)", text)
        for _ in range(rng.randrange(1, 4)):
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
        text = "".join(words)
        if rng.random() < 0.2:
            text = text[: rng.randrange(len(text) + 1)]
        (folder / name).write_text(text, encoding="utf-8")
        ob.datasets.molecules(folder / name)

    return attack


SDF = """water
  orbical 3D

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.1193 O   0  0
    0.0000    0.7632   -0.4770 H   0  0
    0.0000   -0.7632   -0.4770 H   0  0
  1  2  1  0
  1  3  1  0
M  END
$$$$
"""


def binary_molecule_file(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that flips bytes of an SDF file, a database or a trajectory, or cuts it."""
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    build, io, db = (pytest.importorskip(f"ase.{name}") for name in ("build", "io", "db"))
    water = build.molecule("H2O")
    (folder / "a.sdf").write_text(SDF * 2)
    io.write(folder / "a.traj", [water, water])
    with db.connect(folder / "a.db", use_lock_file=False) as base:
        base.write(water, name="water")
    sound = {path.name: path.read_bytes() for path in sorted(folder.glob("a.*"))}

    def attack(rng: random.Random) -> None:
        name = rng.choice(["a.sdf", "a.traj", "a.db"])
        data = bytearray(sound[name])
        # The pages of a database are mostly empty: aim at what is written.
        places = [place for place, byte in enumerate(data) if byte]
        for _ in range(rng.randrange(1, 5)):
            data[rng.choice(places)] = rng.choice([0, 255, rng.randrange(256), *b"-9 {x"])
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        path = folder / f"damaged{Path(name).suffix}"
        path.write_bytes(data)
        ob.datasets.molecules(path)

    return attack


def _damaged(rng: random.Random, sound: bytes) -> bytes:
    """Change some bytes, and cut some files."""
    content = bytearray(sound)
    for _ in range(rng.randrange(1, 6)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.2:
        del content[rng.randrange(len(content)) :]
    return bytes(content)


def _small_scan(folder: Path) -> tuple[ob.Scan, Callable[..., object]]:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    about = {"group": "rotations:4", "task": "classification", "progress": False}
    data = (images[:3], labels[:3])
    scan = ob.scan(net, data, out=folder / "run.zarr", **about)  # type: ignore[arg-type]
    return scan, lambda: ob.worst_case(net, data, rounds=1, **about)  # type: ignore[arg-type]


def worst_cases(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that damages a netCDF file of worst cases and opens it beside its scan."""
    from orbical.interface.session.worst_search import opened_worst

    scan, search = _small_scan(folder)
    path = folder / "worst.nc"
    search().to_netcdf(path)  # type: ignore[attr-defined]
    sound = path.read_bytes()

    def attack(rng: random.Random) -> None:
        path.write_bytes(_damaged(rng, sound))
        opened_worst(path, scan)

    return attack


def parquet_table(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that writes odd columns into a Parquet table, and damages some."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = [[1, 2], ["a", "b"], [[1], [2, 3]], [{"a": 1}, {"a": 2}], [None, None], [b"a", b"b"]]
    columns += [[True, False], [1.5, float("nan")], [pandas.Timestamp(0), pandas.NaT], [None, "a"]]
    path = folder / "a.parquet"

    def attack(rng: random.Random) -> None:
        names = ["a", "path", "label", "question", "options"]
        chosen = {rng.choice(names): rng.choice(columns) for _ in range(rng.randrange(4))}
        content = pandas.DataFrame(chosen).to_parquet()
        path.write_bytes(_damaged(rng, content) if rng.random() < 0.5 else content)
        source = load_data(str(path))
        source.read(0, len(source))  # type: ignore[attr-defined, arg-type]

    return attack


def zarr_array(folder: Path) -> Callable[[random.Random], None]:
    """Return an attack that damages a file of a Zarr group and reads all its samples."""
    import zarr

    root = folder / "a.zarr"
    group = zarr.open_group(root, mode="w")
    for name, values in {"x": np.ones((3, 1, 4, 4)), "y": np.arange(3), "age": np.ones(3)}.items():
        group.create_array(name, data=values)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    sound = {path: path.read_bytes() for path in files}

    def attack(rng: random.Random) -> None:
        path = rng.choice(files)
        path.write_bytes(_damaged(rng, sound[path]))
        try:
            source = load_data(str(root))
            source.read(0, len(source))  # type: ignore[attr-defined, arg-type]
        finally:
            path.write_bytes(sound[path])

    return attack


FUZZERS: dict[str, Callable[[Path], Callable[[random.Random], None]]] = {
    "group texts": lambda folder: group_text,
    "npz files": npz_file,
    "COCO files": coco_file,
    "headers of stores": header,
    "tables of thresholds": thresholds,
    "saved outputs": outputs,
    "molecule files": molecule_file,
    "binary molecule files": binary_molecule_file,
    "worst cases": worst_cases,
    "Parquet tables": parquet_table,
    "Zarr arrays": zarr_array,
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


@pytest.mark.parametrize("name", ["rotations", "scales", "gains", "brightness", "shear", "affine"])
@pytest.mark.parametrize("numbers", ["1e308:-43:1", "-43:1e308:3", "-1e308:1e308:3", "1e19:1e20:5"])
def test_numbers_beyond_the_integers_of_numpy_are_refused_or_used(name, numbers):
    assert attempts(1, lambda rng: ob.groups.parse(f"{name}:{numbers}"), name)


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


def test_an_npz_file_that_states_more_than_it_holds_is_refused_before_memory_is_used(tmp_path):
    path = tmp_path / "data.npz"
    header = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 5)}
    np.lib.format.write_array_header_1_0(header, fields)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", header.getvalue() + bytes(800))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_labels_without_a_dimension_are_refused():
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(InputError, match="expected one for each of 3 samples, got a single"):
        ob.scan(net, (images[:3], np.array(1)), group="flips", task="classification")


def test_a_store_in_a_zip_or_a_file_is_refused(tmp_path):
    file = tmp_path / "run.zarr"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(StoreError, match="unpack it first"):
        ob.load(file)
    shutil.rmtree(tmp_path)
