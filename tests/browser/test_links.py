"""Links that outlive the server and lead to another browser of the same user."""

from __future__ import annotations

from reader import Page, expect


def test_a_copied_link_opens_in_another_browser_and_tabs_survive_a_restart(
    digit_scan, browser, paged
):
    """The tab that was open goes on once the view is opened again in its browser."""
    from orbical.interface import open_session
    from orbical.interface.server import Server

    def serve():
        server = Server(open_session(digit_scan.path))
        server.start()
        return server

    first = serve()
    page = paged(first.url, "sample=5&metric=confidence", permissions=["clipboard-write"])
    tab = page.tab
    tab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    tab.get_by_role("button", name="Export").click()
    tab.get_by_role("button", name="Copy link to this view").click()
    expect(tab.locator(".export-status")).to_contain_text("Another person needs the scan")
    link = tab.evaluate("window.copied")
    assert first.guard.token not in link
    first.stop()
    expect(tab.locator(".banner")).to_be_visible()
    second = serve()
    try:
        assert second.url == first.url
        other = Page(browser)  # without the cookies of the first
        other.tab.goto(link)
        other.ready()
        assert other.fragment() == page.fragment()
        assert "token" not in other.tab.evaluate("location.href")
        again = Page(browser)
        assert again.tab.goto(link).status == 403  # the link was used up
        again.tab.context.close()
        other.context.close()
        expect(tab.locator(".banner")).to_be_visible()
        page.troubles.clear()
        fresh = page.context.new_page()  # as orbical view does
        fresh.goto(second.url)
        expect(tab.locator(".banner")).to_be_hidden()
        tab.keyboard.press("]")
        page.until("() => !location.hash.includes('sample=5&')")
        fresh.close()
        page.troubles.clear()
    finally:
        second.stop()


def test_a_link_to_an_unknown_scan_leads_back(paged, live_server):
    page = paged(live_server.url, "scan=gone", sections=())
    page.tab.get_by_role("button", name="Show the first scan").click()
    expect(page.tab.locator(".section.aggregate")).to_have_attribute("data-state", "ready")
