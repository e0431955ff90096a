/*  Programs of DML: a text is loaded into an empty workspace, and its predicate agent_main is run once.

    A program is Prolog, checked as every clause of the workspace is (guard.pl), with further predicates: those of a
    conversation with a model (task, system, user, push_context, ...), of tools (exec), of files, and those that change the
    program's own clauses. They run natively, so that cuts, exceptions and backtracking are those of the system. What needs
    the caller is a request (program_requests.pl). An engine runs one program, and ends with it.
*/
:- module(kb_program, [load_program/2, load_clauses/2, run_program/4]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(guard).
:- use_module(reading).
:- use_module(answers).
:- use_module(values).
:- use_module(interpolation).
:- use_module(program_requests).
:- use_module(program_files).

%   Each predicate of guard.pl that a program changes asks whether there is one: other engines have none.

:- dynamic is_program/0,
           param_declared/3,            % Key, Kind, Description
           param_asked/1,               % Key: a goal asks for it
           param_given/2,               % Key, Value
           own_tool/2.                  % Name, Arity

%   Names

%!  special(?Name, ?Arity, -Predicate)
%
%   The goals that a program may call beside those of the workspace, with the predicate of this module that does each.

special(exec, 2, exec_).
special(answer, 1, answer_).
special(yield, 1, output_).
special(output, 1, output_).
special(log, 1, log_).
special(system, 1, system_).
special(user, 1, user_).
special(push_context, 0, push_context).
special(pop_context, 0, pop_context).
special(wait_for_input, 2, wait_for_input_).
special(param, 2, param_).
special(param, 3, param_).
special(assert, 1, assertz_).
special(assertz, 1, assertz_).
special(asserta, 1, asserta_).
special(retract, 1, retract_).
special(retractall, 1, retractall_).
special(dynamic, 1, dynamic_).
special('$kb_filled', 2, filled_).
special(nb_setval, 2, nb_setval_).
special(b_setval, 2, b_setval_).
special(nb_getval, 2, nb_getval_).
special(b_getval, 2, b_getval_).

%   Goals of the old language, those that only a model may call, and those of the graph, which no program has: refused, with
%   what is in their place

refused(@, 1, old_instruction).
refused(chat, 1, old_chat).
refused(tool, 2, old_tool).
refused(tool, 1, tool_goal).
refused(finish, 1, model_only).
refused(set_result, 2, model_only).
refused(ask_user, 1, model_only).
refused(ask_user, 2, model_only).
refused(entity, 4, no_graph).
refused(attr, 3, no_graph).
refused(edge, 3, no_graph).
refused(edge, 4, no_graph).

kb_guard:program_goal(Goal, Name, Arity, Rewritten) :-
    kb_program:is_program,
    kb_program:program_goal(Goal, Name, Arity, Rewritten).

program_goal(_, Name, Arity, _) :-
    refused(Name, Arity, Reason), !,
    raise(kb_refused(Name/Arity, Reason)).
program_goal(setup_call_cleanup(Setup0, Goal0, Cleanup0), _, _, kb_program:cleaned(Setup, Goal, Cleanup)) :- !,
    maplist(checked_argument, [Setup0, Goal0, Cleanup0], [Setup, Goal, Cleanup]).
program_goal(call_cleanup(Goal0, Cleanup0), _, _, kb_program:cleaned(true, Goal, Cleanup)) :- !,
    maplist(checked_argument, [Goal0, Cleanup0], [Goal, Cleanup]).
program_goal(Goal, task, Arity, kb_program:task_(Text, Outputs)) :-
    Arity > 0, !,
    Goal =.. [_, Text|Outputs].
program_goal(Goal, Name, Arity, kb_program:Own) :-
    special(Name, Arity, Predicate), !,
    (   Name == param,
        arg(1, Goal, Key)
    ->  note_param(Key)
    ;   true
    ),
    Goal =.. [_|Arguments],
    Own =.. [Predicate|Arguments].
program_goal(Goal, Name, Arity, kb_program_files:Own) :-
    file_goal(Name, Arity, Predicate), !,
    Goal =.. [_|Arguments],
    Own =.. [Predicate|Arguments].

kb_guard:program_head(Name, Arity) :-
    kb_program:is_program,
    kb_program:reserved(Name, Arity).

reserved(task, Arity) :- Arity > 0.
reserved(Name, Arity) :- special(Name, Arity, _).
reserved(Name, Arity) :- file_goal(Name, Arity, _).
reserved(Name, Arity) :- refused(Name, Arity, _), Name \== tool.
reserved(string, 4).

%   Loading

%!  load_program(+Text, -Reply)
%
%   Load a program. The reply has what could not be loaded (`failed`), and for each clause and directive what it is
%   (`items`), each with its place in characters and its line; the arguments of each agent_main (`mains`), and the keys of
%   params that goals ask for (`asked`).

load_program(Text, Reply) :-
    read_quotations,
    read_clauses(Text, Read),
    load_clauses(Read, Reply).

%!  load_clauses(+Read, -Reply)
%
%   Load a program whose clauses are read, as reading:read_clauses/2 has them.

load_clauses(Read, object(["status"-"ok", "failed"-Failed, "items"-Items, "mains"-Mains, "asked"-Asked])) :-
    assertz(is_program),
    forall(( member(read(_, _, _, (:- Directive), "")-_, Read), nonvar(Directive), library_of(Directive, Library) ),
           load_library(Library)),
    findall(Name, ( member(read(_, _, _, Term, _)-_, Read), kb_server:defined_by(Term, Name) ), Defined),
    kb_server:names_of_libraries(Defined, Names),
    while_adding(Names, maplist(loaded, Read, Outcomes)),
    findall(One, member(failed(One), Outcomes), Failed),
    findall(One, member(item(One), Outcomes), Items),
    findall(Main, ( member(read(_, _, _, Term, _)-Read1, Read), main_of(Term, Read1, Main) ), Mains),
    findall(Key, param_asked(Key), Asked).

loaded(unread(Start, End, Line, Error)-_, failed(object(["start"-Start, "end"-End, "line"-Line|Members]))) :-
    error_members(Error, Members).
loaded(read(Start, End, Line, Term, Stop)-Names, Outcome) :-
    Place = ["start"-Start, "end"-End, "line"-Line],
    catch(( checked_with_names(Names, once(load(Term, Stop, Names, Members))),
            append(Place, Members, All),
            Outcome = item(object(All)) ),
          Error,
          ( error_members(Error, Said), append(Place, Said, All), Outcome = failed(object(All)) )).

load(_, Stop, _, _) :-
    Stop \== "",
    throw(error(syntax_error(end_of_clause_expected), _)).
load(Term, _, _, _) :-
    var(Term),
    throw(error(instantiation_error, _)).
load((:- Directive), _, _, Members) :- !,
    (   var(Directive)
    ->  throw(error(instantiation_error, _))
    ;   directive(Directive, Members)
    ->  true
    ;   callable(Directive),
        \+ without_arguments(Directive)
    ->  functor(Directive, Name, Arity),
        raise(kb_refused(Name/Arity, program_directive))
    ;   throw(error(type_error(callable, Directive), _))
    ).
load((?- _), _, _, _) :- !,
    raise(kb_refused((?-)/1, program_directive)).
load(Clause0, _, Names, Members) :-
    clause_with_texts(Clause0, Names, Typed, Clause),
    tool_members(Clause0, ToolMembers),
    checked_clause(Clause, checked(Head, _, Rewritten), Name/Arity),
    checked_body(Typed, Body),
    add_clause(checked(Head, Body, Rewritten), _),
    atom_string(Name, Text),
    append(["kind"-"clause", "name"-Text, "arity"-Arity], ToolMembers, Members).

%   The clause as it was typed, and with its texts marked

clause_with_texts((Head --> Body), Names, Typed, Clause) :- !,
    dcg_translate_rule((Head --> Body), Typed),
    clause_with_texts(Typed, Names, _, Clause).
clause_with_texts(Clause, _, _, _) :-
    ( Clause = (Head :- _) -> true ; Head = Clause ),
    has_text(Head), !,
    raise(kb_refused(Head, quoted_head)).
clause_with_texts((Head :- Body0), Names, (Head :- Body0), (Head :- Body)) :- !,
    with_texts(Body0, Names, Body).
clause_with_texts(Fact, _, Fact, Fact).

checked_body(Typed, Body) :-
    (   Typed = (_ :- Body)
    ->  true
    ;   Body = true
    ).

%   Directives

directive(use_module(library(Library)), ["kind"-"library"]) :-
    known_library(Library).
directive(use_module(library(Library), Imports), ["kind"-"library"]) :-
    known_library(Library),
    kb_server:plain_imports(Imports).
directive(dynamic(Names), ["kind"-"dynamic"]) :-
    dynamic_(Names).
directive(discontiguous(Names), ["kind"-"dynamic"]) :-
    kb_server:indicators(Names, _).
directive(param(Key), Members) :-
    directive(param(Key, ""), Members).
directive(param(Key0, Description0), ["kind"-"param", "key"-Key, "param"-Kind, "description"-Description]) :-
    key_text(Key0, Key, Kind),
    value_text(Description0, Description),
    (   param_declared(Key, _, _)
    ->  raise(kb_refused(Key, param_twice))
    ;   assertz(param_declared(Key, Kind, Description))
    ).

%   Libraries that need no loading: what a program may use of them is there.

always_there(readutil).
always_there(quasi_quotations).

known_library(Library) :-
    (   ground(Library),
        ( kb_allowed:library_name(Library) ; always_there(Library) )
    ->  true
    ;   raise(kb_refused(library(Library), not_listed))
    ).

library_of(use_module(library(Library)), Library).
library_of(use_module(library(Library), _), Library).

load_library(Library) :-
    (   ground(Library),
        \+ always_there(Library)
    ->  allow_library(Library, _)
    ;   true
    ).

%   Tools and agent_main

tool_members(Clause, ["tool"-Tool, "inputs"-Inputs, "description"-Description]) :-
    (   Clause = (Head :- _)
    ->  true
    ;   Head = Clause
    ),
    nonvar(Head),
    (   Head = tool(Call0)
    ->  Description = json(null)
    ;   Head = tool(Call0, Description0)
    ->  (   ( string(Description0) ; atom(Description0) )
        ->  atom_string(Description0, Description)
        ;   raise(kb_refused(tool/2, tool_description))
        )
    ), !,
    (   callable(Call0),
        Call0 \= _:_,
        \+ without_arguments(Call0)
    ->  functor(Call0, Name, Arity),
        atom_string(Name, Tool),
        Inputs is max(0, Arity - 1),
        (   own_tool(Name, Arity)
        ->  true
        ;   own_tool(Name, _)
        ->  raise(kb_refused(Name/Arity, tool_arity))
        ;   assertz(own_tool(Name, Arity))
        )
    ;   raise(kb_refused(tool/1, tool_head))
    ).
tool_members(_, []).

main_of(Term, Names, Arguments) :-
    (   Term = (Head :- _)
    ->  true
    ;   Head = Term
    ),
    (   Head == agent_main
    ->  Terms = []
    ;   compound(Head),
        compound_name_arguments(Head, agent_main, Terms)
    ),
    maplist(argument_name(Names), Terms, Arguments).

argument_name(Names, Term, Name) :-
    (   var(Term),
        member(Key=Variable, Names),
        Variable == Term
    ->  atom_string(Key, Name)
    ;   Name = json(null)
    ).

%   Running

%!  run_program(+Arguments, +Params, +Gas, -Reply)
%
%   Run agent_main with these arguments. Params is a list of Key-Value, Gas the most inferences of the run.

run_program(Arguments, Params, Gas, object(["status"-"finished"|Members])) :-
    reset_output,
    forget_errors,
    forget_answer,
    forall(member(Key-Value, Params), assertz(param_given(Key, Value))),
    set_max_inferences(Gas),
    begin_memory(0),
    begin_goal,
    Goal =.. [agent_main|Arguments],
    catch(outcome(Goal, Gas, Outcome, Node), Error0, true),
    with_files_closed(Error0, Error),
    taken_output(Output),
    inferences_used(Used),
    (   var(Error)
    ->  Said = ["outcome"-Outcome, "memory"-Node]
    ;   Error = error(kb_limit(answered), _),
        answered_at(Node)
    ->  Said = ["outcome"-"success", "memory"-Node]
    ;   error_members(Error, Problem0),
        with_predicate(Error, Problem0, Problem),
        (   answered_at(Node)
        ->  true
        ;   Node = 0
        ),
        Said = ["outcome"-"error", "memory"-Node|Problem]
    ),
    append(Said, ["output"-Output, "inferences"-Used], Members).

%   with_predicate(+Error, +Problem0, -Problem): the predicate that a goal of the program called, where the error names one.

with_predicate(Error, Problem, ["predicate"-Text|Problem]) :-
    nonvar(Error),
    Error = error(Formal, Context),
    nonvar(Formal),
    functor(Formal, Kind, _),
    memberchk(Kind, [instantiation_error, uninstantiation_error, type_error, domain_error]),
    nonvar(Context),
    Context = context(Named, _),
    nonvar(Named),
    ( Named = system:Indicator -> true ; Indicator = Named ),
    nonvar(Indicator),
    Indicator = Name/Arity,
    atom(Name),
    integer(Arity),
    (   Name == task
    ;   special(Name, Arity, _)
    ;   kb_allowed:builtin(Listed),
        memberchk(Name/Arity, Listed)
    ), !,
    format(string(Text), "~q", [Indicator]).
with_predicate(_, Problem, Problem).

outcome(Goal, Gas, Outcome, Node) :-
    call_with_inference_limit(main(Goal, Outcome, Node), Gas, Result),
    (   Result == inference_limit_exceeded
    ->  raise(kb_limit(inference))
    ;   true
    ).

main(Goal, "success", Node) :-
    workspace:Goal, !,
    (   answered_at(Node)
    ->  true
    ;   memory(Node)
    ).
main(_, Outcome, Node) :-
    (   answered_at(Node)
    ->  Outcome = "success"
    ;   Outcome = "failure",
        Node = 0
    ).

%   with_files_closed(+Error0, -Error): the files that the program left open are closed however it ended.

with_files_closed(Error0, Error) :-
    go_on,
    catch(close_files, Closing, true),
    (   nonvar(Closing),
        ( var(Error0) ; Error0 = error(kb_limit(answered), _) )
    ->  Error = Closing
    ;   Error = Error0
    ).

%   cleaned(+Setup, +Goal, +Cleanup): setup_call_cleanup/3. The system counts no steps of a cleanup that runs while an error is
%   on its way, so an error of the goal is caught, and thrown again after the cleanup. One that comes from elsewhere, while
%   the goal has choices left, is not: the wall clock of the run ends such a cleanup.

cleaned(Setup, Goal, Cleanup) :-
    setup_call_cleanup(workspace:Setup, catch(workspace:Goal, Error, true), cleanup_after(Error, Cleanup)),
    (   var(Error)
    ->  true
    ;   throw(Error)
    ).

cleanup_after(Error, Cleanup) :-
    var(Error), !,
    cleanup_(Cleanup).
cleanup_after(Error, Cleanup) :-
    inferences_used(Used),
    max_inferences(Most),
    Left is max(Most - Used, 0),
    catch(call_with_inference_limit(cleanup_(Cleanup), Left, Result), Thrown, true),
    (   Result == inference_limit_exceeded
    ->  raise(kb_limit(inference))
    ;   nonvar(Thrown),
        urgency(Thrown, Later),
        urgency(Error, Before),
        Later > Before
    ->  throw(Thrown)
    ;   true
    ).

%   urgency(+Error, -Number): of the errors of a goal and of its cleanup the system keeps the more urgent one, else the first.

urgency(Error, 3) :- kb_guard:is_limit(Error), !.
urgency(error(resource_error(_), _), 2) :- !.
urgency(error(_, _), 1) :- !.
urgency(_, 0).

%   A cleanup is not a part of the search: it also runs when the program fails back to a goal before its answer.

cleanup_(Goal) :-
    b_getval(kb_answered, Before),
    go_on,
    call(workspace:Goal),
    b_setval(kb_answered, Before).

%   Tasks and tools

task_(Text0, Outputs) :-
    length([Text0|Outputs], Arity),
    text(task/Arity, Text0, Text),
    maplist(output_slot, Outputs, Slots, Variables),
    named_slots(Slots, 1, Members),
    request(task, ["text"-Text, "outputs"-Members], Values),
    maplist(=, Variables, Values).

output_slot(Output, slot(Name, Type), Variable) :-
    (   var(Output)
    ->  Name = none,
        Type = "any",
        Variable = Output
    ;   Output = '$kb_output'(Name, Variable)
    ->  Type = "any"
    ;   compound(Output),
        Output =.. [Kind, Inner],
        memberchk(Kind, [string, integer, number, boolean, object])
    ->  output_slot(Inner, slot(Name, _), Variable),
        atom_string(Kind, Type)
    ;   compound(Output),
        Output = list(Inner)
    ->  output_slot(Inner, slot(Name, Of), Variable),
        format(string(Type), "list(~w)", [Of])
    ;   Name = none,
        Type = "any",
        Variable = Output
    ).

named_slots([], _, []).
named_slots([slot(Name0, Type)|Slots], At, [object(["name"-Name, "type"-Type])|Members]) :-
    (   Name0 == none
    ->  format(string(Name), "Output~d", [At])
    ;   atom_string(Name0, Name)
    ),
    Next is At + 1,
    named_slots(Slots, Next, Members).

exec_(Tool0, Output) :-
    (   var(Tool0)
    ->  throw(error(instantiation_error, context(exec/2, _)))
    ;   callable(Tool0),
        Tool0 \= _:_
    ->  true
    ;   throw(error(type_error(callable, Tool0), _))
    ),
    filled(Tool0, Tool),
    compound_or_atom(Tool, Name, Arguments),
    atom_string(Name, Text),
    exec_arguments(Arguments, Positional, Named),
    request(exec, ["tool"-Text, "arguments"-Positional, "named"-object(Named)], Answer),
    (   Answer = value(Value)
    ->  Output = Value
    ;   Answer == own,
        run_own(Name, Arguments, Output)
    ).

compound_or_atom(Tool, Name, Arguments) :-
    (   atom(Tool)
    ->  Name = Tool,
        Arguments = []
    ;   compound_name_arguments(Tool, Name, Arguments)
    ).

exec_arguments([Dict], [], Named) :-
    is_dict(Dict), !,
    json_value(Dict, object(Named)).
exec_arguments(Arguments, Positional, Named) :-
    partition(is_named, Arguments, Pairs, Others),
    maplist(json_value, Others, Positional),
    maplist(named_value, Pairs, Named).

is_named(Argument) :-
    nonvar(Argument),
    Argument = (Key:_),
    atom(Key).

named_value(Key:Term, Key-Value) :- json_value(Term, Value).

run_own(Name, Arguments, Output) :-
    append(Arguments, [Output], All),
    length(All, Arity),
    (   own_tool(Name, Arity)
    ->  Call =.. [Name|All]
    ;   own_tool(Name, 0),
        Arguments == []
    ->  Call = Name,
        Output = true
    ;   own_tool(Name, Expected),
        raise(kb_refused(Name/Expected, tool_arguments))
    ),
    while_tool(Name, called_tool(Call)).

called_tool(Call) :-
    kb_guard:is_of_workspace(tool(_)),
    workspace:tool(Call).
called_tool(Call) :-
    kb_guard:is_of_workspace(tool(_, _)),
    workspace:tool(Call, _).

kb_program_requests:run_tool(Tool, Inputs, Value, done) :-
    atom_string(Name, Tool),
    kb_program:own_tool(Name, Arity),
    (   Arity =:= 0
    ->  Call = Name,
        Value = json(true),
        while_tool(Name, kb_program:called_tool(Call))
    ;   append(Inputs, [Output], All),
        Call =.. [Name|All],
        while_tool(Name, kb_program:called_tool(Call)),
        kb_values:json_value(Output, Value)
    ).

%   Conversation and output

text(Goal, Text0, Text) :-
    filled(Text0, Term),
    (   var(Term)
    ->  throw(error(instantiation_error, context(Goal, _)))
    ;   value_text(Term, Text)
    ).

filled_(Text, Filled) :- filled(Text, Filled).

system_(Text0) :- text(system/1, Text0, Text), request(message, ["role"-"system", "text"-Text], _).
user_(Text0) :- text(user/1, Text0, Text), request(message, ["role"-"user", "text"-Text], _).
output_(Text0) :- text(output/1, Text0, Text), request(output, ["text"-Text], _).
log_(Text0) :- text(log/1, Text0, Text), request(log, ["text"-Text], _).

answer_(Text0) :-
    text(answer/1, Text0, Text),
    request(answer, ["text"-Text], _),
    note_answer,
    (   true
    ;   raise(kb_limit(answered))
    ).

wait_for_input_(Text0, Input) :-
    text(wait_for_input/2, Text0, Text),
    request(input, ["prompt"-Text], Value),
    Input = Value.

%   Params

param_(Key, Value) :-
    key_text(Key, Text, _),
    param_given(Text, Value).

param_(Key, Description, Value) :-
    key_text(Key, Text, _),
    (   param_declared(Text, _, Declared)
    ->  Description = Declared
    ;   true
    ),
    param_given(Text, Value).

%!  key_text(+Key, -Text, -Kind)
%
%   The key before the colon, and what follows it, "text" where nothing does.

key_text(Key, _, _) :-
    var(Key), !,
    throw(error(instantiation_error, _)).
key_text(Key0, Key, Kind) :-
    (   ( atom(Key0) ; string(Key0) )
    ->  (   sub_string(Key0, Before, 1, After, ":")
        ->  sub_string(Key0, 0, Before, _, Key),
            sub_string(Key0, _, After, 0, Kind)
        ;   atom_string(Key0, Key),
            Kind = "text"
        )
    ;   throw(error(type_error(param_key, Key0), _))
    ), !.

note_param(Key0) :-
    (   nonvar(Key0),
        ( atom(Key0) ; string(Key0) ),
        key_text(Key0, Key, _),
        \+ param_asked(Key)
    ->  assertz(param_asked(Key))
    ;   true
    ).

%   Clauses and variables of the program

assertz_(Clause) :- add(Clause, assertz).
asserta_(Clause) :- add(Clause, asserta).

add(Clause, Where) :-
    checked_clause(Clause, Checked, Name/Arity),
    (   Name == tool,
        memberchk(Arity, [1, 2])
    ->  raise(kb_refused(Name/Arity, tool_added))
    ;   add_clause(Checked, Where, _)
    ).

retract_(Clause) :-
    (   nonvar(Clause),
        Clause = (Head :- Body)
    ->  true
    ;   Head = Clause,
        Body = true
    ),
    own_clause(Head, Body, Reference),
    catch(remove_clause(Reference), error(existence_error(_, _), _), fail).

retractall_(Head) :-
    checked_clause(Head, checked(Own, _, _), Name/Arity),
    forall(own_clause(Own, _, Reference), remove_clause(Reference)),
    dynamic(workspace:Name/Arity).

dynamic_(Names) :-
    kb_server:indicators(Names, List),
    forall(member(Name/Arity, List),
           ( functor(Head, Name, Arity), checked_clause(Head, _, _), dynamic(workspace:Name/Arity) )).

nb_setval_(Key, Value) :- variable_name(Key, Name), nb_setval(Name, Value).
b_setval_(Key, Value) :- variable_name(Key, Name), b_setval(Name, Value).
nb_getval_(Key, Value) :- known_variable(Key, Name), nb_getval(Name, Value).
b_getval_(Key, Value) :- known_variable(Key, Name), b_getval(Name, Value).

variable_name(Key, Name) :-
    (   atomic(Key)
    ->  format(atom(Name), "program ~q", [Key])
    ;   var(Key)
    ->  throw(error(instantiation_error, _))
    ;   throw(error(type_error(atomic, Key), _))
    ).

known_variable(Key, Name) :-
    variable_name(Key, Name),
    (   nb_current(Name, _)
    ->  true
    ;   throw(error(existence_error(variable, Key), _))
    ).
