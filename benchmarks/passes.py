"""The cost of a scan beside that of its bare forward passes, for the benchmarks of scans."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import timing
from torch import nn

from orbical._trees import tree_map


class Twice(nn.Module):
    """A network that passes every batch a second time, and keeps the time of that.

    Bare passes between the passes of the scan, on the same batches, meet the same machine at the
    same moment: on a busy one, passes before and after differ by more than a scan costs.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.seconds = 0.0

    def forward(self, batch: Any) -> Any:
        """Answer a batch, then ask again."""
        answer = self.net(batch)
        start = time.process_time()
        self.net(tree_map(lambda leaf: leaf.detach(), batch))
        self.seconds += time.process_time() - start
        return answer


def beside_bare_passes(
    net: nn.Module, scan: Callable[[nn.Module, Path], Any], turns: int = 3
) -> tuple[float, float]:
    """Return the processor time of a scan onto disk, and that of its forward passes alone.

    Of several turns after a first that warms up, the one whose ratio is in the middle.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns + 1):
            asked = Twice(net).eval()
            both = timing.processor_seconds(partial(scan, asked, Path(folder) / f"{turn}.zarr"))
            found.append((both - asked.seconds, asked.seconds))
    return sorted(found[1:], key=lambda pair: pair[0] / pair[1])[turns // 2]
