"""The doctor finds what is wrong, says what to do, and touches nothing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore import git
from kbcore.errors import InvalidConfig
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.disk import network_mount
from kbcore.maintenance.doctor import Diagnosis, diagnose
from kbcore.maintenance.findings import DoctorFinding, of_config
from kbcore.store import branches
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import Workspace
from kbcore.view.cache_files import VIEW
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import STORES_NAME, caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git as run
from tests.support.repository.repos import make_repository
from tests.support.repository.stores import view_of


def entity(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": "T", "status": "open"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy installation with a published view, to be copied."""
    made = Project(tmp_path_factory.mktemp("model") / "repo")
    made.write({".kb/.gitignore": "/branches\n/cache/\n", ".kb/config.json": "{}"})
    made.apply(entities=[entity("A")])
    store = made.workspace().store("main")
    store.close()
    view_of(store)
    made.close()
    return made.root


@pytest.fixture
def healthy(model: Path, tmp_path: Path) -> Iterator[Project]:
    made = Project(shutil.copytree(model, tmp_path / "a project", symlinks=True), is_new=False)
    yield made
    made.close()


def found(project: Project) -> dict[str, DoctorFinding]:
    return {one.code: one for one in diagnose(project.workspace()).findings if one.severity != "ok"}


def test_a_healthy_installation_has_no_finding_but_what_is_well(healthy: Project) -> None:
    diagnosis = diagnose(healthy.workspace())
    assert diagnosis.is_sound
    assert {one.severity for one in diagnosis.findings} == {"ok"}
    assert {one.check for one in diagnosis.findings} == {"git", "settings", "stores", "journal", "cache"}
    (store,) = diagnosis.stores
    assert (store.branch, store.seq, store.good_seq, store.size.records) == ("main", 1, 1, 1)
    assert diagnosis.as_json()["ok"] is True


def test_it_says_what_has_become_of_the_default_branch(healthy: Project) -> None:
    def said() -> str:
        return next(one.message for one in diagnose(healthy.workspace()).findings if one.code == "settings")

    run(healthy.root, "commit", "-q", "--allow-empty", "-m", "one")
    assert "; main is the default branch; " in said()
    run(healthy.root, "branch", "-m", "main", "trunk")
    assert "; the default branch main is called trunk now; " in said()
    healthy.write({".kb/config.json": '{"defaultBranch": "gone"}'})
    assert "; gone is the default branch, and git has none of that name here; " in said()


def test_every_finding_that_is_not_well_has_a_remedy_and_the_gravest_come_first(healthy: Project) -> None:
    healthy.write({".kb/.gitignore": "", ".kb/config.json": "{"})
    (stores_at(healthy.root) / ".tmp-dead").mkdir()
    workspace = Workspace(git.find_repository(healthy.root), healthy.machine, healthy.pool)
    diagnosis = diagnose(workspace, [DoctorFinding("hooks", "warning", "hook_foreign", "Another's hook.", "Mend.")])
    bad = [one for one in diagnosis.findings if one.severity != "ok"]
    assert [(one.check, one.severity, one.code) for one in bad] == [
        ("settings", "error", "invalid_config"),
        ("stores", "not_checked", "invalid_config"),
        ("settings", "warning", "not_ignored"),
        ("hooks", "warning", "hook_foreign"),
        ("stores", "note", "unfinished_store"),
    ]
    assert all(one.remedy for one in bad)
    assert not diagnosis.is_sound


def test_every_mistake_in_the_settings_is_reported_once_with_its_line(healthy: Project) -> None:
    healthy.write({".kb/config.json": '{\n"documents": 7,\n"rules": 3\n}'})
    workspace = Workspace(git.find_repository(healthy.root), healthy.machine, healthy.pool)
    other = of_config("extractors", _refusal(workspace))
    bad = [one for one in diagnose(workspace, other).findings if one.severity in {"error", "not_checked"}]
    assert [(one.check, one.severity, one.file, one.line) for one in bad] == [
        ("settings", "error", ".kb/config.json", 2),
        ("settings", "error", ".kb/config.json", 3),
        ("extractors", "not_checked", "", -1),
        ("stores", "not_checked", "", -1),
    ]
    assert len({one.message for one in bad}) == 3


def _refusal(workspace: Workspace) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as refused:
        _ = workspace.config
    return refused.value


def test_the_doctor_writes_nothing(healthy: Project) -> None:
    (stores_at(healthy.root) / ".tmp-dead").mkdir()

    def seen() -> dict[str, tuple[int, int]]:
        return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in healthy.root.rglob("*")}

    before = seen()
    diagnose(healthy.workspace())
    assert seen() == before


def test_in_a_repository_without_kb_the_doctor_names_init(tmp_path: Path, project: Project) -> None:
    root = make_repository(tmp_path / "bare one")
    workspace = Workspace(git.find_repository(root), project.machine, StorePool())
    diagnosis = diagnose(workspace)
    bad = [one for one in diagnosis.findings if one.severity != "ok"]
    assert [(one.code, one.remedy) for one in bad] == [("not_initialised", "Run `kb init`.")]
    assert diagnosis.stores == ()


def test_git_that_is_missing_is_not_checked_rather_than_well(healthy: Project) -> None:
    healthy.machine.env = {**healthy.machine.env, "PATH": "/nowhere"}
    diagnosis = diagnose(healthy.workspace())
    assert not diagnosis.is_sound
    assert {(one.check, one.severity) for one in diagnosis.findings if one.code == "git_unusable"} >= {
        ("git", "not_checked"),
        ("stores", "not_checked"),
    }
    assert diagnosis.stores


def test_stores_that_git_tracks_are_an_error(healthy: Project) -> None:
    healthy.write({".kb/branches/main/head.json": "{}"})
    run(healthy.root, "add", "-f", ".kb/branches")
    finding = found(healthy)["store_tracked"]
    assert finding.severity == "error"
    assert "git rm -r --cached" in finding.remedy


def test_a_schema_with_faults_is_reported_with_all_of_them(healthy: Project) -> None:
    healthy.write({".kb/schema/own.yaml": "entities: {fact: {nonsense: 1, more: 2}}\n"})
    reported = [one.message for one in diagnose(healthy.workspace()).findings if one.code == "invalid_config"]
    assert all(message.startswith(".kb/schema/own.yaml:1: ") for message in reported)
    assert [name for name in ("nonsense", "more") if name in " ".join(reported)] == ["nonsense", "more"]


def test_a_damaged_journal_is_an_error_that_says_what_is_good(healthy: Project) -> None:
    healthy.apply(entities=[entity("B")])
    segment = stores_at(healthy.root) / "main/journal-0000000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"B"', b'"X"', 1))
    problems = found(healthy)
    assert problems["journal_corrupt"].severity == "error"
    assert "--at 1" in problems["good_seq"].message


def test_a_truncated_journal_is_an_error(healthy: Project) -> None:
    segment = stores_at(healthy.root) / "main/journal-0000000001.jsonl"
    segment.write_bytes(segment.read_bytes()[:-5])
    assert found(healthy)["journal_truncated"].severity == "error"


def test_bytes_beyond_the_head_and_in_quarantine_are_notes(healthy: Project) -> None:
    segment = stores_at(healthy.root) / "main/journal-0000000001.jsonl"
    with segment.open("ab") as file:
        file.write(b"torn")
    assert found(healthy)["beyond_head"].severity == "note"
    healthy.apply(entities=[entity("B")])
    assert found(healthy)["quarantined"].severity == "note"


def test_a_store_of_an_unreadable_head_is_an_error_and_the_others_are_looked_at(healthy: Project) -> None:
    healthy.switch("feature", create=True)
    healthy.view("feature")
    (stores_at(healthy.root) / "main/head.json").write_bytes(b"{}")
    diagnosis = diagnose(healthy.workspace())
    assert [store.branch for store in diagnosis.stores] == ["feature"]
    assert {(one.code, one.branch) for one in diagnosis.findings if one.severity == "error"} == {
        ("head_damaged", "main")
    }


def test_a_damaged_cache_is_a_warning_and_nothing_worse(healthy: Project) -> None:
    path = caches_at(healthy.root) / "main" / VIEW
    path.write_bytes(b"no database" * 100)
    assert found(healthy)["view_damaged"].severity == "warning"
    assert path.exists()
    path.write_bytes(b"")
    assert found(healthy)["view_damaged"].severity == "warning"


@pytest.mark.sliced
def test_a_cache_that_knows_more_than_the_journal_is_a_second_witness(healthy: Project) -> None:
    directory = stores_at(healthy.root) / "main"
    kept = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    healthy.apply(entities=[entity("B")])
    store = healthy.workspace().store("main")
    store.close()
    (caches_at(healthy.root) / "main" / VIEW).unlink()
    view_of(store)
    store.close()
    for name, content in kept.items():
        (directory / name).write_bytes(content)
    assert found(healthy)["view_ahead"].severity == "warning"
    healthy.view()
    assert "/ahead-2-" in found(healthy)["view_ahead"].message


def test_views_that_were_never_finished_are_noted(healthy: Project) -> None:
    (caches_at(healthy.root) / "main/.view-1-abcd.duckdb").write_bytes(b"")
    assert found(healthy)["unfinished_view"].severity == "note"


def test_stores_of_branches_that_are_gone_are_noted_and_so_is_the_trash(healthy: Project) -> None:
    healthy.switch("feature", create=True)
    healthy.view("feature")
    healthy.switch("main")
    run(healthy.root, "branch", "-D", "feature")
    finding = found(healthy)["outdated_store"]
    assert (finding.branch, finding.severity) == ("feature", "note")
    branches.collect(healthy.workspace())
    problems = found(healthy)
    assert "outdated_store" not in problems
    assert problems["trash"].severity == "note"
    assert problems["trash"].message.startswith("1 store that KB moved away to ")


def test_a_store_of_a_commit_that_is_checked_out_no_more_is_noted(healthy: Project) -> None:
    run(healthy.root, "switch", "--quiet", "--detach")
    name = healthy.workspace().head().branch
    branches.ensure(healthy.workspace(), name)
    assert "outdated_store" not in found(healthy)
    healthy.switch("main")
    assert found(healthy)["outdated_store"].branch == name


def test_a_store_with_a_long_tail_is_advised_to_compact(healthy: Project) -> None:
    def advised() -> list[str]:
        findings = diagnose(healthy.workspace(), many_records=2).findings
        return [one.remedy for one in findings if one.code == "compact_advised"]

    assert advised() == []
    healthy.apply(entities=[entity("B")])
    assert advised() == ["Run `kb compact`."]
    compact(healthy.workspace(), "main")
    assert advised() == []


def test_a_network_file_system_is_a_warning(healthy: Project, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    point = str(healthy.root.resolve()).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nhost:/x {point} nfs4 rw 0 0\n")
    diagnosis: Diagnosis = diagnose(healthy.workspace(), mounts=mounts)
    finding = next(one for one in diagnosis.findings if one.code == "network_file_system")
    assert "nfs4" in finding.message
    assert network_mount(healthy.root.parent, mounts) is None
    mounts.write_text(f"host:/x {point} nfs4 rw 0 0\n/dev/sdb {point} ext4 rw 0 0\n")
    assert network_mount(healthy.root / ".kb", mounts) is None


def test_where_no_mounts_are_listed_that_is_said(healthy: Project, tmp_path: Path) -> None:
    diagnosis = diagnose(healthy.workspace(), mounts=tmp_path / "none")
    assert [one.code for one in diagnosis.findings if one.severity == "note"] == ["mounts_unknown"]


class Refusing(NoSyncFs):
    """A file system that says of some paths that they cannot be written to, whoever asks."""

    def __init__(self, code: int, *paths: Path) -> None:
        super().__init__()
        self.code = code
        self.paths = paths

    def refusal_to_write(self, path: Path) -> int:
        return self.code if path in self.paths else super().refusal_to_write(path)


@pytest.mark.parametrize(
    ("place", "branch"),
    [
        (".git/kb", ""),
        (f"{STORES_NAME}", ""),
        (f"{STORES_NAME}/main", "main"),
        (f"{STORES_NAME}/main/lock", "main"),
        (f"{STORES_NAME}/main/journal-0000000001.jsonl", "main"),
    ],
)
def test_what_may_not_be_written_is_an_error_that_says_why(healthy: Project, place: str, branch: str) -> None:
    path = healthy.root / place
    healthy.machine.fs = Refusing(errno.EROFS, path)
    diagnosis = diagnose(healthy.workspace())
    (finding,) = (one for one in diagnosis.findings if one.severity != "ok")
    assert (finding.severity, finding.code, finding.branch) == ("error", "read_only_store", branch)
    assert finding.message == (
        f"Nothing can be written, because {path} cannot be written to: Read-only file system. Queries work."
    )
    assert "remount" in finding.remedy
    assert not diagnosis.is_sound


def test_a_cache_that_may_not_be_written_is_a_warning(healthy: Project) -> None:
    healthy.machine.fs = Refusing(errno.EACCES, caches_at(healthy.root))
    finding = found(healthy)["cache_read_only"]
    assert (finding.check, finding.severity) == ("cache", "warning")


def test_the_system_itself_is_asked_what_may_be_written(healthy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode, **_: not (mode == os.W_OK and path.name == "main"))
    assert found(healthy)["read_only_store"].message.endswith(": Permission denied. Queries work.")


class Unlisted(NoSyncFs):
    """A file system on which one folder may not be listed, not even by root."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def listdir(self, path: Path) -> list[str]:
        if path == self.folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return super().listdir(path)


def test_a_folder_that_may_not_be_listed_is_not_checked(healthy: Project) -> None:
    healthy.machine.fs = Unlisted(stores_at(healthy.root))
    diagnosis = diagnose(healthy.workspace())
    assert not diagnosis.is_sound
    assert ("stores", "not_checked", "storage_error") in {
        (one.check, one.severity, one.code) for one in diagnosis.findings
    }


@pytest.mark.parametrize(
    ("prune_before", "snapshot", "said"),
    [
        (None, "snapshot-0000000001.jsonl", "Every record up to seq 2 is good, and everything can be read."),
        (2, "snapshot-0000000001.jsonl", "but what they build on is not: only a cached view can answer."),
    ],
)
def test_what_can_be_read_beside_a_damaged_snapshot_is_said_truthfully(
    healthy: Project, prune_before: int | None, snapshot: str, said: str
) -> None:
    compact(healthy.workspace(), "main")
    healthy.apply(entities=[entity("B")])
    if prune_before:
        compact(healthy.workspace(), "main", prune_before=prune_before)
    (stores_at(healthy.root) / "main" / snapshot).unlink()
    problems = found(healthy)
    assert problems["snapshot_corrupt"].remedy.startswith("Nothing is lost" if prune_before is None else "It replaces")
    assert problems["good_seq"].message.endswith(said)


def test_a_missing_head_is_reported_once_and_the_view_says_how_far_it_had_come(healthy: Project) -> None:
    (stores_at(healthy.root) / "main/head.json").unlink()
    findings = diagnose(healthy.workspace()).findings
    assert [one.check for one in findings if one.severity == "error"] == ["journal"]
    [view] = [one for one in findings if one.check == "cache"]
    assert (view.severity, view.message) == (
        "note", "The view at seq 1 holds 1 row; there is no head to compare it with."
    )  # fmt: skip


def test_an_emptied_store_is_found_with_what_to_do_and_no_repair_that_cannot_help(healthy: Project) -> None:
    directory = stores_at(healthy.root) / "main"
    for path in directory.iterdir():
        path.unlink()
    finding = found(healthy)["head_damaged"]
    assert (finding.severity, finding.message) == ("error", f"{directory} holds nothing, and no store")
    assert "remove it" in finding.remedy
    assert "--rebuild-head" not in finding.remedy


@pytest.mark.parametrize(("version", "is_old"), [("2.29.3", True), ("2.30.0", False), ("3.0.0", False)])
def test_a_git_older_than_what_kb_is_tried_with_is_reported(
    healthy: Project, tmp_path: Path, version: str, is_old: bool
) -> None:
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    stand_in.write_text(
        f'#!/bin/sh\ncase "$*" in *--version) echo "git version {version}"; exit;; esac\n'
        f'PATH="{os.environ["PATH"]}"\nexec git "$@"\n'
    )
    stand_in.chmod(0o755)
    env = {**healthy.machine.env, "PATH": f"{stand_in.parent}:/usr/bin:/bin"}
    healthy.machine = Machine(healthy.machine.fs, healthy.machine.clock, env)
    old = [one for one in diagnose(healthy.workspace()).findings if one.code == "git_too_old"]
    assert bool(old) is is_old
    assert all("2.54" in one.remedy for one in old)


def test_the_disk_is_timed_when_there_is_something_to_time_it_with(healthy: Project) -> None:
    before = sorted(caches_at(healthy.root).rglob("*"))
    codes = {one.code for one in diagnose(healthy.workspace(), probe=NoSyncFs()).findings}
    assert "speed" in codes
    assert sorted(caches_at(healthy.root).rglob("*")) == before
