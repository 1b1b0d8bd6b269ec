"""Aggregates, individual responses, consensus and gaps, against loops over plain numbers."""

from __future__ import annotations

import json
import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical.errors import InputError

COUNT = 37  # more than a chunk of samples, and no multiple of one


def linear(seed: int, classes: int = 10) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, classes))


@pytest.fixture(scope="module")
def labeled() -> ob.Scan:
    images, labels = ob.datasets.digits()
    return ob.scan(
        {"first": linear(0), "second": linear(1)},
        (images[:COUNT], labels[:COUNT]),
        group="rotations:8",
        task="classification",
        keep="probabilities",
        chunk=16,
        progress=False,
    )


@pytest.fixture(scope="module")
def unlabeled() -> ob.Scan:
    images, _ = ob.datasets.digits()
    return ob.scan(
        linear(0), images[:10], group="rotations:8", task="classification", progress=False
    )


@pytest.fixture(scope="module")
def scaled() -> ob.Scan:
    """A group whose elements do not count alike, and a score of which less is better."""
    images, labels = ob.datasets.digits()
    return ob.scan(
        {"first": linear(0, 1), "second": linear(1, 1)},
        (images[:12], labels[:12].float()),
        group="scales:0.5:2:5",
        task="regression",
        progress=False,
    )


def half_finished(scan: ob.Scan) -> xr.Dataset:
    """The data as a stopped run leaves them: the second model lacks the last samples."""
    data = scan.data.copy(deep=True)
    for name in data.data_vars:
        values = data[name]
        if "model" in values.dims:
            missing = {"f": np.nan, "i": -1, "b": False}[values.dtype.kind]
            values[{"model": 1, "sample": slice(20, None)}] = missing
    return data


def test_the_aggregate_is_the_mean_over_samples(labeled: ob.Scan) -> None:
    found = ob.nero.aggregate(labeled)
    score = labeled.data["score"].values.astype(float)
    assert found.dims == ("model", "element")
    for model in range(2):
        for element in range(8):
            expected = sum(score[model, sample, element] for sample in range(COUNT)) / COUNT
            assert found.values[model, element] == pytest.approx(expected, abs=1e-12)


def test_the_aggregate_by_label_is_the_mean_over_the_samples_of_each_label(
    labeled: ob.Scan,
) -> None:
    found = ob.nero.aggregate(labeled, by="label", metric="confidence")
    values, labels = labeled.data["confidence"].values.astype(float), labeled.data["label"].values
    assert found.dims == ("model", "label", "element")
    assert found["label"].values.tolist() == sorted({*labels.tolist()})
    for place, label in enumerate(found["label"].values):
        rows = [sample for sample in range(COUNT) if labels[sample] == label]
        assert found["samples"].values[place] == len(rows)
        for model in range(2):
            expected = sum(values[model, row] for row in rows) / len(rows)
            np.testing.assert_allclose(found.values[model, place], expected, rtol=0, atol=1e-12)


def test_any_coordinate_on_the_samples_can_group_them(labeled: ob.Scan) -> None:
    names = np.array(["even", "odd"])[np.arange(COUNT) % 2]
    data = labeled.data.assign_coords(parity=("sample", names))
    found = ob.nero.aggregate(data, by="parity")
    assert found["parity"].values.tolist() == ["even", "odd"]
    expected = labeled.data["score"].values[:, 1::2].astype(float).mean(1)
    np.testing.assert_allclose(found.sel(parity="odd").values, expected, atol=1e-12)


def test_the_weighted_mean_over_labels_is_the_aggregate(labeled: ob.Scan) -> None:
    by_label = ob.nero.aggregate(labeled, by="label")
    whole = by_label.weighted(by_label["samples"]).mean("label")
    np.testing.assert_allclose(whole.values, ob.nero.aggregate(labeled).values, atol=1e-12)


@pytest.mark.parametrize("metric", ["score", "correct", "confidence"])
@pytest.mark.parametrize("by", [None, "label"])
def test_unfinished_samples_are_left_out(labeled: ob.Scan, metric: str, by: str | None) -> None:
    found = ob.nero.aggregate(half_finished(labeled), by=by, metric=metric)
    expected = ob.nero.aggregate(labeled.data.isel(sample=slice(20)), by=by, metric=metric)
    complete = ob.nero.aggregate(labeled, by=by, metric=metric)
    xr.testing.assert_allclose(
        found.isel(model=0).drop_vars("samples", errors="ignore"),
        complete.isel(model=0).drop_vars("samples", errors="ignore"),
    )
    xr.testing.assert_allclose(
        found.isel(model=1).drop_vars("samples", errors="ignore"),
        expected.isel(model=1).drop_vars("samples", errors="ignore"),
    )


def test_a_stopped_run_can_be_looked_at(tmp_path) -> None:
    images, labels = ob.datasets.digits()
    calls = 0
    net = linear(0)

    def stops(batch: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls > 20:
            raise KeyboardInterrupt
        return net(batch)

    with pytest.raises(ob.errors.Interrupted):
        ob.scan(
            {"net": stops},
            (images[:30], labels[:30]),
            group="rotations:8",
            batch_size=10,
            chunk=10,
            task="classification",
            out=tmp_path / "run.zarr",
            device="cpu",
            progress=False,
        )
    stopped = ob.load(tmp_path / "run.zarr")
    assert 0 < stopped.share_done < 1
    rows = int(ob.nero.summary(stopped)["samples"].item())
    assert rows == round(stopped.share_done * 30)
    expected = stopped.data["score"].values[:, :rows].astype(float).mean(1)
    np.testing.assert_allclose(ob.nero.aggregate(stopped).values, expected, atol=1e-12)


def test_a_model_without_any_finished_sample_is_missing_not_zero(labeled: ob.Scan) -> None:
    data = half_finished(labeled).isel(sample=slice(20, None))
    assert np.isnan(ob.nero.aggregate(data, metric="correct").values[1]).all()
    table = ob.nero.summary(data)
    assert np.isnan(table["accuracy"].values[1]).all()
    assert table["samples"].values.tolist() == [COUNT - 20, 0]
    assert table["worst_element"].values[1] == -1
    assert table["worst_name"].values[1] == ""


def test_without_labels_the_score_is_against_the_consensus_and_says_so(
    unlabeled: ob.Scan, labeled: ob.Scan
) -> None:
    found = ob.nero.aggregate(unlabeled)
    assert found.attrs["metric"] == "score_vs_consensus"
    assert found.attrs["reference"] == "consensus"
    assert "consensus" in found.attrs["meaning"]
    expected = unlabeled.data["score_vs_consensus"].values.astype(float).mean(1)
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    assert ob.nero.aggregate(labeled).attrs["reference"] == "truth"


def test_attributes_tell_a_figure_all_and_can_be_written_as_json(labeled: ob.Scan) -> None:
    attributes = ob.nero.aggregate(labeled, by="label").attrs
    assert json.loads(json.dumps(attributes)) == attributes
    assert attributes["layout"] == "circle"
    assert attributes["layout_index"] == list(range(8))
    assert attributes["layout_axes"] == {"angle": [45.0 * k for k in range(8)]}
    assert attributes["group"] == "rotations:8"
    assert attributes["meaning"] == "probability of the true class"
    assert attributes["higher_is_better"] is True
    assert attributes["limits"] == [0.0, 1.0]
    assert ob.nero.aggregate(labeled, metric="action_defect").attrs["higher_is_better"] is False
    assert "higher_is_better" not in ob.nero.aggregate(labeled, metric="confidence").attrs


def test_an_individual_response_is_the_stored_row(labeled: ob.Scan) -> None:
    one = ob.nero.individual(labeled, 5)
    assert one.dims == ("model", "element")
    assert int(one["sample"]) == 5
    assert int(one["label"]) == int(labeled.data["label"][5])
    np.testing.assert_array_equal(one.values, labeled.data["score"].values[:, 5])
    several = ob.nero.individual(labeled, [7, 2], metric="predicted")
    assert several["sample"].values.tolist() == [7, 2]
    np.testing.assert_array_equal(several.values, labeled.data["predicted"].values[:, [7, 2]])
    assert several.attrs["metric"] == "predicted"


def test_consensus_gives_the_mean_answer_and_holds_it_against_the_truth(labeled: ob.Scan) -> None:
    found = ob.nero.consensus(labeled)
    probabilities = labeled.data["probabilities"].values.astype(float)
    mean = sum(probabilities[:, :, k] / 8 for k in range(8))
    np.testing.assert_allclose(found["consensus"].values, mean, atol=1e-6)
    labels = labeled.data["label"].values
    for sample in range(COUNT):
        np.testing.assert_allclose(
            found["consensus_vs_truth"].values[:, sample],
            mean[:, sample, labels[sample]],
            atol=1e-6,
        )


def test_consensus_without_labels_has_nothing_to_say_of_the_truth(unlabeled: ob.Scan) -> None:
    assert {*ob.nero.consensus(unlabeled).data_vars} == {"consensus", "score_vs_consensus"}


def test_the_invariance_gap_is_the_root_mean_square_distance_from_the_mean_answer(
    labeled: ob.Scan,
) -> None:
    found = ob.nero.invariance_gap(labeled)
    probabilities = labeled.data["probabilities"].values.astype(float)
    for model in range(2):
        squares = []
        for sample in range(COUNT):
            answers = probabilities[model, sample]
            squares.append(sum(((answer - answers.mean(0)) ** 2).sum() / 8 for answer in answers))
            assert float(found["per_sample"][model, sample]) == pytest.approx(
                squares[-1] ** 0.5, rel=1e-4
            )
        assert float(found["total"][model]) == pytest.approx(np.mean(squares) ** 0.5, rel=1e-5)


def test_the_action_defect_is_summed_up_by_the_weights_of_the_group(scaled: ob.Scan) -> None:
    found = ob.nero.action_defect(scaled)
    curve = scaled.data["action_defect"].values.astype(float).mean(0)
    np.testing.assert_allclose(found["curve"].values, curve, atol=1e-12)
    assert float(found["mean"]) == pytest.approx(float(curve @ scaled.group.weights), rel=1e-9)
    assert len({*scaled.group.weights}) > 1
    assert int(found["worst_element"]) == int(curve.argmax())
    assert float(found["worst"]) == pytest.approx(curve.max())


def test_the_summary_of_a_classification_agrees_with_a_loop(labeled: ob.Scan) -> None:
    table = ob.nero.summary(labeled)
    data = labeled.data
    for model, name in enumerate(["first", "second"]):
        accuracy = data["correct"].values[model].mean(0)
        confidence = data["confidence"].values[model].astype(float).mean(0)
        score = data["score"].values[model].astype(float).mean(0)
        worst = int(np.lexsort([score, accuracy])[0])
        row = table.sel(model=name)
        np.testing.assert_allclose(
            row["accuracy"].values, [accuracy[0], accuracy.mean(), accuracy[worst]], atol=1e-9
        )
        np.testing.assert_allclose(
            row["confidence"].values,
            [confidence[0], confidence.mean(), confidence[worst]],
            atol=1e-9,
        )
        assert int(row["worst_element"]) == worst
        assert str(row["worst_name"].values) == f"angle {45 * worst}"
    assert table["samples"].values.tolist() == [COUNT, COUNT]
    assert table["place"].values.tolist() == ["identity", "mean", "worst"]
    assert table.attrs["reference"] == "truth"


def test_the_summary_weighs_the_orbit_and_takes_the_largest_error_as_worst(
    scaled: ob.Scan,
) -> None:
    table = ob.nero.summary(scaled)
    assert "accuracy" not in table
    error = scaled.data["score"].values.astype(float).mean(1)
    identity = scaled.group.identity
    assert identity not in (0, 4)
    np.testing.assert_allclose(table["score"].sel(place="identity"), error[:, identity])
    np.testing.assert_allclose(table["score"].sel(place="mean"), error @ scaled.group.weights)
    np.testing.assert_allclose(table["score"].sel(place="worst"), error.max(1))
    assert table["worst_element"].values.tolist() == error.argmax(1).tolist()


def test_of_equally_accurate_elements_the_one_with_the_worst_score_is_the_worst(
    labeled: ob.Scan,
) -> None:
    data = labeled.data.load()
    score = data["score"].copy()
    score[...] = 0.5
    score[0, :, 3], score[1, :, 5] = 0.2, 0.1
    correct = xr.zeros_like(data["correct"])
    correct[0, :, 4:], correct[1, :, :2] = 1, 1
    found = ob.nero.summary(data.assign(score=score, correct=correct))
    assert found["worst_element"].values.tolist() == [3, 5]
    np.testing.assert_allclose(found["score"].sel(place="worst"), [0.2, 0.1], rtol=1e-6)


def test_the_summary_works_without_labels(unlabeled: ob.Scan) -> None:
    table = ob.nero.summary(unlabeled)
    assert {"confidence", "score"} <= {*table.data_vars}
    assert not {"accuracy", "consensus_vs_truth"} & {*table.data_vars}
    assert table.attrs["reference"] == "consensus"


def test_data_of_a_scan_serve_as_well_as_the_scan(labeled: ob.Scan) -> None:
    xr.testing.assert_identical(ob.nero.summary(labeled), ob.nero.summary(labeled.data))


def test_aggregates_need_memory_for_a_few_chunks_only() -> None:
    samples, elements, chunk = 150_000, 72, 2_000
    group = ob.groups.rotations(elements)
    values = da.random.default_rng(0).random(
        (1, samples, elements), chunks=(1, chunk, elements), dtype=np.float32
    )
    data = xr.Dataset(
        {
            "score": (("model", "sample", "element"), values),
            "score_vs_consensus": (("model", "sample", "element"), values),
        },
        coords={"model": ["net"], "label": ("sample", np.arange(samples) % 10)},
        attrs={
            "group": group.spec,
            "task": "classification",
            "score": "probability of the true class",
            "higher_is_better": True,
        },
    )
    tracemalloc.start()
    with dask.config.set(scheduler="synchronous"):
        found = ob.nero.aggregate(data, by="label")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.abs(found.values - 0.5).max() < 0.02
    assert peak < values.nbytes / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda scan: ob.nero.aggregate(scan, metric="scor"), "did you mean 'score'"),
        (lambda scan: ob.nero.aggregate(scan, metric="consensus"), "metric: unknown name"),
        (lambda scan: ob.nero.aggregate(scan, metric="predicted"), "has a mean"),
        (lambda scan: ob.nero.aggregate(scan, by="labels"), "did you mean 'label'"),
        (
            lambda scan: ob.nero.individual(scan, COUNT),
            f"0 to {COUNT - 1}, got {COUNT}",
        ),
        (lambda scan: ob.nero.individual(scan, -1), "got -1"),
        (
            lambda scan: ob.nero.individual(scan, 1.5),
            "sample: expected an integer",
        ),
        (lambda scan: ob.nero.individual(scan, "3"), "got '3'"),
        (lambda scan: ob.nero.aggregate(np.zeros(3)), "its data, got ndarray"),
        (
            lambda scan: ob.nero.summary(scan.data.isel(element=slice(4))),
            "expected all 8 elements",
        ),
    ],
)
def test_bad_requests_are_refused_by_name(labeled: ob.Scan, call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(labeled)


def test_given_matrices_need_the_scan_itself() -> None:
    images, labels = ob.datasets.digits()
    group = ob.groups.from_matrices(plane=[np.eye(2), np.diag([-1.0, 1.0])])
    scan = ob.scan(
        linear(0), (images[:5], labels[:5]), group=group, task="classification", progress=False
    )
    assert ob.nero.aggregate(scan).sizes["element"] == 2
    with pytest.raises(InputError, match="pass the scan instead"):
        ob.nero.aggregate(scan.data)


def test_violations_are_those_of_molecules():
    scan = ob.scan(
        lambda x: x.flatten(1)[:, :2],
        (torch.rand(3, 1, 4, 4), torch.tensor([0, 1, 0])),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    with pytest.raises(ob.errors.InputError, match="a scan of the task atoms, got one of the task"):
        ob.nero.violations(scan)
