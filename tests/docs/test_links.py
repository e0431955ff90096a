"""Relative links in the README and in docs/ lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs.console import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def links(text: str) -> list[str]:
    """Return the targets of links to other places of this repository."""
    found = _LINK.findall(re.sub(r"`[^`\n]*`", "", _FENCED.sub("", text)))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (numbered := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(numbered)
    return found


def fault(page: Path, target: str) -> str:
    """Return why a link leads nowhere, or the empty text."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"{target}: no such file"
    if not file.is_relative_to(ROOT):
        return f"{target}: outside of the repository"
    if anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
        return f"{target}: no such heading"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(page):
    assert [found for target in links(page.read_text(encoding="utf-8")) if (found := fault(page, target))] == []


def test_every_page_can_be_reached_from_the_readme():
    reached = {ROOT / "README.md"}
    frontier = list(reached)
    while frontier:
        page = frontier.pop()
        for target in links(page.read_text(encoding="utf-8")):
            file = (page.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file.is_file() and file not in reached:
                reached.add(file)
                frontier.append(file)
    assert set(PAGES) - reached == set()


def test_the_readme_lists_every_page_of_docs():
    listed = {(ROOT / target.partition("#")[0]).resolve() for target in links((ROOT / "README.md").read_text())}
    assert set((ROOT / "docs").glob("*.md")) - listed == set()


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    page = ROOT / "README.md"
    assert fault(page, "docs/nowhere.md")
    assert fault(page, "docs/errors.md#no-such-heading")
    assert not fault(page, "docs/errors.md#errors-and-exit-statuses")


def test_links_in_code_are_no_links():
    assert links("`[a](b.md)`\n```text\n[c](d.md)\n```\n[e](f.md#g) [h](https://example.org)") == ["f.md#g"]
