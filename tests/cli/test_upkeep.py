"""``kb compact``, ``kb verify`` and ``kb doctor``: the store proven, sealed, diagnosed and fixed."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from kbcli.commands import doctor
from kbcli.terminal.output import Output
from kbcore.clock import SystemClock
from kbcore.maintenance.doctor import Diagnosis
from kbcore.maintenance.findings import DoctorFinding
from kbcore.storage import lock
from kbcore.storage.bug_reports import BUGS
from kbcore.storage.fs import RealFs
from tests.support.processes.advice import spelled_out
from tests.support.processes.cli import DOCUMENTS, LOGIN, run_kb, write
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import commit_files, git


def store(root: Path) -> Path:
    return stores_at(root) / "main"


def journal(root: Path) -> Path:
    (path,) = store(root).glob("journal-*.jsonl")
    return path


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / ".kb").rglob("*")) if path.is_file()}


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(b"REQ-1")
    data[at : at + 5] = b"REQ-X"
    path.write_bytes(data)


def by_check(ran) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for one in ran.json["findings"]:
        found.setdefault(one["check"], []).append(one)
    return found


def test_a_sound_store_is_proven_and_nothing_written(kb, synced):
    before = everything(synced)
    ran = kb("verify", "--json")
    assert ran.status == 0
    answer = ran.json
    assert (answer["branch"], answer["seq"], answer["ok"], answer["good_seq"]) == ("main", 1, True, 1)
    assert (answer["records"], answer["findings"]) == (1, [])
    assert {check["status"] for check in answer["checks"]} <= {"ran", "not_run"}
    assert kb("verify").out == "main at seq 1: sound (1 record checked).\n"
    assert everything(synced) == before


@pytest.mark.sliced
def test_a_changed_byte_is_found_with_its_place_and_ends_with_the_status_of_the_damage(kb, synced):
    kb("apply", "-", stdin='{"entities": [{"id": "A", "type": "req", "title": "A", "status": "open"}]}')
    spoil(journal(synced))
    ran = kb("verify")
    assert ran.status == 40
    assert ran.err.startswith(f"error: {journal(synced)}, line 1, byte 0: ")
    assert ran.err.count(str(journal(synced))) == 1
    assert "no state is proven" in ran.out
    answer = kb("verify", "--json").json
    assert (answer["ok"], answer["good_seq"]) == (False, 0)
    assert answer["findings"][0]["code"] == "journal_corrupt"


def test_after_damage_was_found_readers_warn_of_it_and_no_command_changes_a_document(kb, synced):
    assert kb("query", "--count").out  # the view that later commands answer from
    spoil(journal(synced))
    assert kb("verify").status == 40
    before = {path: path.read_text() for path in synced.glob("docs/**/*.md")}
    for command in (["status"], ["query"], ["check", "--fail-on", "never"], ["show", "REQ-1"], ["log", "--oneline"]):
        assert (
            "Answers come from the cached view, and nothing can be written. `kb verify --branch main`"
            in kb(*command).err
        )
    for command in (["set", "REQ-1", "owner=ann"], ["new", "req", "--title", "Another"], ["rename", "REQ-1", "REQ-9"]):
        ran = kb(*command)
        assert (ran.status, "Nothing was written." in ran.err) == (40, True)
    assert {path: path.read_text() for path in synced.glob("docs/**/*.md")} == before


def test_a_refusal_does_not_speak_of_answers_and_a_salvage_ends_the_warning(kb, synced):
    kb("apply", "-", stdin='{"entities": [{"id": "A", "type": "req", "title": "A", "status": "open"}]}')
    journal(synced).write_bytes(journal(synced).read_bytes().replace(b'"A"', b'"B"', 1))
    for _ in range(2):  # no view was made of the last record
        ran = kb("query", "--count")
        assert (ran.status, "Answers come from" in ran.err) == (40, False)
    assert kb("doctor", "--salvage").status == 0
    ran = kb("query", "--count")
    assert (ran.status, "is damaged" in ran.err) == (0, False)


def test_verify_of_a_branch_without_a_store_is_refused_and_makes_none(kb, synced):
    git(synced, "branch", "other")
    assert kb("verify", "--branch", "other").status == 62
    assert not (stores_at(synced) / "other").exists()


@pytest.mark.sliced
def test_compact_seals_once_and_changes_no_answer(kb, synced):
    before = kb("query", "--edges", "--json").out
    answer = kb("compact", "--json").json
    assert (answer["branch"], answer["seq"], answer["history_from"], answer["pruned"]) == ("main", 1, 0, [])
    assert answer["snapshot"] == "snapshot-0000000001.jsonl"
    assert answer["sealed"]
    assert kb("query", "--edges", "--json").out == before
    assert kb("compact").out == "main at seq 1: nothing to seal.\n"
    assert kb("verify").status == 0


def test_a_pruning_that_gives_up_nothing_says_why(kb, synced):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    kb("sync")
    ran = kb("compact", "-q", "--prune-before", "2")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("warning: Nothing was given up: records 1 to 2 are one part of the journal")


@pytest.mark.sliced
def test_only_pruning_gives_up_history(kb, synced):
    kb("compact")
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    kb("sync")
    ran = kb("compact", "--prune-before", "2")
    assert ran.out.splitlines()[1] == "Gave up the history before seq 2."
    assert kb("query", "--json").json["total"] == 3
    assert kb("show", "1").status == 66
    assert kb("compact", "--prune-before", "2").out.splitlines()[1] == "Nothing was given up: history begins at seq 2."
    assert kb("compact", "--prune-before", "9").status == 2
    assert kb("compact", "--prune-before", "x").status == 2


@pytest.mark.sliced
def test_the_doctor_finds_nothing_wrong_where_nothing_is_wrong(kb, synced, user, tmp_path):
    (tmp_path / "kb").write_text("#!/bin/sh\n")
    (tmp_path / "kb").chmod(0o755)
    user.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    user.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    kb("hooks", "install")
    before = everything(synced)
    ran = kb("doctor", "--json")
    assert ran.status == 0
    assert ran.json["ok"] is True
    assert [one for one in ran.json["findings"] if one["severity"] != "ok"] == []
    found = set(by_check(ran))
    assert {"program", "git", "settings", "extractors", "rules", "hooks", "disk", "journal"} <= found
    assert {one["code"] for one in by_check(ran)["disk"]} == {"free_space", "speed"}
    assert [one["branch"] for one in ran.json["stores"]] == ["main"]
    out = kb("doctor").out
    assert out.endswith("All is well.\n")
    assert all(line.strip() for line in out.splitlines())
    assert everything(synced) == before


def test_a_long_remedy_that_several_findings_have_is_shown_once(capsys):
    remedy = "Do all of this. " * 10
    found = [DoctorFinding("stores", "error", "x", "Bad.", remedy, branch) for branch in ("one", "two", "three")]
    found.append(DoctorFinding("git", "ok", "version", "Well."))
    output = Output({})
    doctor.show(output, Diagnosis(tuple(found), ()))
    output.flush()
    out = capsys.readouterr().out
    assert out.count("Do all of this.") == 10
    assert out.count("The remedy is that of stores one, above.") == 2
    assert all(line.strip() for line in out.splitlines())


@pytest.mark.sliced
def test_the_doctor_warns_of_hooks_that_can_find_no_kb(kb, synced, user):
    git(synced, "config", "core.hooksPath", ".githooks")
    kb("hooks", "install")
    user.setenv("PATH", "/usr/bin:/bin")
    found = by_check(kb("doctor", "--json"))["hooks"]
    assert {(one["code"], one["severity"]) for one in found} == {("hook_without_program", "warning")}
    assert "notes no path of it" in found[0]["message"]
    git(synced, "config", "--unset", "core.hooksPath")
    kb("hooks", "install")
    assert {one["code"] for one in by_check(kb("doctor", "--json"))["hooks"]} == {"hook_active"}


def track_a_store(root):
    (root / ".kb/branches").unlink()
    write(root, {".kb/branches/main/head.json": "{}"})
    git(root, "add", "-f", ".kb/branches")


def put_branch_gone(root: Path, kb) -> None:
    commit_files(root, {"x": "1"})
    git(root, "switch", "-q", "-c", "gone")
    kb("query")
    git(root, "switch", "-q", "main")
    git(root, "branch", "-q", "-D", "gone")


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    ("spoilt", "check", "severity", "status"),
    [
        ("journal", "journal", "error", 40),
        ("head", "journal", "error", 42),
        ("config", "settings", "error", 63),
        ("schema", "settings", "error", 63),
        ("extractor", "extractors", "warning", 0),
        ("rule", "settings", "error", 63),
        ("ruled", "rules", "error", 63),
        ("core", "schema", "note", 0),
        ("hook", "hooks", "warning", 0),
        ("unhooked", "hooks", "note", 0),
        ("shadowed", "hooks", "warning", 0),
        ("client", "clients", "warning", 0),
        ("gone", "stores", "note", 0),
        ("unfinished", "stores", "note", 0),
        ("tracked", "git", "error", 1),
        ("ahead", "cache", "warning", 0),
        ("bug", "cache", "note", 0),
        ("tail", "journal", "note", 0),
    ],
)
def test_the_doctor_finds_each_trouble_and_says_what_to_do(kb, synced, spoilt, check, severity, status):
    kb("hooks", "install")
    kb_dir, hook = synced / ".kb", synced / ".git/hooks/post-merge"
    troubles = {
        "journal": lambda: spoil(journal(synced)),
        "head": lambda: (store(synced) / "head.json").write_text("{}"),
        "config": lambda: (kb_dir / "config.json").write_text("{"),
        "schema": lambda: (kb_dir / "schema/x.yaml").write_text("entities: 3"),
        "extractor": lambda: (kb_dir / "config.json").write_text('{"extractors": {"word": {}}}'),
        "rule": lambda: (kb_dir / "config.json").write_text('{"rules": {"acyclick": "off"}}'),
        "ruled": partial(write, kb_dir, {"rules/x.yaml": "rules: 3"}),
        "core": (kb_dir / "schema/core.yaml").unlink,
        "hook": lambda: hook.write_text(hook.read_text().replace("exec", "true;exec")),
        "unhooked": hook.unlink,
        "shadowed": lambda: git(synced, "config", "core.hooksPath", ".githooks"),
        "client": partial(write, synced, {".mcp.json": '{"mcpServers": {"kb": {"command": "kb-of-old"}}}'}),
        "gone": partial(put_branch_gone, synced, kb),
        "unfinished": (stores_at(synced) / ".tmp-1").mkdir,
        "tracked": partial(track_a_store, synced),
        "ahead": partial(write, caches_at(synced), {"main/ahead-7.duckdb": ""}),
        "bug": partial(write, caches_at(synced), {"bugs/kb-bug-1.txt": "x"}),
        "tail": lambda: journal(synced).write_bytes(journal(synced).read_bytes() + b"half a rec"),
    }
    troubles[spoilt]()
    ran = kb("doctor", "--json")
    assert ran.status == status, ran
    assert ran.json["ok"] is (status == 0)
    found = [one for one in by_check(ran)[check] if one["severity"] == severity]
    assert found, ran.json
    assert all(one.get("remedy") for one in found if one["code"] != "good_seq")
    text = kb("doctor")
    assert text.status == status
    assert f"{severity.replace('_', ' '):11} {check}" in text.out


def test_a_lost_head_is_rebuilt_after_a_copy_and_unproven_records_are_named(kb, synced):
    (store(synced) / "head.json").write_text("{}")
    assert kb("query").status == 42
    ran = kb("doctor", "--rebuild-head")
    assert ran.status == 0
    assert "rebuilt from the journal, at seq 1" in ran.out
    assert "warning: " in ran.err
    assert kb("query", "--json").json["total"] == 3
    (copy,) = (store(synced) / "quarantine").iterdir()
    assert str(copy) in ran.out
    assert kb("doctor", "--rebuild-head").out == "main: the head is sound; nothing was done.\n"
    (nothing,) = kb("doctor", "--rebuild-head", "--json").json["repairs"]
    assert nothing == {"branch": "main", "seq": 2, "copy": "", "done": [], "doubts": []}


def test_the_rebuilt_head_is_answered_as_json(kb, synced):
    (store(synced) / "head.json").unlink()
    (answer,) = kb("doctor", "--rebuild-head", "--json").json["repairs"]
    assert answer["done"] == ["The head was rebuilt from the journal, at seq 1."]
    assert answer["doubts"]
    assert Path(answer["copy"]).is_dir()
    assert kb("log", "--limit", "1", "--json").json["records"][0]["repair"].startswith(answer["done"][0])


def test_a_damaged_snapshot_is_reported_once_with_a_repair_that_works_in_one_step(kb, synced):
    kb("compact")
    (path,) = store(synced).glob("snapshot-*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"REQ-1", b"REQ-X", 1))
    ran = kb("verify")
    assert (ran.status, ran.err.count(str(path))) == (43, 1)
    assert "every record is good" in ran.out
    ran = kb("doctor")
    assert ran.status == 43
    assert "--at" not in ran.out
    assert "Every record up to seq 1 is good, and everything can be read." in ran.out
    assert kb("doctor", "--rebuild-head").out == "main: the head is sound; nothing was done.\n"
    remedy = "doctor --rebuild-snapshots --branch main"
    assert f"Run `kb {remedy}`: it rebuilds the snapshot." in ran.out
    ran = kb(*remedy.split())
    assert ran.out.startswith(f"main: {path.name} was rebuilt from the journal.\nThe store as it was is in ")
    assert kb("verify").status == 0
    assert kb("doctor", "--rebuild-snapshots").out == "main: the snapshots are sound; nothing was done.\n"


def test_two_repairs_at_once_begin_with_the_head(kb, synced):
    kb("compact")
    (path,) = store(synced).glob("snapshot-*.jsonl")
    path.unlink()
    (store(synced) / "head.json").unlink()
    head, snapshots = kb("doctor", "--rebuild-snapshots", "--rebuild-head", "--json").json["repairs"]
    assert head["done"]
    assert snapshots["done"] == []
    assert kb("verify").status == 0


def test_where_there_is_no_kb_the_doctor_says_so(kb, root, tmp_path):
    ran = kb("doctor")
    assert ran.status == 61
    assert "Run `kb init`." in ran.out
    assert not (root / ".kb").exists()
    assert kb("doctor", cwd=tmp_path).status == 60


def test_a_finding_in_text_is_safe(kb, synced):
    commit_files(synced, DOCUMENTS)
    (synced / ".kb/config.json").write_text(json.dumps({"extractors": {"w\x1b[31m": {}}}))
    assert "\x1b" not in kb("doctor").out


@pytest.fixture
def put_back(kb, grown):
    """The store as it was before a record that the cached view has seen."""
    return grown(put_back_before_a_record)


def put_back_before_a_record(root, kb):
    saved = root.parent / "saved"
    shutil.copytree(stores_at(root), saved)
    kb("apply", "-", stdin='{"entities": [{"id": "A", "type": "req", "title": "A", "status": "open"}]}')
    shutil.rmtree(caches_at(root) / "main")
    assert json.loads(kb("query", "--json"))["seq"] == 2
    shutil.rmtree(stores_at(root))
    saved.rename(stores_at(root))


WRITE = '{"entities": [{"id": "B", "type": "req", "title": "B", "status": "open"}]}'


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "words",
    [
        ("query", "--json"),
        ("show", "REQ-1"),
        ("apply", "-"),
        ("sync",),
        ("status",),
        ("branch", "diff", "main", "main"),
    ],
)
def test_a_store_that_lacks_records_which_were_seen_is_warned_of_once(kb, put_back, words):
    ran = kb(*words, stdin=WRITE)
    assert ran.status == 0
    assert ran.err.count("warning: Record 2 ") == 1
    if "--json" in words:
        assert ran.json["seq"] == 1


def test_a_command_that_fails_warns_of_missing_records_too(kb, put_back):
    ran = kb("show", "A")
    assert ran.status != 0
    assert "warning: Record 2 " in ran.err


def test_a_warning_of_missing_records_is_not_repeated_by_the_next_command(kb, put_back):
    kb("query")
    assert kb("query").err == ""


def test_what_is_wrong_without_being_an_error_of_its_own_ends_verify_with_1(kb, put_back):
    ran = kb("verify", "--json")
    assert (ran.status, [one["code"] for one in ran.json["findings"]]) == (1, ["view_ahead"])


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_a_record_that_is_being_appended_is_named_as_such(kb, synced, command):
    with lock.held(RealFs(), SystemClock(), store(synced) / "lock", command="kb apply"):
        with journal(synced).open("ab") as file:
            file.write(b'{"unfinished')
        found = kb(command, "--json").json["findings"]
    (one,) = [one for one in found if one["code"] in {"append_in_progress", "beyond_head"}]
    assert one["code"] == "append_in_progress"
    assert "kb apply (process " in one["message"]


def test_a_gc_that_cannot_clear_everything_reports_what_it_did_and_warns(kb, synced):
    kb("apply", "-", stdin='{"entities": []}')
    git(synced, "branch", "gone")
    kb("branch", "ensure", "gone")
    git(synced, "branch", "-D", "gone")
    witness = Path(os.environ["HOME"], ".local/state/kb/witness")
    broken = witness / ("0" * 32) / ("0" * 16)
    broken.mkdir(parents=True)
    (broken / "git-dir").mkdir()
    for number in range(1, 8):
        (witness / ("0" * 32) / f"{number:016}").write_text("no place")
    # The folder of bug reports is a file: what is listed there cannot be.
    reports = caches_at(synced) / BUGS
    shutil.rmtree(reports, ignore_errors=True)
    reports.write_text("")
    tried = kb("gc", "--dry-run", "--json").json
    assert tried["removed"] == ["gone"]
    assert len(tried["warnings"]) == 1 + 5 + 1
    done = kb("gc")
    assert done.status == 0
    assert "moved gone to the trash" in done.out
    said = " ".join(done.err.split())
    assert f"cannot open {reports}: it is not a directory" in said
    assert "because it is not known whether it still exists: " in said
    assert str(witness / ("0" * 32)) in said
    assert "So are 3 more." in said
    assert kb("init", "--no-hooks").status == 0


def test_a_copy_of_the_repository_that_went_on_is_named_with_a_command(kb, synced):
    copy = shutil.copytree(synced, synced.parent / "copy", symlinks=True)
    for root, key in (synced, "A"), (copy, "B"), (synced, "C"):
        entity = {"id": key, "type": "req", "title": "T", "status": "open"}
        assert run_kb(root, "apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    ran = kb("doctor", "--json")
    [found] = [one for one in ran.json["findings"] if one["code"] == "store_copied"]
    assert "`kb doctor --new-epoch --branch main` in the copy" in spelled_out(found["remedy"])
    refused = kb("doctor", "--new-epoch")
    assert (
        "`kb doctor --new-epoch --branch main` gives one of them an id of its own. Give the store a new id"
        in spelled_out(refused.err)
    )
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert "`kb doctor --new-epoch --branch main` gives one of them an id of its own." in spelled_out(
        kb("log", "-n", "1").out
    )
