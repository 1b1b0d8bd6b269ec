"""Examples in the README and the guide run as printed, and the README's numbers are correct."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/guide/*.md"))
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


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs_as_printed(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[number], f"README example {number}", "exec"), {})
    said = capsys.readouterr().out
    shown = re.match(r"\s*```text\n(.*?)```", README.partition(EXAMPLES[number] + "```")[2], re.S)
    if shown is not None:
        assert_alike(said, shown[1])


def test_the_first_example_shows_what_it_prints():
    assert re.search(r"```python\n[^`]*```\s*```text", README)


def test_there_are_examples():
    assert len(EXAMPLES) == 3


FIGURES = {
    "scan": {"aggregate.png", "embedding.png", "worst.png"},
    "groups": {"groups.png"},
    "worst-case": {"worst-case.png"},
    "bounds": {"groups.png"},
}
ELSEWHERE = {"own-group", "own-task"}  # parts of a script, which has a test of its own
RUN = [
    Path(page).stem
    for page in GUIDES
    if "```python" in (ROOT / page).read_text() and Path(page).stem not in ELSEWHERE
]
OUTPUT_OF_A_SCRIPT = re.compile(r"```sh\npython (\S+)\n```\s*```text\n(.*?)```", re.S)


@pytest.mark.parametrize("guide", RUN)
def test_a_guide_runs_from_top_to_bottom_and_prints_what_it_says(
    guide, tmp_path, monkeypatch, capsys
):
    for package in NEEDS.get(guide, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = OUTPUT_OF_A_SCRIPT.sub("", (ROOT / "docs" / "guide" / f"{guide}.md").read_text())
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
    return [shlex.split(line, comments=True)[1:] for line in lines]


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
