"""The benchmarks run, and their arithmetic holds. How fast anything is, no test says."""

from __future__ import annotations

import sys

import pytest

from benchmarks import generate, page, stores
from benchmarks.__main__ import QUESTIONS, main
from benchmarks.measure import ProcessFailed, Sample, Series, in_turns, process, together
from benchmarks.table import HEADINGS, Row, markdown
from kbcore.storage import verify
from tests.support.project import Project
from tests.support.repos import git_env
from tests.support.stores import view_of


def series(*walls_s: float, cpu_s: float | None = None) -> Series:
    return Series(tuple(Sample(wall_s, cpu_s) for wall_s in walls_s))


def row(kb: Series, floor: Series, at_most: float | None = 2.0) -> Row:
    return Row("a question", "10 things", kb, floor, at_most, 3 * 2**20)


def test_every_question_runs_and_has_its_rows_in_one_table(tmp_path, capsys):
    assert main(["--quick", "--directory", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == list(HEADINGS)
    assert len(lines) == 2 + len(QUESTIONS) + 3, "mcp_upsert has three rows, new_branch has two"
    assert list(tmp_path.iterdir()) == [], "a run removes what it made"


def test_figures_of_a_part_or_of_small_sizes_are_not_written_down(capsys):
    for arguments in (["--quick"], ["--questions", QUESTIONS[0]]):
        with pytest.raises(SystemExit) as ended:
            main(["--write", *arguments])
        assert ended.value.code == 2
    assert "whole run" in capsys.readouterr().err


def test_works_are_run_in_turns_after_their_warm_ups():
    log: list[str] = []

    def work(name: str) -> Sample:
        log.append(name)
        return Sample(float(len(log)))

    first, second = in_turns(lambda: work("a"), lambda: work("b"), rounds=2, warm_ups=1)
    assert "".join(log) == "ababab"
    assert (first.walls_s, second.walls_s) == ([3.0, 5.0], [4.0, 6.0])


def test_a_process_is_measured_by_clock_processor_and_memory(tmp_path):
    busy = "sum(range(2_000_000)); held = bytearray(60 * 2**20)"
    sample = process([sys.executable, "-c", busy], cwd=tmp_path, env=git_env())
    assert sample.cpu_s > 0
    assert sample.wall_s > 0
    assert sample.peak_bytes > 60 * 2**20


def test_a_process_that_fails_is_no_measurement(tmp_path):
    words = [sys.executable, "-c", "raise SystemExit('broken')"]
    with pytest.raises(ProcessFailed, match="broken"):
        process(words, cwd=tmp_path, env=git_env())
    process(words, cwd=tmp_path, env=git_env(), allowed=(1,))


def test_runs_one_after_the_other_add_up_but_for_their_memory():
    assert together(Sample(1.0, 0.5, 30), Sample(2.0, 0.25, 20)) == Sample(3.0, 0.75, 30)


def test_a_ratio_is_of_medians_and_is_held_against_its_aim():
    assert row(series(1.0, 9.0, 4.0), series(2.0, 1.0, 8.0)).ratio == 2.0
    assert row(series(4.0), series(2.0)).is_met is True
    assert row(series(4.1), series(2.0)).is_met is False
    assert row(series(4.0), series(2.0), None).is_met is None
    assert row(series(4.0, cpu_s=3.0), series(2.0, cpu_s=2.0)).cpu_ratio == 1.5
    assert row(series(4.0), series(2.0, cpu_s=2.0)).cpu_ratio is None


def test_the_table_shows_medians_extremes_and_units():
    heading, _, line = markdown([row(series(0.5, 2.0, 1.5), series(0.004, 0.0123, 0.0045))]).splitlines()
    assert len(heading) == len(line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2:] == [
        "1.50 s (500 ms to 2.00 s)",
        "4.50 ms (4.00 ms to 12.3 ms)",
        "333.33",
        "",
        "2",
        "no",
        "3 MiB",
    ]


def test_new_figures_replace_the_old_ones_and_nothing_else():
    old = "before\n<!-- measured: figures -->\nold\n<!-- end of figures -->\nafter\n"
    new = "before\n<!-- measured: figures -->\n\nnew\n\n<!-- end of figures -->\nafter\n"
    assert page.replaced(old, "new") == new
    assert page.replaced(new, "new") == new
    with pytest.raises(ValueError, match="must hold"):
        page.replaced("no place for figures", "new")


def test_the_page_has_a_place_for_figures():
    assert page.replaced(page.PAGE.read_text(encoding="utf-8"), "new")


def test_documents_are_the_same_every_time_and_each_states_one_edge(tmp_path):
    project = Project(tmp_path / "one")
    generate.write_documents(project.root, 60)
    generate.write_documents(tmp_path / "two", 60)
    texts = [
        sorted((path.name, path.read_text()) for path in (tmp_path / name).rglob("*.md")) for name in ("one", "two")
    ]
    answer = project.sync()
    project.close()
    assert texts[0] == texts[1]
    assert (len(answer.outcome.created), answer.outcome.edges.created) == (60, 60)
    assert (answer.problems, answer.unresolved) == ((), ())
    assert generate.document_id(60) in answer.outcome.created


def test_a_store_of_many_records_is_a_sound_one(tmp_path):
    root = tmp_path / "store"
    stores.fill(root, 50)
    stores.compact(root)
    stores.grow(root, 5)
    workspace = stores.workspace_of(root)
    with view_of(workspace.store(stores.BRANCH)) as view:
        assert view.seq == 55
        assert view.rows("select count(*) from node") == [(55,)]
        assert view.rows("select count(*) from link where stands") == [(54,)]
        assert view.nodes([generate.entity_id(25)])
    proof = verify.prove(workspace.machine.fs, workspace.directory_of(stores.BRANCH))
    assert proof.is_sound
    assert (len(proof.head.segments), len(proof.head.snapshots), proof.good_seq) == (2, 1, 55)
