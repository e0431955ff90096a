"""A server of S3 on loopback: moto's, in a process of its own, which ends when its standard input does.

``python -m tests.support.fleet.s3_server`` prints the port. After ``POST /moto-api/reset-auth`` with N as the body, the
server lets N requests pass and then asks each for the rights of its key.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

BUCKET = "acme-kb"
URL = f"s3://{BUCKET}/kb"
SECRET = "topSecretKeyOfTheTests0123456789abcdefgh"
_ENV = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


class S3Server(NamedTuple):
    """The address of a running server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def env(self, port: int = 0, **more: str) -> dict[str, str]:
        """Return the variables by which clients reach it, by way of another port where one is given."""
        return _ENV | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}"} | more

    def check_rights_after(self, requests: int | None) -> None:
        """Have the server check the rights of each request after so many; None has it check none."""
        count = float("inf") if requests is None else requests
        self._post("/moto-api/reset-auth", str(count).encode())

    def reset(self) -> None:
        """Remove everything, and make the bucket again."""
        self._post("/moto-api/reset", b"")
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT")).close()

    def key_of_user(self, name: str, actions: list[str]) -> dict[str, str]:
        """Make a user who may do these actions, such as ``s3:GetObject``, and return the variables with the key."""
        import boto3

        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": SECRET}
        iam = boto3.client("iam", endpoint_url=self.url, region_name="us-east-1", **keys)
        iam.create_user(UserName=name)
        statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def _post(self, path: str, data: bytes) -> None:
        headers = {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}{path}", data, headers, method="POST")).close()


def use(monkeypatch: pytest.MonkeyPatch, env: Mapping[str, str]) -> None:
    """Have this process reach a server by these variables until the test ends."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)


@contextlib.contextmanager
def running() -> Iterator[S3Server]:
    """Run a server for the length of the block."""
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | _ENV) as process:
        try:
            line = process.stdout.readline()
            yield S3Server(int(line))
        finally:
            process.stdin.close()


class CuttingProxy:
    """Passes connections on to a server, and ends each one once the client has sent ``most_bytes`` by it; 0 is all."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.most_bytes = 0
        self.cut = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                left = [self.most_bytes]
                for source, target, limit in ((client, server, left), (server, client, None)):
                    threading.Thread(target=self._pass_on, args=(source, target, limit), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, left: list[int] | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1024):
                if left and left[0]:
                    left[0] -= len(data)
                    if left[0] <= 0:
                        self.cut += 1
                        break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _serve() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: object) -> None:
            pass

    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
