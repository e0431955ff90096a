"""Vectors that came together in any steps find what those made at once find; the file of them is not trusted."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.text.embedding import name_of_model
from kbcore.view import text_documents
from kbcore.view.cache_files import MEANINGS
from kbcore.view.entity_vectors import EntityVectors, VectorsByDigest
from tests.core.sync.searched import ask, doc
from tests.support.generators.histories import basis_at, entries_of, laws, records
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project
from tests.support.views.grown import built

QUESTIONS = ("refund a payment", "The document 1", "session")


def read(wanted):
    """Read documents that say their own hashes; some cannot be read."""
    return [(digest, f"The document {digest}") for _, digest in wanted if digest and digest[0] != "2"]


def made(view, known, at=None):
    meanings = EntityVectors()
    meanings.read(view, read, at, known)
    return meanings


def held(meanings):
    return meanings.mark, len(meanings), [meanings.nearest(text, None) for text in QUESTIONS]


@laws(4)
@given(records(), st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_meanings_that_took_changes_in_any_steps_are_those_read_at_once(history, steps):
    entries = entries_of(history)
    position = min(steps[0], len(entries))
    known = VectorsByDigest(name_of_model())
    with built(entries, position) as view:
        text_documents.attach_bodies(view, "")
        meanings = made(view, known)
        for size in [*steps[1:], len(entries)]:
            part = entries[position : position + size]
            position += len(part)
            if part:
                view.extend(iter(part), basis_at(entries, position))
            meanings.read(view, read, None, known)
            assert held(meanings) == held(made(view, VectorsByDigest(name_of_model())))
        past = made(view, known, position // 2)
        with built(entries, position // 2) as then:
            text_documents.attach_bodies(then, "")
            assert held(past) == held(made(then, known))


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=5), st.integers(0, 3000), st.binary())
def test_a_file_of_vectors_is_taken_as_it_was_written_or_not_at_all(digests, place, other):
    vectors = VectorsByDigest("a model")
    vectors.make({digest: digest.hex() for digest in digests})
    data = vectors.as_bytes(digests)
    again = VectorsByDigest("a model")
    assert again.take(data)
    assert (again.matrix(digests) == vectors.matrix(digests)).all()
    assert not again.fresh
    changed = data[:place] + other + data[place + len(other) :]
    assert changed == data or not VectorsByDigest("a model").take(changed)
    assert not VectorsByDigest("another").take(data)
    assert not VectorsByDigest("a model").take(other)


FILES = {
    "docs/requirements/idle.md": doc("REQ-1", "Log out inactive users", "Whoever does nothing for ten minutes leaves."),
    "docs/requirements/pay.md": doc("REQ-2", "Refunds", "Money goes back to the card within a week."),
    "docs/adr/db.md": doc("ADR-1", "PostgreSQL", "Rows are kept in a relational database."),
}
QUESTION = "how long may someone stay idle before the session expires"


@pytest.fixture(scope="module")
def meant(tmp_path_factory):
    """A project in which somebody has asked a question, which is only read and copied."""
    project = Project(tmp_path_factory.mktemp("meant") / "repo")
    project.sync(FILES)
    found(project)
    yield project
    project.close()


def found(project, text=QUESTION, **asked):
    page = ask(project, text, is_of_words=False, **asked)
    return {node.id: page.found.ranks.get(node.id) for node in page.entities}


def cached(project):
    return caches_at(project.root) / "main" / MEANINGS


def test_vectors_are_kept_and_another_process_makes_none(meant, tmp_path):
    other = Project(shutil.copytree(meant.root, tmp_path / "repo"), is_new=False)
    before = cached(other).stat().st_ino
    assert found(other) == found(meant)
    assert cached(other).stat().st_ino == before
    other.close()


@pytest.mark.parametrize("harm", ["gone", "garbage", "cut", "folder", "longer", "link"])
def test_harm_to_the_vectors_costs_time_and_no_answer(meant, tmp_path, harm):
    other = Project(shutil.copytree(meant.root, tmp_path / "repo"), is_new=False)
    path = cached(other)
    whole = path.read_bytes()
    path.unlink()
    if harm == "folder":
        path.mkdir()
    elif harm == "link":
        (tmp_path / "outside").write_bytes(whole)
        path.symlink_to(tmp_path / "outside")
    elif harm != "gone":
        path.write_bytes({"garbage": b"x" * 900, "cut": whole[:-7], "longer": whole + b"x" * 272}[harm])
    assert found(other) == found(meant)
    other.close()


def test_what_is_written_is_found_by_its_meaning_at_once_and_what_is_gone_is_not(meant, tmp_path):
    other = Project(shutil.copytree(meant.root, tmp_path / "repo"), is_new=False)
    assert next(iter(found(other))) == "REQ-1"
    other.sync({"docs/requirements/idle.md": doc("REQ-1", "Colours", "The page is green.")})
    assert "REQ-1" not in found(other)
    assert next(iter(found(other, at=1))) == "REQ-1"
    other.apply(
        entities=[{"id": "REQ-9", "type": "req", "title": "Idle sessions expire after an hour", "status": "open"}]
    )
    assert next(iter(found(other))) == "REQ-9"
    other.close()


def test_the_first_question_says_what_making_many_vectors_took_and_later_ones_do_not(meant, tmp_path, monkeypatch):
    monkeypatch.setattr("kbcore.sync.searching._MANY_VECTORS", 3)
    other = Project(shutil.copytree(meant.root, tmp_path / "repo"), is_new=False)
    cached(other).unlink()
    first, second = (ask(other, QUESTION, is_of_words=False) for _ in range(2))
    said = first.found.document(first.total)["note"]
    assert said.startswith("The meaning of 3 texts was computed in ")
    assert said in [*first.found.sentences(first.total)]
    assert "note" not in second.found.document(second.total)
    other.close()


def test_a_branch_of_too_many_entities_is_searched_by_words_and_says_so(meant, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_MEANINGS", 2)
    page = ask(meant, QUESTION, is_of_words=False)
    assert page.found.ranks == {}
    assert page.found.document(page.total)["hint"].startswith("The meaning of texts is searched among up to 2 entities")


def test_a_cache_that_cannot_be_written_is_searched_in_memory(meant, tmp_path):
    other = Project(shutil.copytree(meant.root, tmp_path / "repo"), is_new=False)
    shutil.rmtree(caches_at(other.root) / "main")
    (caches_at(other.root) / "main").write_text("in the way")
    again = Project(other.root, is_new=False)
    assert found(again) == found(meant)
    again.close()
    other.close()
