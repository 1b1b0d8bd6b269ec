"""The widget: the newest request of a kind is answered, frames are buffers, and a picture stays."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
import torch
from talking import decode

import orbical as ob
from orbical.errors import MissingExtra
from orbical.interface import widget as widgets
from orbical.interface.session import Session
from orbical.interface.widget import WidgetFallback


@pytest.fixture
def shown(scan):
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    made = widgets.widget(Session({"digits": scan}))
    sent = []
    made.send = lambda content, buffers: sent.append((content, buffers))
    yield made, sent
    made.close()


def until(condition, patience_s=60):
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_request_is_answered_with_one_frame_in_a_buffer(shown, scan):
    made, sent = shown
    made._receive(made, {"kind": "aggregate", "sequence": 7, "selection": {}}, [])
    until(lambda: sent)
    content, buffers = sent[0]
    header, arrays = decode(bytes(buffers[0]))
    assert content == {"frame": len(buffers[0])}
    assert (header["kind"], header["sequence"]) == ("aggregate", 7)
    np.testing.assert_allclose(arrays["values"], scan.data["score"].mean("sample"), rtol=1e-5)


def test_a_mistake_is_an_answer_and_nonsense_is_none(shown):
    made, sent = shown
    made._receive(made, {"kind": "sample", "sequence": 1, "selection": {"sample": 99}}, [])
    until(lambda: sent)
    header, _ = decode(bytes(sent[0][1][0]))
    assert "expected 0 to 89" in header["error"]
    for nonsense in ("text", {"kind": "launch"}, {"kind": None}, None):
        made._receive(made, nonsense, [])
    made._receive(made, {"kind": "subset", "sequence": 2, "selection": {}}, [])
    until(lambda: len(sent) > 1)
    assert decode(bytes(sent[1][1][0]))[0]["kind"] == "subset"


def test_the_selection_is_that_of_the_page(shown):
    made, _ = shown
    made.fragment = "sample=5&filter=label:3,4"
    assert (made.selection.sample, made.selection.filter) == (5, ("label:3,4",))


def test_a_newer_request_takes_the_place_of_one_that_waits():
    started, go, answered = threading.Event(), threading.Event(), []

    def answer(message, outdated):
        started.set()
        go.wait(60)
        yield message

    desk = widgets.ThreadedRequestQueue(answer, answered.append)
    desk.put("place", b"first")
    assert started.wait(60)
    for number in range(1000):
        desk.put("place", b"%d" % number)
    go.set()
    until(lambda: len(answered) == 2)
    desk.close()
    desk._pool.shutdown()  # nothing is under way
    assert answered == [b"first", b"999"]


def test_another_kind_does_not_wait_for_a_slow_one():
    go, answered = threading.Event(), []

    def answer(message, outdated):
        if message == b"slow":
            go.wait(60)
        yield message

    desk = widgets.ThreadedRequestQueue(answer, answered.append)
    desk.put("embedding", b"slow")
    desk.put("place", b"quick")
    until(lambda: answered == [b"quick"])
    go.set()
    until(lambda: len(answered) == 2)
    desk.close()


def test_without_anywidget_the_extra_is_named(scan, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    widgets._widget_class.cache_clear()
    with pytest.raises(MissingExtra, match=r"orbical\[notebook\]"):
        widgets.widget(Session({"digits": scan}))


def test_the_output_carries_a_picture_and_a_table_for_readers_without_a_kernel(shown):
    made, _ = shown
    data, _ = made._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "src='data:image/png;base64," in data["text/html"]
    assert "<th" in data["text/html"]
    assert "linear" in data["text/html"]
    assert "rotations:8" in data["text/plain"]


def test_the_picture_is_folded_when_a_page_asks(scan):
    class Handle:
        content = None

        def update(self, content, raw):
            self.content = content

    fallback = WidgetFallback(Session({"digits": scan}))
    fallback._handle = handle = Handle()
    fallback.fold()
    assert handle.content["text/html"].startswith("<details")
    assert "data:image/png" in handle.content["text/html"]
    fallback.fold()  # once is enough


@pytest.mark.parametrize("group", ["translations:1", "flips", "dihedral:4"])
@pytest.mark.filterwarnings("ignore:group")
def test_every_layout_has_a_fallback(group):
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        net, (images[:12], labels[:12]), group=group, task="classification", progress=False
    )
    assert "<table" in WidgetFallback(Session({"digits": scan})).bundle()["text/html"]


def test_the_selection_names_samples_and_the_place(shown):
    made, _ = shown
    made.fragment = "filter=label:3&element=2"
    labels = made.session.scan_view().label
    np.testing.assert_array_equal(made.selection.samples, np.flatnonzero(labels == 3))
    assert made.selection.place == {"angle": 90.0}
    made.fragment = "position=12.5"
    assert made.selection.place == {"angle": 12.5}


def test_the_selection_can_be_set(shown):
    made, _ = shown
    made.fragment = "filter=label:3&metric=ece"
    made.selection = [4, 7, -1]
    assert made.selection.samples.tolist() == [4, 7, 89]
    assert (made.selection.filter, made.selection.metric) == ((), "ece")
    before = made.selection
    mask = np.zeros(90, bool)
    mask[5] = True
    made.selection = mask
    assert made.selection.samples.tolist() == [5]
    made.selection = {"sample": 5, "element": 3}
    assert (made.selection.sample, made.selection.place) == (5, {"angle": 135.0})
    assert made.selection.samples.tolist() == [5]  # what is not named stays
    made.selection = before
    assert made.selection.samples.tolist() == [4, 7, 89]
    made.selection = range(90)
    assert made.selection.subset == ""


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([90], "samples: expected indices below 90"),
        ([0.5], "samples: expected indices below 90"),
        ({"sample": 90}, "selection sample: expected 0 to 89"),
        ({"element": 8}, "selection element: expected 0 to 7"),
        ({"metric": "nothing"}, "selection metric"),
        ({"smaple": 1}, "selection: .*smaple"),
    ],
)
def test_what_is_not_there_cannot_be_selected(shown, given, named):
    made, _ = shown
    made.fragment = "sample=3"
    with pytest.raises(ob.errors.InputError, match=named):
        made.selection = given
    assert made.fragment == "sample=3"


def test_tags_of_the_page_are_a_column_of_python(scan, tmp_path):
    import shutil

    from orbical.interface import tag, tags

    assert tags(scan).sizes == {"sample": 90, "tag": 0}
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    path = tmp_path / "run.zarr"
    data = (images[:12], labels[:12])
    kept = ob.scan(net, data, group="rotations:4", task="classification", out=path, progress=False)
    session = Session({"run": kept})

    def say(name, sample, on=True):
        message = {"kind": "names", "sequence": 1, "selection": {"sample": sample}}
        return session.handle({**message, "do": "tag", "name": name, "on": on})[0]

    say("blurred", 3)
    told = say("blurred", 7)
    assert (told["tags"], told["sets"][0]["count"]) == (["blurred"], 2)
    say("odd", 3)
    found = tags(path)
    assert found["tag"].values.tolist() == ["blurred", "odd"]
    assert np.flatnonzero(found.sel(tag="blurred")).tolist() == [3, 7]
    about, _ = session.handle({"kind": "sample", "sequence": 1, "selection": {"sample": 3}})
    assert about["tags"] == ["blurred", "odd"]
    assert say("odd", 3, on=False)["tags"] == ["blurred"]
    assert tags(path)["tag"].values.tolist() == ["blurred"]  # a tag of no sample is gone
    tag(path, "seen", [0, 11])
    assert np.flatnonzero(tags(path).sel(tag="seen")).tolist() == [0, 11]
    tag(path, "seen", range(12))
    assert tags(path).sel(tag="seen").all()
    tag(path, "seen", [])
    assert "seen" not in tags(path)["tag"]
    shutil.rmtree(path.with_name("run.zarr.view"))
    assert tags(path).sizes["tag"] == 0
