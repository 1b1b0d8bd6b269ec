"""The scan: what it stores equals what a plain loop computes; bad input is refused before work."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.scanning.forward_passes import Sweep


@pytest.fixture
def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()


@pytest.fixture(scope="module")
def digits():
    images, labels = ob.datasets.digits()
    return images[:30], labels[:30]


def scan(models, data, group="rotations:12", task="classification", **settings):
    return ob.scan(models, data, group=group, task=task, progress=False, **settings)


def test_a_scan_equals_a_plain_loop_over_samples_and_elements(net, digits):
    images, labels = (torch.as_tensor(part) for part in digits)
    result = scan(net, digits, keep=("probabilities", "outputs", "inputs"), batch_size=7)
    group = ob.groups.rotations(12)
    for sample in (0, 13, 29):
        for element in (0, 5, 11):
            moved = ob.actions.Images().apply(group, images[sample][None])[element]
            logits = net(moved)[0].detach()
            probabilities = logits.softmax(-1)
            at = dict(model=0, sample=sample, element=element)
            data = result.data.isel(at)
            np.testing.assert_allclose(data["outputs"], logits, atol=1e-5)
            np.testing.assert_allclose(data["probabilities"], probabilities, atol=1e-6)
            np.testing.assert_allclose(data["score"], probabilities[labels[sample]], atol=1e-6)
            np.testing.assert_allclose(data["confidence"], probabilities.max(), atol=1e-6)
            assert int(data["predicted"]) == int(probabilities.argmax())
            assert bool(data["correct"]) == (int(probabilities.argmax()) == int(labels[sample]))
    np.testing.assert_array_equal(result.data["input"], images)
    np.testing.assert_array_equal(result.data["label"], labels)
    defect = ob.actions.Images().defect(group, images).T
    np.testing.assert_allclose(result.data["action_defect"], defect, atol=1e-6)


@pytest.mark.parametrize("keep", ["probabilities, outputs", ["outputs,probabilities"]])
def test_names_of_what_to_keep_may_be_one_text_with_commas(net, digits, keep):
    assert {"probabilities", "outputs"} <= {*scan(net, digits, keep=keep).data.data_vars}


def test_the_batch_size_does_not_change_the_answers(net, digits):
    whole = scan(net, digits, batch_size=10_000)
    for size in (1, 5, 64):
        other = scan(net, digits, batch_size=size)
        np.testing.assert_allclose(other.data["score"], whole.data["score"], atol=1e-6)
        np.testing.assert_allclose(
            other.data["action_defect"], whole.data["action_defect"], atol=1e-6
        )


def test_several_models_share_one_pass_and_are_a_dimension(net, digits):
    other = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    result = scan({"one": net, "two": other}, digits)
    assert result.models == ["one", "two"]
    alone = scan({"two": other}, digits)
    np.testing.assert_array_equal(
        result.data["score"].sel(model="two"), alone.data["score"].sel(model="two")
    )


def test_a_scan_without_labels_has_scores_against_the_consensus(net, digits):
    result = scan(net, digits[0])
    assert not result.labeled
    assert "score" not in result.data
    assert result.data["score_vs_consensus"].shape == (1, 30, 12)


def test_running_out_of_memory_halves_the_batch_and_goes_on(digits):
    sizes = []

    def hungry(x):
        sizes.append(len(x))
        if len(x) > 20:
            raise torch.OutOfMemoryError("too much")
        return x.flatten(1)[:, :10]

    model = ob.predictors.FunctionPredictor(hungry, on="torch")
    result = scan(model, digits, batch_size=100)
    reference = scan(lambda x: x.flatten(1)[:, :10], digits)
    assert result.complete
    sizes_of_units = [unit.batch_size for unit in result._store.noted() if unit.batch_size]
    assert max(sizes_of_units) <= 25, "recorded, so that a resumed scan starts there"
    assert max(sizes) == 90, "three elements of 30 samples"
    assert sizes[-1] <= 20
    np.testing.assert_allclose(result.data["score"], reference.data["score"], atol=1e-6)


def test_a_resumed_scan_starts_with_the_batches_that_fit_before(digits, tmp_path):
    """Of 8 samples x 12 elements neither 96 inputs nor 48 fit; the second unit is interrupted."""
    sizes = []

    def hungry(x):
        sizes.append(len(x))
        if len(x) > 25:
            raise torch.OutOfMemoryError("too much")
        if sizes.count(24) == 5:
            raise KeyboardInterrupt
        return x.flatten(1)[:, :10]

    model, out = ob.predictors.FunctionPredictor(hungry, on="torch"), tmp_path / "run.zarr"
    with pytest.raises(KeyboardInterrupt):
        scan(model, digits, out=out, batch_size=100, chunk=8)
    assert max(sizes) == 96
    assert ob.load(out).share_done == 0.25
    sizes.clear()
    with pytest.raises(KeyboardInterrupt):
        scan(model, digits, out=out, batch_size=100, chunk=8)
    assert max(sizes) == 24
    assert ob.load(out).share_done == 0.5


def test_memory_that_cannot_be_had_at_all_is_an_error(digits):
    def hungry(x):
        raise torch.OutOfMemoryError("too much")

    with pytest.raises(torch.OutOfMemoryError):
        scan(ob.predictors.FunctionPredictor(hungry, on="torch"), digits)


def test_preprocessing_comes_after_the_transformation(net, digits):
    seen = []

    def double(batch):
        seen.append(batch.shape)
        return 2 * batch

    result = scan(net, digits, preprocess=double)
    doubled = scan(net, (2 * torch.as_tensor(digits[0]), digits[1]))
    np.testing.assert_allclose(result.data["score"], doubled.data["score"], atol=1e-6)
    assert result.record.preprocess.endswith("double")


def test_what_writes_into_its_inputs_changes_nothing_for_others(digits):
    """Neither for the next model, nor for the data: one element leaves them where they are."""
    points = torch.rand(12, 4, 3, generator=torch.Generator().manual_seed(0))
    before = points.clone()

    def heights(batch):
        return batch["pos"].mean(1)

    def writes(batch):
        answer = heights(batch)
        batch["pos"].zero_()
        batch.pop("rest")
        return answer

    def doubles(batch):
        batch["pos"].mul_(2)
        return batch

    task = ob.tasks.Classification({"pos": ob.actions.Points(), "rest": ob.actions.Trivial()})
    data = {"pos": points, "rest": torch.zeros(12, 2)}
    for group in ("trivial", "rotations3d:4"):
        for preprocess, scale in ((None, 1), (doubles, 2)):
            models = {"writes": writes, "plain": heights}
            result = scan(models, data, group, task, preprocess=preprocess, keep="outputs")
            outputs = result.data["outputs"].values
            np.testing.assert_array_equal(outputs[0], outputs[1])
            element = result.group.identity
            np.testing.assert_allclose(
                outputs[0][:, element], scale * points.mean(1), rtol=1e-5, atol=1e-6
            )
            assert torch.equal(points, before)


def test_a_model_may_write_all_its_answers_into_one_place(digits):
    place = torch.empty(512, 3)

    def thrifty(x):
        return torch.sum(x.flatten(1)[:, :63].reshape(len(x), 3, 21), -1, out=place[: len(x)])

    def lavish(x):
        return x.flatten(1)[:, :63].reshape(len(x), 3, 21).sum(-1)

    models = {"thrifty": thrifty, "dictionary": lambda x: {"mean": thrifty(x)}, "lavish": lavish}
    means = scan(models, digits[0], task="regression", batch_size=16).data["mean"].values
    np.testing.assert_array_equal(means[0], means[2])
    np.testing.assert_array_equal(means[1], means[2])


def test_answers_that_are_elsewhere_are_brought_to_the_device_of_the_scan():
    predictors = {"net": ob.predictors.as_predictor(linear)}
    group, task = ob.groups.rotations(4), ob.tasks.Classification()
    sweep = Sweep(predictors, group, task, torch.device("meta"), 8)
    moved = torch.zeros(4, 2, 1, 8, 8, device="meta")
    assert sweep.read("net", torch.rand(8, 10), moved, group).is_meta


def test_a_model_that_answers_differently_each_time_is_reported(digits):
    with pytest.warns(UserWarning, match="'noisy' gives different outputs for the same batch"):
        result = scan({"noisy": lambda x: torch.randn(len(x), 10)}, digits)
    assert result.record.models[0].deterministic is False


def test_probabilities_read_as_logits_are_reported(digits):
    def softmax(x):
        return x.flatten(1)[:, :10].softmax(-1)

    with pytest.warns(UserWarning, match="if they are probabilities"):
        scan(softmax, digits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan(softmax, digits, task=ob.tasks.Classification(outputs="probabilities"))


def test_sklearn_models_are_read_as_probabilities(digits):
    from sklearn.linear_model import LogisticRegression

    images, labels = (np.asarray(part) for part in digits)
    model = LogisticRegression(max_iter=200).fit(images.reshape(30, -1), labels)
    result = scan(model, (images, labels), group="cyclic:4")
    upright = model.predict_proba(images.reshape(30, -1)).max(1)
    np.testing.assert_allclose(result.data["confidence"][0, :, 0], upright, atol=1e-6)


def test_dictionaries_of_fields_are_scanned():
    def energy(batch):
        return torch.cdist(batch["pos"], batch["pos"]).sum((1, 2)) * batch["charge"].sum(1)

    data = {"pos": torch.randn(6, 4, 3), "charge": torch.ones(6, 4)}
    task = ob.tasks.Regression(input={"pos": ob.actions.Points(), "charge": ob.actions.Trivial()})
    result = scan(energy, (data, torch.zeros(6)), group="rotations3d:16", task=task)
    assert float(result.data["invariance_gap"].max()) < 1e-3
    assert result.data["mean"].shape == (1, 6, 16, 1)


def test_fields_within_fields_are_kept_under_their_names():
    points = torch.rand(3, 4, 3)
    nested = {"a": {"pos": points, "rest": (torch.ones(3), torch.zeros(3, 2))}}
    actions = ob.actions
    task = ob.tasks.Classification(
        {"a": {"pos": actions.Points(), "rest": (actions.Trivial(), actions.Trivial())}}
    )
    result = scan(lambda batch: batch["a"]["pos"][:, 0], nested, "trivial", task, keep="inputs")
    assert torch.equal(torch.from_numpy(result.data["input_a_pos"].values), points)
    assert result.data["input_a_rest_1"].shape == (3, 2)


def test_torch_data_sets_and_memory_maps_are_data(net, digits, tmp_path):
    reference = scan(net, digits)
    dataset = torch.utils.data.TensorDataset(*(torch.as_tensor(part) for part in digits))
    np.testing.assert_array_equal(scan(net, dataset).data["score"], reference.data["score"])
    np.save(tmp_path / "x.npy", np.asarray(digits[0]))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        scan(net, (mapped, digits[1])).data["score"], reference.data["score"]
    )


def test_labels_may_be_a_plain_list(net, digits):
    labels = np.asarray(digits[1])
    listed = scan(net, (digits[0], labels.tolist()))
    np.testing.assert_array_equal(listed.data["label"], labels)
    np.testing.assert_array_equal(listed.data["score"], scan(net, digits).data["score"])


@pytest.mark.parametrize(
    ("representation", "words"),
    [
        ("2e", "expected the 5 features of irreps '1x2e', got 3"),
        ("vector", "that rotations3d:4 moves"),
    ],
)
def test_answers_that_cannot_move_as_the_task_says_are_refused(representation, words):
    task = ob.tasks.Regression(ob.actions.Vectors(), representation)
    width = 3 if representation == "2e" else 2
    with pytest.raises(ModelError, match="its outputs do not move as the task expects") as caught:
        scan(lambda x: x[:, :width], torch.randn(4, 3), group="rotations3d:4", task=task)
    assert words in str(caught.value)


def linear(x):
    return x.flatten(1)[:, :10]


def test_objects_that_are_called_like_functions_preprocess_and_read(digits):
    task = ob.tasks.Classification(read=functools.partial(torch.mul, other=2))
    result = scan(linear, digits, task=task, preprocess=torch.nn.Identity())
    assert result.record.preprocess == "torch.nn.modules.linear:Identity"
    assert result.record.task.read == "functools:partial"


def test_half_precision_answers_are_stored(digits):
    for task in ("classification", "regression"):
        result = scan(lambda x: linear(x).bfloat16(), digits[0], task=task, keep="outputs")
        assert result.complete
        assert result.data["outputs"].dtype == np.float32


@pytest.mark.parametrize("order", [("sure", "plain"), ("plain", "sure")])
def test_a_model_without_a_variance_stands_beside_one_with(digits, tmp_path, order):
    models = {
        "plain": lambda x: x.mean((1, 2, 3)),
        "sure": lambda x: (x.mean((1, 2, 3)), x.var((1, 2, 3)) + 1),
    }
    asked = {name: models[name] for name in order}
    task = ob.tasks.Regression(uncertainty="variance")
    result = scan(asked, digits[0], task=task, out=tmp_path / "two.zarr")
    variance = result.data["variance"]
    assert bool(variance.sel(model="plain").isnull().all())
    assert bool(variance.sel(model="sure").notnull().all())
    assert result.verify() == [], "what a model does not answer is no damage"


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (dict(models=lambda x: x.flatten(1)[:, :1]), InputError, "class indices below 2"),
        (
            dict(models=lambda x: x.flatten(1)[:3, :10]),
            ModelError,
            "expected 8 outputs for as many inputs, got 3",
        ),
        (dict(models=lambda x: linear(x) / 0), ModelError, "NaN or infinite output"),
        (dict(models=lambda x: x @ x.new_zeros(3, 3)), ModelError, "expected outputs for a batch"),
        (dict(models=lambda x: linear(x) + 0j), ModelError, "complex64 of shape"),
        (
            dict(models={"ten": linear, "five": lambda x: linear(x)[:, :5]}, labels=None),
            ModelError,
            "expected consensus of shape (30, 10) (sample, class) as for 'ten', got (30, 5)",
        ),
        (
            dict(models=lambda x: (x.mean((1, 2, 3)), x.var((1, 2, 3)) + 1), keep="outputs")
            | dict(task=ob.tasks.Regression(uncertainty="variance")),
            ModelError,
            "expected one tensor as raw output for keep='outputs'",
        ),
        (
            dict(task=ob.tasks.Classification(read=lambda raw: raw.logits)),
            ModelError,
            "raised AttributeError for the raw output float32 of shape (8, 10)",
        ),
        (dict(preprocess=lambda x: x @ x.new_zeros(3)), InputError, "preprocess: "),
        (dict(preprocess=lambda x: None), InputError, "to return a batch, got None"),
        (
            dict(preprocess="half"),
            InputError,
            "preprocess: unknown name 'half' (known: bgr, bytes, color",
        ),
        (
            dict(models={"good": linear, "bad": lambda x: {}["weights"]}),
            ModelError,
            "<lambda>: expected outputs for a batch of 8, got errors (on torch arrays: KeyError: "
            "'weights', on numpy arrays: KeyError: 'weights')",
        ),
        (
            dict(models={"made": lambda: linear}),
            ModelError,
            "got one without parameters: if it makes the model, pass what it returns",
        ),
        (
            dict(task=ob.tasks.Classification(read=lambda raw: [][0])),
            ModelError,
            "raised IndexError",
        ),
        (dict(models={"a": linear, "b": None}), InputError, "model 'b': expected a torch module"),
        (
            dict(models=[linear, linear]),
            InputError,
            "models: expected a model or a dictionary of names and models, got a list; name them",
        ),
        (dict(models={}), InputError, "models: expected at least one model, got none"),
        (dict(models={"": linear}), InputError, "non-empty strings"),
        (dict(labels=torch.full((30,), 12)), InputError, "class indices below 10"),
        (dict(labels=torch.zeros(29, dtype=torch.long)), InputError, "each of 30 samples, got 29"),
        (dict(labels=torch.zeros(30)), InputError, "integers of shape (N,)"),
        (dict(images=torch.zeros(0, 1, 8, 8), labels=[]), InputError, "at least one sample"),
        (dict(images=torch.zeros(30, 1, 8, 9), group="cyclic:4"), InputError, "with size=8 "),
        (dict(group="rotations3d:8"), InputError, "moved by plane"),
        (dict(group="shifts:2"), InputError, "for this data use translations:32:2 (or flips, "),
        (dict(group="rotation:8"), InputError, "did you mean 'rotations'"),
        (
            dict(group=ob.groups.from_matrices(plane=np.eye(2)[None], coords={"score": [1]})),
            InputError,
            "got 'score' in from_matrices",
        ),
        (dict(task="clasification"), InputError, "did you mean 'classification'"),
        (dict(keep="probability"), InputError, "did you mean 'probabilities'"),
        (dict(task=ob.tasks.Flow), InputError, "got the class Flow"),
        (dict(keep=None), InputError, "keep: expected the names of what to store, got None"),
        (
            dict(
                images={"a/b": torch.rand(30, 1, 8, 8)},
                models=lambda batch: linear(batch["a/b"]),
                task=ob.tasks.Classification({"a/b": ob.actions.Images()}),
                keep="inputs",
            ),
            InputError,
            "without '/', got 'a/b'",
        ),
        (dict(batch_size=0), InputError, "batch_size: expected 'auto' or an integer >= 1, got 0"),
        (
            dict(device="gpu"),
            InputError,
            "got 'gpu'; for an NVIDIA GPU pass 'cuda'",
        ),
        (dict(device="tpu9"), InputError, "got 'tpu9'; see torch.device"),
        (dict(device="meta"), InputError, "got 'meta' (Tensor.item() cannot be called on meta"),
        (dict(device=0), InputError, "'auto' or a torch device of this machine, got 0"),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, digits, settings, error, words):
    images, labels = settings.pop("images", digits[0]), settings.pop("labels", digits[1])
    out = tmp_path / "run.zarr"
    with pytest.raises(error) as caught:
        scan(settings.pop("models", linear), (images, labels), out=out, **settings)
    assert words in str(caught.value)
    assert not out.exists()
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("action", [ob.actions.Points(), {"pos": ob.actions.Points()}])
def test_a_point_that_is_nowhere_is_named_whatever_batch_it_is_in(action):
    clouds = torch.randn(40, 6, 3, generator=torch.Generator().manual_seed(0))
    clouds[33, 4, 1] = torch.nan

    def model(batch):
        return torch.zeros(len(batch["pos"] if isinstance(batch, dict) else batch), 3)

    data = {"pos": clouds} if isinstance(action, dict) else clouds
    task = ob.tasks.Classification(action)
    with pytest.raises(InputError, match="NaN or infinity at point 4, coordinate 1 of sample 33"):
        ob.scan(model, data, group="rotations3d:8", task=task, progress=False)


@pytest.mark.parametrize("lacking", [torch.nan, -torch.inf])
@pytest.mark.parametrize("sample", [1, 17])
@pytest.mark.parametrize("blind", [False, True])
def test_a_pixel_that_is_no_number_is_named_as_data(digits, tmp_path, lacking, sample, blind):
    """The model is not blamed, whether it answers NaN, raises, or does not notice."""
    images = torch.as_tensor(digits[0]).clone()
    images[sample, 0, 2, 3] = lacking

    def sees_nothing(x):
        return torch.zeros(len(x), 10)

    def raises(x):
        assert bool(torch.isfinite(x).all()), "numbers, please"
        return linear(x)

    models = {"blind": sees_nothing} if blind else {"net": linear, "raises": raises}
    words = f"expected finite numbers, got NaN or infinity at row 2, column 3 of sample {sample}"
    with pytest.raises(InputError, match=words):
        scan(models, (images, digits[1]), batch_size=8)


@pytest.mark.parametrize("sample", [0, 23])
def test_a_field_may_hold_nan_until_a_model_makes_nan_of_it(sample):
    known = torch.rand(30, 4)
    known[sample, 2] = torch.nan
    data = {"pos": torch.randn(30, 5, 3), "known": known}
    task = ob.tasks.Classification({"pos": ob.actions.Points(), "known": ob.actions.Trivial()})

    def scan_by(model):
        return scan({"net": model}, data, "rotations3d:6", task, batch_size=12)

    assert scan_by(lambda batch: batch["known"].nan_to_num(0.0)).complete
    words = f"got NaN or infinity, for which model 'net' returns NaN .*sample {sample} at"
    with pytest.raises(InputError, match=words):
        scan_by(lambda batch: batch["known"])


def test_large_numbers_are_not_taken_for_infinity():
    images = torch.full((6, 1, 4, 4), 60000.0, dtype=torch.float16)
    assert scan(lambda x: torch.zeros(len(x), 2), images).complete
    largest = torch.full((6, 1, 4, 4), 3e38)
    assert scan(lambda x: torch.zeros(len(x), 2), largest, group="cyclic:4").complete


def test_a_nan_in_the_middle_names_model_sample_and_element(digits, tmp_path):
    images = torch.as_tensor(digits[0]).clone()
    images[17, 0, 0, 0] = 77

    def fragile(x):
        bad = (x.amax((1, 2, 3)) > 70)[:, None]
        return torch.where(bad, torch.nan, linear(x))

    with pytest.raises(
        ModelError, match="'fragile': NaN or infinite output for sample 17 at angle"
    ):
        scan({"fragile": fragile}, (images, digits[1]), group="cyclic:12", out=tmp_path / "a.zarr")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_a_unit_that_begins_before_its_store_is_made_is_the_same(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    data = torch.rand(40, 1, 8, 8), torch.arange(40) % 10
    given = {"group": "rotations:7", "task": "classification", "chunk": 16, "progress": False}
    begun = ob.scan(net, data, out=tmp_path / "begun", **given)
    parted = ob.scan(net, data, out=tmp_path / "parted", part="1/1", **given)
    assert begun.complete
    for name in begun.arrays:
        np.testing.assert_array_equal(begun.arrays[name][...], parted.arrays[name][...])


def test_a_scan_in_memory_holds_numpy_arrays_that_sort_and_give_items():
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(net, (images[:6], labels[:6]), group="rotations:3", task="classification",
                   progress=False)  # fmt: skip
    score = scan.data["score"].isel(model=0)
    assert not scan.data.chunks
    assert score.mean("element").argsort().shape == (6,)
    assert isinstance(score[0, 0].item(), float)
    assert "dask" not in repr(scan.data)
