"""No module outside of the tasks knows a task by its name: it asks for what the task declares."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import orbical
from orbical.tasks import TASKS

PACKAGE = Path(orbical.__file__).parent


def compared_names(source: str) -> list[str]:
    """Return the comparisons of a task with the name of a task."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare | ast.match_case)
        and _mentions_task(node)
        and any(isinstance(one, ast.Constant) and one.value in {*TASKS} for one in ast.walk(node))
    ]


def _mentions_task(node: ast.AST) -> bool:
    words = [getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(node)]
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return "task" in words or "task" in texts


@pytest.mark.parametrize(
    "source",
    [
        'if task == "atoms": pass',
        'x = record.task.name != "dense_regression"',
        'x = data.attrs["task"] in ("regression", "detection")',
        'x = proposal["task"] == "detection"',
    ],
)
def test_a_comparison_with_a_name_is_seen(source):
    assert compared_names(source)


def test_no_module_compares_the_name_of_a_task():
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "tasks"]
    assert len(modules) > 200
    assert {str(path): compared_names(path.read_text("utf-8")) for path in modules} == {
        str(path): [] for path in modules
    }


def test_a_regression_of_your_own_gets_conformal_intervals():
    class Prices(orbical.tasks.Regression):
        name = "prices"

    images, noise = torch.rand(60, 1, 4, 4), 0.1 * torch.randn(60)
    scan = orbical.scan(
        lambda x: x.mean((1, 2, 3)),
        (images, images.mean((1, 2, 3)) + noise),
        group="cyclic:2",
        task=Prices(),
        progress=False,
    )
    found = orbical.conformal.along_orbit(scan)
    assert "coverage" in {part.name for part in found}
