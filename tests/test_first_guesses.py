"""Calls that people try first: `read=` and names of a preprocessing, transforms, files of torch."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.data import as_preprocessing
from orbical.errors import InputError, ModelError
from orbical.predictors import as_predictor

IMAGES = torch.rand(6, 3, 12, 12, generator=torch.Generator().manual_seed(0))
GRAY = IMAGES[:, :1]


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(4, 3),
    ).eval()  # fmt: skip


def scanned(model, data=IMAGES, **settings):
    return ob.scan(
        model, data, group="cyclic:4", task="classification", keep="probabilities",
        progress=False, **settings,
    )  # fmt: skip


def probabilities(scan):
    return scan.data["probabilities"].values


def test_classification_is_the_task_unless_another_is_given(net):
    assert (
        ob.scan(net, IMAGES, group="cyclic:4", progress=False).record.task.name == "classification"
    )


def test_channels_that_come_last_are_named(net):
    with pytest.raises(InputError, match="channels come before rows and columns"):
        scanned(net, IMAGES.permute(0, 2, 3, 1))


def test_read_is_taken_by_the_scan_and_by_the_task_alike(net):
    def nested(x):
        return {"features": x.flatten(1), "scores": net(x)}

    expected = probabilities(scanned(net))
    assert np.array_equal(probabilities(scanned(nested, read=lambda out: out["scores"])), expected)
    task = ob.tasks.Classification()
    ob.scan(nested, IMAGES, group="cyclic:4", task=task, read=lambda out: out["scores"],
            progress=False)  # fmt: skip
    assert task._read is None, "the task of the user is left as it is"
    with pytest.raises(InputError, match="read: expected a function"):
        scanned(net, read="scores")


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda out: {"scores": out, "loss": 0.0}, r"a dictionary of 'scores', 'loss'; pass "
         r"read=lambda out: out\['scores'\] to ob\.scan"),
        (lambda out: (out, out), r"a tuple of 2; pass read=lambda out: out\[0\] to ob\.scan"),
    ],
)  # fmt: skip
def test_nested_outputs_are_described_with_the_call_that_works(net, wrap, message):
    with pytest.raises(ModelError, match=message):
        scanned(lambda x: wrap(net(x)))


@pytest.mark.parametrize("names", ["imagenet", "symmetric,bgr", "nchw, unit"])
def test_a_preprocessing_by_name_is_that_of_the_command_line(net, names):
    by_name = scanned(net, preprocess=names)
    assert np.array_equal(
        probabilities(by_name),
        probabilities(scanned(net, preprocess=ob.data.ImagePreprocessing.parse(names))),
    )
    assert by_name.record.preprocess.startswith("orbical.data.preprocessing:")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("imagnet", "did you mean 'imagenet'?"),
        (3, "names of unit, bytes, symmetric, imagenet, rgb, bgr, gray, color, nchw, nhwc, got 3"),
    ],
)
def test_another_name_is_answered_with_those_that_are_known(net, given, message):
    with pytest.raises(InputError) as caught:
        scanned(net, preprocess=given)
    assert message in str(caught.value)


@pytest.mark.parametrize("names", ["imagenet", "unit", "symmetric", "bytes", "imagenet,bgr"])
@pytest.mark.parametrize("kind", [torch.uint8, torch.float32])
def test_pixels_of_0_to_255_are_refused_where_a_name_expects_0_to_1(net, names, kind, tmp_path):
    pixels = (IMAGES * 256).floor().to(kind)
    said = rf"data: expected images with values from 0 to 1 for preprocess='{names}', got \d+ \.\. "
    for data in (pixels, tmp_path / "pixels.npz"):
        np.savez(tmp_path / "pixels.npz", x=pixels.numpy())
        with pytest.raises(InputError, match=said + r"25\d; divide them by 255"):
            scanned(net, data, preprocess=names)
    with pytest.raises(InputError, match=said):
        ob.testing.layer_errors(
            net, pixels, group="cyclic:4", task="classification", preprocess=names
        )


@pytest.mark.parametrize(
    ("images", "names"),
    [
        (IMAGES * 1.2 - 0.1, "imagenet"),  # interpolation overshoots
        ((IMAGES - 0.5) * 6, "bytes"),  # standardized
        (IMAGES * 255, "bgr"),  # `unit` only leaves values as they are
        (IMAGES * 255, None),
        ((IMAGES > 0.5).to(torch.uint8), "unit"),
    ],
)
def test_other_values_are_prepared_as_they_are(net, images, names):
    assert scanned(net, images, preprocess=names).complete


def test_bytes_that_no_one_scales_are_pointed_out(net):
    pixels = (IMAGES * 256).floor().to(torch.uint8)
    with pytest.warns(UserWarning, match="passed to the models as stored, 0 to 255; if these expe"):
        scanned(net, pixels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for others in (pixels.float(), (IMAGES > 0.5).to(torch.uint8)):
            scanned(net, others)


class ToTensor:
    """As in torchvision: it takes images of Pillow, and no tensors."""

    def __call__(self, image):
        raise TypeError("pic should be PIL Image or ndarray")


class Normalize:
    def __init__(self, mean):
        self.mean = mean

    def __call__(self, images):
        return images - self.mean

    def __repr__(self):
        return f"Normalize(mean={self.mean})"


class Compose:
    """As in torchvision."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, images):
        for step in self.transforms:
            images = step(images)
        return images

    def __repr__(self):
        return f"Compose(\n    {self.transforms}\n)"


def test_transforms_of_single_images_prepare_batches(net):
    found = scanned(net, preprocess=Compose([ToTensor(), Normalize(0.5)]))
    expected = probabilities(scanned(net, preprocess=lambda x: x - 0.5))
    assert np.array_equal(probabilities(found), expected)
    assert "Normalize(mean=0.5)" in found.record.preprocess, "others have another record"
    copied = pickle.loads(pickle.dumps(as_preprocessing(Compose([ToTensor(), Normalize(0.5)]))))
    assert torch.equal(copied(IMAGES), IMAGES - 0.5)


def test_an_image_processor_of_transformers(net):
    transformers = pytest.importorskip("transformers")
    processor = transformers.ViTImageProcessor(
        size={"height": 8, "width": 8}, image_mean=[0.5] * 3, image_std=[0.25] * 3
    )
    found = scanned(net, preprocess=processor)

    def by_hand(batch):
        made = processor(images=[*batch], do_rescale=False, return_tensors="pt")
        return made["pixel_values"]

    expected = probabilities(scanned(net, preprocess=by_hand))
    assert np.allclose(probabilities(found), expected, atol=1e-6)


def test_gray_images_in_a_network_for_color_images(net, tmp_path):
    with pytest.raises(ModelError, match="takes color images, pass preprocess='color'"):
        scanned(net, GRAY)
    found = probabilities(scanned(net, GRAY, preprocess="imagenet,color"))
    expected = scanned(net, GRAY.expand(-1, 3, -1, -1), preprocess="imagenet")
    assert np.array_equal(found, probabilities(expected))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["script", "trace"])
@pytest.mark.parametrize("suffix", [".pt", ".pth", ".torchscript"])
def test_a_torchscript_file_is_a_model(net, tmp_path, kind, suffix):
    path = tmp_path / f"net{suffix}"
    copied = copy.deepcopy(net)
    made = torch.jit.script(copied) if kind == "script" else torch.jit.trace(copied, IMAGES[:1])
    made.save(path)
    assert np.array_equal(probabilities(scanned(str(path))), probabilities(scanned(net)))
    first = as_predictor(path).fingerprint()
    next(made.parameters()).data += 1
    made.save(path)
    assert first != as_predictor(path).fingerprint()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda net: net.state_dict(), "weights without a network (a state dict)"),
        (lambda net: {"model": net.state_dict(), "epoch": 3}, "weights without a network"),
        (lambda net: net, "a pickled network"),
        (lambda net: torch.zeros(3), "tensors"),
    ],
)
def test_other_files_of_torch_are_refused_with_the_remedy(net, tmp_path, content, words):
    path = tmp_path / "net.pt"
    torch.save(content(net), path)
    with pytest.raises(ModelError) as caught:
        scanned(str(path))
    assert words in str(caught.value)
    assert "load its weights there, and name it as package.module:network" in str(caught.value)


def test_a_file_that_is_none_of_torch(tmp_path):
    (tmp_path / "net.pt").write_text("weights")
    with pytest.raises(ModelError, match="no model of torch"):
        as_predictor(tmp_path / "net.pt")


def test_tables_of_measures_are_printed_a_line_each():
    found = ob.calibration.classification_table(
        probs=[[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], labels=[0, 0, 1], resamples=20
    )
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines] == [*found]
    assert lines[0].startswith("accuracy ")


def test_labels_in_a_dictionary_of_arrays_are_answered_with_the_call_that_works(net, tmp_path):
    labels = torch.zeros(6, dtype=torch.long)
    with pytest.raises(InputError, match=r"labels are no field: pass \(x, y\)"):
        scanned(net, {"x": IMAGES, "y": labels})
    np.savez(tmp_path / "data.npz", x=IMAGES, y=labels)
    with np.load(tmp_path / "data.npz") as file, pytest.raises(InputError, match="pass its path"):
        scanned(net, file)


@pytest.mark.parametrize("wrap", [dict, lambda state: {"model": dict(state), "epoch": 3}])
def test_a_state_dict_in_place_of_a_network_is_named(net, wrap):
    with pytest.raises(InputError, match=r"weights without a network .* load_state_dict"):
        scanned(wrap(net.state_dict()))


def test_the_path_of_a_scan_in_place_of_the_scan_is_named():
    with pytest.raises(InputError, match=r"pass orbical\.load\('run\.zarr'\)"):
        ob.nero.summary("run.zarr")


def test_a_figure_and_its_file_in_the_wrong_order_are_named():
    with pytest.raises(InputError, match=r"fig: expected a figure .* comes first, got str"):
        ob.figures.save("a.png", ob.figures.figure(1, 1))


def test_names_of_classes_as_objects_in_saved_outputs_are_answered_with_numpy_unique(tmp_path):
    names = np.array(["cat", "dog"], dtype=object)  # as a column of pandas
    np.savez(tmp_path / "outputs.npz", probs=np.eye(2), labels=names)
    with pytest.raises(InputError, match=r"labels .* number the names .* numpy\.unique"):
        ob.check(tmp_path / "outputs.npz", max_ece=0.1)


def test_pairs_without_channels_and_molecules_without_their_task_are_told_what_to_pass():
    options = {"group": "cyclic:4", "progress": False}
    with pytest.raises(InputError, match=r"lack the channel, add it with x\[:, :, None\]"):
        ob.scan(lambda pairs: pairs[:, 0], torch.rand(4, 2, 8, 8), task="flow", **options)
    build = pytest.importorskip("ase.build")
    molecules = [build.molecule(name) for name in ("H2O", "CH4")]
    with pytest.raises(InputError, match="pass task='atoms'"):
        ob.scan(lambda batch: batch, molecules, **options)


QUESTIONS = [(f"Which is {number}?", ["0", "1", "2", "3"], "B") for number in range(6)]


@pytest.mark.parametrize(
    ("data", "group", "task", "words"),
    [
        (QUESTIONS, "permutations:5", "choice", "5 options of .* got 4; pass permutations:4$"),
        (QUESTIONS, "rotations:8", "choice", r"use permutations:4 \(or cyclic_orders:4, reversal"),
        (np.zeros((8, 4)), "columns:-dx", "regression", "pass a pandas data frame"),
        (IMAGES[0], "cyclic:4", "classification", r"a single sample is x\[None\]"),
        (np.zeros((8, 3, 20)), "rotations3d:4", "point_classification", r"x\.swapaxes\(1, 2\)"),
    ],
)
def test_data_that_a_group_does_not_fit_are_answered_with_what_fits(data, group, task, words):
    with pytest.raises(InputError, match=words):
        ob.scan(len, data, group=group, task=task, progress=False)


def test_arrays_of_a_scan_are_in_its_data(net):
    with pytest.raises(InputError, match=r"arrays are in scan\.data\['score'\]"):
        scanned(net)["score"]
