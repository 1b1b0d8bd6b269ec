"""SevenNet-0 and SevenNet-l3i5: the two hands of a crystal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, Table, loading
from orbical_audits.models import _potentials as potentials

NAMES = {"SevenNet-0": "7net-0", "SevenNet-l3i5": "7net-l3i5"}


def calculators() -> dict[str, Any]:
    """Load both checkpoints as ASE calculators."""
    from sevenn.calculator import SevenNetCalculator

    return {name: SevenNetCalculator(model, device="cpu") for name, model in NAMES.items()}


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Run the audit, and read the parity flag of each checkpoint."""
    with loading("SevenNet 0.13.0", "sevennet"):
        models = calculators()
    outcome = potentials.run_all(models, size, seed, folder)
    flags = Table("What the checkpoints say.", [checkpoint(name) for name in NAMES])
    return Outcome({**outcome.tables, "flags": flags}, outcome.pictures)


def checkpoint(name: str) -> dict[str, Any]:
    """Read the group that a checkpoint was trained for."""
    from sevenn.util import load_checkpoint

    config = load_checkpoint(NAMES[name]).config
    return {"model": name, "is_parity": str(config["is_parity"]), "lmax": int(config["lmax"])}


audit = Audit(
    title="SevenNet-0 and SevenNet-l3i5",
    question="Do the left- and right-handed forms of a crystal get the same energy?",
    group=potentials.GROUP,
    inputs=potentials.INPUTS,
    packages=(Package("sevenn", "0.13.0"),),
    license="MIT",
    promise="Equivariance (it is in the name). The package's `presets/base.yaml` explains the "
    "setting `is_parity`: `True` for E(3), `False` for SE(3), that is without mirrors; the preset "
    "of SevenNet-0 has `False`. The authors chose SE(3) on purpose.",
    promised="SE(3), without mirrors",
    rule=potentials.RULE
    + " The authors exclude mirrors: if only mirrors change an energy, the verdict is **by "
    "design**.",
    decide=potentials.decide_without_mirrors,
    finding="No, by design: the authors chose SE(3), without mirrors, and only a reflection "
    "shows the consequence. The two forms differ by up to {{ summary[4]['SevenNet-0'] "
    "| cell }} (SevenNet-0) and {{ summary[4]['SevenNet-l3i5'] | cell }} meV/atom "
    "(l3i5): selenium {{ crystals[0]['SevenNet-0'] | cell }} and {{ "
    "crystals[0]['SevenNet-l3i5'] | cell }}, tellurium {{ crystals[1]['SevenNet-0'] | "
    "cell }} and {{ crystals[1]['SevenNet-l3i5'] | cell }}, FeSi {{ "
    "crystals[7]['SevenNet-0'] | cell }} and {{ crystals[7]['SevenNet-l3i5'] | cell "
    "}}; quartz hardly at all. Rotations have no effect, and achiral crystals get one "
    "energy. In disordered crystals of Ge, Li, Mo and Si a mirror changes {{ "
    "dft[0]['energy changes by mirroring, meV/atom'] | cell }} and {{ dft[1]['energy "
    "changes by mirroring, meV/atom'] | cell }} meV/atom, little beside the errors "
    "against DFT, {{ dft[0]['energy error, meV/atom'] | cell }} and {{ dft[1]['energy "
    "error, meV/atom'] | cell }}.",
    advice="Do not use its energies to compare the two forms of a chiral crystal, or average each "
    "structure with its mirror image. Rotations need no care.",
    confirmed="Both forms were built from their own space groups and calculated without orbical: "
    "selenium differs by {{ hands[0]['right minus left, meV/atom'] | cell }} meV/atom again. The "
    "cause is in the checkpoints, `is_parity: {{ flags[0].is_parity }}` and "
    "`{{ flags[1].is_parity }}`. Forces agree with finite differences of the energy "
    "({{ summary[7]['SevenNet-0'] | cell }} and {{ summary[7]['SevenNet-l3i5'] | cell }} meV/Å, "
    "with a precision of {{ summary[8]['SevenNet-0'] | cell }} and "
    "{{ summary[8]['SevenNet-l3i5'] | cell }}).",
    sizes=potentials.SIZES,
    run=run,
    shown=(calculators, potentials.scanned),
    shareable=potentials.SHAREABLE,
)
