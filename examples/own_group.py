"""A group, a part and an action of your own: Lorentz boosts of four-vectors, in one file.

A particle decays into three, of which one is not seen. Two models predict the four-momentum of the
particle from the two that are seen; one of them respects the symmetry of space-time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

import orbical as ob
from orbical.actions import Action
from orbical.errors import InputError, ModelError
from orbical.tasks import Task, Variable

METRIC = torch.tensor([1.0, -1.0, -1.0, -1.0])

ob.groups.register_part("spacetime", ob.groups.Part.matrices("FourVectors"))


@ob.groups.register("boosts:2:17")
def boosts(limit: float = 2.0, n: int = 17) -> ob.groups.Group:
    """Return n boosts along z, with rapidities from -limit to limit.

    Rapidities add up when boosts are composed, so that equal steps have equal weights.
    """
    if n % 2 == 0:
        raise InputError("n", "an odd number, so that rest is among the boosts", n)
    rapidity = np.linspace(-limit, limit, n)
    matrices = np.tile(np.eye(4), (n, 1, 1))
    matrices[:, [0, 3], [0, 3]] = np.cosh(rapidity)[:, None]
    matrices[:, [0, 3], [3, 0]] = np.sinh(rapidity)[:, None]
    return ob.groups.from_parts(
        f"boosts:{limit:g}:{n}",
        {"spacetime": matrices},
        coords={"rapidity": rapidity},
        layout=ob.groups.Layout("line", np.arange(n), {"rapidity": rapidity}),
        measure="uniform in rapidity on the sampled window",
    )


@ob.actions.register
class FourVectors(Action):
    """Four-vectors (E, px, py, pz) as `[B, ..., 4]`."""

    parts: ClassVar[tuple[str, ...]] = ("spacetime",)

    def move(self, elements: ob.groups.Elements, x: Tensor) -> Tensor:
        """Boost `x[K or 1, B, ..., 4]`."""
        matrices = torch.as_tensor(elements.parts["spacetime"], dtype=x.dtype, device=x.device)
        flat = x.expand(len(elements), *x.shape[1:]).flatten(1, -2)
        return (flat @ matrices.mT).reshape(len(elements), *x.shape[1:])

    def check(self, group: ob.groups.Group, x: Any) -> None:
        """Check that there are four components."""
        super().check(group, x)
        if x.shape[-1] != 4:
            raise InputError("data", "four-vectors [sample, ..., 4]", f"shape {tuple(x.shape)}")


class FourMomentum(Task):
    """Predict a four-momentum, which moves with the particles."""

    name: ClassVar[str] = "four-momentum"
    score_meaning = "error of the four-momentum in the frame of the particle"
    higher_is_better: ClassVar[bool] = False
    truth_dims = ("component",)

    def __init__(self) -> None:
        super().__init__(input=FourVectors(), output=FourVectors())

    def read(self, raw: Any, outputs: str | None = None) -> Tensor:
        """Return predictions [N, 4]."""
        momenta = self.picked(raw)
        if not isinstance(momenta, Tensor) or momenta.ndim != 2 or momenta.shape[1] != 4:
            raise ModelError(
                "model output: expected four-momenta [sample, 4], "
                f"got {tuple(getattr(momenta, 'shape', ())) or type(momenta).__name__}"
            )
        return momenta

    def check_target(self, target: Any, count: int) -> Tensor:
        """Return the true four-momenta [N, 4]."""
        momenta = torch.as_tensor(target)
        if momenta.shape != (count, 4):
            raise InputError("labels", f"four-momenta of shape ({count}, 4)", tuple(momenta.shape))
        return momenta

    def variables(self, labeled: bool) -> dict[str, Variable]:
        mass = Variable(("sample", "element"), "mass of the predicted four-momentum")
        return self.common_variables(labeled, self.truth_dims) | {"mass": mass}

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the distance where the reference is at rest, which no boost changes, [K, B]."""
        away = outputs - reference
        along = product(away, reference) ** 2 / product(reference, reference)
        return (2 * along - product(away, away)).clamp_min(0).sqrt()

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Any) -> dict[str, Tensor]:
        return {"mass": product(outputs, outputs).clamp_min(0).sqrt()}


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return the Minkowski product of four-vectors."""
    return (a * METRIC.to(a) * b).sum(-1)


def decays(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return two of three massless decay products [N, 2, 4], and the particle [N, 4], of mass 1."""
    random = torch.Generator().manual_seed(seed)
    flight = torch.randn(count, 3, 3, generator=random)
    energy = -torch.rand(count, 3, 2, generator=random).prod(-1).log()
    momenta = torch.cat([energy[..., None], flight * (energy / flight.norm(dim=-1))[..., None]], -1)
    whole = momenta.sum(1)
    mass = product(whole, whole).sqrt()[:, None]
    slow = torch.randn(count, 3, generator=random) * 0.2  # a particle that is nearly at rest
    particle = torch.cat([(1 + slow.square().sum(-1, keepdim=True)).sqrt(), slow], -1)
    still = boosted(momenta / mass[..., None], (whole / mass) * METRIC)
    return boosted(still, particle)[:, :2], particle


def boosted(momenta: Tensor, velocity: Tensor) -> Tensor:
    """Boost momenta [N, n, 4] from rest to a four-velocity [N, 4]."""
    time, space = momenta[..., :1], momenta[..., 1:]
    factor, speed = velocity[:, None, :1], velocity[:, None, 1:]
    along = (space * speed).sum(-1, keepdim=True)
    return torch.cat([factor * time + along, space + speed * (time + along / (1 + factor))], dim=-1)


class Plain(nn.Module):
    """A network of the eight numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, momenta: Tensor) -> Tensor:
        return self.net(momenta.flatten(1))


class Covariant(nn.Module):
    """Multiples of the two four-vectors that depend on their product alone."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, momenta: Tensor) -> Tensor:
        factors = self.net(product(momenta[:, :1], momenta[:, 1:]))
        return (factors[..., None] * momenta).sum(1)


def fitted(model: nn.Module, momenta: Tensor, particle: Tensor) -> nn.Module:
    """Fit a model with L-BFGS, in a second."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=100)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = (model(momenta) - particle).square().mean()
        value.backward()
        return value

    optimizer.step(loss)
    return model.eval()


def main() -> None:
    """Fit both models, scan them over boosts, print and draw the scores, write a report."""
    torch.manual_seed(0)
    training = decays(1000, seed=0)
    models = {"plain": fitted(Plain(), *training), "covariant": fitted(Covariant(), *training)}
    scan = ob.scan(
        models,
        decays(300, seed=1),
        group="boosts:2:17",
        task=FourMomentum(),
        out="boosts.zarr",
        keep="inputs",
        progress=False,
    )
    for model in scan.models:
        error = scan.data["score"].sel(model=model).mean("sample").values
        print(f"{model:>9}: at rest {error[8]:.3f}, boosted by a rapidity of 2 {error[-1]:.3f}")
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "own-group.png")
    page = ob.report(scan, Path("boosts.html"))
    print(f"   report: {page.name}")
    # ob.view(scan, models, task=FourMomentum())


if __name__ == "__main__":
    main()
