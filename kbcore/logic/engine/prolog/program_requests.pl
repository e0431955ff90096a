/*  Requests of a running program to the process that started the engine, and the memory of its conversation.

    A request is one line of JSON, and what comes back is a term. The program waits for it inside of its goal, so that a
    request can be made anywhere: in a clause, in findall/3, in a cleanup. While it waits it may be asked to run a tool of its
    own (message tool/4), whose body may make requests again.

    The memory is a node of a tree that the other process has. The number of the node is a global variable that backtracking
    restores: so the conversation is always the path to the present goal.
*/
:- module(kb_program_requests, [request/3, begin_memory/1, memory/1, set_memory/1, push_context/0, pop_context/0,
                                note_answer/0, answered_at/1, forget_answer/0, go_on/0, while_tool/2]).
:- use_module(library(apply)).
:- use_module(guard).
:- use_module(answers).

:- dynamic answered_at/1.              % Node: the memory after the last answer

:- multifile run_tool/4.                % Tool, Inputs, Arguments of its reply: program.pl
:- dynamic run_tool/4.

%!  request(+Kind, +Members, -Value)
%
%   Ask for something; fail where the other side says so, or throw what it says.

request(Kind, Members, Value) :-
    check_answered,
    memory(Node),
    taken_output(Output),
    kb_server:protocol(In, Out),
    (   Output == ""
    ->  All0 = Members
    ;   All0 = ["output"-Output|Members]
    ),
    b_getval(kb_tools, Running),
    (   Running == []
    ->  All = All0
    ;   All = ["running"-Running|All0]
    ),
    inferences_used(Used),
    send(Out, object(["status"-"request", "kind"-Kind, "memory"-Node, "inferences"-Used|All])),
    reply(In, Out, Value).

reply(In, Out, Value) :-
    read_term(In, Message, []),
    replied(Message, In, Out, Value).

replied(end_of_file, _, _, _) :-
    halt(0).
replied(done(Value0, Node), _, _, Value) :-
    set_memory(Node),
    Value = Value0.
replied(failed, _, _, _) :-
    fail.
replied(raise(Kind, Text), _, _, _) :-
    throw(error(Kind, context(_, Text))).
replied(raise_again(Number), _, _, _) :-
    kept_error(Number, Error),
    throw(Error).
replied(tool(Tool, Inputs, Node), In, Out, Value) :-
    findall(Members, tool_reply(Tool, Inputs, Node, Members), [Members]),
    send(Out, object(["status"-"tool"|Members])),
    (   memberchk("outcome"-failed, Members)
    ->  true
    ;   go_on
    ),
    reply(In, Out, Value).

%   A tool runs as a goal of its own: what it binds and what it adds to the memory are gone when it has ended. A tool that
%   fails after an answer has gone back to a goal before it.

tool_reply(Tool, Inputs, Node, Members) :-
    set_memory(Node),
    b_setval(kb_contexts, []),
    catch(( run_tool(Tool, Inputs, Value, done) -> Outcome = done ; check_answered, Outcome = failed ), Error, true),
    taken_output(Output),
    inferences_used(Used),
    max_inferences(Most),
    Members = ["output"-Output, "inferences"-Used|More],
    (   Used > Most
    ->  More = ["outcome"-"error", "kind"-"inference_limit"]
    ;   nonvar(Error)
    ->  keep_error(Error, Number),
        error_members(Error, Said),
        More = ["outcome"-"error", "number"-Number|Said]
    ;   Outcome == failed
    ->  More = ["outcome"-failed]
    ;   More = ["outcome"-"done", "value"-Value]
    ).

%   Errors of tools, which the goal that waits for the tool may have to throw again

:- dynamic kept_error/2.

keep_error(Error, Number) :-
    flag(kb_kept_errors, Number, Number + 1),
    assertz(kept_error(Number, Error)).

%   Memory

begin_memory(Node) :-
    b_setval(kb_memory, Node),
    b_setval(kb_contexts, []),
    b_setval(kb_tools, []),
    b_setval(kb_answered, false).

memory(Node) :- b_getval(kb_memory, Node).

%!  while_tool(+Name, :Goal)
%
%   Run a goal once, which is a tool of the program with this name: the tasks in it do not offer the tool.

:- meta_predicate while_tool(+, 0).

while_tool(Name, Goal) :-
    b_getval(kb_tools, Running),
    atom_string(Name, Text),
    b_setval(kb_tools, [Text|Running]),
    once(Goal),
    b_setval(kb_tools, Running).

set_memory(Node) :- b_setval(kb_memory, Node).

push_context :-
    memory(Node),
    request(fresh_context, [], _),
    b_getval(kb_contexts, Contexts),
    b_setval(kb_contexts, [Node|Contexts]).

pop_context :-
    b_getval(kb_contexts, Contexts),
    (   Contexts = [Node|Rest]
    ->  b_setval(kb_contexts, Rest),
        set_memory(Node)
    ;   request(warning, ["message"-"pop_context: no context was pushed"], _)
    ).

%   An answer ends the search: a program that fails back to a goal before its answer has ended. The fact is kept, the
%   variable is restored.

note_answer :-
    b_setval(kb_answered, true),
    memory(Node),
    retractall(answered_at(_)),
    assertz(answered_at(Node)).

check_answered :-
    (   answered_at(_),
        b_getval(kb_answered, false)
    ->  raise(kb_limit(answered))
    ;   true
    ).

%!  go_on
%
%   Go on after an answer, if there was one, although its goal is not on the path to the present goal: for the recovery of an
%   error, for a cleanup, and after a tool.

go_on :-
    (   answered_at(_)
    ->  b_setval(kb_answered, true)
    ;   true
    ).

kb_guard:program_recovers :- kb_program_requests:go_on.

forget_answer :-
    retractall(answered_at(_)),
    retractall(kept_error(_, _)).
