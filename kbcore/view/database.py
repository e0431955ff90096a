"""The DuckDB connection of a view: its settings, its tables, and loading rows in bulk.

User text enters SQL only as a bound parameter; names come from the tables of this package.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Self, TypeVar

import duckdb
import msgspec

from kbcore import limits
from kbcore.errors import ResourceLimit, ViewDamaged
from kbcore.process import interrupting, system_limits
from kbcore.storage import scratch
from kbcore.view.relations import SqlRefused
from kbcore.view.tables import SMALL_LIST, Columns

Row = Mapping[str, Any]
T = TypeVar("T")
M = TypeVar("M")


UNLOGGED: Final = "recovery_mode no_wal_writes"
"""Options for a file that no other process opens before it is whole, or ever: its writes need no log."""

NO_SHARED_SUBPLANS: Final = "set disabled_optimizers = 'common_subplan'"
"""DuckDB 2.0 makes one common table expression of two equal parts of a statement, such as the same view joined twice.
Then it never ends a join of 65,537 rows of it with itself below a LIMIT or an EXISTS. See ADR 0015."""

MEMORY: Final = "`limits.memoryMiB` in your own kb/config.json"
_BY_HANDLER: Final = "Query interrupted"
_THREADS: Final = 2
_MEMORY: Final = "select parse_formatted_bytes(current_setting('memory_limit'))"
"""Asks for the memory that DuckDB would take: a share of what the machine, or its container, has."""

_CHUNK_ROWS: Final = 20_000
_ROW_BYTES: Final = 2**20
_FILES_AT_ONCE: Final = 20
"""Files of ``RowFiles``, of a thousand rows each, whose rows are in memory together."""
_FEW_ROWS: Final = 4
_MANY_ROWS: Final = 500
_STATEMENTS: Final = 512
"""Texts of statements whose parsed form is kept."""
_KEPT_CHARS: Final = 20_000
"""The longest text of a statement that is kept so."""


_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


_OF_FILES: Final = (
    duckdb.IOException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.SerializationException,
    duckdb.TransactionException,
)


class StatementRefused(duckdb.InvalidInputException):
    """The database cannot do with the values it met what a statement asks for; the text says what.

    Never shown to a user: who asked says what for.
    """


class ProcessCache:
    """Parsed statements and the usual memory, which are the same for all databases of a process.

    It belongs to the process, not to a database, because a command runs most of its statements once: parsing is a third
    of what a look-up by key takes, and of what making the tables of a view takes. At most ``_STATEMENTS`` texts of
    ``_KEPT_CHARS`` characters are kept. Nothing in it depends on a database or its rows.
    """

    def __init__(self) -> None:
        self._parsed: dict[str, list[duckdb.Statement]] = {}
        self._usual_bytes: int | None = None

    def parsed(self, sql: str, opened: duckdb.DuckDBPyConnection) -> list[duckdb.Statement]:
        """Return the statements of a text. What it is to run on is looked up when a statement is run.

        Raises: ``duckdb.ParserException``.
        """
        found = self._parsed.get(sql)
        if found is None:
            found = opened.extract_statements(sql)
            if len(sql) > _KEPT_CHARS:
                return found
            if len(self._parsed) >= _STATEMENTS:
                self._parsed.clear()
            self._parsed[sql] = found
        return found

    def usual_bytes(self, opened: duckdb.DuckDBPyConnection) -> int:
        """Return the memory that DuckDB would take."""
        if self._usual_bytes is None:
            [(self._usual_bytes,)] = Connection(opened).execute(_MEMORY).fetchall()
        return self._usual_bytes


_CACHE: Final = ProcessCache()


class Connection:
    """A connection to DuckDB, all of whose statements end: see ``interrupting``. It keeps small tables of constants."""

    def __init__(self, opened: duckdb.DuckDBPyConnection, memory: str = "") -> None:
        """``memory`` says how much memory the database may use, and what limits that."""
        self._opened = opened
        self._memory = memory
        self._catalog = ""
        self._held: dict[str, object] = {}
        self._known: dict[str, tuple[object, Any]] = {}

    def execute(
        self,
        statement: str,
        params: Sequence[Any] = (),
        *,
        is_cleanup: bool = False,
    ) -> Self:
        """Run a statement, in the usual time.

        With ``is_cleanup`` it undoes what others began, and runs although the work that it is done for was stopped.

        Raises: ``StatementTimeout``, ``interrupting.Stopped``; ``ResourceLimit`` when the database gets no more memory,
        which says nothing of a file; the other errors of DuckDB.
        """
        parsed = _CACHE.parsed(statement, self._opened)
        with interrupting.step(self.interrupt, is_cleanup=is_cleanup) as step:
            try:
                for one in parsed:
                    self._opened.execute(one, list(params))
            except (duckdb.Error, RuntimeError) as error:
                if (reason := self._reason(step, error)) is error:
                    raise
                raise reason from error
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement. Raises: as ``execute``."""
        with interrupting.step(self.interrupt) as step:
            try:
                return self._opened.fetchall()
            except (duckdb.Error, RuntimeError) as error:
                if (reason := self._reason(step, error)) is error:
                    raise
                raise reason from error

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of one statement, which with fetching them has one time, the usual one or one of its own.

        Its tables are looked up whenever it is run. Raises: as ``execute``.
        """
        [statement] = _CACHE.parsed(sql, self._opened)
        with interrupting.step(self.interrupt, time_s) as step:
            try:
                return self._opened.execute(statement, list(params)).fetchall()
            except (duckdb.Error, RuntimeError) as error:
                if (reason := self._reason(step, error)) is error:
                    raise
                raise reason from error

    def select(
        self, sql: str, most_rows: int, *, time_s: float | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns and the first rows of a statement that another person wrote.

        Raises: ``SqlRefused`` where it is no single statement that only reads, and as the database says.
        """
        try:
            statements = self._opened.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise SqlRefused("only one statement that reads is taken, such as select")
            with interrupting.step(self.interrupt, time_s) as step:
                try:
                    found = self._opened.execute(statements[0])
                    return [one[0] for one in found.description or ()], found.fetchmany(most_rows)
                except (duckdb.Error, RuntimeError) as error:
                    if (reason := self._reason(step, error)) is error:
                        raise
                    raise reason from error
        except duckdb.Error as error:
            raise SqlRefused(" ".join(str(error).split())) from error

    def _reason(self, step: interrupting.RunningStep, error: Exception) -> BaseException:
        """Return what to raise for a statement that failed.

        DuckDB runs Python's handlers of signals while it waits, and has an error of its own for what one of them
        raises.
        """
        if step.is_interrupted:
            return step.reason()
        if isinstance(error, duckdb.OutOfMemoryException):
            return _no_memory(error, self._memory)
        return KeyboardInterrupt() if isinstance(error, RuntimeError) and str(error) == _BY_HANDLER else error

    def hold(self, name: str, columns: Columns, mark: object, rows: Iterable[Row]) -> None:
        """Keep a table of constants under a name of its own; it is filled again when ``mark`` is not what it was.

        No other connection sees it, and it ends with this one.
        """
        if name in self._held and self._held[name] == mark:
            return
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        with transaction(self):
            self.execute(f"create or replace temp table {name} ({listed})")
            load(self, name, columns, rows)
        self._held[name] = mark

    def once(self, name: str, mark: M, make: Callable[[M], T]) -> T:
        """Return what is made of a mark, made again only when it is another one than the last time."""
        last = self._known.get(name)
        if last is None or not (last[0] is mark or last[0] == mark):
            last = self._known[name] = mark, make(mark)
        found: T = last[1]
        return found

    def interrupt(self) -> None:
        """Interrupt what runs. On a connection that is closed nothing runs, for which DuckDB raises an error."""
        with contextlib.suppress(duckdb.ConnectionException):
            self._opened.interrupt()

    def close(self) -> None:
        """Close the connection; the last one closes the database."""
        self._opened.close()

    def cursor(self) -> Connection:
        """Return another connection to the same database, and to the same catalog in it."""
        found = Connection(self._opened.cursor(), self._memory)
        if self._catalog:
            found.use(self._catalog)
        return found

    def use(self, catalog: str) -> None:
        """Look for names without a catalog in this one, which is attached: here, and in cursors that are made of it."""
        self.execute(f"use {catalog}")
        self._catalog = catalog


class Room(msgspec.Struct, frozen=True):
    """The limits of a database on the machine.

    It opens files below ``folders`` and in the folders of ``scratch_folder`` only, and spills into ``spill`` what does
    not fit into ``memory_bytes``; without such a folder it does not spill.
    """

    spill: str = ""
    folders: tuple[str, ...] = ()
    memory_bytes: int = limits.VIEW_MEMORY_BYTES


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn an error of DuckDB about its files into ``ViewDamaged``, and one about values into ``StatementRefused``.

    A fault of ours stays a bug.
    """
    try:
        yield
    except StatementRefused:
        raise
    except duckdb.InvalidInputException as error:
        raise StatementRefused(str(error).partition(":")[2].strip()) from error
    except duckdb.Error as error:
        # A block with a wrong checksum is an error of no class of its own.
        if type(error) is duckdb.Error or isinstance(error, _OF_FILES):
            raise ViewDamaged(str(error)) from error
        raise


@contextlib.contextmanager
def explained_all() -> Iterator[None]:
    """Turn every error of DuckDB into ``ViewDamaged``: for opening a file of which nothing is known yet.

    Who interrupts a statement says nothing of the file.
    """
    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise ViewDamaged(str(error)) from error


def _no_memory(error: duckdb.Error, memory: str) -> ResourceLimit:
    [reason, *_] = str(error).splitlines()
    found = ResourceLimit(f"The database needs more memory than it may use{memory}. DuckDB says: {reason}")
    return interrupting.with_write_state(found)


@contextlib.contextmanager
def explained_with(connection: Connection, params: Sequence[Any]) -> Iterator[None]:
    """Do as ``explained_all`` for a statement with parameters; one that cannot be bound is the caller's bug."""
    try:
        with explained_all():
            yield
    except ViewDamaged:
        if params:
            connection.execute(f"select {', '.join(['?'] * len(params))}", list(params))  # says so, and reads no file
        raise


def connect(room: Room) -> Connection:
    """Return a private in-memory database that keeps to its room, whatever a statement or an attached file asks for.

    It loads no extension, reaches no file outside of its folders, and refuses every change of these settings. Where the
    address space of the process is limited it has fewer threads and less memory.

    Raises: ``ResourceLimit`` when too little of that is left, or the system makes no thread.
    """
    system_limits.check_room()
    space = system_limits.address_space()
    config: dict[str, Any] = {
        "threads": min(_THREADS, space.database_threads) if space else _THREADS,
        "async_threads": 1,  # without one, reading Parquet files waits for timeouts, and never ends once interrupted
        "temp_directory": room.spill,
        "max_temp_directory_size": f"{limits.VIEW_SPILL_BYTES} bytes",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
    }
    try:
        opened = duckdb.connect(":memory:", config=config)
    except duckdb.OutOfMemoryException as error:
        raise _no_memory(error, "") from error
    try:
        allowed = (*room.folders, *scratch.private_folders())
        folders = ", ".join(f"'{quoted(folder.rstrip('/'))}/'" for folder in allowed)
        most = [(room.memory_bytes, MEMORY), (_CACHE.usual_bytes(opened), "the usual share of this machine")]
        most_bytes, limit = min(most + ([(space.database_bytes, f"its share of {space}")] if space else []))
        connection = Connection(opened, f" ({most_bytes // limits.MIB} MiB: {limit})")
        connection.execute(f"{NO_SHARED_SUBPLANS}; set memory_limit = '{most_bytes} bytes'")
        connection.execute(f"set allowed_directories = [{folders}]")
        connection.execute("set enable_external_access = false; set lock_configuration = true")
    except BaseException:
        opened.close()
        raise
    return connection


def attaching_new(path: str, catalog: str) -> str:
    """Return the statement that attaches a file that does not exist yet, or ``:memory:``.

    DuckDB keeps no log of how it is filled: it is not used before the checkpoint at the end.
    """
    return f"attach '{quoted(path)}' as {catalog} ({UNLOGGED})"


@contextlib.contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Commit what the block does, or nothing of it; raises what the block raises."""
    connection.execute("begin")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        # A commit that failed has rolled back by itself: there is nothing left to do then.
        with contextlib.suppress(duckdb.TransactionException):
            connection.execute("rollback", is_cleanup=True)
        raise


def load(connection: Connection, table: str, columns: Columns, rows: Iterable[Row]) -> None:
    """Append rows to a table, in chunks that bound the memory that it takes.

    A few rows are bound value by value, many go by way of a temporary file: each is twice as fast there as it is
    by way of JSON text in a parameter.
    """
    into = f"insert into {table} ({', '.join(columns)})"
    for chunk in chunks(rows):
        if len(chunk) <= _FEW_ROWS:
            row_of = f"({', '.join('?' * len(columns))})"
            values = [row[name] for row in chunk for name in columns]
            connection.execute(f"{into} values {', '.join([row_of] * len(chunk))}", values)
        elif len(chunk) < _MANY_ROWS or not _load_file(connection, into, columns, chunk):
            _load_text(connection, into, columns, chunk)


def _load_text(connection: Connection, into: str, columns: Columns, chunk: list[Row]) -> None:
    shape = ", ".join(f'"{name}": {_json_kind(kind)}' for name, kind in columns.items())
    cells = ", ".join(f"r.{name}" for name in columns)
    connection.execute(
        f"{into} select {cells} from (select unnest(from_json(?::json, '[{{{shape}}}]')) as r)",
        [_encode(chunk).decode()],
    )


class RowFiles(msgspec.Struct, frozen=True):
    """Files with rows, a line of JSON each, none longer than ``row_bytes``.

    Rows whose key is in ``replaced`` are left out; those of ``replacing`` are taken whatever their key is.
    """

    paths: Sequence[str]
    row_bytes: int
    replaced: Sequence[str] = ()
    replacing: Sequence[str] = ()


def load_row_files(connection: Connection, table: str, key: str, columns: Columns, rows_in: RowFiles) -> None:
    """Append the rows of files to a table, in the order of their keys as far as they are loaded together."""
    listed = ", ".join(columns)
    for paths, without in ((rows_in.paths, rows_in.replaced), (rows_in.replacing, ())):
        for start in range(0, len(paths), _FILES_AT_ONCE):
            named = ", ".join(f"'{quoted(path)}'" for path in paths[start : start + _FILES_AT_ONCE])
            rows = _reading_lines(f"[{named}]", columns, max(rows_in.row_bytes, _ROW_BYTES))
            kept = f" where {key} not in (select unnest(?::varchar[]))" if without else ""
            sql = f"insert into {table} ({listed}) select {listed} from {rows}{kept} order by {key}"
            connection.execute(sql, [list(without)] if without else [])


def _reading_lines(files_: str, columns: Columns, most_bytes: int) -> str:
    """Return the expression that reads rows of files, a line of JSON each, none longer than this."""
    kinds = ", ".join(f"{name}: '{'VARCHAR' if kind == 'JSON' else kind}'" for name, kind in columns.items())
    return (
        f"read_json({files_}, format = 'newline_delimited', records = true, maximum_object_size = {most_bytes}, "
        f"columns = {{{kinds}}})"
    )


def _load_file(connection: Connection, into: str, columns: Columns, chunk: list[Row]) -> bool:
    """Load rows by way of a file without a future. Returns False when there is no room for one, or in it."""
    lines = _encode_lines(chunk)
    try:
        with tempfile.NamedTemporaryFile(prefix="kb-", suffix=".json", dir=scratch.made_private_folder()) as file:
            file.write(lines)
            file.flush()
            connection.execute(
                f"{into} select {', '.join(columns)} from "
                + _reading_lines(f"'{quoted(file.name)}'", columns, max(len(lines), _ROW_BYTES))
            )
    except OSError:
        return False
    return True


def _json_kind(kind: str) -> str:
    if kind == "VARCHAR[]":
        return '["VARCHAR"]'
    return '"VARCHAR"' if kind == "JSON" else f'"{kind}"'


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in lists of the length that ``load`` takes at once."""
    source = iter(rows)
    while chunk := list(islice(source, _CHUNK_ROWS)):
        yield chunk


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a new folder that no other user may read; the caller removes it.

    Every database of this process may open the files in it.

    Raises: ``OSError`` where there is no place for temporary files.
    """
    return tempfile.TemporaryDirectory(prefix="kb-", dir=scratch.made_private_folder(), ignore_cleanup_errors=True)


def among(keys: Sequence[str]) -> tuple[str, list[Any]]:
    """Return a condition ``in (…)`` on keys, and its parameters.

    A short list is written out, because DuckDB then uses the index; a long one is joined.
    """
    if len(keys) <= SMALL_LIST:
        return f"in ({', '.join('?' * len(keys))})", list(keys)
    return "in (select unnest(?::varchar[]))", [list(keys)]


def quoted(path: str) -> str:
    """Return a path for use between single quotes, which is the one place where no parameter is possible."""
    return path.replace("'", "''")
