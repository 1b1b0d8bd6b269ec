"""The progress bar on the error stream."""

from __future__ import annotations

import re
import time

from orbical.scanning import scan_progress_bar


def test_a_scan_of_one_step_states_its_rate(capsys):
    """It ended with "- elements/s", as a rate was known from the second step on."""
    with scan_progress_bar(240, 0, 24, True) as advance:
        time.sleep(0.01)
        advance(240)
    said = capsys.readouterr().err
    assert "10/10 samples" in said
    assert re.search(r"[1-9][\d,]* elements/s", said)


def test_without_a_step_there_is_no_rate(capsys):
    with scan_progress_bar(240, 120, 24, True):
        pass
    said = capsys.readouterr().err
    assert "5/10 samples" in said
    assert "elements/s" not in said


def test_the_rate_does_not_count_what_was_done_before(capsys):
    with scan_progress_bar(10**9 + 1, 10**9, 1, True) as advance:
        time.sleep(0.01)
        advance(1)
    (rate,) = re.findall(r"([\d,.]+) elements/s", capsys.readouterr().err)
    assert 0 < float(rate.replace(",", "")) <= 100
