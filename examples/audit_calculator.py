"""Check whether two ASE calculators are equivariant under rotations of a molecule.

One is GFN2-xTB. The other is GFN2-xTB on positions rounded to three decimals, as in programs that
exchange geometries as text.

Run: python examples/audit_calculator.py (needs the extra `chemistry`)
or:  orbical scan -m tb=audit_calculator:calculator -m rounded=audit_calculator:Rounded()
     -d molecules.xyz -g rotations3d:64 -t atoms
"""

import numpy as np
from ase.build import molecule
from ase.calculators.calculator import all_changes
from tblite.ase import TBLite

import orbical as ob


class Rounded(TBLite):
    """GFN2-xTB on positions rounded to 0.001 Å."""

    def __init__(self, **settings):
        super().__init__(method="GFN2-xTB", **{"verbosity": 0, **settings})

    def calculate(self, atoms=None, properties=None, system_changes=all_changes):
        rough = atoms.copy()
        rough.positions = np.round(rough.positions, 3)
        super().calculate(rough, properties, system_changes)


calculator = TBLite(method="GFN2-xTB", verbosity=0)


def main() -> None:
    names = ["H2O", "CH4", "NH3", "CO2", "CH3OH", "CH3CH2OH"]
    scan = ob.scan(
        {"tb": calculator, "rounded": Rounded()},
        [molecule(name) for name in names],
        group="rotations3d:16",
        task=ob.tasks.Atoms(["energy", "forces", "dipole"]),
    )
    for model in scan.models:
        forces = scan.data["atom_vs_consensus"].sel(model=model).values
        sample, element, atom = np.unravel_index(np.nanargmax(forces), forces.shape)
        energy = float(scan.data["energy_vs_consensus"].sel(model=model).max())
        print(
            f"{model}: force off by up to {forces[sample, element, atom]:.1e} eV/Å, on atom {atom} "
            f"of {names[sample]} at {scan.group.name(element)}; energy by up to {energy:.1e} eV"
        )


if __name__ == "__main__":
    main()
