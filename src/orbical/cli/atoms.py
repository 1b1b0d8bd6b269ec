"""The audit of a potential: what `orbical scan --task atoms` asks for, and what it says at the end.

It names the molecule, the atom and the rotation where each model is worst, in the units of ASE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError, ModelError

if TYPE_CHECKING:
    from ..store import Scan

_MOST_FAILURES = 10


def prepare(
    models: Mapping[str, str],
    quantities: str | None = None,
    workers: int = 1,
    input: str | None = None,
    read: str | None = None,
) -> tuple[dict[str, Any], Any]:
    """Load the models and make the task that asks for what all of them offer.

    Without `quantities` these are energy and forces, or the one of them that is offered.
    """
    from ..predictors import CalculatorPredictor, as_predictor
    from ..sources import import_attribute
    from ..tasks import Atoms, parse_input
    from ..tasks.atoms import DEFAULT

    action = None if input is None else parse_input(input)
    reader = None if read is None else import_attribute(read, "--read")
    loaded = {name: as_predictor(source) for name, source in models.items()}
    calculators = {
        name: model for name, model in loaded.items() if isinstance(model, CalculatorPredictor)
    }
    for model in calculators.values():
        model.workers = workers
    if workers > 1 and not calculators:
        raise InputError("--workers: no calculator is among the models")
    if quantities is not None:
        return loaded, Atoms(quantities, input=action, read=reader)
    offered = [q for q in DEFAULT if all(q in one.offers for one in calculators.values())]
    if not offered:
        name, one = next(iter(calculators.items()))
        raise ModelError(
            f"model {name!r}: offers {', '.join(one.offers) or 'nothing'}; say with --quantities "
            "what all models are asked for"
        )
    return loaded, Atoms(offered, input=action, read=reader)


@dataclass(frozen=True)
class Violation:
    """Where one model strays the most from equivariance in one quantity.

    `largest` is the distance from the consensus there, for forces of that atom alone; `usual` its
    root mean square over all molecules and rotations; `size` the root mean square of the components
    of the quantity itself, for comparison (None for energies, whose zero means nothing).
    """

    model: str
    quantity: str
    unit: str
    largest: float
    usual: float
    size: float | None
    sample: int
    formula: str
    atom: str
    element: int
    rotation: str


def violations(scan: Scan) -> list[Violation]:
    """Find the worst place of each model and quantity; none where a model never answered."""
    return [
        found
        for model in scan.models
        for quantity in scan.header["task"]["quantities"]
        if (found := _worst(scan, model, quantity)) is not None
    ]


def _worst(scan: Scan, model: str, quantity: str) -> Violation | None:
    import numpy as np

    from ..tasks.quantities import UNITS

    data = scan.data.sel(model=model)
    usual = np.asarray(data[f"{quantity}_vs_consensus"], float)
    if np.isnan(usual).all():
        return None
    places = usual
    if quantity == "forces":
        places = np.asarray(data["atom_vs_consensus"].max("atom"), float)
    sample, element = (int(i) for i in np.unravel_index(np.nanargmax(places), places.shape))
    numbers = np.asarray(data["numbers"][sample])
    atom = ""
    if quantity == "forces":
        which = int(np.nanargmax(np.asarray(data["atom_vs_consensus"][sample, element])))
        still = _home(scan, element, which)
        atom = f"{symbol(int(numbers[still]))}, atom {still}"
    size = None
    if quantity != "energy":
        values = np.asarray(data[f"consensus_{quantity}"], float)
        size = float(np.sqrt(np.nanmean(values**2)))
    return Violation(
        model,
        quantity,
        UNITS[quantity],
        float(places[sample, element]),
        float(np.sqrt(np.nanmean(usual**2))),
        size,
        sample,
        formula(numbers[numbers > 0]),
        atom,
        element,
        rotation_name(scan, element),
    )


def _home(scan: Scan, element: int, atom: int) -> int:
    """Tell which atom of the un-moved molecule stands in a place, where elements reorder atoms."""
    rows = scan.group.parts.get("rows")
    return atom if rows is None else int(rows[element][atom])


def rotation_name(scan: Scan, element: int) -> str:
    """Name an element by angle and axis where it is a rotation of space, otherwise by its own name.

    The angle is in degrees.
    """
    import numpy as np
    from scipy.spatial.transform import Rotation

    name = f"element {element}"
    if "space" not in scan.group.parts or {*scan.group.parts} != {"space"}:
        return f"{name}: {scan.group.name(element)}"
    turn = scan.group.linear("space")[element]
    if np.linalg.det(turn) < 0:
        return f"{name}: {scan.group.name(element)}"
    vector = Rotation.from_matrix(turn).as_rotvec()
    angle = float(np.linalg.norm(vector))
    if angle < 1e-9:
        return f"{name}: none"
    axis = ", ".join(f"{part:.2f}" for part in vector / angle)
    return f"{name}: {np.rad2deg(angle):.1f}° about ({axis})"


def symbol(number: int) -> str:
    """Give the symbol of an element, or its number where ASE is absent."""
    try:
        from ase.data import chemical_symbols
    except ImportError:
        return f"Z{number}"
    return str(chemical_symbols[number])


def formula(numbers: Any) -> str:
    """Write a molecule as its formula, after Hill: C and H first.

    >>> formula([8, 1, 1])
    'H2O'
    """
    from collections import Counter

    counts = Counter(symbol(int(number)) for number in numbers)
    first = [s for s in ("C", "H") if s in counts] if "C" in counts else []
    order = first + sorted(s for s in counts if s not in first)
    return "".join(s + (str(counts[s]) if counts[s] > 1 else "") for s in order)


def print_audit(scan: Scan, console: Any = None) -> None:
    """Print where each model is worst in each quantity, and where it failed."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    out = console or Console()
    table = Table(title=f"Largest violations of equivariance under {scan.group.spec}")
    for heading, justify in (
        ("model", "left"),
        ("quantity", "left"),
        ("largest", "right"),
        ("root mean square", "right"),
        ("size of it", "right"),
        ("molecule", "left"),
        ("atom", "left"),
        ("rotation", "left"),
    ):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for one in violations(scan):
        size = "" if one.size is None else f"{one.size:.3g} {one.unit}"
        table.add_row(
            escape(one.model),
            one.quantity,
            f"{one.largest:.2e} {one.unit}",
            f"{one.usual:.2e} {one.unit}",
            size,
            f"{one.sample}: {one.formula}",
            one.atom,
            one.rotation,
        )
    out.print(table)
    for model, failed in scan.failures.items():
        if failed:
            _print_failures(scan, model, failed, out)


def _print_failures(scan: Scan, model: str, failed: list[dict[str, Any]], out: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{escape(model)} gave no answer on {len(failed)} molecules")
    for heading in ("molecule", "rotations", "error"):
        table.add_column(heading, overflow="fold")
    numbers = scan.data["numbers"].sel(model=model)
    for one in failed[:_MOST_FAILURES]:
        atoms = numbers[one["sample"]].values
        table.add_row(
            f"{one['sample']}: {formula(atoms[atoms > 0])}",
            f"{one['places']} of {len(scan.group)}",
            escape(one["error"]),
        )
    if len(failed) > _MOST_FAILURES:
        table.add_row(f"and {len(failed) - _MOST_FAILURES} more", "", "")
    out.print(table)
