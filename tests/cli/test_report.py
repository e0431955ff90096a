"""``kb report``: one file with everything, whose stored texts are only text, and which replaces nothing foreign."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from kbweb import report as web_report
from tests.support.processes.cli import write
from tests.support.repository.repos import git

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</title></section></main><h1>x",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &#60;i&#62;",
    "<!-- --!> ]]> <![CDATA[",
    "שלום עולם",
    "\u202eevil",
    "😀👩‍👩‍👧‍👧",
    "x" * 5000,
]
VOID = {"meta", "link", "input", "br"}
FORBIDDEN = {"iframe", "object", "embed", "base", "img", "link"}


class Page(HTMLParser):
    """Reads a report: the elements, their ids, the targets of links and the texts of each section."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.handlers: list[str] = []
        self.texts: dict[str, str] = {}
        self._section = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.targets += [found[name] for name in ("href", "src", "action") if name in found]
        self.handlers += [name for name in found if name.startswith("on") or name == "style"]
        if tag == "section":
            self._section = found["id"]

    def handle_data(self, data):
        self.texts[self._section] = self.texts.get(self._section, "") + data


def report_of(kb, root, *words):
    assert kb("report", "--out", "r.html", *words).status == 0
    return (root / "r.html").read_text("utf-8")


def test_a_report_has_a_page_of_each_entity_and_every_link_leads_to_one(kb, synced):
    text = report_of(kb, synced)
    page = Page(text)
    assert {"overview", "coverage", "requirements", "violations", "conflicts", "entities"} <= {*page.ids}
    assert {f"e/{one['id']}" for one in kb("query", "--json").json["entities"]} <= {*page.ids}
    assert len(page.ids) == len({*page.ids})
    assert {target.removeprefix("#") for target in page.targets} <= {*page.ids}
    assert "TEST-1" in page.texts["e/REQ-1"]
    assert "changes" not in page.ids


def test_nothing_of_a_report_comes_from_elsewhere_and_its_policy_allows_its_own_script_and_style_only(kb, synced):
    page = Page(text := report_of(kb, synced))
    assert not FORBIDDEN & {*page.tags}
    assert page.handlers == []
    assert page.tags.count("script") == page.tags.count("style") == 1
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")


def test_stored_text_of_every_kind_is_only_text(kb, synced):
    entities = [
        {"id": f"N-{at}", "type": "req", "title": one, "status": one[:60], "owner": one, "tags": [one[:200]],
         "attributes": {"note": one, "not_applicable": {"verified": one}}}
        for at, one in enumerate(HOSTILE)
    ]  # fmt: skip
    edges = [{"type": "relates_to", "kind": one[:80], "from": "N-0", "to": "N-1"} for one in HOSTILE]
    write(synced, {"c.json": json.dumps({"message": HOSTILE[0], "entities": entities, "edges": edges})})
    plain = Page(report_of(kb, synced))
    assert kb("apply", "c.json").status == 0
    page = Page(report_of(kb, synced))
    assert page.handlers == []
    assert {*page.tags} - {*plain.tags} <= {"br"}
    assert page.tags.count("script") == page.tags.count("style") == 1
    for at, one in enumerate(HOSTILE):
        shown = one.replace("\u202e", "\\u202e")
        assert shown in page.texts[f"e/N-{at}"]
        assert shown in page.texts["requirements"]


def test_an_empty_place_is_refused_with_a_hint_that_fits_it(kb, synced):
    ran = kb("report", "--out", "")
    assert (ran.status, ran.err) == (2, "error: --out is empty.\nhint: Leave it out, or give it a value.\n")


def test_the_ending_of_a_file_decides_the_format_where_none_is_named(kb, synced):
    for name in ("r.md", "r.json", "r.html", "named.md"):
        assert kb("report", "--out", name, *(("--format", "html") if name == "named.md" else ())).status == 0

    assert (synced / "r.md").read_text("utf-8").startswith("# ")
    assert json.loads((synced / "r.json").read_text("utf-8"))["branch"] == "main"
    for name in ("r.html", "named.md"):
        assert (synced / name).read_text("utf-8").startswith("<!doctype html>")


def test_the_report_of_a_branch_that_is_not_checked_out_is_of_its_records_and_says_so(kb, synced):
    git(synced, "checkout", "-qb", "other")
    write(synced, {"docs/requirements/new.md": "---\nid: REQ-7\ntitle: Of the other branch\n---\n"})
    said = "only of the records of main, not of the files. other is checked out: its files do not belong to main."
    for name in ("r.html", "r.md", "r.json"):
        ran = kb("--branch", "main", "report", "--out", name)
        assert ran.status == 0
        assert f"note: The answer is {said}" in ran.err
        text = (synced / name).read_text("utf-8")
        assert text.count(f"The report is {said}") == 1
        assert "REQ-1" in text
        assert "REQ-7" not in text
    answer = kb("--branch", "main", "report", "--json").json
    assert (answer["branch"], answer["freshness"]) == ("main", "unknown")
    assert "only of the records" not in report_of(kb, synced)


def test_no_report_is_written_while_git_has_not_finished_a_merge(kb, synced):
    (synced / ".git/MERGE_HEAD").write_text(git(synced, "rev-parse", "HEAD") + "\n")
    ran = kb("report")
    assert ran.status == 29
    assert "hint: Run it again when that is over." in ran.err
    assert not (synced / "kb-report").exists()


def test_a_folder_gets_the_report_and_a_badge_and_both_are_replaced_by_the_next_ones(kb, synced):
    for _ in range(2):
        ran = kb("report")
        assert (ran.status, ran.out) == (0, "Written: kb-report/index.html\n")
    assert {one.name for one in (synced / "kb-report").iterdir()} == {"index.html", "badge.svg"}
    assert "verified: 50 %" in (synced / "kb-report/badge.svg").read_text()


def test_a_file_that_is_no_report_is_replaced_only_when_told(kb, synced):
    write(synced, {"mine.html": "mine"})
    ran = kb("report", "--out", "mine.html")
    assert (ran.status, (synced / "mine.html").read_text()) == (2, "mine")
    assert "--force" in ran.err
    assert kb("report", "--out", "mine.html", "--force").status == 0
    assert kb("report", "--out", "mine.html").status == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.json", '{"branch": "main", "overview": 1}'),
        ("of-kb.json", '{"branch":"main","seq":1,"entities":[]}'),
        ("mine.md", "About KB\n# main at seq 1\n"),
        ("mine.html", '<p>I quote <meta name="generator" content="kb 0.1.0">'),
    ],
)
def test_a_file_that_only_quotes_a_report_stays_as_it_is(kb, synced, name, text):
    write(synced, {name: text})
    assert kb("report", "--format", name.rpartition(".")[2], "--out", name).status == 2
    assert (synced / name).read_text() == text


def test_every_format_has_the_numbers_of_coverage_and_check(kb, synced):
    found, covered = kb("report", "--json").json, kb("coverage", "--json").json
    assert found["overview"]["requirements"]["verified"] == covered["total"]["verified"]
    assert found["requirements"] == covered["requirements"]
    assert found["check"]["violations"] == kb("check", "--json").json["violations"]
    markdown = kb("report", "--format", "md", "--out", "-").out
    assert "| all | 2 | 0/2 0 % | 1/2 50 % | 0/2 0 % |" in markdown
    assert json.loads(kb("report", "--format", "json", "--out", "-").out)["requirements"] == found["requirements"]


def test_sentences_on_coverage_have_a_space_between_them(kb, synced):
    assert kb("set", "REQ-2", "status=retired").status == 0
    text = Page(report_of(kb, synced)).texts["coverage"]
    assert "1 requirement; percentages are of those to which an aspect applies. 1 retired is left out." in text


def test_changes_since_a_point_are_a_page_of_their_own(kb, synced):
    assert kb("set", "TEST-1", "status=retired").status == 0
    page = Page(report_of(kb, synced, "--since", "1"))
    assert "retired" in page.texts["changes"]
    assert kb("report", "--json", "--since", "1").json["changes"]["entities"][0]["id"] == "TEST-1"
    ran = kb("report", "--since", "nothing")
    assert (ran.status, (synced / "kb-report").exists()) == (2, False)


def test_a_matrix_of_any_path_is_a_page_with_the_rows_of_kb_matrix(kb, synced):
    text = report_of(kb, synced, "--matrix", "req verified_by", "--matrix", "req ^implements symbol")
    page = Page(text)
    assert "req → verified_by" in page.texts["matrices"]
    assert "req → ^implements → symbol" in page.texts["matrices"]
    assert {target.removeprefix("#") for target in page.targets} <= {*page.ids}
    [found, _] = kb("report", "--json", "--matrix", "req verified_by", "--matrix", "req ^implements").json["matrices"]
    alone = kb("matrix", "req", "verified_by", "--json").json
    assert {name: found[name] for name in ("yes", "no", "rows")} == {
        name: alone[name] for name in ("yes", "no", "rows")
    }
    assert (found["type"], found["path"]) == ("req", ["verified_by"])
    markdown = kb("report", "--format", "md", "--matrix", "req verified_by", "--out", "-").out
    assert "## req → verified\\_by" in markdown
    assert "| REQ-1 | TEST-1 |" in markdown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("req verifed_by", "Did you mean 'verified_by'?"),
        ("reqs verified_by", "There is no entity type 'reqs'."),
        ("req", "A matrix takes 1 to 6 steps, not 0."),
        ("", "There is no entity type ''."),
        ("req verified_by nothing", "There is no edge type 'nothing'."),
    ],
)
def test_a_matrix_that_cannot_be_meant_is_refused(kb, synced, words, said):
    ran = kb("report", "--matrix", words)
    assert (ran.status, (synced / "kb-report").exists()) == (2, False)
    assert said in ran.err
    assert "--matrix" in ran.err


def test_lists_that_do_not_fit_begin_with_holes_and_say_how_many_are_missing(kb, synced, monkeypatch):
    full = {"not_applicable": dict.fromkeys(("specified", "verified", "implemented"), "it is only an example")}
    reqs = [
        {"id": f"A-{at:03d}", "type": "req", "title": "x" * 200, "status": "open", "attributes": full}
        for at in range(200)
    ]
    write(synced, {"c.json": json.dumps({"entities": reqs})})
    assert kb("apply", "c.json").status == 0
    monkeypatch.setattr(web_report.html_report, "__defaults__", (140_000,))
    text = report_of(kb, synced, "--matrix", "req verified_by")
    page = Page(text)
    assert len(text.encode()) <= 140_000
    assert "at most 100 rows of a list" in text.split("<main>")[1]
    assert "And 102 more: kb coverage --by requirement lists all." in page.texts["requirements"]
    assert "And 102 more: kb query req lists them." in page.texts["entities"]
    assert "And 102 more: kb matrix lists all." in page.texts["matrices"]
    assert page.texts["requirements"].index("REQ-1") < page.texts["requirements"].index("A-000")


def test_commands_in_sentences_are_code(kb, synced):
    write(
        synced,
        {
            "c.json": json.dumps(
                {"entities": [{"id": "M-1", "type": "req", "title": "`", "status": "open", "priority": "must"}]}
            )
        },
    )
    assert kb("apply", "c.json").status == 0
    assert "<code>kb link M-1 verified_by ID</code>" in report_of(kb, synced)


def test_what_does_not_fit_is_left_out_in_steps_and_the_report_says_so(kb, synced, monkeypatch):
    whole = len(report_of(kb, synced).encode())
    sizes = set()
    for limit in (whole, whole - 1, 17_000):
        monkeypatch.setattr(web_report.html_report, "__defaults__", (limit,))
        text = report_of(kb, synced)
        assert len(text.encode()) <= limit
        assert ("because of its size" in text.split("<main>")[1]) == (limit < whole)
        assert {target.removeprefix("#") for target in Page(text).targets} <= {*Page(text).ids}
        sizes.add(len(text))
    assert len(sizes) == 3
    monkeypatch.setattr(web_report.html_report, "__defaults__", (1000,))
    ran = kb("report", "--out", "r.html")
    assert ran.status == 2
    assert "bytes" in ran.err


@pytest.mark.parametrize("words", [("--since", ""), ("--format", "pdf"), ("--json", "--format", "md")])
def test_options_that_cannot_be_meant_are_refused(kb, synced, words):
    assert kb("report", *words).status == 2
    assert not (synced / "kb-report").exists()


@pytest.mark.slow
def test_5000_entities_with_edges_have_a_report_of_at_most_5_mb_with_a_page_of_each(kb, synced):
    entities = [
        {"id": f"R-{at:04d}", "type": "req", "title": f"Requirement {at} of the shop and its parts", "status": "open",
         "owner": "ana", "tags": ["shop"], "priority": "should"}
        for at in range(4_990)
    ]  # fmt: skip
    edges = [{"type": "depends_on", "from": f"R-{at:04d}", "to": f"R-{at // 3:04d}"} for at in range(1, 4_990)]
    write(synced, {"c.json": json.dumps({"entities": entities, "edges": edges})})
    assert kb("apply", "c.json").status == 0
    text = report_of(kb, synced)
    assert len(text.encode()) <= web_report.MAX_BYTES
    assert {f"e/{one['id']}" for one in entities} <= {*Page(text).ids}
