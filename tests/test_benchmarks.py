"""The benchmarks run, and their arithmetic holds. How fast anything is, no test says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import sys
import xml.etree.ElementTree as ET

import pytest

from benchmarks import fleet, fleet_place, generate, growth, guard, page, peers, plot, report, runs, stored, stores
from benchmarks.__main__ import main
from benchmarks.measure import ProcessFailed, Sample, Series, in_turns, process, together
from benchmarks.peers import Peers
from benchmarks.sizes import FULL, GUARD
from benchmarks.table import HEADINGS, Row, Versus, markdown
from kbcore.storage import verify
from tests.support.repository.project import Project
from tests.support.repository.repos import git_env
from tests.support.repository.stores import view_of


def series(*walls_s: float, cpu_s: float | None = None) -> Series:
    return Series(tuple(Sample(wall_s, cpu_s) for wall_s in walls_s))


def row(kb: Series, floor: Series, at_most: float | None = 2.0, **others) -> Row:
    given = {"name": "a question", "against": "a floor", "count": 10, "unit": "things", "peak_bytes": 3 * 2**20}
    return Row(**{**given, **others}, kb=kb, floor=floor, at_most=at_most)


def rows_growing_with(power: float, **others) -> list[Row]:
    return [row(series(2e-4 * count**power), series(1e-3), count=count, **others) for count in (100, 1_000, 50_000)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> str:
    """The output of a run of three questions. The others run in CI by themselves: `make bench ARGS=--quick`."""
    directory = tmp_path_factory.mktemp("run")
    names = ["unchanged_sync", "watch_save", "new_branch"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["--quick", "--directory", str(directory), "--questions", *names]) == 0
    assert list(directory.iterdir()) == [], "a run removes what it made"
    return out.getvalue()


def test_questions_of_documents_and_of_records_have_their_rows_in_one_table(shown):
    lines = [line for line in shown.partition("### Growth")[0].splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == list(HEADINGS)
    of_documents, of_records = 2, 1  # the latter at two sizes, and new_branch has a row more
    assert len(lines) == 2 + of_documents + 2 * of_records + 1


def test_the_time_from_save_to_record_is_taken_while_the_watcher_runs(shown):
    assert "save to record, watched / bare durable write" in shown


def test_figures_of_small_sizes_are_not_written_down(capsys):
    for arguments in (["--quick"], ["--guard", "--quick"], ["--quick", "--questions", runs.QUESTIONS[0]]):
        with pytest.raises(SystemExit) as ended:
            main(["--write", *arguments])
        assert ended.value.code == 2
    assert "leave --quick out" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_reported_with_what_installs_it(tmp_path, capsys):
    absent = ["--peers", str(tmp_path / "none"), "--questions", "peer_memory", "peer_doorstop", "peer_strictdoc"]
    assert main(["--quick", "--directory", str(tmp_path), *absent]) == 0
    assert capsys.readouterr().out.count(f"not installed ({peers.SET_UP})") == 3


def test_a_peer_is_found_where_it_is_with_the_version_that_it_has(tmp_path):
    package = tmp_path / "node_modules" / peers.SERVER_MEMORY.package
    program = tmp_path / "node_modules" / ".bin" / peers.SERVER_MEMORY.program
    for path, text in ((package / "package.json", '{"version": "1.2.3"}'), (program, "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = Peers(tmp_path).find(peers.SERVER_MEMORY)
    assert found is None or found.label == "server-memory 1.2.3", "None without node"
    assert Peers(tmp_path).find(peers.DOORSTOP) is None


def test_growth_is_the_exponent_of_the_line_through_the_logarithms():
    flat, square = growth.curves([*rows_growing_with(0, name="one"), *rows_growing_with(2, name="two")])
    assert (round(growth.exponent(flat.kb), 6), round(growth.exponent(square.kb), 6)) == (0, 2)
    noisy = ((100, 1.0), (1_000, 12.0), (10_000, 90.0))
    assert 0.9 < growth.exponent(noisy) < 1.1


def test_growth_is_held_against_its_aim_and_asked_only_of_several_sizes():
    [linear] = growth.curves([*rows_growing_with(1, grows_at_most=1.1), row(series(1.0), series(1.0), name="alone")])
    [quadratic] = growth.curves(rows_growing_with(2, grows_at_most=1.1))
    assert (linear.is_met, quadratic.is_met) == (True, False)
    assert len(linear.cells()) == len(growth.HEADINGS)
    assert linear.cells()[1:3] == ("100", "50,000 things")


def test_the_guard_fails_only_on_what_is_worse_three_times():
    ratios = {"held": [1.3], "once": [2.0, 1.0], "always": [2.0, 1.5, 1.9], "new": [99.0]}
    left = {name: list(given) for name, given in ratios.items()}

    def measure(name: str) -> list[Row]:
        return [row(series(left[name].pop(0)), series(1.0), name=name)]

    known = {row(series(1.0), series(1.0), name=name).key: 1.0 for name in ("held", "once", "always")}
    table, holds = guard.guard(ratios, measure, known)
    verdicts = [line.strip("|").split("|")[-1].strip() for line in table.splitlines()[2:]]
    assert verdicts == ["holds", "holds", "WORSE", "nothing stored"]
    assert not holds
    assert left == {"held": [], "once": [], "always": [], "new": []}
    assert guard.guard(["held"], lambda _: [row(series(1.4), series(1.0), name="held")], known)[1]


def test_the_guard_measures_at_sizes_that_a_whole_run_stores():
    for name in ("documents", "records", "changes"):
        assert set(getattr(GUARD, name)) <= set(getattr(FULL, name))
    assert set(guard.QUESTIONS) <= set(runs.QUESTIONS)


def test_stored_ratios_come_back_by_question_and_size(tmp_path):
    rows = [row(series(3.0), series(2.0)), row(series(1.0), series(3.0), count=2_000)]
    stored.write(rows, tmp_path / "stored.json")
    assert stored.read(tmp_path / "stored.json") == {
        "a question / a floor, 10 things": 1.5,
        "a question / a floor, 2,000 things": 0.333,
    }
    assert stored.read(tmp_path / "nothing.json") == {}
    assert json.loads((tmp_path / "stored.json").read_text())


def test_the_plot_is_sound_and_has_a_panel_with_both_lines_for_each_curve():
    beside = [Versus("w < v", n, "things", series(0.1), "peer", series(n / 10), None, None) for n in (10, 1_000)]
    curves = growth.curves([*rows_growing_with(1), *rows_growing_with(0, name="b"), *beside])
    tree = ET.fromstring(plot.svg(curves))  # what this parses is ours
    names = [one.text for one in tree.iter() if one.get("class") == "name"]
    lines = [one.get("class") for one in tree.iter() if "d" in one.attrib and "line" in one.get("class", "")]
    assert names == ["a question", "b", "w < v"]
    assert sorted(lines[3:]) == sorted(["line kb"] * 3 + ["line floor"] * 2 + ["line peer"])
    assert "prefers-color-scheme: dark" in plot.svg(curves)


def test_every_point_of_the_plot_lies_inside_of_it():
    tree = ET.fromstring(plot.svg(growth.curves(rows_growing_with(1.5))))
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    spots = [(float(one.get("cx")), float(one.get("cy"))) for one in tree.iter() if one.get("cx")]
    assert all(0 < x < width and 0 < y < height for x, y in spots)


def test_a_report_has_the_noise_and_a_table_for_each_kind_of_figure():
    beside = Versus("work", 10, "things", series(1.0), "peer 1", series(4.0), None, 2**20)
    text = report.text("A machine.", [*rows_growing_with(1), row(series(9.0, 10.0, 11.0, 10.0), series(1.0)), beside])
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "### Against floors",
        "### Growth",
        "### Against other tools",
    ]
    assert text.startswith("A machine. Load after the run")
    words = text.partition("\n\n")[0]
    assert max(map(len, words.splitlines())) <= 120
    assert "Noise: the middle half of the runs of one figure is within 15% of its median" in words.replace("\n", " ")
    assert "| 0.25 " in text


def test_works_are_run_alternately_after_their_warm_ups():
    log: list[str] = []

    def work(name: str) -> Sample:
        log.append(name)
        return Sample(float(len(log)))

    first, second = in_turns(lambda: work("a"), lambda: work("b"), rounds=2, warm_ups=1)
    assert "".join(log) == "ababab"
    assert (first.walls_s, second.walls_s) == ([3.0, 5.0], [4.0, 6.0])


@pytest.mark.sliced
def test_a_process_is_measured_by_clock_processor_and_memory(tmp_path):
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    held = own + 20 * 2**20
    busy = f"sum(range(2_000_000)); held = b'x' * {held}"
    sample = process([sys.executable, "-c", busy], cwd=tmp_path, env=git_env())
    assert sample.cpu_s > 0
    assert sample.wall_s > 0
    assert held < sample.peak_bytes < held + 60 * 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="only there a child's peak counts its parent's")
def test_a_peak_that_may_be_the_measuring_process_s_own_is_not_known(tmp_path):
    assert process([sys.executable, "-S", "-c", ""], cwd=tmp_path, env=git_env()).peak_bytes is None


def test_a_process_that_fails_is_no_measurement(tmp_path):
    words = [sys.executable, "-c", "raise SystemExit('broken')"]
    with pytest.raises(ProcessFailed, match="broken"):
        process(words, cwd=tmp_path, env=git_env())
    process(words, cwd=tmp_path, env=git_env(), allowed=(1,))


def test_runs_one_after_the_other_add_up_but_for_their_memory():
    assert together(Sample(1.0, 0.5, 30), Sample(2.0, 0.25, 20)) == Sample(3.0, 0.75, 30)


def test_a_ratio_is_of_the_runs_of_each_round_and_is_held_against_its_aim():
    assert row(series(2.0, 9.0, 40.0), series(1.0, 9.0, 20.0)).ratio == 2.0
    assert row(series(1.0, 9.0, 4.0), series(2.0, 4.0)).ratio == 4.0 / 3.0, "the medians, of series of other lengths"
    assert row(series(4.0), series(2.0)).is_met is True
    assert row(series(4.1), series(2.0)).is_met is False
    assert row(series(4.0), series(2.0), None).is_met is None
    assert row(series(4.0), series(2.0), at_most_s=3.0).is_met is False
    assert row(series(4.0), series(1.0), None, at_most_s=5.0).is_met is True
    assert row(series(4.0, cpu_s=3.0), series(2.0, cpu_s=2.0)).cpu_ratio == 1.5
    assert row(series(4.0), series(2.0, cpu_s=2.0)).cpu_ratio is None


def test_the_table_shows_medians_extremes_and_units():
    shown = row(series(0.5, 2.0, 1.5), series(0.004, 0.0123, 0.0045)).cells()
    heading, _, line = markdown(HEADINGS, [shown]).splitlines()
    assert len(heading) == len(line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2:] == [
        "1.50 s (500 ms to 2.00 s)",
        "4.50 ms (4.00 ms to 12.3 ms)",
        "162.60",
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
    with pytest.raises(ValueError, match="must contain"):
        page.replaced("no place for figures", "new")


def test_a_question_that_is_measured_by_itself_has_its_place_until_the_next_whole_run():
    whole = "before\n<!-- measured: figures -->\n\nold\n\n<!-- end of figures -->\n\nafter\n"
    both = page.with_one(page.with_one(whole, "dml", "first"), "cold_sync", "second")
    assert [one for one in both.split() if one in {"old", "first", "second", "after"}] == [
        *("old", "second", "first", "after")
    ]
    again = page.with_one(both, "dml", "third")
    assert again == both.replace("first", "third")
    assert page.replaced(again, "old") == whole
    with pytest.raises(ValueError, match="must contain"):
        page.with_one("no place for figures", "dml", "new")


def test_the_page_has_a_place_for_figures():
    assert page.replaced(page.PAGE.read_text(encoding="utf-8"), "new")


def test_every_question_has_a_row_on_the_page_about_the_method():
    text = page.PAGE.with_name("performance-method.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*runs.QUESTIONS, *runs.PEERS]


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


def test_a_document_gets_another_title_and_nothing_else(tmp_path):
    generate.write_documents(tmp_path, 60)
    before = (tmp_path / generate.document_path(60)).read_text()
    after = generate.retitled(before, 7)
    changed = [(old, new) for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert [new for _, new in changed] == ["title: Edited for the 7th time"]


def test_requirements_refer_only_to_earlier_ones():
    found = list(generate.requirements(50))
    assert [one.id for one in found] == [f"REQ-{number:05d}" for number in range(1, 51)]
    assert found[0].target is None
    assert all(one.target < one.id for one in found[1:])


def test_a_store_of_one_entity_with_a_long_history_is_a_sound_one(tmp_path):
    stores.change(tmp_path / "store", 40)
    workspace = stores.workspace_of(tmp_path / "store")
    with view_of(workspace.store(stores.BRANCH)) as view:
        assert (view.seq, view.rows("select count(*) from node")) == (40, [(1,)])
    assert verify.prove(workspace.machine.fs, workspace.folders.directory_of(stores.BRANCH)).is_sound


def test_a_store_of_many_records_is_a_sound_one(tmp_path):
    root = tmp_path / "store"
    stores.fill(root, 50)
    stores.compact(root)
    stores.grow(root, 5)
    workspace = stores.workspace_of(root)
    with view_of(workspace.store(stores.BRANCH)) as view:
        assert view.seq == 55
        assert view.rows("select count(*) from node") == [(55,)]
        assert view.rows("select count(*) from link where is_resolved") == [(54,)]
        assert view.nodes([generate.entity_id(25)])
    proof = verify.prove(workspace.machine.fs, workspace.folders.directory_of(stores.BRANCH))
    assert proof.is_sound
    assert (len(proof.head.segments), len(proof.head.snapshots), proof.good_seq) == (2, 1, 55)


def test_repositories_of_a_fleet_are_distinct_and_of_about_the_size_that_is_asked_for():
    titles = []
    for repo in range(2):
        with fleet_place.view_of(repo, 2_000) as view:
            [(facts,)] = view.rows("select (select count(*) from node) + (select count(*) from link)")
            assert 0.9 < facts / 2_000 <= 1
            assert view.rows("select count(*) from link l where l.to_id not in (select id from node)") == [(0,)]
            titles.append({row[0] for row in view.rows("select title from node")})
    assert not titles[0] & titles[1]


@pytest.mark.slow
def test_a_fleet_is_measured_at_each_size(tmp_path):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert fleet.main(["--facts", "200", "400", "--each", "100", "--directory", str(tmp_path)]) == 0
    lines = [line for line in out.getvalue().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * (1 + len(fleet.QUESTIONS))
    assert list(tmp_path.iterdir()) == [], "a run removes what it made"


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of children is read from /proc")
def test_memory_of_a_child_that_has_not_begun_its_program_counts_once(tmp_path):
    held_mib = 100
    script = f"import os, time\nheld = os.urandom({held_mib} << 20)\npid = os.fork()\ntime.sleep(0.5)\n"
    sample = process([sys.executable, "-c", script], cwd=tmp_path, env={}, with_children=True)
    assert held_mib < (sample.peak_bytes or 0) / 2**20 < 2 * held_mib
