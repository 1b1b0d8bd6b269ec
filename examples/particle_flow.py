"""Scan classical optical flow on particle images under reflections, rotations and time reversal.

Run: python examples/particle_flow.py (needs the extra `flow` and the particle images, see
`orbical.datasets.piv`)
"""

import orbical as ob
from orbical.zoo.classical_flow import Farneback, InverseSearch

data = ob.datasets.piv()
scan = ob.scan(
    {"Farneback": Farneback(), "DIS": InverseSearch()},
    (data["pair"][:3], data["flow"][:3]),
    group="dihedral:4*time_reversal",
    task="flow",
)

error = scan.data["score"].mean("sample")
for model in scan.models:
    row = error.sel(model=model).values
    print(f"{model}: end-point error {row.mean():.3f} px, from {row.min():.3f} to {row.max():.3f}")
print("gap in pixels:", ob.nero.invariance_gap(scan)["total"].values.round(3))

ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "flow-tiles.png")
