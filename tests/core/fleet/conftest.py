"""A server of S3 on loopback for the tests of a fleet."""

from __future__ import annotations

import pytest

from tests.support.fleet import s3_server


@pytest.fixture(scope="session")
def server():
    with s3_server.running() as one:
        yield one


@pytest.fixture
def s3(server, monkeypatch):
    """The server with an empty bucket, which this process reaches."""
    server.check_rights_after(None)
    server.reset()
    s3_server.use(monkeypatch, server.env())
    return server
