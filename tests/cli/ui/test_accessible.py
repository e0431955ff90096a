"""Every page of `kb ui` and of a report in axe-core: names, roles, contrast, light and dark, two widths; Tab order."""

from __future__ import annotations

import json
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.cli.ui.test_pages import PAGES, apply, kb
from tests.support.browser.chromium import chromium
from tests.support.processes.cli import write
from tests.support.processes.explorer import Explorer
from tests.support.repository.repos import git

SHAPES = [(width, scheme) for width in (1280, 360) for scheme in ("light", "dark")]
OTHERS = [
    "/entity/REQ-9",
    "/entity/REQ-1?depth=3",
    "/entities?where=nonsense",
    "/entities?text=none+of+it",
    "/entities?at=2",
    "/violations?severity=warning",
    "/nothing",
]
SECTIONS = ["overview", "coverage", "requirements", "violations", "conflicts", "changes", "entities", "e/REQ-1"]
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
FOCUSABLE = (
    "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]"
    ".filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)"
)


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    made = shutil.copytree(models / "synced", tmp_path_factory.mktemp("accessible") / "repo", symlinks=True)
    settings = json.loads((made / ".kb/config.json").read_text())
    write(made, {".kb/config.json": json.dumps(settings | {"review": {"actors": "agent*"}})})
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open", "tags": ["money"], "priority": "must"})
    apply(made, {"id": "REQ-9", "title": "Pay at once", "owner": "ann"}, actor="ben")
    edge = {"type": "verified_by", "from": "REQ-2", "to": "T-9"}
    apply(made, {"id": "T-9", "type": "test", "title": "Paid", "status": "open"}, edges=[edge], actor="agent")
    apply(made, {"id": "REQ-9", "owner": "eve"}, actor="agent")
    _contest(made)
    kb(made, "report", "--out", "report.html", "--since", "1")
    return made


def _contest(root):
    """Have two branches state other values of one field, and merge them."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "documents")
    git(root, "switch", "-q", "-c", "topic")
    kb(root, "branch", "ensure")
    apply(root, {"id": "REQ-9", "severity": "high"})
    git(root, "switch", "-q", "main")
    apply(root, {"id": "REQ-9", "severity": "low"})
    assert "contested" in kb(root, "merge", "topic")


@pytest.fixture(scope="module")
def explorer(root):
    with Explorer(root, "--write", opens=False) as running:
        yield running


@pytest.fixture(scope="module")
def page(explorer):
    with chromium() as browser:
        made = browser.new_page()
        made.goto(explorer.url)
        made.wait_for_url(f"{explorer.origin}{explorer.base}/")
        yield made


def violations(page):
    """Return what axe-core finds in a page in each width and scheme of colours."""
    found = []
    for width, scheme in SHAPES:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        answer = Axe().run(page, options=RULES).response
        assert answer["testEngine"]["name"] == "axe-core"
        found += [
            (one["id"], node["html"][:200], node["failureSummary"], width, scheme)
            for one in answer["violations"]
            for node in one["nodes"]
        ]
    return found


@pytest.mark.parametrize("path", [*PAGES, *OTHERS])
def test_axe_finds_nothing_in_a_page(page, explorer, path):
    page.goto(f"{explorer.origin}{explorer.base}{path}")

    assert violations(page) == []


def test_axe_finds_nothing_in_what_is_found_while_one_types(page, explorer):
    page.goto(f"{explorer.origin}{explorer.base}/")
    page.locator("input[type=search]").press_sequentially("pay")
    page.locator("#suggested a").first.wait_for()

    assert violations(page) == []


def test_axe_finds_nothing_in_a_page_that_has_changed_meanwhile(page, explorer, root):
    page.goto(f"{explorer.origin}{explorer.base}/entities")
    page.wait_for_timeout(500)
    apply(root, {"id": "REQ-10", "type": "req", "title": "Later", "status": "open"})
    page.get_by_role("link", name="REQ-10").wait_for()
    page.locator(".time summary").click()

    assert violations(page) == []


@pytest.mark.parametrize("section", SECTIONS)
def test_axe_finds_nothing_in_a_report(page, root, section):
    page.goto("about:blank")
    page.goto(f"{(root / 'report.html').as_uri()}#{section}")

    assert page.locator("h1:visible").count() == 1
    assert violations(page) == []


def test_axe_finds_what_is_wrong(page):
    page.goto("about:blank")
    page.set_content(
        "<title>x</title><main><h1>x</h1><button></button><p style='color:#bbb;background:#fff'>pale</p></main>"
    )

    assert {"button-name", "color-contrast", "html-has-lang"} <= {one[0] for one in violations(page)}


@pytest.mark.parametrize(
    "path", ["/", "/entities", "/matrix", "/review", "/records", "/entity/REQ-9", "/record/3/revert"]
)
def test_tab_goes_through_all_controls_in_their_order(page, explorer, path):
    page.goto(f"{explorer.origin}{explorer.base}{path}")
    page.evaluate(f"{FOCUSABLE}.forEach((one, number) => {{ one.dataset.place = number; }})")
    count = page.evaluate(f"{FOCUSABLE}.length")
    seen = []
    for _ in range(count):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("Number(document.activeElement.dataset.place)"))
        shown = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert shown != "none"

    assert seen == list(range(count))
