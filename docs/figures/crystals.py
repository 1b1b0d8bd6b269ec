"""Make the picture of crystals in the guide to potentials.

    python docs/figures/crystals.py

scans the three potentials of examples/crystals.py along rotations and their mirror images, compares
forces with the gradient of the energy, prints what the guide quotes, and writes
docs/guide/img/crystals.png, in half a minute on one core.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import orbical as ob
from orbical.figures.style import figure, model_colors, save, styled

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "guide" / "img" / "crystals.png"
STRAINED = 0
"""The crystal that is drawn."""


def main() -> None:
    """Draw energies along the orbit, and three errors of the forces."""
    example = runpy.run_path(str(ROOT / "examples" / "crystals.py"))
    example["main"]()
    models, scan = example["scanned"]()
    crystal = example["crystals"]()[STRAINED]
    color = model_colors(models)
    with styled():
        fig = figure(7.6, 2.9)
        left, right = fig.subplots(1, 2, width_ratios=(1.25, 1))
        mirrored = scan.data["inversion"].values < 0
        order = np.argsort(mirrored, kind="stable")
        for name, marker in zip(models, "os^", strict=True):
            energy = scan.data["energy"].sel(model=name)[STRAINED].values
            apart = 1e3 * (energy - energy[scan.group.identity]) / len(crystal)
            shift = 0.14 * ([*models].index(name) - 1)
            left.plot(np.arange(len(order)) + shift, apart[order], marker, color=color[name])
        left.axvline((~mirrored).sum() - 0.5, color="0.6", lw=0.8)
        left.set_ylabel("energy difference, meV per atom")
        left.set_xticks([(~mirrored).sum() / 2 - 0.5, 1.5 * mirrored.sum() - 0.5])
        left.set_xticklabels(["rotated", "rotated and inverted"])
        left.tick_params(axis="x", length=0)
        left.set_title("Same crystal, same energy?", loc="left")
        rows = np.arange(2)[::-1]
        for place, (name, marker) in enumerate(zip(models, "os^", strict=True)):
            orbit = float(scan.data["forces_vs_consensus"].sel(model=name)[STRAINED].max())
            error = ob.testing.conservativity_error(models[name], [crystal], directions=8)
            values = [max(orbit, 1e-15), error.largest("forces")]
            right.plot(values, rows + 0.16 * (1 - place), marker, color=color[name], label=name)
            limit = float(error.limits["forces"][0])
            right.plot([limit] * 2, rows[1] + 0.16 * (1 - place) + np.array([-0.07, 0.07]),
                       color=color[name], lw=1.2)  # fmt: skip
        right.set_xscale("log")
        right.set_yticks(rows, ["along\nthe orbit", "from the\ngradient"])
        right.set_ylim(-0.5, 1.5)
        right.set_xlabel("difference of forces, eV/Å (bar: precision limit)")
        right.set_title("Same forces? Those of the energy?", loc="left")
        fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(fig, PICTURE)
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
