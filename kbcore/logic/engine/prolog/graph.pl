/*  The facts of KB's graph, loaded when a goal first asks for them.

    The server that started the engine answers with the facts; see server.pl. It sends differences later.
*/
:- module(kb_graph, [entity/4, attr/3, edge/3, edge/4, declare_edge/1, forget_edges/0, graph_loaded/0, loaded/0,
                     add_fact/1, remove_facts/1, forget_graph/0]).
:- use_module(guard).

:- dynamic graph_loaded/0,
           f_entity/4,
           f_attr/3,
           f_edge/5,
           declared_edge/1.

:- multifile load_graph/0.
:- dynamic load_graph/0.

%   The facts are read in an engine of their own: a limit or an exception of the goal that asks for them must not end the
%   reading half-way, since the rest would be taken for requests. Where it does not end, the process does.

loaded :-
    graph_loaded, !.
loaded :-
    engine_create(done, load_graph, Engine),
    engine_next_reified(Engine, Outcome),
    engine_destroy(Engine),
    (   Outcome = the(_)
    ->  true
    ;   halt(1)
    ).

entity(Id, Type, Title, Status) :-
    loaded,
    f_entity(Id, Type, Title, Status).

attr(Id, Key, Value) :-
    loaded,
    f_attr(Id, Key, Value).

edge(Type, From, To) :-
    loaded,
    f_edge(From, To, Type, _, _).

edge(Type, From, To, [id-Id|Props]) :-
    loaded,
    f_edge(From, To, Type, Props, Id).

%!  declare_edge(+Type)
%
%   Define Type/2, unless the workspace may not have that name. The module kb_edges has nothing else.

declare_edge(Type) :-
    functor(Head, Type, 2),
    (   \+ kb_guard:graph_predicate(Type, 2),
        \+ '$get_predicate_attribute'(system:Head, defined, 1),
        \+ kb_guard:of_other_engine(Type, 2),
        \+ kb_guard:allowed(Type, 2),
        \+ '$get_predicate_attribute'(workspace:Head, defined, 1)
    ->  Head =.. [_, From, To],
        assertz(kb_edges:(Head :- kb_graph:loaded, kb_graph:f_edge(From, To, Type, _, _))),
        kb_edges:export(Type/2),
        workspace:import(kb_edges:Type/2),
        declared_graph(Type, 2),
        assertz(declared_edge(Type))
    ;   true
    ).

%!  forget_edges
%
%   Take back every declare_edge/1.

forget_edges :-
    forall(retract(declared_edge(Type)),
           ( abolish(workspace:Type/2), abolish(kb_edges:Type/2), undeclared_graph(Type, 2) )).

add_fact(n(Id, Type, Title, Status)) :- assertz(f_entity(Id, Type, Title, Status)).
add_fact(a(Id, Key, Value)) :- assertz(f_attr(Id, Key, Value)).
add_fact(e(Id, From, To, Type, Props)) :- assertz(f_edge(From, To, Type, Props, Id)).

remove_facts(n(Id)) :-
    retractall(f_entity(Id, _, _, _)),
    retractall(f_attr(Id, _, _)).
remove_facts(e(Id)) :-
    retractall(f_edge(_, _, _, _, Id)).

forget_graph :-
    retractall(graph_loaded),
    retractall(f_entity(_, _, _, _)),
    retractall(f_attr(_, _, _)),
    retractall(f_edge(_, _, _, _, _)).
