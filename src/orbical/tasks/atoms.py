"""Energies, forces, dipoles and stresses of molecules, which rotate with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .._ragged import to_padded
from .._trees import Tree
from .._warnings import warn
from ..actions import ActionTree, Points, Rows, Trivial, Vectors
from ..errors import InputError, unknown_name
from ..groups import Elements
from . import reading
from .quantities import MEASURES, PER_ATOM, SHAPES, SMALL, UNITS, Quantities, shaped_quantity
from .structures import read_structures, structure_display_name, structure_names
from .task import Reader, Results, Task, Variable, per_element, per_sample

DEFAULT_QUANTITIES = ("energy", "forces")
_INPUT = {"pos": Points(), "numbers": Rows(), "mask": Rows(), "cell": Vectors(), "pbc": Trivial()}


class Atoms(Task):
    """Predict energies and forces: an energy is invariant, forces rotate with the molecule.

    Data are a list of `ase.Atoms`, the path of a file of them, the result of
    `orbical.datasets.molecules`, a dictionary with
    `pos [N, n, 3]` and `numbers [N, n]` (0 for padding), and optionally `mask`, `cell` and `pbc`,
    or a batch without padding: `pos [total, 3]`, `numbers [total]` and `ptr` or `batch`, or a batch
    or list of graphs of PyTorch Geometric.
    Models are ASE calculators (see `orbical.predictors`), or anything that returns for a padded
    batch a dictionary of the requested quantities: `energy [N]` in eV, `forces [N, n, 3]` in eV/Å,
    `dipole [N, 3]` in e·Å, `stress [N, 3, 3]` or `[N, 6]` (Voigt) in eV/Å³; or a tuple in this
    order, or a bare tensor of a single quantity. `orbical.predictors.RaggedPredictor` takes models
    that want no padding.

    Every quantity is compared with the consensus along the orbit, the mean of the un-transformed
    outputs, and with the truth where it is known: `energy_vs_consensus`, `forces_vs_truth` and so
    on, in its unit (energies also per atom, `energy_per_atom_vs_consensus`). `score` is one of
    them. `atom_vs_consensus` is the length of the difference of each atom's force from the
    consensus, which finds the worst molecule, atom and rotation.

    Args:
        quantities: some of energy, forces, dipole, stress.
        score: the quantity that is the score; by default forces if requested, else the first.
        input: the action on each field of the data, if not the usual one.
        read: a function that picks the quantities from a raw model output.

    Raises:
        InputError: if a quantity is unknown, or `score` is not one of them.

    Example:
        >>> import orbical as ob
        >>> ob.tasks.Atoms(["energy", "dipole"])
        Atoms(quantities=['energy', 'dipole'], score='energy')
    """

    name: ClassVar[str] = "atoms"
    has_mean = False
    primary_output: ClassVar[str | None] = "answer"
    detail_view: ClassVar[str] = "atoms"
    truth_kind: ClassVar[str] = "quantities"
    higher_is_better: ClassVar[bool] = False
    truth_dims = ("quantity_component",)

    def __init__(
        self,
        quantities: str | Iterable[str] = DEFAULT_QUANTITIES,
        score: str | None = None,
        input: ActionTree | None = None,
        read: Reader | None = None,
    ) -> None:
        self._output = Quantities(quantities)
        self.quantities = tuple(self._output.quantities)
        if score is not None and score not in self.quantities:
            names = ", ".join(self.quantities)
            raise InputError("score", f"one of the quantities {names}", repr(score))
        usual = "forces" if "forces" in self.quantities else self.quantities[0]
        self.chosen = usual if score is None else score
        self.score_unit = UNITS[self.chosen]
        self.score_meaning = f"{MEASURES[self.chosen]} in {self.score_unit}"
        super().__init__(_INPUT if input is None else input, self._output, read)

    # Data and truth.

    def take(self, data: object) -> object:
        """Convert molecules, and the truth of the requested quantities, to arrays."""
        inputs, truth = read_structures(data)
        flat = torch.linalg.det(inputs["cell"].double()) == 0
        if "stress" in self.quantities and bool(flat.any()):
            got = f"none in molecule {int(flat.int().argmax())}"
            raise InputError("stress", "a cell with a volume", got)
        if not isinstance(truth, Mapping):
            return inputs, truth
        if truth and not {*truth} & {*UNITS}:  # other quantities are ignored
            raise unknown_name("truth", next(iter(truth)), UNITS)
        wanted = {name: truth[name] for name in self.quantities if truth.get(name) is not None}
        rows = self._row(wanted, inputs["mask"]) if wanted else None
        if wanted and self.chosen not in wanted:
            warn(
                f"the truth has {', '.join(wanted)} but not the score {self.chosen}, and is not "
                f"used; pass score={next(iter(wanted))!r} to score by it",
            )
            return inputs, None
        return inputs, rows

    def names(self, data: object) -> list[str] | None:
        """Return the names of the molecules, `atoms.info["name"]`."""
        return structure_names(data)

    def usual_group(self, x: Tree) -> str:
        """Raise an error that asks for a group of space."""
        raise InputError("group", "a group of space, such as 'rotations3d:8'", "none")

    def sample_name(self, x: Tree, index: int, names: Sequence[str] | None) -> str:
        """Return the number, the name if any, and the formula of a molecule."""
        name = names[index] if names else ""
        return f"molecule {index}: {structure_display_name(name, x['numbers'][index].tolist())}"

    def _row(self, truth: Mapping[str, object], mask: Tensor) -> Tensor:
        """Return the truth as one row for each molecule, NaN for what is not known."""
        count, atoms = mask.shape
        blocks = self._output.missing(count, atoms)
        for name, values in truth.items():
            if name == "forces" and isinstance(values, list) and all(map(np.shape, values)):
                _check_rows_of_forces(values, mask.sum(1).tolist())
                values = np.concatenate(values)  # one array for each molecule
            given = reading.read_truth(values, name="truth")
            if name == "forces" and given.ndim == 2 and len(given) == int(mask.sum()):
                given = to_padded(given.double(), mask, torch.nan)  # of a ragged batch
            fitted = shaped_quantity(name, given.double(), count)
            expected = tuple(blocks[name].shape)
            if fitted is None or fitted.shape != expected:
                shape = tuple(given.shape)
                raise InputError("truth", f"{name} of shape {expected}", shape)
            blocks[name] = fitted
        return self._output.join(blocks)

    def check_target(self, target: object, count: int) -> Tensor:
        """Check rows `[N, D]` of the quantities, NaN where they are not known."""
        rows = reading.read_truth(target, count, "truth")
        if rows.ndim != 2 or not self._output.fits(rows.shape[1]):
            raise InputError("truth", f"a dictionary of {', '.join(self.quantities)}", rows)
        if bool(rows.isinf().any()):
            raise InputError("truth", "finite numbers", "infinity", remedy="NaN marks unknown ones")
        return rows.double()

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check that truth and outputs are of the same number of atoms."""
        true, predicted = (self._output.atoms(x.shape[1]) for x in (target, outputs["answer"]))
        reading.check_as_predicted(true, predicted, f"{predicted} atoms", "truth")

    # What models return.

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read the quantities of N molecules as rows `[N, D]`."""
        given = self.picked(raw)
        if isinstance(given, Tensor) and len(self.quantities) == 1:
            given = (given,)
        if isinstance(given, tuple) and len(given) == len(self.quantities):
            given = dict(zip(self.quantities, given, strict=True))
        if not isinstance(given, dict) or not {*self.quantities} <= {*given}:
            expected = f"a dictionary of {', '.join(self.quantities)}"
            remedy = f"request less with quantities=; {reading.reading_remedy(given)}"
            raise reading.wrong_output(expected, reading.described_value(given), remedy)
        counts = {q: len(x) if isinstance(x := given[q], Tensor) and x.ndim else 0 for q in given}
        if len({counts[q] for q in self.quantities} - {0}) > 1:
            forms = ", ".join(map(_form, self.quantities))
            shapes = (f"{q} {tuple(getattr(given[q], 'shape', ()))}" for q in self.quantities)
            raise reading.wrong_output(f"{forms} of the same molecules", ", ".join(shapes))
        count = max(counts[q] for q in self.quantities)
        blocks = {}
        for name in self.quantities:
            values = given[name]
            fitted = shaped_quantity(name, values, count) if reading.is_real(values) else None
            if fitted is None:
                raise reading.wrong_output(_form(name), reading.described_value(values))
            blocks[name] = fitted if fitted.dtype == torch.float64 else fitted.float()
        return {"answer": self._output.join(blocks)}

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Add the atomic numbers to the outputs, and blank the forces on padding."""
        numbers, answer = moved["numbers"], outputs["answer"]
        padding = self._padding(numbers)
        if "forces" in self.quantities and padding.shape != answer.shape:
            expected = f"forces on the {numbers.shape[-1]} atoms of the batch, including padding"
            raise reading.wrong_output(expected, self._output.atoms(answer.shape[-1]))
        return {"answer": answer.masked_fill(padding, torch.nan), "numbers": numbers}

    def _padding(self, numbers: Tensor) -> Tensor:
        """Mark the columns `[K, B, D]` of a row that are forces on padding."""
        widths = self._output.widths(numbers.shape[-1])
        if "forces" not in widths:
            return numbers.new_zeros(*numbers.shape[:-1], sum(widths.values()), dtype=torch.bool)
        before = widths.get("energy", 0)
        after = sum(widths.values()) - before - widths["forces"]
        return pad((numbers == 0).repeat_interleave(3, -1), (before, after))

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark molecules with NaN or infinite outputs, padding aside."""
        answer = outputs["answer"]
        wrong = ~torch.isfinite(answer) & ~self._padding(outputs["numbers"])
        return {"NaN or infinite output": wrong.any(-1)}

    # How good it is.

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the distance of the chosen quantity."""
        return self._output.distances(outputs, reference)[self.chosen].float()

    def _named(self, distances: dict[str, Tensor], reference: str, numbers: Tensor) -> Results:
        """Name the distances as they are stored; energies also per atom."""
        named = {f"{name}_vs_{reference}": values.float() for name, values in distances.items()}
        if "energy" in distances:
            each = distances["energy"] / (numbers > 0).sum(-1)
            named[f"energy_per_atom_vs_{reference}"] = each.float()
        return named

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average over the elements that have an output, `[B, D]`."""
        outputs = outputs.double()
        there = ~outputs.isnan().all(-1)
        share = weights.double()[:, None] * there
        share = share / share.sum(0)
        first = outputs[there.int().argmax(0), torch.arange(outputs.shape[1], device=there.device)]
        return first + torch.einsum("kb,kbd->bd", share, (outputs - first).nan_to_num(0.0))

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared distance of the chosen quantity, so that the gap has its unit."""
        return self._output.distances(outputs, center[None])[self.chosen].square()

    def scale(self, answers: Tensor) -> Tensor:
        """Return the largest entry of each quantity, so that energies do not hide the forces."""
        blocks = self._output.split(answers.nan_to_num(0.0))
        largest = {name: block.abs().max().clamp_min(SMALL[name]) for name, block in blocks.items()}
        return self._output.join(
            {name: largest[name].expand_as(block) for name, block in blocks.items()}
        )

    def parts(self, answers: Tensor) -> dict[str, Tensor]:
        """Return each quantity of rows `[K, B, D]`."""
        return self._output.split(answers)

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare each quantity, and its distance from the consensus and the truth."""
        references = ("consensus", "truth") if labeled else ("consensus",)
        declared = self.common_variables(labeled, self.truth_dims)
        declared["numbers"] = per_sample("atomic numbers, 0 for padding", "atom")
        for name in self.quantities:
            unit, axes = UNITS[name], SHAPES[name]
            mean = f"mean of the un-transformed {name} in {unit}"
            declared[name] = per_element(f"{name} in {unit}", *axes, unit=unit)
            declared[f"consensus_{name}"] = per_sample(mean, *axes, unit=unit)
            for reference in references:
                apart, off = f"{name}_vs_{reference}", f"{MEASURES[name]} from the {reference}"
                declared[apart] = per_element(f"{off} in {unit}", unit=unit, higher_is_better=False)
                if name == "energy":
                    declared[f"energy_per_atom_vs_{reference}"] = per_element(
                        f"{off} in eV per atom", unit=PER_ATOM, higher_is_better=False
                    )
        if "forces" in self.quantities:
            what = "length of an atom's force minus the consensus in eV/Å"
            declared["atom_vs_consensus"] = per_element(what, "atom")
        return declared

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return the quantities: energies in double precision, the rest in single precision."""
        blocks = self._output.split(outputs["answer"])
        numbers = Rows().move(elements.inverse(), outputs["numbers"])[0]
        stored = {
            name: block.double() if name == "energy" else block.float()
            for name, block in blocks.items()
        }
        return {**stored, "numbers": numbers.to(torch.int16)}

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> Results:
        """Compare every quantity with the consensus, and with the truth where it is known."""
        answers = self.primary(outputs).double()
        consensus = self.average(self.output.move(elements.inverse(), answers), weights, None)
        moved = self.output.move(elements, consensus[None])
        found = self._output.distances(answers, moved)
        squares, share = found[self.chosen].square(), weights.double()[:, None]
        seen = share * ~squares.isnan()
        gap = ((share * squares.nan_to_num(0.0)).sum(0) / seen.sum(0)).sqrt()
        # A single answer is its own consensus: nothing is known about its gap.
        alone = (~squares.isnan()).sum(0) < min(2, len(squares))
        summary = {
            "consensus": consensus,
            "invariance_gap": gap.float().masked_fill(alone, torch.nan),
            "score_vs_consensus": found[self.chosen].float(),
            **self._named(found, "consensus", outputs["numbers"]),
            **{f"consensus_{k}": v for k, v in self._output.split(consensus).items()},
            **self.extras(outputs, target, elements),
        }
        if "forces" in self.quantities:
            apart = self._output.split(answers - moved)["forces"]
            summary["atom_vs_consensus"] = apart.square().sum(-1).sqrt().float()
        if target is not None:
            true = self._output.distances(answers, self.output.move(elements, target[None]))
            summary |= self._named(true, "truth", outputs["numbers"])
            summary["score"] = summary[f"{self.chosen}_vs_truth"]
            summary["consensus_vs_truth"] = self.score(consensus[None], target[None], None)[0]
        return self._sample_first(summary, target is not None)


def _check_rows_of_forces(forces: Sequence[Any], atoms: Sequence[int]) -> None:
    """Check the forces of each molecule: of another order their sum of rows is the same."""
    if len(forces) != len(atoms):
        raise InputError("truth", f"forces of {len(atoms)} molecules", len(forces))
    for place, (rows, expected) in enumerate(zip(map(len, forces), atoms, strict=True)):
        if rows != expected:
            wanted = f"a row of forces for each of the {expected} atoms of molecule {place}"
            raise InputError("truth", wanted, f"{rows} rows")


def _form(quantity: str) -> str:
    return f"{quantity} [{', '.join(('molecule', *SHAPES[quantity]))}]"
