"""`orbical bounds` reports the ceiling first, then the interval, then the theorems."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

import orbical as ob
from orbical.cli.bounds import bounds
from orbical.errors import InputError


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(bounds)
    app.command("other")(lambda: None)

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["bounds", *map(str, arguments)], env={"COLUMNS": "140"})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return run


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.npz"
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    np.savez(path, x=x, y=[0, 0, 1, 1])
    return path


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    class Mean(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            brightness = x.double().mean((1, 2, 3))
            return torch.stack([brightness * 4, 4 - 4 * brightness], 1)

    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    pictures = rng.random((6, 1, 4, 4)).astype(np.float32)
    which = np.repeat(np.arange(6), 4)
    x = torch.from_numpy(
        np.stack([np.rot90(pictures[w], i % 4, (1, 2)).copy() for i, w in enumerate(which)])
    )
    ob.scan(
        {"mean": Mean()},
        (x, torch.from_numpy(rng.integers(0, 2, 24))),
        group=ob.groups.cyclic(4),
        task=ob.tasks.Classification(),
        out=folder / "run.zarr",
        progress=False,
    )
    np.save(folder / "orbits.npy", which)
    np.savez(folder / "data.npz", x=x.numpy(), y=np.zeros(24, int))
    return folder / "run.zarr", folder / "orbits.npy"


def test_data_and_a_group_give_the_ceiling_first(call, points: Path) -> None:
    output = call("--data", points, "--group", "cyclic:4", "--group", "cyclic:2")
    assert output.startswith("No cyclic:4-invariant model is more accurate than 0.5000")
    for word in ("trivial", "cyclic:2", "ceiling", "matched", "incorrect", "points match within"):
        assert word in output


def test_a_product_of_groups_wraps_between_its_factors(points: Path) -> None:
    app = typer.Typer()
    app.command()(bounds)
    words = ["--data", str(points), "--group", "dihedral:4*permutations:1"]
    told = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).output
    starts = [line.split()[0] for line in told.splitlines() if line.strip()]
    assert starts.count("dihedral:4*") == starts.count("permutations:1") == 2, told


def test_80_columns_show_every_number_of_the_comparison(points: Path) -> None:
    app = typer.Typer()
    app.command()(bounds)
    words = ["--data", str(points), "--group", "cyclic:4", "--group", "dihedral:4"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).output
    assert "…" not in shown
    first, second = (line for line in shown.splitlines() if line.startswith("cyclic:4"))
    assert first.split()[:-1] == ["cyclic:4", "4", "1", "1.0000", *["0.5000"] * 4]
    assert second.split()[5:] == ["0.5000", "0.5000", "0"]


def test_data_as_json(call, points: Path) -> None:
    answer = json.loads(call("--data", points, "--group", "cyclic:4", "--json"))
    forced = answer["forced_overconfidence"]
    curve = forced["groups"]["cyclic:4"]["one_confidence"]
    assert len(curve) == len(forced["confidence"])
    assert curve[-1] == answer["groups"][1]["forced_at_full_confidence"]
    assert [row["group"] for row in answer["groups"]] == ["trivial", "cyclic:4"]
    assert answer["groups"][1]["accuracy_ceiling"] == 0.5
    assert "bounds" not in answer


def test_data_with_answers_are_bounded_too(call, tmp_path: Path) -> None:
    path = tmp_path / "answers.npz"
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])
    np.savez(path, x=x, y=[0, 1, 1], confidence=[0.9, 0.9, 0.6], predicted=[0, 0, 1])
    answer = json.loads(call("--data", path, "--group", "cyclic:2", "--json"))
    found = answer["bounds"]["cyclic:2"]["bounds"]
    assert found["accuracy_ceiling"]["value"] == pytest.approx(2 / 3)
    assert found["forced_ece"]["value"] <= found["ece"]["value"] <= found["sharp_upper"]["value"]
    assert "calibration error of an invariant model" in call("--data", path, "--group", "cyclic:2")


def test_what_bars_many_statements_is_said_once(call, tmp_path: Path) -> None:
    """Eight statements had the same reason of four lines each."""
    path, x = tmp_path / "answers.npz", np.array([[1.0, 0.0], [-1.0, 0.0]])
    np.savez(path, x=x, y=[0, 1], confidence=[0.9, 0.9], predicted=[0, 1])
    output = " ".join(call("--data", path, "--group", "cyclic:2").split())
    assert output.count("so it is not invariant") == 1
    assert "see any_ece (Proposition 1, no symmetry; Theorem 4, fiber by fiber;" in output
    assert "1 orbit; 2 labels" in output


def test_pictures_move_as_images(call, tmp_path: Path) -> None:
    picture = np.random.default_rng(0).random((1, 5, 5))
    x = np.stack([picture, np.rot90(picture, 1, (1, 2)), picture + 1])
    np.savez(tmp_path / "pictures.npz", x=x, y=[0, 1, 0])
    answer = json.loads(call("--data", tmp_path / "pictures.npz", "--group", "cyclic:4", "--json"))
    assert answer["groups"][0]["accuracy_ceiling"] == 1
    assert answer["groups"][1]["accuracy_ceiling"] == pytest.approx(2 / 3)


def test_a_scan_is_reported_in_order(call, run_store: tuple[Path, Path]) -> None:
    store, ids = run_store
    output = call(store, "--orbits", ids)
    ceiling = output.index("more accurate than")
    interval = output.index("calibration error of an invariant model")
    own = output.index("this model's own")
    theorem = output.index("Theorem 4, fiber by fiber")
    assert ceiling < interval < own < theorem
    assert "measured invariance gap" in output
    assert "To reach an accuracy of" in output
    assert "along the scanned orbits" in " ".join(output.split())
    assert "●" in output


def test_orbits_of_a_scan_may_come_from_matching_its_data(
    call, run_store: tuple[Path, Path]
) -> None:
    store, ids = run_store
    matched = call(store, "--data", store.parent / "data.npz", "--json")
    assert json.loads(matched) == json.loads(call(store, "--orbits", ids, "--json"))


def test_a_scan_that_keeps_its_inputs_needs_no_other_data(call, tmp_path: Path) -> None:
    picture = np.random.default_rng(0).random((1, 4, 4)).astype(np.float32)
    pairs = np.stack([picture, np.rot90(picture, 1, (1, 2)), picture + 1, picture + 2])
    for name, x, orbits in (("met", pairs, 3), ("apart", pairs[1:], 3)):
        data, store = (x, np.arange(len(x)) % 2), tmp_path / f"{name}.zarr"
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
        ob.scan(net, data, group="cyclic:4", keep="inputs", out=store, progress=False)
        assert json.loads(call(store, "--json"))["model"]["about"]["orbits"] == orbits
        advice = "Nearest neighbors give an estimate instead: orbical bounds --data data.npz"
        assert (advice in call(store)) == (name == "apart")


def test_a_scan_as_json(call, run_store: tuple[Path, Path]) -> None:
    store, ids = run_store
    answer = json.loads(call(store, "--orbits", ids, "--json", "--model", "mean"))
    found = answer["mean"]
    assert set(found["bounds"]["sharp_upper"]) == {
        *("value", "quantity", "kind", "applies", "reason", "vacuous")
    }
    assert found["about"]["orbits"] == 6


def test_bad_calls_say_what_is_expected(
    call, points: Path, run_store: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="expected a saved scan, or --data with --group"):
        call()
    with pytest.raises(InputError, match="expected --orbits or --data for a scan"):
        call(run_store[0], "--data", points, "--orbits", run_store[1])
    with pytest.raises(InputError, match="--group: expected a group with --data"):
        call("--data", points)
    with pytest.raises(InputError, match="--data: expected a file, got"):
        call("--data", tmp_path / "none.npz", "--group", "cyclic:4")
    with pytest.raises(InputError, match=r"--data: expected the \d+ samples of the scan, got 4 in"):
        call(run_store[0], "--data", points)
    folder = "which is a folder; photographs hardly ever coincide, so use the estimate"
    with pytest.raises(InputError, match=folder):
        call(run_store[0], "--data", tmp_path)
    with pytest.raises(InputError, match="pass its data with --data"):
        call(run_store[0])
    np.savez(tmp_path / "bare.npz", x=np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"expected arrays x and y, got \['x'\]"):
        call("--data", tmp_path / "bare.npz", "--group", "cyclic:4")


def test_a_symmetry_that_joins_no_samples_is_not_called_free(call, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    np.savez(tmp_path / "apart.npz", x=x, y=np.arange(6) % 2)
    output = " ".join(call("--data", tmp_path / "apart.npz", "--group", "cyclic:4").split())
    assert "Under cyclic:4 no two different samples share an orbit" in output
    assert "Nearest neighbors estimate the accuracy ceiling at" in output
    assert "more accurate than" not in output
    assert "tolerance" not in output  # which is no remedy


def test_a_tolerance_gives_no_bounds_but_estimates(call, tmp_path: Path) -> None:
    x = np.linspace(0, 1, 101)[:, None] * [[1.0, 0.0]]
    outputs = {"confidence": np.full(101, 0.9), "predicted": np.zeros(101, int)}
    np.savez(tmp_path / "line.npz", x=x, y=(x[:, 0] > 0.5).astype(int), **outputs)
    words = ("--data", tmp_path / "line.npz", "--group", "cyclic:2", "--tolerance", 0.02)
    output = " ".join(call(*words).split())
    assert "samples were joined within a tolerance: no bounds" in output
    assert "No bounds, only estimates" in output
    assert "more accurate than" not in output
    answer = json.loads(call(*words, "--json"))
    assert answer["groups"][1]["accuracy_ceiling"] is None
    assert answer["groups"][1]["neighbor_high"] > 0.9
    found = answer["bounds"]["cyclic:2"]["bounds"]
    assert not any(bound["applies"] for bound in found.values())


def test_values_are_compared_with_a_representation(call, tmp_path: Path) -> None:
    x = np.array([[1.0, 2.0], [-1.0, -2.0]])
    np.savez(tmp_path / "values.npz", x=x, y=x)
    for how, floor in (("vector", 0.0), ("invariant", 5.0)):
        words = ("--data", tmp_path / "values.npz", "--group", "cyclic:2", "--representation", how)
        assert json.loads(call(*words, "--json"))["groups"][1]["error_floor"] == floor
        assert f"a squared error of at least {floor:.4g}" in call(*words)


def test_ids_that_are_no_array_are_named(
    call, run_store: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "ids.npy").write_text("1, 2, 3")
    with pytest.raises(InputError, match=r"--orbits: .* cannot be read"):
        call(run_store[0], "--orbits", tmp_path / "ids.npy")
    with pytest.raises(
        InputError, match=r"--orbits: expected an \.npy file with one array, .* got x, y"
    ):
        call(run_store[0], "--orbits", run_store[0].parent / "data.npz")
