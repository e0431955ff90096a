"""The requirements that the peers which are programs get, as KB gets them: Markdown in a repository."""

from __future__ import annotations

from pathlib import Path

from benchmarks import generate
from benchmarks.cold_sync import first_sync
from benchmarks.measure import ProcessFailed, Sample, together
from benchmarks.place import Place
from tests.support.repository.places import stores_at
from tests.support.repository.repos import make_repository

_FOUND = 1


def repository(place: Place) -> Path:
    """Return a repository with a document for each requirement, and a KB."""
    root = place.directory / "requirements"
    if not root.exists():
        make_repository(root)
        folder = root / "docs" / "requirements"
        folder.mkdir(parents=True)
        for one in generate.requirements(place.sizes.requirements):
            (folder / f"{one.id.lower()}.md").write_text(_document(one), encoding="utf-8")
        place.kb(root, "init", "--no-hooks")
    return root


def taken_in(place: Place) -> Sample:
    """Take all of them into a KB that was just set up; only the sync counts.

    Raises: ``ProcessFailed`` when they were not recorded.
    """
    root = repository(place)
    sample = first_sync(place, root)
    [journal] = (stores_at(root) / "main").glob("journal-*.jsonl")
    if f"REQ-{place.sizes.requirements:05d}".encode() not in journal.read_bytes():
        raise ProcessFailed("kb sync did not take in the requirements")
    return sample


def checked(place: Place) -> Sample:
    """Check them; that something is found is no failure."""
    return place.kb(repository(place), "check", allowed=(0, _FOUND))


def taken_in_and_checked(place: Place) -> Sample:
    """Do both, one after the other."""
    return together(taken_in(place), checked(place))


def checked_again(place: Place) -> Sample:
    """Look for what is new, and check."""
    return together(place.kb(repository(place), "sync"), checked(place))


def _document(one: generate.Requirement) -> str:
    links = f"links: [{{depends_on: [{one.target}]}}]\n" if one.target else ""
    facts = f"id: {one.id}\ntype: req\ntitle: {one.title}\nstatus: active\ntags: [{', '.join(one.tags)}]\n{links}"
    return f"---\n{facts}---\n# {one.title}\n\n{one.text}\n"
