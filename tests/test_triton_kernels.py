"""The kernels of the losses, run on the CPU by Triton's interpreter: they need no accelerator."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.peers
INTERPRETED = """
import json, sys
import torch
from orbical import calibration, losses
from orbical.calibration.numerics.esd_kernels import esd_by_kernels
from orbical.losses import _triton_kernels as kernels

size, classes = map(int, sys.argv[1:])
torch.manual_seed(0)
logits, labels = torch.randn(size, classes), torch.randint(classes, (size,))
logits[1] = logits[0]  # equal confidences
pairs = {
    "esd": (kernels.launch_triton_esd(logits, labels), losses.esd),
    "mmce": (kernels.launch_triton_mmce(logits, labels, 0.4), losses.mmce),
    "ece": (kernels.launch_triton_ece(logits, labels, 20), losses.ece),
    "sb_ece": (kernels.launch_triton_sb_ece(logits, labels, 15, 0.01), losses.sb_ece),
    "s_avuc": (kernels.launch_triton_s_avuc(logits, labels, 0.5, 0.1), losses.s_avuc),
}
found = {}
for name, ((value, gradient), loss) in pairs.items():
    exact = logits.double().requires_grad_()
    expected = loss(exact, labels)
    expected.backward()
    expected, scale = expected.detach(), exact.grad.abs().max()
    found[name] = [abs(value / expected - 1), (gradient - exact.grad).abs().max() / scale]
confidence, order = torch.rand(size).round(decimals=2).sort()
correct = torch.rand(size) < 0.7
found["esd of many"] = [abs(
    esd_by_kernels(confidence, order, correct)[0] / calibration.esd(confidence, correct[order]) - 1
)]
print(json.dumps({name: [float(one) for one in apart] for name, apart in found.items()}))
"""


@pytest.mark.parametrize(("size", "classes"), [(37, 10), (130, 3)])
def test_kernels_give_the_values_and_gradients_of_the_formulas(size: int, classes: int) -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INTERPRETED, str(size), str(classes)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name, apart in json.loads(done.stdout).items():
        assert max(apart) < 1e-3, name
