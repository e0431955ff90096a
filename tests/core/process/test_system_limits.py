"""The room that the limits of a process leave, and the error for a refusal of the system."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from kbcore.limits import MIB
from kbcore.process.system_limits import AddressSpace, exhausted


def in_process(code: str) -> dict[str, object]:
    """Run code in a process of its own, which may limit itself, and return what it prints as JSON."""
    begin = """
        import json, resource, threading
        from kbcore.process import system_limits
        from kbcore.limits import MIB
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        def limit(left_mib):
            resource.setrlimit(resource.RLIMIT_AS, (taken + left_mib * MIB,) * 2)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(code)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_without_a_limit_nothing_is_refused_and_nothing_changed() -> None:
    found = in_process("""
        for number in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            resource.setrlimit(number, (resource.getrlimit(number)[1],) * 2)
        system_limits.prepare()
        is_limited = system_limits.address_space() is not None
        if not is_limited:
            system_limits.check_room()
        print(json.dumps({"is_limited": is_limited, "env": system_limits.child_environment()}))
    """)
    if found["is_limited"]:
        pytest.skip("a hard limit of the address space, which nobody but root can raise")
    assert found["env"] == {}


def test_databases_share_what_the_limit_leaves_and_have_one_thread_where_it_is_small() -> None:
    small, large = (AddressSpace("ulimit -v", size * MIB, 0) for size in (768, 8192))
    assert (small.database_threads, small.database_bytes) == (1, 64 * MIB)
    assert (large.database_threads, large.database_bytes) == (2, 1280 * MIB)


def test_a_thread_that_lacks_memory_is_reported_as_memory() -> None:
    found = in_process("""
        limit(4)
        try:
            threading.Thread(target=print).start()
        except RuntimeError as error:
            known = system_limits.exhausted(error, may_be_written=True)
        print(json.dumps(known.as_json()))
    """)
    assert str(found["message"]).startswith("There is no more of the address space of this process (`ulimit -v`, ")
    assert "raise the limit (`ulimit -v`)" in str(found["hint"])
    assert found["applied"] == "unknown"


def test_a_database_is_not_begun_where_too_little_is_left() -> None:
    found = in_process("""
        limit(100)
        try:
            system_limits.check_room()
        except system_limits.ResourceLimit as error:
            print(json.dumps(error.as_json()))
    """)
    assert "a database needs 128 MiB to begin" in str(found["message"])
    assert found["applied"] == "no"


def test_one_of_a_group_is_found_and_what_began_nothing_wrote_nothing() -> None:
    group = ExceptionGroup("tasks", [ValueError(), ExceptionGroup("more", [MemoryError()])])
    assert exhausted(group, may_be_written=True) is not None
    assert exhausted(ExceptionGroup("tasks", [ValueError()]), may_be_written=True) is None
    found = exhausted(RuntimeError("can't start new thread"), may_be_written=False)
    assert found is not None
    assert (found.applied, "changeset_id" in found.hint) == ("no", False)


def test_threads_of_a_limited_process_share_one_heap() -> None:
    """Each heap would take 64 MiB of the address space."""
    found = in_process("""
        limit(900)
        system_limits.prepare()
        end, threads = threading.Event(), []
        for _ in range(4):
            threads.append(threading.Thread(target=lambda: (bytearray(100_000), end.wait())))
            threads[-1].start()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        end.set()
        print(json.dumps({"grown_mib": (now - taken) // MIB}))
    """)
    assert int(str(found["grown_mib"])) < 64
