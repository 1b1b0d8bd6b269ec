"""Learned and classical flow on generated particle pairs, under D4 x time reversal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orbical as ob

from . import DemoOptions, DemoResult, usual_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...store import Scan

PURPOSE = "optical flow in generated particle images under D4 x time reversal (16 elements)"
SAMPLES = 30
SIZE = 96
SEED = 7


def run(options: DemoOptions) -> DemoResult:
    """Scan two networks of the same budget, and OpenCV's methods if it is installed."""
    import xarray as xr

    from ...zoo import flownet

    made = ob.datasets.particle_pairs(options.samples or SAMPLES, size=SIZE, seed=SEED)
    data = xr.Dataset(
        {
            "x": (("sample", "frame", "channel", "row", "column"), made["pair"].numpy()),
            "y": (("sample", "part", "row", "column"), made["flow"].numpy()),
            "kind": ("sample", made["kinds"]),
            "name": ("sample", made["names"]),
        }
    )
    models = {
        name: flownet.load(name, options.weights) for name in flownet.NAMES
    } | classical_piv_models()
    result = options.scan(
        models,
        data,
        group="dihedral:4*time_reversal",
        task=ob.tasks.Flow(),
        keep=("inputs",),
        batch_size=8,  # larger batches do not fit into the cache of a CPU
    )
    return DemoResult(result, models, piv_figures(result))


def classical_piv_models() -> dict[str, object]:
    """Return OpenCV's methods if it is installed."""
    from importlib.util import find_spec

    from ...zoo.classical_flow import Farneback, InverseSearch

    if find_spec("cv2") is None:
        return {}
    return {"farneback": Farneback(), "dis": InverseSearch()}


def piv_figures(scan: Scan) -> dict[str, Figure]:
    """Draw the aggregate plot, the pair whose error varies most, and the embedding."""
    error = scan.data["score"].sel(model="directed").values
    most = int((error.std(1) / error.mean(1)).argmax())
    made = usual_figures(scan, most, scan.data["input"].values[most, 0], None)
    if scan.data.sizes["sample"] > 8:
        made["embedding"] = ob.figures.embedding(ob.embedding.embed(scan, model="directed"))
    return made
