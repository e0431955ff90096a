/*  The least that an engine over a pipe does, for a floor: it reads terms, and writes one line for each request.

    It is started as kbcore/logic/engine/prolog/server.pl is, so that the same launcher runs it in WebAssembly.
*/
:- module(kb_server, [prepare/0, serve/0]).

prepare.

serve :-
    stream_property(In, alias(user_input)),
    stream_property(Out, alias(user_output)), !,
    set_stream(Out, buffer(full)),
    repeat,
    read_term(In, Request, []),
    (   Request == end_of_file
    ->  !,
        halt
    ;   answer(Request, In),
        format(Out, "ok~n", []),
        flush_output(Out),
        fail
    ).

answer(hello, _).
answer(call(Goal), _) :- once(user:Goal).
answer(load(Count), In) :-
    forall(between(1, Count, _), ( read_term(In, Fact, []), assertz(user:Fact) )).
