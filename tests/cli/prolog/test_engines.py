"""``kb prolog engines`` and ``kb prolog install``, and what works without an engine."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import tarfile

import pytest

from tests.support.logic.engines import engine_variables


def test_json_says_that_no_goal_was_run_without_an_engine(synced, kb, user):
    user.setenv("KB_LOGIC_ENGINE", "native")
    user.setenv("KB_SWIPL", "/nowhere/swipl")
    [answer] = kb("prolog", "-g", "true", "--json").json["answers"]
    assert answer["status"] == "not_run"


@pytest.mark.sliced
def test_without_an_engine_what_needs_none_still_works(synced, kb, any_engine, user, tmp_path):
    kb("prolog", "-g", ":assert p(1).")
    user.setenv("KB_LOGIC_ENGINE", "wasm")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    ran = kb("prolog", "-g", "p(X)")
    assert ran.status == 31
    assert ran.err.splitlines()[0] == "error: There is no Prolog engine on this machine."
    assert ran.err.splitlines()[1].startswith("  wasm: ")
    assert "kb prolog install" in ran.err
    assert kb("prolog", "-g", ":snapshot").out == "p(1).\n"
    assert kb("prolog", "-g", ":symbols").out == "p/1\n"
    assert kb("prolog", "-g", ":reset").status == 0
    assert kb("query", "req").status == 0
    shown = kb("prolog", "engines")
    assert (shown.status, "missing   wasm: " in shown.out) == (31, True)
    user.setenv("KB_LOGIC_ENGINE", "fast")
    assert kb("prolog", "-g", "true").status == 63


@pytest.mark.sliced
def test_the_engines_of_the_machine_are_listed(synced, kb, engine):
    name = engine["KB_LOGIC_ENGINE"]
    ran = kb("prolog", "engines")
    assert ran.status == 0
    assert re.search(rf"^used      {name}: SWI-Prolog \d+\.\d+\.\d+, run by /", ran.out, re.MULTILINE)
    found = kb("prolog", "engines", "--json").json
    assert found["used"] == name
    assert [one["name"] for one in found["engines"]] == ["native", "wasm"]


def _npm(folder, archive):
    """Make a program `npm` that packs a file, or fails as without a connection."""
    folder.mkdir()
    script = folder / "npm"
    works = f'#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done\ncp {archive} "$2/p.tgz"\n'
    script.write_text(works if archive else "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    script.chmod(0o755)


def test_an_install_without_a_connection_says_what_is_missing(synced, kb, user, tmp_path):
    _npm(tmp_path / "bin", None)
    user.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ran = kb("prolog", "install")
    assert ran.status == 31
    assert "error: npm could not fetch swipl-wasm@" in ran.err
    assert "npm says: npm error code ENOTFOUND" in ran.err
    assert "`kb prolog install` again" in ran.err
    assert not [*(tmp_path / "data").rglob("*.wasm")]


def test_a_package_with_another_digest_is_refused(synced, kb, user, tmp_path):
    archive = tmp_path / "other.tgz"
    with tarfile.open(archive, "w:gz") as made:
        made.addfile(tarfile.TarInfo("package/package.json"), io.BytesIO())
    _npm(tmp_path / "bin", archive)
    user.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ran = kb("prolog", "install")
    assert ran.status == 31
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert f"its SHA-512 is {digest}, not " in ran.err
    assert "Nothing was installed." in ran.err
    assert not [*(tmp_path / "data").rglob("package.json")]


@pytest.mark.sliced
def test_a_package_that_is_there_is_not_fetched_again(synced, kb, user):
    for name, value in engine_variables("wasm").items():
        user.setenv(name, value)
    ran = kb("prolog", "install")
    assert (ran.status, "was there already, in" in ran.out) == (0, True)
    assert kb("prolog", "install", "--json").json["status"] == "present"
