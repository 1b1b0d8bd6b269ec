"""Calibration on an accelerator: the exact ESD, forward and backward, beside one sort.

Run where CUDA is: python benchmarks/accelerator.py (needs neither xarray nor zarr).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from timing import accelerator_seconds, at_most, line

import orbical as ob


def seconds(work: Callable[[], object], runs: int = 20) -> float:
    """Return the least wall time of a call, the device's work included."""
    for _ in range(3):
        work()
    return min(accelerator_seconds(work) for _ in range(runs))


def main() -> None:
    """Print the table for ten million samples and one million."""
    print(torch.cuda.get_device_name(), torch.__version__)
    for size, limit in ((10_000_000, 3), (1_000_000, 4)):
        generator = torch.Generator(device="cuda").manual_seed(0)
        confidence = torch.rand(size, device="cuda", generator=generator)
        correct = torch.rand(size, device="cuda", generator=generator) < confidence
        leaf = confidence.clone().requires_grad_()

        def step(leaf: torch.Tensor = leaf, correct: torch.Tensor = correct) -> None:
            leaf.grad = None
            ob.calibration.esd(leaf, correct).backward()

        ours = seconds(step)
        sort = seconds(lambda confidence=confidence: torch.sort(confidence))
        work = f"ESD forward + backward, {size:,}"
        print(line(at_most(work, ours, "one torch.sort", sort, limit)))


if __name__ == "__main__":
    main()
