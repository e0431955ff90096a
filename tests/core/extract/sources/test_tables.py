"""Faults of tables: each is one problem, however many rows have it."""

from __future__ import annotations

from kbcore.extract.facts import SourceFile
from kbcore.extract.sources.extractor import EXTRACTOR


def problems(text: str, **entry: object) -> list[tuple[str, int, str]]:
    settings = {"glob": "t.csv", "type": "req", "id": "{id}", **entry}
    found = EXTRACTOR.extract(SourceFile("t.csv", text.encode()), settings).problems
    return [(one.code, one.line, one.message) for one in found]


def test_a_wrong_head_of_a_table_is_one_problem_with_the_number_of_rows_and_the_columns() -> None:
    rows = "key,name\n" + "".join(f"R-{n},Title\n" for n in range(500))
    [(code, line, message)] = problems(rows)
    assert (code, line) == ("missing_id", 2)
    assert "likewise 499 further entries" in message
    settings = {"glob": "t.csv", "type": "req", "id": "{id}"}
    [found] = EXTRACTOR.extract(SourceFile("t.csv", rows.encode()), settings).problems
    assert "'key', 'name'" in found.hint


def test_rows_with_more_cells_than_the_head_are_one_problem() -> None:
    rows = "id,title\nR-1,a\nR-2,b,c\nR-3,b,c,d\n"
    [(code, line, message)] = problems(rows)
    assert (code, line) == ("more_cells", 3)
    assert message.startswith("2 rows")
    [(_, line, message)] = problems("id,title\nR-2,b,c\n")
    assert (line, message.startswith("the row has 3 cells")) == (2, True)


def test_the_same_value_that_a_map_lacks_is_one_note() -> None:
    rows = "id,title,status\n" + "".join(f"R-{n},T,{'odd' if n % 2 else 'even'}\n" for n in range(10))
    found = problems(rows, status={"field": "status", "map": {"open": "open"}})
    assert [(code, line) for code, line, _ in found] == [("unmapped_value", 2), ("unmapped_value", 3)]
    assert all("likewise 4 further entries" in message for _, _, message in found)


def test_problems_of_different_ids_stay_apart() -> None:
    found = problems("id,title\nR-1,a\nR-1,b\nR-2,a\nR-2,b\n")
    assert [(code, line) for code, line, _ in found] == [("repeated_id", 3), ("repeated_id", 5)]
