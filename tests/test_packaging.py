"""What is installed: every package that orbical imports, and nothing that it does not hold."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"benchmarks", "dev", "docs", "fuzzing"}

# The distribution of an import, where the two have different names.
DISTRIBUTIONS = {
    "IPython": "ipython",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
    "upath": "universal-pathlib",
    "yaml": "pyyaml",
}
UNDECLARED = {
    "efficientnet-lite-pytorch",  # of an example, which is skipped without it
    "pytest",  # the plugin is loaded by pytest itself
    "typing-extensions",  # for type checkers, which bring it
    "triton",  # comes with torch for GPUs, and is used if it is there
}


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return found.group().lower().replace("_", "-")


def names_of(requirements: list[str]) -> set[str]:
    return {name_of(requirement) for requirement in requirements}


def extras_within(requirements: list[str]) -> set[str]:
    own = [re.fullmatch(r"orbical\[([\w,]+)\]", text) for text in requirements]
    return {extra for found in own if found for extra in found.group(1).split(",")}


def third_party_imports(folder: Path) -> dict[str, str]:
    """Return each third-party package that files import, anywhere in them, and one such file."""
    files = sorted(folder.rglob("*.py"))
    # Tests import helper modules that lie beside them, and the worlds of the benchmarks.
    helpers = [*files, *(ROOT / "benchmarks").glob("*.py")]
    beside = {path.stem for path in helpers if not path.name.startswith("test_")}
    own = {"_typeshed", "orbical", "orbical_studies", *(beside if folder.name == "tests" else ())}
    return {
        name: path.relative_to(ROOT).as_posix()
        for path in files
        for name in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name not in sys.stdlib_module_names and name not in own
    }


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "importorskip"
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value).split(".")[0]


def undeclared(folder: str, declared: set[str]) -> dict[str, str]:
    return {
        name: file
        for name, file in third_party_imports(ROOT / folder).items()
        if DISTRIBUTIONS.get(name, name.lower().replace("_", "-")) not in declared | UNDECLARED
    }


def test_every_package_that_orbical_imports_is_a_dependency_or_in_an_extra_for_users() -> None:
    declared = names_of(PROJECT["dependencies"]).union(
        *(names_of(EXTRAS[extra]) for extra in EXTRAS if extra not in FOR_DEVELOPERS)
    )
    assert undeclared("src/orbical", declared) == {}


def test_every_package_that_the_tests_import_is_in_dev_or_a_peer_of_the_benchmarks() -> None:
    inside = [EXTRAS["dev"], *(EXTRAS[extra] for extra in extras_within(EXTRAS["dev"]))]
    peers = EXTRAS["benchmarks"] + EXTRAS["fuzzing"]
    declared = names_of(PROJECT["dependencies"] + peers)
    declared = declared.union(*map(names_of, inside))
    assert undeclared("tests", declared) == {}


def test_every_extra_for_users_is_in_dev() -> None:
    assert extras_within(EXTRAS["dev"]) >= set(EXTRAS) - FOR_DEVELOPERS


def test_the_page_on_installing_names_exactly_the_extras_for_users() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = [extra for row in rows for extra in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(set(EXTRAS) - FOR_DEVELOPERS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("dist")
    (built,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return ZipFile(built)


def test_the_wheel_holds_the_package_and_no_studies_or_tests(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"orbical"}
    assert not [name for name in wheel.namelist() if "studies" in name or "/test_" in name]


def test_the_wheel_says_that_it_is_typed(wheel: ZipFile) -> None:
    assert "orbical/py.typed" in wheel.namelist()


def test_the_wheel_holds_every_file_of_the_package(wheel: ZipFile) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "orbical").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == {name for name in wheel.namelist() if name.startswith("orbical/")}


def test_the_lock_pins_what_developers_need_with_hashes_and_without_an_index():
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    entries = re.findall(r"^([a-z0-9-]+)==\S+((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", lock, re.M)
    text = "".join(line for line in lock.splitlines(True) if not line.startswith("#"))
    assert len(entries) == len(re.findall("==", text))
    assert "://" not in lock
    assert "index" not in lock.lower()
    needed = [
        PROJECT["dependencies"],
        EXTRAS["dev"],
        *(EXTRAS[one] for one in extras_within(EXTRAS["dev"])),
    ]
    declared = set().union(*map(names_of, needed)) - {"orbical", "torch"}
    assert declared <= {name for name, _ in entries}
