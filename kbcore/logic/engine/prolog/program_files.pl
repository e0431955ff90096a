/*  Files of a program: it has those of one folder, which the caller reads and writes for it.

    A stream that reads is a text in memory. A stream that writes is a file of this engine's own folder, and its text is
    sent when the stream is closed. Every stream that a program names is one of its own.
*/
:- module(kb_program_files, [file_goal/3, close_files/0]).
:- use_module(library(lists)).
:- use_module(library(error), [must_be/2]).
:- use_module(library(readutil)).
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(guard).
:- use_module(program_requests).

:- dynamic own_stream/4,                % Stream, `read` or write(Mode), Path, File of the engine or none
           stream_alias/2.              % Alias, Stream

max_file_bytes(16_777_216).
max_open_files(100).

%!  file_goal(?Name, ?Arity, -Predicate)
%
%   The predicates of files and streams, each with the predicate of this module that does its work.

file_goal(open, 3, open_).
file_goal(open, 4, open_).
file_goal(close, 1, close_).
file_goal(close, 2, close_).
file_goal(exists_file, 1, exists_file_).
file_goal(exists_directory, 1, exists_directory_).
file_goal(directory_files, 2, directory_files_).
file_goal(read_file_to_string, 3, read_file_to_string_).
file_goal(read_file_to_terms, 3, read_file_to_terms_).
file_goal(read_string, 3, read_string_).
file_goal(read_string, 5, read_string_).
file_goal(read_line_to_string, 2, read_line_to_string_).
file_goal(read_line_to_codes, 2, read_line_to_codes_).
file_goal(read_stream_to_codes, 2, read_stream_to_codes_).
file_goal(read_term, 2, read_term_).
file_goal(read_term, 3, read_term_).
file_goal(read, 1, read_).
file_goal(read, 2, read_).
file_goal(get_char, 1, get_char_).
file_goal(get_char, 2, get_char_).
file_goal(peek_char, 2, peek_char_).
file_goal(get_code, 2, get_code_).
file_goal(peek_code, 2, peek_code_).
file_goal(at_end_of_stream, 1, at_end_of_stream_).
file_goal(line_count, 2, line_count_).
file_goal(write, 2, write_).
file_goal(writeln, 2, writeln_).
file_goal(print, 2, print_).
file_goal(writeq, 2, writeq_).
file_goal(write_canonical, 2, write_canonical_).
file_goal(write_term, 3, write_term_).
file_goal(nl, 1, nl_).
file_goal(tab, 2, tab_).
file_goal(put_char, 2, put_char_).
file_goal(format, 3, format_).
file_goal(flush_output, 0, flush_output_).
file_goal(flush_output, 1, flush_output_).
file_goal(current_output, 1, current_output_).

%   Opening and closing

open_(File, Mode, Stream) :-
    open_(File, Mode, Stream, []).
open_(File, Mode, Stream, Options) :-
    must_be(list, Options),
    must_be(atom, Mode),
    (   member(Option, Options),
        \+ known_option(Option)
    ->  throw(error(domain_error(stream_option, Option), _))
    ;   true
    ),
    (   memberchk(alias(Alias), Options)
    ->  check_alias(Alias)
    ;   Alias = none
    ),
    path_text(File, Path),
    check_open_files,
    (   Mode == read
    ->  request(read_file, ["path"-Path], Text),
        open_string(Text, Stream0),
        Own = own_stream(Stream0, read, Path, none)
    ;   memberchk(Mode, [write, append])
    ->  request(check_file, ["path"-Path, "mode"-Mode], _),
        tmp_file_stream(Scratch, Stream0, [encoding(utf8)]),
        Own = own_stream(Stream0, write(Mode), Path, Scratch)
    ;   throw(error(domain_error(io_mode, Mode), _))
    ),
    assertz(Own),
    (   Alias == none
    ->  Stream = Stream0
    ;   assertz(stream_alias(Alias, Stream0)),
        Stream = Alias
    ).

known_option(Option) :- var(Option), !, fail.
known_option(encoding(Encoding)) :- memberchk(Encoding, [utf8, text]).
known_option(type(Type)) :- Type == text.
known_option(create(_)).
known_option(bom(Bom)) :- Bom == false.
known_option(alias(Alias)) :- atom(Alias).

check_alias(Alias) :-
    (   ( memberchk(Alias, [user_input, user_output, user_error]) ; stream_alias(Alias, _) )
    ->  throw(error(permission_error(open, source_sink, alias(Alias)), _))
    ;   true
    ).

check_open_files :-
    aggregate_all(count, own_stream(_, _, _, _), Count),
    max_open_files(Most),
    (   Count < Most
    ->  true
    ;   raise(kb_refused(open/4, open_files))
    ).

path_text(File, Path) :-
    (   var(File)
    ->  throw(error(instantiation_error, _))
    ;   ( atom(File), File \== [] ; string(File) )
    ->  atom_string(File, Path)
    ;   throw(error(type_error(source_sink, File), _))
    ).

close_(Stream) :-
    close_(Stream, []).
close_(Stream0, _) :-
    resolve(Stream0, Stream),
    retract(own_stream(Stream, How, Path, Scratch)), !,
    retractall(stream_alias(_, Stream)),
    close(Stream),
    (   How = write(Mode)
    ->  read_file_to_string(Scratch, Text, [encoding(utf8)]),
        delete_file(Scratch),
        request(write_file, ["path"-Path, "mode"-Mode, "text"-Text], _)
    ;   true
    ).

%!  close_files
%
%   Close the files that the program left open; the last thing before it ends.

close_files :-
    forall(own_stream(Stream, _, _, _), close_(Stream)).

resolve(Stream, _) :-
    var(Stream), !,
    throw(error(instantiation_error, _)).
resolve(Alias, Stream) :-
    stream_alias(Alias, Stream), !.
resolve(Stream, Stream) :-
    own_stream(Stream, _, _, _), !.
resolve(Stream, _) :-
    throw(error(existence_error(stream, Stream), _)).

input(user_input, _) :- !,
    raise(kb_refused(user_input, user_input)).
input(Stream0, Stream) :-
    resolve(Stream0, Stream),
    (   own_stream(Stream, read, _, _)
    ->  true
    ;   throw(error(permission_error(input, stream, Stream0), _))
    ).

%   written(+Stream, :Goal): Goal writes to the current output, which is that stream.

written(Stream0, Goal) :-
    (   nonvar(Stream0),
        memberchk(Stream0, [user_output, user_error])
    ->  kb_guard:printed(Goal)
    ;   resolve(Stream0, Stream),
        (   own_stream(Stream, write(_), _, _)
        ->  with_output_to(string(Text), Goal),
            write(Stream, Text),
            byte_count(Stream, Bytes),
            max_file_bytes(Most),
            (   Bytes =< Most
            ->  true
            ;   raise(kb_limit(file))
            )
        ;   throw(error(permission_error(output, stream, Stream0), _))
        )
    ).

%   The folder

exists_file_(File) :-
    path_text(File, Path),
    request(file_kind, ["path"-Path], Kind),
    Kind == "file".

exists_directory_(File) :-
    path_text(File, Path),
    request(file_kind, ["path"-Path], Kind),
    Kind == "folder".

directory_files_(Folder, Names) :-
    path_text(Folder, Path),
    request(list_folder, ["path"-Path], Texts),
    findall(Name, ( member(Text, Texts), atom_string(Name, Text) ), Names0),
    Names = Names0.

read_file_to_string_(File, Text, _) :-
    path_text(File, Path),
    request(read_file, ["path"-Path], Text0),
    Text = Text0.

read_file_to_terms_(File, Terms, _) :-
    path_text(File, Path),
    request(read_file, ["path"-Path], Text),
    setup_call_cleanup(
        open_string(Text, Stream),
        read_all(Stream, Terms0),
        close(Stream)),
    Terms = Terms0.

read_all(Stream, Terms) :-
    read_term(Stream, Term, [module(workspace)]),
    (   Term == end_of_file
    ->  Terms = []
    ;   Terms = [Term|More],
        read_all(Stream, More)
    ).

%   Reading

read_string_(Stream0, Length, Text) :-
    input(Stream0, Stream),
    read_string(Stream, Length, Text).
read_string_(Stream0, Separators, Pad, Separator, Text) :-
    input(Stream0, Stream),
    read_string(Stream, Separators, Pad, Separator, Text).
read_line_to_string_(Stream0, Line) :-
    input(Stream0, Stream),
    read_line_to_string(Stream, Line).
read_line_to_codes_(Stream0, Line) :-
    input(Stream0, Stream),
    read_line_to_codes(Stream, Line).
read_stream_to_codes_(Stream0, Codes) :-
    input(Stream0, Stream),
    read_stream_to_codes(Stream, Codes).
read_(Term) :-
    read_(user_input, Term).
read_(Stream, Term) :-
    read_term_(Stream, Term, []).
read_term_(Term, Options) :-
    read_term_(user_input, Term, Options).
read_term_(Stream0, Term, Options) :-
    input(Stream0, Stream),
    must_be(list, Options),
    (   member(Option, Options),
        \+ read_option(Option)
    ->  refuse_option(Option)
    ;   true
    ),
    read_term(Stream, Term, [module(workspace)|Options]).

read_option(Option) :-
    nonvar(Option),
    functor(Option, Name, 1),
    memberchk(Name, [variables, variable_names, singletons, syntax_errors, double_quotes]).

refuse_option(Option) :-
    raise(kb_refused(Option, option)).

get_char_(Char) :- get_char_(user_input, Char).
get_char_(Stream0, Char) :- input(Stream0, Stream), get_char(Stream, Char).
peek_char_(Stream0, Char) :- input(Stream0, Stream), peek_char(Stream, Char).
get_code_(Stream0, Code) :- input(Stream0, Stream), get_code(Stream, Code).
peek_code_(Stream0, Code) :- input(Stream0, Stream), peek_code(Stream, Code).
at_end_of_stream_(Stream0) :- input(Stream0, Stream), at_end_of_stream(Stream).
line_count_(Stream0, Count) :- resolve(Stream0, Stream), line_count(Stream, Count).

%   Writing

write_(Stream, Term) :- written(Stream, write(Term)).
writeln_(Stream, Term) :- written(Stream, writeln(Term)).
print_(Stream, Term) :- written(Stream, write_term(Term, [quoted(true), numbervars(true)])).
writeq_(Stream, Term) :- written(Stream, writeq(Term)).
write_canonical_(Stream, Term) :- written(Stream, write_canonical(Term)).
write_term_(Stream, Term, Options) :-
    kb_guard:plain_options(Options),
    written(Stream, write_term(Term, Options)).
nl_(Stream) :- written(Stream, nl).
tab_(Stream, Number) :- written(Stream, tab(Number)).
put_char_(Stream, Char) :- written(Stream, put_char(Char)).
format_(Sink, Format, Arguments) :-
    (   kb_guard:is_text_sink(Sink)
    ->  kb_guard:format_(Sink, Format, Arguments)
    ;   kb_guard:plain_format(Format),
        kb_guard:own_arguments(Arguments, List),
        written(Sink, format(Format, List))
    ).
flush_output_.
flush_output_(Stream) :-
    (   nonvar(Stream),
        memberchk(Stream, [user_output, user_error])
    ->  true
    ;   resolve(Stream, _)
    ).
current_output_(user_output).
