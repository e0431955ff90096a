"""``kb check``: what is shown of many violations, which ones, and those that a project accepts."""

from __future__ import annotations

import json

import pytest

from kbcore.limits import MAX_PROBLEMS
from tests.support.processes.cli import refresh_view, write
from tests.support.repository.repos import commit_files, git

COUNT = 12


def document(key: str, more: str = "") -> str:
    return f"---\nid: {key}\ntitle: Title of {key}\nstatus: open\n{more}---\n"


@pytest.fixture
def crowded(grown):
    """Twelve requirements linked to nothing, two links to what is not there, and a requirement without scenario."""
    return grown(sixteen_violations)


def sixteen_violations(root, kb):
    alone = {f"docs/requirements/m{at:02}.md": document(f"M-{at:02}") for at in range(COUNT)}
    broken = {f"docs/requirements/b{at}.md": document(f"B-{at}", f"links: [REQ-1, GONE-{at}]\n") for at in (1, 2)}
    write(root, alone | broken | {"docs/requirements/must.md": document("MUST", "priority: must\nlinks: [REQ-1]\n")})
    kb("sync")
    refresh_view(root, kb)


def test_rules_come_with_their_counts_errors_first_and_a_line_for_those_alike(kb, crowded):
    ran = kb("check")
    heads = [line for line in ran.out.splitlines() if not line.startswith("  ")]
    assert heads[:3] == ["error unresolved-reference: 2", "error must-coverage: 2", f"warning orphans: {COUNT}"]
    orphans = ran.out.splitlines()[ran.out.splitlines().index(heads[2]) + 1 :]
    assert orphans[0].startswith("  docs/requirements/m00.md:2: M-00 (req) is linked to nothing. (")
    assert orphans[0].endswith(f" {COUNT - 1} more of this kind: M-01, M-02, M-03, …")
    assert orphans[1] == f"  each one: kb check --rule orphans --limit {COUNT}"
    assert "  docs/requirements/b1.md:5: B-1 links to GONE-1, but" in ran.out


@pytest.mark.sliced
def test_a_limit_shows_each_and_says_how_many_are_left(kb, crowded):
    lines = kb("check", "--rule", "orphans", "--limit", str(COUNT)).out.splitlines()
    assert len([line for line in lines if line.startswith("  docs/")]) == COUNT
    lines = kb("check", "--rule", "orphans", "--limit", "3").out.splitlines()
    assert lines[4] == f"  {COUNT - 3} more; each one: kb check --rule orphans --limit {COUNT}"
    answer = kb("check", "--json", "--limit", "1").json
    assert [one["rule"] for one in answer["violations"]] == ["unresolved-reference", "must-coverage", "orphans"]
    assert answer["total"] == COUNT + 4
    assert kb("check", "--limit", "0").status == 2
    assert kb("check", "--limit", "1", "--format", "sarif").status == 2


@pytest.mark.sliced
def test_the_command_for_each_one_asks_as_it_was_asked(kb, crowded):
    kb("check", "--write-baseline")
    asked = ("--no-baseline", "--severity", "warning", "--recorded", "--branch", "main")
    said = kb("check", *asked).out.splitlines()[-2].strip()
    again = "--branch main --severity warning --recorded --no-baseline --rule orphans"
    assert said == f"each one: kb check {again} --limit {COUNT}"
    assert len(kb(*said.split()[3:]).out.splitlines()) == COUNT + 2


def test_a_short_report_is_a_line_for_each_with_file_and_line(kb, crowded):
    lines = kb("check", "--format", "short").out.splitlines()
    assert len(lines) == COUNT + 4
    assert lines[0].startswith("docs/requirements/b1.md:5: error: B-1 links to GONE-1")
    assert lines[-1] == "docs/requirements/m11.md:2: warning: M-11 (req) is linked to nothing. [orphans]"
    ran = kb("check", "--format", "short", "--limit", "1")
    rules = [line.rpartition("[")[2] for line in ran.out.splitlines()]
    assert rules == ["unresolved-reference]", "must-coverage]", "orphans]"]
    assert f"3 of {COUNT + 4} shown" in ran.err
    assert kb("check", "--statistics", "--limit", "1").status == 2


def test_no_line_says_an_id_twice(kb, crowded):
    for line in kb("check", "--format", "short").out.splitlines():
        said = line.split(": ", 2)[2]
        assert said.count(said.split(" ")[0]) == 1, line


def test_only_one_severity_counts_where_one_is_asked_for(kb, crowded):
    ran = kb("check", "--severity", "warning")
    assert (ran.status, "error" in ran.out) == (0, False)
    assert "4 of another severity not shown" in ran.out + ran.err
    assert {one["severity"] for one in kb("check", "--severity", "error", "--json").json["violations"]} == {"error"}


def test_statistics_are_a_row_for_each_rule(kb, crowded):
    ran = kb("check", "--statistics")
    assert ran.out.splitlines() == [
        "RULE\tSEVERITY\tCOUNT",
        "must-coverage\terror\t2",
        "unresolved-reference\terror\t2",
        f"orphans\twarning\t{COUNT}",
    ]
    assert ran.status == 1
    answer = kb("check", "--statistics", "--json").json
    assert answer["statistics"][2] == {"rule": "orphans", "severity": "warning", "count": COUNT}
    assert "violations" not in answer


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("targets", "ids"),
    [
        (["B-1"], ["B-1"]),
        (["./docs/requirements/b2.md"], ["B-2"]),
        (["B-1", "docs/requirements/m03.md"], ["B-1", "M-03"]),
        (["docs/tests"], []),
    ],
)
def test_files_folders_and_ids_narrow_it(kb, crowded, targets, ids):
    assert [one["id"] for one in kb("check", *targets, "--json").json["violations"]] == ids


@pytest.mark.sliced
def test_a_file_means_what_it_states_and_edges_of_other_files_at_either_end_of_it(kb, synced):
    write(synced, {"docs/requirements/other.md": document("OTHER", "links: [{depends_on: [REQ-1]}]\n")})
    kb("sync")
    assert kb("set", "REQ-1", "title=Changed").status == 0
    path = kb("query", "--id", "REQ-1", "--json").json["entities"][0]["source"]
    ran = kb("check", path, "--json")
    found = {(one["rule"], one["id"], one["source"]) for one in ran.json["violations"]}
    assert ("suspect-edge", "OTHER", "docs/requirements/other.md") in found
    assert f", of what concerns {path}: " in kb("check", path).out
    assert ", of what concerns REQ-1, docs/tests: " in kb("check", "REQ-1", "docs/tests", "--statistics").err
    assert "concerns" not in kb("check").out


def test_a_count_of_problems_of_which_not_all_are_kept_is_said_to_be_one(kb, ready):
    symbols = "".join(f"  - title: S{number}\n" for number in range(MAX_PROBLEMS + 400))
    write(ready, {"symbols.yaml": f"symbols:\n{symbols}"})
    kb("sync")
    ran = kb("check")
    assert ran.out.startswith("error unreadable-source: at least 201\n")
    assert "400 more problems of this file, not shown here" in ran.out
    assert ran.out.splitlines()[-1].startswith("main at seq 1: at least 201 errors (")
    write(ready, {"symbols.yaml": "symbols:\n  - title: S\n"})
    assert "at least" not in kb("check").out


def test_a_target_that_is_nothing_is_refused_with_the_nearest(kb, crowded):
    ran = kb("check", "docs/requirements/b3.md")
    assert (ran.status, "Did you mean 'docs/requirements/b" in ran.err) == (64, True)
    assert kb("check", "B1").status == 64
    assert kb("check", "../elsewhere").status == 2


@pytest.mark.sliced
def test_a_file_from_which_nothing_is_known_is_noted_and_the_rest_judged(kb, crowded):
    commit_files(crowded, {"src/[a].py": "pass\n", "docs/requirements/gone.md": document("GONE")})
    (crowded / "docs/requirements/gone.md").unlink()
    ran = kb("check", "src/[a].py", "docs/requirements/gone.md", "docs/requirements/b1.md", "--json")
    assert (ran.status, [one["id"] for one in ran.json["violations"]]) == (1, ["B-1"])
    noted = "Not checked, as no fact comes from it: 'docs/requirements/gone.md', 'src/[a].py'."
    assert noted in kb("check", "src/[a].py", "docs/requirements/gone.md", "docs/requirements/b1.md").err
    alone = kb("check", "src/[a].py")
    assert (alone.status, "no violations" in alone.out) == (0, True)
    assert kb("check", "src/[a].py", "--since", "1", "--json").json["violations"] == []
    unknown = kb("check", "b1.md", "zzzzzzzz")
    assert (unknown.status, "Known:" in unknown.err) == (64, False)


@pytest.mark.sliced
def test_a_document_that_was_deleted_is_judged_by_what_it_stated_in_every_format(kb, synced):
    other = "docs/requirements/other.md"
    commit_files(synced, {other: document("OTHER", "links: [LAST]\n"), "docs/requirements/last.md": document("LAST")})
    assert kb("sync").status == 0
    path = "docs/requirements/last.md"
    (synced / path).unlink()
    for options in ((), ("--since", "HEAD"), ("--staged",)):
        if "--staged" in options:
            git(synced, "add", "--all")
        ran = kb("check", path, *options)
        assert (ran.status, f"{other}:5: OTHER depends_on LAST, but there is no LAST." in ran.out) == (1, True), ran
        report = kb("check", path, *options, "--json").json
        [violation] = report["violations"]
        assert (violation["rule"], violation["source"]) == ("unresolved-reference", other)
        assert report["stated_last"] == ([] if "--staged" in options else [path])
    for name, expected in (("sarif", '"ruleId": "unresolved-reference"'), ("junit", "<failure"), ("github", "::error")):
        ran = kb("check", path, "--format", name)
        assert (ran.status, expected in ran.out) == (1, True), name
        assert "Checked by what it stated last, as no fact comes from it any more" in ran.out


@pytest.mark.sliced
def test_a_file_from_which_nothing_is_known_is_named_in_every_format(kb, synced):
    commit_files(synced, {"src/a.py": "pass\n"})
    assert kb("check", "src/a.py", "--json").json["not_checked"] == ["src/a.py"]
    assert kb("check", "REQ-1", "--json").json["not_checked"] == []
    said = "Not checked, as no fact comes from it"
    for name in ("sarif", "junit", "github"):
        ran = kb("check", "src/a.py", "--format", name)
        assert (ran.status, said in ran.out) == (0, True), name


def test_a_reason_in_the_document_suppresses_a_rule_for_it(kb, crowded):
    alone = {"docs/requirements/m00.md": document("M-00", "suppress: {orphans: it is a glossary}\n")}
    write(crowded, alone | {"docs/requirements/m01.md": document("M-01", 'suppress: {orphans: ""}\n')})
    ran = kb("check", "--rule", "orphans", "--limit", "1")
    assert ran.out.splitlines()[0] == f"warning orphans: {COUNT - 1}"
    assert "M-01 (req) is linked to nothing. (`suppress` names orphans without a reason. Write why." in ran.out
    assert f"{COUNT - 1} warnings, 1 suppressed (1 rule ran)" in ran.out.splitlines()[-1]


def test_a_reason_that_a_client_wrote_suppresses_nothing(kb, crowded):
    stated = {"entities": [{"id": "M-00", "attributes": {"suppress": {"orphans": "trust me"}}}]}
    written = kb("apply", "-", stdin=json.dumps(stated))
    assert written.status == 0, written.err
    first = kb("check", "--rule", "orphans", "--json").json["violations"][0]
    assert first["id"] == "M-00"
    assert first["hint"].startswith("`suppress` is ignored: a client wrote it. It counts only in a document.")


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{orphanz: why}", "`suppress` names 'orphanz', and there is no such rule. Did you mean 'orphans'?"),
        (
            "orphans",
            "`suppress` is ignored: it is no mapping. It takes a reason for each rule, as in `suppress: {RULE: why}`.",
        ),
        ("{secret: an example}", ""),
    ],
)
def test_a_suppression_in_a_document_that_cannot_count_is_named(kb, crowded, text, said):
    usual = kb("check", "--rule", "orphans", "--json").json["violations"][0]["hint"]
    write(crowded, {"docs/requirements/m00.md": document("M-00", f"suppress: {text}\n")})
    first = kb("check", "--rule", "orphans", "--json").json["violations"][0]
    assert (first["id"], first["hint"]) == ("M-00", f"{said} {usual}".lstrip())


@pytest.mark.sliced
def test_a_reason_in_the_configuration_suppresses_a_rule_by_id_or_paths(kb, crowded):
    entries = [
        {"rule": "orphans", "paths": ["docs/requirements/m0*.md"], "reason": "imported"},
        {"rule": "unresolved-reference", "id": "B-1", "reason": "is to come"},
    ]
    write(crowded, {".kb/config.json": json.dumps({"suppress": entries})})
    answer = kb("check", "--json").json
    assert [one["id"] for one in answer["violations"]] == ["B-2", "MUST", "MUST", "M-10", "M-11"]
    assert answer["suppressed"] == 11
    assert kb("check", "B-1").status == 0


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"rule": "orphans", "id": "M-00"}, "has a rule, a reason, and an id or paths"),
        ({"rule": "orphans", "reason": "x"}, "has a rule, a reason, and an id or paths"),
        ({"rule": "orphans", "id": "M-00", "reason": " "}, "must be text that is not empty"),
        ({"rule": "orphan", "id": "M-00", "reason": "x"}, "Did you mean 'orphans'?"),
        ({"rule": "orphans", "ids": "M-00", "reason": "x"}, "Did you mean 'id'?"),
    ],
)
def test_a_suppression_that_cannot_be_used_is_refused(kb, crowded, entry, said):
    write(crowded, {".kb/config.json": json.dumps({"suppress": [entry]})})
    ran = kb("check")
    assert (ran.status, said in ran.err) == (63, True)


@pytest.mark.sliced
def test_the_baseline_holds_what_is_old_and_lets_new_faults_through(kb, crowded):
    ran = kb("check", "--write-baseline")
    assert (ran.status, ran.out) == (
        0,
        f"{COUNT + 4} violations written to .kb/baseline.json; commit it. `kb check` reports only others.\n",
    )
    ran = kb("check")
    assert ran.status == 0
    assert ran.out.splitlines() == [ran.out.splitlines()[-1]]
    assert f"no violations, {COUNT + 4} in the baseline" in ran.out
    assert kb("check", "--no-baseline").status == 1
    write(crowded, {"docs/requirements/b3.md": document("B-3", "links: [REQ-1, GONE-1]\n")})
    assert [one["id"] for one in kb("check", "--json").json["violations"]] == ["B-3"]
    answer = kb("check", "--json", "B-1").json
    assert (answer["violations"], answer["in_baseline"]) == ([], 1)


@pytest.mark.sliced
def test_the_baseline_matches_by_code_subject_field_and_values(kb, crowded):
    kb("check", "--write-baseline")
    kept = json.loads((crowded / ".kb/baseline.json").read_text())
    assert kept["violations"][0] == {"rule": "must-coverage", "id": "MUST", "values": ["specified_by"]}
    assert not any({"message", "hint", "line"} & entry.keys() for entry in kept["violations"])
    moved = document("B-1", "priority: could\ntags: [x]\nlinks: [REQ-1, GONE-1]\n")
    write(crowded, {"docs/requirements/b1.md": moved})
    assert kb("check").status == 0
    write(crowded, {"docs/requirements/b1.md": moved.replace("GONE-1", "GONE-5")})
    assert [one["id"] for one in kb("check", "--json").json["violations"]] == ["B-1"]


@pytest.mark.sliced
def test_a_baseline_that_is_none_is_refused(kb, crowded):
    write(crowded, {".kb/baseline.json": '{"format": 1, "violations": [{"rule": 7}]}'})
    ran = kb("check")
    assert (ran.status, ".kb/baseline.json" in ran.err, "--write-baseline" in ran.err) == (63, True, True)
    assert kb("check", "--write-baseline").status == 0
    assert kb("check", "--write-baseline", "--rule", "orphans").status == 2
    write(crowded, {".kb/baseline.json": '{"format": 2, "violations": []}'})
    assert kb("check").status == 63


@pytest.mark.sliced
def test_a_new_baseline_keeps_what_is_accepted_of_a_rule_that_could_not_run(kb, crowded):
    rule = "rules:\n- id: own\n  description: None.\n  sql: {}\n"
    write(crowded, {".kb/rules/own.yaml": rule.format("select id, 'is one' as message from entity")})
    kb("check", "--write-baseline")
    before = (crowded / ".kb/baseline.json").read_text()
    assert '"rule": "own"' in before
    write(crowded, {".kb/rules/own.yaml": rule.format("select nothing from nowhere")})
    ran = kb("check", "--write-baseline")
    assert (ran.status, "the rule own could not run" in ran.err) == (0, True)
    assert (crowded / ".kb/baseline.json").read_text() == before
    write(crowded, {".kb/baseline.json": "{"})
    assert kb("check", "--write-baseline").status == 63  # what it accepts of the rule is not known


@pytest.mark.sliced
def test_what_is_accepted_stays_so_after_a_rename(kb, crowded):
    accepted = [{"rule": "must-coverage", "id": "MUST", "reason": "is to come"}]
    write(crowded, {".kb/config.json": json.dumps({"suppress": accepted})})
    kb("check", "--write-baseline")
    for old in ("M-00", "B-1", "MUST"):
        assert kb("rename", old, f"NEW-{old}").status == 0
    left = kb("check", "--json").json
    assert (left["violations"], left["in_baseline"], left["suppressed"]) == ([], COUNT + 2, 2)


@pytest.mark.sliced
def test_what_is_accepted_stays_so_after_a_rename_that_changes_the_order_of_its_ids(kb, synced):
    circle = {one: document(one, f"links: [{{depends_on: {to}}}]\n") for one, to in (("C-2", "C-4"), ("C-4", "C-6"))}
    circle["C-6"] = document("C-6", "links: [{depends_on: C-2}]\n")
    alike = {one: document(one, "links: [C-2]\n").replace(f"Title of {one}", "Alike") for one in ("T-1", "T-2")}
    write(synced, {f"docs/requirements/{one}.md": text for one, text in (circle | alike).items()})
    kb("sync")
    accepted = {one["rule"] for one in kb("check", "--json").json["violations"]}
    assert {"acyclic", "duplicate-title"} <= accepted
    kb("check", "--write-baseline")
    for old, new in (("C-6", "C-1"), ("C-2", "C-9"), ("T-2", "A-2")):
        assert kb("rename", old, new).status == 0
        assert kb("check", "--json").json["violations"] == [], (old, new)
    entry = {"rule": "acyclic", "id": "C-2"}
    write(synced, {".kb/baseline.json": json.dumps({"format": 1, "violations": [entry]})})
    assert kb("check", "--rule", "acyclic").status == 1


@pytest.mark.sliced
def test_a_former_id_names_what_to_check(kb, crowded):
    kb("rename", "B-1", "B-9")
    assert [one["id"] for one in kb("check", "B-1", "--json").json["violations"]] == ["B-9"]


@pytest.mark.parametrize("other", [("--explain", "orphans"), ("--test-rules",)])
@pytest.mark.parametrize("option", ["--write-baseline", "--no-baseline"])
def test_no_baseline_is_written_where_nothing_is_judged(kb, crowded, other, option):
    ran = kb("check", *other, option)
    assert (ran.status, f"leave out {option}" in " ".join(ran.err.split())) == (2, True), ran.err
    assert not (crowded / ".kb/baseline.json").exists()


def test_orphans_wait_for_the_first_edge_and_coverage_does_not(kb, ready):
    write(ready, {"docs/requirements/a.md": document("REQ-1", "priority: must\n")})
    ran = kb("check")
    assert (ran.status, "must-coverage: 2" in ran.out, "orphans" in ran.out) == (1, True, False)
    assert (
        ran.err == "The rule orphans was not run: The branch has no edge yet; the rule is run from the first one on.\n"
    )
    write(ready, {"docs/requirements/b.md": document("REQ-2", "links: [{depends_on: [REQ-1]}]\n")})
    assert "orphans" not in kb("check").err


@pytest.mark.parametrize("is_synced", [True, False], ids=["recorded", "pending"])
def test_orphans_are_found_when_the_last_edge_of_a_branch_is_gone(kb, ready, is_synced):
    write(ready, {"docs/requirements/a.md": document("REQ-1")})
    write(ready, {"docs/requirements/b.md": document("REQ-2", "links: [{depends_on: [REQ-1]}]\n")})
    assert kb("sync").status == 0
    write(ready, {"docs/requirements/b.md": document("REQ-2")})
    if is_synced:
        assert kb("sync").status == 0
    found = kb("check", "--rule", "orphans", "--json").json["violations"]
    assert [one["id"] for one in found] == ["REQ-1", "REQ-2"]


def test_a_sync_and_a_check_say_that_the_same_fault_is_as_bad(kb, ready):
    write(
        ready,
        {"docs/requirements/a.md": document("REQ-1", "links: [GONE]\n"), "docs/tests/t.md": "---\ntitle: [x\n---\n"},
    )
    reported = kb("sync").err
    assert "error: unresolved: REQ-1 links to GONE" in reported
    assert "error: docs/tests/t.md:2: not valid YAML" in reported
    assert {one["severity"] for one in kb("check", "--json").json["violations"]} == {"error"}
    write(ready, {".kb/config.json": '{"rules": {"unresolved-reference": "warning", "unreadable-source": "warning"}}'})
    reported = kb("sync", "--rebuild").err
    assert "warning: unresolved: REQ-1 links to GONE" in reported
    assert "warning: docs/tests/t.md:2: not valid YAML" in reported
    assert "error" not in reported
    assert {one["severity"] for one in kb("check", "--json").json["violations"]} == {"warning"}


def test_a_sync_counts_what_is_alike(kb, ready):
    write(ready, {f"docs/requirements/{at}.md": document(f"R-{at}", f"links: [GONE-{at}]\n") for at in range(40)})
    reported = kb("sync").err.splitlines()
    assert len([line for line in reported if "unresolved: " in line]) == 5
    assert "error: 35 more like these; `kb check --rule unresolved-reference --format short` lists them." in reported


@pytest.mark.sliced
def test_a_sync_and_a_hook_are_silent_about_what_the_project_accepts(kb, synced):
    gone = document("B-1", "links: [REQ-1, GONE-1]\n")
    write(synced, {"docs/requirements/bad.md": "---\nid: [\n---\n", "docs/requirements/b1.md": gone})
    ran = kb("sync")
    assert ("bad.md" in ran.err, "GONE-1" in ran.err) == (True, True)
    counts = "2 errors in files; `kb check` and `kb sync --strict` list them.\n"
    assert (kb("sync").err, kb("sync").out.count("\n")) == (counts, 1)
    assert "bad.md" in kb("sync", "--strict").err
    assert "1 file could not be read completely" in kb("hook", "post-merge", "0").err
    kb("check", "--write-baseline")
    assert (kb("sync").err, kb("hook", "post-merge", "0").err) == ("", "")
    write(synced, {"docs/requirements/b2.md": document("B-2", "links: [REQ-1, GONE-2]\n")})
    changed = kb("sync").err
    assert ("GONE-2" in changed, "GONE-1" in changed, "bad.md" in changed) == (True, False, False)
    (synced / ".kb/baseline.json").unlink()
    accepted = [{"rule": "unreadable-source", "paths": ["docs/requirements/bad.md"], "reason": "is a draft"}]
    write(synced, {".kb/config.json": json.dumps({"suppress": accepted})})
    kb("sync")
    assert kb("hook", "post-merge", "0").err == ""
    assert kb("sync").err == "2 errors in files; `kb check` lists them.\n"
    write(synced, {".kb/baseline.json": "{"})
    assert ".kb/baseline.json is no baseline" in kb("sync").err


@pytest.mark.sliced
def test_a_second_block_of_front_matter_is_a_warning_of_a_sync_and_of_a_check(kb, ready):
    path = "docs/requirements/two.md"
    write(ready, {path: document("R-1") + "\nText.\n\n---\nid: R-2\ntitle: Other\n---\n"})
    said = f"warning: {path}:9: a second block of front matter, in lines 9 to 12, is not read"
    assert said in kb("sync").err
    [found] = kb("check", "--json", "--rule", "unreadable-source").json["violations"]
    assert (found["severity"], found["line"], found["code"]) == ("warning", 9, "second_front_matter")
    assert kb("check", "--rule", "unreadable-source").status == 0
    kb("check", "--write-baseline")
    assert (kb("sync").err, kb("check", "--json").json["violations"]) == ("", [])
    assert "1 warning in files" not in kb("sync").err


@pytest.mark.sliced
def test_what_a_document_accepts_is_accepted_by_a_sync_a_hook_and_the_status(kb, ready):
    why = "suppress: {unresolved-reference: is to come, unknown-status: of an old process}\n"
    one = document("R-1", f"links: [GONE]\n{why}").replace("status: open", "status: odd")
    schema = "entities: {req: {statuses: [open], statusDefault: open}}\n"
    write(ready, {"docs/requirements/one.md": one, ".kb/schema/more.yaml": schema})
    assert (kb("sync").err, kb("hook", "post-merge", "0").err) == ("", "")
    strict = kb("sync", "--strict").err
    assert ("R-1 links to GONE" in strict, "'odd' is no status of a req" in strict) == (True, True)
    status = kb("status", "--json").json
    assert status["accepted"]["unresolved"] == status["unresolved"] != []
    assert "GONE" not in kb("status").out
    write(ready, {"docs/requirements/one.md": one.replace(why, "")})
    reported = kb("sync").err
    assert ("R-1 links to GONE" in reported, "'odd' is no status of a req" in reported) == (True, True)
    assert "R-1 links to GONE" in kb("status").out
    kb("check", "--write-baseline")
    assert kb("sync").err == ""


def test_the_status_names_no_file_that_the_project_accepts_as_it_is(kb, ready):
    path = "docs/requirements/bad.md"
    write(ready, {path: "---\nid: [\n---\n"})
    kb("sync")
    assert f"  {path}" in kb("status").out
    kb("check", "--write-baseline")
    status = kb("status", "--json").json
    assert (status["files"]["bad"], status["accepted"]["bad"]) == ([path], [path])
    assert path not in kb("status").out


def test_of_many_suppressions_without_effect_the_first_are_listed_and_the_others_counted(kb, ready):
    suppress = [{"rule": "orphans", "id": f"GONE-{at}", "reason": "x"} for at in range(22)]
    write(ready, {".kb/config.json": json.dumps({"suppress": suppress})})
    said = kb("check").err
    assert said.count("which does not exist") == 20
    assert "2 more suppressions have no effect. `kb check --json` lists them all." in said
    assert len(kb("check", "--json").json["idle_suppressions"]) == 22


def test_json_lists_the_suppressions_without_effect(kb, ready):
    path = "docs/requirements/one.md"
    write(ready, {path: document("R-1", "suppress: {orphanz: why}\n")})
    kb("sync")
    [idle] = kb("check", "--json").json["idle_suppressions"]
    assert (idle["path"], idle["code"], idle["hint"]) == (path, "unknown_rule", "Did you mean 'orphans'?")
    assert "orphanz" in idle["message"]
    assert "idle_suppressions" not in kb("check", "R-1", "--json").json
    write(ready, {path: document("R-1")})
    assert kb("check", "--json").json["idle_suppressions"] == []


def test_of_two_equal_statuses_in_a_file_the_one_is_named_that_is_not_accepted(kb, ready):
    suppress = [{"rule": "unknown-status", "id": "a", "reason": "of an old process"}]
    write(
        ready,
        {
            ".kb/config.json": json.dumps({"suppress": suppress}),
            ".kb/schema/more.yaml": "entities: {symbol: {statuses: [open], statusDefault: open}}\n",
            "docs/symbols.yaml": "symbols:\n- {id: b, status: odd}\n- {id: a, status: odd}\n",
        },
    )
    said = kb("sync").err
    assert ("symbols.yaml:2: " in said, "symbols.yaml:3: " in said) == (True, False)


def test_a_report_of_many_rules_fits_a_screen_and_names_each_rule(kb, grown):
    def fill(root, kb):
        files = {}
        for at in range(10):
            files[f"docs/requirements/b{at}.md"] = document(f"B-{at}", f"links: [GONE-{at}]\npriority: must\n")
            files[f"docs/requirements/s{at}.md"] = document(f"S-{at}").replace(f"S-{at}\ns", "One title\ns")
            files[f"docs/requirements/u{at}.md"] = document(f"U-{at}", f"odd{at}: [\n")
        write(root, files)
        kb("sync")

    grown(fill)
    lines = kb("check").out.splitlines()
    heads = [line.split(":")[0] for line in lines[:-1] if not line.startswith("  ")]
    assert len(heads) >= 4
    assert len(lines) <= 24
    limited = kb("check", "--limit", "5").out.splitlines()
    assert [line.split(":")[0] for line in limited[:-1] if not line.startswith("  ")] == heads
    assert len(limited) > 24
