"""What a reader of the view can choose: subsets, metrics, models, references, order and color."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reader import circled, expect, loneliest, values

import orbical as ob


def test_a_lasso_makes_a_subset_that_aggregate_list_and_calibration_follow(
    view, live_server, digit_scan
):
    page = view("sample=2")
    _, arrays = live_server.session.handle({"kind": "embedding", "sequence": 1})
    places = page.on_screen(arrays["xy"])
    surely, perhaps = circled(page.lasso(), places)
    assert surely <= page.members() <= perhaps
    inside = np.isin(np.arange(120), [*page.members()])
    count = int(inside.sum())
    assert 0 < count < 120
    page.until(
        "text => document.querySelector('.chip').textContent === text",
        f"{count} of 120 images · clear",
    )
    mean = digit_scan.data["score"].values[:, inside, 0].mean(1)
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    page.until(
        "text => document.querySelector('.calibration .note').textContent === text",
        f"{count} of 120 images",
    )
    accuracy = digit_scan.data["correct"].sel(model="plain").values[inside, 0].mean()
    shown = page.tab.locator(".measures li").first
    expect(shown).to_contain_text(f"accuracy {accuracy:.3f}", use_inner_text=True)
    page.shows(".list-heading span", f"{count} of 120 images")
    page.tab.locator(".chip").click()
    page.until("() => document.querySelector('.overview h2').textContent === 'All 120 images'")
    page.at("sample=2")


def test_classes_of_the_subset(view, digit_scan):
    page = view("sample=2&element=36")
    group = page.tab.get_by_role("group", name="Label", exact=True)
    group.evaluate("group => [6, 9].forEach(i => group.children[i].click())")  # before any answer
    chosen = np.isin(digit_scan.data["label"].values, [6, 9])
    page.until(
        "text => document.querySelector('.chip').textContent === text",
        f"{int(chosen.sum())} of 120 images · clear",
    )
    mean = digit_scan.data["score"].values[:, chosen, 36].mean(1)
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    page.at("sample=2&element=36&filter=label:6,9")
    page.until(
        "() => document.querySelector('.verdict').textContent === 'overconfident'"
    )  # the plain network, where sixes are nines


def test_another_metric_changes_the_orbit_plots(view, digit_scan):
    page = view("sample=2&element=36")
    page.tab.get_by_label("Metric").select_option("ece")
    along = ob.calibration.along_orbit(digit_scan, "ece")
    known = float(along.sel(model="plain").values[36])
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{known:.3f}",
    )
    expect(page.tab.locator(".aggregate .note")).to_contain_text("ECE")
    _, rows = page.readout()  # one sample has no calibration error: its score stays
    assert float(rows["plain"][0]) == pytest.approx(
        values(digit_scan, "score", 2)["plain"][36], abs=6e-4
    )
    page.tab.get_by_label("Metric").select_option("confidence")
    sure = values(digit_scan, "confidence", 2)["plain"][36]
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted", f"{sure:.3f}"
    )


def test_a_model_is_turned_off_and_on_but_never_the_last(view):
    page = view("sample=2")
    models = page.tab.get_by_role("group", name="Models")
    models.get_by_role("button", name="augmented").click()
    page.until("() => document.querySelectorAll('.answers tbody tr').length === 1")
    page.until("() => document.querySelectorAll('.bar-row:first-child .bar').length === 1")
    page.until("() => document.querySelectorAll('.aggregate .legend b').length === 1")
    page.at("sample=2&models=plain")
    models.get_by_role("button", name="plain").click()
    page.at("sample=2&models=plain")
    models.get_by_role("button", name="augmented").click()
    page.until("() => document.querySelectorAll('.answers tbody tr').length === 2")
    page.at("sample=2")


def test_labels_or_consensus(view, digit_scan):
    page = view("sample=2&element=36")
    page.tab.get_by_role("radio", name="consensus").check(force=True)
    against = values(digit_scan, "score_vs_consensus", 2)
    page.until(
        "wanted => document.querySelector('.answers td').textContent === wanted",
        f"{against['plain'][36]:.3f}",
    )
    mean = digit_scan.data["score_vs_consensus"].mean("sample").values[:, 36]
    page.until(
        "wanted => document.querySelector('.aggregate .legend b').textContent === wanted",
        f"{mean[0]:.3f}",
    )
    assert (
        "consensus class" in page.tab.get_by_label("Metric").locator("option:checked").inner_text()
    )
    _, rows = page.readout()
    usual = int(digit_scan.data["consensus"].sel(model="plain").values[2].argmax())
    predicted = int(values(digit_scan, "predicted", 2)["plain"][36])
    assert rows["plain"][1] == f"{predicted} {'✓' if predicted == usual else '✗'}"


def test_the_list_is_sorted_and_walked_with_keys(view, digit_scan):
    mean = digit_scan.data["score"].mean(("model", "element")).values
    worst = np.argsort(mean, kind="stable")
    page = view(f"sample={worst[0]}")
    page.tab.locator(".rows").focus()
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("ArrowDown")
    page.at(f"sample={worst[2]}")
    page.tab.keyboard.press("[")
    page.at(f"sample={worst[1]}")
    chosen = page.tab.locator(".row[aria-selected=true] .row-value")
    expect(chosen).to_have_text(f"{mean[worst[1]]:.3f}")
    page.tab.get_by_role("combobox", name="Sort").select_option("best")
    page.until(
        "wanted => document.querySelector('.row-value')?.textContent === wanted",
        f"{mean.max():.3f}",
    )


def test_the_color_of_a_point_is_that_of_its_class_in_the_key(view, live_server, digit_scan):
    from io import BytesIO

    from matplotlib.image import imread

    lonely = loneliest(live_server)
    page = view(f"sample={lonely}&color=label")
    page.until("() => document.querySelectorAll('.key .chip-class').length === 10")
    names = page.tab.locator(".key .chip-class").all_inner_texts()
    assert names == [str(name) for name in range(10)]
    key = page.tab.locator(".key .dot").evaluate_all(
        "dots => dots.map(dot => getComputedStyle(dot).backgroundColor.match(/\\d+/g).map(Number))"
    )
    x, y = page.ring()
    clip = {"x": x - 1, "y": y - 1, "width": 2, "height": 2}
    picture = imread(BytesIO(page.tab.screenshot(clip=clip)))[..., :3].mean((0, 1)) * 255
    nearest = int(np.linalg.norm(np.array(key) - picture, axis=1).argmin())
    assert nearest == int(digit_scan.data["label"][lonely])


def test_many_classes_fold_into_a_menu_and_missing_probabilities_are_said(view, serve, digit_scan):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 20))
    images = torch.from_numpy(digit_scan.data["input"].values[:40])
    labels = torch.arange(40) % 20
    scan = ob.scan(
        {"net": net},
        (images, labels),
        group="rotations:8",
        task="classification",
        keep="inputs",
        progress=False,
    )
    page = view("sample=3", server=serve({"twenty": scan}))
    shown = {"3", str(int(scan.data["predicted"].values[0, 3, 0]))}
    expect(page.tab.locator(".bar-row")).to_have_count(len(shown))
    assert {*page.tab.locator(".bar-name").all_inner_texts()} == shown
    assert page.text(".detail .view-note").startswith("Only the predicted class is stored")
    page.tab.get_by_role("button", name="all ▾").click()
    page.tab.get_by_label("15", exact=True).check()
    page.until("() => document.querySelector('.chip').textContent === '2 of 40 images · clear'")
    page.at("sample=3&filter=label:15")
    page.tab.get_by_role("button", name="15 ▾").wait_for()


def test_classes_in_the_embedding_carry_their_names(view):
    page = view("sample=3&color=label")
    names = page.tab.locator(".embedding .plot-holder svg text").all_text_contents()
    assert sorted(names) == [str(digit) for digit in range(10)]
    page.tab.get_by_label("Color").select_option("mean")
    page.until("() => !document.querySelector('.embedding .plot-holder svg text')")


def test_a_sample_says_what_it_is_taken_for_and_whether_it_is_in_the_subset(view, digit_scan):
    data = digit_scan.data.isel(sample=11)
    label = int(data["label"])
    wrong = {}
    for model in ("plain", "augmented"):
        said = data["predicted"].sel(model=model).values
        for other in {*said.tolist()} - {label}:
            wrong[model, other] = int((said == other).sum())
    (model, other), count = max(wrong.items(), key=lambda item: item[1])
    page = view("sample=11")
    page.shows(".individual .note", f"{model} predicts {other} at {count} of 72 positions")
    page.tab.get_by_role("button", name=str((label + 1) % 10), exact=True).click()
    page.shows(".one .half p", f"label {label} · not in the subset")
