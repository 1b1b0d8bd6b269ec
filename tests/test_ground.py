"""What the project promises around its code: commands, extras, licence, layers, pages."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import orbical

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "orbical"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]

HEAVY = {"dask", "matplotlib", "xarray", "zarr"}
HEAVY_MODULES = {
    *("store", "nero", "adversarial", "advice", "embedding", "figures", "interface"),
    "integrations",
}
OPTIONAL = {"ase", "cv2", "e3nn", "mlxtend", "onnx", "onnxruntime", "umap"}


def makefile_targets() -> set[str]:
    rules = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    return set(rules)


def readme_commands() -> list[str]:
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", README, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"^    (\S.*)$", README, re.M) + re.findall(r"`([^`\n]+)`", README)
    return [line.split("#")[0].removeprefix("$ ").strip() for line in lines]


@cache
def sources() -> list[tuple[str, ast.Module]]:
    return [
        (name, ast.parse(path.read_text(encoding="utf-8"), name))
        for path in sorted(SOURCE.rglob("*.py"))
        for name in [path.relative_to(SOURCE).as_posix()]
    ]


def imported_on_load(tree: ast.Module) -> set[str]:
    """What a module loads at once: packages by name, orbical's modules as `.name`."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {own_name(alias.name) for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            whole = "orbical." * (node.level > 1) + (node.module or "")
            if whole in ("orbical", "orbical."):
                found |= {f".{alias.name}" for alias in node.names}
            elif whole.endswith("store") and not set(imported_when_typing("store")) & {
                alias.name for alias in node.names
            }:
                continue  # the face of the store loads its heavy names on first use
            elif node.level != 1:
                found.add(own_name(whole))
        todo += ast.iter_child_nodes(node)
    return found


def imported_when_typing(package: str) -> dict[str, str]:
    """The names of a package that type checkers see in its modules, and in which of them."""
    path = SOURCE / package / "__init__.py"
    blocks = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: node.module or ""
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


def own_name(module: str) -> str:
    parts = module.split(".")
    return f".{parts[1]}" if parts[0] == "orbical" and len(parts) > 1 else parts[0]


def tracked_text() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what is tracked is unknown")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_every_make_command_of_the_readme_is_a_target() -> None:
    named = {line.split()[1] for line in readme_commands() if re.match(r"make [a-z]+", line)}
    assert {"demo", "test"} <= named <= makefile_targets()


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    runs = re.findall(r"^make .*", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.M)
    assert runs[0] == "make test"
    assert runs[0] in readme_commands()
    named = {word for line in runs for word in line.split()[1:] if not word.startswith("-")}
    assert named == part_targets() - {"test-slow"}
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def part_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (named,) = re.findall(r"^PARTS := (.*)", text, re.M)
    return {*named.split()}


def test_the_test_target_runs_every_check() -> None:
    plan = dry_run("test")
    for check in ("ruff check", "ruff format --check", "mypy", "lint-imports", "--part unit"):
        assert check in plan


def test_every_part_of_the_tests_has_a_target_and_a_workflow(pytestconfig: pytest.Config) -> None:
    rule = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    asked = {*rule.PARTS} - {"benchmark"}  # for a machine that does nothing else
    assert part_targets() == {"test"} | {f"test-{part}" for part in asked - {"unit"}}
    assert {*re.findall(r"--part (\w+)", dry_run("test-all"))} == asked
    workflows = ROOT / ".github" / "workflows"
    text = "".join(path.read_text(encoding="utf-8") for path in workflows.glob("*.yml"))
    (matrix,) = re.findall(r"part: \[(.*)\]", text)
    assert {"unit", "slow", *matrix.split(", ")} == asked
    assert "make test WORKERS" in text
    assert "make test-slow" in text


MARKED = """
import pytest
def test_plain(): pass
@pytest.mark.slow
@pytest.mark.system
def test_long(): pass
@pytest.mark.unit
def test_journey(): pass
"""


def test_a_test_belongs_to_the_part_of_its_mark_or_else_of_its_folder(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for folder in ("tests/store", "tests/browser", "studies/tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"test_{folder.split('/')[1]}_.py").write_text(MARKED)

    def collected(*arguments: str) -> set[str]:
        plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True)
        return {*re.findall(r"^(\S+)/test_\w+\.py::test_(\w+)", done.stdout, re.M)}

    every = {(folder, "journey") for folder in ("tests/store", "tests/browser", "studies/tests")}
    assert collected("--part", "unit") == every | {("tests/store", "plain")}
    assert collected("--part", "browser") == {("tests/browser", "plain")}
    assert collected("--part", "studies") == {("studies/tests", "plain")}
    assert collected("--part", "system") == set()
    slow = {(folder, "long") for folder, _ in every}
    assert collected("--part", "slow") == collected("-m", "slow") == slow
    assert collected() == every | {(folder, "plain") for folder, _ in every}


def test_the_documentation_is_built_before_its_tests_read_it() -> None:
    plan = dry_run("test-docs")
    assert plan.index("mkdocs build") < plan.index("ORBICAL_SITE=site")


def test_a_broken_link_ends_the_build_of_the_documentation(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nowhere](absent.md)")
    (tmp_path / "mkdocs.yml").write_text("site_name: test\nplugins: []\n")
    (options,) = re.findall(r"mkdocs build(.*)", dry_run("docs"))
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "absent.md" in built.stderr
    assert built.returncode == 1


def dry_run(*arguments: str) -> str:
    if shutil.which("make") is None:
        pytest.skip("make is absent")
    # A make that runs these tests hands its own flags and words down, which would change the plan.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "ARGS"))}
    return subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_demo_installs_none_of_the_developers_tools(tmp_path: Path) -> None:
    plan = dry_run("demo", f"VENV={tmp_path}")
    installed = re.findall(r"-c constraints\.txt -e '\.\[([a-z,]+)\]'", plan)
    assert installed
    assert "demo" in installed[0].split(",")
    assert not {"dev", "docs", "notebook"} & {*",".join(installed).split(",")}
    assert plan.strip().endswith("orbical demo")


def test_the_developers_environment_is_enough_for_the_demo(tmp_path: Path) -> None:
    for line in dry_run("venv", f"VENV={tmp_path}").splitlines():
        if line.startswith("touch "):
            for stamp in line.split()[1:]:
                Path(stamp).touch()
    assert dry_run("demo", f"VENV={tmp_path}").strip() == f"{tmp_path}/bin/orbical demo"


def test_every_extra_that_make_installs_exists() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {
        extra for group in re.findall(r"-e '\.\[([a-z,]+)\]'", text) for extra in group.split(",")
    }
    assert named
    assert named <= set(EXTRAS)


RAISERS = ("MissingExtra", "import_extra")


def last_name(function: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return getattr(function, "attr", None) or getattr(function, "id", "")


def test_every_extra_named_in_an_error_exists() -> None:
    named: dict[str, str] = {}
    for file, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and last_name(node.func).endswith(RAISERS):
                values = node.args[1:2] + [k.value for k in node.keywords if k.arg == "extra"]
                assert values, f"{file}:{node.lineno} names no extra"
                if isinstance(values[0], ast.Constant):
                    named[str(values[0].value)] = f"{file}:{node.lineno}"
    assert "demo" in named
    assert {extra: at for extra, at in named.items() if extra not in EXTRAS} == {}


def test_the_licence_is_the_verbatim_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_bytes()
    # The digest of the text as the Apache Software Foundation publishes it.
    assert hashlib.sha256(text).hexdigest() == (
        "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    )
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_no_tracked_text_names_a_package_registry() -> None:
    hosts = re.compile(r"[p]ypi\.|[p]ythonhosted|[/]simple/|[-]-(extra-)?index-url|[-]-find-links")
    assert [name for name, text in tracked_text() if hosts.search(text)] == []


def test_no_tracked_text_names_a_path_of_one_machine() -> None:
    paths = re.compile(r"(?<![\w.~/-])/(?:[w]ork|[r]oot|[h]ome|[U]sers|[t]mp)/[\w.]")
    found = {name: hit.group() for name, text in tracked_text() if (hit := paths.search(text))}
    assert found == {}


def test_only_the_modules_of_labeled_results_and_drawing_load_their_packages() -> None:
    heavy = HEAVY | {f".{name}" for name in HEAVY_MODULES}
    light = {
        name: sorted(imported_on_load(tree) & heavy)
        for name, tree in sources()
        if not HEAVY_MODULES & {*name.removesuffix(".py").split("/")}
    }
    assert {name: loads for name, loads in light.items() if loads} == {}


def imported_packages(name: str, tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """What a module imports of other packages, as paths such as (store, blocks, runs)."""
    folders = ("orbical", *Path(name).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folders[: len(folders) - node.level + 1] if node.level else ()
            inside = (*base, *(node.module.split(".") if node.module else ()))
            paths = [(*inside, alias.name) for alias in node.names]
        else:
            continue
        for path in paths:
            if path[0] == "orbical" and len(path) > 2 and path[1] != Path(name).parts[0]:
                yield path[1:]


def is_offered(path: tuple[str, ...]) -> bool:
    """Whether a package offers a name; of its modules it offers those in its `__all__`."""
    if path[-1].startswith("_"):
        return False
    for depth, name in enumerate(path[1:], 1):
        folder = SOURCE.joinpath(*path[:depth])
        if (folder / name).is_dir() or (folder / f"{name}.py").is_file():
            package = importlib.import_module(".".join(("orbical", *path[:depth])))
            if name not in package.__all__:
                return False
    return True


def test_packages_use_only_what_others_export() -> None:
    deep = {
        f"{name}: {'.'.join(path)}"
        for name, tree in sources()
        for path in imported_packages(name, tree)
        if (SOURCE / path[0]).is_dir() and not is_offered(path)
    }
    assert deep == set()


@pytest.mark.parametrize("package", ["", "data", "interface", "nero", "store", "zoo"])
def test_what_is_imported_on_first_use_has_a_type(package: str) -> None:
    face = importlib.import_module(f"orbical.{package}".rstrip("."))
    resolver = inspect.getclosurevars(vars(face)["__getattr__"]).nonlocals
    homes = dict.fromkeys(resolver["modules"], "") | resolver["homes"]
    homes.pop("__version__", None)
    assert homes == imported_when_typing(package)


def test_no_module_needs_an_optional_package_to_load() -> None:
    loads = {name: sorted(imported_on_load(tree) & OPTIONAL) for name, tree in sources()}
    assert {name: found for name, found in loads.items() if found} == {}


# From the lightest to the heaviest: one interpreter answers for all of them.
WITHOUT = {
    "orbical": ("torch", "numpy", "xarray"),
    "orbical.integrations.pytest_plugin": ("torch", "numpy", "xarray", "typer", "sklearn"),
    "orbical.losses": ("PIL", "matplotlib", "pandas", "scipy", "sklearn", "xarray", "zarr"),
    "orbical.figures": ("matplotlib", "xarray"),
    "orbical.recalibrate": ("matplotlib", "xarray", "zarr"),
    "orbical.interface.server": ("matplotlib", "xarray", "dask"),
}
FRESH = """
import importlib, json, sys
loaded = {}
for name, without in json.loads(sys.argv.pop()).items():
    importlib.import_module(name)
    loaded[name] = sorted({*without} & {*sys.modules})
print(json.dumps(loaded))
"""


def test_modules_load_no_package_that_they_do_without() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH, json.dumps(WITHOUT)],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {name: [] for name in WITHOUT}


def test_no_module_hides_a_public_function() -> None:
    below = [
        ".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("__init__.py")
    ]
    packages = [f"orbical.{name}" for name in below if name not in ("", "zoo")]
    faces = {name: getattr(importlib.import_module(name), "__all__", []) for name in packages}
    # The other names of orbical, and those of zoo, are modules.
    faces["orbical"] = [
        name for name in orbical.__all__ if not isinstance(getattr(orbical, name), ModuleType)
    ]
    hidden = {
        f"{package}.{name}"
        for package, names in faces.items()
        for name in names
        if importlib.util.find_spec(f"{package}.{name}") is not None
    }
    assert hidden == {"orbical.figures.bounds", "orbical.figures.calibration"}  # public modules


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in orbical.__all__
        if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()
    ],
)
def test_every_public_module_has_a_page(name: str) -> None:
    spec = importlib.util.find_spec(f"orbical.{name}")
    if spec is None or spec.origin is None:
        pytest.skip(f"orbical.{name} is absent")
    reference = ROOT / "docs" / "api"
    pages = [reference / f"{name}.md", *(reference / name).glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages if page.is_file()]
    wanted = f"::: orbical.{name}"
    assert any(wanted in text for text in texts), f"add docs/api/{name}.md with '{wanted}'"


def test_the_pages_fetch_no_fonts_from_another_host() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert not any(str(entry).startswith("http") for entry in settings.get("extra_javascript", []))


def test_commit_hooks_come_from_no_other_host() -> None:
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {entry["repo"] for entry in settings["repos"]} == {"local"}
    for hook in settings["repos"][0]["hooks"]:
        assert hook["entry"].startswith(".venv/bin/")
