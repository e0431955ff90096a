"""Random edits of a tree of documents: everything that people, editors and git do to files that a sync reads.

Edits are planned on a picture of the tree and then made in any number of real ones, so that these stay the same.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

FOLDERS = (
    "docs/requirements",
    "docs/requirements/deep",
    "docs/requirements/deep/deeper",
    "docs/tests",
    "docs/adr",
    "docs/elsewhere",
)
NAMES = ("a.md", "b.md", "c.md", "notes.txt")
IDS = ("X-1", "X-2", "X-3", "X-4", "a", "b")
TYPES = ("", "", "", "req", "test", "adr", "nonsense")
BROKEN = (
    "",
    "no front matter\n",
    "---\nid: X-1\ntitle: [\n---\n",
    "---\nid: X-1\n",
    "\xff\xfe",
    "---\ntitle: T\n---\n",
)


class Edit(msgspec.Struct, frozen=True):
    """One change of a tree: its name, the paths that it touches, and what makes it below a root."""

    story: str
    touched: tuple[str, ...]
    make: Callable[[Path], None]

    def __str__(self) -> str:
        return self.story


class Edits:
    """Plans edits; ``files`` are those that are there by now, ``links`` the symbolic links among them."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.files: set[str] = set()
        self.links: set[str] = set()

    def next(self) -> Edit:
        """Return the next edit; its place in the order counts, each builds on the one before."""
        kinds = [self._write] * 8 + [self._manifest]
        if self.files:
            kinds += [self._delete, self._delete, self._rename, self._rename, self._move_folder, self._drop_folder]
            kinds += [self._copy, self._link, self._become_folder]
        return self._dice.choice(kinds)()

    def text(self) -> str:
        """Return the content of a document, good or bad."""
        dice = self._dice
        if dice.random() < 0.15:
            return dice.choice(BROKEN)
        lines = [f"title: T{dice.randrange(3)}", f"status: {dice.choice(['open', 'odd'])}"]
        lines += [f"id: {dice.choice(IDS)}"] if dice.random() < 0.9 else []
        kind = dice.choice(TYPES)
        lines += [f"type: {kind}"] if kind else []
        targets = dice.sample([*IDS, "X-9", "a.md", "../tests/b.md", "../adr/a.md"], dice.randrange(3))
        typed = [
            f"{{type: {dice.choice(['verified_by', 'depends_on', 'relates_to'])}, target: {one}}}" for one in targets
        ]
        links = [dice.choice(pair) for pair in zip(targets, typed, strict=True)]
        lines += [f"links: [{', '.join(links)}]"] if links else []
        return "\n".join(["---", *lines, "---", f"body {dice.randrange(3)}", ""])

    def _place(self) -> str:
        return f"{self._dice.choice(FOLDERS)}/{self._dice.choice(NAMES)}"

    def _some(self) -> str:
        return self._dice.choice(sorted(self.files))

    def _write(self) -> Edit:
        path = self._place() if self._dice.random() < 0.6 or not self.files else self._some()
        text = self.text()

        def make(root: Path) -> None:
            _make_way(root, path)
            (root / path).write_text(text, encoding="latin-1")

        self._now(there=[path])
        return Edit(f"write {path}: {text!r}", (path,), make)

    def _manifest(self) -> Edit:
        ids = self._dice.sample(IDS, 2)
        links = f"links: [{self._dice.choice(IDS)}]"
        text = f"symbols:\n- {{id: {ids[0]}, title: S, {links}}}\n- {{id: {ids[1]}, title: S}}\n"

        def make(root: Path) -> None:
            _make_way(root, "symbols.yaml")
            (root / "symbols.yaml").write_text(text, encoding="utf-8")

        self._now(there=["symbols.yaml"])
        return Edit(f"write symbols.yaml: {text!r}", ("symbols.yaml",), make)

    def _delete(self) -> Edit:
        path = self._some()
        self._now(gone=[path])
        return Edit(f"delete {path}", (path,), lambda root: (root / path).unlink())

    def _rename(self) -> Edit:
        old, new = self._some(), self._place()

        def make(root: Path) -> None:
            if old != new:
                (root / old).rename(root / "moving")
                _make_way(root, new)
                (root / "moving").rename(root / new)

        self._now(gone=[old], there=[new])
        return Edit(f"rename {old} to {new}", (old, new), make)

    def _copy(self) -> Edit:
        old, new = self._some(), self._place()

        def make(root: Path) -> None:
            data = (root / old).read_bytes() if (root / old).is_file() else b""
            _make_way(root, new)
            (root / new).write_bytes(data)

        self._now(there=[new])
        return Edit(f"copy {old} to {new}", (new,), make)

    def _folders(self) -> tuple[str, list[str]]:
        folder = str(Path(self._some()).parent)
        folder = "docs" if folder == "." else folder
        return folder, sorted(path for path in self.files if path.startswith(f"{folder}/"))

    def _move_folder(self) -> Edit:
        (old, inside), new = self._folders(), self._dice.choice([*FOLDERS, "outside"])
        new = f"{new}/moved{self._dice.randrange(2)}"
        if new.startswith(f"{old}/") or old.startswith(new):
            return self._delete()

        def make(root: Path) -> None:
            (root / old).mkdir(parents=True, exist_ok=True)
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(root / new, ignore_errors=True)
            (root / old).rename(root / new)

        gone = [*inside, *(path for path in self.files if path.startswith(f"{new}/"))]
        moved = {path: f"{new}{path.removeprefix(old)}" for path in inside}
        links = [moved[path] for path in inside if path in self.links]
        self._now(gone=gone, there=[*moved.values()])
        self.links |= {*links}
        return Edit(f"move folder {old} to {new}", (old, new), make)

    def _drop_folder(self) -> Edit:
        folder, inside = self._folders()
        self._now(gone=inside)
        return Edit(f"drop folder {folder}", (folder,), lambda root: shutil.rmtree(root / folder, ignore_errors=True))

    def _link(self) -> Edit:
        path = self._place()
        target = self._dice.choice(
            ["b.md", "../tests/a.md", "../../symbols.yaml", "nowhere.md", "/etc/hostname", "deep"]
        )

        def make(root: Path) -> None:
            _make_way(root, path)
            (root / path).symlink_to(target)

        self._now(there=[path])
        self.links.add(path)
        return Edit(f"link {path} to {target}", (path,), make)

    def _become_folder(self) -> Edit:
        """Put a folder that has the name of a document where a document was, with a document in it."""
        path, text = self._some(), self.text()

        def make(root: Path) -> None:
            _make_way(root, f"{path}/a.md")
            (root / path / "a.md").write_text(text, encoding="latin-1")

        self._now(gone=[path], there=[f"{path}/a.md"])
        return Edit(f"folder {path} with a.md: {text!r}", (path,), make)

    def _now(self, gone: Sequence[str] = (), there: Sequence[str] = ()) -> None:
        """Keep the picture: a file that comes makes way for itself, above and below."""
        self.files -= set(gone)
        self.links -= set(gone)
        for path in there:
            above = {path[:at] for at, letter in enumerate(path) if letter == "/"}
            under = {one for one in self.files if one.startswith(f"{path}/")}
            self.files -= above | under
            self.links -= above | under | {path}
            self.files.add(path)


def _make_way(root: Path, path: str) -> None:
    """Let there be nothing at a path, and folders above it."""
    place = root / path
    for folder in [root.joinpath(*place.relative_to(root).parts[:count]) for count in range(1, path.count("/") + 1)]:
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        folder.mkdir(exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
