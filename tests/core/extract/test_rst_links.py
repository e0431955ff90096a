"""The documents that a reStructuredText document links to, and what links to none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract.mentions import mentions
from kbcore.extract.rst_links import linked_documents

PATH = "docs/guide/page.rst"


def found(body: str) -> list[tuple[str, int]]:
    return list(linked_documents(body, 1, PATH))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("See :doc:`other`.", [("docs/guide/other.rst", 1)]),
        ("See :doc:`the other one <../other>`, :doc:`a`.", [("docs/other.rst", 1), ("docs/guide/a.rst", 1)]),
        ("See `this <other.rst>`_ and `that <../new.md#part>`__.", [("docs/guide/other.rst", 1), ("docs/new.md", 1)]),
        (".. _other: other.rst", [("docs/guide/other.rst", 1)]),
        (
            ".. toctree::\n   :maxdepth: 2\n\n   a\n   The title <sub/b>\n   self\n   all/*\n   https://x.org/a\n\nText.",
            [("docs/guide/a.rst", 4), ("docs/guide/sub/b.rst", 5)],
        ),
        (".. note::\n\n   See :doc:`other`.", [("docs/guide/other.rst", 3)]),
    ],
)
def test_roles_hyperlinks_and_entries_of_a_toctree_are_links(body: str, expected: list[tuple[str, int]]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "``:doc:`other```",
        ".. code-block:: rst\n\n   :doc:`other`",
        "For example::\n\n   :doc:`other`",
        ".. A comment :doc:`other`\n   and :doc:`more`",
        "See :doc:`/absolute`.",
        "See :doc:`../../../outside`.",
        "See `x <https://example.org/a.rst>`_ and `y <picture.png>`_.",
        "See :ref:`other`.",
    ],
)
def test_code_comments_addresses_and_names_from_the_top_of_the_site_are_none(body: str) -> None:
    assert found(body) == []


def test_a_pep_links_to_others_by_the_role_and_by_their_numbers_in_the_text() -> None:
    text = "PEP 257 and PEP-300, not PEP 3.11 or ``PEP 1``."
    body = f"As :pep:`8`, :pep:`the later one <0301>` and :pep:`9#names` say.\n\n{text}"
    peps = [("peps/pep-0008.rst", 1), ("peps/pep-0301.rst", 1), ("peps/pep-0009.rst", 1)]
    more = [("peps/pep-0257.rst", 3), ("peps/pep-0300.rst", 3)]
    assert list(linked_documents(body, 1, "peps/pep-0007.rst")) == [*peps, *more]
    assert found(body) == []


def test_a_document_that_is_linked_to_twice_is_mentioned_once_and_itself_never() -> None:
    links, problems = mentions(":doc:`a` :doc:`page`\n\n`a <a.rst>`_", 7, PATH, "P")
    assert [(one.target, one.line, one.is_path) for one in links] == [("docs/guide/a.rst", 7, True)]
    assert not problems


@given(st.text(alphabet=":doc`<>_. /\n\tab-*", max_size=80))
def test_any_text_gives_paths_within_the_repository_and_lines_of_the_text(body: str) -> None:
    for target, line in found(body):
        assert not target.startswith(("/", ".."))
        assert 1 <= line <= body.count("\n") + 1
