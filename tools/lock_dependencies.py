"""Write `requirements-dev.lock`: every package of the environment, with the hashes of its files.

    python tools/lock_dependencies.py

reads the versions from the environment that runs it (`make venv` makes one) and the hashes from the
index that pip is configured with. The lock serves Python 3.11 to 3.13 on the usual platforms.
"""

from __future__ import annotations

import os
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from pip._internal.models.index import PyPI

LOCK = Path(__file__).resolve().parents[1] / "requirements-dev.lock"
LEFT_OUT = {"orbical", "orbical-studies", "pip", "setuptools", "wheel", "torch", "triton"}
"""Ourselves, installers, and torch: which build of it, and so what it needs, is a choice."""
PYTHONS = re.compile(r"py3|cp311|cp312|cp313")
PLATFORMS = re.compile(r"any|(manylinux|linux).*(x86_64|aarch64)|macosx|win_amd64")
LINK = re.compile(r'href="[^"]*#sha256=([0-9a-f]{64})"[^>]*>\s*([^<\s]+)\s*</a>')
HEADER = """# Made by tools/lock_dependencies.py: what this version was tested with.
# pip install -c constraints.txt torch   (or another build of that version)
# pip install --no-deps --require-hashes -r requirements-dev.lock
# pip install --no-deps -e . -e studies
"""


def pins() -> dict[str, str]:
    """Return the version of each package of this environment, without its local part."""
    found = {canonicalize_name(one.metadata["Name"]): one.version for one in distributions()}
    return {name: found[name].partition("+")[0] for name in sorted(found) if name not in LEFT_OUT}


def serves(filename: str, version: str) -> bool:
    """Check whether a file of the index is one that the lock allows."""
    try:
        _, found, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return filename.endswith(f"-{version}.tar.gz")
    return str(found) == version and any(
        (PYTHONS.search(tag.interpreter) or tag.abi == "abi3") and PLATFORMS.search(tag.platform)
        for tag in tags
    )


def hashes(name: str, version: str) -> list[str]:
    """Return the hashes of a version's files."""
    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    with urllib.request.urlopen(f"{index}/{name}/", timeout=60) as page:
        links = LINK.findall(page.read().decode())
    found = sorted({digest for digest, filename in links if serves(filename, version)})
    if not found:
        raise SystemExit(f"{name}=={version}: the index has no file with a hash")
    return found


def main() -> None:
    """Write the lock."""
    versions = pins()
    with ThreadPoolExecutor(8) as pool:
        digests = dict(zip(versions, pool.map(hashes, versions, versions.values()), strict=True))
    entries = [
        " \\\n    ".join([f"{name}=={versions[name]}", *(f"--hash=sha256:{one}" for one in found)])
        for name, found in digests.items()
    ]
    LOCK.write_text(HEADER + "\n".join(entries) + "\n", "utf-8")
    print(f"{LOCK.name}: {len(entries)} packages")


if __name__ == "__main__":
    main()
