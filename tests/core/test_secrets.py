"""Keys and tokens are found, what only resembles one is not, and no text takes long."""

from __future__ import annotations

import base64
import hashlib
import re
import time
import uuid

import pytest

from kbcore.limits import MAX_TEXT_BYTES
from kbcore.secrets import FORMATS, MARKS, RANDOM_IN_FIELD, masked, masked_in, secret_in, secrets_in
from tests.support.views.graph import Graph

MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
# Put together here, so that no scanner of this repository takes them for keys.
SAMPLES = {
    "AKIA" + "IOSFODNN7EXAMPLE": "an AWS access key id",
    "ASIA" + "J2K3L4M5N6O7P7QR": "an AWS access key id",
    "ghp_" + MIXED: "a GitHub token",
    "ghs_" + MIXED: "a GitHub token",
    "github_pat_" + MIXED[:22] + "_" + MIXED + MIXED[:23]: "a GitHub token",
    "glpat-" + MIXED[:20]: "a GitLab token",
    "xoxb-" + "123456789012-1234567890123-" + MIXED[:24]: "a Slack token",
    "xapp-" + "1-A0123456789-1234567890123-" + MIXED.lower(): "a Slack token",
    "sk_live_" + MIXED[:24]: "a Stripe key",
    "rk_live_" + MIXED[:24]: "a Stripe key",
    "AIza" + MIXED[:35]: "a Google API key",
    "sk-ant-" + "api03-" + MIXED * 2: "an Anthropic key",
    "sk-proj-" + MIXED * 3: "an OpenAI key",
    "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA": "a private key",
    "-----BEGIN " + "PRIVATE KEY-----": "a private key",
    "-----BEGIN " + "OPENSSH PRIVATE KEY-----": "a private key",
    "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----": "a private key",
    "PuTTY-User-Key-File-" + "3: ssh-ed25519": "a private key",
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE": "an age key",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + MIXED: "a JSON Web Token",
    "npm_" + MIXED: "an npm token",
    "pypi-" + "AgEIcHlwaS5vcmcCJD" + MIXED * 2: "a PyPI token",
    "postgres://app:" + "hunter2@db.example.org/kb": "a URL with a password",
    "see https://ci:" + "p%40ss@example.org.": "a URL with a password",
}
NEAR = (
    "REQ-1234",
    "feature/login-2",
    hashlib.sha256(b"x").hexdigest(),
    hashlib.sha1(b"x").hexdigest(),
    str(uuid.UUID(int=0x123456789ABCDEF0123456789ABCDEF0)),
    base64.b64encode(b"a small text in base64").decode(),
    base64.b64encode(bytes(range(256))).decode(),
    "eyJhbGciOiJIUzI1NiJ9",
    "AKIA is how an access key id begins",
    "AKIA1234",
    "ghp_ and github_pat_ are prefixes of tokens",
    "sk_live_short",
    "sk_test_" + MIXED,
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "pypi-server and npm_config_registry",
    "xoxo-with-love-from-here",
    "https://example.org:8080/path?at=user@example.org",
    "ssh://git@example.org:22/kb.git",
    "postgres://user:${PASSWORD}@db",
    "postgres://<user>:<password>@db",
    "postgres://%s:%s@db",
    "http://localhost:3000, me@example.org",
    "mailto:me@example.org",
    "2026-11-20T09:30:00.000000Z",
)
NAMES = ("password", "db_passwd", "clientSecret", "API-KEY", "apiKey", "access_token", "private_key", "passphrase")
RANDOM = ("Tr0ub4dor&3xQ9", MIXED, "kX9-vR2_pL7qW4zN", hashlib.md5(b"x").hexdigest(), "hJ7/k2+Qm9Zt4Xw8Lb3==")
ORDINARY = (
    "",
    "hunter2",
    "kept in the vault",
    "USER_LOGGED_IN_2",
    "color-primary-500",
    "refreshTokenV2",
    "v1.12.3-beta.4",
    "docs/secrets/README.md",
    "/run/secrets/db_password_1a2B3c4D",
    "https://vault.example.org/v1/kv/a1B2c3D4e5F6",
    "${DB_PASSWORD_a1B2c3D4}",
    "aaaaaaaa11111111BBBB",
    "2026-11-20T09:30:00Z",
    str(uuid.UUID(int=0x123456789ABCDEF0123456789ABCDEF0)),
    "deadbeef",
)


@pytest.mark.parametrize("text", SAMPLES)
def test_a_documented_format_is_found_wherever_it_is(text: str) -> None:
    for around in (text, f"Deploy with {text} today", f'"{text}"', f"key={text}\n"):
        found = secret_in(around)
        assert found, around
        assert found.kind == SAMPLES[text]
        assert re.search(MARKS, around)


def test_every_format_has_a_sample() -> None:
    assert {one.kind for one in FORMATS} == set(SAMPLES.values())
    marks = {mark for one in FORMATS for mark in one.marks} - {"gho_", "ghu_", "ghr_"}
    assert [mark for mark in marks if not any(mark in text for text in SAMPLES)] == []


@pytest.mark.parametrize("text", NEAR)
def test_what_only_resembles_a_secret_is_none(text: str) -> None:
    assert secret_in(text) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_random_value_counts_only_in_a_field_for_secrets(name: str) -> None:
    for text in RANDOM:
        found = secret_in(text, name)
        assert found, text
        assert found.kind == RANDOM_IN_FIELD
        assert secret_in(text, "acceptance") is None
        assert secret_in(text, f"{name}_hash") is None


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_value_in_a_field_for_secrets_is_none(text: str) -> None:
    assert [name for name in NAMES if secret_in(text, name)] == []


def test_every_place_in_a_value_is_looked_at_and_reported() -> None:
    key, password = "ghp_" + MIXED, RANDOM[0]
    value = {
        "plain": [1, None, True, "open", {"deep": ["x", f"use {key}"]}],
        "passwords": ["short", password],
        "auth": {"password": password, "expires": 30},
        key: "a name",
    }
    found = list(secrets_in(value, place="$.entities[0].attributes"))
    start = "$.entities[0].attributes"
    assert [one.place for one in found] == [
        f"{start}.plain[4].deep[1]",
        f"{start}.passwords[1]",
        f"{start}.auth.password",
        f"{start}.ghp_…",
    ]
    assert found[0].looks == "looks like a GitHub token (ghp_…, 40 characters)."


def test_never_more_than_the_first_characters_are_shown() -> None:
    for text in [*SAMPLES, *RANDOM]:
        found = secret_in(text, "token")
        assert found
        assert text[:20] not in f"{found}"
        shown = found.shown.partition("…")[0]
        assert len(shown) <= min(4, len(text) // 4)


@pytest.mark.sliced(6)
@pytest.mark.parametrize(
    "part", ["eyJ", "eyJa.", "eyJaaaaaaaaaa.eyJ", "://", "://a:", "://a:b", "-----BEGIN ", "-----BEGIN A ", "sk-ant-",
             "sk-proj-", "ghp_", "xoxb-", "glpat-", "AKIA", "pypi-Ag", "a1B-", "npm_a", "AIza", "A", "aB1.", "k_live_"],
)  # fmt: skip
def test_no_text_takes_longer_than_its_length(part: str) -> None:
    def seconds(length: int) -> float:
        text = (part * (length // len(part) + 1))[:length]
        started = time.perf_counter()
        secret_in(text, "token")
        return time.perf_counter() - started

    seconds(MAX_TEXT_BYTES)  # compiles what it needs
    assert min(seconds(MAX_TEXT_BYTES) for _ in range(3)) < 0.1
    assert min(seconds(16 * MAX_TEXT_BYTES) for _ in range(3)) < 1


def test_the_database_finds_whatever_is_found_here() -> None:
    graph = Graph()
    for text in SAMPLES:
        assert graph.rows("select regexp_matches($1, $2)", [text, MARKS]) == [(True,)], text
    for name in NAMES:
        assert graph.rows("select regexp_matches($1, $2)", [f'{{"my_{name}_1":"x"}}', MARKS]) == [(True,)], name
    assert graph.rows("select regexp_matches($1, $2)", ['{"note":"a token: of REQ-1"}', MARKS]) == [(False,)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_masked_text_holds_no_secret_and_keeps_the_rest(sample: str) -> None:
    shown = masked(f"`x` is ('{sample}')")
    assert sample not in shown
    assert shown.startswith("`x` is ('")
    assert secret_in(shown) is None
    assert masked(shown) == shown
    if "PRIVATE KEY" not in sample and "PuTTY" not in sample:
        assert shown.endswith("')")


def test_what_follows_the_header_of_a_private_key_is_masked_with_it() -> None:
    header = "-----BEGIN OPENSSH " + "PRIVATE KEY-----"
    assert masked(f"It is {header}\nb3BlbnNzaC1rZXktdjEAAAAA") == "It is ----…"


def test_a_random_value_is_masked_in_a_field_for_secrets_alone() -> None:
    value = {"note": "kX9-vR2_pL7qW4zN", "client_secret": ["kX9-vR2_pL7qW4zN"], "seq": 7}
    assert masked_in(value) == {"note": "kX9-vR2_pL7qW4zN", "client_secret": ["kX9-…"], "seq": 7}


def test_ordinary_text_is_left_as_it_is() -> None:
    text = "REQ-1 depends_on NOPE, but there is no NOPE. Did you mean 'npm_config_cache'? See https://example.org/a:b."
    assert masked(text) is text
