"""The diagnosis in a real browser: failures, advice and what if."""

from __future__ import annotations

from reader import expect


def test_a_failure_is_shown_and_bookmarked_and_a_remedy_tried(view, axe):
    page = view()
    tab = page.tab
    tab.get_by_role("button", name="Diagnosis").click()
    first = tab.locator(".failures > ol li").first
    expect(first).to_contain_text("wrong at")
    first.get_by_role("button").first.click()
    sentence = first.get_by_role("button").first.inner_text()
    page.until("() => location.hash.includes('element=')")
    first.get_by_role("button", name="Bookmark").click()
    expect(tab.get_by_role("button", name="Findings 1")).to_be_visible()
    numbers = tab.locator(".what-if tbody tr").first
    expect(numbers).not_to_contain_text("→")
    remedy = tab.locator(".advice li").first
    expect(remedy).to_contain_text("average over")
    remedy.get_by_role("button", name="Try").click()
    expect(numbers).to_contain_text("→")
    expect(tab.locator(".diagnosis pre").last).to_contain_text("ob.predictors.OrbitAverage")
    assert page.violations(axe) == []
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Findings 1").click()
    expect(tab.locator(".findings-list .go")).to_have_text(sentence)
    tab.get_by_role("button", name="Delete: ").click()


def test_the_command_that_tells_the_cause_with_training_data_can_be_copied(view):
    tab = view("sample=9").tab
    tab.get_by_role("button", name="Diagnosis").click()
    expect(tab.locator(".diagnosis pre").first).to_contain_text("--train train.npz")
    expect(tab.locator(".diagnosis").get_by_role("button", name="Copy").first).to_be_visible()


def test_the_film_strip_shows_flips_and_the_nearest_sample(view, axe, digit_scan, networks):
    import orbical as ob

    wanted = ob.flips(digit_scan, 9, models=networks)
    assert wanted, "a sample without flips shows nothing"
    page = view("sample=9")
    tab = page.tab
    tab.get_by_role("button", name="Diagnosis").click()
    rows = tab.locator(".film-strip tbody tr")
    expect(rows).to_have_count(len(wanted))
    expect(tab.locator(".film-strip .frame canvas")).to_have_count(12)
    first = wanted[0]
    expect(rows.first).to_contain_text(f"{first.before} → {first.after}")
    page.until(
        "() => [...document.querySelectorAll('.film-strip .near canvas')]"
        ".every((one) => one.width === 28)"
    )
    assert page.violations(axe) == []
    rows.first.get_by_role("button").first.click()  # exactly there, between two elements
    page.until(f"() => location.hash.includes('position={first.at:.1f}')")
    shown = tab.locator(".film-strip .here").evaluate("line => parseFloat(line.style.left)")
    assert abs(shown - first.at / 3.6) < 0.1
    rows.first.get_by_role("button").last.click()
    page.until(f"() => location.hash.includes('sample={first.nearest}')")
    expect(rows).to_have_count(len(ob.flips(digit_scan, first.nearest, models=networks)))


def test_the_layers_at_which_the_symmetry_is_lost(view, axe):
    page = view()
    tab = page.tab
    tab.get_by_role("button", name="Diagnosis").click()
    tab.get_by_role("button", name="Look inside").click()
    tables = tab.locator(".layers table")
    expect(tables).to_have_count(2)
    expect(tab.locator(".layers p").first).to_contain_text("adds the most")
    expect(tables.first.locator("tbody tr")).to_have_count(21)
    expect(tables.first.locator("tr.first")).to_have_count(1)
    assert page.violations(axe) == []
