"""Memory does not grow with the data: a file of 20 GB is scanned with that of a small one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

SCAN = """
import resource, sys
import numpy as np, torch
import orbical as ob
torch.set_num_threads(1)
images = np.load(sys.argv[1], mmap_mode="r")[: int(sys.argv[2])]
scan = ob.scan(lambda x: x[:, 0, 0, :2], images, group="cyclic:1", task="classification",
               out=sys.argv[3], progress=False)
assert scan.complete
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_megabytes(path, samples, out):
    words = [sys.executable, "-c", SCAN, str(path), str(samples), str(out)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(ran.stdout)


def sparse_file(path, samples):
    """Make a file of images of 256 x 256 pixels, of which only the first rows take up space."""
    images = np.lib.format.open_memmap(path, "w+", np.float32, (samples, 1, 256, 256))
    images[:: samples // 50, 0, 0] = np.linspace(0, 1, 256)
    images.flush()
    return path


def grown(tmp_path, samples):
    path = sparse_file(tmp_path / "x.npy", samples)
    few = peak_megabytes(path, 400, tmp_path / "few.zarr")
    many = peak_megabytes(path, samples, tmp_path / "many.zarr")
    size = path.stat().st_size
    print(f"{samples} samples, {size / 1e9:.1f} GB: {many} MB at the peak; 400 samples: {few} MB")
    return many - few, size


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
def test_gigabytes_are_scanned_in_bounded_memory(tmp_path):
    more, size = grown(tmp_path, 16_000)
    assert size > 4e9
    assert more < 300
