"""``kb ui`` in a real browser: keyboard, history, live pages, time; nothing leaves loopback or breaks the policy."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.cli.ui.test_pages import HOSTILE, PAGES, apply
from tests.support.browser.chromium import chromium
from tests.support.processes.cli import run_kb
from tests.support.processes.explorer import Explorer

SOON_MS = 10_000
FILTERED = ["/requirements", "/matrix?edges=verified_by", "/violations", "/entities", "/records", "/changes", "/review"]
VALUES = {
    "edges": "^verified_by",
    "where": "priority=must",
    "has": "verified_by",
    "lacks": "verified_by",
    "from": "REQ-1",
    "sort": "-id",
    "since": "1",
    "until": "2",
    "id": "REQ-9",
    "path": "docs/**",
}
"""The text that is typed into a field of a filter; of all others it is a word."""
OF_CHANGES = {"from": "1", "to": "2"}


WIDE = ["/requirements", "/entities", "/records", "/activity", "/coverage", "/violations", "/record/1", "/"]
SCROLLED = """() => [...document.querySelectorAll(".wide")].filter((one) => one.scrollWidth > one.clientWidth)
.map((box) => {
    const [cell, view] = [box.querySelector("tbody tr > :first-child"), box.getBoundingClientRect()];
    window.scrollTo(0, 0);
    window.scrollTo(0, cell.getBoundingClientRect().top - 300);
    box.scrollLeft = box.scrollWidth;
    const shown = cell.getBoundingClientRect();
    const above = document.elementFromPoint(shown.left + 4, shown.top + shown.height / 2);
    return [shown.left - view.left, shown.width / view.width, cell.contains(above)];
})"""
"""Of tables that are wider than their box, scrolled to its end: where the first column is, its share, if it is seen."""
OVERLAPPING = """() => {
    const found = [], faults = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const [text, range] = [walker.currentNode, document.createRange()];
        if (!text.data.trim() || !text.parentElement.checkVisibility()) continue;
        range.selectNodeContents(text);
        for (const box of range.getClientRects()) found.push([text.data.trim(), box, text]);
    }
    for (const [one, a, node] of found) for (const [other, b, another] of found) {
        const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (node !== another && width > 2 && height > 7) faults.push(`${one.slice(0, 40)} | ${other.slice(0, 40)}`);
    }
    return faults;
}"""
"""The pairs of texts of which one is over the other."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    made = shutil.copytree(models / "synced", tmp_path_factory.mktemp("browser") / "repo", symlinks=True)
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open", "tags": ["money"]}, actor="ann")
    hostile = [
        {
            "id": f"H-{number}",
            "type": "req",
            "title": text,
            "status": "open",
            "owner": text[:200],
            "attributes": {"note": text},
        }
        for number, text in enumerate(HOSTILE)
    ]
    apply(made, *hostile, actor=HOSTILE[0])
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay at once", "status": "open"})
    return made


@pytest.fixture(scope="module")
def explorer(root):
    with Explorer(root, opens=False) as running:
        yield running


@pytest.fixture(scope="module")
def opened(browser, explorer):
    """The context of the browser that has opened the explorer; what it asked for, and what it complained of."""
    context = browser.new_context()
    context.add_init_script(
        "document.addEventListener('securitypolicyviolation', (e) => console.error('CSP ' + e.blockedURI))"
    )
    first = context.new_page()
    first.goto(explorer.url)
    first.wait_for_url(f"{explorer.origin}{explorer.base}/")
    first.close()
    return context


@pytest.fixture
def page(opened):
    made = opened.new_page()
    made.set_default_timeout(SOON_MS)
    made.asked, made.faults = [], []
    made.on("request", lambda one: made.asked.append(one.url))
    made.on("console", lambda one: made.faults.append(one.text) if one.type == "error" else None)
    made.on("pageerror", lambda one: made.faults.append(str(one)))
    made.on("dialog", lambda one: (made.faults.append("dialog"), one.dismiss()))
    yield made
    made.close()


def place(explorer, path):
    return f"{explorer.origin}{explorer.base}{path}"


def test_no_page_breaks_the_policy_or_asks_anything_beyond_loopback(page, explorer):
    for path in [*PAGES, "/entities?text=alert", *(f"/entity/H-{number}" for number in range(len(HOSTILE)))]:
        page.goto(place(explorer, path))

    assert page.faults == []
    assert {urlsplit(one).netloc for one in page.asked} == {f"127.0.0.1:{explorer.port}"}


def test_stored_text_is_shown_as_it_is(page, explorer):
    for number, text in enumerate(HOSTILE):
        page.goto(place(explorer, f"/entity/H-{number}"))
        assert page.locator(".title").inner_text() == text
    page.locator("input[type=search]").press_sequentially("alert")
    page.locator("#suggested li").first.wait_for()
    assert page.faults == []


def test_all_is_reached_by_keyboard(page, explorer):
    page.goto(place(explorer, "/"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    names = []
    for _ in range(11):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent"))
    assert names[0] == "Overview"
    assert names[-1] == "Activity"
    page.keyboard.press("Enter")
    page.wait_for_url("**/activity")
    page.keyboard.press("/")
    page.keyboard.type("pay")
    page.locator("#suggested a").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "REQ-9"
    page.keyboard.press("Escape")
    assert page.locator("#suggested").is_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url("**/entities?text=pay")


def test_each_control_has_a_name_and_each_page_one_title(page, explorer):
    for path in PAGES:
        page.goto(place(explorer, path))
        nameless = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, button, a, summary')]"
            ".filter((one) => !(one.labels?.length || one.textContent.trim() || one.ariaLabel)).length"
        )
        assert nameless == 0, path
        assert page.title().endswith(": KB")


@pytest.mark.parametrize("path", FILTERED)
def test_each_filter_is_in_the_address_and_kept_by_its_control(page, explorer, path):
    page.goto(place(explorer, path))
    names = page.evaluate(
        "[...document.querySelectorAll('main form.filters [name]:not([type=hidden])')].map((e) => e.name)"
    )
    values = {**VALUES, **(OF_CHANGES if path == "/changes" else {})}
    assert names
    for name in names:
        page.goto(place(explorer, path))
        for more in page.locator("main form.filters details:not([open]) > summary").all():
            more.click()
        control = page.locator(f"main form.filters [name={name}]").first
        value = values.get(name, "word")
        if control.get_attribute("type") == "checkbox":
            control.check()
            value = "1"
        elif control.evaluate("(one) => one.localName") == "select":
            options = control.evaluate("(one) => [...one.options].map((option) => option.value)")
            value = options[-1]
            control.select_option(value)
        else:
            control.fill(value)
        control.locator("xpath=ancestor::form").locator("button").last.press("Enter")
        if value:
            page.wait_for_url(
                lambda address, name=name, value=value: (name, value) in parse_qsl(urlsplit(address).query)
            )
        shown = page.locator(f"main form.filters [name={name}]").first
        if page.get_by_role("heading", name="This cannot be shown").count() == 0:
            assert shown.input_value() == value
    assert page.faults == []


def test_a_filter_is_set_followed_compared_and_taken_back_by_keyboard_alone(page, explorer):
    def press_until(text):
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent || document.activeElement.name") == text:
                return
        raise AssertionError(text)

    page.goto(place(explorer, "/entities"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skips to the page
    assert page.evaluate("document.activeElement.id") == "main"
    press_until("tag")
    page.keyboard.type("money")
    page.keyboard.press("Enter")
    page.wait_for_url("**tag=money**")
    press_until("REQ-9")
    page.keyboard.press("Enter")
    page.wait_for_url("**/entity/REQ-9")
    press_until("Records about it")
    page.keyboard.press("Enter")
    page.wait_for_url("**/records?id=REQ-9")
    page.go_back()
    page.wait_for_url("**/entity/REQ-9")
    page.go_back()
    page.wait_for_url("**tag=money**")
    assert page.locator("tbody th").all_inner_texts() == ["REQ-9"]
    press_until("CSV")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert "REQ-9" in Path(download.value.path()).read_text("utf-8")


@pytest.mark.parametrize("width", [1280, 360])
def test_long_and_right_to_left_titles_stay_within_the_page_and_run_as_they_should(page, explorer, width):
    page.set_viewport_size({"width": width, "height": 800})
    for number, text in enumerate(HOSTILE):
        page.goto(place(explorer, f"/entity/H-{number}"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, text[:40]
    for path in ("/entities", "/requirements", "/records", "/record/3", "/", "/violations", "/activity"):
        page.goto(place(explorer, path))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.goto(place(explorer, f"/entity/H-{HOSTILE.index('שלום עולם')}"))
    first, last = page.locator(".title").evaluate(
        """(one) => [0, one.firstChild.length - 1].map((at) => {
            const range = document.createRange();
            range.setStart(one.firstChild, at);
            range.setEnd(one.firstChild, at + 1);
            return range.getBoundingClientRect().left;
        })"""
    )
    assert first > last


def test_wide_tables_scroll_in_their_own_box_and_keep_their_first_column(page, explorer):
    page.set_viewport_size({"width": 360, "height": 800})
    scrolled = []
    for path in WIDE:
        page.goto(place(explorer, path))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        tables = page.evaluate(SCROLLED)
        assert all(abs(left) < 1 and share < 0.6 and seen for left, share, seen in tables), (path, tables)
        scrolled += [path] * bool(tables)
    assert {"/requirements", "/entities", "/activity"} <= {*scrolled}


def test_a_narrow_column_of_text_does_not_make_a_row_high(page, explorer):
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(place(explorer, "/records"))
    assert page.locator("tbody td.words").last.evaluate("(one) => one.clientWidth >= 180")
    assert page.locator("tbody tr").last.evaluate("(one) => one.clientHeight < 100")


def test_the_fields_of_a_change_have_the_whole_width_of_a_narrow_page(page, explorer):
    page.set_viewport_size({"width": 360, "height": 800})
    for path in ("/record/1", "/changes?from=1&to=2"):
        page.goto(place(explorer, path))
        assert page.locator("dl.diff").first.evaluate("(one) => one.clientWidth >= 300"), path


@pytest.mark.parametrize("width", [1280, 360])
def test_a_status_and_its_number_are_on_one_line(page, explorer, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(place(explorer, "/"))
    heights = page.locator("td .count").evaluate_all("(all) => all.map((one) => one.getClientRects()[0].height)")
    assert heights
    assert max(heights) < 30


@pytest.mark.parametrize("width", [1280, 360])
def test_no_text_is_over_another_one(page, explorer, width):
    page.set_viewport_size({"width": width, "height": 800})
    for path in [*PAGES, "/entity/REQ-1?depth=3"]:
        page.goto(place(explorer, path))
        assert page.evaluate(OVERLAPPING) == [], path


def test_fields_of_filters_begin_and_end_at_one_place_each_on_a_narrow_page(page, explorer):
    page.set_viewport_size({"width": 360, "height": 800})
    for path in FILTERED:
        page.goto(place(explorer, path))
        boxes = [
            one.bounding_box() for one in page.locator("main .filters :is(input:not([type=checkbox]), select)").all()
        ]
        sides = {(round(one["x"]), round(one["x"] + one["width"])) for one in boxes if one}
        assert len(sides) == 1, (path, sides)


def test_a_picture_first_shows_the_entity_that_it_is_around(page, explorer):
    page.set_viewport_size({"width": 360, "height": 600})
    page.goto(place(explorer, "/entity/TEST-1?depth=3"))
    assert page.locator(".picture").evaluate("(one) => one.scrollWidth > one.clientWidth")
    left, right, end = page.locator(".picture").evaluate(
        """(box) => {
            const [start, view] = [box.querySelector('.start rect'), box].map((one) => one.getBoundingClientRect());
            return [start.left - view.left, start.right - view.left, view.width];
        }"""
    )
    assert left >= 0
    assert right <= end


def test_the_back_button_restores_filters_and_links_stay(page, explorer):
    page.goto(place(explorer, "/entities"))
    page.locator("main select[name=type]").select_option("req")
    page.get_by_label("Tag", exact=True).fill("money")
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("link", name="REQ-9").click()
    page.wait_for_url("**/entity/REQ-9")
    page.go_back()
    assert page.get_by_label("Tag", exact=True).input_value() == "money"
    address = page.url
    page.goto(place(explorer, "/"))
    page.goto(address)
    assert page.locator("tbody th").all_inner_texts() == ["REQ-9"]


def test_the_time_slider_is_kept_by_every_link(page, explorer):
    page.goto(place(explorer, "/entities?tag=money"))
    page.locator(".time summary").click()
    page.locator(".time input[type=range]").fill("1")
    assert page.locator(".time output").inner_text() == "1"
    page.get_by_role("button", name="Show this record").click()
    page.get_by_text("as of seq 1").wait_for()
    assert page.url.endswith("?tag=money&at=1")
    assert page.locator("tbody th").count() == 0
    page.get_by_role("link", name="Overview").click()
    page.wait_for_url("**/?at=1")
    page.get_by_role("link", name="Show the present").click()
    page.wait_for_url(f"**{explorer.base}/")


def test_the_preview_of_a_revert_is_a_difference(page, explorer):
    page.goto(place(explorer, "/record/4"))
    page.get_by_role("link", name="What its revert would change").click()
    assert page.locator("del").all_inner_texts() == ["Pay at once"]
    assert page.locator("ins").all_inner_texts() == ["Pay"]


def test_a_picture_can_be_made_larger(page, explorer):
    page.goto(place(explorer, "/entity/REQ-1"))
    width = page.locator(".picture svg").get_attribute("width")
    page.get_by_role("button", name="Larger").click()
    assert float(page.locator(".picture svg").get_attribute("width")) > float(width)


def test_all_pages_work_without_javascript_and_at_320_px(browser, opened, explorer):
    state = opened.storage_state()
    context = browser.new_context(
        java_script_enabled=False, storage_state=state, viewport={"width": 320, "height": 640}
    )
    page = context.new_page()
    for path in PAGES:
        page.goto(place(explorer, path))
        assert page.locator("h1").is_visible()
        assert page.locator("body").bounding_box()["width"] <= 320, path
    page.goto(place(explorer, "/"))
    page.locator("input[type=search]").fill("pay")
    page.locator("input[type=search]").press("Enter")
    assert "REQ-9" in page.locator("tbody").inner_text()
    context.close()


def test_a_page_that_was_read_again_keeps_what_is_opened_and_its_slider_works(page, explorer, root):
    page.goto(place(explorer, "/entities"))
    page.locator(".time summary").click()
    page.get_by_text("More filters").click()
    page.evaluate("document.activeElement.blur()")
    apply(root, {"id": "REQ-60", "type": "req", "title": "News", "status": "draft"})
    page.get_by_role("link", name="REQ-60").wait_for()

    assert page.get_by_label("Path", exact=True).is_visible()
    page.locator(".time input[type=range]").fill("2")
    assert page.locator(".time output").inner_text() == "2"


def test_a_page_is_up_to_date_within_a_second_of_kb_apply(page, explorer, root):
    page.goto(place(explorer, "/entities?type=req&status=draft"))
    page.wait_for_timeout(500)
    taken_s = []
    for number in range(5):  # the quickest counts: another program may have had the machine
        apply(root, {"id": f"REQ-7{number}", "type": "req", "title": "Told", "status": "draft"})
        applied_s = time.monotonic()
        page.get_by_role("link", name=f"REQ-7{number}").wait_for()
        taken_s.append(time.monotonic() - applied_s)
        if min(taken_s) < 1:
            break

    assert min(taken_s) < 1
    assert "has changed" in page.locator("#news").inner_text()
    page.get_by_label("Tag", exact=True).focus()
    apply(root, {"id": "REQ-78", "type": "req", "title": "Later", "status": "draft"})
    page.get_by_text("Reload the page").wait_for()
    assert page.get_by_role("link", name="REQ-78").count() == 0


def test_forms_write_what_is_right_and_name_what_is_wrong(browser, models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open"})
    with Explorer(made, "--write", opens=False) as writing:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(SOON_MS)
        page.goto(writing.url)
        page.wait_for_url(f"{writing.origin}{writing.base}/")
        page.goto(place(writing, "/entity/REQ-9"))
        page.get_by_label("Field").fill("title")
        page.get_by_label("Value").fill("Pay 😀 <b>")
        page.get_by_role("button", name="Set").click()
        page.get_by_text("Pay 😀 <b>").first.wait_for()
        page.get_by_label("Edge").fill("depends_on")
        page.get_by_label("To", exact=True).fill("REQ-99")
        page.get_by_role("button", name="State the edge").click()
        page.get_by_text("REQ-99").first.wait_for()
        assert "Nothing was written" in page.locator("main").inner_text() or page.locator("code").count()
        page.goto(place(writing, "/record/3/revert"))
        page.get_by_role("button", name="Revert record 3").click()
        page.get_by_role("heading", name="Record 4").wait_for()
        context.close()


def test_a_page_of_another_port_reads_nothing(browser, opened, explorer, tmp_path):
    import http.server
    import threading

    (tmp_path / "index.html").write_text("<p>other</p>")
    served = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *given: http.server.SimpleHTTPRequestHandler(*given, directory=str(tmp_path))
    )
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        page = opened.new_page()
        seen = []
        page.on("request", lambda one: seen.append(one.all_headers()))
        page.goto(f"http://127.0.0.1:{served.server_port}/")
        assert not any("cookie" in one for one in seen)
        got = page.evaluate(
            "(place) => fetch(place, {credentials: 'include'}).then((one) => one.text()).catch(() => 'refused')",
            place(explorer, "/entities"),
        )
        assert got == "refused"
        page.evaluate(
            "(place) => { const one = document.createElement('iframe'); one.src = place; document.body.append(one); }",
            place(explorer, "/entities"),
        )
        page.wait_for_timeout(300)
        assert all("REQ-1" not in frame.content() for frame in page.frames)
        page.close()
    finally:
        served.shutdown()
        served.server_close()


def test_a_report_opens_from_the_disk_without_a_network_and_filters_and_prints(browser, root, tmp_path):
    report = tmp_path / "report.html"
    words = ["report", "--out", str(report), "--matrix", "req verified_by"]
    assert run_kb(root, *words).status == 0
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    asked, faults = [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
    page.goto(report.as_uri())
    page.fill("input[type=search]", "req-9")
    page.click("#found a")
    assert page.locator("section:visible").evaluate_all("all => all.map((one) => one.id)") == ["e/REQ-9"]
    page.emulate_media(media="print")
    assert page.locator("section:visible").evaluate_all("all => all.map((one) => one.id)") == ["e/REQ-9"]
    page.emulate_media(media="screen")
    for name in ("requirements", "matrices"):
        page.click(f"nav a[href='#{name}']")
        page.check(f"#{name} .holes")
        assert page.locator(f"#{name} tbody tr:visible").count() == page.locator(f"#{name} tr:has(.hole)").count() > 0
    assert page.locator("#matrices tbody tr:not(:visible)").count() == 1
    page.emulate_media(media="print")
    assert page.locator("section:visible").evaluate_all("all => all.map((one) => one.id)")[0] == "overview"
    context.close()
    assert {urlsplit(one).scheme for one in asked} == {"file"}
    assert faults == []
