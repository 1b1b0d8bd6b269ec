"""Predictors: every kind of model behind one face, and left as it was found."""

from __future__ import annotations

import importlib.util
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.predictors import FunctionPredictor, as_predictor, numpy_function

CPU = torch.device("cpu")


@pytest.fixture
def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.BatchNorm1d(16), torch.nn.Dropout(), torch.nn.Linear(16, 3)
    )


@pytest.fixture
def images():
    return torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(1))


def answer(predictor, batch):
    with predictor.ready(CPU):
        return predictor(batch)


def test_a_torch_module_runs_in_eval_mode_and_gets_its_modes_back(net, images):
    net.train()
    net[2].eval()  # a mixture of modes, as in fine-tuning
    before = net[1].running_mean.clone()
    predictor = as_predictor(net)
    first, second = answer(predictor, images), answer(predictor, images)
    assert torch.equal(first, second), "no dropout"
    assert not first.requires_grad
    assert torch.equal(net[1].running_mean, before), "batch statistics are not updated"
    assert [module.training for module in net] == [True, True, False, True]
    assert net.training


def test_a_torch_module_is_restored_when_it_raises(net):
    net.train()
    predictor = as_predictor(net)
    with pytest.raises(RuntimeError), predictor.ready(CPU):
        predictor(torch.zeros(2, 3))
    assert net.training


def test_a_weight_changes_the_fingerprint(net):
    predictor = as_predictor(net)
    before = predictor.fingerprint()
    assert before == as_predictor(net).fingerprint()
    with torch.no_grad():
        net[3].weight[0, 0] += 1e-3
    assert predictor.fingerprint() != before


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_exported_program_answers_as_the_module(net, images, tmp_path, dynamic):
    net.eval()
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    program = torch.export.export(net, (images[:2],), dynamic_shapes=shapes)
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    for source in (str(path), program):
        predictor = as_predictor(source)
        np.testing.assert_allclose(answer(predictor, images), net(images).detach(), atol=1e-6)
        assert predictor.fingerprint() == as_predictor(source).fingerprint()


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_onnx_file_answers_as_the_module(net, images, tmp_path, dynamic):
    net.eval()
    path = tmp_path / "net.onnx"
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    torch.onnx.export(net, (images[:2],), path, dynamo=True, dynamic_shapes=shapes, verbose=False)
    predictor = as_predictor(str(path))
    np.testing.assert_allclose(answer(predictor, images), net(images).detach(), atol=1e-5)
    assert predictor.fingerprint() == as_predictor(str(path)).fingerprint()


@pytest.mark.parametrize(
    ("shape", "remedy"),
    [
        ((2, 3, 9, 7), r"size=\(8, 6\)"),
        ((2, 6, 3, 8), "preprocess='nhwc'"),
        ((2, 4, 8, 6), r"8, 6\]$"),  # no step would help
    ],
)
def test_images_that_do_not_fit_a_file_come_with_the_step_that_helps(tmp_path, shape, remedy):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2)).eval()
    path = tmp_path / "net.onnx"
    torch.onnx.export(net, (torch.zeros(2, 3, 8, 6),), path, dynamo=True, verbose=False)
    with pytest.raises(InputError, match=remedy):
        as_predictor(str(path))(torch.zeros(shape))


def test_weights_beside_an_onnx_file_change_its_fingerprint(images, tmp_path):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 100)).eval()
    path = tmp_path / "net.onnx"
    torch.onnx.export(net, (images[:2],), path, dynamo=True, external_data=True, verbose=False)
    weights = tmp_path / "net.onnx.data"
    before = as_predictor(str(path)).fingerprint()
    content = bytearray(weights.read_bytes())
    content[0] ^= 1
    weights.write_bytes(content)
    assert as_predictor(str(path)).fingerprint() != before


def test_a_column_of_an_sklearn_answer_is_the_class_of_that_number(images):
    flat = images.flatten(1).numpy()
    classifier = LogisticRegression().fit(flat, [1, 3, 1, 3, 3])
    probabilities = answer(as_predictor(classifier), images)
    assert probabilities.shape == (5, 4)
    np.testing.assert_allclose(probabilities[:, [1, 3]], classifier.predict_proba(flat))
    assert float(probabilities[:, [0, 2]].max()) == 0


def test_a_multi_output_classifier_answers_the_probability_of_each_label(images):
    flat = images.flatten(1).numpy()
    labels = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0]])  # the last never
    tree = DecisionTreeClassifier(max_depth=1).fit(flat, labels)
    found = answer(as_predictor(tree), images)
    first, second, _ = tree.predict_proba(flat)
    expected = np.stack([first[:, 1], second[:, 1], np.zeros(5)], 1)
    np.testing.assert_allclose(found, expected)
    grades = DecisionTreeClassifier().fit(flat, 2 * labels)
    with pytest.raises(ModelError, match="expected the classes 0 and 1 of each output"):
        answer(as_predictor(grades), images)


def test_a_fitted_pipeline_is_fitted_and_an_unfitted_one_is_not(images):
    flat = images.flatten(1).numpy()
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), LogisticRegression())
    with pytest.raises(InputError, match="got an unfitted one"):
        as_predictor(pipeline)
    pipeline.fit(flat, [0, 1, 0, 1, 1])
    assert answer(as_predictor(pipeline), images).shape == (5, 2)


def test_sklearn_classifiers_say_that_they_answer_probabilities(images):
    flat = images.flatten(1).numpy()
    classifier = LogisticRegression().fit(flat, [0, 1, 0, 1, 1])
    predictor = as_predictor(classifier)
    assert predictor.outputs == "probabilities"
    np.testing.assert_allclose(answer(predictor, images), classifier.predict_proba(flat))
    regression = as_predictor(LinearRegression().fit(flat, np.arange(5.0)))
    assert regression.outputs is None
    assert answer(regression, images).shape == (5,)


def test_functions_on_torch_and_on_numpy_both_work(images):
    def needs_torch(x):
        return x.flatten(1).softmax(-1)

    def needs_numpy(x):
        assert isinstance(x, np.ndarray)
        return x.reshape(len(x), -1)[:, :3]

    assert answer(as_predictor(needs_torch), images).shape == (5, 16)
    assert isinstance(answer(as_predictor(needs_numpy), images), torch.Tensor)
    assert answer(numpy_function(needs_numpy), images).shape == (5, 3)
    assert isinstance(as_predictor(needs_torch), FunctionPredictor)


def test_jax_functions_work(images):
    jnp = pytest.importorskip("jax.numpy", reason="jax is not installed")
    predictor = as_predictor(lambda x: jnp.tanh(jnp.reshape(x, (len(x), -1))))
    np.testing.assert_allclose(answer(predictor, images), images.flatten(1).tanh(), atol=1e-6)


def test_a_function_that_fails_both_ways_shows_both_reasons(images):
    def broken(x):
        raise ZeroDivisionError("no")

    with pytest.raises(ModelError, match=r"on torch arrays: ZeroDivisionError: no, on numpy"):
        answer(as_predictor(broken), images)


def test_import_paths_name_the_users_own_code(tmp_path, monkeypatch, images):
    (tmp_path / "my_nets.py").write_text(
        "import torch\nnet = torch.nn.Flatten()\nclass Box:\n    inner = net\n"
        "def make():\n    return torch.nn.Flatten()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for text in ("my_nets:net", "my_nets:Box.inner", "my_nets:make()"):
        predictor = as_predictor(text)
        assert predictor.source == text
        assert answer(predictor, images).shape == (5, 16)
    with pytest.raises(InputError, match="did you mean 'net'"):
        as_predictor("my_nets:nte")
    with pytest.raises(InputError, match=r"expected an instance, got the class Box; pass Box\(\)"):
        as_predictor("my_nets:Box")


@pytest.mark.parametrize("weights", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("given", [torch.float64, torch.float32, torch.float16])
def test_data_come_to_a_module_in_the_precision_of_its_weights(net, images, weights, given):
    assert answer(as_predictor(net.to(weights)), images.to(given)).dtype == weights


def test_a_module_with_weights_of_several_precisions_chooses_itself(net, images):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = net.half(), torch.nn.Linear(3, 2)

        def forward(self, x):
            assert x.dtype == torch.float32
            return self.outer(self.inner(x.half()).float())

    assert answer(as_predictor(Half()), images).dtype == torch.float32
    assert answer(as_predictor(Half()), images.double()).dtype == torch.float32


class Answer(NamedTuple):
    """What some networks answer."""

    logits: object
    other: object = None


class Named(dict):
    """A dictionary whose fields are attributes, as some packages answer."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    "model",
    [
        lambda x: Answer(x.flatten(1)),
        lambda x: Answer(x.flatten(1).numpy()),
        lambda x: Named(logits=x.flatten(1)),
    ],
)
def test_named_parts_of_an_answer_keep_their_names(images, model):
    assert torch.equal(answer(as_predictor(model), images).logits, images.flatten(1))


def test_a_function_that_works_is_called_once_for_each_batch(images):
    calls = []
    predictor = as_predictor(lambda x: calls.append(len(x)) or x)
    answer(predictor, images)
    answer(predictor, images)
    assert calls == [5, 5]


def test_a_module_that_cannot_be_brought_to_the_device_gets_its_modes_back(net):
    predictor = as_predictor(net.to("meta").train())
    with pytest.raises(
        ModelError, match=r"Sequential: expected a module that can be moved to cpu, .*meta"
    ):
        answer(predictor, None)
    assert net.training


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch.nn:Linear()", "raised TypeError when called"),
        ("torch.nn:Linearr", "did you mean 'Linear'? (known: "),
        ("my_broken_nets:net", "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_code_that_cannot_be_run_is_named_on_one_short_line(tmp_path, monkeypatch, text, words):
    (tmp_path / "my_broken_nets.py").write_text("net = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InputError) as caught:
        as_predictor(text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("my/nets.py:net", InputError, "pass 'my.nets:net'"),
        ("localhost:8000/v1#name", InputError, "pass 'http://localhost:8000/v1#name'"),
        ("no_such_package.at_all:net", InputError, "cannot be imported"),
        ("net.onnx", InputError, "which does not exist"),
        ("net", InputError, "expected package.module:attribute, a file"),
        (":net", InputError, "expected package.module:attribute"),
        (3, InputError, "got int"),
        (LogisticRegression(), InputError, "got an unfitted one"),
    ],
)
def test_models_that_are_none_are_refused(source, error, words):
    with pytest.raises(error) as caught:
        as_predictor(source)
    assert words in str(caught.value)


def test_a_file_on_a_web_server_is_a_model_and_no_endpoint(net, images, tmp_path, monkeypatch):
    if importlib.util.find_spec("aiohttp") is None:
        pytest.skip("fsspec reads from web servers with aiohttp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.jit.trace(net.eval(), images).save(tmp_path / "net.pt")
    served = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/net.pt"
        found = answer(as_predictor(address), images)
        with pytest.raises(InputError, match=r"gone\.pt', which does not exist"):
            as_predictor(address.replace("net", "gone"))
        torch.jit.trace(torch.nn.Sequential(net, torch.nn.ReLU()), images).save(tmp_path / "net.pt")
        changed = answer(as_predictor(address), images)
        server.shutdown()
    torch.testing.assert_close(found, net(images))
    torch.testing.assert_close(changed, net(images).relu())


@pytest.mark.parametrize("name", ["broken.onnx", "broken.pt2"])
def test_files_that_are_no_models_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match="broken"):
        as_predictor(str(path))


class TwoInputs(torch.nn.Module):
    """A network whose inputs have names, as those of Hugging Face."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 3)

    def forward(self, pixel_values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.linear((pixel_values * mask[:, None]).flatten(1))


class WholeBatch(torch.nn.Module):
    """A network that takes the dictionary itself."""

    def forward(self, batch):
        return batch["pixel_values"].flatten(1)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda net: net,
        torch.nn.DataParallel,
        lambda net: torch.compile(net, backend="eager"),
        lambda net: torch.nn.DataParallel(torch.compile(net, backend="eager")),
        torch.jit.script,
    ],
    ids=["plain", "parallel", "compiled", "parallel and compiled", "scripted"],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")
def test_a_wrapped_module_is_called_as_the_module_inside_and_takes_a_dictionary(images, wrap):
    torch.manual_seed(0)
    inner = TwoInputs()
    batch = {"pixel_values": images, "mask": torch.rand(5, 4, 4)}
    expected = inner(**batch).detach()
    predictor = as_predictor(wrap(inner))
    torch.testing.assert_close(answer(predictor, batch), expected)
    torch.testing.assert_close(answer(predictor, tuple(batch.values())), expected)
    if not isinstance(predictor.module, torch.jit.ScriptModule):
        assert predictor.fingerprint() == as_predictor(inner).fingerprint()
        assert predictor.source == as_predictor(inner).source


def test_a_dictionary_is_passed_whole_unless_all_its_keys_are_parameters(images):
    batch = {"pixel_values": images, "mask": torch.ones(5, 4, 4)}
    assert answer(as_predictor(WholeBatch()), batch).shape == (5, 16)
    assert answer(as_predictor(lambda pixel_values, mask: mask), batch).shape == (5, 4, 4)
    assert answer(numpy_function(lambda batch: batch["mask"]), batch).shape == (5, 4, 4)


def test_a_hugging_face_model_is_scanned_as_it_is():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        num_channels=1,
        num_labels=3,
    )
    model = transformers.ViTForImageClassification(config)
    images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
    task = ob.tasks.Classification(input={"pixel_values": ob.actions.Images()})
    options = {"group": "rotations:4", "keep": "probabilities", "progress": False}
    named = ob.scan(model, ({"pixel_values": images}, labels), task=task, **options)
    plain = ob.scan(model, (images, labels), task="classification", **options)
    upright = model.eval()(pixel_values=images).logits.softmax(-1).detach()
    for scan in (named, plain):
        found = scan.data["probabilities"].isel(model=0, element=0).values
        np.testing.assert_allclose(found, upright, atol=1e-5)
    by_hand = ob.tasks.Classification(read=lambda raw: raw.logits)
    read = ob.scan(model, (images, labels), task=by_hand, **options)
    np.testing.assert_array_equal(read.data["confidence"].values, plain.data["confidence"].values)


def test_functions_on_numpy_are_scanned_as_they_are():
    images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 0, 1])

    def brighter_half(x):
        halves = np.stack([x[..., :4].sum((1, 2, 3)), x[..., 4:].sum((1, 2, 3))], axis=1)
        assert isinstance(x, np.ndarray)
        return halves

    scan = ob.scan(
        brighter_half, (images, labels), group="rotations:4", task="classification", progress=False
    )
    confidence = scan.data["confidence"].isel(model=0).values
    halves = torch.stack([images[..., :4].sum((1, 2, 3)), images[..., 4:].sum((1, 2, 3))], 1)
    np.testing.assert_allclose(confidence[:, 0], halves.softmax(-1).amax(-1), atol=1e-5)
    np.testing.assert_allclose(confidence[:, 0], confidence[:, 2], atol=1e-5)
