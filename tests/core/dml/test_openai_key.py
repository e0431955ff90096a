"""The key of a model: where it is read and sent, and that no text shows it."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.dml.openai_model import OpenAIModel, without_key
from kbcore.errors import InvalidQuery
from tests.support.models.chat_server import CANARY, ChatServer, Raw, Said, error
from tests.support.models.openai_models import TRANSPORTS, ask, failure_of, model_of

pytestmark = pytest.mark.usefixtures("no_proxy")


def test_the_key_is_read_when_the_model_is_asked() -> None:
    env = {"KB_DML_API_KEY": "first-key-1234"}
    with ChatServer(Said("x"), Said("x"), Said("x")) as server:
        model = model_of(server, env=env)
        ask(model)
        env["KB_DML_API_KEY"] = " second-key-1234\n"
        ask(model)
        del env["KB_DML_API_KEY"]
        ask(model)
    sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == ["Bearer first-key-1234", "Bearer second-key-1234", None]


def test_variables_of_other_programs_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Mine: {CANARY}\nAuthorization: Bearer {CANARY}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with ChatServer(Said("x"), Said("x")) as server:
        ask(model_of(server, env={}))
        ask(model_of(server, env={"KB_DML_API_KEY": "the-right-one"}))
    assert all(CANARY not in json.dumps(dict(asked.headers)) for asked in server.asked)
    assert "authorization" not in server.asked[0].headers
    assert server.asked[1].headers["authorization"] == "Bearer the-right-one"


def test_a_redirect_does_not_take_the_key_along() -> None:
    with ChatServer(Said("x")) as other:
        moved = Raw(b"", 308, {"location": f"{other.url}/chat/completions"})
        with ChatServer(moved) as server:
            failure_of(model_of(server))
    assert other.asked == []


@TRANSPORTS
@pytest.mark.parametrize("shown", [CANARY, CANARY[:14], CANARY[9:], f"{CANARY[:12]}***{CANARY[-8:]}"])
@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_that_a_server_repeats_is_in_no_text(
    streams: bool, shown: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {shown}."}}).encode()
    answer = Raw(body, status, {"x-key": "1"})
    with ChatServer(answer, answer, answer) as server:
        model = model_of(server)
        failed = failure_of(model, streams=streams)
    texts = [str(failed), failed.hint, repr(failed), repr(model), str(vars(model).get("_url")), caplog.text]
    error_: BaseException | None = failed.__cause__ or failed.__context__
    assert error_ is None
    pieces = {CANARY[at : at + 8] for at in range(len(CANARY) - 7)}
    assert [piece for text in texts for piece in pieces if piece in text] == []
    assert "Incorrect API key provided: …" in str(failed)


@given(
    key=st.text("abcd-", min_size=4, max_size=20),
    around=st.lists(st.text("abcd- .", max_size=20), min_size=1, max_size=4),
)
def test_no_piece_of_a_key_is_left_in_a_text(key: str, around: list[str]) -> None:
    shown = without_key(key.join(around), key)
    size = min(8, len(key))
    assert not any(key[at : at + size] in shown for at in range(len(key) - size + 1))


@given(text=st.text(max_size=60))
def test_a_text_without_a_piece_of_the_key_stays_as_it_is(text: str) -> None:
    assert without_key(text, "\x00" * 12) == text.replace("\x00" * 8, "…") or "\x00" in text
    assert without_key(text, "abc") == text


@pytest.mark.parametrize("key", ["kéy-of-mine", "a\nb", "x\x00y"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with ChatServer() as server:
        failed = failure_of(model_of(server, env={"KB_DML_API_KEY": key}))
    assert key not in str(failed)
    assert "KB_DML_API_KEY holds characters that no key has" in str(failed)
    assert server.asked == []


def test_a_missing_key_is_named_where_a_server_asks_for_one() -> None:
    with ChatServer(error(401, "No key.")) as server:
        assert failure_of(model_of(server, env={})).hint == "Set KB_DML_API_KEY: it is not set."


@pytest.mark.parametrize("rest", ["?key=", "#"])
def test_a_url_with_a_key_is_refused_without_showing_it(rest: str) -> None:
    for url in (f"https://user:{CANARY}@h/v1", f"https://h/v1{rest}{CANARY}"):
        with pytest.raises(InvalidQuery, match="holds a user, a query or a fragment") as caught:
            OpenAIModel("m", env={}, base_url=url)
        assert CANARY not in str(caught.value)
