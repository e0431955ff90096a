"""``kb dml compile``: the file that is written, and when no model is asked."""

from __future__ import annotations

import pytest

from kbcli.dml.compile_program import CompileRequest, compile_program
from kbcli.invocation.context import Session
from kbcli.terminal.output import Output
from kbcore.dml import Budget
from kbcore.errors import InvalidQuery, ProgramFailed
from tests.support.dml.scripts import Script, call, does
from tests.support.logic.engines import engine_variables
from tests.support.processes.cli import environment, write

GOOD = 'agent_main :- answer("done").\n'


@pytest.fixture
def compiled(tmp_path, monkeypatch, capfd):
    """Compile a.md with a script, and return what was said."""
    monkeypatch.chdir(tmp_path)
    env = environment(engine_variables("auto")) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*turns, name="a.md", force=False, model="m"):
        script = Script(*(does(call("submit_program", program=one)) for one in turns))
        session = Session(env, Output(env))
        compile_program(session, CompileRequest(name, script, model, (), Budget(), force))
        session.output.flush()
        assert script.left == 0
        return capfd.readouterr().out

    return run


def test_a_description_becomes_a_program_once(compiled, tmp_path):
    write(tmp_path, {"a.md": "Say done."})
    assert compiled("agent_main :- foo(.", GOOD).endswith("a.dml (2 attempts, 30 tokens).\n")
    text = (tmp_path / "a.dml").read_text()
    assert text.startswith("%% Made from a.md\n")
    assert text.endswith(f"\n\n{GOOD}")
    assert "already" in compiled()
    (tmp_path / "a.dml").unlink()
    assert "as the model wrote it before" in compiled()
    assert (tmp_path / "a.dml").read_text() == text
    write(tmp_path, {"a.md": "Say more."})
    assert "(1 attempt, 15 tokens)" in compiled(GOOD)
    write(tmp_path, {"a.md": "Say done."})
    assert "as the model wrote it before" in compiled()
    (tmp_path / "a.dml").unlink()
    assert "(1 attempt, 15 tokens)" in compiled(GOOD, model="another")


def test_a_program_that_was_edited_is_overwritten_only_by_force(compiled, tmp_path):
    write(tmp_path, {"a.md": "Say done."})
    compiled(GOOD)
    edited = (tmp_path / "a.dml").read_text() + "% mine\n"
    write(tmp_path, {"a.dml": edited})
    with pytest.raises(InvalidQuery, match="was edited"):
        compiled()
    assert (tmp_path / "a.dml").read_text() == edited
    compiled(force=True)
    assert "% mine" not in (tmp_path / "a.dml").read_text()


def test_nothing_is_written_where_no_attempt_is_good(compiled, tmp_path):
    write(tmp_path, {"a.md": "Say done."})
    with pytest.raises(ProgramFailed):
        compiled("x :- .", "x :- .", "x :- .")
    assert not (tmp_path / "a.dml").exists()
    compiled(GOOD)


@pytest.mark.parametrize(
    ("name", "said"), [("-", "does not end in"), ("a.dml", "does not end in"), ("no.md", "cannot be read")]
)
def test_what_is_no_description_is_refused(compiled, tmp_path, name, said):
    write(tmp_path, {"a.dml": GOOD})
    with pytest.raises(InvalidQuery, match=said):
        compiled(name=name)


def test_an_empty_description_is_refused(compiled, tmp_path):
    write(tmp_path, {"a.md": " \n"})
    with pytest.raises(InvalidQuery, match="is empty"):
        compiled()
