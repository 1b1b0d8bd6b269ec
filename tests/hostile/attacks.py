"""Attacks on everything that reads: each returns a function that tries one hostile input.

An attack takes its decisions from a generator, which is seeded in the tests and the bytes of a
fuzzer in `fuzz.py`. A result or an `OrbicalError` is fine; anything else is a traceback.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import orbical as ob
from orbical.cli.arguments import load_data
from orbical.errors import OrbicalError
from orbical.groups.group_names import CATALOG

Attack = Callable[[random.Random], None]


def attempts(number: int, attempt: Attack, what: str, first: int = 0) -> Counter[str]:
    """Try `number` hostile inputs; anything but a result or an `OrbicalError` is raised."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + number):
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


def npz_file(folder: Path) -> Attack:
    """Return an attack that damages an `.npz` or `.npy` file and reads it as data."""
    plain, packed = io.BytesIO(), io.BytesIO()
    arrays = {"x": np.zeros((3, 1, 4, 4), np.float32), "y": np.arange(3)}
    np.savez(plain, **arrays)  # type: ignore[arg-type]
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    single = io.BytesIO()
    np.save(single, arrays["x"])

    def attack(rng: random.Random) -> None:
        kind, sound = rng.choice([("npz", plain), ("npz", packed), ("npy", single)])
        path = folder / f"data.{kind}"
        path.write_bytes(_damaged(rng, sound.getvalue()))
        _read_all(path)

    return attack


def coco_file(folder: Path) -> Attack:
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


def header(folder: Path) -> Attack:
    """Return an attack that edits the root of a store, with a valid hash, and reads it."""
    from orbical.store.checksums_and_units import json_digest
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
            document["attributes"][_HASH] = json_digest(document)
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


def thresholds(folder: Path) -> Attack:
    """Return an attack that writes odd thresholds into a pyproject.toml and reads them."""
    from orbical.checks import configured_check

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
        settings = configured_check(path, {})
        settings.pop("strict", None)
        ob.check(sound, **settings)

    return attack


SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (7, 3), (7, 1), (0, 3), (7, 3, 3), (6, 3)]
NAMES = ["logits", "probs", "labels", "mean", "variance", "covariance", "target", "aleatoric"]
NAMES += ["epistemic", "gamma", "nu", "alpha", "beta"]
KINDS = ["f4", "f8", "i8", "?", "c16", "U3", "f2", "M8[s]", ">f8", "u8"]


def outputs(folder: Path) -> Attack:
    """Return an attack that saves outputs of odd shapes, kinds and values, and checks them."""
    from orbical.data.array_files import _SETS_OF_NAMES

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
        names = rng.choice(_SETS_OF_NAMES) if rng.random() < 0.8 else rng.sample(NAMES, 3)
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


def molecule_file(folder: Path) -> Attack:
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


def binary_molecule_file(folder: Path) -> Attack:
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


def _read_all(path: Path, **options: object) -> None:
    """Read all samples of a data set, as a scan does."""
    samples = ob.data.Samples(load_data(str(path), **options))
    samples.source.check()
    samples.source.read(0, len(samples))


def _small_scan(folder: Path) -> tuple[ob.Scan, Callable[..., object]]:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    about = {"group": "rotations:4", "task": "classification", "progress": False}
    data = (images[:3], labels[:3])
    scan = ob.scan(net, data, out=folder / "run.zarr", **about)  # type: ignore[arg-type]
    return scan, lambda: ob.worst_case(net, data, rounds=1, **about)  # type: ignore[arg-type]


def worst_cases(folder: Path) -> Attack:
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


def parquet_table(folder: Path) -> Attack:
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
        _read_all(path)

    return attack


def zarr_array(folder: Path) -> Attack:
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
            _read_all(root)
        finally:
            path.write_bytes(sound[path])

    return attack


def images(folder: Path) -> Attack:
    """Return an attack that damages an image of any format and depth, and reads it."""
    gray = np.arange(48, dtype=np.uint8).reshape(6, 8) * 5
    color = np.stack([gray, gray.T.reshape(6, 8), gray[::-1]], -1)
    deep, real = gray.astype(np.uint16) * 257, np.float32(gray / 255)
    written = [(deep, "png"), (deep, "tif"), (real, "tif"), (gray, "pgm"), (gray, "gif")]
    written += [(color, suffix) for suffix in ("png", "jpg", "webp", "bmp", "tif", "ppm")]
    sound = []
    for values, suffix in written:
        Image.fromarray(values).save(folder / f"sound.{suffix}")
        sound.append((suffix, (folder / f"sound.{suffix}").read_bytes()))
    below = folder / "images"
    below.mkdir()

    def attack(rng: random.Random) -> None:
        suffix, content = rng.choice(sound)
        path = below / f"one.{suffix}"
        path.write_bytes(_damaged(rng, content))
        try:
            _read_all(below, **({"unreadable": "skip"} if rng.random() < 0.2 else {}))
        finally:
            path.unlink()

    return attack


WORDS_OF_TABLES = [
    "",
    ",",
    '"',
    "\n",
    "\0",
    "1",
    "nan",
    "x",
    "path",
    "label",
    "a.png",
    "é",
    "=1+1",
    "[",
]
WORDS_OF_TABLES += [
    "question",
    "A",
    "B",
    "answer",
    "options",
    "9" * 400,
    "1e400",
    "\ufeff",
    ";",
    "{}",
]


def text_table(folder: Path) -> Attack:
    """Return an attack that writes tables and questions of odd words, and damages some."""
    row = {"question": "2 + 2?", "A": "3", "B": "4", "answer": "B"}
    plain = "question,A,B,answer\n" + "\n".join(["2 + 2?,3,4,B", "1 + 1?,2,5,A"]) + "\n"
    sound = {
        "csv": plain,
        "tsv": plain.replace(",", "\t"),
        "jsonl": f"{json.dumps(row)}\n" * 2,
        "json": json.dumps([row, row]),
    }
    Image.new("RGB", (4, 4)).save(folder / "a.png")

    def attack(rng: random.Random) -> None:
        kind = rng.choice(sorted(sound))
        text = sound[kind]
        if rng.random() < 0.5:
            words = re.split(r"(\W)", text)
            for _ in range(rng.randrange(1, 5)):
                words[rng.randrange(len(words))] = rng.choice(WORDS_OF_TABLES)
            text = "".join(words)
        elif kind in ("csv", "tsv"):
            rows = [rng.choices(WORDS_OF_TABLES, k=3) for _ in range(rng.randrange(1, 4))]
            text = "\n".join(",".join(one) for one in rows)
        content = text.encode()
        path = folder / f"a.{kind}"
        path.write_bytes(_damaged(rng, content) if content and rng.random() < 0.3 else content)
        _read_all(path)

    return attack


def nifti_file(folder: Path) -> Attack:
    """Return an attack that damages a volume and reads it."""
    nibabel = pytest.importorskip("nibabel", reason="nibabel is not installed")
    sound = {}
    for name in ("a.nii", "a.nii.gz"):
        nibabel.save(nibabel.Nifti1Image(np.ones((4, 5, 6), np.int16), np.eye(4)), folder / name)
        sound[name] = (folder / name).read_bytes()

    def attack(rng: random.Random) -> None:
        name = rng.choice(sorted(sound))
        (folder / name).write_bytes(_damaged(rng, sound[name]))
        _read_all(folder / name)

    return attack


def findings(folder: Path) -> Attack:
    """Return an attack that damages what is saved beside a scan, and reads it for a page."""
    from orbical.interface.session import Session
    from orbical.interface.session.saved_lists import FINDINGS, SETS, tagged

    scan, _ = _small_scan(folder)
    beside = folder / "run.zarr.view"
    beside.mkdir()
    view = "sample=1&element=2&model=model"
    one = {"id": "0000000a", "title": "a 6 is a 9", "note": "", "view": view}
    sets = [{"name": "odd", "hash": "0123456789abcdef", "count": 2}]
    sound = {"findings": json.dumps([one, one | {"id": "0000000b"}]), "sets": json.dumps(sets)}
    (beside / "0123456789abcdef.bits").write_bytes(b"\x05")

    def attack(rng: random.Random) -> None:
        name = rng.choice(sorted(sound))
        document = json.loads(sound[name])
        entry = rng.choice(document)
        odd = [
            None,
            1,
            [],
            {},
            "",
            "\ud800",
            "x" * 5000,
            1e308,
            True,
            "sample=-1",
            "sample=1e9&&=&%",
        ]
        if rng.random() < 0.7:
            entry[rng.choice(sorted(entry))] = rng.choice(odd)
        content = json.dumps(rng.choice([document, entry, [document]])).encode()
        content = _damaged(rng, content) if rng.random() < 0.5 else content
        for other in sound:
            (beside / f"{other}.json").write_bytes(content if other == name else b"[]")
        session = Session({"run": scan})
        found = session.scan_view()
        FINDINGS.saved(found), SETS.saved(found), tagged(found)

    return attack


def onnx_file(folder: Path) -> Attack:
    """Return an attack that damages an ONNX file and opens it."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper = pytest.importorskip("onnx.helper", reason="onnx is not installed")
    shape = ["n", 3, 4, 4]
    given, made = (helper.make_tensor_value_info(name, 1, shape) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [given], [made])
    opsets = [helper.make_opsetid("", 17)]
    sound = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    path = folder / "net.onnx"

    def attack(rng: random.Random) -> None:
        path.write_bytes(_damaged(rng, sound))
        model = ob.predictors.as_predictor(str(path))
        _ = model.declared_outputs, model.metadata, model.fingerprint()  # type: ignore[attr-defined]

    return attack


def model_folder(folder: Path) -> Attack:
    """Return an attack that damages a folder of transformers, or names code in it, and opens it."""
    library = pytest.importorskip("transformers", reason="transformers is not installed")
    settings = {"image_size": 8, "patch_size": 4, "hidden_size": 8, "num_hidden_layers": 1}
    settings |= {"num_attention_heads": 2, "intermediate_size": 8, "num_labels": 3}
    where = folder / "net"
    library.ViTForImageClassification(library.ViTConfig(**settings)).save_pretrained(where)
    (where / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor"}')
    (where / "own.py").write_text("raise SystemExit('code of the folder was run')")
    sound = {path: path.read_bytes() for path in where.iterdir()}
    code = {
        "AutoConfig": "own.Config",
        "AutoModel": "own.Net",
        "AutoImageProcessor": "own.Processor",
    }
    odd = [None, 1, [], {}, "x", -1, 1e308, True, ["own.Net"], {"0": None}, "own.Net", 10**30]

    def attack(rng: random.Random) -> None:
        file = rng.choice([path for path in sound if path.name != "own.py"])
        content = sound[file]
        if file.suffix == ".json" and rng.random() < 0.7:
            document = json.loads(content)
            document[rng.choice([*sorted(document), "num_labels"])] = rng.choice(odd)
            document |= {"auto_map": code} if rng.random() < 0.3 else {}
            content = json.dumps(document).encode()
        else:
            content = _damaged(rng, content)
        file.write_bytes(content)
        try:
            ob.predictors.as_predictor(str(where))
        finally:
            file.write_bytes(sound[file])

    return attack


WORDS_OF_COMMANDS = [
    *(
        "",
        "0",
        "-1",
        "99999999999",
        "nan",
        "inf",
        "1e308",
        "x",
        "~nouser/x",
        "é",
        "a=b",
        "1/2",
        ",",
    ),
    *("run.zarr", "data.npz", "odd.npz", "gone.npz", "no/such/x.csv", "s3://", "coco:", "math:pi"),
    *(
        "rotations:4",
        "rotations:x",
        "flips*flips",
        "*",
        ":",
        "digits",
        "score",
        "ECE",
        "mean",
        "text",
    ),
    *("--json", "--markdown", "--csv", ".", "..", "/dev/null", "zip://x", "9" * 5000, "memory://x"),
    *("\udcff", "[red]", "%s", "{}", "../run.zarr", "label=1", "model", "identity", "worst"),
]
NUMBERS_OF_COMMANDS = [
    "0",
    "1",
    "2",
    "15",
    "-1",
    "0.5",
    "0.9",
    "99999999999",
    "nan",
    "inf",
    "1e308",
]
NUMBERS_OF_COMMANDS += ["-0.0", "1e-300", "x", "", "9" * 400]
QUICK = [
    "info",
    "calibration",
    "conformal",
    "bounds",
    "check",
    "failures",
    "why",
    "advise",
    "groups",
    "orders",
]


def command(folder: Path) -> Attack:
    """Return an attack that runs a command with odd options, as `orbical` does."""
    from typer.testing import CliRunner

    from orbical.cli import _register, app, command_line_error_text

    _register()
    _small_scan(folder)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 40)
    np.savez(folder / "data.npz", probs=probs, labels=np.arange(40) % 3)
    np.savez(folder / "odd.npz", probs=probs[:, :1], labels=np.arange(40.0))
    files = {"calibration": "data.npz", "check": "data.npz", "groups": "rotations:4"}
    options = {name: [*options_of(body)] for name, body in commands_of(app).items()}
    runner = CliRunner()

    def attack(rng: random.Random) -> None:
        name = rng.choice(QUICK)
        usual = files.get(name, "run.zarr")
        words = [name, usual if rng.random() < 0.9 else rng.choice(WORDS_OF_COMMANDS)]
        words += ["--model", "model"] * (name == "why")
        words += ["--max-ece", "0.5"] * (name == "check")
        for _ in range(rng.randrange(4)):
            option, kind = rng.choice(options[name])
            odd = rng.choice(NUMBERS_OF_COMMANDS if kind in ("int", "float") else WORDS_OF_COMMANDS)
            words += [option] if kind == "flag" else [option, odd]
        result = runner.invoke(app, words)
        error = result.exception
        if (
            error is not None
            and not isinstance(error, SystemExit)
            and command_line_error_text(error) is None
        ):
            raise AssertionError(f"orbical {words}") from error
        if result.exit_code:
            raise OrbicalError(result.output or str(error))

    return attack


def commands_of(app: object) -> dict[str, Any]:
    """Return the commands of an application, by name."""
    from typer.main import get_command

    return dict(get_command(app).commands)  # type: ignore[arg-type, attr-defined]


def options_of(command: Any) -> Iterator[tuple[str, str]]:
    """Yield the options of a command, and what they take; those that run code are left out."""
    for param in command.params:
        name = next((one for one in param.opts if one.startswith("--")), None)
        if name not in (None, "--import", "--help", "--repair"):
            yield name, "flag" if param.is_flag else type(param.default).__name__


def within(folder: Path, attack: Attack) -> Attack:
    """Return an attack that runs inside a folder."""

    def moved(rng: random.Random) -> None:
        with contextlib.chdir(folder):
            attack(rng)

    return moved


FUZZERS: dict[str, Callable[[Path], Attack]] = {
    "group texts": lambda folder: group_text,
    "NumPy files": npz_file,
    "COCO files": coco_file,
    "headers of stores": header,
    "tables of thresholds": thresholds,
    "saved outputs": outputs,
    "molecule files": molecule_file,
    "binary molecule files": binary_molecule_file,
    "worst cases": worst_cases,
    "Parquet tables": parquet_table,
    "Zarr arrays": zarr_array,
    "images": images,
    "tables and questions": text_table,
    "NIfTI files": nifti_file,
    "findings": findings,
    "ONNX files": onnx_file,
    "model folders": model_folder,
    "commands": lambda folder: within(folder, command(folder)),
}

COUNTS = {  # of inputs by default, and in the large part of the tests
    "group texts": (60, 20_000),
    "NumPy files": (100, 20_000),
    "COCO files": (100, 20_000),
    "headers of stores": (15, 5_000),
    "tables of thresholds": (100, 10_000),
    "saved outputs": (30, 5_000),
    "molecule files": (40, 5_000),
    "binary molecule files": (40, 5_000),
    "worst cases": (10, 2_000),
    "Parquet tables": (40, 5_000),
    "Zarr arrays": (15, 5_000),
    "images": (60, 10_000),
    "tables and questions": (60, 5_000),
    "NIfTI files": (40, 5_000),
    "findings": (20, 2_000),
    "ONNX files": (30, 5_000),
    "model folders": (15, 1_000),
    "commands": (15, 2_000),
}
