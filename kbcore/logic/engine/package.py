"""Installs the WebAssembly build of SWI-Prolog: one npm package, by name, version and digest, without its scripts.

Invariant: nothing is unpacked before its digest is the expected one, and the folder is put in its place complete.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from kbcore.errors import PrologUnavailable
from kbcore.errors.remedies import kb
from kbcore.logic.engine.installation import (
    PACKAGE,
    PACKAGE_FILES,
    PACKAGE_VERSION,
    is_complete,
    node_programs,
    package_folder,
)

_SHA512: Final = "IkffjSlJx9SHqpaluuRxku7R11/tqpZQg/iPjyoIC7heZ8Y1lzIhQR8ddDGSyVN15WD3mYw3CxrWoco5zizr0Q=="
"""The digest of the package file, as the registry gives it (``dist.integrity``)."""

_MAX_FILE_BYTES: Final = 32 * 1024 * 1024
_NPM_OPTIONS: Final = (
    "--ignore-scripts",
    "--loglevel=error",
    "--fetch-retries=1",  # with npm's own two and its pauses, a machine without a connection learns it after a minute
    "--fetch-retry-mintimeout=1000",
)
_FETCH_TIMEOUT_S: Final = 300.0


def install(env: Mapping[str, str], *, digest: str = _SHA512) -> tuple[Literal["installed", "present"], Path]:
    """Fetch the package into the user's data folder, unless it is there; return what was done, and the folder.

    ``digest`` is the SHA-512 that the package file must have, in base64.

    Raises:
        PrologUnavailable: there is no node or npm, no home, no connection, or the package is another one.
    """
    folder = package_folder(env)
    if folder is None:
        raise PrologUnavailable("There is no folder for the package: neither `HOME` nor `XDG_DATA_HOME` is set.")
    if is_complete(folder):
        return "present", folder
    command = _npm(env)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as scratch:
            archive = _fetch(command, env, Path(scratch))
            _check(archive, digest)
            unpacked = Path(scratch) / "package"
            _unpack(archive, unpacked)
            _publish(unpacked, folder, Path(scratch))
    except OSError as error:
        raise PrologUnavailable(f"{folder.parent} cannot be written: {error.strerror}.") from error
    return "installed", folder


def _npm(env: Mapping[str, str]) -> tuple[str, ...]:
    found = shutil.which("npm", path=env.get("PATH"))
    if found:
        return (found,)
    nodes = [*node_programs(env)]
    for node in nodes:
        script = Path(node).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        if script.is_file():
            return (node, str(script))
    what = "There is no `npm`" if nodes else "There is neither `node` nor `npm`"
    remedy = "Install Node.js, or `pip install 'kb-memory[prolog]'`, which brings both."
    raise PrologUnavailable(f"{what} on the PATH.", hint=remedy)


def _fetch(command: tuple[str, ...], env: Mapping[str, str], scratch: Path) -> Path:
    named = f"{PACKAGE}@{PACKAGE_VERSION}"
    arguments = (
        *command,
        "pack",
        named,
        *_NPM_OPTIONS,
        "--cache",
        str(scratch / "cache"),
        "--pack-destination",
        str(scratch),
    )
    try:
        answer = subprocess.run(
            arguments, cwd=scratch, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_FETCH_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise PrologUnavailable(f"npm did not fetch {named} within {_FETCH_TIMEOUT_S:.0f} seconds.") from error
    archives = sorted(scratch.glob("*.tgz"))
    if answer.returncode or len(archives) != 1:
        said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = f" npm says: {said[0]}." if said else ""
        remedy = f"Connect to the registry that npm is set up for, and {kb('prolog', 'install', lead='run')} again."
        raise PrologUnavailable(f"npm could not fetch {named}.{reason}", hint=remedy)
    return archives[0]


def _check(archive: Path, digest: str) -> None:
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode("ascii")
    if found != digest:
        message = f"What npm fetched is not {PACKAGE} {PACKAGE_VERSION}: its SHA-512 is {found}, not {digest}."
        remedy = "Nothing was installed. Look which registry npm is set up for (`npm config get registry`)."
        raise PrologUnavailable(message, hint=remedy)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, "r:gz") as opened:
        for name in PACKAGE_FILES:
            member = opened.getmember(f"package/{name}")
            source = opened.extractfile(member)
            if source is None or member.size > _MAX_FILE_BYTES:
                raise PrologUnavailable(f"The package {PACKAGE} has no usable file {name}.")
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read())


def _publish(unpacked: Path, folder: Path, scratch: Path) -> None:
    """Put the folder in its place, unless another process was first; an incomplete one that is there is removed."""
    if folder.exists() and not is_complete(folder):
        folder.replace(scratch / "incomplete")
    try:
        unpacked.rename(folder)
    except OSError:
        if not is_complete(folder):
            raise
