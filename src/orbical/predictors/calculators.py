"""ASE calculators as predictors: one molecule at a time, here or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._imports import import_attribute, name_of
from .._trees import Tree
from ..errors import InputError, MissingExtra, ModelError
from .base import Partial, Predictor, to_numpy

USUAL = ("energy", "forces")
_SHAPES: dict[str, tuple[int, ...]] = {"energy": (), "dipole": (3,), "stress": (6,)}
_MOST_WORDS = 300


def is_calculator(thing: Any) -> bool:
    """Whether this is an ASE calculator, or a class of them, told without loading ASE."""
    return hasattr(thing, "implemented_properties") and hasattr(thing, "get_property")


class CalculatorPredictor(Predictor):
    """An ASE calculator: energy, forces, dipole and stress of molecules, in the units of ASE.

    Each molecule is calculated afresh, so that no answer depends on the one before. Where the
    calculator raises, or gives a number that is none, the molecule has NaN for its answer and the
    error is recorded; the scan goes on.

    Args:
        calculator: a calculator; or what makes one: a class, a function without arguments, or
            their import path `package.module:attribute`.
        workers: processes to spread molecules over. Each makes its own calculator, so with more
            than one `calculator` must be what makes one, and be importable.

    >>> from ase.calculators.emt import EMT
    >>> model = CalculatorPredictor(EMT)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0.76, 0, 0.59], [-0.76, 0, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> {name: tuple(values.shape) for name, values in model(water).items()}
    {'energy': (1,), 'forces': (1, 3, 3)}
    """

    one_at_a_time = True

    def __init__(self, calculator: Any, workers: int = 1) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise InputError(f"workers: {workers!r} given, a whole number >= 1 expected")
        try:
            import ase  # noqa: F401
        except ImportError:
            raise MissingExtra("ase", "chemistry", "a calculator as a model") from None
        self.workers = workers
        self.quantities = USUAL
        self.maker = calculator if _is_maker(calculator) else None
        if workers > 1 and self.maker is None:
            raise InputError(
                f"workers: {workers} given for a calculator that is made already; what makes one "
                "(a class, a function, an import path) expected, as each worker needs its own"
            )
        self._calculator = made(calculator)
        self._pool: ProcessPoolExecutor | None = None
        is_text = isinstance(calculator, str)
        self.source = calculator if is_text else name_of(type(self._calculator))

    @property
    def offers(self) -> tuple[str, ...]:
        """What the calculator says it can give."""
        return tuple(self._calculator.implemented_properties)

    def ask(self, quantities: tuple[str, ...]) -> None:
        """Ask for these quantities from now on, refused where the calculator offers them not."""
        wanted = quantities or USUAL
        missing = [name for name in wanted if name not in self.offers]
        if missing:
            raise ModelError(
                f"{missing[0]} asked for, but {type(self._calculator).__name__} offers "
                f"{', '.join(self.offers) or 'nothing'}; ask for less with quantities="
            )
        self.quantities = wanted

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Let worker processes go when the scan ends."""
        try:
            yield
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None

    def __call__(self, batch: Tree) -> Any:
        """Calculate the molecules of a batch `{pos, numbers, and maybe mask, cell, pbc}`."""
        molecules = _molecules(batch)
        # A calculator may take derivatives by torch, which a scan of networks turns off.
        with torch.inference_mode(False), torch.enable_grad():
            answers = self._calculate(molecules)
        count, most = np.shape(batch["numbers"])
        outputs = {
            name: np.full((count, *_SHAPES.get(name, (most, 3))), np.nan)
            for name in self.quantities
        }
        errors = {}
        for row, (molecule, answer) in enumerate(zip(molecules, answers, strict=True)):
            if isinstance(answer, str):
                errors[row] = answer
                continue
            for name in self.quantities:
                if name == "forces":
                    outputs[name][row] = 0.0
                    outputs[name][row, molecule.places] = answer[name]
                else:
                    outputs[name][row] = answer[name]
        device = batch["pos"].device if isinstance(batch["pos"], Tensor) else None
        given = {name: torch.as_tensor(values, device=device) for name, values in outputs.items()}
        return Partial(given, errors) if errors else given

    def _calculate(self, molecules: list[_Molecule]) -> list[dict[str, Any] | str]:
        if self.workers == 1:
            return [answer_of(self._calculator, one, self.quantities) for one in molecules]
        try:
            pool = self._pool or self._started()
            each = -(-len(molecules) // (4 * self.workers))
            names = [self.quantities] * len(molecules)
            return list(pool.map(_answer_in_worker, molecules, names, chunksize=each))
        except BrokenProcessPool as error:
            raise ModelError(
                f"model {self.source}: a worker process could not start or was killed: {error}"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        import multiprocessing

        self._pool = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),  # threads of torch survive no fork
            initializer=_start_worker,
            initargs=(self.maker,),
        )
        return self._pool


class _Molecule(NamedTuple):
    """One molecule of a batch; `places` are its rows there."""

    numbers: np.ndarray
    positions: np.ndarray
    cell: np.ndarray
    pbc: np.ndarray
    places: np.ndarray


def _molecules(batch: Tree) -> list[_Molecule]:
    if not isinstance(batch, dict) or not {"pos", "numbers"} <= {*batch}:
        raise InputError(
            "data: a calculator needs molecules, as a dictionary with pos and numbers; the task "
            "'atoms' makes them from a list of ase.Atoms"
        )
    arrays = to_numpy(batch)
    count = len(arrays["numbers"])
    present = arrays.get("mask", arrays["numbers"] > 0).astype(bool)
    cells = arrays.get("cell", np.zeros((count, 3, 3)))
    periodic = arrays.get("pbc", np.zeros((count, 3))).astype(bool)
    return [
        _Molecule(
            arrays["numbers"][row, places],
            arrays["pos"][row, places].astype(float),
            cells[row].astype(float),
            periodic[row],
            places,
        )
        for row in range(count)
        for places in (np.flatnonzero(present[row]),)
    ]


def answer_of(
    calculator: Any, molecule: _Molecule, quantities: tuple[str, ...]
) -> dict[str, Any] | str:
    """Calculate one molecule; where that fails, say why."""
    from ase import Atoms
    from ase.calculators.calculator import all_changes

    try:
        atoms = Atoms(molecule.numbers, molecule.positions, cell=molecule.cell, pbc=molecule.pbc)
        if hasattr(calculator, "reset"):
            calculator.reset()  # results of the molecule before must not be taken for this one's
        calculator.results = {}
        calculator.calculate(atoms, list(quantities), list(all_changes))
        found = {name: calculator.results.get(name) for name in quantities}
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:_MOST_WORDS]
    for name, values in found.items():
        if values is None:
            return f"the calculator gave no {name}"
        if not np.isfinite(values).all():
            return f"the calculator gave {name} that are NaN or infinite"
        size = len(molecule.numbers) * 3 if name == "forces" else _SIZES[name]
        if np.size(values) != size:
            return f"the calculator gave {name} of shape {np.shape(values)}"
    return {name: np.array(values, float) for name, values in found.items()}


_SIZES = {"energy": 1, "dipole": 3, "stress": 6}


def _is_maker(given: Any) -> bool:
    return isinstance(given, str | type) or not is_calculator(given)


def made(given: Any) -> Any:
    """Make a calculator from what makes one, or take it as it is."""
    thing = import_attribute(given, "model") if isinstance(given, str) else given
    maker: Callable[[], Any] | None = thing if _is_maker(thing) else None
    if maker is not None:
        if not callable(maker):
            raise InputError(
                f"model: a {type(thing).__name__} given; an ASE calculator, or what makes one, "
                "expected"
            )
        try:
            thing = maker()
        except Exception as error:
            raise ModelError(
                f"model {name_of(maker)}: raised {type(error).__name__} when called without "
                f"arguments: {error}"
            ) from error
    if not is_calculator(thing):
        raise InputError(f"model: a {type(thing).__name__} given, an ASE calculator expected")
    return thing


_in_worker: dict[str, Any] = {}


def _start_worker(maker: Any) -> None:
    torch.set_num_threads(1)
    _in_worker["calculator"] = made(maker)


def _answer_in_worker(molecule: _Molecule, quantities: tuple[str, ...]) -> dict[str, Any] | str:
    return answer_of(_in_worker["calculator"], molecule, quantities)
