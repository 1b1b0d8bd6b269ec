"""`orbical scan --data` with folders and tables of images."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import orbical as ob
from orbical.cli.shell_text import error_text_for_shell
from orbical.errors import InputError

NETS = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
"""
SCAN = ["scan", "-m", "a=nets:net", "-g", "rotations:4", "-o", "run.zarr", "-q"]
PLACES = [f"{name}/{number}.png" for name in ("cat", "dog") for number in range(3)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)
    noise = np.random.default_rng(0)
    for place in PLACES:
        (tmp_path / "photos" / place).parent.mkdir(parents=True, exist_ok=True)
        pixels = noise.integers(0, 256, (12, 16, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / place)
    frame = pd.DataFrame({"file": PLACES, "kind": ["c", "d"] * 3, "site": list("nnssww")})
    frame.to_csv(tmp_path / "photos" / "table.csv", index=False)
    return tmp_path


def test_a_folder_of_photos_is_scanned(orbical, folder):
    orbical(folder, *SCAN, "--data", "photos/", "--size", "8", "--fingerprint", "v1")
    scan = ob.load(folder / "run.zarr")
    assert scan.classes == ["cat", "dog"]
    assert scan.record.data.fingerprint == "v1"
    assert scan.complete
    assert scan.names == PLACES
    assert scan.data["label"].values.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_table_of_photos_is_scanned(orbical, folder):
    columns = ["--path-column", "file", "--label-column", "kind", "--size", "8x8"]
    orbical(folder, *SCAN, "--data", "photos/table.csv", *columns)
    scan = ob.load(folder / "run.zarr")
    assert scan.data["label"].values.tolist() == [0, 1] * 3
    assert scan.metadata["site"].tolist() == list("nnssww")


def test_data_with_some_of_the_classes_and_chosen_columns(orbical, folder):
    (folder / "names.txt").write_text("d\nc\n")
    columns = ["--path-column", "file", "--label-column", "kind", "--size", "8x8"]
    chosen = ["--columns", "site", "--classes", "names.txt"]
    orbical(folder, *SCAN, "--data", "photos/table.csv", *columns, *chosen)
    scan = ob.load(folder / "run.zarr")
    assert scan.classes == ["d", "c"]
    assert scan.data["label"].values.tolist() == [1, 0] * 3
    assert {*scan.metadata} == {"site"}


def test_a_table_in_another_folder_than_its_photos_and_what_info_lists(orbical, folder):
    (folder / "photos" / "table.csv").rename(folder / "table.csv")
    words = ["--data", "table.csv", "--path-column", "file", "--label-column", "kind"]
    said = orbical(folder, *SCAN, *words, expect=2)
    assert "pass --root, the folder of the images" in " ".join(said.split())
    orbical(folder, *SCAN, *words, "--root", "photos", "--size", "8x8")
    facts = [line.split() for line in orbical(folder, "info", "run.zarr").splitlines()]
    assert ["classes", "2:", "c,", "d"] in facts
    assert ["metadata", "site"] in facts


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["photos/", "--size", "small"], "--size: expected PIXELS or HEIGHTxWIDTH, got 'small'"),
        (["photos/table.csv"], "--data: expected a column 'path' in 'photos/table.csv'"),
        (["photos/table.csv"], "pass --path-column, --label-column with the names"),
        (["photos/", "--unreadable", "hide"], "--unreadable: unknown name 'hide'"),
        (["photos/nothing"], "--data: expected a file or a folder, got 'photos/nothing', which"),
        (["photos", "--path-column", "x"], "--path-column: expected a table of image files, got"),
        (["photos", "--root", "x"], "--root: expected a table of image files, got 'photos'"),
        (["photos", "--columns", "x"], "--columns: expected a table of image files, got 'photos'"),
        (["photos", "--size", "8", "--classes", "cat,cow"], "got none for 'dog'"),
        (["photos", "--size", "8", "--classes", "cat,cow,dog"], "model's 2 classes, got 3, "),
        (["."], "--data: expected images in subfolders"),
    ],
)
def test_data_that_cannot_be_used_are_one_clear_line(orbical, folder, words, message):
    Image.new("RGB", (8, 8)).save(folder / "beside.png")
    said = orbical(folder, *SCAN, "--data", *words, expect=2)
    assert message in " ".join(said.split())
    assert not (folder / "run.zarr").exists()


def test_images_of_unknown_range_are_refused_in_words_that_work_on_the_command_line(
    orbical, folder
):
    for place in PLACES:
        pixels = np.linspace(0, 255, 64, dtype=np.float32).reshape(8, 8)
        path = folder / "depths" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path.with_suffix(".tif"))
    said = " ".join(orbical(folder, *SCAN, "--data", "depths/", expect=2).split())
    assert "pass --data package.module:attribute, where an ImageFolder has the mode F" in said
    assert "scale them by --preprocess)" in said
    assert "=" not in said
    own = "import torch, orbical as ob\ndata = ob.data.ImageFolder('depths', mode='F')\n"
    own += "net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))\n"
    (folder / "nets.py").write_text(own + "def scaled(x):\n    return x / 255\n")
    orbical(folder, *SCAN, "--data", "nets:data", "--preprocess", "nets:scaled")
    assert ob.load(folder / "run.zarr").complete


def test_a_table_of_numbers_is_scanned_by_its_columns(orbical, tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"dx": random.normal(size=40), "dy": random.normal(size=40)})
    frame["side"] = np.where(frame["dx"] > 0, "right", "left")
    frame["site"] = ["north", "south"] * 20
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef model(f):\n    return np.stack([-f['dx'], f['dx']], 1)\n"
    )
    words = ["--label-column", "side", "--columns", "site", "-g", "columns:-dx:-dy"]
    orbical(tmp_path, "scan", "-m", "m=mine:model", "-d", "t.csv", *words, "-o", "run.zarr")
    scan = ob.load(tmp_path / "run.zarr")
    assert scan.classes == ["left", "right"]
    assert scan.metadata["site"][:2].tolist() == ["north", "south"]
    assert scan.data["correct"].mean(["model", "sample"]).values.tolist() == [1, 0, 1, 0]
    orbical(tmp_path, "report", "run.zarr")
    assert "report.html" in {path.name for path in tmp_path.iterdir()}
    said = orbical(tmp_path, "report", "missing.zarr", expect=2)  # which is said before the report
    assert "missing.zarr" in said
    assert "--overwrite" not in said


def test_images_of_several_sizes_are_refused_with_the_option_that_crops_them(tmp_path):
    for side in (8, 12):
        Image.new("RGB", (side, 8)).save(tmp_path / f"{side}.png")
    with pytest.raises(InputError) as refused:
        ob.data.open_path(str(tmp_path)).check()
    assert error_text_for_shell(refused.value, {"data": "--data", "size": "--size"}, {}).endswith(
        "; --size 224 crops them to one size"
    )
