"""Every public function shows how it is called; the examples themselves run as doctests."""

from __future__ import annotations

import importlib
import inspect

import pytest


@pytest.mark.parametrize(
    "name",
    [
        *("calibration", "bounds", "losses", "training", "recalibrate", "conformal", "selective"),
        *("nero", "embedding"),
        *("figures", "figures.calibration", "figures.bounds"),
    ],
)
def test_every_public_function_has_an_example(name: str) -> None:
    module = importlib.import_module(f"orbical.{name}")
    own = [key for key, value in vars(module).items() if inspect.getmodule(value) is module]
    public = getattr(module, "__all__", [key for key in own if not key.startswith("_")])
    functions = {key: getattr(module, key) for key in public}
    bare = [
        key
        for key, function in functions.items()
        if inspect.isfunction(function) and ">>>" not in (function.__doc__ or "")
    ]
    assert any(map(inspect.isfunction, functions.values()))
    assert not bare, f"without an example: {', '.join(bare)}"
