"""The names of types in the list of tools, and whether they have changed since the client got them.

They come from the schema of the project and from the definitions of the branch. A list waits only a moment for the
definitions: where the view of the branch is still to be built, it has the names of the project, and the next call finds
that there are more. Between calls nothing runs, and only a call that reads looks at the definitions, where the branch,
its last record or the schema is not the one of the call before.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from kbcore.errors import KBError
from kbcore.model.concepts import DEFINING, PREDICATE, TYPE
from kbcore.model.schema import CORE, Schema
from kbcore.process.system_limits import exhausted
from kbmcp.protocol.worker_threads import WorkerThreads
from kbmcp.tools.argument_models import SchemaNames
from kbmcp.tools.call import Call
from kbmcp.tools.run_call import running
from kbmcp.tools.service import Service

if TYPE_CHECKING:
    from kbcore.view.view import View

LIST_WAIT_S: Final = 1.0
"""The time that a list waits for the definitions of the branch."""
MOST_DEFINED: Final = 32
"""The number of types, and of edges, of a branch that are listed; with more of them none is, as a part misleads."""


class Listing:
    """The names that hold as of the latest call, and those that the client was last given."""

    def __init__(self, toolsets: Iterable[str]) -> None:
        self._has_vocabulary = "kip" in toolsets
        self._threads = WorkerThreads(1)
        """None of those for calls: it is kept while the names wait for calls that write."""
        self._lock = threading.Lock()
        self._as_of: tuple[object, ...] = ()
        self._latest: SchemaNames | None = None
        self._given: SchemaNames | None = None

    async def names(self, service: Service, tasks: TaskGroup) -> SchemaNames:
        """Return the names for the client. Raises: ``ResourceLimit``."""
        try:
            project = await anyio.to_thread.run_sync(self._project_names, service)  # none of the threads for calls
        except (MemoryError, RuntimeError) as error:
            raise exhausted(error, may_be_written=False) or error from error
        is_done = anyio.Event()
        tasks.start_soon(self._read, service, is_done)
        with self._lock:
            self._latest = None
        with anyio.move_on_after(LIST_WAIT_S):
            await is_done.wait()
        with self._lock:
            self._given = self._latest or project
            return self._given

    def note(self, call: Call, answer: Mapping[str, Any]) -> None:
        """Store the names as of a call that read, and had this answer."""
        schema = call.workspace.schema
        with self._lock:
            if self._given is None:
                return
        with suppress(KBError):  # the call is answered; the next one says what is wrong with the store
            # The answers of prompts and of some failures have no seq.
            seq = answer.get("seq")
            as_of = (call.branch, call.store.head().seq if seq is None else seq, schema)
            with self._lock:
                if as_of == self._as_of:
                    return
            found = call.store.read(lambda view: self._found(view, schema))
            with self._lock:
                self._as_of, self._latest = as_of, found

    def is_changed(self) -> bool:
        """Return whether the client has another list than the one it would get now; once for each change."""
        with self._lock:
            if self._given is None or self._latest in {None, self._given}:
                return False
            self._given = self._latest
            return True

    async def _read(self, service: Service, is_done: anyio.Event) -> None:
        """Read the names that are recorded, as work that the end of the server stops."""
        try:
            with running(service) as work:
                found = await self._threads.run(partial(self._recorded, service), work.stop)
            with self._lock:
                self._latest, self._as_of = found, ()
        except KBError:
            pass  # the tools say what is wrong, and the list has the names of the project
        except Exception as error:  # noqa: BLE001 - a bug: reported in full, and the list has the names of the project
            if exhausted(error, may_be_written=False) is None:
                traceback.print_exc(file=sys.stderr)
        is_done.set()

    def _recorded(self, service: Service) -> SchemaNames:
        workspace = service.workspace()
        branch = service.options.branch or workspace.head().branch
        if not workspace.folders.has_store(branch):
            return self._listed(workspace.schema, (), ())
        with service.queue.taken(workspace.folders.directory_of(branch), reads=True):
            return workspace.store(branch).read(lambda view: self._found(view, workspace.schema))

    def _found(self, view: View, project: Schema) -> SchemaNames:
        from kbcore.view.branch_definitions import definitions

        whole = view.schema(project)
        defined = {(one.type, one.name) for one in definitions(view.definitions().values())}
        names = (
            [
                name
                for name in known
                if name not in own and (self._has_vocabulary or (type_, name) in defined) and name not in DEFINING
            ]
            for type_, known, own in (
                (TYPE, whole.entities, project.entities),
                (PREDICATE, whole.edges, project.edges),
            )
        )
        return self._listed(project, *names)

    def _project_names(self, service: Service) -> SchemaNames:
        """Return the names of the schema in force, or KB's own where there is none."""
        try:
            return self._listed(service.schema(), (), ())
        except KBError:
            return self._listed(CORE, (), ())

    def _listed(self, project: Schema, types: Iterable[str], edges: Iterable[str]) -> SchemaNames:
        """Return the names, with those of the two types that define others where the vocabulary of KIP is listed."""
        more, more_edges = tuple(types), tuple(edges)
        defining = DEFINING if self._has_vocabulary else ()
        return SchemaNames(
            (*project.entities, *more, *defining) if len(more) <= MOST_DEFINED else (),
            (*project.edges, *more_edges) if len(more_edges) <= MOST_DEFINED else (),
        )
