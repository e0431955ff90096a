"""Detection finds sets of documents by profiles, keys, names and folders, and tries the settings that it proposes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbcore.config.settings import parse_config
from kbcore.extract import gherkin, manifest, markdown
from kbcore.extract.sources import extractor as sources
from kbcore.extract.sources.detection import Configured, Detection, detect, possible_in
from kbcore.text.globs import glob_fault
from tests.support.sources import scip_indexes

BUILT_IN = (markdown.EXTRACTOR, manifest.EXTRACTOR, gherkin.EXTRACTOR)


def found_in(files: dict[str, str], *entries: dict[str, Any]) -> Detection:
    """Return what is found in these files with KB's defaults and these entries of ``sources``."""
    listed = [(sources.EXTRACTOR, one) for one in parse_config(json.dumps({"sources": entries}), "c").sources]
    listed += [(one, {}) for one in BUILT_IN]
    configured = [
        Configured(one, settings, tuple((rule.glob, rule.type) for rule in one.path_rules(settings)))
        for one, settings in listed
    ]
    return detect(files, lambda path, most: files[path].encode()[:most], configured)


def values(found: Detection) -> list[Any]:
    return [one.value for one in found.proposals]


def front(**keys: object) -> str:
    lines = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in keys.items())
    return f"---\n{lines}---\n\nText of it.\n"


def adr(number: int) -> str:
    return f"# {number}. Use number {number}\n\n## Status\n\nAccepted\n\n## Context\n\nSome.\n"


def test_documents_that_the_defaults_read_are_not_proposed() -> None:
    files = {
        "docs/requirements/REQ-1.md": front(id="REQ-1", title="Log in"),
        "docs/requirements/sub/REQ-2.md": front(id="REQ-2", title="Log out"),
    }
    found = found_in(files)
    assert not found.proposals
    assert not found.possible
    assert found.covered == 2


FOLDERS = ["{{cookiecutter.slug}}", "a{b,c}", "{x", "pages[id]", "a*b", "!not", "back\\slash", "what?"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_with_signs_of_globs_in_its_name_is_proposed_by_a_glob_that_means_it(folder: str) -> None:
    shapes = {
        "adr/{0}-use-it.md": adr,
        "rfcs/{0}.md": lambda n: front(id=f"RFC-{n}", rfc=n, title=f"T {n}", status="open"),
        "{0}-list.csv": lambda n: f"id,title,status\nR-{n},T,open\nS-{n},U,open\n",
        "specification.md": lambda _: "# S\n\n## REQ-1: a\n\n## REQ-2: b\n",
    }
    for shape, text in shapes.items():
        files = {f"{folder}/{shape.format(n)}": text(n) for n in (1, 2, 3)}
        [proposal] = found_in(files).proposals
        assert (proposal.files, proposal.entities >= len(files)) == (len(files), True)
        globs = proposal.value["glob"] if isinstance(proposal.value, dict) else proposal.value
        assert not any(map(glob_fault, [globs] if isinstance(globs, str) else globs))


def test_a_profile_is_proposed_by_its_name_where_its_own_glob_means_the_files() -> None:
    files = {f"EIPS/eip-{n}.md": front(eip=n, title=f"T {n}", status="Final", requires=n - 1) for n in range(1, 4)}
    [proposal] = found_in(files | {"EIPS/README.md": "# All\n"}).proposals
    assert (proposal.setting, proposal.value) == ("sources", {"profile": "eip"})
    assert (proposal.files, proposal.entities, proposal.edges) == (3, 3, 3)
    assert proposal.samples[0].id == "EIP-1"
    assert proposal.samples[0].edges == ("relates_to EIP-0",)


def test_the_glob_of_a_profile_is_moved_to_where_the_files_are() -> None:
    files = {f".decisions/{n:04}-use-x.md": adr(n) for n in range(1, 4)}
    assert values(found_in(files)) == [{"profile": "adr-tools", "glob": ".decisions/{number:d}-{slug}.md"}]


def test_a_profile_of_files_in_folders_keeps_the_folders_that_name_their_ids() -> None:
    files = {f"enhancements/keps/sig-{n}/{n}-thing/kep.yaml": f"title: T {n}\nstatus: draft\n" for n in range(2)}
    [proposal] = found_in(files).proposals
    assert proposal.value == {"profile": "kep", "glob": "enhancements/keps/**/{number:d}-{slug}/kep.yaml"}
    assert proposal.entities == 2


def test_documents_that_state_their_ids_are_given_to_the_markdown_extractor() -> None:
    files = {f"spec/a{n % 3}/R-{n}.md": front(id=f"R-{n}", title="T", status="open") for n in range(9)}
    [proposal] = found_in(files).proposals
    assert (proposal.setting, proposal.value) == ("extractors.markdown.paths.req", ["spec/**/*.md"])
    assert proposal.entities == 9


def test_a_glob_spans_no_folder_that_has_other_documents() -> None:
    files = {
        f"spec/{folder}/R-{folder}{n}.md": front(id=f"R-{folder}{n}", status="open") for folder in "ab" for n in "12"
    }
    files |= {f"spec/c/page-{n}.md": "# A page\n" for n in "ab"}
    [proposal] = found_in(files).proposals
    assert proposal.value == ["spec/a/*.md", "spec/b/*.md"]


def test_a_number_in_a_key_becomes_an_id_and_numbers_of_others_become_edges() -> None:
    files = {
        f"rfcs/{name}.md": front(number=n, title=f"T {n}", state="open", requires=n - 1)
        for n, name in enumerate(("one", "two", "three"), 1)
    }
    [proposal] = found_in(files).proposals
    assert proposal.value == {
        "glob": "rfcs/*.md",
        "type": "adr",
        "id": "ADR-{number}",
        "links": {
            "requires": {"edge": "relates_to", "kind": "requires", "id": "ADR-{value}", "split": ","},
        },
    }
    assert (proposal.entities, proposal.edges) == (3, 3)


def test_the_number_in_file_names_becomes_the_id_where_no_key_is_one() -> None:
    files = {f"documentation/decisions/{n:04}-use-x.md": f"# Use {n}\n\nBecause.\n" for n in range(1, 4)}
    [proposal] = found_in(files).proposals
    assert proposal.value == {
        "glob": "documentation/decisions/{number:d}-{slug}.md",
        "type": "adr",
        "id": "ADR-{number}",
    }
    assert proposal.samples[0].id == "ADR-0001"


def test_headings_with_ids_are_entities_of_one_document() -> None:
    text = "# Requirements\n\n## REQ-1 Log in\n\nA.\n\n## REQ-2 Log out\n\nB.\n"
    [proposal] = found_in({"docs/srs.md": text, "docs/intro.md": "# Intro\n"}).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["glob"] == "docs/srs.md"
    assert (proposal.value["type"], proposal.value["id"]) == ("req", "REQ-{number}")
    assert (proposal.files, proposal.entities) == (1, 2)


PAGES = {f"docs/{name}.md": f"# {name}\n\nSee [a](guide/a.md).\n" for name in ("index", "start", "guide/a", "guide/b")}


def test_the_pages_of_a_site_leave_out_the_folders_that_other_settings_read() -> None:
    files = {"mkdocs.yml": "site_name: S\n", "docs/requirements/notes.md": "# Notes\n", **PAGES}
    [proposal] = found_in(files).proposals
    assert proposal.value == {"profile": "mkdocs", "glob": ["docs/*.md", "docs/guide/*.md"]}
    assert (proposal.files, proposal.entities) == (4, 4)


def test_the_pages_of_a_site_are_where_its_settings_say() -> None:
    files = {path.replace("docs/", "site/pages/"): text for path, text in PAGES.items()}
    [proposal] = found_in({"site/mkdocs.yml": "docs_dir: 'pages'\n", **files, "docs/other.md": "# Other\n"}).proposals
    assert proposal.value == {"profile": "mkdocs", "glob": "site/pages/**/*.md"}


def test_settings_of_a_site_without_pages_beside_them_propose_nothing() -> None:
    assert not found_in({"tools/conf.py": "x = 1\n", "tools/a/notes.rst": "Notes\n=====\n"}).proposals


def test_proposed_globs_mean_no_documents_that_other_settings_read() -> None:
    files = {f"docs/requirements/REQ-{n}.md": front(id=f"REQ-{n}", title="R", status="open") for n in (1, 2)}
    for team in ("alpha", "beta"):
        files |= {f"docs/{team}/decisions/use-{w}.md": front(title=f"Use {w}", status="open") for w in "xyz"}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["glob"] == ["docs/alpha/decisions/*.md", "docs/beta/decisions/*.md"]


def test_many_folders_beside_documents_that_other_settings_read_are_named_one_by_one() -> None:
    files = {"docs/requirements/REQ-1.md": front(id="REQ-1", title="R", status="open")}
    files |= {
        f"docs/t{n}/decisions/use-{w}.md": front(title=f"Use {w}", status="open") for w in "xyz" for n in range(30)
    }
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert len(proposal.value["glob"]) == 30


def test_a_title_is_no_id_although_each_has_a_number() -> None:
    [proposal] = found_in(
        {f"decisions/{w}.md": front(title=f"A{n}", status="open") for n, w in enumerate("xyz")}
    ).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["id"] == "{file.stem}"


def test_documents_with_ids_and_links_of_another_tool_are_proposed_with_their_edges() -> None:
    files = {
        "tracker/1.md": front(id="T-1", title="One", status="on", requires="T-2, T-3", validates="T-2"),
        "tracker/2.md": front(id="T-2", title="Two", status="on", constrains="[T-1]"),
        "tracker/3.md": front(id="T-3", title="Three", status="off"),
    }
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["links"] == {
        "requires": {"edge": "relates_to", "kind": "requires", "split": ","},
        "validates": {"edge": "relates_to", "kind": "validates", "split": ","},
        "constrains": {"edge": "relates_to", "kind": "constrains"},
    }
    assert (proposal.entities, proposal.edges) == (3, 4)


def test_a_key_for_what_a_test_verifies_is_the_edge_of_tests_in_a_folder_of_tests() -> None:
    files = {f"qa/tests/{n}.md": front(id=f"TC-{n}", title="T", status="on", validates="REQ-1") for n in (1, 2)}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["links"] == {"validates": {"edge": "^verified_by", "split": ","}}


def test_settings_of_tools_beside_a_list_of_issues_are_not_proposed() -> None:
    issue = {"number": 1, "title": "Crash", "state": "OPEN", "labels": []}
    old = {**issue, "number": 2}
    settings = {f"{name}.json": '{"name": "x"}' for name in ("package", "renovate", "tsconfig")}
    [proposal] = found_in({**settings, "issues.json": json.dumps([issue]), "old.json": json.dumps([old])}).proposals
    assert proposal.value == {"profile": "github-issues", "glob": ["issues.json", "issues/**/*.json", "old.json"]}
    assert not proposal.not_read


def test_pages_without_any_sign_are_counted_and_not_proposed() -> None:
    files = {f"website/docs/p{n}/page.md": front(title=f"T {n}", sidebar_position=n) for n in range(5)}
    found = found_in(files | {"README.md": "# Project\n"})
    assert not found.proposals
    assert [(one.folder, one.ending, one.count) for one in found.possible] == [("website/docs", ".md", 5)]


def test_the_type_comes_from_a_field_whose_values_are_names_of_types() -> None:
    kinds = ("Story", "Test case", "Story")
    rows = "".join(f"P-{n},Title {n},{kind},Open\n" for n, kind in enumerate(kinds, 1))
    [proposal] = found_in({"data/issues.csv": f"Key,Summary,Issue Type,Status\n{rows}"}).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["id"] == "{Key}"
    assert proposal.value["type"]["map"] == {"Story": "req", "Test case": "test"}
    assert proposal.entities == 3


def test_a_list_of_records_in_json_is_found_by_its_path() -> None:
    items = [{"uid": f"R{n}", "title": f"T {n}", "status": "open"} for n in range(3)]
    [proposal] = found_in({"export/reqs.json": json.dumps({"items": items})}).proposals
    assert isinstance(proposal.value, dict)
    assert (proposal.value["items"], proposal.value["id"]) == ("$.items[*]", "{uid}")


@pytest.mark.parametrize("folder", ["node_modules/x", "tests/fixtures", "a/vendor/b"])
def test_files_of_others_and_data_of_tests_are_no_documents(folder: str) -> None:
    files = {f"{folder}/decisions/{n:04}-x.md": "# T\n" for n in range(3)}
    assert found_in(files) == Detection((), (), 0)


def test_reasons_are_given_for_files_that_give_no_entity() -> None:
    files = {f"reqs/R{n}.md": front(id=f"R-{n}", title="T", status="open") for n in range(6)}
    files["reqs/R6.md"] = "# No front matter\n"
    files["reqs/R7.md"] = front(id="R-1", title="T", status="open")
    [proposal] = found_in(files).proposals
    assert {one.code: one.count for one in proposal.not_read} == {"missing_id": 1, "id_in_use": 1}
    assert proposal.entities == 6


def test_what_is_configured_is_not_proposed_again() -> None:
    files = {f".decisions/{n:04}-use-x.md": adr(n) for n in range(1, 4)}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert found_in(files, proposal.value) == Detection((), (), 3)


def test_few_files_of_each_folder_are_looked_at() -> None:
    files = {f"pages/{n}.md": "# A page\n" for n in "abcdefghijklmnopqrst"}
    looked: list[str] = []

    def read(path: str, most: int) -> bytes:
        looked.append(path)
        return files[path].encode()[:most]

    detect(files, read, ())
    assert len(looked) == len({*looked}) == 8


def test_decisions_with_a_section_of_their_status_are_read_as_decision_records() -> None:
    files = {f"choices/decisions/{name}.md": f"# {name}\n\n## Status\n\nAccepted\n" for name in ("apples", "pears")}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert (proposal.value["profile"], proposal.value["id"]) == ("adr-tools", "{file.stem}")
    assert [one.id for one in proposal.samples] == ["apples", "pears"]


def test_types_of_the_project_that_the_schema_lacks_are_mapped_where_they_are_known() -> None:
    kinds = ("Requirement", "Test", "Requirement", "Notion")
    files = {f"spec/R-{n}.md": front(id=f"R-{n}", type=kind, title="T") for n, kind in enumerate(kinds)}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["type"] == {"field": "type", "map": {"Requirement": "req", "Test": "test"}, "default": "req"}


def test_the_globs_of_a_profile_count_in_folders_where_its_signs_are_not() -> None:
    task = "---\nid: task-{n}\ntitle: T\nstatus: To Do\nassignee: []\ndependencies: []\n---\n"
    files = {f"backlog/tasks/task-{n} - T.md": task.replace("{n}", str(n)) for n in range(3)}
    files["backlog/decisions/decision-1 - D.md"] = front(
        id="decision-1", title="D", status="proposed", date="2024-01-01"
    )
    [proposal] = found_in(files).proposals
    assert (proposal.value, proposal.entities) == ({"profile": "backlog"}, 4)


def test_an_edge_that_both_ends_state_is_counted_once() -> None:
    files = {
        ".decisions/0001-use-x.md": "# 1. Use x\n\n## Status\n\nSuperseded by [2](0002-use-y.md)\n",
        ".decisions/0002-use-y.md": "# 2. Use y\n\n## Status\n\nAccepted\n\nSupersedes [1](0001-use-x.md)\n",
    }
    [proposal] = found_in(files).proposals
    assert (proposal.entities, proposal.edges) == (2, 1)


def test_tables_with_the_same_columns_are_one_proposal() -> None:
    files = {f"data/{name}.csv": f"Key,Summary,Status\n{name}-1,T,Open\n{name}-2,T,Open\n" for name in ("A", "B")}
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["glob"] == ["data/A.csv", "data/B.csv"]
    assert proposal.entities == 4


@pytest.mark.parametrize(
    ("statuses", "rule"),
    [
        (["Accepted", "accepted", "accepted", "Draft"], {"Draft": "Draft", "accepted": "accepted"}),
        (["Accepted", "accepted"], {"accepted": "accepted"}),
        (["Accepted", "Draft"], None),
    ],
)
def test_statuses_that_differ_in_capitals_alone_get_one_spelling(statuses, rule):
    files = {f"dec/{n}.md": f"---\nkey: D-{n}\ntitle: t\nstatus: {one}\n---\n" for n, one in enumerate(statuses)}
    [found] = detect(files.keys(), lambda path, _: files[path].encode(), []).proposals
    assert found.value.get("status") == (rule and {"field": "status", "map": rule})


def test_tables_and_lists_that_nothing_reads_are_counted_and_other_data_is_not():
    files = {
        **{
            f"data/{name}": text
            for name, text in (("a.tsv", "a\tb\n"), ("b.rst", "T\n=\n"), ("l.json", ' [ {"a": 1}]'))
        },
        "data/settings.json": '{"a": [{"b": 1}]}',
        "data/numbers.json": "[1, 2]",
    }
    found = possible_in(files, lambda path, most: files[path].encode()[:most])
    assert [(one.ending, one.count) for one in found] == [(".json", 1), (".rst", 1), (".tsv", 1)]
    assert detect(files.keys(), lambda path, _: files[path].encode(), []).possible == tuple(found)


def test_an_index_is_proposed_with_the_edges_between_symbols_of_the_code_that_is_proposed():
    code = {path: text.encode() for path, text in scip_indexes.sources("typescript") if path.endswith(".ts")}
    files = code | {"index.scip": scip_indexes.index_of("typescript")}
    of_code, of_index = detect(files, lambda path, most: files[path][:most], []).proposals
    assert (of_code.setting, of_code.entities) == ("extractors.code.paths", 9)
    assert (of_index.setting, of_index.value) == ("extractors.scip.paths", ["index.scip"])
    assert (of_index.entities, of_index.edges, of_index.not_read) == (0, 7, ())


def test_an_index_and_a_template_beside_documents_are_said_not_to_be_read():
    files = {f"docs/decisions/000{n}-use-x.md": f"# Use {n}\n\n## Context\n\n## Decision Outcome\n" for n in (1, 2)}
    files |= {"docs/decisions/adr-template.md": "# Title\n", "docs/decisions/README.md": "# All\n"}
    [found] = detect(files, lambda path, most: files[path].encode()[:most], []).proposals
    assert (found.files, found.entities) == (2, 2)
    assert [(one.code, one.path) for one in found.not_read] == [("passed_over", "docs/decisions/adr-template.md")]
