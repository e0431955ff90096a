"""Versions of git that KB is tried with, and the features of the later ones. Plain data.

What KB does depends on what git can do, which it tests; versions are only shown to people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

OLDEST: Final = (2, 30)
"""The oldest version that KB is tried with."""

FEATURES: Final = (
    ((2, 45), "repositories that keep their refs as reftable"),
    ((2, 48), "worktrees with relative paths"),
    ((2, 54), "hooks by configuration"),
)
"""Features of later versions, the oldest first."""

EXTENSIONS: Final = {"refstorage": FEATURES[0], "relativeworktrees": FEATURES[1]}
"""Features that a repository requires of every git that reads it, by name below ``extensions``."""

_NUMBERS: Final = re.compile(r"\b(\d+)\.(\d+)")


def parsed(text: str) -> tuple[int, int] | None:
    """Return the version in what ``git --version`` says; None where it says none."""
    found = _NUMBERS.search(text)
    return (int(found[1]), int(found[2])) if found else None


def lacking(version: tuple[int, int]) -> list[str]:
    """Return what a version does not know of, each with the version that does."""
    return [f"{what} ({_shown(since)})" for since, what in FEATURES if version < since]


def needed(extensions: Iterable[str]) -> str:
    """Say which git to install for a repository that asks for these."""
    known = [EXTENSIONS.get(name.lower()) for name in extensions]
    if not known or None in known:
        return "Install a newer git"
    since, what = max(filter(None, known))
    return f"Install git {_shown(since)} or newer, which reads {what}"


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
