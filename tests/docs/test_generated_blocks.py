"""The generated parts of the documentation say what the code says."""

from __future__ import annotations

import pytest

from kbcore.errors.remedies import for_shell
from tests.support.docs.regenerate_docs import BLOCKS, COMMAND, DOCS, Block, error_classes, error_table


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}: {block.name}" for block in BLOCKS])
def test_a_generated_block_is_up_to_date(block):
    assert block.current() == block.expected(), f"docs/{block.page} is out of date; run: {COMMAND}"


def test_every_generated_block_of_a_page_has_a_generator():
    known = {(block.page, block.name) for block in BLOCKS}
    for page in DOCS.rglob("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("<!-- generated: "):
                name = line.removeprefix("<!-- generated: ").removesuffix(" -->")
                assert (page.relative_to(DOCS).as_posix(), name) in known


def test_a_stale_block_is_found_and_corrected_without_changing_the_rest(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: x -->\nold\n<!-- end of x -->\nafter\n", encoding="utf-8")
    block = Block(str(page), "x", lambda: "new")
    assert block.current() != block.expected()
    assert block.write()
    assert block.current() == block.expected()
    assert not block.write()
    assert page.read_text(encoding="utf-8") == ("before\n<!-- generated: x -->\n\nnew\n\n<!-- end of x -->\nafter\n")


def test_every_error_has_a_status_and_a_code_of_its_own_and_a_remedy():
    errors = error_classes()
    assert len({error.exit_status for error in errors}) == len(errors)
    assert len({error.code for error in errors}) == len(errors)
    for error in errors:
        assert error.exit_status not in {0, 1}
        assert for_shell(error.default_hint).endswith(".")
        assert f"| `{error.code}` | {error.exit_status} |" in error_table()
