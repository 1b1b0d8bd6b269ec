"""Errors on the command line: they name options, and no Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import orbical as ob
from orbical import cli
from orbical.cli.shell_text import PYTHON, error_text_for_shell, options_of

NETS = """
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

def pair(x):
    return x, x.square().sum(-1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two scans, of classes and of numbers, and saved outputs."""
    made = tmp_path_factory.mktemp("shell")
    (made / "nets.py").write_text(NETS)
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    options = {"group": "rotations:4", "progress": False}
    data, task = (images[:12], labels[:12]), "classification"
    ob.scan({"a": net}, data, task=task, out=made / "run.zarr", **options)
    ob.scan({"a": net}, data, task=task, out=made / "kept.zarr", keep="probabilities", **options)
    ob.scan({"a": net}, images[:12], task=task, out=made / "bare.zarr", **options)
    points = torch.rand(12, 2, generator=torch.Generator().manual_seed(0))
    vectors = ob.tasks.Regression(ob.actions.Vectors())
    truth = (points, points[:, 0])
    ob.scan({"a": lambda x: x[:, 0]}, truth, task=vectors, out=made / "numbers.zarr", **options)
    np.savez(made / "data.npz", x=images[:12].numpy(), y=labels[:12].numpy())
    np.savez(made / "vectors.npz", x=points.numpy(), y=points.numpy())
    np.savez(made / "gray.npz", x=images[:12, 0].numpy(), y=labels[:12].numpy())
    np.savez(made / "other.npz", inputs=points.numpy())
    np.savez(made / "outputs.npz", probs=np.full((7, 3), 1 / 3), labels=np.arange(7) % 3)
    return made


SCAN = "scan -m a=nets:net -d data.npz -g rotations:4"
REFUSED = [
    f"{SCAN} -t classify",
    f"{SCAN} --keep everything",
    f"{SCAN} --input sounds",
    f"{SCAN} --size big",
    f"{SCAN} --points 8x8",
    f"{SCAN} --quiet",
    f"{SCAN} --part 3",
    f"{SCAN} --score f1",
    f"{SCAN} --device quantum",
    "scan -m net -d data.npz -g rotations:4",
    "scan -m a=gone.gguf -d data.npz -t choice",
    "scan -m a=nets:net -d data.npz -t choice",
    "scan -m a=nowhere:net -d data.npz -g rotations:4",
    "scan -m a=nets:net -d nothing.npz -g rotations:4",
    "scan -m a=nets:net -d other.npz -g rotations:4",
    "scan -m a=nets:net -d gray.npz -g rotations:4",
    "scan -m a=nets:net -d data.npz -g rotations3d:4",
    "scan -m a=nets:net -d data.npz -g rotation:4",
    "scan -m a=nets:net -d data.npz -g rotations:4 --input window:99",
    "scan -m a=nets:net -d vectors.npz -g rotations:4",
    "scan -m a=nets:pair -d vectors.npz -g cyclic:4 -t regression --input vectors",
    "scan -m a=nets:net -d data.npz -g rotations:4 -t segmentation",
    "scan -m a=nets:net -d data.npz -g rotations:4 -t detection",
    "scan -m a=nets:net -d data.npz -g rotations:4 -t text",
    "view nothing.zarr",
    "view run.zarr --host 0.0.0.0",
    "view run.zarr --samples 9",
    "view run.zarr --model b=nets:net",
    "view run.zarr --classes a,b",
    "view model.onnx",
    "report nothing.zarr",
    "report run.zarr --samples few",
    "report run.zarr --method pcb",
    "report run.zarr --with-models a",
    "report run.zarr --worst nothing.nc",
    "info nothing.zarr",
    "calibration",
    "calibration nothing.npz",
    "calibration other.npz",
    "calibration bare.zarr",
    "calibration numbers.zarr",
    "calibration outputs.npz --level 2",
    "calibration outputs.npz --json --csv",
    "calibration --runs esd",
    "conformal run.zarr",
    "conformal bare.zarr",
    "conformal numbers.zarr --method normalized",
    "conformal outputs.npz --coverage 0.99",
    "conformal outputs.npz --calibrate pooled",
    "bounds",
    "bounds run.zarr",
    "bounds --data data.npz",
    "bounds --data other.npz --group cyclic:4",
    "bounds --data vectors.npz --group cyclic:4",
    "bounds numbers.zarr --orbits orbits.npy",
    "check run.zarr",
    "check run.zarr --max ece",
    "check run.zarr --max eze=1",
    "check run.zarr --max nll=1",
    "check run.zarr --max-mahalanobis 1",
    "check numbers.zarr --max-changed 0.1",
    "check numbers.zarr --max-ece 0.1",
    "check bare.zarr --min-accuracy 0.1",
    "check outputs.npz --max-worst-ece 0.1",
    "check run.zarr --max-gap 1 --model b",
    "failures run.zarr",
    "failures run.zarr --by camera",
    "failures run.zarr --clusters 3",
    "why run.zarr -m a=nets:net",
    "why run.zarr -m a=nets:pair -d data.npz",
    "why run.zarr -m a=nets:net -d data.npz --layer stem",
    "advise bare.zarr",
    "advise run.zarr --passing 2",
    "orders run.zarr",
    "groups rotation",
    "groups rotations:x",
    "orders run.zarr",
    "orders run.zarr --random x",
    "worst-case run.zarr -m a=nets:net -o worst.nc",
    "worst-case run.zarr -m a=nets:net -o worst.txt",
    "worst-case run.zarr -m a=nets:net -o worst.nc -d vectors.npz",
    "demo digit",
]


@pytest.mark.parametrize("words", REFUSED)
def test_errors_name_options_that_exist_and_no_python(folder, orbical, words):
    said = orbical(folder, *words.split(), expect=2)
    error = " ".join(said.partition("error: ")[2].split())
    assert error, said
    own = re.sub(r"'[^']*'", "", error)  # without what was given
    assert not PYTHON.search(own), error
    cli._register()
    command = words.split()[0]
    known = {*options_of(cli.app, command).values(), *options_of(cli.app, "scan").values()}
    assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", own)} <= known, error


def test_every_command_is_tried():
    cli._register()
    tried = {words.split()[0] for words in REFUSED}
    assert tried == {
        command.name or command.callback.__name__ for command in cli.app.registered_commands
    }


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("calibration bare.zarr", "FILES: "),
        ("calibration outputs.npz --figure plots.txt", "--figure: "),
        ("calibration broken.npz", "FILES: "),
        ("bounds numbers.zarr --orbits orbits.npy", "STORE: "),
        ("bounds run.zarr --orbits orbits.npy", "--orbits: "),
        ("conformal kept.zarr --coverage 0.5 --figure plots.txt", "--figure: "),
        ("groups rotations:8 --draw group.txt", "--draw: "),
        ("report run.zarr -o nowhere/report.txt", "--out: "),
    ],
)
def test_errors_begin_with_the_option_or_argument_that_is_wrong(folder, orbical, words, start):
    np.save(folder / "orbits.npy", np.arange(5))
    np.savez(folder / "broken.npz", probs=np.full((7, 3), np.nan), labels=np.arange(7) % 3)
    said = orbical(folder, *words.split(), expect=2)
    assert said.partition("error: ")[2].startswith(start), said


def test_a_url_that_cannot_be_read_names_its_option(folder, orbical):
    said = orbical(folder, *SCAN.split(), "-o", "nowhere://bucket/run.zarr", expect=2)
    assert re.search(r"Invalid value for '--out' / '-o': expected a folder, or a URL", said), said


def test_models_of_the_scan_are_named_as_options_are(folder, orbical):
    words = "worst-case run.zarr -m b=nets:net -o worst.nc"
    said = " ".join(orbical(folder, *words.split(), expect=2).split())
    assert said.endswith("got 'b'; pass --model NAME=SOURCE"), said


@pytest.mark.parametrize("words", ["why run.zarr", "worst-case run.zarr -o worst.nc"])
def test_a_scan_without_inputs_is_answered_with_options_of_the_command(folder, orbical, words):
    said = " ".join(orbical(folder, *words.split(), "-m", "a=nets:net", expect=2).split())
    remedy = "; scan with --keep inputs, or pass the data of the scan as --data PATH"
    assert said.endswith(remedy), said


def test_a_model_is_named_by_its_source(folder, orbical):
    words = "scan -m nets:net -d data.npz -g rotations:4 -o named.zarr"
    said = orbical(folder, *words.split())
    assert ob.load(folder / "named.zarr").models == ["net"], said


def test_a_folder_that_is_made_is_announced(folder, orbical):
    words = "groups rotations:8 --draw"
    assert "new/plots" in orbical(folder, *words.split(), "new/plots/group.png")
    assert "new" not in orbical(folder, *words.split(), "new/plots/group.png").replace("new/", "")


def test_help_lists_options_by_subject_and_types_that_everybody_knows(folder, orbical):
    cli._register()
    for command in ("scan", "view", "check", "calibration"):
        text = orbical(folder, command, "--help")
        assert not re.search(r"<\w+[\[ >]", text), command
    headings = re.findall(r"^(\w[\w ]*):$", orbical(folder, "scan", "--help"), re.MULTILINE)
    assert headings == ["Options", "Data", "Task and outputs", "Processes"]


def test_a_warning_of_probabilities_keeps_a_remedy_in_the_shell() -> None:
    with pytest.warns(UserWarning, match="save them as probs") as told:
        ob.calibration.top_label(logits=np.full((5, 2), 0.5), labels=np.zeros(5, int))
    assert error_text_for_shell(str(told[0].message), {}, {}).endswith("; save them as probs")


def test_an_unknown_option_is_answered_with_close_ones_only():
    cli._register()
    done = CliRunner().invoke(cli.app, ["scan", "--preproces", "imagenet"])
    assert "--preprocess" in done.output
    assert "--readers" not in done.output
