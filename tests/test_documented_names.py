"""Every name of orbical on a page, and in a script that makes its numbers and figures, exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import orbical

ROOT = Path(__file__).resolve().parents[1]
TEXTS = [
    *("README.md", "CONTRIBUTING.md", "mkdocs.yml"),
    *("docs/**/*.md", "docs/**/*.ipynb", "examples/*.ipynb"),
]
SCRIPTS = ["benchmarks/*.py", "docs/figures/*.py", "examples/*.py", "tools/*.py"]
NAME = re.compile(r"(?<![\w./-])(?:ob|orbical)((?:\.[A-Za-z_]\w*)+\(?)")
pytestmark = pytest.mark.docs


def exists(name: str) -> bool:
    """Tell whether modules and classes have the names of a chain, and no module is called."""
    path, *rest = name.removesuffix("(").split(".")
    holder: object = importlib.import_module(path)
    for part in rest:
        if not isinstance(holder, ModuleType | type):
            return True
        path += f".{part}"
        try:
            holder = getattr(holder, part)
        except AttributeError:
            try:
                holder = importlib.import_module(path)
            except ModuleNotFoundError:
                return False
    return not (name.endswith("(") and isinstance(holder, ModuleType))


def names_of(text: str) -> set[str]:
    """Return the chains `ob.x.y` and `orbical.x.y` of a text."""
    return {f"orbical{chain}" for chain in NAME.findall(text)}


def imports_of(script: str) -> set[str]:
    """Return what a script imports from orbical."""
    found = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("orbical."):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("orbical.")}
    return found


def test_a_name_that_does_not_exist_is_noticed() -> None:
    text = "`ob.calibration.measures()`, ob.calibration.ece(x), `orbical.gone.x`, run.orbical.zarr"
    assert {name for name in names_of(text) if exists(name)} == {"orbical.calibration.ece("}
    assert len(names_of(text)) == 3
    assert imports_of("from orbical.zoo import gone") == {"orbical.zoo.gone"}
    assert not exists("orbical.zoo.gone")
    assert exists("orbical.tasks.Classification.name")
    assert not exists("orbical.tasks.Classification.gone")


def test_every_name_on_a_page_or_in_a_script_exists() -> None:
    pages = [path for pattern in [*TEXTS, *SCRIPTS] for path in ROOT.glob(pattern)]
    missing = []
    for path in pages:
        text = path.read_text(encoding="utf-8")
        names = names_of(text) | (imports_of(text) if path.suffix == ".py" else set())
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in names if not exists(name)]
    assert len(pages) > 100
    assert not missing, "\n".join(sorted(missing))


MEMBER = re.compile(r"(?<![\w.])([A-Z]\w+)\.([a-z]\w*)")


def unknown_members(text: str) -> set[str]:
    """Return the members `Class.x` of public classes of orbical that these do not have."""
    rooms = [getattr(orbical, name) for name in orbical.__all__]
    rooms = [room for room in rooms if isinstance(room, ModuleType) and hasattr(room, "__all__")]
    wrong = set()
    for name, member in MEMBER.findall(text):
        kinds = [getattr(room, name) for room in rooms if name in room.__all__]
        has = (
            hasattr(kind, member)
            or any(member in vars(base).get("__annotations__", {}) for base in kind.__mro__)
            or f"self.{member}" in inspect.getsource(kind)
            for kind in kinds
            if inspect.isclass(kind)
        )
        if kinds and not any(has):
            wrong.add(f"{name}.{member}")
    return wrong


def test_every_member_of_a_class_on_a_page_exists() -> None:
    assert unknown_members("`Comparison.p_value`, `Comparison.gone`") == {"Comparison.gone"}
    pages = [path for pattern in TEXTS for path in ROOT.glob(pattern)]
    wrong = {
        f"{path.relative_to(ROOT)}: {member}"
        for path in pages
        for member in unknown_members(path.read_text(encoding="utf-8"))
    }
    assert not wrong, "\n".join(sorted(wrong))


def listed_names(page: Path) -> list[str]:
    """Return the names that a page of the reference lists, in their order."""
    return re.findall(r"^        - (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("package", ["actions", "bounds", "calibration", "groups", "tasks"])
def test_every_name_of_a_package_is_on_one_page_of_the_reference(package: str) -> None:
    pages = (ROOT / "docs" / "api" / package).glob("*.md")
    listed = [name for page in pages for name in listed_names(page)]
    assert sorted(listed) == sorted(getattr(orbical, package).__all__)


def test_a_page_of_the_reference_lists_every_public_name_of_its_module() -> None:
    found = 0
    for page in (ROOT / "docs" / "api").glob("*.md"):
        module = getattr(orbical, page.stem, None)
        names = [
            name
            for name in getattr(module, "__all__", [])
            if not isinstance(getattr(module, name), ModuleType)
        ]
        if f"::: orbical.{page.stem}\n" in page.read_text(encoding="utf-8") and names:
            assert sorted(listed_names(page)) == sorted(names), page.stem
            found += 1
    assert found >= 13


def unknown_keywords(text: str) -> set[str]:
    """Return the calls in backticks that pass a keyword which the function does not take."""
    wrong = set()
    for span in re.findall(r"`([^`\n]+)`", text):
        try:
            calls = [node for node in ast.walk(ast.parse(span)) if isinstance(node, ast.Call)]
        except SyntaxError:
            continue
        for call in calls:
            name = re.sub(r"^ob\.", "orbical.", ast.unparse(call.func))
            given = {keyword.arg for keyword in call.keywords if keyword.arg}
            if name.startswith("orbical.") and given and exists(name):
                function: object = orbical
                for part in name.split(".")[1:]:
                    function = getattr(function, part)
                parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
                takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
                if not takes_all and not given <= {parameter.name for parameter in parameters}:
                    wrong.add(span)
    return wrong


def test_every_call_in_prose_passes_arguments_that_exist() -> None:
    assert unknown_keywords("`ob.scan(net, interpolation=1)`, `ob.scan(net, keep=1)`") == {
        "ob.scan(net, interpolation=1)"
    }
    pages = [path for pattern in TEXTS for path in ROOT.glob(pattern)]
    wrong = {
        f"{path.relative_to(ROOT)}: {call}"
        for path in pages
        for call in unknown_keywords(path.read_text(encoding="utf-8"))
    }
    assert not wrong, "\n".join(sorted(wrong))
