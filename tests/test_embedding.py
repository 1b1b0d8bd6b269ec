"""Maps of responses: against scikit-learn, seeded, bounded in memory, and with missing samples."""

from __future__ import annotations

import functools
import sys
import tracemalloc

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import spearmanr

import orbical as ob
from orbical.errors import InputError, MissingExtra

GROUP = ob.groups.rotations(12)


def data_of(responses: np.ndarray, group: ob.groups.Group = GROUP) -> xr.Dataset:
    """The data of a scan with given responses `[model, sample, element]`."""
    models, samples, _ = responses.shape
    values = (("model", "sample", "element"), responses.astype(np.float32))
    return xr.Dataset(
        {"score": values, "score_vs_consensus": values},
        coords={
            "model": [f"net {i}" for i in range(models)],
            "label": ("sample", np.arange(samples) % 10),
            "weight": ("element", group.weights),
        },
        attrs={
            "group": group.spec,
            "task": "classification",
            "score": "probability of the true class",
            "higher_is_better": True,
        },
    )


def turning(samples: int, models: int = 1, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    """Responses that are good in one direction: a bent sheet of two parameters in 12 dimensions."""
    generator = np.random.default_rng(seed)
    towards = generator.uniform(0, 4, (models, samples, 1))
    depth = generator.uniform(0.2, 1, (models, samples, 1))
    angle = np.deg2rad(GROUP.coords["angle"])
    clean = 0.5 + 0.5 * depth * np.cos(angle - towards)
    return clean + noise * generator.normal(size=clean.shape)


def same_up_to_signs(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())


def test_pca_equals_that_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    responses = turning(200)
    found = ob.embedding.embed(data_of(responses), "pca", model="net 0", dims=3)
    expected = PCA(3).fit_transform(responses[0].astype(np.float32).astype(float))
    # By the weights of the group the distance is a mean over the 12 elements, not a sum.
    same_up_to_signs(found.values * np.sqrt(12), expected, 1e-5)


def test_isomap_equals_that_of_scikit_learn() -> None:
    from sklearn.manifold import Isomap

    responses = turning(400, noise=0.0)
    found = ob.embedding.embed(data_of(responses), "isomap", model="net 0")
    expected = Isomap(n_neighbors=ob.embedding.NEIGHBORS).fit_transform(responses[0])
    same_up_to_signs(found.values * np.sqrt(12), expected, 1e-3)


def test_isomap_from_landmarks_agrees_with_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_of(turning(900))
    exact = ob.embedding.embed(data, "isomap", model="net 0").values
    monkeypatch.setattr(ob.embedding, "EXACT_SAMPLES", 500)
    monkeypatch.setattr(ob.embedding, "LANDMARKS", 200)
    some = ob.embedding.embed(data, "isomap", model="net 0").values
    for component in range(2):
        assert abs(np.corrcoef(exact[:, component], some[:, component])[0, 1]) > 0.99


def test_isomap_joins_islands_and_takes_equal_responses_once() -> None:
    left, right = np.zeros((1, 40, 12)), np.ones((1, 40, 12))
    spread = turning(100)
    data = data_of(np.concatenate([left, right, 5 + spread], axis=1))
    found = ob.embedding.embed(data, "isomap", model="net 0").values
    assert np.isfinite(found).all()
    assert np.ptp(found[:40], axis=0).max() == 0.0
    assert not np.allclose(found[0], found[40])


def test_ica_separates_independent_causes() -> None:
    generator = np.random.default_rng(1)
    causes = generator.uniform(-1, 1, (2000, 2))
    mixed = causes @ generator.normal(size=(2, 12))
    found = ob.embedding.embed(data_of(mixed[None]), "ica", model="net 0").values
    match = np.abs(spearmanr(found, causes).statistic[:2, 2:])
    assert match.max(0).min() > 0.97
    np.testing.assert_allclose(found.std(0), 1, atol=1e-3)


@pytest.mark.parametrize(
    "method", ["pca", "ica", "isomap", "tsne", pytest.param("umap", marks=pytest.mark.slow)]
)
def test_every_method_keeps_two_kinds_of_response_apart_and_repeats_itself(method: str) -> None:
    if method == "umap":
        pytest.importorskip("umap")
    responses = np.clip(turning(120), 0, 1)
    responses[:, ::2] = 0.95 + 0.02 * responses[:, ::2]
    data = data_of(responses)
    found = ob.embedding.embed(data, method, seed=3)
    assert found.dims == ("sample", "component")
    assert found.shape == (120, 2)
    places = found.values
    assert np.isfinite(places).all()
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    same = distance.argmin(1) % 2 == np.arange(120) % 2
    assert same.mean() > 0.9
    np.testing.assert_array_equal(places, ob.embedding.embed(data, method, seed=3).values)


def test_a_sample_is_one_point_of_all_its_responses() -> None:
    from sklearn.decomposition import PCA

    responses = turning(60, models=2)
    found = ob.embedding.embed(data_of(responses), "pca")
    assert found.dims == ("sample", "component")
    beside = np.concatenate([*responses.astype(np.float32).astype(float)], axis=1)
    same_up_to_signs(found.values * np.sqrt(12), PCA(2).fit_transform(beside), 1e-5)


def test_responses_of_all_models_share_one_map() -> None:
    responses = turning(60, models=2)
    responses[1] = responses[0, ::-1]
    responses[1, 0] = responses[0, 30]
    first, second = ob.embedding.embed(data_of(responses), "pca", points="responses").values
    np.testing.assert_allclose(second[1:], first[::-1][1:], atol=1e-9)
    np.testing.assert_allclose(second[0], first[30], atol=1e-9)


def test_the_map_of_one_model_knows_nothing_of_the_others() -> None:
    responses = turning(60, models=2)
    both = ob.embedding.embed(data_of(responses), "pca", model="net 1")
    alone = ob.embedding.embed(data_of(responses).isel(model=[1]), "pca", model="net 1")
    assert both.dims == ("sample", "component")
    np.testing.assert_array_equal(both.values, alone.values)


def test_distances_and_moments_follow_the_weights_of_the_group() -> None:
    group = ob.groups.scales(0.5, 2, 5)
    assert group.weights[0] < group.weights[1]
    responses = np.random.default_rng(0).random((1, 30, 5))
    found = ob.embedding.embed(data_of(responses, group), "pca", model="net 0", dims=5)
    given = responses[0].astype(np.float32).astype(float)
    for i, j in [(0, 1), (5, 17)]:
        expected = sum(group.weights * (given[i] - given[j]) ** 2) ** 0.5
        assert np.linalg.norm(found.values[i] - found.values[j]) == pytest.approx(expected, 1e-5)
    mean = given @ group.weights
    np.testing.assert_allclose(found["mean"].values, mean, atol=1e-6)
    variance = ((given - mean[:, None]) ** 2) @ group.weights
    np.testing.assert_allclose(found["variance"].values, variance, atol=1e-6)
    assert found["label"].values.tolist() == [i % 10 for i in range(30)]


def test_unfinished_samples_keep_their_place_and_are_counted() -> None:
    responses = turning(40)
    whole = ob.embedding.embed(data_of(responses[:, 5:]), "pca", model="net 0")
    responses[:, :5] = np.nan
    found = ob.embedding.embed(data_of(responses), "pca", model="net 0")
    assert found.attrs["missing"] == 5
    assert np.isnan(found.values[:5]).all()
    assert np.isnan(found["mean"].values[:5]).all()
    np.testing.assert_allclose(found.values[5:], whole.values, atol=1e-9)


@pytest.mark.parametrize("method", ["pca", "ica", "isomap", "tsne"])
def test_a_model_whose_responses_are_all_alike_is_one_point(method: str) -> None:
    found = ob.embedding.embed(data_of(np.full((1, 20, 12), 0.7)), method)
    np.testing.assert_array_equal(found.values, 0)


@pytest.mark.parametrize("method", ["pca", "ica", "isomap"])
def test_an_invariant_model_whose_responses_fill_a_line_is_a_line(method: str) -> None:
    flat = np.repeat(np.linspace(0, 1, 50)[None, :, None], 12, axis=2)
    found = ob.embedding.embed(data_of(flat), method).values
    assert abs(spearmanr(found[:, 0], np.arange(50)).statistic) > 0.99
    assert np.abs(found[:, 1]).max() <= 1e-6 * np.abs(found[:, 0]).max()


@pytest.mark.parametrize(("method", "limit"), [("pca", 30), ("ica", 30), ("isomap", 75)])
def test_memory_is_not_quadratic_in_the_samples(method: str, limit: float) -> None:
    samples = 6_000  # a matrix of all pairs would take 288 MB
    data = data_of(turning(samples))
    tracemalloc.start()
    found = ob.embedding.embed(data, method, model="net 0")
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert np.isfinite(found.values).all()
    assert peak < limit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "sizes"),
    [("tsne", (2_000, 5_000)), ("umap", (5_000, 8_000))],  # umap compares all pairs up to 4,096
)
def test_memory_of_neighbor_maps_is_not_quadratic_in_the_samples(
    method: str, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sklearn.manifold

    if method == "umap":
        pytest.importorskip("umap")
    # Memory does not grow with the number of steps: the fewest that are allowed will do.
    quick = functools.partial(sklearn.manifold.TSNE, max_iter=250)
    monkeypatch.setattr(sklearn.manifold, "TSNE", quick)
    if method == "umap":
        ob.embedding.embed(data_of(turning(sizes[0])), method, model="net 0")  # compiles, once
    peaks = []
    for samples in sizes:
        data = data_of(turning(samples))
        tracemalloc.start()
        ob.embedding.embed(data, method, model="net 0")
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    pairs = (sizes[1] ** 2 - sizes[0] ** 2) * 4 / 1e6  # in single precision
    assert peaks[1] - peaks[0] < pairs / 2


def test_a_real_scan_can_be_embedded() -> None:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        {"a": net},
        (images[:30], labels[:30]),
        group="rotations:8",
        task="classification",
        progress=False,
    )
    found = ob.embedding.embed(scan, "pca", metric="confidence")
    assert found["label"].values.tolist() == labels[:30].tolist()
    assert found.attrs["metric"] == "confidence"


def test_representatives_are_distinct_and_spread() -> None:
    found = ob.embedding.embed(data_of(turning(200)), "pca", model="net 0")
    chosen = ob.embedding.representatives(found, 6)
    assert len({*chosen.tolist()}) == 6
    places = found.values[chosen]
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)[~np.eye(6, dtype=bool)]
    assert apart.min() > 0.2 * np.ptp(found.values, axis=0).max()


def test_umap_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtra, match=r"orbical\[umap\]"):
        ob.embedding.embed(data_of(turning(30)), "umap")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "t-sne"}, "did you mean 'tsne'"),
        ({"metric": "scores"}, "did you mean 'score'"),
        ({"model": "net"}, "model: unknown name 'net'; did you mean 'net 0'"),
        ({"dims": 0}, "dims: expected an integer >= 1, got 0"),
        ({"dims": 4, "method": "tsne"}, "dims: expected at most 3 for t-SNE, got 4"),
        ({"seed": -1}, "seed: expected an integer >= 0, got -1"),
    ],
)
def test_bad_requests_are_refused_by_name(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ob.embedding.embed(data_of(turning(30)), **settings)


def test_too_few_finished_samples_are_refused() -> None:
    responses = turning(10)
    responses[:, 2:] = np.nan
    with pytest.raises(InputError, match="expected 4 or more finished samples to embed, got 2"):
        ob.embedding.embed(data_of(responses))
    with pytest.raises(InputError, match="expected at most 0 samples, got 1"):
        ob.embedding.representatives(xr.DataArray([[np.nan]], dims=("sample", "component")), 1)
