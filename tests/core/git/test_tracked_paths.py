"""The files that git keeps: a path is there when it is a file or a folder, also by way of a link."""

from __future__ import annotations

from kbcore.git import Blob, blobs
from kbcore.git.tracked_paths import TrackedFiles

TREE = {
    "src/a.py": Blob("100644", "1"),
    "docs/link": Blob(blobs.LINK, "2"),
    "vendor/sub": Blob(blobs.SUBMODULE, "3"),
    "src/dangling.py": Blob(blobs.LINK, "4"),
    "docs/out": Blob(blobs.LINK, "5"),
    "docs/round": Blob(blobs.LINK, "6"),
    "src/same.py": Blob(blobs.LINK, "7"),
    "src/bytes.py": Blob(blobs.LINK, "8"),
    r"src/\udcff.py": Blob("100644", "9"),
}


TEXTS = {"2": b"../src", "4": b"nowhere.py", "5": b"../../out", "6": b"round", "7": b"a.py", "8": b"\xff.py"}


def test_files_and_folders_are_there_also_by_way_of_a_link():
    there = ["src/a.py", "src", "./src/../src/a.py", "vendor/sub/y", "."]
    there += ["docs/link", "docs/link/a.py", "docs/link/same.py", "src/bytes.py"]
    gone = {"src/b.py", "sr", "src/a.py/x", "../out", "/etc/passwd"}
    gone |= {"docs/link/x", "src/dangling.py", "docs/out", "docs/out/x", "docs/round"}
    assert TrackedFiles(TREE, TEXTS.get).missing([*there, *gone]) == gone
