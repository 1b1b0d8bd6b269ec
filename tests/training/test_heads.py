"""Heads: units of the targets, positive variances, and exact equivariance where it is claimed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import orbical as ob
from orbical import losses, training
from orbical.actions.on_points_and_vectors import _irreps_matrices
from orbical.errors import InputError
from orbical.training.heads import FLOOR, floored_softplus

GENERATOR = torch.Generator().manual_seed(0)


def turns(count: int, size: int) -> torch.Tensor:
    """Random orthogonal matrices, reflections among them, in double precision."""
    given = torch.randn(count, size, size, generator=GENERATOR, dtype=torch.float64)
    return torch.linalg.qr(given).Q


@pytest.mark.parametrize("head", [training.MeanVarianceHead, training.EvidentialHead])
@pytest.mark.parametrize(("targets", "shared"), [(1, False), (3, False), (3, True)])
def test_a_head_answers_in_the_shape_of_its_targets(head: type, targets: int, shared: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), head(8, targets, shared=shared))
    center, *others = model(torch.randn(6, 4))
    assert center.shape == ((6,) if targets == 1 else (6, 3))
    for part in others:
        assert part.shape == ((6,) if targets == 1 else (6, 1) if shared else (6, 3))
    loss = losses.gaussian_nll if len(others) == 1 else losses.nig_nll
    loss(center, *others, torch.randn(center.shape)).backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_answers_are_distributions_whatever_the_features(dtype: torch.dtype, size: float) -> None:
    features = (torch.randn(50, 8) * size).to(dtype)
    mean, variance = training.MeanVarianceHead(8, 2).to(dtype)(features)
    assert bool((variance > 0).all() & variance.isfinite().all() & mean.isfinite().all())
    found = training.EvidentialHead(8, 2).to(dtype)(features)
    assert bool((found.alpha > 1).all() & (found.nu > 0).all() & (found.beta > 0).all())
    assert bool(found.variance.isfinite().all())


def test_z_scoring_is_undone_at_the_output() -> None:
    targets = torch.stack([1000 + 3 * torch.randn(500), -5 + 0.01 * torch.randn(500)], 1)
    for head in (training.MeanVarianceHead(4, 2), training.EvidentialHead(4, 2)):
        nn.init.zeros_(head.linear.weight)
        nn.init.zeros_(head.linear.bias)
        head.fit_scale(targets)
        center = head(torch.zeros(1, 4))[0][0]
        torch.testing.assert_close(center, targets.mean(0), rtol=1e-5, atol=1e-5)
        spread = head(torch.zeros(1, 4)).variance[0]
        ratio = spread / targets.var(0, correction=0)
        torch.testing.assert_close(ratio[0], ratio[1], rtol=1e-4, atol=1e-4)
    assert "scale" in head.state_dict()  # what was measured travels with the weights


def test_a_change_of_units_changes_the_answer_and_nothing_else() -> None:
    features, targets = torch.randn(20, 4), torch.randn(20)
    head = training.EvidentialHead(4).fit_scale(targets)
    before = head(features)
    after = head.fit_scale(100 * targets + 7)(features)
    torch.testing.assert_close(after.gamma, 100 * before.gamma + 7, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(after.aleatoric, 1e4 * before.aleatoric, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(after.nu, before.nu)


def test_a_constant_target_keeps_a_unit() -> None:
    head = training.MeanVarianceHead(4).fit_scale(torch.full((10,), 3.0))
    assert head.scale.item() == 1
    assert head.center.item() == 3


def test_a_head_learns_noise_and_its_place() -> None:
    torch.manual_seed(0)
    x = torch.rand(1000, 1) * 2 - 1
    y = 50 + 10 * (x[:, 0] + (0.05 + 0.3 * (x[:, 0] > 0)) * torch.randn(1000))
    head = training.MeanVarianceHead(32).fit_scale(y)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), head)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        losses.gaussian_nll(*model(x), y).backward()
        optimizer.step()
    deviation = model(torch.tensor([[-0.7], [0.7]])).variance.sqrt()
    assert deviation[0].item() == pytest.approx(0.5, rel=0.5)
    assert deviation[1].item() == pytest.approx(3.5, rel=0.3)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [training.VectorVarianceHead, training.VectorEvidentialHead, training.VectorCovarianceHead],
)
def test_vector_heads_are_exactly_equivariant(kind: type, size: int) -> None:
    head = kind(scalars=5, vectors=4).double().fit_scale(3 * torch.randn(50, size))
    scalars = torch.randn(7, 5, dtype=torch.float64)
    vectors = torch.randn(7, 4, size, dtype=torch.float64) * 3
    still = head((scalars, vectors))
    for turn in turns(6, size):
        moved = head((scalars, vectors @ turn.T))
        torch.testing.assert_close(moved[0], still[0] @ turn.T, rtol=1e-10, atol=1e-12)
        for before, after in zip(still[1:], moved[1:], strict=True):
            if before.ndim == 3:
                before = turn @ before @ turn.T
            torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-10)


def test_irreps_heads_are_exactly_equivariant() -> None:
    pytest.importorskip("e3nn")
    irreps = "3x0e + 2x1o + 2x2e"
    size = 3 + 6 + 10
    x = torch.randn(5, size, dtype=torch.float64)
    spin = turns(6, 3)
    for kind in (training.IrrepsVarianceHead, training.IrrepsCovarianceHead):
        head = kind(irreps).double().fit_scale(torch.randn(9, 3))
        still = head(x)
        for turn, matrix in zip(spin, _irreps_matrices(irreps, spin), strict=True):
            moved = head(x @ matrix.T)
            torch.testing.assert_close(moved[0], still[0] @ turn.T, rtol=1e-8, atol=1e-9)
            before = still[1]
            if before.ndim == 3:
                before = turn @ before @ turn.T
            torch.testing.assert_close(moved[1], before, rtol=1e-7, atol=1e-8)


def test_a_covariance_of_2e_is_not_a_multiple_of_one() -> None:
    pytest.importorskip("e3nn")
    found = training.IrrepsCovarianceHead("4x0e + 2x1o + 3x2e")(torch.randn(6, 25)).covariance
    values = torch.linalg.eigvalsh(found)
    assert bool((values[:, 0] > 0).all())
    assert bool((values[:, 2] > 1.05 * values[:, 0]).all())


def test_the_quadrupole_basis_is_that_of_e3nn() -> None:
    o3 = pytest.importorskip("e3nn.o3")
    points = torch.randn(10, 3, dtype=torch.float64)
    harmonics = o3.spherical_harmonics(2, points, False)
    basis = training.symmetric_from_irreps(
        torch.zeros(5, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    )
    ours = torch.einsum("ni,mij,nj->nm", points, basis, points)
    ratio = ours / harmonics
    torch.testing.assert_close(ratio, ratio[:1, :1].expand_as(ratio))
    torch.testing.assert_close((basis**2).sum((1, 2)), torch.ones(5, dtype=torch.float64))


def test_exponents_of_any_size_give_finite_covariances_and_gradients() -> None:
    for size in (0.0, 1e-8, 1.0, 1e6):
        exponent = (size * torch.randn(4, 3, 3)).requires_grad_()
        found = training.positive_definite((exponent + exponent.mT) / 2)
        assert bool(found.isfinite().all())
        assert bool((torch.linalg.eigvalsh(found.double()) > FLOOR / 2).all())
        found.sum().backward()
        assert bool(exponent.grad.isfinite().all())


@pytest.mark.parametrize("size", [2, 3])
def test_covariances_of_no_direction_go_down_to_the_floor(size: int) -> None:
    wide = torch.tensor([-40.0, -10.0, 0.0, 10.0])[:, None, None] * torch.eye(size)
    found = training.positive_definite(wide)
    usual = floored_softplus(wide[:, 0, 0])
    torch.testing.assert_close(found, usual[:, None, None] * torch.eye(size), rtol=1e-5, atol=0.0)
    assert float(found[0, 0, 0]) == pytest.approx(FLOOR, rel=1e-3)


@pytest.mark.parametrize("scalars", [-40.0, -10.0, 0.0])
def test_a_covariance_head_says_as_little_as_a_variance_head(scalars: float) -> None:
    torch.manual_seed(0)
    head = training.VectorCovarianceHead(scalars=1, vectors=2).fit_scale(3 * torch.randn(99, 3))
    with torch.no_grad():
        head.invariant.weight.copy_(torch.tensor([[1.0], [0.0], [0.0]]))
        head.invariant.bias.zero_()
    found = head((torch.full((1, 1), scalars), torch.randn(1, 2, 3))).covariance
    expected = head.scale.square() * floored_softplus(torch.tensor(scalars)) * torch.eye(3)
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_covariances_turn_with_what_they_are_made_from(size: float) -> None:
    torch.manual_seed(0)
    made = size * torch.randn(50, 3, 3, dtype=torch.float64)
    made = made + made.mT - 10 * torch.eye(3, dtype=torch.float64)
    still = training.positive_definite(made)
    for turn in turns(4, 3):
        moved = training.positive_definite(turn @ made @ turn.T)
        scale = still.abs().amax((1, 2), keepdim=True)
        assert float(((moved - turn @ still @ turn.T) / scale).abs().max()) < 1e-6


def test_gradients_are_finite_and_right_where_eigenvalues_are_alike() -> None:
    alike = torch.eye(3, dtype=torch.float64)
    for matrix in (0 * alike, -5 * alike, torch.diag(torch.tensor([1.0, 1.0, -2.0]).double())):
        given = matrix.clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda a: training.positive_definite((a + a.mT) / 2), given, atol=1e-5
        )


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 5.0, 100.0])
def test_covariances_are_positive_definite_as_they_are_stored(size: int, scale: float) -> None:
    torch.manual_seed(0)
    exponent = scale * torch.randn(5000, size, size)
    found = training.positive_definite(exponent + exponent.mT)
    assert found.dtype == torch.float32
    assert bool((found == found.mT).all())
    assert not bool(torch.linalg.cholesky_ex(found).info.any())
    losses.covariance_nll(torch.zeros(5000, size), found, torch.ones(5000, size))


@pytest.mark.parametrize(
    "kind",
    [training.VectorVarianceHead, training.VectorEvidentialHead, training.VectorCovarianceHead],
)
def test_vector_heads_answer_in_single_precision_under_autocast(kind: type) -> None:
    head = kind(scalars=5, vectors=4).fit_scale(torch.randn(50, 3))
    with torch.autocast("cpu", torch.bfloat16):
        found = head((torch.randn(7, 5), torch.randn(7, 4, 3)))
    assert {part.dtype for part in found} == {torch.float32}


class _Backbone(nn.Module):
    """Norms as scalars, the vector and a turned one as vectors: equivariant in the plane."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(1, 16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scalars = torch.tanh(self.hidden(x.norm(dim=-1, keepdim=True)))
        return scalars, torch.stack([x, x * scalars[:, :1]], 1)


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (training.VectorVarianceHead, "variance"),
        (training.VectorCovarianceHead, "covariance"),
        (training.VectorEvidentialHead, "evidential"),
    ],
)
def test_a_scan_finds_no_gap_in_an_equivariant_head(head: type, form: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(_Backbone(), head(16, 2))
    x = torch.randn(20, 2)
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty=form)
    scan = ob.scan(model, (x, 2 * x), group="rotations:12", task=task, progress=False)
    assert float(scan.data["invariance_gap"].max()) < 1e-5
    assert float(scan.data["variance_gap"].max()) < 1e-4
    curve = ob.calibration.along_orbit(scan, "mahalanobis_calibration")
    assert float(curve.max() - curve.min()) < 0.02


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: training.EvidentialHead(0), "features: expected an integer"),
        (lambda: training.MeanVarianceHead(4, 0), "targets: expected an integer"),
        (lambda: training.MeanVarianceHead(4, 2).fit_scale(torch.randn(9)), "[n, 2] with n >= 2"),
        (
            lambda: training.MeanVarianceHead(4).fit_scale(torch.tensor([1.0, float("nan")])),
            "NaN or infinity",
        ),
        (lambda: training.VectorVarianceHead(4, 2)(torch.randn(3, 4)), "(scalars [n, S]"),
        (
            lambda: training.VectorVarianceHead(4, 2)((torch.randn(3, 4), torch.randn(3, 2))),
            "expected scalars [n, S] and vectors [n, V, d]",
        ),
        (lambda: training.IrrepsCovarianceHead("4x0e + 2x1o"), "expected features of 2e"),
    ],
)
def test_bad_input_is_named(make, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)
