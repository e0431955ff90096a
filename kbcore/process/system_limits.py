"""The limits that the system sets this process: the rest for a database, and the meaning of its refusals.

A process whose address space is limited (``ulimit -v`` or ``-d``) ends without a message when a thread of the C library
or of the database gets no memory. So a limit that is too small is refused before the work begins, a database gets a
share of what the limit leaves, and none is opened where too little is left.
"""

from __future__ import annotations

import contextlib
import errno
import resource
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import ResourceLimit
from kbcore.limits import DATABASE_ROOM_BYTES, MAX_READERS, MIB, MIN_ADDRESS_BYTES
from kbcore.process.interrupting import with_write_state

_PAGES: Final = Path("/proc/self/statm")
_LIMITS: Final = (("ulimit -v", resource.RLIMIT_AS, 0), ("ulimit -d", resource.RLIMIT_DATA, 5))
"""Each limit, as a shell sets it, with the field of ``statm`` that counts what is used of it."""

_PROGRAM_BYTES: Final = 512 * MIB
"""Address space of the program itself and its threads."""
_SHARES: Final = MAX_READERS + 2
"""Databases that share the rest; of more that are open some do little."""
_LEAST_BYTES: Final = 64 * MIB
_SEVERAL_THREADS_BYTES: Final = 2048 * MIB
"""From this limit on a database may have more than one thread."""
_ONE_HEAP_BYTES: Final = 8192 * MIB
"""Below this limit all threads share one heap: the C library reserves 64 MiB for each further one."""
_THREAD_BYTES: Final = 16 * MIB
"""A thread that gets no more than this was refused for lack of memory: its stack takes 8 MiB."""
_M_ARENA_MAX: Final = -8

_NO_MORE: Final = {
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes or threads",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
}
_NO_THREAD: Final = "can't start new thread"
"""All that Python says of it: there is no class or number of its own."""
_RETRY: Final = " A write with a changeset_id of its own may be sent again: it takes effect at most once."


class AddressSpace(msgspec.Struct, frozen=True):
    """A limit of the memory that this process can address: how a shell sets it, how much it is, what is left of it."""

    name: str
    limit_bytes: int
    left_bytes: int

    def __str__(self) -> str:
        """Name the limit and how much it is."""
        return f"the address space of this process (`{self.name}`, {self.limit_bytes // MIB} MiB)"

    @property
    def database_threads(self) -> int:
        """Return the most threads that a database may have."""
        return 1 if self.limit_bytes < _SEVERAL_THREADS_BYTES else 2

    @property
    def database_bytes(self) -> int:
        """Return the most memory that one database may take."""
        return max(_LEAST_BYTES, (self.limit_bytes - _PROGRAM_BYTES) // _SHARES)


def address_space() -> AddressSpace | None:
    """Return the limit of which the least is left; None where there is none, or its use is not known."""
    found = [(name, limit, field) for name, number, field in _LIMITS if (limit := resource.getrlimit(number)[0]) != -1]
    if not found:
        return None
    try:
        used = [int(pages) * resource.getpagesize() for pages in _PAGES.read_text(encoding="ascii").split()]
    except OSError:
        return None
    return min(
        (AddressSpace(name, limit, limit - used[field]) for name, limit, field in found),
        key=lambda one: one.left_bytes,
    )


def prepare() -> None:
    """Make the process fit for its limits, before it starts a thread.

    Raises: ``ResourceLimit`` when the address space is limited to less than KB needs.
    """
    space = address_space()
    if space is None:
        return
    if space.limit_bytes < MIN_ADDRESS_BYTES:
        needed = f"KB needs at least {MIN_ADDRESS_BYTES // MIB} MiB"
        raise ResourceLimit(
            f"There is too little of {space}: {needed}. Nothing was done.",
            hint=f"Raise the limit: `{space.name} {MIN_ADDRESS_BYTES // 1024}`, or `{space.name} unlimited`.",
        )
    if space.limit_bytes < _ONE_HEAP_BYTES:
        with contextlib.suppress(OSError, AttributeError):  # another C library has no such setting, and need not
            import ctypes  # noqa: PLC0415 - few processes are limited

            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def check_room() -> None:
    """Refuse to begin what opens databases and threads where the limit leaves too little for it.

    Raises: ``ResourceLimit``.
    """
    space = address_space()
    if space is not None and space.left_bytes < DATABASE_ROOM_BYTES:
        raise with_write_state(
            ResourceLimit(
                f"Only {max(0, space.left_bytes) // MIB} MiB are left of {space}; a database needs "
                f"{DATABASE_ROOM_BYTES // MIB} MiB to begin.",
                hint=f"Ask again when less is done at a time, or raise the limit (`{space.name}`).",
            )
        )


def child_environment() -> dict[str, str]:
    """Return what to add to the environment of a program in Python that opens a database."""
    space = address_space()
    return {"MALLOC_ARENA_MAX": "1"} if space is not None and space.limit_bytes < _ONE_HEAP_BYTES else {}


def exhausted(error: BaseException, *, may_be_written: bool) -> ResourceLimit | None:
    """Return the error for a call that the system refused for lack of memory, threads or files; None for others.

    It may be one of a group. ``may_be_written`` says whether a write may have taken effect, as far as the caller knows.
    """
    if isinstance(error, ResourceLimit):
        return error
    if isinstance(error, BaseExceptionGroup):
        found_in = (exhausted(one, may_be_written=may_be_written) for one in error.exceptions)
        return next((found for found in found_in if found), None)
    what = _NO_MORE.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    what = "memory" if isinstance(error, MemoryError) else what
    what = "threads" if isinstance(error, RuntimeError) and str(error) == _NO_THREAD else what
    if not what:
        return None
    space = address_space()
    if space and (what == "memory" or (what == "threads" and space.left_bytes < _THREAD_BYTES)):
        hint = f"Ask for less, or raise the limit (`{space.name}`)."
        found = ResourceLimit(f"There is no more of {space}.", hint=hint)
    else:
        found = ResourceLimit(f"The system gives KB no more {what}.")
    if may_be_written:
        found.applied = "unknown"
        found.remedy += _RETRY
    return found


def give_back_memory() -> None:
    """Give freed memory back to the system, where the C library can: glibc keeps small pieces until it is asked."""
    import ctypes  # noqa: PLC0415 - as above

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
