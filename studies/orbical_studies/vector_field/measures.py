"""Train every network in every world, and measure it beside what its symmetry allows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch import nn

import orbical as ob
from orbical.bounds import regression

from ..data.planar_fields import DOMAINS, FIELDS, vector_fields, whole_field
from ..framework import Results, rows_of
from ..networks import parameters_of
from . import limits
from .limits import Array, Row
from .training import EQUIVARIANT, KINDS, AsGaussian, Settings, train_together

WORLDS = tuple(product(FIELDS, DOMAINS))
TASK = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="covariance")
HEAD = ("field", "domain", "network", "variance", "seed")
Tables = dict[str, list[Row]]


def run(settings: Settings, results: Results) -> None:
    """Train and measure everything, and write the tables."""
    for name, rows in measurements(settings).items():
        results.write(name, rows)


def measurements(settings: Settings) -> Tables:
    """Train every network on every field with every seed, and measure.

    Returns:
        Rows of `results` (one per network and epoch), `limits` (one per world), `angles`,
        `profile` (variances against the distance from the center of the disc), and `arrows`.
    """
    tables: Tables = defaultdict(list)
    tables["limits"] = [_limits_of(*world, settings) for world in WORLDS]
    trainings = [(*world, seed) for world in WORLDS for seed in range(settings.seeds)]
    data = [vector_fields(field, domain, settings.train, seed) for field, domain, seed in trainings]
    x, target = (torch.stack(parts) for parts in zip(*data, strict=True))
    for (name, variance), make in KINDS.items():
        started = time.process_time()
        networks = [
            _start(make, seed, values)
            for (_, _, seed), values in zip(trainings, target, strict=True)
        ]
        for epoch, trained in train_together(networks, x, target, settings):
            seconds = (time.process_time() - started) / len(trainings)
            for (field, domain, seed), network in zip(trainings, trained, strict=True):
                head = dict(zip(HEAD, (field, domain, name, variance, seed), strict=True))
                row: Row = {"epoch": epoch, "parameters": parameters_of(network)}
                row |= {"train": settings.train, "seconds": seconds}
                row |= measure(network, head, settings)
                tables["results"].append(head | row)
                if epoch == max(settings.epochs):
                    print(", ".join(map(str, head.values())), f"MSE {row['xy_mse']:.4g}")
                    _add_curves(tables, network, head, settings)
    return tables


def _start(make: Callable[[], nn.Module], seed: int, target: torch.Tensor) -> nn.Module:
    """Initialize a network from a seed, its scale fitted to the targets."""
    torch.manual_seed(seed)
    network = make()
    network.get_submodule("head").fit_scale(target)  # type: ignore[operator]
    return network


def _add_curves(tables: Tables, network: nn.Module, head: Row, settings: Settings) -> None:
    """Add the rows of a trained network that figures need."""
    tables["angles"] += _along_angles(network, head, settings)
    if head["domain"] == "disc":
        tables["profile"] += profile(network, head, settings)
    elif head["seed"] == 0 and head["variance"] == "scalar":
        tables["arrows"] += arrows(network, head, settings)


def _limits_of(field: str, domain: str, settings: Settings) -> Row:
    """Return the limits of one world on the test set, and the symmetries of its field."""
    x, value = whole_field(field, domain, settings.side)
    found = limits.limits(x.numpy(), value.numpy()) | limits.symmetry_defects(field, x)
    return {"field": field, "domain": domain, **found}


def predict(network: nn.Module, x: torch.Tensor) -> tuple[Array, Array]:
    """Predict means `[N, 3]` and covariances `[N, 3, 3]` in double precision."""
    with torch.no_grad():
        mean, covariance = AsGaussian(network)(x.double())
    return mean.numpy(), covariance.numpy()


def measure(network: nn.Module, head: Row, settings: Settings) -> Row:
    """Measure a network on the whole domain, an equivariant one also against its bounds.

    Returns:
        The `scores`, the mean's equivariance `defect` under rotations and inversion, and for
        equivariant networks `error_floor` (Thm 3), `gence_lower` and `gence_upper` (Thm 7) at the
        network's own variances.
    """
    x, value = whole_field(head["field"], head["domain"], settings.side)
    mean, covariance = predict(network, x)
    found = limits.scores(x.numpy(), value.numpy(), mean, covariance)
    inversion = ob.groups.from_matrices(space=[np.eye(3), -np.eye(3)])
    space = ob.groups.product(ob.groups.rotations3d(24), inversion)
    some = x[:: max(1, len(x) // 100)]
    error = ob.testing.equivariance_error(AsGaussian(network), some, group=space, task=TASK)
    found["defect"] = float(error.parts["prediction"].max())
    if head["network"] == EQUIVARIANT:
        own = covariance[:, 0, 0] if head["variance"] == "scalar" else covariance
        bounds = regression(*limits.value_table(x.numpy(), value.numpy(), mean=mean, variance=own))
        found["error_floor"] = bounds["thm3"].value
        if bounds["thm7"].applies:
            found["gence_lower"] = bounds["vector_lower_whole"].value
            found["gence_upper"] = bounds["thm7"].value
    return found


def _along_angles(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Measure a network on the test points rotated in the plane, against the rotated truth.

    Returns:
        One row per angle: `xy_mse`, `xy_beta_nll`, `bleed` and `gence`, in the rotated frame.
    """
    angles = 2 * np.pi * np.arange(settings.angles) / settings.angles
    scan = ob.scan(
        AsGaussian(network),
        whole_field(head["field"], head["domain"], settings.side),
        group=ob.groups.from_matrices(
            space=limits.turns(angles), coords={"angle": np.degrees(angles)}
        ),
        task=TASK,
        progress=False,
    )
    data = scan.data.isel(model=0).transpose("element", "sample", ...)
    error = data["error"].to_numpy().astype(float)[..., :2]
    covariance = data["covariance"].to_numpy().astype(float)
    own = np.diagonal(covariance, axis1=2, axis2=3)[..., :2]
    columns = {
        "angle": np.degrees(angles),
        "xy_mse": np.square(error).mean((1, 2)),
        "xy_beta_nll": limits.beta_nll_terms(error, own).mean((1, 2)),
        "bleed": np.square(covariance).sum((2, 3)).mean(1),
        "gence": ob.calibration.along_orbit(scan, "gence").isel(model=0).to_numpy().reshape(-1),
    }
    return rows_of(head, columns)


def profile(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Return the mean variances and the mean squared error on each ring of the disc.

    Returns:
        One row per ring: `radius`, `outward`, `along`, `up`, `error`.
    """
    x, value = (part.numpy() for part in whole_field(head["field"], "disc", settings.side))
    mean, covariance = predict(network, torch.from_numpy(x))
    columns = {"radius": np.linalg.norm(x, axis=1)}
    columns |= dict(zip(limits.WAYS, limits.variances(x, covariance).T, strict=True))
    columns["error"] = np.square(value - mean).sum(1)
    rings = {name: part.reshape(settings.side, -1).mean(1) for name, part in columns.items()}
    return rows_of(head, rings)


def arrows(network: nn.Module, head: Row, settings: Settings) -> list[Row]:
    """Return a network's vectors and its deviation on a coarse grid of the square."""
    x, _ = whole_field(head["field"], "square", settings.arrows)
    mean, covariance = predict(network, x)
    columns = dict(zip("xyuv", (*x.numpy().T[:2], *mean.T[:2]), strict=True))
    columns["deviation"] = np.sqrt(np.trace(covariance, axis1=1, axis2=2))
    return rows_of({name: head[name] for name in ("field", "network")}, columns)
