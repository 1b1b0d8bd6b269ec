"""`orbical view model.onnx photos/`: settings are proposed, a few images scanned, then more."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import orbical as ob
from orbical.cli.view import first_look_of_view_command
from orbical.data.preprocessing import ImagePreprocessing
from orbical.data.samples import ChosenSamples, spread_samples
from orbical.errors import InputError
from orbical.interface import open_session
from orbical.interface.previews import preview
from orbical.interface.session import filter_columns

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: extra onnx")

QUADRANTS = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[n, {shape}] images) => (float[n, 4] logits)
{{
  first = {first} (images)
  pooled = AveragePool <kernel_shape = [4, 4], strides = [4, 4]> (first)
  gray = ReduceMean <axes = [1], keepdims = 0> (pooled)
  flat = Flatten (gray)
  byte = Constant <value_float = 255.0> ()
  unit = Div (flat, byte)
  gain = Constant <value_float = 20.0> ()
  logits = Mul (unit, gain)
}}
"""
WORDS = """
<ir_version: 8, opset_import: ["" : 13]>
net (int64[n, 16] tokens) => (int64[n, 16] same)
{ same = Identity (tokens) }
"""


def save(path: Path, text: str) -> None:
    onnx.save(onnx.parser.parse_model(text), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with one bright quadrant in a folder of its name, and networks that find it."""
    here = tmp_path_factory.mktemp("look")
    save(here / "net.onnx", QUADRANTS.format(shape="3, 8, 8", first="Identity"))
    last = "Transpose <perm = [0, 3, 1, 2]>"
    save(here / "last.onnx", QUADRANTS.format(shape="8, 8, 3", first=last))
    save(here / "many.onnx", QUADRANTS.format(shape="4, 8, 8", first="Identity"))
    save(here / "words.onnx", WORDS)
    (here / "broken.onnx").write_bytes(b"no model")
    (here / "empty").mkdir()
    (here / "empty" / "notes.txt").touch()
    rng = np.random.default_rng(0)
    for place, name in enumerate("abcd"):
        (here / "sorted" / name).mkdir(parents=True)
        for number in range(5):
            pixels = rng.integers(0, 60, (16, 12, 3), np.uint8)
            row, column = divmod(place, 2)
            pixels[2 + 6 * row : 8 + 6 * row, 6 * column : 6 * column + 6] += 180
            for path in (here / "sorted" / name, here / "flat"):
                path.mkdir(exist_ok=True)
                Image.fromarray(pixels).save(path / f"{name}{number}.png")
    return here


@pytest.fixture
def look(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Take a first look in a temporary folder of this test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(preview, "LEAST_BETWEEN_S", 0.0)
    opened = []

    def start(model: str, data: str, out: Path | None = None, **given: Any) -> Any:
        samples, images = given.pop("samples", None), given.pop("images", {})
        sources = [str(folder / model)] if ".onnx" in model else [model]
        session = first_look_of_view_command(
            sources, str(folder / data), given, images, samples, out
        )
        opened.append(session)
        return session

    yield start
    for session in opened:
        session.close()


def told(session: Any, phase: str = "finished", **message: Any) -> dict[str, Any]:
    """Ask until the look is in a phase."""
    answer = session.preview.answer(message)
    deadline = time.monotonic() + 60
    while answer["phase"] != phase:
        assert answer["phase"] != "failed", answer["error"]
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
        answer = session.preview.answer({})
    return dict(answer)


def settings(answer: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in answer["settings"]}


def test_the_look_begins_coarse_with_few_images_and_ends_fine_with_all(look, tmp_path):
    session = look("net.onnx", "sorted", out=tmp_path / "run.zarr")
    first = session.scan_view()
    assert (first.group.spec, first.samples, first.complete) == ("rotations:12", 20, False)
    answer = told(session)
    last = session.scan_view()
    assert (last.group.spec, last.samples, last.complete) == ("rotations:36", 20, True)
    assert answer["version"] >= answer["look"] >= 1
    assert answer["path"] == str(tmp_path / "run.zarr")
    assert ob.load(tmp_path / "run.zarr").names == first.scan.names  # samples keep their numbers
    header, _ = session.handle({"kind": "state", "sequence": 1, "selection": {}})
    assert header["preview"]
    assert header["live"]


def test_scale_layout_outputs_and_labels_are_proposed_with_reasons(look):
    answer = look("net.onnx", "sorted").preview.answer({})
    assert settings(answer) == {
        "task": "classification",
        "group": "rotations",
        "size": "8 x 8",
        "layout": "nchw",
        "channels": "rgb",
        "scale": "bytes",
        "outputs": "logits",
        "labels": "folders",
    }
    why = {one["name"]: (one["why"], one["guessed"]) for one in answer["settings"]}
    assert why["size"] == ("the model's file says so", False)
    assert "tell the images apart best" in why["scale"][0]
    assert why["labels"] == (
        "as many folders as the model has outputs, 4, in alphabetical order",
        True,
    )
    unlabeled = look("last.onnx", "flat").preview.answer({})
    assert settings(unlabeled) | {"scale": "bytes", "layout": "nhwc", "labels": "none"} == settings(
        unlabeled
    )
    why = {one["name"]: one["why"] for one in unlabeled["settings"]}
    assert "tell the images apart best" in why["scale"]


def test_one_sentence_says_what_was_found_with_and_without_labels(look):
    labeled = told(look("net.onnx", "sorted"))
    assert labeled["sentence"].startswith(
        "net: 100.0 % (83–100 %) correct upright, 25.0 % over all rotations"
    )
    assert labeled["sentence"].endswith("confident there (20 samples).")
    own = told(look("net.onnx", "flat"))["sentence"]
    assert own.startswith("net: prediction changes for ")
    assert own.endswith("% (20 samples).")


def test_a_setting_changed_on_the_page_starts_the_scan_again(look, tmp_path):
    session = look("net.onnx", "sorted", out=tmp_path / "run.zarr")
    before = told(session)
    after = told(session, settings={"group": "dihedral"})
    assert session.scan_view().group.spec == "dihedral:4"
    assert after["look"] > before["look"]
    assert after["path"] != before["path"]
    chosen = next(one for one in after["settings"] if one["name"] == "group")
    assert (chosen["why"], chosen["guessed"]) == ("chosen on the page", False)
    for wrong, words in (({"group": "sphere"}, "unknown name"), ({"volume": "1"}, "unknown name")):
        with pytest.raises(InputError, match=words):
            session.preview.answer({"settings": wrong})


def test_a_look_that_was_stopped_is_continued_and_nothing_is_lost(look, tmp_path, monkeypatch):
    monkeypatch.setattr(preview, "REST_S", math.inf)  # the reader drags, and has precedence
    session = look("net.onnx", "sorted", out=tmp_path / "run.zarr", samples=20)
    assert told(session, "scanning")["share"] < 1
    assert told(session, "stopped", action="stop")["share"] < 1
    monkeypatch.setattr(preview, "REST_S", 0.0)
    assert told(session, action="resume")["share"] == 1
    assert "the same command continues" in session.preview.last_words()
    again = look("net.onnx", "sorted", out=tmp_path / "run.zarr")
    assert told(again)["sentence"] == told(session)["sentence"]


def test_the_full_command_repeats_the_look_with_all_samples(look, folder, orbical, tmp_path):
    session = look("last.onnx", "sorted", samples=8)
    words = shlex.split(told(session)["command"])
    assert words[:2] == ["orbical", "scan"]
    orbical(tmp_path, *words[1:], "--quiet")
    full, few = ob.load(tmp_path / "sorted.zarr"), session.scan_view().scan
    assert (full.record.data.samples, few.record.data.samples) == (20, 8)
    rows = [full.names.index(name) for name in few.names]
    same = full.data["score"].isel(sample=rows, element=slice(None, None, 2)).values
    np.testing.assert_allclose(same, few.data["score"].values, atol=1e-5)


def test_folders_that_the_given_class_names_lack_are_no_labels(folder, look):
    images = {"classes": ["d", "c", "b", "A"]}
    answer = told(look("net.onnx", "sorted", samples=8, images=images))
    (labels,) = (one for one in answer["settings"] if one["name"] == "labels")
    assert labels["value"] == "none"
    assert labels["why"] == (
        "1 of 4 folders, such as 'a', are not among the names given with --classes"
    )
    with pytest.raises(InputError, match="the model's 4 classes, got 3"):
        look("net.onnx", "sorted", samples=8, images={"classes": ["one", "two", "three"]})


def test_folders_that_are_no_labels_are_none_in_the_full_command(folder, look, orbical, tmp_path):
    words = "d,c,b,A"
    images = {"classes": words.split(",")}
    session = look("net.onnx", "sorted", samples=8, images=images, classes=words)
    command = shlex.split(told(session)["command"])
    assert command[-5:-2] == ["--classes", words, "--unlabeled"]
    orbical(tmp_path, *command[1:], "--quiet")
    full = ob.load(tmp_path / "sorted.zarr")
    assert (full.labeled, full.classes) == (False, ["d", "c", "b", "A"])
    scan = ["scan", "-m", "net=net.onnx", "-t", "classification", "-g", "cyclic:4"]
    said = orbical(folder, *scan, "-d", "sorted", "--classes", words, expect=2)
    assert "pass --unlabeled if" in " ".join(said.split())
    np.savez(folder / "arrays.npz", x=np.zeros((4, 3, 8, 8)))
    said = orbical(folder, *scan, "-d", "arrays.npz", "--unlabeled", expect=2)
    assert "--unlabeled: expected a folder of images, got 'arrays.npz'" in " ".join(said.split())


def test_unreadable_images_can_be_left_out_of_a_look(look, orbical, folder):
    (folder / "damaged").mkdir()
    for path in (folder / "flat").iterdir():
        (folder / "damaged" / path.name).write_bytes(path.read_bytes())
    (folder / "damaged" / "a0.png").write_bytes(path.read_bytes()[:60])
    said = orbical(folder, "view", "net.onnx", "damaged", "--unreadable", "keep", expect=2)
    assert "known: raise, skip" in " ".join(said.split())
    with pytest.warns(UserWarning, match="a0.png"):
        answer = told(look("net.onnx", "damaged", images={"unreadable": "skip"}))
    assert answer["total"] == 19
    assert "--unreadable skip" in answer["command"]


def test_class_names_travel_into_a_look_without_labels_and_into_the_full_command(folder, look):
    words = "one,two,three,four"
    images = {"classes": words.split(",")}
    session = look("net.onnx", "flat", samples=8, images=images, classes=words)
    assert shlex.split(told(session)["command"])[-4:-2] == ["--classes", words]
    state = session.scan_view()
    assert state.classes == ["one", "two", "three", "four"]
    assert "predicted" in filter_columns.sample_columns(state)


def test_arrays_and_models_by_import_path_are_looked_at(look, folder, monkeypatch, tmp_path):
    (tmp_path / "own_nets.py").write_text(
        "import torch\nnet = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    images, labels = ob.datasets.digits()
    np.savez(folder / "digits.npz", x=np.asarray(images[:12]), y=np.asarray(labels[:12]))
    answer = told(look("own_nets:net", "digits.npz"))
    assert " correct upright, " in answer["sentence"]
    assert settings(answer)["labels"] == "folders"
    assert "-d" in answer["command"]


MAPS = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[n, 3, 8, 8] images) => (float[n, 3, 8, 8] maps)
{ maps = Identity (images) }
"""
HEAD = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[n, 3, 32, 32] images) => (float[n, 6, 21] head)
<float[1, 6, 21] answer = {{{answer}}}>
{{
  mean = ReduceMean <axes = [1, 2, 3], keepdims = 0> (images)
  zero = Constant <value_float = 0.0> ()
  nothing = Mul (mean, zero)
  tail = Constant <value_ints = [1, 2]> ()
  zeros = Unsqueeze (nothing, tail)
  head = Add (zeros, answer)
}}
"""


def test_class_maps_are_looked_at_as_a_segmentation(look, folder):
    save(folder / "maps.onnx", MAPS)
    session = look("maps.onnx", "flat", samples=4)
    answer = told(session)
    assert settings(answer)["task"] == "segmentation"
    assert session.scan_view().scan.record.task.name == "segmentation"
    assert float(session.scan_view().scan.data["score_vs_consensus"].min()) >= 0


def test_a_detector_is_looked_at_and_its_full_command_runs(look, folder, orbical, tmp_path):
    head = np.zeros((6, 21))
    head[:4], head[4, 0] = np.array([[16], [12], [10], [8]]), 0.9  # one box, always the same
    save(folder / "head.onnx", HEAD.format(answer=", ".join(f"{one:.1f}" for one in head.ravel())))
    session = look("head.onnx", "flat", samples=4)
    answer = told(session)
    found = settings(answer)
    assert (found["task"], found["group"], found["scale"]) == ("detection", "dihedral", "unit")
    scan = session.scan_view().scan
    assert scan.data["box"].values[0, :, 0, 0].tolist() == [[11, 8, 21, 16]] * 4
    words = shlex.split(answer["command"])
    assert words[-2:] == ["-o", "flat.zarr"]
    orbical(tmp_path, *words[1:], "--quiet")
    full = ob.load(tmp_path / "flat.zarr")
    assert full.data["box"].values[0, 0, 0, 0].tolist() == [11, 8, 21, 16]
    assert session.scan_view().input_view == "image"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gone.onnx", "flat"], "MODEL: expected a file, got 'gone.onnx', which does not exist"),
        (["net.onnx", "gone"], "DATA: expected a folder or a file, got 'gone'"),
        (["net.onnx"], "DATA: expected a folder of images or an .npz file after the model"),
        (["flat", "net.onnx"], "MODEL: expected a file ending in .onnx, .tflite, .pt2, .pt or"),
        (["net.onnx", "net.onnx", "flat"], "expected each name once, got 'net' twice"),
        (["broken.onnx", "flat"], "expected a readable ONNX file, got 'broken.onnx'"),
        (["net.onnx", "empty"], "expected images in 'empty', got other files: 1 with .txt"),
        (["words.onnx", "flat"], "expected an input of images [N, C, H, W] or [N, H, W, C]"),
        (["many.onnx", "flat"], "expected images of 1 or 3 channels, got an input"),
        (["net.onnx", "flat", "--group", "sphere"], "sphere"),
        (["net.onnx", "flat", "--preprocess", "imagnet"], "did you mean 'imagenet'"),
        (["net.onnx", "flat", "--preprocess", "math:sqrt"], "expected names such as imagenet,bgr"),
        (["run.zarr", "--samples", "9"], "--samples: expected none for a saved scan"),
        (["net.onnx", "flat", "--names", "a,b"], "--names: expected none for a first look"),
    ],
)
def test_bad_input_is_named_before_any_work(orbical, folder, words, said):
    assert said in " ".join(orbical(folder, "view", *words, expect=2).split())


def test_preprocessing_by_name_is_what_networks_expect():
    images = torch.rand(2, 3, 4, 4)
    assert torch.equal(ImagePreprocessing.parse("bytes,bgr")(images), images.flip(1) * 255)
    assert torch.equal(ImagePreprocessing.parse("symmetric")(images), images * 2 - 1)
    gray = ImagePreprocessing.parse("unit,gray,nhwc")(torch.ones(2, 3, 4, 5))
    assert gray.shape == (2, 4, 5, 1)
    torch.testing.assert_close(gray, torch.ones(2, 4, 5, 1))
    mean = torch.tensor([0.485, 0.456, 0.406]).expand(1, 4, 4, 3).permute(0, 3, 1, 2)
    assert ImagePreprocessing("imagenet")(mean).abs().max() < 1e-6
    for wrong in ("imagenet,unit", "sepia", ""):
        with pytest.raises(InputError, match="preprocess"):
            ImagePreprocessing.parse(wrong)
    with pytest.raises(InputError, match="expected images"):
        ImagePreprocessing()(torch.zeros(2, 5, 4, 4))


def test_the_view_of_a_scan_prepares_images_as_its_record_says(look, folder, tmp_path):
    told(look("net.onnx", "flat", out=tmp_path / "run.zarr"))
    session = open_session(tmp_path / "run.zarr", {"net": str(folder / "net.onnx")})
    assert session.scan_view().live.warnings == []
    session.close()


def test_chosen_samples_keep_names_labels_and_columns(folder):
    source = ob.data.ImageFolder(folder / "sorted", size=8)
    rows = spread_samples(len(source), 4, source.labels)
    assert sorted(source.labels[rows].tolist()) == [0, 1, 2, 3]
    some = ChosenSamples(source, rows, source.labels[rows], source.classes, {"k": np.arange(4)})
    inputs, labels = some.read(1, 3)
    assert inputs.shape == (2, 3, 8, 8)
    assert labels.tolist() == source.labels[rows[1:3]].tolist()
    assert some.names == [source.names[row] for row in rows]
    assert some.stamp() != ChosenSamples(source, rows[::-1], None, None, {}).stamp()
