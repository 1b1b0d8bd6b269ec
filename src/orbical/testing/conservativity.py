"""Whether forces and stress are derivatives of the energy, by finite differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._trees import concatenate
from ..errors import InputError, real_number, whole_number
from ..groups import trivial
from ..predictors import as_predictor
from ..scanning import Sweep, refuse_faults_of_pass
from ..tasks import UNITS, Atoms, Quantities, Task, as_task
from .equivariance import with_tensors

__all__ = ["ConservativityError", "assert_conservative", "conservativity_error"]

_STEPS = (1e-2, 1e-3, 1e-4)
"""Displacements in Å, of which the most precise is used: as it shrinks, so does the effect of
curvature, but that of rounding, or of a calculation that is not fully converged, grows."""


@dataclass(frozen=True)
class ConservativityError:
    """How far forces and stress are from the derivatives of the energy, for each sample.

    Attributes:
        parts: by quantity (`forces`, and `stress` of crystals) the root mean square difference of
            a component from the derivative, `[N]`, in eV/Å and eV/Å³; NaN where there is none.
        limits: the precision of the finite differences, in the same shapes and units. Smaller
            differences cannot be told from rounding and curvature.
        step: the displacement of each coordinate in Å, and the strain.
        dtype: the precision of the energies.
    """

    parts: Mapping[str, np.ndarray]
    limits: Mapping[str, np.ndarray]
    step: float
    dtype: torch.dtype

    def worst(self, quantity: str) -> int:
        """Return the sample with the largest difference.

        Args:
            quantity: `forces` or `stress`.

        Returns:
            Its index.
        """
        return int(np.nanargmax(self.parts[quantity]))

    def largest(self, quantity: str) -> float:
        """Return the largest difference over samples.

        Args:
            quantity: `forces` or `stress`.

        Returns:
            The difference in eV/Å or eV/Å³.
        """
        return float(np.nanmax(self.parts[quantity]))


def conservativity_error(
    model: object,
    x: object,
    *,
    task: Task | str = "atoms",
    directions: int = 8,
    step: float | None = None,
    batch_size: int = 256,
    seed: int = 0,
) -> ConservativityError:
    """Measure how far forces are from minus the gradient of the energy.

    All atoms move together along random directions `d` of +1 and -1 in each coordinate, and the
    central difference is compared with the forces:

        | (E(x + h d) - E(x - h d)) / (2 h) + F · d | / sqrt(3 n)

    Its root mean square over directions estimates that of a component of `F + grad E`, without
    a derivative of the model. If the task has `stress`, crystals that are periodic in all three
    directions are also strained at random, and `dE / d strain / volume` is compared with it.

    The precision limit is the difference between steps of h and 2 h, and the rounding of the
    energy. A network in single precision whose energies are large may be too imprecise: pass
    `model.double()`.

    Args:
        model: any model of the task `atoms`: an ASE calculator, a torch module, a function.
        x: molecules or crystals, as in a scan.
        task: the task, with energy and forces.
        directions: the number of random directions.
        step: h, in Å; by default the most precise of 1e-2, 1e-3 and 1e-4.
        batch_size: structures in one forward pass.
        seed: the seed of the directions.

    Returns:
        The difference of each sample, and its precision limit.

    Raises:
        InputError: If an argument cannot be used.
        ModelError: If the model's outputs cannot be read.

    See Also:
        assert_conservative: The same as a test.
        equivariance_error: Whether energy and forces move with the molecule.

    Example:
        >>> from ase.build import bulk
        >>> from ase.calculators.emt import EMT
        >>> copper = bulk("Cu", cubic=True)
        >>> copper.rattle(0.05, seed=0)
        >>> error = conservativity_error(EMT(), [copper])
        >>> error.largest("forces") < 1e-4  # eV/Å
        True
    """
    task = as_task(task)
    if not isinstance(task, Atoms) or not {"energy", "forces"} <= {*task.quantities}:
        raise InputError("task", "orbical.tasks.Atoms with energy and forces", repr(task))
    directions = whole_number("directions", directions, 1)
    if step is not None:
        real_number("step", step, "> 0", "a length in Å")
    _, samples = with_tensors(task, x)
    predictor, device = as_predictor(model), samples["pos"].device
    with predictor.ready(device):
        sweep = Sweep({"model": predictor}, trivial(), task, device, batch_size)
        still = _answers(sweep, samples)
        precision = _precision(still["energy"])
        generator = np.random.default_rng(seed)
        probes = [
            one
            for _ in range(directions)
            for one in _conservativity_probes(samples, still, generator)
        ]
        steps = _STEPS if step is None else [float(step)]
        by_step = [
            _conservativity_differences(sweep, probes, still["energy"], precision, one)
            for one in steps
        ]
    return min(by_step, key=lambda one: one.limits["forces"].max())


def assert_conservative(
    model: object, x: object, *, task: Task | str = "atoms", tolerance: float = 1e-3
) -> None:
    """Raise an AssertionError unless forces, and stress, are derivatives of the energy.

    It is also raised where finite differences are not precise enough to decide.

    Args:
        model: any model of the task `atoms`: an ASE calculator, a torch module, a function.
        x: molecules or crystals, as in a scan.
        task: the task, with energy and forces; with `stress`, that of crystals is checked too.
        tolerance: the largest root mean square difference of a component, in eV/Å, for stress in
            eV/Å³.

    Raises:
        AssertionError: If a difference exceeds the tolerance, or might.

    See Also:
        conservativity_error: The differences of each sample.

    Example:
        >>> from ase.build import molecule
        >>> from ase.calculators.emt import EMT
        >>> assert_conservative(EMT(), [molecule("H2O")])
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    real_number("tolerance", tolerance, "> 0")
    error = conservativity_error(model, x, task=task)
    for name, apart in error.parts.items():
        limit, unit = error.limits[name], UNITS[name]
        worst = int(np.nanargmax(apart - limit))
        if not apart[worst] - limit[worst] <= tolerance:
            beyond = int((apart - limit > tolerance).sum())
            verb = "differ" if name == "forces" else "differs"
            raise AssertionError(
                f"not conservative: {name} {verb} from the derivative of the energy by "
                f"{apart[worst]:.3g} {unit} at sample {worst} (root mean square of a component; "
                f"precision {limit[worst]:.1g} {unit}), {beyond} of {len(apart)} samples beyond "
                f"the tolerance {tolerance:.3g}"
            )
        blurred = int(np.nanargmax(apart + limit))
        if not apart[blurred] + limit[blurred] <= tolerance:
            raise AssertionError(
                f"not decided: finite differences of the energy are precise to "
                f"{limit[blurred]:.3g} {unit} at sample {blurred}, and {name} may differ by more "
                f"than the tolerance {tolerance:.3g}; pass {_REMEDIES[error.dtype]}, or a larger "
                "tolerance"
            )


_REMEDIES = {
    torch.float32: "a model in double precision",
    torch.float64: "a calculator that converges further, atoms that are farther apart",
}


@dataclass(frozen=True)
class _ConservativityProbe:
    """A random displacement of every sample, and what the energy should do along it.

    `direction` is the change of positions and cells for a step of 1, `slope [N]` the derivative of
    the energy according to the model's forces or stress. A difference of slopes over `size [N]` is
    that of one component, in root mean square over directions.
    """

    quantity: str
    x: dict[str, Tensor]
    direction: dict[str, Tensor]
    slope: Tensor
    size: Tensor

    def at(self, step: float) -> dict[str, Tensor]:
        """Return the displaced samples."""
        return self.x | {name: self.x[name] + step * way for name, way in self.direction.items()}


def _conservativity_probes(
    x: dict[str, Tensor], still: dict[str, Tensor], generator: np.random.Generator
) -> Iterator[_ConservativityProbe]:
    """Yield a displacement of atoms and, if there is a stress to compare with, a strain."""
    pos, cell, mask = x["pos"], x["cell"], x["mask"]
    way = _signs(generator, pos) * mask[..., None]
    slope = -(still["forces"].nan_to_num(0.0) * _on_host(way)).sum((1, 2))
    yield _ConservativityProbe("forces", x, {"pos": way}, slope, (3 * _on_host(mask).sum(1)).sqrt())
    periodic = x["pbc"].all(1).cpu()
    if "stress" not in still or not bool(periodic.any()):
        return
    signs = _signs(generator, cell)
    # Entries off the diagonal occur twice; so weighted, squares average to those of nine entries.
    diagonal, above = torch.diag_embed(signs.diagonal(dim1=1, dim2=2)), signs.triu(1)
    strain = diagonal + (above + above.mT) / math.sqrt(2)
    volume = torch.linalg.det(_on_host(cell)).abs().where(periodic, torch.nan)
    slope = volume * (still["stress"] * _on_host(strain)).sum((1, 2))
    strains = {"pos": pos @ strain.to(pos), "cell": cell @ strain}
    yield _ConservativityProbe("stress", x, strains, slope, 3 * volume)


def _on_host(values: Tensor) -> Tensor:
    return values.double().cpu()


def _signs(generator: np.random.Generator, like: Tensor) -> Tensor:
    return torch.as_tensor(generator.choice([-1.0, 1.0], like.shape)).to(like)


def _conservativity_differences(
    sweep: Sweep,
    probes: list[_ConservativityProbe],
    energy: Tensor,
    precision: torch.dtype,
    step: float,
) -> ConservativityError:
    """Compare the slopes of all probes with finite differences of one step."""
    parts: dict[str, list[Tensor]] = {}
    limits: dict[str, list[Tensor]] = {}
    rounding = torch.finfo(precision).eps * energy.abs() / step
    for probe in probes:
        near, far = _slopes(sweep, probe, step)
        parts.setdefault(probe.quantity, []).append((near - probe.slope) / probe.size)
        limit = ((near - far).abs() + rounding) / probe.size
        limits.setdefault(probe.quantity, []).append(limit)
    of_all = _root_mean_squares(parts), _root_mean_squares(limits)
    return ConservativityError(*of_all, step, precision)


def _slopes(sweep: Sweep, probe: _ConservativityProbe, step: float) -> Tensor:
    """Return the central differences `[2, N]` of the energy for one step and for two."""
    places = concatenate([probe.at(sign * step) for sign in (1, -1, 2, -2)])
    up, down, far_up, far_down = _answers(sweep, places)["energy"].chunk(4)
    return torch.stack([up - down, (far_up - far_down) / 2]) / (2 * step)


def _answers(sweep: Sweep, x: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return energy, forces and stress of the samples, in double precision on the host."""
    outputs = sweep.answers(x, "model")
    refuse_faults_of_pass("model", sweep.task.faults(outputs), sweep.group, x)
    action = sweep.task.output
    assert isinstance(action, Quantities)
    return action.split(_on_host(sweep.task.primary(outputs)[0]))


def _precision(energy: Tensor) -> torch.dtype:
    """Return the precision of energies; a calculator may return single precision as double."""
    single = torch.equal(energy, energy.float().double())
    return torch.float32 if single and bool(energy.any()) else torch.float64


def _root_mean_squares(found: dict[str, list[Tensor]]) -> dict[str, np.ndarray]:
    return {name: torch.stack(each).square().mean(0).sqrt().numpy() for name, each in found.items()}
