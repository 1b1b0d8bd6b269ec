"""ASE calculators as predictors: one molecule at a time, here or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import import_attribute, import_extra, name_of
from .._interrupts import end_with_parent
from .._trees import Tree
from ..errors import InputError, ModelError, whole_number
from .predictor import PartialOutputs, Predictor, Raw, to_numpy

USUAL = ("energy", "forces")
_SHAPES: dict[str, tuple[int, ...]] = {"energy": (), "dipole": (3,), "stress": (6,)}
_MESSAGE_LENGTH = 300
Answer = dict[str, np.ndarray] | str
"""The quantities of a molecule, or why there are none."""


def is_calculator(thing: object) -> bool:
    """Check whether this is an ASE calculator, or a class of them, without importing ASE."""
    return hasattr(thing, "implemented_properties") and hasattr(thing, "get_property")


class CalculatorPredictor(Predictor):
    """An ASE calculator: energy, forces, dipole and stress of molecules, in the units of ASE.

    Each molecule is calculated from scratch, so that no result depends on the previous one. If the
    calculator raises or returns NaN, the molecule gets NaN, and the scan records the error and
    continues.

    Args:
        calculator: a calculator, or a factory of one: a class, a function without arguments, or
            their import path `package.module:attribute`.
        workers: processes to spread molecules over. Each makes its own calculator, so more than
            one needs an importable factory.

    Example:
        >>> from ase.calculators.emt import EMT
        >>> model = CalculatorPredictor(EMT)
        >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0.76, 0, 0.59], [-0.76, 0, 0.59]]]),
        ...          "numbers": torch.tensor([[8, 1, 1]])}
        >>> {name: tuple(values.shape) for name, values in model(water).items()}
        {'energy': (1,), 'forces': (1, 3, 3)}
    """

    one_at_a_time = True

    def __init__(self, calculator: object, workers: int = 1) -> None:
        import_extra("ase", "chemistry", "a calculator as a model")
        self.workers = whole_number("workers", workers, 1)
        self.quantities = USUAL
        self.maker = calculator if _is_factory(calculator) else None
        if workers > 1 and self.maker is None:
            factory = "a factory (a class, a function, an import path)"
            remedy = f"pass {factory}, as each worker needs its own calculator"
            raise InputError("workers", "1 for a calculator instance", workers, remedy=remedy)
        self._calculator = _make_calculator(calculator)
        self._pool: ProcessPoolExecutor | None = None
        given = isinstance(calculator, str)
        self.source = str(calculator) if given else name_of(type(self._calculator))

    @property
    def offers(self) -> tuple[str, ...]:
        """Return the names of the quantities that the calculator can compute."""
        return tuple(self._calculator.implemented_properties)

    def request(self, quantities: tuple[str, ...]) -> None:
        """Set the quantities to compute; raise if the calculator cannot compute one.

        Args:
            quantities: their names; empty for energy and forces.
        """
        wanted = quantities or USUAL
        missing = [name for name in wanted if name not in self.offers]
        if missing:
            raise ModelError(
                f"expected quantities that {type(self._calculator).__name__} offers "
                f"({', '.join(self.offers) or 'none'}), got {missing[0]}; pass quantities="
            )
        self.quantities = wanted

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Shut worker processes down when the scan ends."""
        try:
            yield
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None

    def __call__(self, batch: Tree) -> Raw:
        """Return the quantities of a batch `{pos, numbers, and maybe mask, cell, pbc}`."""
        molecules, present = _molecules_to_calculate(batch)
        # A calculator may take derivatives by torch, which a scan of networks turns off.
        with torch.inference_mode(False), torch.enable_grad():
            answers = self._calculate(molecules)
        count, most = present.shape
        outputs = {
            name: np.full((count, *_SHAPES.get(name, (most, 3))), np.nan)
            for name in self.quantities
        }
        errors = {row: answer for row, answer in enumerate(answers) if isinstance(answer, str)}
        for row, answer in enumerate(answers):
            for name, values in answer.items() if isinstance(answer, dict) else ():
                if name == "forces":
                    outputs[name][row] = 0.0
                    outputs[name][row, present[row]] = values
                else:
                    outputs[name][row] = values
        device = batch["pos"].device if isinstance(batch["pos"], Tensor) else None
        given = {name: torch.as_tensor(values, device=device) for name, values in outputs.items()}
        return PartialOutputs(given, errors) if errors else given

    def _calculate(self, molecules: Sequence[Sized]) -> list[Answer]:
        if self.workers == 1:
            return [calculate(self._calculator, one, self.quantities) for one in molecules]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers,
                mp_context=get_context("spawn"),  # threads of torch survive no fork
                initializer=_start_worker,
                initargs=(self.maker,),
            )
        try:
            each = -(-len(molecules) // (4 * self.workers))
            names = [self.quantities] * len(molecules)
            return list(self._pool.map(_calculate_in_worker, molecules, names, chunksize=each))
        except BrokenProcessPool as error:
            raise ModelError(
                f"model {self.source}: a worker process could not start or was killed: {error}"
            ) from error


def _molecules_to_calculate(batch: Tree) -> tuple[Sequence[Sized], np.ndarray]:
    """Return a batch as `ase.Atoms`, and which of its places `[N, n]` are atoms."""
    from ase import Atoms

    if not isinstance(batch, dict) or not {"pos", "numbers"} <= {*batch}:
        expected = "molecules, a dictionary with pos and numbers"
        remedy = "pass a list of ase.Atoms with the task 'atoms'"
        raise InputError("data", expected, type(batch), remedy=remedy)
    arrays = to_numpy(batch)
    present = arrays.get("mask", arrays["numbers"] > 0).astype(bool)
    lattice = {name: arrays[name] for name in ("cell", "pbc") if name in arrays}
    molecules = [
        Atoms(
            arrays["numbers"][row, kept],
            arrays["pos"][row, kept].astype(float),
            **{name: values[row] for name, values in lattice.items()},
        )
        for row, kept in enumerate(present)
    ]
    return molecules, present


def calculate(calculator: Any, atoms: Sized, quantities: tuple[str, ...]) -> Answer:
    """Return the quantities of one molecule, or the reason why that failed."""
    from ase.calculators.calculator import all_changes

    try:
        if hasattr(calculator, "reset"):
            calculator.reset()  # results of the previous molecule must not be reused
        calculator.results = {}
        calculator.calculate(atoms, list(quantities), list(all_changes))
        found = {name: calculator.results.get(name) for name in quantities}
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:_MESSAGE_LENGTH]
    for name, values in found.items():
        if values is None:
            return f"the calculator returned no {name}"
        if not np.isfinite(values).all():
            return f"the calculator returned {name} that are NaN or infinite"
        if np.size(values) != np.prod(_SHAPES.get(name, (len(atoms), 3))):
            return f"the calculator returned {name} of shape {np.shape(values)}"
    return {name: np.array(values, float) for name, values in found.items()}


def _is_factory(given: object) -> bool:
    return isinstance(given, str | type) or not is_calculator(given)


def _make_calculator(given: object) -> Any:
    """Return a calculator, made by its factory if one is given."""
    thing = import_attribute(given, "model") if isinstance(given, str) else given
    if _is_factory(thing) and callable(thing):
        maker: Callable[[], object] = thing
        try:
            thing = maker()
        except Exception as error:
            raise ModelError(
                f"model {name_of(maker)}: expected a factory without arguments, got "
                f"{type(error).__name__}: {error}"
            ) from error
    if not is_calculator(thing):
        raise InputError("model", "an ASE calculator or a factory of one", type(thing))
    return thing


_in_worker: dict[str, object] = {}


def _start_worker(maker: object) -> None:
    end_with_parent()
    torch.set_num_threads(1)
    _in_worker["calculator"] = _make_calculator(maker)


def _calculate_in_worker(atoms: Sized, quantities: tuple[str, ...]) -> Answer:
    return calculate(_in_worker["calculator"], atoms, quantities)
