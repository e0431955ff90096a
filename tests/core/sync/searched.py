"""A project with documents, and questions to it."""

from __future__ import annotations

from kbcore import query
from kbcore.query import Query
from kbcore.store import branches
from kbcore.sync.searching import search
from tests.support.repository.project import document


def doc(key, title, body):
    return document(key, body, title=title, status="open")


FILES = {
    "docs/requirements/login.md": doc("REQ-1", "Log in", "Members come in with a passkey.\n\nNo password is kept."),
    "docs/requirements/out.md": doc("REQ-2", "Log out", "A session ends at once."),
    "docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Passwords leak. A passkey cannot be told."),
}


def ask(project, text, *, branch=None, at=None, is_of_words=True, **asked):
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, branch)
    checked = query.check(Query(text=text, **asked), workspace.schema)

    def answer(view):
        from msgspec.structs import replace

        return search(workspace, store, choice.branch, view, replace(checked, at=at), is_of_words=is_of_words)

    return store.read(answer)


def ids(project, text, **asked):
    return [one.id for one in ask(project, text, **asked).entities]
