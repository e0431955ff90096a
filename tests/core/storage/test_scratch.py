"""The private folder of a process goes with the process, also when that is killed; nothing else is removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.cli import ROOT
from tests.support.repository.repos import git_env

MAKING = """
import sys, time
from kbcore.storage import scratch
from kbcore.view.sandbox import Sandbox, Times

print(scratch.made_private_folder(), flush=True)
if sys.argv[1] == "stays":
    with Sandbox(lambda table, path: open(path, "w").close(), Times(600)) as sandbox:
        sandbox.rows("select 1")
        print(sandbox._folder.name, flush=True)
        time.sleep(600)
"""


class Process:
    """A process that has made its private folder, in which the folder of a sandbox is."""

    def __init__(self, place: Path) -> None:
        command = [sys.executable, "-c", MAKING, "stays"]
        self.running = subprocess.Popen(command, stdout=subprocess.PIPE, env=env_of(place), text=True)
        assert self.running.stdout
        self.folder = Path(self.running.stdout.readline().strip())
        self.sandbox = Path(self.running.stdout.readline().strip())

    def kill(self) -> None:
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()
        assert self.running.stdout
        self.running.stdout.close()


def env_of(place: Path) -> dict[str, str]:
    return {**git_env(), "PYTHONPATH": str(ROOT), "TMPDIR": str(place)}


def another_process(place: Path) -> None:
    """Make a private folder in a process that ends as it should."""
    subprocess.run([sys.executable, "-c", MAKING, "ends"], env=env_of(place), check=True, capture_output=True)


@pytest.mark.sliced
def test_what_a_killed_process_left_is_removed_by_the_next_one_and_what_a_living_one_uses_is_not(
    tmp_path: Path,
) -> None:
    killed, living = Process(tmp_path), Process(tmp_path)
    try:
        killed.kill()
        assert killed.sandbox.is_dir()
        assert killed.sandbox.parent == killed.folder
        another_process(tmp_path)
        assert [*tmp_path.iterdir()] == [living.folder]
        assert living.sandbox.is_dir()
    finally:
        living.kill()
    another_process(tmp_path)
    assert [*tmp_path.iterdir()] == []


def left_by_a_killed_process(place: Path) -> Path:
    killed = Process(place)
    killed.kill()
    return killed.folder


@pytest.mark.sliced
def test_links_in_what_a_killed_process_left_are_removed_and_not_followed(tmp_path: Path) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    kept.mkdir()
    (kept / "mine").write_text("")
    folder = left_by_a_killed_process(place)
    (folder / "link").symlink_to(kept)
    (folder / "within").mkdir()
    (folder / "within/link").symlink_to(kept)
    another_process(place)
    assert [*place.iterdir()] == []
    assert (kept / "mine").exists()


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "what", ["no lock file", "a link", "others may write", "the lock file is a link", "other name"]
)
def test_a_folder_that_no_process_of_this_user_made_is_left_alone(tmp_path: Path, what: str) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    folder = left_by_a_killed_process(place)
    if what == "no lock file":
        (folder / "owner").unlink()
    elif what == "a link":
        folder.rename(kept)
        folder.symlink_to(kept)
    elif what == "others may write":
        folder.chmod(0o777)
    elif what == "the lock file is a link":
        (folder / "owner").rename(kept)
        (folder / "owner").symlink_to(kept)
    else:
        folder = folder.rename(place / "kb-mine")
    before = sorted(folder.iterdir())
    another_process(place)
    assert sorted(folder.iterdir()) == before


@pytest.mark.sliced
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    folder = left_by_a_killed_process(tmp_path)
    os.chown(folder, 12345, -1)
    another_process(tmp_path)
    assert folder.is_dir()


@pytest.mark.sliced
def test_a_process_removes_a_bounded_number(tmp_path: Path) -> None:
    model = left_by_a_killed_process(tmp_path)
    for number in range(19):
        shutil.copytree(model, tmp_path / f"kb-{number:016x}")
    for left in (12, 4, 0):
        another_process(tmp_path)
        assert len([*tmp_path.iterdir()]) == left
