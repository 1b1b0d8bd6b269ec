"""A view that turns inside larger pairs shows in the page what Python shows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import PairWindow

BODY = """
return given.elements.map((element) => moveInput(given.action, element, {
  x: { data: Float32Array.from(given.data), shape: given.shape },
}).x);
"""


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("spec", ["rotations:8", "dihedral:4*time_reversal"])
def test_the_page_moves_a_view_of_a_pair_as_python_does(in_node, spec, interpolation):
    group = ob.groups.parse(spec)
    action = PairWindow(8, interpolation)
    x = torch.rand(2, 1, 14, 14, generator=torch.Generator().manual_seed(0))
    expected = action.apply(group, x[None])[:, 0].numpy()
    elements = [
        {
            "exact": group.exact_on_grid,
            "plane": np.ravel(group.parts["plane"][k]).tolist(),
            **({"time": float(group.parts["time"][k])} if "time" in group.parts else {}),
        }
        for k in range(len(group))
    ]
    given = {
        "action": action.describe(),
        "elements": elements,
        "data": x.double().flatten().tolist(),
        "shape": list(x.shape),
    }
    moved = in_node({"moves/index.js": "moveInput"}, BODY, given)
    found = np.array([one["data"] for one in moved]).reshape(-1, *moved[0]["shape"])
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-4
