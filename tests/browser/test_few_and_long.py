"""The page with little to show, and with names that are long."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from reader import SECTIONS, WIDE, expect  # beside this file

import orbical as ob
from orbical.errors import Interrupted

NARROW = {"width": 390, "height": 844}
NAMES = ("a-rather-long-name-of-a-network-v2.1", "resnet18_rotations_augmented_seed_2026")
SIZES = [(390, 844), (768, 1024), (1280, 720), (1440, 900)]
CLASSES = ("zero, the round one", *map(str, range(1, 9)), "nine (often taken for a six)")

OVERLAPS = """panel => {
  const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const shown = walker.currentNode.parentElement.checkVisibility();
    if (shown) words.push([walker.currentNode.data, range.getBoundingClientRect()]);
  }
  const high = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  const over = (a, b) => a.left < b.right && b.left < a.right && high(a, b) > 4;
  return words.flatMap(([one, a], n) => {
    return words.slice(n + 1).filter(([, b]) => over(a, b)).map(([other]) => [one, other]);
  });
}"""
"""The words of a panel that lie on each other by more than the space between lines."""


def linear(seed: int) -> torch.nn.Module:
    """A network that answers at once."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def settle(tab: Any) -> None:
    """Wait until the page shows everything that it can."""
    for name in SECTIONS:
        tab.wait_for_selector(f".section.{name}:is([data-state=ready], [data-state=empty])")


def test_long_names_are_cut_in_their_middle_and_push_nothing_out(opened: Any, serve: Any) -> None:
    images, labels = ob.datasets.digits()
    networks = {name: linear(seed) for seed, name in enumerate(NAMES)}
    scan = ob.scan(
        networks,
        (images[:20], labels[:20]),
        group="rotations:8",
        task=ob.tasks.Classification(classes=CLASSES),
        keep=("probabilities", "inputs"),
        progress=False,
    )
    tab = opened(serve({"long": scan}, models=networks).url, ())
    settle(tab)
    for size in (WIDE, NARROW):
        tab.set_viewport_size(size)
        assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"]
        out = tab.evaluate(
            """() => [...document.querySelectorAll(".section, .readout, .menus, .legend")]
            .filter(el => el.offsetParent && el.scrollWidth > el.clientWidth + 1)
            .map(el => el.className)"""
        )
        assert out == []
    tab.set_viewport_size({"width": 320, "height": 700})
    rows = tab.locator(".answers tbody th")
    assert rows.evaluate_all("all => all.map(el => [el.title, el.ariaLabel])") == [
        [name, name] for name in NAMES
    ]
    names = rows.locator(".model-name")
    assert names.evaluate_all("all => all.every(el => el.scrollWidth <= el.clientWidth)")
    assert names.evaluate_all("all => all.every(el => el.offsetHeight > 30)")  # two lines
    button = tab.locator(".menus .toggle .model-name").nth(1)
    assert button.inner_text().endswith("seed_2026")
    assert button.get_attribute("title") == NAMES[1]


@pytest.fixture(scope="module")
def four(serve: Any) -> Any:
    """A server of four models of which only the predicted classes are stored."""
    images, labels = ob.datasets.digits()
    networks = {name: linear(seed) for seed, name in enumerate(("plain", "turned", "both", "wide"))}
    data = (images[:30], labels[:30])
    scan = ob.scan(networks, data, group="rotations:12", task="classification", progress=False)
    return serve({"four": scan})


@pytest.mark.parametrize("size", SIZES)
def test_numbers_of_four_models_do_not_lie_on_each_other(
    opened: Any, four: Any, size: tuple[int, int]
) -> None:
    """Below the note, the axis of the probabilities lay on the key and on the rows."""
    tab = opened(four.url, (), viewport=dict(zip(("width", "height"), size, strict=True)))
    settle(tab)
    assert "Only the predicted class" in tab.locator(".detail .view-note").inner_text()
    assert tab.locator(".section.detail").evaluate(OVERLAPS) == []
    table = tab.locator(".aggregate .changes").bounding_box()
    panel = tab.locator(".section.aggregate").bounding_box()
    assert table["y"] + table["height"] <= panel["y"] + panel["height"]


@pytest.fixture(scope="module")
def questions(serve: Any) -> Any:
    """A server of a scan of long questions, which are the names of the samples."""
    things = ("umbrellas in the hall", "coats on the rack", "boots beside the door")
    asked = [f"Which of the {thing} are his, and which are hers?" for thing in things]
    table = [(question, ("the red", "the blue", "none"), 1) for question in asked]

    def model(question: Any, options: Any) -> Any:
        return [[float(len(text)) for text in row] for row in options]

    scan = ob.scan(model, table, group="permutations:3", task="choice", progress=False)
    return serve({"questions": scan})


@pytest.mark.parametrize("size", SIZES)
def test_the_list_keeps_a_dozen_letters_of_a_question(
    opened: Any, questions: Any, size: tuple[int, int]
) -> None:
    tab = opened(questions.url, (), viewport=dict(zip(("width", "height"), size, strict=True)))
    expect(tab.locator(".list .row-label")).to_have_text([re.compile(".{15}")] * 3)
    tab.wait_for_function(  # a name is fitted again once it is known whether there is a picture
        """() => [...document.querySelectorAll(".list .row-label")].every(
            (el) => el.scrollWidth <= el.clientWidth && el.textContent.length >= 15)"""
    )


def test_one_sample_is_shown_without_a_map(opened: Any, serve: Any) -> None:
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        {"net": linear(0)},
        (images[:1], labels[:1]),
        group="cyclic:4",
        task="classification",
        keep=("probabilities", "inputs"),
        progress=False,
    )
    tab = opened(serve({"one": scan}).url, ())
    settle(tab)
    assert tab.locator(".overview h2").inner_text() == "One image"
    assert "4 or more" in tab.locator(".embedding .trouble").inner_text()
    expect(tab.locator(".embedding .row")).to_have_count(1)
    assert "needs 3 or more images" in tab.locator(".calibration .message").inner_text()


class Stopped(torch.nn.Module):
    """Answers a few times, and is interrupted before a unit is finished."""

    asked = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        if self.asked > 3:
            raise KeyboardInterrupt
        return images.flatten(1)[:, :10]


def test_a_scan_of_which_nothing_is_finished_says_so(
    opened: Any, serve: Any, tmp_path: Any
) -> None:
    images, labels = ob.datasets.digits()
    with pytest.raises(Interrupted, match="stopped at 0%"):
        ob.scan(
            {"net": Stopped()},
            (images[:40], labels[:40]),
            group="rotations:8",
            task="classification",
            out=tmp_path / "begun.zarr",
            batch_size=40,
            progress=False,
        )
    tab = opened(serve(ob.load(tmp_path / "begun.zarr")).url, ())
    settle(tab)
    for section in ("aggregate", "calibration"):
        expect(tab.locator(f".{section} .message")).to_have_text("No image is finished yet.")
    expect(tab.locator(".list .quiet-text")).to_have_text("No image is finished yet.")
    expect(tab.locator(".individual .note")).to_have_text("along the orbit")  # not: correct


class Narrow(ob.data.Source):
    """Digits with a column whose values agree in six places."""

    columns: ClassVar = {"height": 11.048544 + np.arange(20) * 1e-6}

    def __len__(self) -> int:
        return 20

    def read(self, start: int, stop: int) -> tuple[Any, Any]:
        images, labels = ob.datasets.digits()
        return images[start:stop], labels[start:stop]


def test_ends_of_narrow_ranges_and_names_of_places_have_their_room(opened: Any, serve: Any) -> None:
    scan = ob.scan(
        {"net": linear(0)},
        Narrow(),
        group="translations:32:16",
        task="classification",
        progress=False,
    )
    tab = opened(serve({"narrow": scan}).url, ())
    settle(tab)
    chip = tab.locator(".filter-chip[data-column=height]")
    expect(chip).to_contain_text("11.048563")
    assert chip.evaluate("el => el.scrollWidth <= el.clientWidth")
    where = tab.locator(".readout .where")
    expect(where).to_have_text("dx −32, dy 32")  # the worst
    beside = """where => where.getBoundingClientRect().x + where.scrollWidth
        <= document.querySelector(".readout .answers").getBoundingClientRect().x"""
    assert where.evaluate(beside)
    tab.set_viewport_size(NARROW)
    notes = tab.locator(".section .note").evaluate_all(
        "all => all.filter(el => el.scrollWidth > el.clientWidth).map(el => el.textContent)"
    )
    assert notes == []
    tab.locator(".section.detail > header > .enlarge").click()
    tab.wait_for_selector(".one.staged")
    assert where.evaluate(beside)
