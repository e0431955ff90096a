"""More than 200 texts that would act, in every field, on every page of `kb ui` and of a report: nothing acts."""

from __future__ import annotations

import shutil
from urllib.parse import quote, urlsplit

import pytest

from kbweb.rendering import shown
from tests.cli.ui.test_pages import PAGES, kb
from tests.support.browser.chromium import chromium
from tests.support.browser.hostile import texts
from tests.support.browser.hostile_repository import ALL, IDS, MATRIX, TEXTS, make
from tests.support.effort.scale import spread
from tests.support.processes.explorer import Explorer

LISTENING = """
document.addEventListener('securitypolicyviolation', (one) => console.error('policy: ' + one.violatedDirective));
window.kbRan = (number) => console.error('ran: ' + number);
"""
ACTING = """(base) => {
  const found = [];
  const expected = new Set((
    'html head meta title link script style body a header nav form label input button div section p b i h1 h2 span ' +
    'details summary output main footer table thead tbody tr th td dl dt dd ul ol li bdi code br select option ' +
    'datalist progress ins del svg defs marker path g text rect').split(' '));
  const acts = /^on|^(style|srcdoc|formaction|srcset|ping|data|background|poster)$/;
  for (const one of document.querySelectorAll('*')) {
    const name = one.localName;
    if (!expected.has(name)) found.push(name);
    for (const { name: attribute, value } of one.attributes) {
      if (acts.test(attribute)) found.push(`${name} ${attribute}`);
      const is_own = value.startsWith(base) || value.startsWith('#');
      if (/^(href|src|action|xlink:href)$/.test(attribute) && !is_own) found.push(`${attribute}=${value}`);
    }
  }
  return found;
}"""
"""Returns the elements and attributes of a document that KB never makes, and links that lead out of ``base``."""
ADDRESSES = [
    "/entities?text={0}&status={0}&tag={0}&type={0}&where={0}&path={0}",
    "/records?actor={0}&session={0}&source={0}&id={0}",
    "/review?actor={0}&session={0}&type={0}&id={0}",
    "/matrix?type={0}&edges={0}&to={0}&tag={0}",
    "/nothing/{0}?at={0}",
    "/entity/{0}",
]
LISTS = [
    "/entities?type=odd",
    "/entities?text=kbRan",
    "/entities?at=2",
    f"{MATRIX}",
    f"/entity/{ALL}?depth=2",
    "/review",
]


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    made = shutil.copytree(models / "synced", tmp_path_factory.mktemp("hostile") / "repo", symlinks=True)
    make(made)
    return made


@pytest.fixture
def page():
    """A page that notes what runs, is asked for beyond its own address, or breaks the policy."""
    with chromium() as browser:
        made = browser.new_page()
        made.asked, made.faults = [], []
        made.add_init_script(LISTENING)
        made.on("request", lambda one: made.asked.append(one.url))
        made.on("console", lambda one: made.faults.append(one.text) if one.type == "error" else None)
        made.on("pageerror", lambda one: made.faults.append(str(one)))
        made.on("dialog", lambda one: (made.faults.append("dialog"), one.dismiss()))
        yield made


def faults_of(page):
    """Return what a page did; that an error has a status of its own is none."""
    return [one for one in page.faults if not one.startswith("Failed to load resource: the server responded")]


def test_there_are_so_many_texts():
    assert len({*texts()}) == len(texts()) >= 200


def test_no_text_acts_on_any_page_of_the_explorer(page, root):
    with Explorer(root, "--write", opens=False) as explorer:
        page.goto(explorer.url)
        page.wait_for_url(f"{explorer.origin}{explorer.base}/")
        last = int(page.locator(".state").inner_text().split("at seq ")[1].split(",")[0].split()[0])
        records = [f"/record/{seq}{end}" for seq in spread(range(1, last + 1), 4) for end in ("", "/revert")]
        waiting = [
            *PAGES,
            *LISTS,
            *records,
            *(f"/entity/{quote(one, safe='')}" for one in spread(IDS, 6)),
        ]
        seen = set()
        while waiting:
            path = waiting.pop()
            seen.add(path)
            page.goto(f"{explorer.origin}{explorer.base}{path}")
            assert page.evaluate(ACTING, explorer.base) == [], path
            assert faults_of(page) == [], path
            further = [one.get_attribute("href") for one in page.locator("main a[rel=next]").all()]
            others = {one.removeprefix(explorer.base) for one in further if "/record/" not in one}
            waiting += others - seen - {*waiting}
        page.locator("input[type=search]").press_sequentially("kbRan")
        page.locator("#suggested li").first.wait_for()
        assert page.evaluate(ACTING, explorer.base) == []
        page.goto(f"{explorer.origin}{explorer.base}/entity/{ALL}")
        assert page.locator(".title").inner_text() == shown(" ".join(TEXTS))
        assert faults_of(page) == []
        assert {urlsplit(one).netloc for one in page.asked} == {f"127.0.0.1:{explorer.port}"}
        assert len(seen) > len(PAGES) + len(LISTS)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_text_of_an_address_acts(page, models, tmp_path, address):
    plain = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    with Explorer(plain, "--write", opens=False) as explorer:
        page.goto(explorer.url)
        page.wait_for_url(f"{explorer.origin}{explorer.base}/")
        for text in spread(TEXTS, 20):
            page.goto(f"{explorer.origin}{explorer.base}{address.format(quote(text[:400], safe=''))}")
            assert page.evaluate(ACTING, explorer.base) == [], text
            assert faults_of(page) == [], text
        assert {urlsplit(one).netloc for one in page.asked} == {f"127.0.0.1:{explorer.port}"}


def test_no_text_acts_in_a_report_or_a_picture(page, root):
    kb(root, "report", "--out", "report.html", "--since", "1")
    (root / "picture.svg").write_text(kb(root, "graph", ALL, "--format", "svg"))
    page.goto((root / "report.html").as_uri())
    fragments = page.evaluate("[...document.querySelectorAll('section[id]')].map((one) => one.id)")
    assert len(fragments) > len(TEXTS)
    assert page.evaluate(ACTING, "#") == []
    for fragment in spread(fragments, 20):
        page.evaluate("(one) => { location.hash = one; }", fragment)
        assert page.locator("main h1:visible").count() == 1, fragment
    page.locator("input[type=search]").press_sequentially("kbRan")
    page.locator("#found li").first.wait_for()
    assert page.evaluate(ACTING, "#") == []
    page.goto((root / "picture.svg").as_uri())
    assert page.evaluate("document.querySelectorAll('script, a, image, foreignObject').length") == 0

    assert faults_of(page) == []
    assert {urlsplit(one).scheme for one in page.asked} == {"file"}
