"""H1: paths, names and settings that a repository brings along lead nowhere, wait for nothing, and run nothing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore import ids
from kbcore.errors import InvalidConfig, InvalidQuery, KBError
from kbcore.git import read_head
from kbcore.git.commands import hooks_dir
from kbcore.git.reflog import former_names
from kbcore.git.refs import default_branch, is_in_use, local_branches, worktree_heads
from kbcore.git.repository import find_repository
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.store.pool import StorePool
from kbcore.sync.paths import normal_paths
from kbcore.text.globs import glob_fault
from tests.support.effort.scale import tries
from tests.support.processes.cli import run_kb
from tests.support.processes.hanging import Hung, in_time
from tests.support.repository.places import CACHES_NAME, STORES_NAME, stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git, git_env, run_git

ENTITY = {"id": "N", "type": "req", "title": "new", "status": "open"}


def outcome(use: Callable[[], Any]) -> str:
    """Return how a use ended: nothing when it went well, else the words of a KB error."""
    try:
        with in_time():
            use()
    except KBError as error:
        return error.message if error.hint else f"{error.message} Traceback: without a hint"
    return ""


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_folder(path: Path) -> None:
    path.mkdir()


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the address of a socket is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def put_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def put_loop(path: Path) -> None:
    path.symlink_to(path.name)


ODD = (put_pipe, put_loop, put_zeros, put_folder, put_socket)


PLACES = (
    *(".git/HEAD", ".git/config", ".kb/config.json", ".git/commondir", ".git/packed-refs", ".git/refs/heads/main"),
    *(f"{STORES_NAME}/main/head.json", ".git/index", ".kb/schema/a.yaml", ".git/logs/refs/heads/main"),
    *("docs/requirements/a.md", f"{STORES_NAME}/main/lock", ".kb/rules/a.yaml", "symbols.yaml"),
    f"{STORES_NAME}/main/journal-0000000001.jsonl",
)
"""Files that KB reads without being asked to."""


@pytest.fixture
def used(tmp_path: Path) -> Project:
    """A project with a record and a published view, on a real file system; a secret lies beside it."""
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("s.md", "s.yaml", "config.json"):
        (secret / name).write_text(req("SECRET", title="hidden treasure"))
    project = Project(tmp_path / "p", fs=RealFs())
    project.sync({"docs/requirements/a.md": req("A"), ".kb/config.json": "{}"})
    project.close()
    return project


def three_uses(project: Project) -> list[str]:
    """Read, write and sync, each as a new process would, and return how each ended."""
    found = []
    for use in (lambda: project.node("A"), lambda: project.apply(entities=[ENTITY]), project.sync):
        project.pool = StorePool()
        found.append(outcome(use))
        project.close()
    return found


@pytest.mark.sliced(2)
@pytest.mark.fault("H1")
@pytest.mark.parametrize("place", PLACES[:: tries(2, 1)])
def test_what_is_no_file_in_the_place_of_one_is_refused_at_once(place, used, tally) -> None:
    path = used.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    for put in ODD[: tries(2, len(ODD))]:
        if path.is_file():
            path.unlink()
        put(path)
        tally.tried(3)
        try:
            for said in three_uses(used):
                if "treasure" in said or "Traceback" in said:
                    tally.violated((place, put.__name__), said)
        except Hung:
            tally.violated((place, put.__name__), "it waits for ever")
        path.rmdir() if put is put_folder else path.unlink()
    tally.done(at_least=6)


@pytest.mark.sliced
@pytest.mark.fault("H1")
def test_a_link_out_of_the_repository_is_not_followed_wherever_it_lies(used, tally, tmp_path) -> None:
    root, secret = used.root, tmp_path / "secret"
    used.write(
        {".kb/config.json": '{"extractors": {"markdown": {"paths": {"req": ["docs/**/*.md", "docs/out/*.md"]}}}}'}
    )
    for place, target in (
        (".kb/config.json", secret / "config.json"),
        (".kb/schema", secret),
        (".kb/schema/a.yaml", secret / "s.yaml"),
        (".kb/rules", secret),
        (".kb/rules/a.yaml", Path("../../../secret/s.yaml")),
        ("docs/out", secret),
        ("docs/out", Path("../../secret")),
        ("docs/requirements/out.md", secret / "s.md"),
        ("symbols.yaml", secret / "s.yaml"),
        (f"{STORES_NAME}/main/head.json", secret / "config.json"),
        (CACHES_NAME, secret),
    ):
        path, kept = root / place, tmp_path / "kept"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.rename(kept)
        path.symlink_to(target)
        used.pool = StorePool()
        said = outcome(lambda: (used.sync(), used.workspace().schema, used.workspace().texts_in("rules")))
        tally.tried()
        path.unlink()
        kept.rename(path) if kept.exists() else None
        used.pool = StorePool()
        if "treasure" in said or used.node("SECRET") is not None:
            tally.violated((place, target), said or "it was read")
        used.close()
    assert sorted(one.name for one in secret.iterdir() if one.suffix in {".md", ".yaml", ".json"}) == [
        "config.json",
        "s.md",
        "s.yaml",
    ]
    tally.done(at_least=11)


@pytest.mark.fault("H1")
def test_paths_that_settings_and_users_name_stay_inside(used, tally, tmp_path) -> None:
    for glob in ("../x/*.md", "/etc/*", "a/../../b", "..", "a\\b", "", " ", "./../x", "docs/../../p/*.md"):
        assert glob_fault(glob), glob
        used.write({".kb/config.json": json.dumps({"extractors": {"manifest": {"paths": [glob]}}})})
        with pytest.raises(InvalidConfig, match=r"cannot be used as a glob"):
            _ = used.workspace().config
        tally.tried()
    used.write({".kb/config.json": "{}"})
    (used.root / "docs/out").symlink_to(tmp_path / "secret")
    for path in ("..", "../secret/s.md", "/etc/passwd", "docs/../../secret", "docs/out/s.md", str(tmp_path)):
        with pytest.raises(InvalidQuery, match="is not inside the repository"):
            normal_paths([path], used.root, used.root)
        tally.tried()
    assert normal_paths(["docs/out"], used.root, used.root) == ("docs/out",)  # the link, not where it leads
    tally.done()


@pytest.mark.fault("H1")
def test_a_start_that_is_no_repository_is_refused_in_words(used, tally, tmp_path) -> None:
    for number, put in enumerate(ODD):
        put(tmp_path / f"odd{number}")
    starts = [
        *(tmp_path / f"odd{number}" for number in range(len(ODD))),
        tmp_path / "none",
        tmp_path / "secret",
        Path("/dev/null"),
    ]
    starts += [used.root / "docs/requirements/a.md/x", tmp_path / ("x" * 300), tmp_path / "odd0" / "x"]
    for start in starts:
        with in_time(), pytest.raises(KBError) as caught:
            find_repository(start)
        assert caught.value.hint
        tally.tried()
    (tmp_path / "link").symlink_to(used.root)
    assert find_repository(tmp_path / "link" / "docs" / "..").worktree == used.root
    ran = run_kb(tmp_path, "-C", str(tmp_path / "odd0"), "status")
    assert (ran.status, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    tally.done()


NAMES = (
    *(
        "--output=pwn",
        "-x",
        "--upload-pack=touch",
        "CON",
        "con",
        "Con",
        "aux.txt",
        "nul",
        "a%2fb",
        "%2e%2e",
        "%",
        "%25",
    ),
    *("a/b/c", "a-b", "A/B", "é", "é", "x" * 200, "a$(touch pwn)", "`touch pwn`", "a;touch${IFS}pwn", "'", '"', "a|b"),
    *(
        "\u202egpj",
        "\U0001f600",
        "main.",
        "HEAD",
        "refs/heads/main",
        "a#b",
        "!x",
        "a&b",
        "(x)",
        "detached-x",
        "=x",
        ",",
        "a@b",
    ),
)
WRITTEN = (
    *(
        b"ref: refs/heads/../../x",
        b"ref: refs/heads/a/../b",
        b"ref: refs/heads/",
        b"ref: ../../etc/passwd",
        b"ref: /etc/x",
    ),
    *(
        b"ref: refs/heads/a\0b",
        b"ref: refs/heads/.kb",
        b"ref: refs/heads/a.lock",
        b"ref: refs/heads/a b",
        b"ref: refs/tags/x",
    ),
    *(
        b"ref: refs/heads/a\nb",
        b"ref: refs/heads/a\\b",
        b"ref:",
        b"",
        b"\xff\xfe",
        b"0" * 39,
        b"ref: refs/heads/a\x1b[31m",
    ),
    *(b"ref: refs/heads/@{-1}", b"ref: refs/heads/a..b"),
)


@pytest.mark.sliced
@pytest.mark.fault("H1")
def test_a_branch_of_any_name_gets_a_directory_of_its_own_and_runs_nothing(tally, tmp_path) -> None:
    project = Project(tmp_path / "p")
    project.apply(entities=[ENTITY])
    before = sorted(path.name for path in tmp_path.iterdir())
    commit = git(project.root, "rev-parse", "HEAD")
    seen: dict[str, str] = {}
    for name in NAMES[:: tries(3, 1)]:
        if run_git(project.root, "symbolic-ref", "HEAD", f"refs/heads/{name}").returncode:
            continue
        run_git(project.root, "update-ref", f"refs/heads/{name}", commit)
        found = read_head(project.workspace().repo, git_env()).branch
        assert found == name
        tally.tried()
        project.apply(entities=[{**ENTITY, "id": f"IN {len(seen)}"}])
        assert project.node(f"IN {len(seen)}") is not None
        directory = ids.encode_branch(name)
        assert seen.setdefault(directory.casefold(), name) == name, f"{name} shares a directory"
        assert (stores_at(project.root) / directory / "head.json").is_file()
    workspace = project.workspace()
    assert {one.name for one in branches.listing(workspace)} >= set(seen.values())
    assert local_branches(workspace.repo, git_env()) >= {"main"}
    for name in seen.values():
        former_names(workspace.repo, git_env(), name)
        is_in_use(workspace.repo, git_env(), name)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert not list(tmp_path.rglob("pwn*"))
    project.close()
    tally.done(at_least=tries(8, 25))


@pytest.mark.fault("H1")
def test_a_head_that_git_would_not_write_is_refused_and_makes_no_path(used, tally, tmp_path) -> None:
    head = used.root / ".git/HEAD"
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    for content in WRITTEN[:: tries(3, 1)]:
        head.write_bytes(content + b"\n")
        for said in three_uses(used):
            if not said or "\x1b" in said or "\0" in said:
                tally.violated(content, said)
        tally.tried()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    tally.done(at_least=tries(5, 15))


def set_traps(project: Project) -> Path:
    """Configure everything by which git runs programs to leave a mark; return the folder of the marks."""
    marks = project.root.parent / "marks"
    marks.mkdir()
    trap = project.root.parent / "trap.sh"
    trap.write_text(f'#!/bin/sh\ntouch "{marks}/$(basename "$0")-$$"\necho "$@" >> "{marks}/args"\ncat\n')
    trap.chmod(0o755)
    hooks = project.root / ".git/traps"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (hooks / name).symlink_to(trap)
    foreign = project.root.parent / "foreign.config"
    foreign.write_text(f"[core]\n\tfsmonitor = {trap}\n[alias]\n\tfor-each-ref = !{trap}\n\tsymbolic-ref = !{trap}\n")
    program = str(trap)
    for key, value in (
        *(
            ("core.fsmonitor", program),
            ("core.hooksPath", str(hooks)),
            ("core.sshCommand", program),
            ("core.pager", program),
        ),
        *(
            ("core.editor", program),
            ("core.askPass", program),
            ("core.gitProxy", program),
            ("sequence.editor", program),
        ),
        *(("core.alternateRefsCommand", program), ("credential.helper", f"!{program}"), ("gpg.program", program)),
        *(("diff.external", program), ("diff.trap.textconv", program), ("diff.trap.command", program)),
        *(("filter.trap.clean", program), ("filter.trap.smudge", program), ("filter.trap.process", program)),
        *(
            ("merge.trap.driver", program),
            ("pager.for-each-ref", program),
            ("pager.log", program),
            ("pager.reflog", program),
        ),
        *(("alias.for-each-ref", f"!{program}"), ("alias.show-ref", f"!{program}"), ("include.path", str(foreign))),
        *(("uploadpack.packObjectsHook", program), ("remote.origin.url", f"ext::{program}"), ("gc.auto", "1")),
        *(
            ("remote.origin.uploadpack", program),
            ("remote.origin.promisor", "true"),
            ("core.fsmonitorHookVersion", "2"),
        ),
        *(("log.showSignature", "true"), ("gpg.format", "openpgp"), ("protocol.ext.allow", "always")),
        *(("includeIf.gitdir:**.path", str(foreign)), ("trailer.x.command", program), ("browser.x.cmd", program)),
    ):
        git(project.root, "config", key, value)
    (project.root / ".git/info").mkdir(exist_ok=True)
    (project.root / ".git/info/attributes").write_text("* filter=trap diff=trap merge=trap\n")
    return marks


@pytest.mark.fault("H1")
def test_nothing_that_a_repository_configures_to_be_run_is_run(used, tally) -> None:
    marks = set_traps(used)
    assert run_git(used.root, "status").returncode == 0
    assert list(marks.iterdir()), "the traps work"
    for mark in marks.iterdir():
        mark.unlink()
    workspace = used.workspace()
    repo, env = workspace.repo, git_env()
    for use in (
        lambda: read_head(repo, env),
        lambda: local_branches(repo, env),
        lambda: worktree_heads(repo, env),
        lambda: default_branch(repo, env),
        lambda: is_in_use(repo, env, "main"),
        lambda: former_names(repo, env, "main"),
        lambda: hooks_dir(repo, env),
        lambda: branches.listing(workspace),
        lambda: branches.collect(workspace),
        lambda: used.sync({"docs/requirements/b.md": req("B")}),
        lambda: used.apply(entities=[ENTITY]),
    ):
        use()
        tally.tried()
        if list(marks.iterdir()):
            tally.violated(use, sorted(marks.iterdir()))
    commands = [
        ["status"],
        ["doctor"],
        ["gc", "--dry-run"],
        ["branch", "list"],
        ["check"],
        ["hooks", "status"],
        ["sync"],
    ]
    for words in commands[: tries(1, len(commands))]:
        run_kb(used.root, *words)
        tally.tried()
        if list(marks.iterdir()):
            tally.violated(words, sorted(marks.iterdir()))
    used.close()
    tally.done(at_least=12)


@pytest.mark.sliced
@pytest.mark.fault("H1")
def test_bytes_that_are_no_text_in_files_of_the_store_and_cache_are_reported_or_ignored(used, tally) -> None:
    """The files that KB keeps for itself may hold a key that is no UTF-8, or JSON without an end to its depth."""
    deep = b'{"format":1,"stamps":' + b'{"a":' * 100_000
    for pattern in (f"{CACHES_NAME}/**/stamps*", f"{STORES_NAME}/main/lock", f"{STORES_NAME}/main/*.json*"):
        for path in list(used.root.glob(pattern)):
            whole = path.read_bytes()
            for bad in (
                b'{"command":"\xff"}',
                whole.replace(b"a", b"\xff"),
                b"\xff" * 300,
                deep,
                b'{"\xed\xa0\x80":1}\n',
            ):
                path.write_bytes(bad)
                for said in three_uses(used):
                    if "Traceback" in said:
                        tally.violated((path, bad[:30]), said)
                tally.tried()
                path.write_bytes(whole)
    tally.done(at_least=15)
