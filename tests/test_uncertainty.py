"""Regression with uncertainty: forms of answers, how covariances turn, what is stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import actions, groups, tasks
from orbical.errors import InputError, ModelError
from orbical.tasks.uncertainties import moved_uncertainty_covariance


def vectors(count: int = 12, width: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def covariance_along(x: torch.Tensor) -> torch.Tensor:
    """An equivariant covariance: 1 everywhere, and more along the vector itself."""
    return torch.eye(x.shape[-1]) + x[..., :, None] * x[..., None, :]


def test_a_bare_tensor_is_a_mean_in_every_form():
    for form in (None, "variance", "covariance", "parts", "evidential"):
        assert set(tasks.Regression(uncertainty=form).read(torch.zeros(3))) == {"mean"}


def test_tuples_and_names_are_read_alike():
    mean, variance = torch.zeros(3), torch.ones(3)
    task = tasks.Regression(uncertainty="variance")
    for raw in ((mean, variance), {"mean": mean, "variance": variance}):
        assert task.read(raw)["variance"].shape == (3, 1)
    evidence = [torch.full((3, 2), value) for value in (0.0, 2.0, 3.0, 4.0)]
    found = tasks.Regression(uncertainty="evidential").read(evidence)
    assert set(found) == {"mean", "nu", "alpha", "beta"}


@pytest.mark.parametrize(
    ("task", "raw", "words"),
    [
        (tasks.Regression(), (torch.zeros(2), torch.ones(2)), "pass uncertainty="),
        (
            tasks.Regression(),
            {"mean": torch.zeros(2), "variance": torch.ones(2)},
            "pass uncertainty='variance'",
        ),
        (tasks.Regression(), {"value": 1}, "got a dictionary of 'value'"),
        (
            tasks.Regression(uncertainty="evidential"),
            (torch.zeros(2), torch.ones(2)),
            "(gamma, nu, alpha, beta)",
        ),
        (
            tasks.Regression(uncertainty="variance"),
            (torch.zeros(2, 3), torch.ones(2, 2)),
            "of 1 or 3 numbers for each mean",
        ),
        (
            tasks.Regression(None, "vector", uncertainty="variance"),
            (torch.zeros(2, 3), torch.ones(2, 3)),
            "which rotate, got 3; pass uncertainty='covariance'",
        ),
        (
            tasks.Regression(None, "1x0e + 1x1o", uncertainty="variance"),
            (torch.zeros(2, 4), torch.ones(2, 4)),
            "which rotate",
        ),
        (
            tasks.Regression(None, "vector", uncertainty="covariance"),
            (torch.zeros(2, 3), torch.ones(2, 3)),
            "expected a covariance of shape (2, 3, 3)",
        ),
        (
            tasks.Regression(uncertainty="variance"),
            (torch.zeros(2), torch.ones(3)),
            "expected a variance of real numbers",
        ),
    ],
)
def test_answers_of_another_form_are_explained(task, raw, words):
    with pytest.raises(ModelError) as caught:
        task.read(raw)
    assert words in str(caught.value)


def test_an_unknown_form_is_named():
    with pytest.raises(InputError, match="did you mean 'evidential'"):
        tasks.Regression(uncertainty="evidental")


def test_diagonal_variances_are_taken_where_nothing_turns():
    wide = (torch.zeros(2, 3), torch.ones(2, 3))
    assert tasks.Regression(uncertainty="variance").read(wide)["variance"].shape == (2, 3)
    scalars = tasks.Regression(None, "2x0e + 1x0o", uncertainty="variance")
    assert scalars.read(wide)["variance"].shape == (2, 3)


NAN, ONE = float("nan"), torch.ones(2)


@pytest.mark.parametrize(
    ("form", "parts", "words"),
    [
        ("variance", (ONE, torch.tensor([1.0, 0.0])), "a variance that is not positive"),
        ("variance", (ONE, torch.tensor([1.0, NAN])), "NaN or infinite output"),
        ("parts", (ONE, -ONE, 2 * ONE), "a negative aleatoric variance"),
        ("parts", (ONE, 0 * ONE, 0 * ONE), "a variance that is not positive"),
        ("evidential", (ONE, ONE, ONE, ONE), "alpha <= 1, where no variance exists,"),
        ("evidential", (ONE, -ONE, 2 * ONE, ONE), "a nu that is not positive"),
        ("evidential", (ONE, ONE, 2 * ONE, 0 * ONE), "a beta that is not positive"),
        (
            "covariance",
            (torch.zeros(2, 2), torch.tensor([[1.0, 2.0], [2.0, 1.0]]).expand(2, 2, 2)),
            "a covariance that is not positive definite",
        ),
        (
            "covariance",
            (torch.zeros(2, 2), torch.tensor([[1.0, 0.5], [0.0, 1.0]]).expand(2, 2, 2)),
            "a covariance that is not symmetric",
        ),
    ],
)
def test_what_is_no_distribution_is_refused_before_any_work(form, parts, words, tmp_path):
    def model(x):
        return tuple(part[0].expand(len(x), *part.shape[1:]) for part in map(_last_first, parts))

    task = tasks.Regression(actions.Vectors(), uncertainty=form)
    out = tmp_path / "none.zarr"
    with pytest.raises(ModelError, match=f"model 'model': {words} for sample . at"):
        ob.scan(model, vectors(4, 2), group="cyclic:4", task=task, out=out, progress=False)
    assert not out.exists()


def _last_first(part: torch.Tensor) -> torch.Tensor:
    return part.flip(0)


def test_what_goes_wrong_later_names_sample_and_element():
    x = vectors(8, 2)
    x[5] = torch.tensor([50.0, 0.0])

    def model(x):
        return x.sum(-1), 1 - (x[:, 1] > 40).float()

    task = tasks.Regression(actions.Vectors(), uncertainty="variance")
    with pytest.raises(ModelError, match="not positive for sample 5 at angle 90"):
        ob.scan(model, x, group="cyclic:4", task=task, progress=False)


def test_evidential_variance_is_aleatoric_plus_epistemic():
    x = vectors(10, 2)

    def model(x):
        one = torch.ones(len(x), 1)
        return x.sum(-1, keepdim=True), 2 * one, 3 * one, 4 * one

    task = tasks.Regression(actions.Vectors(), uncertainty="evidential")
    scan = ob.scan(model, (x, x.sum(-1)), group="cyclic:4", task=task, progress=False)
    for name, value in (("aleatoric", 2.0), ("epistemic", 1.0), ("variance", 3.0)):
        np.testing.assert_allclose(scan.data[name].values, value)
    assert scan.record.views.detail == "intervals"


@pytest.mark.parametrize(
    ("representation", "group", "width"),
    [
        ("vector", "rotations:7", 2),
        ("vector", "rotations3d:9", 3),
        ("1x0e + 1x1o", "rotations3d:9", 3),
    ],
)
def test_covariances_turn_with_the_representation(representation, group, width):
    def answer(x):
        return x if representation == "vector" else torch.cat([x.norm(dim=-1)[:, None], x], -1)

    x = vectors(6, width)
    task = tasks.Regression(actions.Vectors(), representation, uncertainty="covariance")

    def model(x):
        y = answer(x)
        return y, covariance_along(y)

    truth = answer(x)
    scan = ob.scan(model, (x, truth), group=group, task=task, progress=False)
    assert float(scan.data["variance_gap"].max()) < 1e-5
    assert float(abs(scan.data["error"]).max()) < 1e-5
    expected = covariance_along(truth)
    found = torch.from_numpy(scan.data["consensus_covariance"].values[0])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    diagonal = scan.data["covariance"].values.diagonal(axis1=-2, axis2=-1)
    np.testing.assert_array_equal(scan.data["variance"].values, diagonal)


def test_a_covariance_fixed_in_space_has_a_gap():
    x = vectors(6, 2)
    fixed = torch.diag(torch.tensor([4.0, 1.0]))
    task = tasks.Regression(actions.Vectors(), "vector", uncertainty="covariance")
    scan = ob.scan(
        lambda x: (x, fixed.expand(len(x), 2, 2)), x, group="cyclic:4", task=task, progress=False
    )
    # The un-transformed covariances are diag(4, 1) and diag(1, 4) in turn, their mean 2.5 each.
    np.testing.assert_allclose(scan.data["variance_gap"].values, np.sqrt(2 * 1.5**2), rtol=1e-5)
    middle = np.broadcast_to(2.5 * np.eye(2), (1, 6, 2, 2))
    np.testing.assert_allclose(scan.data["consensus_covariance"].values, middle, atol=1e-5)


def test_a_covariance_turns_as_the_outer_product_of_vectors():
    group = groups.rotations3d(5)
    x = vectors(4)
    action = actions.Vectors()
    moved = action.apply(group, x)
    products = (x[:, :, None] * x[:, None])[None]
    outer = moved_uncertainty_covariance(action, actions.Trivial(), group, products)
    torch.testing.assert_close(outer, moved[..., :, None] * moved[..., None, :])


def test_points_take_their_covariances_along():
    x = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0))
    task = tasks.Regression(actions.Points(), "vector", True, uncertainty="covariance")
    group = ob.groups.product(ob.groups.permutations(5, 4), ob.groups.rotations3d(4))
    scan = ob.scan(
        lambda x: (x, covariance_along(x)), (x, x), group=group, task=task, progress=False
    )
    assert float(scan.data["variance_gap"].max()) < 1e-5
    assert float(abs(scan.data["error"]).max()) < 1e-5


def test_points_take_their_variances_along():
    x = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0))
    task = tasks.Regression(actions.Points(), "vector", True, uncertainty="variance")
    scan = ob.scan(
        lambda x: (x, x.square().sum(-1) + 1), x, group="permutations:5", task=task, progress=False
    )
    assert float(scan.data["variance_gap"].max()) < 1e-5
    expected = x.square().sum(-1, keepdim=True) + 1
    np.testing.assert_allclose(scan.data["consensus_variance"].values[0], expected, rtol=1e-5)


def test_the_form_is_part_of_the_record(tmp_path):
    x = vectors(4, 2)
    out = tmp_path / "run.zarr"
    settings = dict(group="cyclic:4", out=out, progress=False)
    model = lambda x: (x.sum(-1), torch.ones(len(x)))  # noqa: E731
    task = tasks.Regression(actions.Vectors(), uncertainty="variance")
    ob.scan(model, x, task=task, **settings)
    plain = tasks.Regression(actions.Vectors())
    with pytest.raises(ob.errors.StoreError, match="another task"):
        ob.scan(lambda x: x.sum(-1), x, task=plain, **settings)
