"""Examples in the README and the guide run as printed, and the README's numbers are correct."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [*ROOT.glob("docs/guide/*.md"), ROOT / "docs" / "faq.md"]
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in PAGES)
NUMBER = r"\d+\.\d+"
pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("sketched_figures")]
NEEDS = {
    "cluster": ("distributed",),
    "integrations": ("lightning", "transformers", "accelerate"),
    "molecules": ("ase", "tblite"),
}
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


def assert_alike(said: str, shown: str) -> None:
    """Compare two outputs; the last digit of a decimal number may differ between versions."""
    assert re.sub(NUMBER, "#", said).split() == re.sub(NUMBER, "#", shown).split()
    found, told = (np.float64(re.findall(NUMBER, text)) for text in (said, shown))
    assert np.abs(found - told).max(initial=0) < 0.011


@pytest.fixture
def a_photo_classifier(tmp_path, monkeypatch):
    """Photographs in folders of classes; without torchvision, a network in its place."""
    from PIL import Image

    names = ["bird", "boat", "cat"]
    for index, name in enumerate(names):
        (tmp_path / "photos" / name).mkdir(parents=True)
        pixels = np.random.default_rng(index).integers(0, 255, (240, 320, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / name / "1.jpg")
    if find_spec("torchvision") is None:
        from torch import nn

        def resnet50(weights):
            assert weights is DEFAULT
            return nn.Sequential(
                nn.Conv2d(3, 8, 7, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
            )

        DEFAULT = SimpleNamespace(meta={"categories": names})
        models = SimpleNamespace(
            ResNet50_Weights=SimpleNamespace(DEFAULT=DEFAULT), resnet50=resnet50
        )
        monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
        monkeypatch.setitem(sys.modules, "torchvision.models", models)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs_as_printed(
    number, tmp_path, monkeypatch, capsys, a_photo_classifier
):
    if "ase" in EXAMPLES[number]:
        pytest.importorskip("ase", reason="ase is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[number], f"README example {number}", "exec"), {})
    said = re.findall(r"print.+  # (.+), off by", EXAMPLES[number])  # by how much is rounding
    assert all(line in capsys.readouterr().out for line in said)


def test_the_readme_shows_what_the_example_of_photographs_prints(monkeypatch, capsys, shared_data):
    pytest.importorskip("efficientnet_lite_pytorch", reason="EfficientNet-Lite is not installed")
    monkeypatch.setenv("ORBICAL_DATA", str(shared_data))
    runpy.run_path(str(ROOT / "examples" / "photographs.py"), run_name="__main__")
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.S)
    assert_alike(capsys.readouterr().out.partition("worst")[0], shown.partition("worst")[0])


def test_there_are_examples():
    assert len(EXAMPLES) == 2


FIGURES = {
    "scan": {"aggregate.png", "embedding.png", "worst.png"},
    "groups": {"groups.png"},
    "worst-case": {"worst-case.png"},
    "bounds": {"groups.png"},
}
ELSEWHERE = {"own-group", "own-task"}  # parts of a script, which has a test of its own
RUN = [
    page
    for page in GUIDES
    if "```python" in (ROOT / page).read_text() and Path(page).stem not in ELSEWHERE
]
OUTPUT_OF_A_SCRIPT = re.compile(r"```sh\npython (\S+)\n```\s*```text\n(.*?)```", re.S)


@pytest.mark.parametrize("page", RUN)
def test_a_guide_runs_from_top_to_bottom_and_prints_what_it_says(
    page, tmp_path, monkeypatch, capsys
):
    guide = Path(page).stem
    for package in NEEDS.get(guide, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = OUTPUT_OF_A_SCRIPT.sub("", (ROOT / page).read_text())
    said = ""
    for number, (kind, block) in enumerate(re.findall(r"```(python|text)\n(.*?)```", text, re.S)):
        if kind == "python":
            exec(compile(block, f"{guide}, block {number}", "exec"), names)
            said = capsys.readouterr().out
        else:
            assert_alike(said, block)
    assert {path.name for path in tmp_path.glob("*.png")} == FIGURES.get(guide, set())


SCRIPTS = [
    found for page in GUIDES for found in OUTPUT_OF_A_SCRIPT.findall((ROOT / page).read_text())
]


@pytest.mark.parametrize(("script", "shown"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_a_script_prints_what_the_guide_shows(
    script, shown, tmp_path, monkeypatch, capsys, shared_data
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORBICAL_DATA", str(shared_data))
    runpy.run_path(str(ROOT / script), run_name="__main__")
    assert_alike(capsys.readouterr().out, shown)


@pytest.mark.parametrize("page", GUIDES)
def test_every_printed_block_of_a_guide_follows_what_prints_it(page):
    """So that one of the tests here compares it."""
    text = OUTPUT_OF_A_SCRIPT.sub("", (ROOT / page).read_text())
    kinds = re.findall(r"^```(\w+)$", text, re.M)
    before = {kinds[i - 1] if i else "" for i, kind in enumerate(kinds) if kind == "text"}
    assert before <= {"python"}


@pytest.mark.parametrize(("classes", "columns"), [(2, 1), (2, 2), (3, 3)])
def test_the_recipes_of_repair_run_for_few_classes(classes, columns):
    import torch

    import orbical as ob

    def digits():
        images, labels = ob.datasets.digits()
        return images, labels % classes

    text = (ROOT / "docs" / "guide" / "repair.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    recipes = [block for block in blocks if "sklearn" in block or "losses" in block]
    assert len(recipes) == 4
    names = {"torch": torch, "ob": ob, "digits": digits}
    names |= {"held": slice(0, 500), "test": slice(500, 1000)}
    for recipe in recipes:
        own = recipe.replace("ob.datasets.digits()", "digits()")
        exec(own.replace("Linear(64, 10)", f"Linear(64, {columns})"), names)
    assert names["probs"].shape == (500, classes)
    assert names["calibrated"].predict_proba(names["X"]).shape[1] == classes
    assert bool(torch.isfinite(names["loss"]))


def commands_of(text: str) -> list[list[str]]:
    """Return every command `orbical ...` on a page, split into words."""
    joined = text.replace("\\\n", " ")
    fenced = "".join(re.findall(r"```(?:sh|bash)\n(.*?)```", joined, re.S))
    lines = re.findall(r"^(orbical .*)$", fenced, re.M)
    lines += re.findall(r"^    (orbical .*)$", joined, re.M) + re.findall(
        r"`(orbical [a-z][^`]*)`", joined
    )
    alone = (line.partition(" || ")[0] for line in lines)  # what follows is the shell's
    return [shlex.split(line, comments=True)[1:] for line in alone]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", *GUIDES])
def test_every_command_of_a_page_has_the_options_that_it_names(page):
    from typer.main import get_command

    from orbical.cli import _register, app

    _register()
    known = get_command(app).commands
    for name, *words in commands_of((ROOT / page).read_text()):
        assert name in known, f"{page}: orbical {name}"
        options = {"--help"} | {
            option for parameter in known[name].params for option in parameter.opts
        }
        options |= {o for parameter in known[name].params for o in parameter.secondary_opts}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= options, f"{page}: orbical {name} {' '.join(words)}"


def test_the_accuracies_are_those_recorded_with_the_weights():
    from orbical.zoo import digits

    plain = digits.provenance("plain")
    turned = digits.provenance("augmented")
    for recorded in (
        plain["test accuracy upright"],
        plain["test accuracy over 72 rotations"],
        turned["test accuracy over 72 rotations"],
    ):
        assert f"{float(recorded):.1%}".replace("%", " %") in README


@pytest.mark.parametrize("guide", ["molecules", "language-models"])
def test_who_has_such_a_model_finds_its_guide(guide):
    mine = README.split("## I have ...")[1].split("\n## ")[0]
    assert f"](docs/guide/{guide}.md)" in mine
