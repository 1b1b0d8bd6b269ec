"""Every network in every world, trained and measured, beside what its symmetry allows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from orbical.bounds import regression
from orbical_studies.data.planar_fields import vector_fields, whole_field
from orbical_studies.networks import parameters_of

from ..pages import Row
from .limits import (
    WAYS,
    beta_nll_terms,
    frames,
    limits,
    scores,
    symmetry_defects,
    value_table,
)
from .settings import WORLDS, Settings
from .training import EQUIVARIANT, KINDS, AsGaussian, train_together

Tables = dict[str, list[Row]]
HEAD = ("field", "domain", "network", "variance", "seed")


def run(settings: Settings, say: Callable[[str], None] = print) -> Tables:
    """Train every network on every field with every seed, and measure.

    Returns:
        rows of `results` (one a network and epoch), `limits` (one a world), `angles`, `profile`
        (variances against the distance from the centre of the disc), and `arrows`.
    """
    tables: Tables = {"results": [], "limits": [], "angles": [], "profile": [], "arrows": []}
    tables["limits"] = [limits_of(field, domain, settings) for field, domain in WORLDS]
    trainings = [(*world, seed) for world in WORLDS for seed in range(settings.seeds)]
    data = [vector_fields(field, domain, settings.train, seed) for field, domain, seed in trainings]
    x, target = (torch.stack(parts) for parts in zip(*data, strict=True))
    for kind, make in KINDS.items():
        started = time.process_time()
        networks = [
            _begun(make, seed, values)
            for (_, _, seed), values in zip(trainings, target, strict=True)
        ]
        for epoch, trained in train_together(
            *(networks, x, target),
            epochs=settings.epochs,
            batch=settings.batch,
            rate=settings.rate,
            seed=0,
        ):
            seconds = (time.process_time() - started) / len(trainings)
            for (field, domain, seed), network in zip(trainings, trained, strict=True):
                head = dict(zip(HEAD, (field, domain, *kind, seed), strict=True))
                row = head | {
                    "epoch": epoch,
                    "parameters": parameters_of(network),
                    "train": settings.train,
                    "seconds": seconds,
                    **measure(network, head, settings),
                }
                tables["results"].append(row)
                if epoch == max(settings.epochs):
                    _say(row, say)
                    for name, rows in drawn(network, head, settings).items():
                        tables[name] += rows
    return tables


def _begun(make: Callable[[], nn.Module], seed: int, target: torch.Tensor) -> nn.Module:
    """Make a network from a seed, its scale fitted to what it is to learn."""
    torch.manual_seed(seed)
    network = make()
    network.get_submodule("head").fit_scale(target)  # type: ignore[operator]
    return network


def drawn(network: nn.Module, head: Row, settings: Settings) -> Tables:
    """Give the rows that figures need of a trained network."""
    found = {"angles": along_angles(network, head, settings)}
    if head["domain"] == "disc":
        found["profile"] = profile(network, head, settings)
    elif head["seed"] == 0 and head["variance"] == "scalar":
        found["arrows"] = arrows(network, head, settings)
    return found


def limits_of(field: str, domain: str, settings: Settings) -> Row:
    """Give the limits of one world on the test set, and the symmetries that its field has."""
    x, value = whole_field(field, domain, settings.side)
    found = limits(x.numpy(), value.numpy()) | symmetry_defects(field, x)
    return {"field": field, "domain": domain, **found}


def answers(network: nn.Module, x: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Ask a network for means `[N, 3]` and covariances `[N, 3, 3]`, in double precision."""
    with torch.no_grad():
        mean, covariance = AsGaussian(network)(x.double())
    return mean.numpy(), covariance.numpy()


def measure(network: nn.Module, head: Row, settings: Settings) -> Row:
    """Measure a network on the whole domain; an equivariant one also against its bounds.

    Returns:
        the measures of `scores`, the mean's equivariance `defect` under rotations and inversion,
        and for equivariant networks `error_floor` (Thm 3), `gence_lower` and `gence_upper` (Thm 7)
        at the network's own variances.
    """
    from orbical import actions, groups, tasks, testing

    x, value = whole_field(head["field"], head["domain"], settings.side)
    mean, covariance = answers(network, x)
    found = scores(x.numpy(), value.numpy(), mean, covariance)
    space = groups.product(
        groups.rotations3d(24), groups.from_matrices(space=[np.eye(3), -np.eye(3)])
    )
    task = tasks.Regression(actions.Vectors(), "vector", uncertainty="covariance")
    asked = x[:: max(1, len(x) // 100)]
    error = testing.equivariance_error(AsGaussian(network), asked, group=space, task=task)
    found["defect"] = float(error.parts["answer"].max())
    if head["network"] == EQUIVARIANT:
        table, matrices = value_table(
            *(x.numpy(), value.numpy()),
            mean=mean,
            variance=covariance[:, 0, 0] if head["variance"] == "scalar" else covariance,
        )
        bounds = regression(table, matrices)
        found["error_floor"] = bounds["thm3"].value
        if bounds["thm7"].applies:
            found["gence_lower"] = bounds["vector_lower_whole"].value
            found["gence_upper"] = bounds["thm7"].value
    return found


def along_angles(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Measure a network on the test points turned in the plane, against the turned truth.

    Returns:
        one row an angle: `xy_mse`, `xy_beta_nll`, `bleed` and `gence`, in the turned frame.
    """
    import orbical as ob

    x, value = whole_field(head["field"], head["domain"], settings.side)
    turn = 2 * np.pi * np.arange(settings.angles) / settings.angles
    matrices = np.zeros((settings.angles, 3, 3))
    matrices[:, 0, 0] = matrices[:, 1, 1] = np.cos(turn)
    matrices[:, 1, 0], matrices[:, 0, 1] = np.sin(turn), -np.sin(turn)
    matrices[:, 2, 2] = 1
    scan = ob.scan(
        AsGaussian(network),
        (x, value),
        group=ob.groups.from_matrices(space=matrices, coords={"angle": np.degrees(turn)}),
        task=ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="covariance"),
        progress=False,
    )
    data = scan.data.isel(model=0).transpose("element", "sample", ...)
    error = data["error"].to_numpy().astype(float)
    covariance = data["covariance"].to_numpy().astype(float)
    own = np.diagonal(covariance, axis1=2, axis2=3)
    gence = ob.calibration.along_orbit(scan, "gence").isel(model=0).to_numpy()
    terms = beta_nll_terms(error[..., :2], own[..., :2])
    return [
        head
        | {
            "angle": float(np.degrees(turn[place])),
            "xy_mse": float(np.square(error[place, :, :2]).mean()),
            "xy_beta_nll": float(terms[place].mean()),
            "bleed": float(np.square(covariance[place]).sum((1, 2)).mean()),
            "gence": float(np.squeeze(gence)[place]),
        }
        for place in range(settings.angles)
    ]


def profile(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Give mean variances outwards, along and up on each ring of the disc, and the squared error.

    Returns:
        one row a ring: `radius`, `outward`, `along`, `up`, `error`.
    """
    x, value = whole_field(head["field"], "disc", settings.side)
    mean, covariance = answers(network, x)
    basis = frames(x.numpy())
    local = np.diagonal(basis.transpose(0, 2, 1) @ covariance @ basis, axis1=1, axis2=2)
    rings = local.reshape(settings.side, settings.side, 3).mean(1)
    error = np.square(value.numpy() - mean).sum(1).reshape(settings.side, -1).mean(1)
    radius = np.linalg.norm(x.numpy(), axis=1).reshape(settings.side, -1)[:, 0]
    return [
        head
        | {"radius": float(radius[ring])}
        | {way: float(rings[ring, place]) for place, way in enumerate(WAYS)}
        | {"error": float(error[ring])}
        for ring in range(settings.side)
    ]


def arrows(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Give a network's vectors and its deviation on a coarse grid of the square."""
    x, _ = whole_field(head["field"], "square", settings.arrows)
    mean, covariance = answers(network, x)
    deviation = np.sqrt(np.trace(covariance, axis1=1, axis2=2))
    return [
        {"field": head["field"], "network": head["network"]}
        | {"x": float(a), "y": float(b), "u": float(u), "v": float(v), "deviation": float(d)}
        for (a, b, _), (u, v, _), d in zip(x.numpy(), mean, deviation, strict=True)
    ]


def _say(row: Row, say: Callable[[str], None]) -> None:
    say(
        f"{row['field']:8} {row['domain']:6} {row['network']:11} {row['variance']:8} "
        f"seed {row['seed']}: MSE {row['xy_mse']:.4g}, bleed {row['bleed']:.4g}, "
        f"GENCE {row.get('gence', float('nan')):.3f}"
    )
