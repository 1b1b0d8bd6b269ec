"""CHGNet 0.3.0: the two hands of a crystal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, loading
from orbical_audits.models import _potentials as potentials


def calculators() -> dict[str, Any]:
    """Load the checkpoint as an ASE calculator."""
    from chgnet.model.dynamics import CHGNetCalculator
    from chgnet.model.model import CHGNet

    net = CHGNet.load(model_name="0.3.0", use_device="cpu", verbose=False)
    return {"CHGNet 0.3.0": CHGNetCalculator(model=net, use_device="cpu")}


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Run the audit."""
    with loading("CHGNet 0.4.2", "chgnet"):
        models = calculators()
    return potentials.run_all(models, size, seed, folder)


audit = Audit(
    title="CHGNet",
    question="Do the left- and right-handed forms of a crystal get the same energy?",
    group=potentials.GROUP,
    inputs=potentials.INPUTS,
    packages=(Package("chgnet", "0.4.2"),),
    license="modified BSD",
    promise="The package does not say. Its features are lengths of bonds and angles between them, "
    "which no rotation, shift, mirror or reordering changes.",
    promised="not stated; features are invariant",
    rule=potentials.RULE,
    decide=potentials.decide,
    finding="Yes: the left- and right-handed forms of nine crystals differ by at most "
    "{{ summary[4]['CHGNet 0.3.0'] | cell }} meV/atom, rounding in single precision. Against DFT "
    "its energies are off by {{ dft[0]['energy error, meV/atom'] | cell }} meV/atom and its forces "
    "by {{ dft[0]['force error, meV/Å'] | cell }} meV/Å (root mean square): symmetry is not "
    "accuracy.",
    advice="Handedness needs no care with this model. Check its energies against DFT instead, "
    "because that error is larger by five orders of magnitude.",
    confirmed="Both forms were also built from their own space groups and calculated without "
    "orbical. Forces differ from finite differences of the energy by "
    "{{ summary[7]['CHGNet 0.3.0'] | cell }} meV/Å, within the precision of those "
    "({{ summary[8]['CHGNet 0.3.0'] | cell }}).",
    sizes=potentials.SIZES,
    run=run,
    shown=(calculators, potentials.scanned),
    shareable=potentials.SHAREABLE,
)
