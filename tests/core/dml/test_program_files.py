"""The files of a program: those of its folder by their real paths, and the predicates that read and write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbcore.limits import MAX_PROGRAM_FILE_BYTES
from tests.support.dml.runs import Ran, body, ran

Engine = dict[str, str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a program, with links that lead out of it and back into it."""
    made, outside = tmp_path / "folder", tmp_path / "outside"
    (made / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (made / "a.txt").write_text("line1\nline2\n")
    (made / "a..b").write_text("dots")
    (made / "terms.pl").write_text("foo(X, Y, X). bar(\"s\"). 'q q'.")
    (made / "bytes").write_bytes(b"\xff\xfe\x00")
    with (made / "large").open("wb") as file:
        file.truncate(MAX_PROGRAM_FILE_BYTES + 1)
    links = {
        "out": "../outside/secret",
        "dir": "../outside",
        "in": "a.txt",
        "new_out": "../outside/new",
        "new_in": "made",
    }
    for name, target in links.items():
        (made / name).symlink_to(target)
    return made


def reason(goal: str, engine: Engine, folder: Path | None) -> str:
    """Return why a goal is refused."""
    return ran(body(goal), engine, workspace=folder).error.content.removeprefix("The program ended with an error: ")


def logs(goal: str, engine: Engine, folder: Path) -> list[str]:
    """Return what a goal logs, which succeeds."""
    found: Ran = ran(body(goal), engine, workspace=folder)
    assert found.outcome == "success", found.events
    return found.logs


def test_a_path_is_judged_by_what_it_leads_to(engine: Engine, folder: Path) -> None:
    paths = {
        "out": "'out' is outside of the folder of the program",
        "dir/secret": "'dir/secret' is outside of the folder of the program",
        "dir/../folder/a.txt": "ok", "in": "ok", "sub/../a.txt": "ok", "a..b": "ok", str(folder / "a.txt"): "ok",
        "../outside/secret": "'../outside/secret' is outside of the folder of the program",
        "sub/../../outside/secret": "'sub/../../outside/secret' is outside of the folder of the program",
        "/etc/passwd": "'/etc/passwd' is outside of the folder of the program",
        "new_out": "'new_out' is outside of the folder of the program",
        "missing": "There is no file 'missing'", "no/x": "There is no file 'no/x'", "~": "There is no file '~'",
        "sub": "'sub' is no file", "": "'' is no file", ".": "'.' is no file", "a.txt/x": "'a.txt/x': Not a directory",
        "bytes": "'bytes': it is no text in UTF-8", "large": "'large' has more than 16,777,216 bytes",
        "a\\0\\b": "A path has no character NUL",
    }  # fmt: skip
    goals = ", ".join(
        f'catch(( open("{path}", read, S{at}), read_string(S{at}, _, _), close(S{at}), log(ok) ), '
        f"error(_, context(_, W{at})), log(W{at}))"
        for at, path in enumerate(paths)
    )
    assert [line.rstrip(".") for line in logs(goals, engine, folder)] == [*paths.values()]
    goals = ", ".join(
        f'catch(( open("{path}", write, S{at}), close(S{at}), log("{path}") ), error(_, context(_, W{at})), log(no))'
        for at, path in enumerate(["out", "dir/new", "../evil", "new_out", "sub", "no/x", "new", "sub/new", "new_in"])
    )
    assert logs(goals, engine, folder) == ["no"] * 6 + ["new", "sub/new", "new_in"]
    assert (folder / "made").read_text() == ""
    assert [one.name for one in (folder.parent / "outside").iterdir()] == ["secret"]
    assert reason('open("out", read, _)', engine, folder) == "'out' is outside of the folder of the program."


def test_a_folder_that_is_a_link_is_the_folder_that_it_leads_to(engine: Engine, folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert logs('read_file_to_string("sub/../a.txt", T, []), log(T)', engine, link) == ["line1\nline2\n"]


def test_a_run_without_a_folder_has_no_files(engine: Engine) -> None:
    why = "The program has no folder for files: `--workspace DIR` gives it one."
    goals = ['open("a", read, _)', 'open("a", write, _)', 'exists_file("a")', 'directory_files(".", _)']
    assert {reason(goal, engine, None) for goal in goals} == {why}


def test_files_are_read_in_each_way(engine: Engine, folder: Path) -> None:
    goal = """open("a.txt", read, S), read_line_to_string(S, A), read_line_to_codes(S, B), read_line_to_string(S, C),
        close(S),
        length(B, N), log([A, N, C]),
        open('a..b', read, D), peek_char(D, E), get_char(D, E), get_code(D, F), peek_code(D, G), line_count(D, H),
        read_string(D, 1, I), read_stream_to_codes(D, J), at_end_of_stream(D), length(J, K), log([E, F, G, H, I, K]),
        open("terms.pl", read, L), read_term(L, M, [variable_names(O)]), read(L, P), read(L, Q), read(L, R),
        length(O, U), M = foo(V, _, W), V == W, log([U, P, Q, R]),
        read_file_to_string("a.txt", X, []), log(X), read_file_to_terms("terms.pl", Y, []), length(Y, Z), log(Z),
        open("a.txt", read, A1), read_string(A1, "\\n", " ", Sep, A2), log([A2, Sep])"""
    assert logs(goal, engine, folder) == [
        '["line1",5,"end_of_file"]', '["d",111,116,1,"t",1]', '[2,"bar(\\"s\\")","q q","end_of_file"]',
        "line1\nline2\n",
        "3", '["line1",10]',
    ]  # fmt: skip


def test_files_are_written_in_each_way_and_read_as_they_were_closed(engine: Engine, folder: Path) -> None:
    goal = """open("w", write, S), write(S, 'A b'), writeq(S, 'A b'), print(S, 'A b'), write_canonical(S, "s"),
        put_char(S, z),
        tab(S, 2), writeln(S, x), format(S, "~w-~a", [b, c]), nl(S), write_term(S, 'é ü', [quoted(true)]),
        flush_output(S),
        read_file_to_string("w", Before, []), string_length(Before, N), log(N), close(S),
        open(w, append, T, [encoding(utf8), alias(out)]), write(out, 'more'), close(out), T == out,
        read_file_to_string("w", After, []), log(After)"""
    (folder / "w").write_text("old")
    text = "A b'A b''A b'\"s\"z  x\nb-c\n'é ü'more"
    assert logs(goal, engine, folder) == ["3", text]
    assert (folder / "w").read_text(encoding="utf-8") == text


def test_the_folder_is_listed_and_asked_about(engine: Engine, folder: Path) -> None:
    goal = """exists_file("a.txt"), exists_file(in), \\+ exists_file("sub"), exists_directory(sub),
        \\+ exists_directory("a.txt"),
        \\+ exists_file("missing"), directory_files(sub, L), log(L), directory_files(".", M), memberchk('a..b', M),
        catch(exists_file("out"), error(permission_error(_, _, _), _), log(no)),
        catch(directory_files(dir, _), error(permission_error(_, _, _), _), log(no))"""
    (folder / "sub" / "x").touch()
    assert logs(goal, engine, folder) == ['[".","..","x"]', "no", "no"]


WRONG = {
    "open(_, read, _)": "Arguments are not sufficiently instantiated",
    "open(f(x), read, _)": "Type error: `source_sink` expected, found `f(x)` (a compound)",
    "open(a, update, _)": "Domain error: `io_mode` expected, found `update`",
    "open(a, read, _, [type(binary)])": "Domain error: `stream_option` expected, found `type(binary)`",
    "open(a, write, _, [alias(user_output)])": "No permission to `open` `source_sink` `alias(user_output)`",
    "open(a, write, _, [alias(o)]), open(b, write, _, [alias(o)])": "No permission to `open` `source_sink` `alias(o)`",
    'open("a.txt", read, S), write(S, x)': "No permission to `output` `stream` `<stream>`",
    'open("w", write, S), read_string(S, _, _)': "No permission to `input` `stream` `<stream>`",
    'open("a.txt", read, S), close(S), close(S)': "There is no `stream` `<stream>`",
    "write(_, x)": "Arguments are not sufficiently instantiated",
    "flush_output(_)": "Arguments are not sufficiently instantiated",
    "write('<stream>(0x600000)', x)": "There is no `stream` `'<stream>(0x600000)'`",
    'close("<stream>(0x600000)")': 'There is no `stream` `"<stream>(0x600000)"`',
    "write(kb_null, x)": "There is no `stream` `kb_null`",
    "read(_)": "`user_input` is never readable",
    "read_term(user_input, _, [])": "`user_input` is never readable",
    "read_string(user_input, _, _)": "`user_input` is never readable",
    "get_char(_)": "`user_input` is never readable",
    "read_line_to_string(user_input, _)": "`user_input` is never readable",
    'open("terms.pl", read, S), read_term(S, _, [module(user)])': (
        "The option `module(user)` is refused: it can call a goal"
    ),
    'open("terms.pl", read, S), read_term(S, _, _)': "Arguments are not sufficiently instantiated",
    'open("w", write, S), length(L, 1000000), maplist(=(aaaaaaaaaaaaaaaaaa), L), write(S, L)': (
        "The program wrote more into a file than it may have"
    ),
    'forall(between(1, 200, N), ( format(string(F), "f~d", [N]), open(F, write, _) ))': (
        "The program has more files open than it may"
    ),
}  # fmt: skip


@pytest.mark.sliced(6)
@pytest.mark.parametrize("goal", WRONG)
def test_what_cannot_be_done_with_a_stream_says_why(engine: Engine, folder: Path, goal: str) -> None:
    assert reason(goal, engine, folder).removesuffix(".") == WRONG[goal]


def test_terms_that_are_read_are_data_and_checked_when_they_are_called(engine: Engine, folder: Path) -> None:
    (folder / "evil.pl").write_text(
        "shell('touch evil'). :- shell('touch evil'). assertz(kb_guard:x). {|shell(X)||ls|}."
    )
    goal = """open("evil.pl", read, S), read(S, A), catch(call(A), error(kb_refused(_, W), _), log(W)), read(S, B),
        catch(assertz(B), error(kb_refused(_, V), _), log(V)), read(S, C), catch(call(C), error(kb_refused(_, U), _),
        log(U)),
        catch(read(S, _), error(syntax_error(_), _), log(syntax))"""
    assert logs(goal, engine, folder) == ["not_allowed", "head", "module", "syntax"]
    assert not (folder / "evil").exists()


def test_a_file_whose_rights_forbid_it_is_refused(engine: Engine, folder: Path) -> None:
    (folder / "a.txt").chmod(0)
    if os.access(folder / "a.txt", os.R_OK):
        pytest.skip("this user may read everything")
    assert reason('open("a.txt", read, _)', engine, folder) == "'a.txt': Permission denied."
