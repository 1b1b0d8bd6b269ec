"""`orbical scan` and `orbical info`, run as a user runs them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import typer

import orbical as ob
from orbical import cli

NETS = """
import pathlib, time
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
def named(x):
    return {"scores": x.flatten(1)[:, :10]}
def scores(raw):
    return raw["scores"]
def darker(x):
    return x / 2
calls = []
def halting(x):
    calls.append(len(x))
    finished = pathlib.Path("run.zarr/units").glob
    while pathlib.Path("halt").exists() and (len([*finished("*.json")]) > 3 or sum(calls) > 200):
        time.sleep(0.01)  # also while what was computed is still being written
    return x.flatten(1)[:, :10]
"""


# What an exporter writes of `x.flatten(1)[:, :10]`, without the seconds that it takes to load one.
FIRST_PIXELS = """
<ir_version: 8, opset_import: ["" : 13]>
first (float[batch, 1, 8, 8] images) => (float[batch, 10] logits)
{
  pixels = Flatten (images)
  starts = Constant <value_ints = [0]> ()
  ends = Constant <value_ints = [10]> ()
  axes = Constant <value_ints = [1]> ()
  logits = Slice (pixels, starts, ends, axes)
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)
    images, labels = ob.datasets.digits()
    np.savez(tmp_path / "digits.npz", x=np.asarray(images[:40]), y=np.asarray(labels[:40]))
    return tmp_path


UNITS = ["--batch-size", "8", "--chunk", "4"]
SCAN = ["scan", "--data", "digits.npz", "--group", "rotations:8", "--out", "run.zarr"]


def test_models_from_an_import_path_and_an_onnx_file_are_scanned_and_described(orbical, folder):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    onnx.save(onnx.parser.parse_model(FIRST_PIXELS), folder / "other.onnx")
    models = ["--model", "mine=nets:net", "--model", "other=other.onnx"]
    said = orbical(folder, *SCAN, *models, "--task", "classification")
    assert "mine" in said
    assert "other" in said
    told = orbical(folder, "info", "run.zarr", "--verify")
    for words in (
        "complete",
        "rotations:8: 8 elements",
        "nets:net",
        "other.onnx",
        "40 samples",
        "torch",
    ):
        assert words in told
    facts = json.loads(orbical(folder, "info", "run.zarr", "--json"))
    assert [entry["name"] for entry in facts["models"]] == ["mine", "other"]
    assert facts["share_done"] == 1


def test_read_and_preprocess_are_the_users_functions(orbical, folder):
    orbical(
        folder,
        *SCAN,
        "-m",
        "a=nets:named",
        "--read",
        "nets:scores",
        "--preprocess",
        "nets:darker",
        "-q",
    )
    record = ob.load(folder / "run.zarr").record
    assert record.task.read == "nets:scores"
    assert record.preprocess == "nets:darker"


def test_fields_of_data_are_moved_each_in_its_own_way(orbical, folder):
    (folder / "clouds.py").write_text(
        "def energy(batch):\n    return (batch['pos'].norm(dim=-1) * batch['numbers']).sum(-1)\n"
    )
    generator = np.random.default_rng(0)
    np.savez(
        folder / "clouds.npz",
        x_pos=generator.normal(size=(12, 4, 3)).astype(np.float32),
        x_numbers=generator.integers(1, 9, size=(12, 4)),
    )
    words = ["scan", "-m", "a=clouds:energy", "-d", "clouds.npz", "-t", "regression", "-q"]
    words += ["-g", "rotations3d:6*permutations:4", "-o", "clouds.zarr"]
    orbical(folder, *words, "--input", "pos=points,numbers=rows")
    scan = ob.load(folder / "clouds.zarr")
    assert float(ob.nero.invariance_gap(scan)["total"].max()) < 1e-4
    said = orbical(folder, *words, "--input", "pos=points", expect=2)
    assert "expected fields ['pos'], got fields ['numbers', 'pos']" in said
    said = orbical(folder, *words, "--input", "pos=points,numbers", expect=2)
    assert "FIELD=ACTION" in said


def test_a_regressor_that_says_how_sure_it_is(orbical, folder):
    (folder / "vectors.py").write_text(
        "def sure(x):\n    return 0.9 * x, 0.1 + x.square().sum(-1)\n"
    )
    x = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    np.savez(folder / "vectors.npz", x=x, y=x)
    words = ["scan", "-m", "a=vectors:sure", "-d", "vectors.npz", "-t", "regression", "-q"]
    words += ["-g", "cyclic:4", "-o", "v.zarr", "--input", "vectors", "--representation", "vector"]
    said = orbical(folder, *words, expect=2)
    assert "pass --uncertainty for more than a mean" in said
    orbical(folder, *words, "--uncertainty", "variance")
    found = json.loads(orbical(folder, "calibration", "v.zarr", "--json", "--resamples", "40"))
    measured = {row["measure"] for row in found["rows"]}
    assert {"gence", "mahalanobis_calibration", "aleatoric_bleed"} <= measured


def test_built_in_data_and_keep(orbical, folder):
    orbical(
        folder,
        "scan",
        "-m",
        "a=nets:net",
        "-d",
        "digits",
        "-g",
        "cyclic:4",
        "-o",
        "run.zarr",
        "--keep",
        "probabilities,inputs",
        "--batch-size",
        "500",
        "--device",
        "cpu",
        "-q",
    )
    data = ob.load(folder / "run.zarr").data
    assert {"probabilities", "input"} <= set(data.data_vars)
    assert data.sizes["sample"] == 1797


@pytest.mark.system
def test_ctrl_c_then_the_same_command_finishes(orbical, folder):
    (folder / "halt").touch()
    command = [
        sys.executable,
        "-m",
        "orbical",
        *SCAN,
        "-m",
        "halting=nets:halting",
        *UNITS,
    ]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell that runs its tests in the background has them ignore Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    finished = (folder / "run.zarr/units").glob
    while process.poll() is None and len([*finished("*.json")]) < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "run the same scan again to continue" in errors
    assert "Traceback" not in errors
    told = orbical(folder, "info", "run.zarr")
    assert "% done" in told
    (folder / "halt").unlink()
    orbical(folder, *SCAN, "-m", "halting=nets:halting", *UNITS)
    assert ob.load(folder / "run.zarr").complete


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "net"], "optionally as NAME=SOURCE, got 'net'"),
        (["-m", "a=nets:net", "-m", "a=nets:net"], "expected each name once, got 'a' twice"),
        (["-m", "a=nets:nett"], "error: model 'a': in 'nets:nett': unknown name 'nett'; did you"),
        (["-m", "a=nowhere:net"], "cannot be imported"),
        (["-m", "a=gone.onnx"], "got 'gone.onnx', which does not exist"),
        (["-m", "a=nets:net", "--task", "classify"], "--task: unknown name 'classify'"),
        (["-m", "a=nets:net", "--group", "rotation:8"], "did you mean 'rotations'"),
        (
            ["-m", "a=nets:net", "--group", "rotations:0"],
            "--group: expected 'rotations:N[:TO][:SAMPLES]', got 'rotations:0'; N: expected an int",
        ),
        (["-m", "a=nets:net", "--data", "gone.npz"], "expected a file or a folder, got 'gone.npz'"),
        (["-m", "a=nets:net", "--data", "digit"], "did you mean 'digits'"),
        (["-m", "a=nets:net", "--data", "photos"], "'photos', which does not exist"),
        (["-m", "a=nets:net", "--data", "wrong.npz"], "an array x (or x_NAME for each field)"),
        (["-m", "a=nets:net", "--data", "pickled.npz"], "cannot be read"),
        (["-m", "a=nets:net", "--batch-size", "many"], "expected 'auto' or an integer"),
    ],
)
def test_mistakes_are_one_clear_line(orbical, folder, words, message):
    np.savez(folder / "wrong.npz", pictures=np.zeros(3))
    np.savez(folder / "pickled.npz", x=np.array([{"a": 1}], dtype=object))
    said = orbical(folder, *SCAN, *words, expect=2)
    flat = " ".join(said.split())
    assert message in flat
    assert "Traceback" not in said
    assert not (folder / "run.zarr").exists()


def test_a_warning_is_one_clear_line(orbical, folder):
    (folder / "noisy.py").write_text(
        "import torch\ndef net(x):\n    return torch.randn(len(x), 10)\n"
    )
    said = orbical(folder, *SCAN, "-m", "noisy=noisy:net", "-q")
    assert "warning: model 'noisy' gives different outputs for the same batch" in " ".join(
        said.split()
    )
    assert "UserWarning" not in said


def test_info_explains_what_is_no_store(orbical, tmp_path):
    told = orbical(tmp_path, "info", "gone.zarr", expect=2)
    assert "got 'gone.zarr', which does not exist" in told
    assert "Traceback" not in told
    assert "is not an orbical store" in orbical(tmp_path, "info", ".", expect=2)


def test_help_in_80_columns_cuts_nothing_off(orbical, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert orbical(tmp_path, "--version") == f"orbical {ob.__version__}\n"
    top = orbical(tmp_path, "--help")
    commands = re.findall(r"^  ([a-z]+) {2,}\S", top.partition("Commands:")[2], re.M)
    assert {"scan", "calibration", "bounds"} <= {*commands}
    pages = {name: orbical(tmp_path, name, "--help") for name in commands}
    assert not [name for name, page in pages.items() if "Any>" in page or "Any]" in page]
    for page in (top, *pages.values()):
        assert "Usage" in page
        assert not re.search(r"…|\w\.\.\.$|\[bold", page, re.M)
    scan = " ".join(pages["scan"].split())
    assert "run their author's code" in scan
    assert "coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS" in scan


def test_every_option_of_every_command_has_a_help(orbical, tmp_path):
    orbical(tmp_path, "--help")  # registers the commands
    commands = typer.main.get_command(cli.app).commands
    bare = [
        f"{name} {option.name}"
        for name, command in commands.items()
        for option in command.params
        if not option.help
    ]
    assert {"scan", "check", "conformal"} <= {*commands}
    assert bare == []
    assert not any("Args:" in command.help for command in commands.values())


def test_a_detector_without_any_box_is_told_so_and_its_score_is_shown(orbical, tmp_path):
    (tmp_path / "blind.py").write_text(
        "import torch\ndef none(views):\n    return torch.zeros(len(views), 0, 6)\n"
    )
    objects = np.array([[[8, 8, 20, 20, 0]]], dtype=np.float32)
    np.savez(tmp_path / "d.npz", x=np.zeros((1, 1, 48, 48), dtype=np.float32), y=objects)
    detection = ("scan", "-m", "net=blind:none", "-d", "d.npz", "-t", "detection")
    said = orbical(tmp_path, *detection, "--input", "window:32", "-g", "translations:8:8")
    assert "IoU x confidence of the key object's match" in said
    assert "nan" not in said


def test_clouds_of_unequal_sizes_in_a_file_are_an_error_with_a_remedy(orbical, folder):
    clouds = np.array([np.zeros((3, 3)), np.zeros((4, 3))], dtype=object)
    np.savez(folder / "clouds.npz", x=clouds)
    told = orbical(
        folder, "scan", "-m", "net=nets:net", "-d", "clouds.npz", "-g", "rotations3d:8",
        expect=2,
    )  # fmt: skip
    assert "pad samples of unequal sizes, with a mask" in " ".join(told.split())


def test_failing_sources_and_places_are_named_on_one_line(orbical, tmp_path):
    (tmp_path / "mine.py").write_text("def data():\n    raise ValueError('none today')\n")
    scan = ("scan", "-m", "net=mine:net", "-g", "cyclic:4", "-d")
    told = orbical(tmp_path, *scan, "mine:data", expect=2)
    assert told.strip().endswith("error: --data: mine:data raised ValueError: none today")
    assert "'images:x:y:z'" in orbical(tmp_path, *scan, "images:x:y:z", expect=2)
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "o.npz", probs=np.full((9, 2), 0.5), labels=np.arange(9) % 2)
    told = orbical(
        tmp_path, "calibration", "o.npz", "--resamples", "20", "--figure", "file/x.png", expect=2
    )
    assert "Traceback" not in told
    assert told.strip().endswith("error: file: File exists")


NET = ["--model", "mine=nets:net", "--chunk", "7", "--threads", "1"]


def same_scans(one, other):
    for name, array in ob.load(one).arrays.items():
        assert np.asarray(array).tobytes() == np.asarray(ob.load(other).arrays[name]).tobytes()


def test_parts_fill_one_store(orbical, folder):
    said = orbical(folder, *SCAN, *NET, "--part", "1/2")
    assert "50% done by all parts so far" in said
    assert "mine" in orbical(folder, *SCAN, *NET, "--part", "2/2")
    orbical(folder, *SCAN[:-1], "alone.zarr", *NET)
    same_scans(folder / "alone.zarr", folder / "run.zarr")
    said = orbical(folder, *SCAN, *NET, "--part", "auto", expect=2)
    assert "a SLURM job array" in said


@pytest.mark.system
def test_a_cluster_runs_a_scan(orbical, folder, monkeypatch):
    distributed = pytest.importorskip("distributed")
    quiet = dict(dashboard_address=":0", processes=False, threads_per_worker=1)
    with distributed.LocalCluster(n_workers=1, protocol="tcp://", **quiet) as cluster:
        orbical(folder, *SCAN, *NET, "--cluster", cluster.scheduler_address)
    orbical(folder, *SCAN[:-1], "alone.zarr", *NET)
    same_scans(folder / "alone.zarr", folder / "run.zarr")
    said = orbical(folder, *SCAN, *NET, "--cluster", "nowhere", "--workers", "2", expect=2)
    assert "--cluster: expected no --workers beside it" in said
    monkeypatch.setattr("orbical.cli.scan._CONNECT_S", 0.1)
    monkeypatch.setattr("orbical.cli.scan._NOTICE_S", 0.01, raising=False)
    said = orbical(folder, *SCAN, *NET, "--cluster", "tcp://127.0.0.1:9", expect=2)
    assert "waiting for the Dask scheduler tcp://127.0.0.1:9" in said
    assert "--cluster: expected the address of a Dask scheduler" in said
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = orbical(folder, *SCAN, *NET, "--cluster", "tcp://127.0.0.1:9", expect=2)
    assert "pip install 'orbical[cluster]'" in said


@pytest.mark.slow
def test_several_processes_share_a_scan(program, orbical, folder):
    program(folder, *SCAN, *NET, "--workers", "2")
    orbical(folder, *SCAN[:-1], "alone.zarr", *NET)
    same_scans(folder / "alone.zarr", folder / "run.zarr")
