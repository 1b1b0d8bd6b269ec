"""The audit of a potential: the task of `orbical scan --task atoms`, and its closing tables.

They name the molecule, the atom and the rotation where each model is worst, in the units of ASE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, ModelError

if TYPE_CHECKING:
    from ..store.scan_result import Scan

_MOST_FAILURES = 10
SINGLE = 1e-4
"""The largest relative violation that is attributed to rounding in single precision; for energies,
whose zero is arbitrary, in eV per atom."""

_OF_SIZE = "equivariant", "of the size"


def prepare(
    models: Mapping[str, str],
    quantities: str | None = None,
    workers: int = 1,
    action: Any = None,
    reader: Any = None,
    score: str | None = None,
) -> tuple[dict[str, Any], Any]:
    """Load the models and build the task with the quantities that all of them offer.

    Without `quantities` these are energy and forces, or the one of them that is offered.
    """
    from ..predictors import CalculatorPredictor, as_predictor
    from ..tasks import Atoms
    from ..tasks.atoms import DEFAULT

    loaded = {name: as_predictor(source) for name, source in models.items()}
    calculators = {
        n: model for n, model in loaded.items() if isinstance(model, CalculatorPredictor)
    }
    for model in calculators.values():
        model.workers = workers
    if workers > 1 and not calculators:
        raise InputError("--workers", "1 without a calculator among the models", workers)
    if quantities is not None:
        return loaded, Atoms(quantities, score, action, reader)
    offered = [q for q in DEFAULT if all(q in one.offers for one in calculators.values())]
    if not offered:
        name, one = next(iter(calculators.items()))
        raise ModelError(
            f"model {name!r}: expected energy or forces, got {', '.join(one.offers) or 'nothing'}; "
            "choose quantities that all models offer with --quantities"
        )
    return loaded, Atoms(offered, score, action, reader)


def load(text: str) -> Any:
    """Read a file of molecules with their names; return None for other kinds of data."""
    from ..datasets.molecule_files import SUFFIXES, read_structures

    return read_structures(Path(text)) if text.lower().endswith(SUFFIXES) else None


@dataclass(frozen=True)
class Violation:
    """Where one model violates equivariance most in one quantity.

    `largest` is the distance from the consensus there, for forces of that atom alone; `usual` is
    its root mean square over all molecules and rotations; `size` is the root mean square of the
    components of the quantity itself, for comparison (None for energies, whose zero is arbitrary);
    `relative` is the largest in units of the size, for energies in eV per atom; `error` is the mean
    absolute error per component of the untransformed molecules (None without true values).
    `answered` of `asked` calculations gave an answer.
    """

    model: str
    quantity: str
    unit: str
    largest: float
    usual: float
    size: float | None
    relative: float
    error: float | None
    answered: int
    asked: int
    sample: int
    molecule: str
    atom: str
    element: int
    rotation: str


def violations(scan: Scan) -> list[Violation]:
    """Find the largest violation of each model in each quantity that it returned."""
    return [
        found
        for model in scan.models
        for quantity in scan.record.task.settings["quantities"]
        if (found := _worst(scan, model, quantity)) is not None
    ]


def _worst(scan: Scan, model: str, quantity: str) -> Violation | None:
    import numpy as np

    from ..tasks.quantities import UNITS
    from ..tasks.structures import SYMBOLS

    data = scan.data.sel(model=model)
    given = np.asarray(data[f"{quantity}_vs_consensus"], float)
    answered = ~np.isnan(given)
    # A single answer is its own consensus, which says nothing.
    alone = (answered.sum(1) < min(2, len(scan.group)))[:, None]
    usual = np.where(alone, np.nan, given)
    if np.isnan(usual).all():
        return None
    places = usual
    if quantity == "forces":
        places = np.where(alone, np.nan, data["atom_vs_consensus"].max("atom"))
    ranked = places.copy()
    ranked[:, scan.group.identity] *= 1 - 1e-6  # where two elements disagree, name what moves
    sample, element = (int(i) for i in np.unravel_index(np.nanargmax(ranked), places.shape))
    numbers = np.asarray(data["numbers"][sample])
    atom = ""
    if quantity == "forces":
        which = int(np.nanargmax(np.asarray(data["atom_vs_consensus"][sample, element])))
        still = _home(scan, element, which)
        atom = f"{SYMBOLS[int(numbers[still])]}, atom {still}"
    largest = float(places[sample, element])
    size = None
    if quantity == "energy":
        each = np.where(alone, np.nan, data["energy_per_atom_vs_consensus"])
        relative = float(np.nanmax(each))
    else:
        # Of the answers: the consensus is zero where they are wrong by their whole size.
        size = float(np.sqrt(np.nanmean(np.asarray(data[quantity], float) ** 2)))
        relative = largest / size if size else 0.0
    return Violation(
        model,
        quantity,
        UNITS[quantity],
        largest,
        float(np.sqrt(np.nanmean(usual**2))),
        size,
        relative,
        _mean_absolute_error(scan, data, quantity),
        int(answered.sum()),
        answered.size,
        sample,
        molecule_name(scan, sample, numbers),
        atom,
        element,
        rotation_name(scan, element),
    )


def _mean_absolute_error(scan: Scan, data: Any, quantity: str) -> float | None:
    import numpy as np
    import torch

    from ..tasks.quantities import Quantities

    if "target" not in data:
        return None
    rows = torch.from_numpy(np.array(data["target"], float))
    truth = Quantities(scan.record.task.settings["quantities"]).split(rows)[quantity].numpy()
    answered = np.asarray(data[quantity].isel(element=scan.group.identity), float)
    off = np.abs(answered - truth)
    return None if np.isnan(off).all() else float(np.nanmean(off))


def molecule_name(scan: Scan, sample: int, numbers: Any) -> str:
    """Return the number, the name if any, and the formula of a molecule in a scan."""
    from ..tasks.structures import display_name

    names = scan.names
    return f"{sample}: {display_name('' if names is None else names[sample], numbers)}"


def verdict(found: Violation) -> str:
    """Return a sentence that says whether a quantity is equivariant and, if not, where it fails.

    >>> where = (3, "3: CO2", "O, atom 1", 7, "element 7: 90.0°")
    >>> verdict(Violation("net", "forces", "eV/Å", 0.02, 0.01, 0.5, 0.04, None, 8, 8, *where))
    'net, forces: not equivariant, off by up to 0.02 eV/Å (0.04 of the size), at O, atom 1, 3: CO2'
    >>> verdict(Violation("net", "energy", "eV", 1e-12, 1e-13, None, 3e-13, None, 6, 8, *where))
    'net, energy: invariant in 6 of 8 calculations, off by at most 1e-12 eV (3e-13 eV per atom)'
    """
    quality, unit = ("invariant", "eV per atom") if found.size is None else _OF_SIZE
    subject = f"{found.model}, {found.quantity}"
    numbers = f"{found.largest:.2g} {found.unit} ({found.relative:.2g} {unit})"
    if found.relative <= SINGLE:
        part = f" in {found.answered} of {found.asked} calculations"
        part = part if found.answered < found.asked else ""
        return f"{subject}: {quality}{part}, off by at most {numbers}"
    where = ", ".join(filter(None, (found.atom, found.molecule)))
    return f"{subject}: not {quality}, off by up to {numbers}, at {where}"


def _home(scan: Scan, element: int, atom: int) -> int:
    """Return the index of an atom in the untransformed molecule, if elements permute atoms."""
    rows = scan.group.parts.get("rows")
    return atom if rows is None else int(rows[element][atom])


def rotation_name(scan: Scan, element: int) -> str:
    """Return the angle in degrees and the axis of a rotation of space, otherwise its name."""
    import numpy as np
    from scipy.spatial.transform import Rotation

    name = f"element {element}"
    turn = scan.group.linear("space")[element] if {*scan.group.parts} == {"space"} else None
    if turn is None or np.linalg.det(turn) < 0:
        return f"{name}: {scan.group.name(element)}"
    vector = Rotation.from_matrix(turn).as_rotvec()
    angle = float(np.linalg.norm(vector))
    if angle < 1e-9:
        return f"{name}: identity"
    axis = ", ".join(f"{part:.2f}" for part in vector / angle)
    return f"{name}: {np.rad2deg(angle):.1f}° about ({axis})"


def print_audit(scan: Scan, console: Any = None) -> None:
    """Print the largest violation of each model in each quantity, and the failures."""
    from rich.markup import escape
    from rich.table import Table

    from .._console import Console

    out = console or Console()
    title = f"Largest violations of equivariance under {scan.group.spec}"
    table = Table(title=title, show_edge=False, pad_edge=False, box=None, padding=(0, 1, 0, 0))
    found = violations(scan)
    headings = {
        "model": [escape(one.model) for one in found],
        "quantity": [f"{one.quantity}, {one.unit}" for one in found],
        "largest": [f"{one.largest:.2e}" for one in found],
        "root mean square": [f"{one.usual:.2e}" for one in found],
        "size": ["" if one.size is None else f"{one.size:.3g}" for one in found],
        "mean absolute error": ["" if one.error is None else f"{one.error:.3g}" for one in found],
        "molecule": [escape(one.molecule) for one in found],
        "atom": [one.atom for one in found],
        "rotation": [one.rotation for one in found],
    }
    if not any(headings["mean absolute error"]):
        del headings["mean absolute error"]
    for heading in headings:
        words = heading in ("model", "quantity", "molecule", "atom", "rotation")
        table.add_column(
            heading,
            justify="left" if words else "right",
            overflow="fold",
            min_width=max(map(len, heading.split())),  # no word is split before names are
        )
    for row in zip(*headings.values(), strict=True):
        table.add_row(*row)
    out.print(table)
    for one in found:
        out.print(escape(verdict(one)))
    for model in scan.models:
        if model not in {one.model for one in found}:
            out.print(escape(f"{model}: not decided, no molecule has answers at two elements"))
    for model, failed in scan.failures.items():
        if failed:
            _print_failures(scan, model, failed, out)


def _print_failures(scan: Scan, model: str, failed: list[dict[str, Any]], out: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{escape(model)} failed on {len(failed)} molecules")
    for heading in ("molecule", "rotations", "error"):
        table.add_column(heading, overflow="fold")
    numbers = scan.data["numbers"].sel(model=model)
    for one in failed[:_MOST_FAILURES]:
        atoms = numbers[one["sample"]].values
        table.add_row(
            escape(molecule_name(scan, one["sample"], atoms)),
            f"{one['places']} of {len(scan.group)}",
            escape(one["error"]),
        )
    if len(failed) > _MOST_FAILURES:
        table.add_row(f"and {len(failed) - _MOST_FAILURES} more", "", "")
    out.print(table)
