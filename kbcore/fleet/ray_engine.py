"""The engine ``ray``: shards of branches, each asked by the function of the engine ``local`` in a worker of Ray.

Ray is an extra, and imported here alone. Without an address its processes are started here, listen on loopback only,
and end with the block. A worker asks one shard at a time. What a worker that dies leaves is asked again: the shard,
then each of its branches alone, so that in the end only branches that make workers die have no answer.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from kbcore import progress
from kbcore.clock import SystemClock
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidQuery, WorkersUnavailable
from kbcore.fleet import local
from kbcore.fleet.asking import Question
from kbcore.fleet.head import FleetHead
from kbcore.fleet.local import Answer, SqlAnswer
from kbcore.fleet.place import Place
from kbcore.fleet.reading import Asker, UnreadRepository, failure_of
from kbcore.limits import FLEET_SHARD, MIB
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine
from kbcore.view import database

RETRIES: Final = 2
"""So often Ray begins again what was in a worker that died."""
_AHEAD: Final = 4
"""So many shards of each worker are begun or done before the answers of the first one are taken."""
_STORE_BYTES: Final = 256 * MIB
"""Memory for answers that were not taken yet; Ray writes what is beyond it to the disk."""
_OWN_CLUSTER: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    # Without clusters Ray gives this machine the address of loopback, on every system.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
_OF_OTHERS: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_NUM_REDIS_GET_RETRIES": "1"}
"""An address at which there is nothing is tried once, which takes less than a minute, not twenty times."""
_LOOPBACK: Final = "127.0.0.1"
_MISSING: Final = "The engine ray is not there: the package ray is not installed."
_EXTRA: Final = 'Install it with `pip install "kb-memory[ray]"`, or leave --engine out.'
_NO_CLUSTER: Final = "Check the address, and that KB is installed there in the same version; or leave --engine out."
_NO_START: Final = "Leave --engine out, or set TMPDIR to a folder with a shorter path if its sockets are the reason."
_DIED: Final = "The worker of Ray ended before it answered, {count} times: it may need more memory than there is."


class RayOptions(msgspec.Struct, frozen=True):
    """The workers that ask shards: their number, 0 for one on each processor, and the cluster, "" for processes here.

    ``shard`` is the most branches that a worker asks at once.
    """

    workers: int = 0
    address: str = ""
    shard: int = FLEET_SHARD


class RayEngine:
    """Workers of Ray that are there: see ``started``."""

    def __init__(self, ray: Any, options: RayOptions) -> None:
        self._ray = ray
        self._shard = options.shard
        # A cluster begins all that it has processors for, so that what is begun has to be no more than is meant.
        self._ahead = 1 if options.address and options.workers else _AHEAD
        alive = [one for one in ray.nodes() if one["Alive"] and one["Resources"].get("CPU")]
        if not alive:
            raise WorkersUnavailable("Ray has no processor to ask with.", hint=_NO_CLUSTER)
        self.addresses = {one["NodeManagerAddress"] for one in alive}
        nodes = [one["Resources"] for one in alive]
        self.workers = options.workers or int(sum(one["CPU"] for one in nodes))
        """The number of shards that are asked at the same time."""
        self.memory_bytes = int(min(one["memory"] / one["CPU"] for one in nodes))
        """The share of a worker in the memory of its machine."""

    def ask(
        self, place: Place, heads: Sequence[FleetHead], question: Question, user: UserSettings
    ) -> Iterator[Answer | UnreadRepository]:
        """Yield the answer of each branch, in their order, or why there is none.

        Raises: ``WorkersUnavailable`` where Ray itself fails.
        """
        bounded = self.bounded(user)
        asking = self._task(_ask_shard, bounded)
        most = max(1, min(self._shard, -(-len(heads) // (self.workers * _AHEAD))))
        most_begun = self.workers * self._ahead
        left = deque(heads[at : at + most] for at in range(0, len(heads), most))
        begun: deque[tuple[Sequence[FleetHead], Any]] = deque()

        def begin(shard: Sequence[FleetHead]) -> tuple[Sequence[FleetHead], Any]:
            return shard, asking(place, shard, question, bounded)

        def found() -> Iterator[Answer | UnreadRepository]:
            while left or begun:
                while left and len(begun) < most_begun:
                    begun.append(begin(left.popleft()))
                shard, running = begun.popleft()
                answers = self._result(running)
                if answers is None and len(shard) > 1:
                    begun.extendleft([begin([one]) for one in reversed(shard)])
                else:
                    yield from answers if answers is not None else [_unanswered(shard[0])]

        return iter(progress.track(found(), len(heads), "repositories asked", every=1))

    def sql(
        self,
        place: Place,
        heads: Sequence[FleetHead],
        statement: str,
        most_rows: int,
        *,
        before: str = "",
        user: UserSettings,
    ) -> SqlAnswer:
        """Run a statement over all these branches, as ``local.sql``, in one worker: what it joins is not known.

        Raises: ``InvalidQuery`` for a statement that the database refuses; ``WorkersUnavailable``.
        """
        bounded = self.bounded(user)
        found = self._result(self._task(_run_sql, bounded)(place, heads, statement, most_rows, before, bounded))
        if found is None:
            raise WorkersUnavailable(_DIED.format(count=RETRIES + 1))
        if isinstance(found, InvalidQuery):
            raise found
        answer: SqlAnswer = found
        return answer

    def bounded(self, user: UserSettings) -> UserSettings:
        """Return the settings with the memory that a worker may use: the share of it, or less where these say so."""
        most_bytes = min(user.limits.memory_bytes, self.memory_bytes)
        return msgspec.structs.replace(user, limits=msgspec.structs.replace(user.limits, memory_bytes=most_bytes))

    def _task(self, function: Callable[..., object], user: UserSettings) -> Callable[..., Any]:
        remote = self._ray.remote(function)
        begin: Callable[..., Any] = remote.options(
            num_cpus=1, memory=user.limits.memory_bytes, max_retries=RETRIES, retry_exceptions=False
        ).remote
        return begin

    def _result(self, running: Any) -> Any:
        """Return what a task returned, None where its worker died each time. Raises: what the task raised."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(running)
        except errors.RayTaskError:
            raise  # a bug, with the traceback of the worker
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError):
            return None
        except errors.RayError as error:
            raise WorkersUnavailable(f"Ray failed: {error}", hint=_NO_CLUSTER) from error


@contextlib.contextmanager
def started(options: RayOptions) -> Iterator[RayEngine]:
    """Start workers on this machine for the length of the block, or connect to those of a cluster.

    Raises: ``InvalidQuery`` where Ray is not installed; ``WorkersUnavailable``; what the block raises.
    """
    with contextlib.ExitStack() as stack:
        own = {**_OWN_CLUSTER, "RAY_AUTH_TOKEN": _token()}
        stack.enter_context(_environment(_OF_OTHERS if options.address else own))
        try:
            import ray  # noqa: PLC0415 - an extra, and it takes half a second
        except ImportError as error:
            raise InvalidQuery(_MISSING, hint=_EXTRA) from error
        usual: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if options.address:
            usual |= {"address": options.address}
        else:
            folder = stack.enter_context(database.scratch_folder())
            usual |= {
                "address": "local",
                "num_cpus": options.workers or os.cpu_count() or 1,
                "object_store_memory": _STORE_BYTES,
                "include_dashboard": False,
                "_node_ip_address": _LOOPBACK,
                "_temp_dir": folder,
            }
        before = signal.getsignal(signal.SIGTERM)
        stack.callback(ray.shutdown)
        try:
            ray.init(**usual)
        except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            hint = _NO_CLUSTER if options.address else _NO_START
            raise WorkersUnavailable(f"Ray does not start: {error}", hint=hint) from error
        finally:
            if signal.getsignal(signal.SIGTERM) is not before:
                signal.signal(signal.SIGTERM, before)
        engine = RayEngine(ray, options)
        if not options.address and engine.addresses != {_LOOPBACK}:
            raise WorkersUnavailable("Ray would listen to other machines.", hint=_NO_START)
        yield engine


@cache
def _token() -> str:
    """Return what workers and this process prove by that they belong together: Ray reads it once in a process."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _environment(added: dict[str, str]) -> Iterator[None]:
    """Have variables in the environment of this process, which Ray and its processes read."""
    usual = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in usual.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _ask_shard(
    place: Place, heads: Sequence[FleetHead], question: Question, user: UserSettings
) -> list[Answer | UnreadRepository]:
    return list(local.ask(place, heads, question, _machine(), user))


def _run_sql(  # noqa: PLR0917 - what a task takes is in its place
    place: Place, heads: Sequence[FleetHead], statement: str, most_rows: int, before: str, user: UserSettings
) -> SqlAnswer | InvalidQuery:
    try:
        return local.sql(place, heads, statement, most_rows, Asker(_machine(), user, before))
    except InvalidQuery as error:
        return error


def _machine() -> Machine:
    """Return the machine of a worker, which is a process of its own."""
    return Machine(RealFs(), SystemClock(), os.environ)


def _unanswered(head: FleetHead) -> UnreadRepository:
    return failure_of(head.repo, head.branch, WorkersUnavailable(_DIED.format(count=RETRIES + 1)))
