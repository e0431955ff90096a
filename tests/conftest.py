"""Fixtures that many tests share."""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

# Each time that Python looks for cycles while all tests are collected, it finds the same modules and tests.
gc.disable()

# Rewriting the assertions of all tests takes longer than collecting them: pytest keeps what it has made of them, for
# this run's other workers and the next run, even where Python is set to keep nothing.
sys.dont_write_bytecode = False

from hypothesis import settings  # noqa: E402 - it is kept as well

from kbcore import gc_pause  # noqa: E402 - likewise
from tests.support.effort.scale import (  # noqa: E402 - likewise
    DAY,
    IS_SLICED,
    UNTIL_S,
    each_value_once,
    of_period,
    of_today,
    shares,
    tries,
)
from tests.support.logic.engines import ENGINES, engine_variables, why_missing  # noqa: E402 - likewise
from tests.support.repository.gits import use_hooks_in_files  # noqa: E402 - likewise
from tests.support.repository.older import older_repository  # noqa: E402 - likewise
from tests.support.repository.project import Project  # noqa: E402 - likewise
from tests.support.repository.repos import (  # noqa: E402 - likewise
    use_empty_home,
    use_temporary_files_in_memory,
)

settings.register_profile("scaled", max_examples=tries(15, 100), deadline=None)
settings.load_profile("scaled")
use_temporary_files_in_memory()
use_empty_home()
HOME = os.environ["HOME"]
use_hooks_in_files()

SLOW_FOLDERS = (
    "cli/check",
    "cli/prolog",
    "cli/ui",
    "core/checks/introduced",
    "core/kip/sleep",
    "core/logic/engine",
    "core/maintenance/redaction",
    "core/watch",
    "fault",
    "mcp/logic",
    "share",
)
SLOW_FILES = {
    ".": "benchmarks",
    "cli": (
        "agent_hook agents branches clauses completion coverage demo diff editing export_formats former_ids gc "
        "git_commands git_setups history hook hook_note ids impact kip log lost_stores masked_secrets merge new "
        "permissions points prime private_writers program prove push_fetch redact renaming results share "
        "share_doctor share_hook share_pack share_private shared_writers show signals sleep sources startup terminal "
        "undo uninstall upkeep watch without_prolog"
    ),
    "cli/dml": "check compile_program run tools",
    "core/editing": "renamed_files renamed_suspects renaming",
    "core/dml": "check compiling openai_failures openai_key openai_model openai_programs shipped",
    "core/kip": "unrecorded",
    "core/kip/kml": "contested dry_run export export_laws",
    "core/logic": "large_clauses reading_laws",
    "core/maintenance": "backup compacting proof repair",
    "core/query": "query_laws search_laws",
    "core/query/exchange": "round_trips",
    "core/results": "taking",
    "core/rules": "limited suspect_code suspect_edge",
    "core/fleet": "s3",
    "core/storage": "processes scratch witness witness_notes",
    "core/store": "branch_store concurrency facts_export_missing plans_ahead publishing readers worktree_stores",
    "core/store/branches": (
        "lost made_again new_epochs put_away renames seen_gone settling slow_git store_moves trash views"
    ),
    "core/store/history": "compare reach undo_laws undo_renames",
    "core/sync": (
        "file_status moved_symbols overlay overlay_notices overlay_search searching shared_changes touched workers"
    ),
    "core/view": "claim_filling equivalence key_filter large sandbox scratch_copy time_bounds",
    "docs": "console_blocks",
    "mcp": (
        "branches call_queue check concurrency conformance damage extras former_ids history interruption listing "
        "messages_not_read planted program_tools progress prompts query resolving sharing "
        "sleeping startup streams subscriptions writing"
    ),
}
"""They start programs, wait, hurt a store, or need much longer than others, as do the tests with the marks ``slow``,
``sliced`` and ``one_engine``: `make quick` leaves all of these out, and `make test` has the cases of each on one of
``DAYS`` days. ``test_`` is left out."""


NAMED = "KB_TEST_NAMED"
"""The variable that says whether files or folders are named in the call: then each of their tests runs."""
QUICK = "not slow"
"""The option ``-m`` of `make quick`."""
BOTH_ENGINES = Path(__file__).parent / "core/logic/engine"
"""The tests of the engines themselves are for both of them."""


def pytest_configure(config: pytest.Config) -> None:
    """Note whether the call names files or folders, and look for the Prolog engines, for the workers of the run too."""
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    os.environ.setdefault(NAMED, "yes" if is_named else "")
    if not is_named and config.option.markexpr != QUICK and getattr(config.option, "numprocesses", 0):
        _engines()  # what it keeps of an engine takes seconds to make, and the workers find it


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Let `make quick` not even import the files that it leaves out as a whole."""
    return True if config.option.markexpr == QUICK and _is_slow(collection_path) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark what `make quick` leaves out; of what the options of the call leave, keep the cases that a slice has."""
    for item in items:
        if _parameters(item).get("engine") in ENGINES and not item.path.is_relative_to(BOTH_ENGINES):
            item.add_marker("one_engine")
        if _is_slow(item.path) or item.get_closest_marker("sliced") or item.get_closest_marker("one_engine"):
            item.add_marker("slow")
    yield
    if IS_SLICED:
        _keep_slices(config, items)


@cache
def _slow_places() -> frozenset[Path]:
    """Return the files and folders whose tests are all slow."""
    files = [f"{folder}/test_{name}.py" for folder, names in SLOW_FILES.items() for name in names.split()]
    places = frozenset(Path(__file__).parent / name for name in (*SLOW_FOLDERS, *files))
    assert all(place.exists() for place in places)
    return places


@cache
def _is_slow(path: Path) -> bool:
    return not _slow_places().isdisjoint((path, *path.parents))


def _parameters(item: pytest.Item) -> dict[str, object]:
    found: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}
    return found


def _keep_slices(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep of the slow tests what runs today; ``make fault`` runs all.

    A test that is named in the call runs whole. Of a file that is named, each test runs, on each engine, but of many
    cases only the slice.
    """
    named = tuple(place.rpartition("/")[2] for place in config.args if "::" in place)
    kept = {*kept_today([item for item in items if not item.nodeid.rpartition("/")[2].startswith(named)])}
    kept |= {item for item in items if item.nodeid.rpartition("/")[2].startswith(named)}
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def kept_today(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield of these tests the quick ones, and of each slow one the cases that run today."""
    is_named = bool(os.environ[NAMED])
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
        else:
            yield item
    for name, cases in tests.items():
        yield from _slice(name, cases, is_named=is_named)


def _slice(name: str, cases: list[pytest.Item], *, is_named: bool) -> Sequence[pytest.Item]:
    """Return the cases of a test that run today: of a file that is named the slice, else this day's part of it."""
    of_engines = [cases]
    if cases[0].get_closest_marker("one_engine") and not is_named:
        of_engines = [
            [one for one in cases if _parameters(one)["engine"] == engine] for engine in _engines() or ENGINES
        ]
    # The shares of one engine, then those of the other: each case has its days on each engine.
    cases = [*of_period(name, [part for own in of_engines for part in _parts(own)])]
    return cases if is_named else of_today(name, cases)


def _parts(cases: list[pytest.Item]) -> list[Sequence[pytest.Item]]:
    """Return the parts of a test's cases of which one is in a slice: all of them, where it is not ``sliced``."""
    sliced = cases[0].get_closest_marker("sliced") if cases else None
    if not sliced or not {*_parameters(cases[0])} - {"engine"}:
        return [cases]
    at = each_value_once([{n: repr(v) for n, v in _parameters(case).items()} for case in cases])
    chosen = [cases[number] for number in at]
    return shares(chosen, *sliced.args) if sliced.args else [chosen]


@cache
def _engines() -> Sequence[str]:
    """Return the Prolog engines that this machine has."""
    return [name for name in ENGINES if not why_missing(name)]


def pytest_collection_finish() -> None:
    """Let the collector of reference cycles pass over all that was imported and collected: it stays to the end.

    Of what tests make, few objects are in cycles. The end of the process frees all of it as ever; pytest, which looks
    for cycles several times before that, need not visit it.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
    gc_pause.raise_threshold()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which slice was run: the same one is run again with that variable."""
    if IS_SLICED and terminalreporter.stats.get("deselected"):
        terminalreporter.write_line(f"The slice of KB_TEST_DAY={DAY}; `make fault` runs all of it.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each test a home of its own: KB notes there which records it has seen of which repository.

    Two tests that copy one repository would meet as two copies of it that both went on.
    """
    if time.time() > UNTIL_S:
        pytest.skip("the time that a soak has for this file is over")
    name = hashlib.sha256(item.nodeid.encode()).hexdigest()[:16]
    os.environ["HOME"] = f"{HOME}/{os.getpid()}-{name}"


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Free the frames of an error that is a parameter: it lives as long as the run, and would keep views open.

    DuckDB reports each connection that is open at the end of a process.
    """
    for value in _parameters(item).values():
        if isinstance(value, BaseException):
            value.__traceback__ = value.__context__ = None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return more workers for ``-n auto`` than there are cores: a quarter of the time, a test waits for something."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker tests that follow one another, where ``-n`` alone would deal them out.

    What the tests of a module share is then made once, not once in each worker.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository on branch main with an empty KB; its path holds a space."""
    made = Project(tmp_path / "a project")
    yield made
    made.close()


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, str]:
    """The variables that choose a Prolog engine; a test runs on each that this machine has."""
    return engine_variables(request.param)


@pytest.fixture(scope="session")
def older_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the older layout, to be copied."""
    return older_repository(tmp_path_factory.mktemp("older") / "repo")


@pytest.fixture
def older(older_model: Path, tmp_path: Path) -> Iterator[Project]:
    """A repository of the older layout, which no KB of today has opened."""
    made = Project(shutil.copytree(older_model, tmp_path / "repo", symlinks=True), is_new=False)
    yield made
    made.close()
