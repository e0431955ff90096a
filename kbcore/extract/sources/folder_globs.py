"""Globs that mean files which were found: those of a profile where they are, and the fewest for folders. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kbcore.extract.sources import patterns, profiles
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.source import texts
from kbcore.text.globs import common_folder, fixed_part, glob_of, matches

_MOST_FOLDERS: Final = 6
"""Of a profile, more folders than these are one glob with ``**``."""


def placed(profile: str, files: Sequence[str]) -> dict[str, Any] | None:
    """Return an entry with a profile, with globs where its own do not mean the files; None where none can."""
    own = texts(profiles.read(profile)["source"]["glob"])
    if not files:
        return None
    if all(matches(path, [patterns.plain_glob(glob) for glob in own]) for path in files):
        return {"profile": profile}
    bases: dict[str, set[str]] = {}
    for path in files:
        parts = path.split("/")
        for glob in own:
            tail = _tail(glob)
            depth = tail.count("/") + 1
            if len(parts) >= depth and matches("/".join(parts[-depth:]), [patterns.plain_glob(tail)]):
                bases.setdefault(glob, set()).add("/".join(parts[:-depth]))
                break
    found: list[str] = []
    for glob, folders in bases.items():
        tail = _tail(glob)
        if len(folders) > 1 and ("**/" in glob or len(folders) > _MOST_FOLDERS):
            found.append(below(common_folder(folders), tail))
        else:
            found += [in_folder(folder, tail) for folder in sorted(folders)]
    found = list(dict.fromkeys(found))
    return {"profile": profile, "glob": found if len(found) > 1 else found[0]} if found else None


def with_files(entry: dict[str, Any] | None, profile: str, files: Sequence[str]) -> dict[str, Any] | None:
    """Return an entry of a profile that means these files as well, each by its path; None where it means none."""
    if not files:
        return entry
    own = texts(resolved(entry)["glob"]) if entry else ()
    globs = list(dict.fromkeys((*own, *map(glob_of, files))))
    return {"profile": profile, "glob": globs if len(globs) > 1 else globs[0]}


def _tail(glob: str) -> str:
    """Return the part of a glob after its fixed folders and ``**``."""
    fixed = fixed_part(patterns.plain_glob(glob))
    rest = glob.removeprefix(f"{fixed}/") if fixed else glob
    return rest.removeprefix("**/")


def covering(base: str, own: Sequence[str], others: Sequence[str], tail: str) -> list[str]:
    """Return globs that mean the files of these folders at or below a base, and of no other ones."""
    if len(own) == 1:
        return [in_folder(own[0], tail)]
    if base and not others:
        return [below(base, tail)]
    found = [in_folder(base, tail)] if base in own else []
    start = len(base) + 1 if base else 0
    for child in dict.fromkeys(one[start:].split("/")[0] for one in own if one != base):
        path = f"{base}/{child}" if base else child
        own_inside, others_inside = at_or_below(own, path), at_or_below(others, path)
        found += covering(path, own_inside, others_inside, tail)
    return found


def at_or_below(folders: Iterable[str], path: str) -> list[str]:
    """Return those of these folders that a path names or contains."""
    return [one for one in folders if f"{one}/".startswith(f"{path}/")]


def in_folder(folder: str, tail: str) -> str:
    """Return the glob that means the files of a folder that fit a tail."""
    return f"{glob_of(folder)}/{tail}" if folder else tail


def path_in(folder: str, name: str) -> str:
    """Return the path of a file of a folder."""
    return f"{folder}/{name}" if folder else name


def below(folder: str, tail: str) -> str:
    """Return the glob that means the files at any depth of a folder that fit a tail."""
    return in_folder(folder, f"**/{tail}")
