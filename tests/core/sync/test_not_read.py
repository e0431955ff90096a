"""Files among documents that no extractor reads are counted, and every spelling of the ending of Markdown is read."""

from __future__ import annotations

from kbcore.store.pool import Machine
from kbcore.sync import noop_cache
from kbcore.sync.answer import not_read_line
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import Project, req

FOLDER = "docs/requirements"
DOCUMENTS = {f"{FOLDER}/1.MD": req("REQ-1"), f"{FOLDER}/sub/2.markdown": req("REQ-2"), f"{FOLDER}/3.md": req("REQ-3")}
OTHERS = {f"{FOLDER}/a.txt": "", f"{FOLDER}/sub/b.TXT": "", f"{FOLDER}/c.rst": "", f"{FOLDER}/Makefile": ""}
ELSEWHERE = {"docs/guide.txt": "", "docs/guide.md": "", "notes.txt": "", f"{FOLDER}/.hidden": ""}


def test_every_spelling_of_the_ending_is_read_and_links_lead_there(project: Project) -> None:
    project.sync({**DOCUMENTS, f"{FOLDER}/4.md": req("REQ-4", links="[1.MD, sub/2.markdown]")})
    assert all(project.node(f"REQ-{number}") for number in (1, 2, 3, 4))
    assert {edge[2] for edge in project.edges("REQ-4")} == {"REQ-1", "REQ-2"}


def test_files_among_documents_that_are_not_read_are_counted_by_ending(project: Project) -> None:
    answer = project.sync({**DOCUMENTS, **OTHERS, **ELSEWHERE, "docs/symbols.yaml": ""})
    assert answer.not_read == {"": 1, ".rst": 1, ".txt": 2}
    assert answer.as_json()["files"]["not_read"] == answer.not_read
    assert not_read_line(answer.not_read) == (
        "4 files in the folders of documents are not read: 2 .txt, 1 without an ending, 1 .rst."
    )
    assert project.sync(paths=(FOLDER,)).not_read == {}


def test_a_file_that_comes_among_documents_ends_the_rest(project: Project) -> None:
    project.machine = Machine(project.machine.fs, PatientClock(ahead_s=10), project.machine.env)
    project.sync({**DOCUMENTS, f"{FOLDER}/a.txt": ""})
    project.sync()
    assert noop_cache.lookup(project.workspace(), "main").not_read == {".txt": 1}
    project.write({f"{FOLDER}/b.txt": ""})
    assert noop_cache.lookup(project.workspace(), "main") is None
    assert project.sync().not_read == {".txt": 2}
