/*  Clauses as text: where each begins and ends, what it is, and its key.

    The text of a clause is never printed from the term: its first and last character are reported, and the caller cuts
    the slice, so that what was typed is kept to the byte.
*/
:- module(kb_reading, [text_item/3, read_clauses/2, term_of/3, check_notation/1, clause_key/2]).
:- use_module(library(lists)).
:- use_module(library(solution_sequences), [limit/2]).

%!  text_item(+Text, -Item, -Names)
%
%   On backtracking each clause of a text, in its order: read(Start, End, Line, Term, Stop) or unread(Start, End, Line, Error),
%   where Start and End count characters from 0, and Stop is the text that the last clause lacks for its full stop, "" as a
%   rule. Names are its variables, as Name=Variable. Reading goes on at the next clause after a syntax error. A caller that
%   fails back to the next clause holds one at a time: a text may have more of them than the stacks can hold.

text_item(Text, Item, Names) :-
    setup_call_cleanup(
        open_string(Text, Stream),
        each_item(Stream, Text, Item, Names),
        close(Stream)).

each_item(Stream, Text, Item, Names) :-
    repeat,
    next_item(Stream, Text, Next, Names),
    (   Next = more(Item)
    ;   Next = last(Item), !
    ;   Next == end, !,
        fail
    ).

next_item(Stream, Text, Next, Names) :-
    skip_layout(Stream),
    position(Stream, From, FromLine),
    catch(read_term(Stream, Term,
                    [ module(workspace), variable_names(Read), term_position(Position), syntax_errors(error),
                      cycles(false), dotlists(false)
                    ]),
          Error, true),
    (   var(Error)
    ->  (   Term == end_of_file         % as a clause it ends a text, as in a file of Prolog
        ->  Next = end
        ;   Names = Read,
            Position = '$stream_position'(Start, Line, _, _),   % a quarter of the time of stream_position_data/3
            position(Stream, End, _),
            item(Start, End, Line, Term, "", Item),
            Next = more(Item)
        )
    ;   Error = error(syntax_error(end_of_file), _),
        rest(Text, From, Rest0),
        without_layout(Rest0, Rest),
        completed(Rest, Term1, Names, Stop, Offset, Lines)
    ->  string_length(Rest, Length),
        Start is From + Offset,
        Line is FromLine + Lines,
        End is From + Length,
        (   Stop == " .",
            string_concat(_, ".", Rest)
        ->  Next = last(unread(Start, End, Line, error(syntax_error(glued_full_stop), _)))
        ;   item(Start, End, Line, Term1, Stop, Item),
            Next = last(Item)
        )
    ;   Error = error(syntax_error(end_of_file), _),
        rest(Text, From, Rest0),
        without_layout(Rest0, Rest),
        has_further_stop(Rest)
    ->  string_length(Text, End),
        Next = last(unread(From, End, FromLine, error(syntax_error(further_full_stop), _)))
    ;   (   Error = error(syntax_error(end_of_file_in_block_comment), _)
        ->  comment_line(Text, From, FromLine, Line)
        ;   error_line(Error, FromLine, Line)
        ),
        position(Stream, End0, _),
        (   End0 =< From
        ->  string_length(Text, End),
            Next = last(unread(From, End, Line, Error))
        ;   Next = more(unread(From, End0, Line, Error))
        )
    ), !.

%!  read_clauses(+Text, -Items)
%
%   All clauses of a text as Item-Names, as text_item/3 has them.

read_clauses(Text, Items) :-
    findall(Item-Names, text_item(Text, Item, Names), Items).

rest(Text, From, Rest) :-
    sub_string(Text, From, _, 0, Rest).

%   The text without the layout at its end.

without_layout(Text, Plain) :-
    string_length(Text, Length),
    (   string_code(Length, Text, Code),
        code_type(Code, space)
    ->  Before is Length - 1,
        sub_string(Text, 0, Before, _, Shorter),
        without_layout(Shorter, Plain)
    ;   Plain = Text
    ).

%   The last clause without its full stop, what completes it, and its place: the space ends a symbol, the line break a
%   comment. A full stop that was typed and belongs to a symbol is no part of the clause that was meant.

completed(Rest, Term, Names, Stop, Offset, Lines) :-
    member(Stop, [".", " .", "\n."]),
    string_concat(Rest, Stop, Full),
    catch(term_of(Full, Term, Names, Position), _, fail), !,
    stream_position_data(char_count, Position, Offset),
    stream_position_data(line_count, Position, Line),
    Lines is Line - 1.

%   A term with more than one full stop: they are one symbol, and end nothing.

has_further_stop(Text) :-
    string_concat(Before, ".", Text),
    (   catch(term_of(Before, _, _), _, fail)
    ->  true
    ;   has_further_stop(Before)
    ).

%!  term_of(+Text, -Term, -Names)
%
%   Read exactly one term that ends with a full stop.

term_of(Text, Term, Names) :- term_of(Text, Term, Names, _).

term_of(Text, Term, Names, Position) :-
    setup_call_cleanup(
        open_string(Text, Stream),
        (   read_term(Stream, Term,
                      [module(workspace), variable_names(Names), term_position(Position), syntax_errors(error)]),
            (   at_end_of_stream(Stream)
            ->  true
            ;   read_term(Stream, Next, [module(workspace), syntax_errors(error)]),
                Next == end_of_file
            ->  true
            ;   throw(error(syntax_error(one_term_expected), _))
            )
        ),
        close(Stream)).

item(Start, End, Line, Term, Stop, Item) :-
    (   catch(check_notation(Term), Error, true),
        nonvar(Error)
    ->  Item = unread(Start, End, Line, Error)
    ;   Item = read(Start, End, Line, Term, Stop)
    ).

%!  check_notation(+Term)
%
%   Refuse the functional notation of dicts, as in `X = Dict.key`: nothing here evaluates it. It is also what becomes of a
%   full stop without layout after it.

check_notation(Term) :-
    (   has_notation(Term)
    ->  throw(error(syntax_error(functional_notation), _))
    ;   true
    ).

has_notation(Term) :-
    compound(Term),
    compound_name_arity(Term, Name, Arity),
    (   Name == '.',
        Arity == 2
    ->  true
    ;   Arity > 0,
        argument_has_notation(1, Arity, Term)
    ).

argument_has_notation(Last, Last, Term) :- !,
    arg(Last, Term, Argument),
    has_notation(Argument).
argument_has_notation(At, Last, Term) :-
    arg(At, Term, Argument),
    (   has_notation(Argument)
    ->  true
    ;   Next is At + 1,
        argument_has_notation(Next, Last, Term)
    ).

position(Stream, Characters, Line) :-
    character_count(Stream, Characters),
    line_count(Stream, Line).

skip_layout(Stream) :-
    peek_char(Stream, Char),
    (   Char \== end_of_file,
        char_type(Char, space)
    ->  get_char(Stream, _),
        skip_layout(Stream)
    ;   true
    ).

error_line(error(_, Context), _, Line) :-
    nonvar(Context),
    (   Context = stream(_, Line, _, _)
    ;   Context = string(String, Offset),
        sub_string(String, 0, Offset, _, Before),
        split_string(Before, "\n", "", Parts),
        length(Parts, Line)
    ),
    integer(Line), !.
error_line(_, Line, Line).

%   The line at which the comment begins that has no end: the first `/*` after the last `*/` with which a comment begins. One
%   in quotes, or in a comment up to the end of its line, begins none. Few are looked at: each is read from the start.

max_beginnings(100).

comment_line(Text, From, FromLine, Line) :-
    rest(Text, From, Rest),
    max_beginnings(Most),
    (   findall(Begin, limit(Most, open_comment(Rest, Begin)), Begins),
        member(Begin, Begins),
        sub_string(Rest, 0, Begin, _, Before),
        begins_comment(Before)
    ->  split_string(Before, "\n", "", Parts),
        length(Parts, Lines),
        Line is FromLine + Lines - 1
    ;   Line = FromLine
    ).

open_comment(Rest, Begin) :-
    (   findall(End, sub_string(Rest, End, 2, _, "*/"), Ends),
        last(Ends, Last)
    ->  true
    ;   Last = -2
    ),
    sub_string(Rest, Begin, 2, _, "/*"),
    Begin + 2 > Last.

begins_comment(Before) :-
    string_concat(Before, "/*", Text),
    catch(term_of(Text, _, _), Error, true),
    nonvar(Error),
    Error = error(syntax_error(end_of_file_in_block_comment), _).

%!  clause_key(+Term, -Key)
%
%   A text that two terms share exactly where one is a variant of the other. It does not depend on operators, flags or the
%   version of the engine.

clause_key(Term, Key) :-
    ground(Term), !,
    key(Term, _, 0, _, Parts, []),
    atomics_to_string(Parts, Key).
clause_key(Term, Key) :-
    copy_term_nat(Term, Copy),
    Random is random(1 << 62),
    atom_concat('$kb_variable_', Random, Mark),
    key(Copy, Mark, 0, _, Parts, []),
    atomics_to_string(Parts, Key).

%   The parts of the text as a difference list: printing each of them takes several times as long. A variable becomes Mark(N)
%   where it is met first, N0 and N count them. No text can hold the mark, which is another one each time.

key(Variable, Mark, N0, N, [v, N0|Rest], Rest) :-
    var(Variable), !,
    compound_name_arguments(Variable, Mark, [N0]),
    N is N0 + 1.
key([Head|Tail], Mark, N0, N, ['c2a3:[|]'|Parts], Rest) :- !,
    key(Head, Mark, N0, N1, Parts, More),
    key(Tail, Mark, N1, N, More, Rest).
key(Term, Mark, N0, N, Parts, Rest) :- compound(Term), !,
    compound_name_arguments(Term, Name, Arguments),
    (   Name == Mark
    ->  Arguments = [Number],
        Parts = [v, Number|Rest],
        N = N0
    ;   is_dict(Term)
    ->  dict_pairs(Term, Tag, Pairs),   % the arguments are in another order in each process
        length(Pairs, Count),
        Parts = [d, Count|Parts1],
        key(Tag, Mark, N0, N1, Parts1, Parts2),
        keys(Pairs, Mark, N1, N, Parts2, Rest)
    ;   length(Arguments, Arity),
        Parts = [c, Arity|Parts1],
        plain_key(Name, Parts1, Parts2),
        keys(Arguments, Mark, N0, N, Parts2, Rest)
    ).
key(Term, _, N, N, Parts, Rest) :-
    plain_key(Term, Parts, Rest).

plain_key(Term, [i, Term|Rest], Rest) :- integer(Term), !.
plain_key(Term, [Text|Rest], Rest) :- float(Term), !,
    format(string(Text), "f~16e", [Term]).
plain_key(Term, [r, N, /, D|Rest], Rest) :- rational(Term, N, D), !.
plain_key(Term, [s, Length, :, Term|Rest], Rest) :- string(Term), !,
    string_length(Term, Length).
plain_key(Term, [a, Length, :, Term|Rest], Rest) :- atom(Term), !,
    atom_length(Term, Length).
plain_key([], [n|Rest], Rest) :- !.
plain_key(Term, [Text|Rest], Rest) :-
    format(string(Text), "o~q", [Term]).

keys([], _, N, N, Rest, Rest).
keys([One|More], Mark, N0, N, Parts, Rest) :-
    key(One, Mark, N0, N1, Parts, Parts1),
    keys(More, Mark, N1, N, Parts1, Rest).
