"""Text that leaves the program: nothing in it acts on a terminal, a spreadsheet or a parser."""

from __future__ import annotations

import csv
import io
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical._console import Console
from orbical._text import csv_text, printable


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_no_control_character_survives_and_xml_takes_the_rest(text):
    clean = printable(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cs") for sign in clean)
    assert len(clean) == len(text)
    element = ElementTree.Element("testcase", name=clean)
    assert ElementTree.fromstring(ElementTree.tostring(element)).get("name") == clean


def test_names_of_many_scripts_stay_as_they_are():
    names = "Grüße Ünïcode 日本語 نام عربي 😀 x̂ 5 µm"
    assert printable(names) == names


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        ("+1+1", "'+1+1"),
        ("-1-1", "'-1-1"),
        ("\t=1", "?=1"),
        ("-0.25", "-0.25"),
        ("+inf", "+inf"),
        (-0.25, "-0.25"),
        ("a\nb", "a?b"),
        ("plain, with a comma", "plain, with a comma"),
    ],
)
def test_a_cell_is_never_a_formula(cell, written):
    ((found,),) = csv.reader(io.StringIO(csv_text([[cell]])))
    assert found == written


def test_the_console_prints_its_own_codes_only():
    held = io.StringIO()
    console = Console(file=held, force_terminal=True, width=60, color_system="standard")
    console.print("[bold]a[/]", "x\x1b[31my\x07\x9b2J", "two\nlines", highlight=False)
    text = held.getvalue()
    assert "x?[31my?" in text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x07" not in text
    assert "\x9b" not in text
    assert "two\nlines" in text
    assert text.count("\x1b") == 2  # bold on and off
