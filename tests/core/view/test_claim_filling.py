"""The index of changes: filled from the journal step by step as at once, by several processes, and made again."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import threading

import pytest

from kbcore.view import claim_filling
from kbcore.view.cache_files import CLAIMS
from kbcore.view.claim_database import IndexNotWritten
from kbcore.view.claim_index import ClaimIndex


def entity(key, **fields):
    return {"id": key, "type": "symbol", "title": key, "status": "active", **fields}


def listed(store):
    index = store.claims()
    return [(one.seq, one.change.id) for one in index.unshared(store.head().seq)]


def test_filling_it_record_by_record_gives_what_filling_it_at_once_gives(project):
    store = project.workspace().store("main")
    steps = []
    for number in range(5):
        project.apply(entities=[entity(f"S-{number}"), entity("S-0", owner=f"o{number}")][: 1 + (number > 0)])
        steps.append(listed(store))
    (project.workspace().folders.cache_of("main") / CLAIMS).unlink()

    assert listed(project.workspace().store("main")) == steps[-1]
    assert [len(one) for one in steps] == [1, 2, 3, 4, 5]


def test_a_damaged_one_is_made_again(project):
    project.apply(entities=[entity("S-1")])
    whole = listed(project.workspace().store("main"))
    path = project.workspace().folders.cache_of("main") / CLAIMS
    path.write_bytes(b"no database" * 1000)

    assert listed(project.workspace().store("main")) == whole


def test_a_full_disk_is_reported_as_what_it_is(project, tmp_path):
    project.apply(entities=[entity("S-1")])
    store = project.workspace().store("main")
    index = ClaimIndex(str(tmp_path / "index.db"))
    index.database.rows("pragma max_page_count = 5")
    with pytest.raises(IndexNotWritten, match="full"):
        claim_filling.update(index, project.machine.fs, project.workspace().folders.directory_of("main"), store.head())
    index.database.close()


@pytest.mark.parametrize("is_there", [False, True])
def test_it_is_made_in_memory_where_its_file_cannot_grow(project, is_there):
    project.apply(entities=[entity("S-0")])
    store, whole = project.workspace().store("main"), []
    path = project.workspace().folders.cache_of("main") / CLAIMS
    if is_there:
        listed(store)
    for number in range(1, 60):
        project.apply(entities=[entity(f"S-{number}", attributes={"text": "x" * 2000})])
    size_bytes = path.stat().st_size if is_there else 8192
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        whole = listed(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(whole) == 60
    path.unlink(missing_ok=True)
    assert listed(project.workspace().store("main")) == whole


def test_one_of_another_history_is_made_again(project, tmp_path):
    project.apply(entities=[entity("S-1")])
    directory = project.workspace().folders.directory_of("main")
    shutil.copytree(directory, tmp_path / "backup")
    project.apply(entities=[entity("S-2")])
    listed(project.workspace().store("main"))
    shutil.rmtree(directory)
    shutil.copytree(tmp_path / "backup", directory)
    store = project.workspace().store("main")

    assert len(listed(store)) == 1


def test_threads_and_another_process_in_the_middle_of_a_change_get_the_same(project):
    for number in range(20):
        project.apply(entities=[entity(f"S-{number}")])
    store, found = project.workspace().store("main"), []
    path = project.workspace().folders.cache_of("main") / CLAIMS
    listed(store)
    project.apply(entities=[entity("S-20")])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    threads = [threading.Thread(target=lambda: found.append(listed(store))) for _ in range(4)]
    for one in threads:
        one.start()
    other.execute("rollback")
    for one in threads:
        one.join()

    assert found == [found[0]] * 4
    assert len(found[0]) == 21


def test_no_command_makes_it_where_nothing_is_shared_or_merged(project):
    project.apply(entities=[entity("S-1")])
    project.sync()

    assert not (project.workspace().folders.cache_of("main") / CLAIMS).exists()
