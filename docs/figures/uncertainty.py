"""Make the figures and numbers of the uncertainty guide.

    python docs/figures/uncertainty.py

writes pictures to docs/guide/img and prints the numbers that the guide quotes. Small networks are
trained in worlds whose noise is known, in about a minute on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import orbical as ob
from orbical import losses, training
from orbical.bounds import ValueTable, nll_optimal_bleed
from orbical.calibration.measure_tables import regression_table
from orbical.figures import save
from orbical.figures.calibration import error_along_orbit
from orbical.figures.style import INK, MODELS, PAGE, SOFT, figure, styled

IMAGES = Path(__file__).resolve().parents[1] / "guide" / "img"
Objective = Callable[[nn.Module, tuple[Tensor, Tensor]], Tensor]


def gaussian(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The Gaussian likelihood."""
    return losses.gaussian_nll(*model(batch[0]), batch[1])


def evidential(weight: float) -> Objective:
    """The evidential likelihood with a weight of its regularizer."""

    def objective(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        gamma, nu, alpha, beta = model(batch[0])
        penalty = losses.nig_regularizer(gamma, nu, alpha, batch[1])
        return losses.nig_nll(gamma, nu, alpha, beta, batch[1]) + weight * penalty

    return objective


def trained(model: nn.Module, batch: tuple[Tensor, Tensor], objective: Objective) -> nn.Module:
    """Fit a network on one batch, 2,000 steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2000)
    for _ in range(2000):
        optimizer.zero_grad()
        objective(model, batch).backward()
        optimizer.step()
        scheduler.step()
    return model.eval()


def backbone(inputs: int, width: int = 48) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())


def noise(x: Tensor) -> Tensor:
    """The true standard deviation of the noise on the line."""
    return 0.05 + 0.25 * torch.sigmoid(6 * x)


def two_kinds() -> None:
    """Draw what evidence and an ensemble say of noise, and of a gap in the data."""
    torch.manual_seed(0)
    x = torch.cat([torch.rand(300) * 0.8 - 1.0, torch.rand(300) * 0.8 + 0.2])[:, None]
    y = torch.sin(3 * x[:, 0]) + noise(x[:, 0]) * torch.randn(len(x))
    grid = torch.linspace(-1.6, 1.6, 321)[:, None]
    parts: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
    for weight in (0.0, 0.1):
        head = training.EvidentialHead(48).fit_scale(y)
        evidence = trained(nn.Sequential(backbone(1), head), (x, y), evidential(weight))(grid)
        parts[f"evidential, λ = {weight:g}"] = (
            evidence.gamma,
            evidence.aleatoric,
            evidence.epistemic,
        )
    answers = []
    for _ in range(5):
        member = nn.Sequential(backbone(1), training.MeanVarianceHead(48).fit_scale(y))
        answers.append(trained(member, (x, y), gaussian)(grid))
    means = torch.stack([answer.mean for answer in answers])
    spread = torch.stack([answer.variance for answer in answers]).mean(0)
    parts["ensemble of five"] = (means.mean(0), spread, means.var(0))
    inside = ((grid.abs() > 0.25) & (grid.abs() < 0.95))[:, 0]
    gap, beyond = (grid.abs() < 0.1)[:, 0], (grid.abs() > 1.3)[:, 0]
    true = noise(grid[:, 0]).square()
    for name, (_, aleatoric, epistemic) in parts.items():
        total, noisy, unknown = (
            part / true for part in (aleatoric + epistemic, aleatoric, epistemic)
        )
        print(
            f"{name}, over the true noise: variance {total[inside].median():.2f}, aleatoric part "
            f"{noisy[inside].median():.2g} where there are data; epistemic part "
            f"{unknown[inside].median():.2g} there, {unknown[gap].median():.2g} in the gap, "
            f"{unknown[beyond].median():.2g} beyond"
        )
    _draw_two_kinds(grid[:, 0], parts, (x[:, 0], y), true)


def _draw_two_kinds(grid: Tensor, parts: Any, data: tuple[Tensor, Tensor], true: Tensor) -> None:
    with styled(), torch.no_grad():
        fig = figure(PAGE, 3.6)
        panels = fig.subplots(2, len(parts), sharex=True, sharey="row", height_ratios=[1.2, 1])
        for column, (name, (mean, aleatoric, epistemic)) in enumerate(parts.items()):
            above, below = panels[:, column]
            sigma = (aleatoric + epistemic).sqrt()
            above.plot(*data, ".", color=SOFT, ms=2, alpha=0.5)
            above.fill_between(
                grid, mean - 2 * sigma, mean + 2 * sigma, color=MODELS[0], alpha=0.2, linewidth=0
            )
            above.plot(grid, mean, color=MODELS[0])
            above.plot(grid, torch.sin(3 * grid), "--", color=INK, linewidth=0.9)
            above.set(title=name, ylim=(-1.6, 2.0))
            below.plot(grid, true, "--", color=INK, linewidth=0.9, label="true noise")
            below.plot(grid, aleatoric, color=MODELS[0], label="aleatoric")
            below.plot(grid, epistemic, color=MODELS[1], label="epistemic")
            below.set(yscale="log", ylim=(1e-5, 2), xlabel="x")
        panels[0, 0].set_ylabel("prediction ± 2 σ")
        panels[1, 0].set_ylabel("variance")
        panels[1, 0].legend(loc="lower right", fontsize=6)
    save(fig, IMAGES / "two-kinds-of-uncertainty.png")


class Radial(nn.Module):
    """Scalars of the length, and the vector itself scaled by them: equivariant to O(2)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = backbone(1)
        self.gate = nn.Linear(48, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Give 48 scalars and 4 vectors."""
        scalars = self.net(x.norm(dim=-1, keepdim=True))
        return scalars, self.gate(scalars)[..., None] * x[:, None]


FIELDS: dict[str, Callable[[Tensor], Tensor]] = {
    "spiral (−y, x)": lambda x: torch.stack([-x[:, 1], x[:, 0]], -1),
    "radial sin(2 |x|) x": lambda x: torch.sin(2 * x.norm(dim=-1, keepdim=True)) * x,
}


def disc(count: int, radius: float = 2.0) -> Tensor:
    """Points uniform on a disc."""
    angle, size = 2 * torch.pi * torch.rand(count), radius * torch.rand(count).sqrt()
    return torch.stack([size * angle.cos(), size * angle.sin()], -1)


def equivariant(y: Tensor) -> nn.Module:
    """A network that turns, and is mirrored, with its input."""
    return nn.Sequential(Radial(), training.VectorVarianceHead(48, 4).fit_scale(y))


def plain(y: Tensor) -> nn.Module:
    """A network without a symmetry."""
    return nn.Sequential(backbone(2), training.MeanVarianceHead(48, 2, shared=True).fit_scale(y))


def bleeding() -> None:
    """Print and draw the bleed of noise-free fields, with the right symmetry and the wrong one."""
    torch.manual_seed(1)
    rows = {}
    for name, field in FIELDS.items():
        x, test = disc(500), disc(2000)
        y = field(x)
        # The best equivariant fit of the spiral is 0, and an orbit is a circle.
        fit = torch.zeros_like(test) if name.startswith("spiral") else field(test)
        ring = (test.norm(dim=-1) * 50).long()
        predicted = float(nll_optimal_bleed(ValueTable(ring, field(test)), fit=fit).sum())
        found = {}
        for label, make in (("equivariant", equivariant), ("plain", plain)):
            model = trained(make(y), (x, y), gaussian)
            with torch.no_grad():
                variance = model(test).variance.expand(-1, 2)
                error = (model(test).mean - field(test)).square().sum(-1).mean()
            bleed = float(ob.calibration.aleatoric_bleed(variance).total)
            found[label] = bleed
            print(f"{name}, {label}: mean squared error {error:.3g}, bleed {bleed:.3g}")
        print(f"{name}: NLL-optimal bleed of an equivariant model {predicted:.3g}")
        rows[name] = {**found, "predicted": predicted}
    _draw_bleeding(rows)


def _draw_bleeding(rows: dict[str, dict[str, float]]) -> None:
    places = torch.linspace(-1.6, 1.6, 9)
    grid = torch.cartesian_prod(places, places)
    with styled():
        fig = figure(PAGE, 2.5)
        panels = fig.subplots(1, 3, width_ratios=[1, 1, 1.3])
        for axes, (name, field) in zip(panels, FIELDS.items(), strict=False):
            arrows = field(grid)
            axes.quiver(*grid.T, *arrows.T, color=INK, width=0.008, scale=22)
            axes.set(title=name, aspect="equal", xticks=[], yticks=[])
        bars = panels[2]
        for place, found in enumerate(rows.values()):
            for step, label in enumerate(("equivariant", "plain")):
                bars.bar(
                    place + 0.35 * step,
                    max(found[label], 1e-10),
                    0.3,
                    color=MODELS[step],
                    label=label if place == 0 else None,
                )
            if found["predicted"] > 1e-6:
                bars.plot(
                    [place - 0.18, place + 0.18],
                    [found["predicted"]] * 2,
                    color=INK,
                    label="NLL-optimal",
                )
        bars.set(yscale="log", ylabel="aleatoric bleed", ylim=(1e-10, 30), title="measured")
        bars.set_xticks([0.17, 1.17], ["spiral", "radial"])
        bars.legend(loc="upper right", fontsize=6)
    save(fig, IMAGES / "bleed.png")


MEASURES = (
    "gaussian_nll",
    "gaussian_crps",
    "ence",
    "regression_esd_normalized",
    "quantile_calibration",
    "mahalanobis_calibration",
    "gence",
    "gence_fiber",
)


def which_measure() -> None:
    """Print which measure notices what is wrong with a regressor, in five worlds."""
    rng = np.random.default_rng(0)
    size = 2000
    variance = rng.uniform(0.2, 2, size)
    target = rng.normal(0, np.sqrt(variance))
    zero = np.zeros(size)
    worlds = {
        "calibrated": (zero, variance),
        "variance halved": (zero, variance / 2),
        "one variance for all": (zero, np.full(size, variance.mean())),
        "variances of other samples": (zero, rng.permutation(variance)),
        "mean shifted by 0.3": (zero + 0.3, variance),
    }
    tables = {
        name: regression_table(*given, target, resamples=400) for name, given in worlds.items()
    }
    print("| measure | " + " | ".join(worlds) + " |\n|---|" + "---|" * len(worlds))
    for measure in MEASURES:
        cells = []
        for table in tables.values():
            one = table[measure]
            value = float(one.value)
            usual = value <= float(one.calibrated_high)
            text = f"{value:.3f}" if abs(value) >= 0.0095 else f"{value:.1e}"
            cells.append(text if usual else f"**{text}**")
        print(f"| `{measure}` | {' | '.join(cells)} |")


def frames() -> None:
    """Print GENCE and the Mahalanobis measure of one model in two frames."""
    rng = np.random.default_rng(0)
    error = rng.normal(size=(2000, 2))
    covariance = np.tile(np.diag([4.0, 0.25]), (2000, 1, 1))
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    for name, by in (("as given", np.eye(2)), ("rotated by 45°", turn)):
        given = (np.zeros_like(error), by @ covariance @ by.T, error @ by.T)
        gence = float(ob.calibration.gence(*given))
        distance = float(ob.calibration.mahalanobis_calibration(*given).error)
        print(f"frame {name}: GENCE {gence:.4f}, Mahalanobis calibration {distance:.4f}")


def along_the_orbit() -> None:
    """Draw calibration along the circle of two networks that saw a quarter of the plane."""
    torch.manual_seed(2)
    field = FIELDS["radial sin(2 |x|) x"]
    x, test = disc(500).abs(), disc(1000).abs()

    def seen(points: Tensor) -> Tensor:
        return field(points) + 0.1 * torch.randn_like(points)

    y = seen(x)
    models = {
        "equivariant": trained(equivariant(y), (x, y), gaussian),
        "plain": trained(plain(y), (x, y), gaussian),
    }
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    scan = ob.scan(models, (test, seen(test)), group="rotations:36", task=task, progress=False)
    error = ob.calibration.along_orbit(
        scan, "mahalanobis_calibration", interval=True, resamples=200
    )
    save(error_along_orbit(error), IMAGES / "calibration-of-a-field.png")
    for name in ("mahalanobis_calibration", "gence", "aleatoric_bleed"):
        curve = ob.calibration.along_orbit(scan, name)
        for model in scan.models:
            one = curve.sel(model=model)
            worst = int(one.argmax("element"))
            print(
                f"{name}, {model}: {float(one[0]):.3g} at the identity, "
                f"worst {float(one[worst]):.3g} at {scan.group.name(worst)}"
            )
    for model in scan.models:
        gap = float(scan.data["variance_gap"].sel(model=model).mean())
        print(f"mean gap of the variances along the orbit, {model}: {gap:.2g}")


def main() -> None:
    """Make everything."""
    two_kinds()
    bleeding()
    which_measure()
    frames()
    along_the_orbit()


if __name__ == "__main__":
    main()
