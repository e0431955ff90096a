"""The extractors in force decide by their globs which of them reads a file."""

from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.errors import InvalidConfig
from kbcore.sync.wanted_files import first_wanting, is_wanted, wanted
from tests.core.sync.readers import Reader


def test_the_first_extractor_whose_glob_means_a_file_reads_it_with_the_type_of_the_glob() -> None:
    wants = wanted([(Reader("docs/adr/*.md", type_="decision"), {}), (Reader("docs/**"), {})], {}, b"")
    assert first_wanting(wants, "docs/adr/1.md") == (wants[0], "decision")
    assert first_wanting(wants, "docs/adr/1.txt") == (wants[1], None)
    assert first_wanting(wants, "src/1.md") is None
    assert [is_wanted(wants, path) for path in ("docs/1.md", "1.md")] == [True, False]


def test_the_globs_of_all_extractors_together_have_a_limit() -> None:
    many = Reader(*(f"docs/{number}/*.md" for number in range(limits.MAX_GLOBS // 2)))
    assert len(wanted([(many, {}), (many, {})], {}, b"")) == 2
    with pytest.raises(InvalidConfig, match="the limit is 1000") as refused:
        wanted([(many, {}), (many, {}), (Reader("a.md"), {})], {}, b"")
    assert refused.value.details[0].code == "too_many_globs"
