"""A training on the CPU has contiguous convolutions: with channels last some end the process."""

from __future__ import annotations

import os
import subprocess
import sys

STEP = """
import torch
from orbical_studies.esd.batches import as_images
from orbical_studies.framework.training import placed
from orbical_studies.networks.classifiers import CompactResNet

def contiguous(layer, inputs):
    assert inputs[0].is_contiguous(), layer

network = placed(CompactResNet(widths=(8, 16)), torch.device("cpu")).train()
for layer in network.modules():
    if isinstance(layer, torch.nn.Conv2d):
        layer.register_forward_pre_hook(contiguous)
images = as_images(torch.randint(256, (49, 64, 64, 3), dtype=torch.uint8))
network(images).logsumexp(1).sum().backward()
assert all(values.grad.is_contiguous() for values in network.parameters())
"""


def test_a_step_of_a_training_on_the_cpu_survives() -> None:
    # In a process of its own, because the backward pass of a 1 x 1 convolution of stride 2 that
    # has channels last is a segmentation fault (torch 2.13 on CPUs with AVX-512).
    step = subprocess.run([sys.executable, "-c", STEP], env=os.environ, stderr=subprocess.PIPE)
    assert step.returncode == 0, step.stderr.decode()
