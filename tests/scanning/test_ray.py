"""Ray as an executor, by the two lines of the guide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orbical as ob

pytestmark = pytest.mark.peers


def test_ray_runs_units_by_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # it would write a token to the home folder
    ray: Any = pytest.importorskip("ray", reason="ray is not installed")

    class OnRay:
        def submit(self, call: Any, *arguments: Any) -> Any:
            return ray.remote(num_cpus=1)(call).remote(*arguments).future()

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    images, labels = ob.datasets.digits()
    settings: dict[str, Any] = {"group": "rotations:8", "chunk": 10, "threads": 1}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        here, there = (
            ob.scan(
                net,
                (images[:60], labels[:60]),
                out=tmp_path / f"{name}.zarr",
                executor=executor,
                progress=False,
                **settings,
            )
            for name, executor in (("here", None), ("there", OnRay()))
        )
        for name in here.data.variables:
            np.testing.assert_array_equal(there.data[name].values, here.data[name].values, name)
    finally:
        ray.shutdown()
