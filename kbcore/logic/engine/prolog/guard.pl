/*  The rules of what a goal of the workspace may do.

    Every goal that a clause or a query contains is checked against a list of names before it can run, and rewritten so
    that a goal that is not known until run time is checked when it is called: a variable in the place of a goal becomes
    kb_guard:run(Variable), at every depth and in every argument that a predicate calls.

    The predicates of a user live in the module `workspace`, which inherits from `system` only. A goal there is one of:
      - a predicate of the workspace, whose clauses were rewritten in the same way,
      - a predicate of the allowed list or of an allowed library,
      - a graph predicate of KB,
      - a predicate that exists nowhere, which raises an existence error when it is called.
    Anything else raises error(kb_refused(Name/Arity, Reason), _).
*/
:- module(kb_guard,
          [ checked_goal/2,             % +Goal, -Rewritten
            checked_argument/2,         % +Goal, -Rewritten
            checked_clause/3,           % +Clause, -Checked, -Name/Arity
            add_clause/2,               % +Checked, -Reference
            add_clause/3,               % +Checked, +Where, -Reference
            own_clause/3,               % +Head, ?Body, -Reference
            remove_clause/1,            % +Reference
            forget_typed/0,
            original/2,                 % +Rewritten, -Goal
            while_loading/1,            % :Goal
            while_adding/2,             % +Names, :Goal
            may_be_of_library/1,        % +Name/Arity
            allow_builtins/0,
            set_preloaded/1,            % +Names
            set_listed/1,               % +Names
            allow_library/2,            % +Name, -Outcome
            declared_graph/2,           % +Name, +Arity
            undeclared_graph/2,         % +Name, +Arity
            graph_name/1,               % ?Name/Arity
            known_name/1,               % ?Name/Arity
            raise/1,                    % +Formal
            own_error/2,                % +Thrown, -Error
            is_raised/1,                % +Error
            checked_with_names/2,       % +Names, :Goal
            name_of/2,                  % +Variable, -Name
            is_thrown/1,                % +Error
            forget_errors/0,
            limit_reached/1,            % -Error
            begin_goal/0,
            inferences_used/1,          % -Number
            check_arity/2,              % +Name, +Arity
            without_arguments/1,        % +Term
            set_limits/3,               % +Inferences, +Characters, +Arity
            max_inferences/1,           % -Number
            max_characters/1,           % -Number
            reset_output/0,
            taken_output/1,             % -String
            set_max_inferences/1        % +Number
          ]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(library(error), [must_be/2]).
:- use_module(library(listing), [portray_clause/1]).
:- use_module(library(sandbox), []).
:- use_module(allowed).
:- use_module(exports).

:- dynamic allowed/2,                   % Name, Arity
           of_other_engine/2,           % Name, Arity: of the system
           library_export/4,            % Name, Arity, Library, `offered`, `withheld` or `unlisted`
           graph_predicate/2,           % Name, Arity
           loaded_library/1,            % Name
           is_loading/0,
           added/2,                     % Name, Arity
           output_part/1,               % String
           raised/1,                    % Error
           typed/2,                     % Reference of a clause, that of the same as it was typed
           limit_reached/1,             % Error
           thrown/1,                    % Error
           max_inferences/1,            % of a goal
           max_characters/1,            % of what a step prints, and of the text of a term
           max_arity/1.                 % of a predicate

%   What a program may call beside (program.pl): program_goal(Goal, Name, Arity, Rewritten), and program_head(Name, Arity)
%   for what it may not define. program_recovers is called before the recovery of catch/3.

:- multifile program_goal/4, program_head/2, program_recovers/0.
:- dynamic program_goal/4, program_head/2, program_recovers/0.

%   Clauses

%!  checked_clause(+Clause, -Checked, -Name/Arity)
%
%   Check a clause and rewrite its body: checked(Head, Body, Rewritten).

checked_clause(Clause, _, _) :-
    var(Clause), !,
    throw(error(instantiation_error, _)).
checked_clause((Head --> Body), Checked, Name) :- !,
    dcg_translate_rule((Head --> Body), Clause),
    checked_clause(Clause, Checked, Name).
checked_clause((Head :- Body), checked(Own, Body, Rewritten), Name) :- !,
    own_head(Head, Own, Name),
    body(Body, Rewritten).
checked_clause(Head, checked(Own, true, true), Name) :-
    own_head(Head, Own, Name).

%!  add_clause(+Checked, -Reference)
%
%   Add a clause to the workspace. One that was rewritten is kept as it was typed as well, for clause/2: in the module
%   kb_typed, where nothing calls it.

add_clause(Checked, Reference) :- add_clause(Checked, assertz, Reference).

%!  add_clause(+Checked, +Where, -Reference)
%
%   Where is `asserta` or `assertz`.

add_clause(checked(Head, Body, Rewritten), Where, Reference) :-
    (   Rewritten == Body
    ->  add(Where, (Head :- Rewritten), Reference)
    ;   assertz(kb_typed:(Head :- Body), Typed),
        add(Where, (Head :- Rewritten), Reference),
        assertz(typed(Reference, Typed))
    ).

add(assertz, Clause, Reference) :- assertz(workspace:Clause, Reference).
add(asserta, Clause, Reference) :- asserta(workspace:Clause, Reference).

remove_clause(Reference) :-
    erase(Reference),
    forget_typed(Reference).

%!  forget_typed
%
%   Forget what was typed, of all clauses: they are gone.

forget_typed :- forget_typed(_).

forget_typed(Reference) :-
    forall(retract(typed(Reference, Typed)), erase(Typed)).

%   `p()`: a term, and neither a goal nor a head. functor/3 and =../2 raise an error for it.

without_arguments(Term) :-
    compound(Term),
    compound_name_arity(Term, _, 0).

own_head(Head, _, _) :-
    var(Head), !,
    throw(error(instantiation_error, _)).
own_head(Module:Head, Own, Name) :- !,
    own_module(Module, Head),
    own_head(Head, Own, Name).
own_head(Head, _, _) :-
    without_arguments(Head), !,
    throw(error(type_error(callable, Head), _)).
own_head(Head, Head, Name/Arity) :-
    callable(Head), !,
    functor(Head, Name, Arity),
    check_arity(Name, Arity),
    (   refused_head(Head, Name, Arity, Reason)
    ->  refuse(Head, Reason)
    ;   true
    ).
own_head(Head, _, _) :-
    throw(error(type_error(callable, Head), _)).

refused_head(_, Name, _, system_name) :-
    sub_atom(Name, 0, _, _, $), !.
refused_head(_, Name, Arity, hook) :-
    hook_name(Name, Arity), !.
refused_head(_, Name, Arity, program_head) :-
    program_head(Name, Arity), !.
refused_head(_, Name, 2, match_rule) :-
    memberchk(Name, [(=>), (?=>)]), !.
refused_head(_, Name, Arity, graph_head) :-
    graph_predicate(Name, Arity), !.
refused_head(Head, Name, Arity, head) :-
    (   is_of_system(Head)
    ;   of_other_engine(Name, Arity)
    ), !.
refused_head(_, Name, Arity, head) :-
    (   allowed(Name, Arity)
    ;   wrapped(Name, Arity, _)
    ;   memberchk(Name/Arity, [(:-)/1, (:-)/2, (-->)/2, (=>)/2, (?=>)/2, (==>)/2, (?-)/1, ('|')/2, call/0])
    ), !.

%!  check_arity(+Name, +Arity)
%
%   Refuse a predicate with more arguments than one may have. The system keeps a description of each argument as soon as a
%   predicate is declared or called, and never frees it.

check_arity(Name, Arity) :-
    max_arity(Most),
    (   Arity =< Most
    ->  true
    ;   raise(kb_refused(Name/Arity, arity))
    ).

own_module(Module, Term) :-
    (   Module == workspace
    ->  true
    ;   refuse(Module:Term, module)
    ).

%!  callable_module(+Module, +Closure, +More)
%
%   Refuse a closure that is called with so many further arguments and that names a module, unless it is the workspace or the
%   library from which the workspace has this predicate. The caller leaves the module away, and checks what is left: goals
%   of copy_term/3 name the library of a constraint.

callable_module(Module, _, _) :-
    Module == workspace, !.
callable_module(Module, Closure, More) :-
    atom(Module),
    \+ memberchk(Module, [system, kb_guarded]),
    (   atom(Closure)
    ->  Name = Closure,
        Arguments = 0
    ;   compound(Closure),
        compound_name_arity(Closure, Name, Arguments)
    ),
    Arity is Arguments + More,
    allowed(Name, Arity),
    functor(Head, Name, Arity),
    '$get_predicate_attribute'(workspace:Head, imported, Module), !.
callable_module(Module, Closure, _) :-
    refuse(Module:Closure, module).

%   Goals

checked_goal(Goal, Rewritten) :-
    body(Goal, Rewritten).

body(Goal, kb_guard:run(Goal)) :-
    var(Goal), !.
body((A, B), (TA, TB)) :- !,
    body(A, TA),
    body(B, TB).
body((A ; B), (TA ; TB)) :- !,
    body(A, TA),
    body(B, TB).
body('|'(A, B), (TA ; TB)) :- !,          % the compiler takes it for a disjunction
    body(A, TA),
    body(B, TB).
body((A -> B), (TA -> TB)) :- !,
    body(A, TA),
    body(B, TB).
body((A *-> B), (TA *-> TB)) :- !,
    body(A, TA),
    body(B, TB).
body(\+ A, \+ TA) :- !,
    body(A, TA).
body(!, !) :- !.
body(_^Goal, T) :- !,
    body(Goal, T).
body(Module:Goal, T) :- !,
    callable_module(Module, Goal, 0),
    body(Goal, T).
body(Goal, _) :-
    without_arguments(Goal), !,
    compound_name_arity(Goal, Name, 0),
    body(Name, _),                      % what is refused without the parentheses is refused by its name
    throw(error(type_error(callable, Goal), _)).
body(Goal, T) :-
    callable(Goal), !,
    functor(Goal, Name, Arity),
    check_arity(Name, Arity),
    goal(Goal, Name, Arity, T).
body(Goal, _) :-
    throw(error(type_error(callable, Goal), _)).

goal(Goal, Name, Arity, T) :-
    program_goal(Goal, Name, Arity, T), !.
goal(Goal, call, Arity, T) :-
    Arity > 0, !,
    Goal =.. [_, Closure|Extra],
    (   var(Closure),
        Extra == []
    ->  T = kb_guard:run(Closure)
    ;   var(Closure)
    ->  T = kb_guard:run_with(Closure, Extra)
    ;   or_when_called(( extended(Closure, Extra, Extended), body(Extended, T0), T = call(T0) ),
                       T = kb_guard:run_with(Closure, Extra))
    ).
goal(Goal, Name, Arity, kb_guard:T) :-
    wrapped(Name, Arity, Wrapper), !,
    Goal =.. [_|Arguments],
    T =.. [Wrapper|Arguments].
goal(catch(Goal, Catcher, Recovery), _, _, kb_guard:catch_(TG, Catcher, TR)) :- !,
    argument(0, Goal, TG),
    argument(0, Recovery, TR).
goal(Goal, Name, Arity, T) :-
    allowed(Name, Arity), !,
    (   predicate_property(workspace:Goal, meta_predicate(Spec)),
        calls_goals(Spec)
    ->  Goal =.. [_|Arguments],
        Spec =.. [_|Specs],
        (   nth1(At, Specs, ^),
            nth1(At, Arguments, Argument),
            is_open(Argument)
        ->  T = kb_guard:run_bound(Goal, At)
        ;   maplist(argument, Specs, Arguments, Rewritten),
            T =.. [Name|Rewritten]
        )
    ;   T = Goal
    ).
goal(Goal, Name, Arity, Goal) :-
    graph_predicate(Name, Arity), !.
goal(Goal, Name, Arity, _) :-
    refusal(Goal, Name, Arity, Reason), !,
    refuse(Goal, Reason).
goal(Goal, _, _, Goal).

refusal(_, Name, Arity, state_change) :-
    state_change(Names),
    memberchk(Name/Arity, Names), !.
refusal(_, Name, Arity, hook) :-
    hook_name(Name, Arity), !.
refusal(_, Name, _, not_allowed) :-
    sub_atom(Name, 0, _, _, $), !.
refusal(Goal, Name, Arity, not_allowed) :-
    (   is_of_system(Goal)
    ;   of_other_engine(Name, Arity)
    ), !.
refusal(Goal, Name, Arity, Reason) :-
    \+ is_loading,
    \+ added(Name, Arity),
    library_export(Name, Arity, Library, Which), !,
    \+ is_of_workspace(Goal),
    (   (   Which == withheld
        ;   loaded_library(Library)
        )
    ->  Reason = not_allowed
    ;   Reason = library(Library)
    ).

%!  while_loading(:Goal)
%
%   Run a goal that checks clauses which were accepted before. One may call a predicate of its own that has the name of one
%   of a library and is gone, or comes later: it is an unknown predicate, and no refusal.

:- meta_predicate while_loading(0).

while_loading(Goal) :-
    setup_call_cleanup(assertz(is_loading), Goal, retractall(is_loading)).

%!  while_adding(+Names, :Goal)
%
%   Run a goal that checks clauses of one request, which define these predicates: the order of the clauses counts for nothing.

:- meta_predicate while_adding(+, 0).

while_adding(Names, Goal) :-
    setup_call_cleanup(
        forall(member(Name/Arity, Names), assertz(added(Name, Arity))),
        once(Goal),
        retractall(added(_, _))).

may_be_of_library(Name/Arity) :-
    library_export(Name, Arity, _, _), !.

is_of_system(Goal) :-
    '$get_predicate_attribute'(system:Goal, defined, 1).

is_of_workspace(Goal) :-
    \+ is_imported(Goal),
    '$get_predicate_attribute'(workspace:Goal, (dynamic), 1).

%   The exports of libraries that are allowed are imported.

is_imported(Goal) :-
    '$get_predicate_attribute'(workspace:Goal, imported, _).

refuse(Goal, Reason) :-
    indicator(Goal, Indicator),
    raise(kb_refused(Indicator, Reason)).

%!  raise(+Formal)
%
%   Throw an error of KB's own. A goal may throw an equal term, or one of the system: so the last error that KB raised is
%   kept, and the last one that a goal threw itself of those that the system throws for lack of memory.

raise(Formal) :-
    Error = error(Formal, _),
    retractall(raised(_)),
    assertz(raised(Error)),
    (   Formal = kb_limit(_)
    ->  assertz(limit_reached(Error))
    ;   true
    ),
    throw(Error).

is_raised(Error) :-
    copy_term_nat(Error, Plain),        % without the names of variables
    (   raised(Raised)
    ;   limit_reached(Raised)
    ),
    Plain =@= Raised, !.

%!  checked_with_names(+Names, :Goal)
%
%   Run a goal that checks a term which was read with these names of variables, as Name=Variable. Where it throws, it runs
%   again with variables that carry their names: an exception is a copy, and has other variables.

:- meta_predicate checked_with_names(+, 0).

checked_with_names(Names, Goal) :-
    catch(Goal, Error, true),
    (   var(Error)
    ->  true
    ;   carry_names(Names),
        catch(Goal, Named, true),
        copy_term_nat(Named, Plain),
        (   Plain =@= Error
        ->  throw(Named)
        ;   throw(Error)
        )
    ).

%   Such a variable can be bound as any other.

kb_name:attr_unify_hook(_, _).

carry_names([]).
carry_names([Name=Variable|More]) :-
    (   var(Variable)
    ->  put_attr(Variable, kb_name, Name)
    ;   true
    ),
    carry_names(More).

%!  name_of(+Variable, -Name)
%
%   The name that a variable carries, if any.

name_of(Variable, Name) :-
    attvar(Variable),
    get_attr(Variable, kb_name, Name).

is_thrown(Error) :-
    thrown(Thrown),
    Error =@= Thrown.

forget_errors :-
    retractall(raised(_)),
    retractall(limit_reached(_)),
    retractall(thrown(_)).

indicator(Module:Goal, Module:Indicator) :-
    nonvar(Goal), !,
    indicator(Goal, Indicator).
indicator(Goal, Goal/0) :-
    atom(Goal), !.
indicator(Goal, Name/Arity) :-
    compound(Goal), !,
    compound_name_arity(Goal, Name, Arity).
indicator(Goal, Goal).

%   Arguments that are called

calls_goals(Spec) :-
    arg(_, Spec, One),
    goal_spec(One), !.

goal_spec(One) :- integer(One), !.
goal_spec(^).
goal_spec(//).

%!  checked_argument(+Goal, -Rewritten)
%
%   Rewrite a goal that another one calls: what is no goal is an error when it is called.

checked_argument(Goal, Rewritten) :- argument(0, Goal, Rewritten).

argument(Spec, Argument, T) :-
    integer(Spec), !,
    or_when_called(closure(Spec, Argument, T), T = kb_guard:run(Argument)).
argument(^, Argument, T) :- !,
    or_when_called(quantified(Argument, T), T = kb_guard:run(Argument)).
argument(//, Argument, kb_guard:nonterminal(Argument)) :- !.
argument(_, Argument, Argument).

%   What is no goal is an error when it is called, and not before: a goal may catch it.

or_when_called(Check, Later) :-
    catch(Check, error(type_error(callable, _), _), Later).

%   The goal of bagof/3 and its like has to be known for its `^` to be seen. One that is not is rewritten when it is called.

is_open(Argument) :-
    var(Argument), !.
is_open(_^Goal) :-
    is_open(Goal).

run_bound(Goal, At) :-
    arg(At, Goal, Argument),
    (   is_open(Argument)
    ->  throw(error(instantiation_error, _))
    ;   run(Goal)
    ).

quantified(Variable^Goal, Variable^T) :- !,
    quantified(Goal, T).
quantified(Goal, T) :-
    body(Goal, T).

%   A closure is called with further arguments. It stays what it is where the goal that comes of it needs no rewriting, and
%   is checked when it is called otherwise. What stays is a new term: nobody else holds it, so that no destructive
%   assignment changes it after the check.

closure(0, Goal, T) :- !,
    body(Goal, T).
closure(_, Closure, kb_guard:run(Closure)) :-
    var(Closure), !.
closure(More, Module:Closure, T) :- !,
    callable_module(Module, Closure, More),
    closure(More, Closure, T).
closure(More, Closure, T) :-
    length(Extra, More),
    extended(Closure, Extra, Goal),
    body(Goal, Checked),
    (   Checked == Goal
    ->  compound_name_arguments(Checked, Name, All),
        append(Arguments, Extra, All),
        (   Arguments == []
        ->  T = Name
        ;   compound_name_arguments(T, Name, Arguments)
        )
    ;   T = kb_guard:run(Closure)
    ).

extended(Closure, _, _) :-
    var(Closure), !,
    throw(error(instantiation_error, _)).
extended(Module:Closure, Extra, Goal) :- !,
    length(Extra, More),
    callable_module(Module, Closure, More),
    extended(Closure, Extra, Goal).
extended(Closure, Extra, Goal) :-
    callable(Closure), !,
    (   atom(Closure)
    ->  Name = Closure,
        Arguments = []
    ;   compound_name_arguments(Closure, Name, Arguments)
    ),
    append(Arguments, Extra, All),
    (   All == []
    ->  Goal = Closure
    ;   compound_name_arguments(Goal, Name, All)
    ).
extended(Closure, _, _) :-
    throw(error(type_error(callable, Closure), _)).

%   Goals that are known when they are called

run(Goal) :-
    nonvar(Goal), !,
    called_body(Goal, T),
    call(workspace:T).
run(_) :-
    throw(error(instantiation_error, _)).

%   An error of the standard names the whole goal where a part of it is none.

called_body((A, B), T) :- !, whole_body((A, B), T).
called_body((A ; B), T) :- !, whole_body((A ; B), T).
called_body((A -> B), T) :- !, whole_body((A -> B), T).
called_body(Goal, T) :- body(Goal, T).

whole_body(Goal, T) :-
    or_when_called(body(Goal, T), throw(error(type_error(callable, Goal), _))).

run_with(Closure, Extra) :-
    extended(Closure, Extra, Goal),
    run(Goal).

run(C, A) :- extended(C, [A], G), run(G).
run(C, A, B) :- extended(C, [A, B], G), run(G).
run(C, A, B, D) :- extended(C, [A, B, D], G), run(G).
run(C, A, B, D, E) :- extended(C, [A, B, D, E], G), run(G).
run(C, A, B, D, E, F) :- extended(C, [A, B, D, E, F], G), run(G).
run(C, A, B, D, E, F, H) :- extended(C, [A, B, D, E, F, H], G), run(G).
run(C, A, B, D, E, F, H, I) :- extended(C, [A, B, D, E, F, H, I], G), run(G).
run(C, A, B, D, E, F, H, I, J) :- extended(C, [A, B, D, E, F, H, I, J], G), run(G).

catch_(Goal, Catcher, Recovery) :-
    catch(workspace:Goal, Thrown, recover(Thrown, Catcher, Recovery)).

%   A limit ends the step whatever the goal catches: otherwise it would be gone for what the goal does then. The error of a
%   cleanup may have replaced that of the limit.

recover(Thrown, Catcher, Recovery) :-
    (   is_limit(Thrown)
    ->  throw(Thrown)
    ;   limit_reached(Limit)
    ->  throw(Limit)
    ;   inferences_used(Used),
        max_inferences(Most),
        Used > Most
    ->  raise(kb_limit(inference))
    ;   own_error(Thrown, Error),
        (   Catcher = Error
        ->  ignore(program_recovers),
            call(workspace:Recovery)
        ;   throw(Error)
        )
    ).

%!  own_error(+Thrown, -Error)
%
%   An error without the modules that the system names since the goals of a user are not in the module `user`, and without
%   what was rewritten.

own_error(Thrown, Error) :-
    subsumes_term(error(existence_error(procedure, workspace:_), _), Thrown), !,
    Thrown = error(existence_error(Type, _:Own), Context),
    Error = error(existence_error(Type, Own), Context).
own_error(Thrown, Error) :-
    subsumes_term(error(existence_error(matching_rule, _:_), _), Thrown),
    Thrown = error(existence_error(Type, Module:Goal), Context),
    compound(Goal), !,
    Goal =.. [Name|Arguments],
    maplist(plain, Arguments, Plains),
    Own =.. [Name|Plains],
    Error = error(existence_error(Type, Module:Own), Context).
own_error(Error, Error).

%!  begin_goal
%
%   Count inferences from here, in this engine of Prolog.

begin_goal :-
    statistics(inferences, Begun),
    nb_setval(kb_inferences, Begun).

inferences_used(Used) :-
    statistics(inferences, Now),
    nb_getval(kb_inferences, Begun),
    Used is Now - Begun.

is_limit(Error) :-
    Error == inference_limit_exceeded, !.
is_limit(Error) :-
    nonvar(Error),
    Error = error(Formal, _),
    nonvar(Formal),
    Formal = kb_limit(_),
    is_raised(Error).

nonterminal(Body, _, _) :-
    var(Body), !,
    throw(error(instantiation_error, _)).
nonterminal(Body, From, To) :-
    dcg_translate_rule((kb_nonterminal --> Body), Clause),
    (   Clause = (kb_nonterminal(From, To) :- Goal)
    ->  run(Goal)
    ;   Clause = kb_nonterminal(From, To)
    ).

%   Goals that are replaced: kb_guard has a predicate of its own that checks the arguments when it is called.

wrapped(print, 1, print_).
wrapped(write, 1, write_).
wrapped(writeln, 1, writeln_).
wrapped(writeq, 1, writeq_).
wrapped(write_canonical, 1, write_canonical_).
wrapped(write_term, 2, write_term_).
wrapped(portray_clause, 1, portray_clause_).
wrapped(put_char, 1, put_char_).
wrapped(tab, 1, tab_).
wrapped(nl, 0, nl_).
wrapped(format, 1, format_).
wrapped(format, 2, format_).
wrapped(format, 3, format_).
wrapped(with_output_to, 2, with_output_to_).
wrapped(normalize_space, 2, normalize_space_).
wrapped(throw, 1, throw_).
wrapped(resource_error, 1, resource_error_).
wrapped(clause, 2, clause_).
wrapped(copy_term, 3, copy_term_).
wrapped(current_predicate, 1, current_predicate_).
wrapped(term_string, 3, term_string_).
wrapped((>>), Arity, lambda_) :- between(2, 9, Arity).
wrapped((/), Arity, lambda_free_) :- between(2, 9, Arity).

print_(Term) :- printed(write_term(Term, [quoted(true), numbervars(true)])).
write_(Term) :- printed(write(Term)).
writeln_(Term) :- printed(writeln(Term)).
writeq_(Term) :- printed(writeq(Term)).
write_canonical_(Term) :- printed(write_canonical(Term)).
portray_clause_(Term) :- printed(portray_clause(Term)).
put_char_(Char) :- printed(put_char(Char)).
tab_(Number) :- printed(tab(Number)).
nl_ :- printed(nl).

write_term_(Term, Options) :-
    plain_options(Options),
    printed(write_term(Term, Options)).

term_string_(String, Term, Options) :-
    plain_options(Options),
    term_string(String, Term, Options).

%   An option is Name(Value) here; the system takes Name=Value as well, and some names call a goal.

plain_options(Options) :-
    must_be(list, Options),
    (   member(Option, Options),
        \+ plain_option(Option)
    ->  refuse(Option, option)
    ;   true
    ).

plain_option(Option) :-
    nonvar(Option),
    functor(Option, Name, 1),
    text_option(Name).

format_(Format) :-
    format_(Format, []).
format_(Format, Arguments) :-
    plain_format(Format),
    own_arguments(Arguments, List),
    printed(format(Format, List)).
format_(Sink, Format, Arguments) :-
    (   is_text_sink(Sink)
    ->  plain_format(Format),
        own_arguments(Arguments, List),
        format(Sink, Format, List)
    ;   refuse(format(Sink, Format, Arguments), stream)
    ).

is_text_sink(Sink) :-
    nonvar(Sink),
    memberchk(Sink, [atom(_), string(_), codes(_), codes(_, _), chars(_), chars(_, _)]).

with_output_to_(Sink, Goal) :-
    (   is_text_sink(Sink)
    ->  with_output_to(Sink, run(Goal))
    ;   refuse(with_output_to(Sink, Goal), stream)
    ).

normalize_space_(Sink, Text) :-
    (   is_text_sink(Sink)
    ->  normalize_space(Sink, Text)
    ;   refuse(normalize_space(Sink, Text), stream)
    ).

%   Exceptions that the system acts on: they end a thread or the process, or are how a limit ends a goal.

throw_(Ball) :-
    (   nonvar(Ball),
        memberchk(Ball, ['$aborted', unwind(_), inference_limit_exceeded])
    ->  refuse(throw(Ball), exception)
    ;   nonvar(Ball),
        Ball = error(Formal, _),
        nonvar(Formal),
        memberchk(Formal, [resource_error(_), io_error(_, _)])
    ->  retractall(thrown(_)),
        assertz(thrown(Ball)),
        throw(Ball)
    ;   throw(Ball)
    ).

resource_error_(Resource) :-
    throw_(error(resource_error(Resource), _)).

own_arguments(Arguments, Arguments) :-
    is_list(Arguments), !.
own_arguments(Arguments, List) :-
    nonvar(Arguments),
    Arguments = Module:More, !,
    own_module(Module, More),
    own_arguments(More, List).
own_arguments(Argument, [Argument]).

%   The directive ~@ calls a goal, and ~W takes options that may. ~p calls print/1, which has no hook here.

plain_format(Format) :-
    (   var(Format)
    ->  throw(error(instantiation_error, _))
    ;   text_to_string(Format, Text)
    ->  string_codes(Text, Codes),
        (   calls_in_format(Codes)
        ->  refuse(format(Format), format_call)
        ;   true
        )
    ;   throw(error(type_error(format, Format), _))
    ).

calls_in_format([0'~|Codes]) :- !,
    directive(Codes, Letter, Rest),
    (   memberchk(Letter, [0'@, 0'W])
    ->  true
    ;   calls_in_format(Rest)
    ).
calls_in_format([_|Codes]) :-
    calls_in_format(Codes).

%!  directive(+Codes, -Letter, -Rest)
%
%   The letter of a directive, after its argument, and what follows it. `~` is one as well.

directive([0'`, _|Codes], Letter, Rest) :- !,
    letter(Codes, Letter, Rest).
directive([0'*|Codes], Letter, Rest) :- !,
    letter(Codes, Letter, Rest).
directive([Digit|Codes], Letter, Rest) :-
    code_type(Digit, digit), !,
    directive(Codes, Letter, Rest).
directive(Codes, Letter, Rest) :-
    letter(Codes, Letter, Rest).

letter([0':|Codes], Letter, Rest) :- !,
    letter(Codes, Letter, Rest).
letter([Letter|Rest], Letter, Rest).

clause_(Head, Body) :- own_clause(Head, Body, _).

%!  own_clause(+Head, ?Body, -Reference)
%
%   On backtracking each clause of the workspace with this head, as it was typed.

own_clause(Head, Body, Reference) :-
    (   var(Head)
    ->  throw(error(instantiation_error, _))
    ;   Head = Module:Own
    ->  own_module(Module, Own)
    ;   Own = Head
    ),
    (   callable(Own)
    ->  true
    ;   throw(error(type_error(callable, Own), _))
    ),
    (   is_of_workspace(Own)
    ->  clause(workspace:Own, Rewritten, Reference),
        (   typed(Reference, Typed)
        ->  clause(kb_typed:Own, Plain, Typed)
        ;   Plain = Rewritten
        ),
        Body = Plain
    ;   refusal_of_clause(Own)
    ).

refusal_of_clause(Own) :-
    functor(Own, Name, Arity),
    (   ( is_of_system(Own) ; allowed(Name, Arity) ; graph_predicate(Name, Arity) )
    ->  refuse(Own, clause)
    ;   fail
    ).

copy_term_(Term, Copy, Goals) :-
    copy_term(Term, Copy, Goals0),
    maplist(original, Goals0, Goals).

current_predicate_(Indicator) :-
    (   nonvar(Indicator), Indicator = Module:Own
    ->  own_module(Module, Own)
    ;   Own = Indicator
    ),
    Own = Name/Arity,
    current_predicate(workspace:Name/Arity),
    functor(Head, Name, Arity),
    is_of_workspace(Head).

%   Lambda expressions as library(yall) defines them: a lambda is copied for each call, but for the variables before `/`.
%   Its body is checked when it is called.

lambda_(Parameters, Body) :- lambda(Parameters, Body, []).
lambda_(Parameters, Body, A) :- lambda(Parameters, Body, [A]).
lambda_(Parameters, Body, A, B) :- lambda(Parameters, Body, [A, B]).
lambda_(Parameters, Body, A, B, C) :- lambda(Parameters, Body, [A, B, C]).
lambda_(Parameters, Body, A, B, C, D) :- lambda(Parameters, Body, [A, B, C, D]).
lambda_(Parameters, Body, A, B, C, D, E) :- lambda(Parameters, Body, [A, B, C, D, E]).
lambda_(Parameters, Body, A, B, C, D, E, F) :- lambda(Parameters, Body, [A, B, C, D, E, F]).
lambda_(Parameters, Body, A, B, C, D, E, F, G) :- lambda(Parameters, Body, [A, B, C, D, E, F, G]).

lambda(Parameters, Body, Arguments) :-
    copy_term_nat(Parameters-Body, CopiedParameters-CopiedBody),
    (   nonvar(Parameters),
        Parameters = Free/_
    ->  CopiedParameters = Free/Formal
    ;   Formal = CopiedParameters
    ),
    bound(Formal, Arguments, Extra),
    extended(CopiedBody, Extra, Goal),
    run(Goal).

bound([Formal|More], [Actual|Arguments], Extra) :- !,
    Formal = Actual,
    bound(More, Arguments, Extra).
bound(_, Extra, Extra).

lambda_free_(Free, Lambda) :- lambda_free(Free, Lambda, []).
lambda_free_(Free, Lambda, A) :- lambda_free(Free, Lambda, [A]).
lambda_free_(Free, Lambda, A, B) :- lambda_free(Free, Lambda, [A, B]).
lambda_free_(Free, Lambda, A, B, C) :- lambda_free(Free, Lambda, [A, B, C]).
lambda_free_(Free, Lambda, A, B, C, D) :- lambda_free(Free, Lambda, [A, B, C, D]).
lambda_free_(Free, Lambda, A, B, C, D, E) :- lambda_free(Free, Lambda, [A, B, C, D, E]).
lambda_free_(Free, Lambda, A, B, C, D, E, F) :- lambda_free(Free, Lambda, [A, B, C, D, E, F]).
lambda_free_(Free, Lambda, A, B, C, D, E, F, G) :- lambda_free(Free, Lambda, [A, B, C, D, E, F, G]).

lambda_free(Free, Lambda, Arguments) :-
    copy_term_nat(Free-Lambda, Free-Copy),
    extended(Copy, Arguments, Goal),
    run(Goal).

%   The goal that was rewritten, for what a user sees. Only what is called was rewritten: a term that is data stays what it is.

original(Goal, Plain) :-
    (   acyclic_term(Goal)
    ->  plain(Goal, Plain)
    ;   '$factorize_term'(Goal, Acyclic, Shared),
        plain(Acyclic, Plain),
        maplist(call, Shared)           % Variable=Value each
    ).

plain(Goal, Plain) :-
    \+ compound(Goal), !,
    Plain = Goal.
plain(workspace:Goal, Plain) :- !,
    plain(Goal, Plain).
plain(kb_guard:Goal, Plain) :-
    callable(Goal), !,
    Goal =.. [Name|Arguments],
    (   Name == run
    ->  (   Arguments = [Plain]
        ->  true
        ;   Plain =.. [call|Arguments]
        )
    ;   Name == run_with
    ->  Arguments = [Closure, Extra],
        Plain =.. [call, Closure|Extra]
    ;   Name == catch_
    ->  Arguments = [Called, Catcher, Recovery],
        maplist(plain, [Called, Recovery], [PlainCalled, PlainRecovery]),
        Plain = catch(PlainCalled, Catcher, PlainRecovery)
    ;   memberchk(Name, [nonterminal, run_bound])
    ->  Arguments = [Plain|_]
    ;   wrapped(Original, _, Name)
    ->  Plain =.. [Original|Arguments]
    ;   Plain = kb_guard:Goal
    ).
plain(Module:Goal, Module:Plain) :- !,
    plain(Goal, Plain).
plain(Variable^Goal, Variable^Plain) :- !,
    plain(Goal, Plain).
plain(Goal, Plain) :-
    compound_name_arguments(Goal, Name, Arguments),
    called_arguments(Goal, Specs), !,
    maplist(plain_argument, Specs, Arguments, Plains),
    compound_name_arguments(Plain, Name, Plains).
plain(Goal, Goal).

called_arguments(Goal, Specs) :-
    (   memberchk(Goal, [(_, _), (_ ; _), (_ -> _), (_ *-> _), \+ _, call(_)])
    ->  compound_name_arguments(Goal, _, Arguments),
        findall(0, member(_, Arguments), Specs)
    ;   compound_name_arity(Goal, Name, Arity),
        allowed(Name, Arity),
        predicate_property(workspace:Goal, meta_predicate(Spec)),
        Spec =.. [_|Specs]
    ).

plain_argument(Spec, Argument, Plain) :-
    (   goal_spec(Spec)
    ->  plain(Argument, Plain)
    ;   Plain = Argument
    ).

%   Output. The current output of a query is a null stream: what it prints is kept in parts, which backtracking leaves.

printed(Goal) :-
    current_output(Out),
    (   stream_property(Out, alias(kb_null))
    ->  with_output_to(string(Text), Goal),
        add_output(Text)
    ;   call(Goal)
    ).

add_output("") :- !.
add_output(Text) :-
    string_length(Text, Length),
    flag(kb_output_length, Before, Before + Length),
    max_characters(Most),
    (   Before + Length > Most
    ->  raise(kb_limit(output))
    ;   assertz(output_part(Text))
    ).

reset_output :-
    retractall(output_part(_)),
    flag(kb_output_length, _, 0).

taken_output(Text) :-
    findall(Part, retract(output_part(Part)), Parts),
    atomics_to_string(Parts, Text),
    reset_output.

set_limits(Inferences, Characters, Arity) :-
    retractall(max_characters(_)),
    retractall(max_arity(_)),
    set_max_inferences(Inferences),
    assertz(max_characters(Characters)),
    assertz(max_arity(Arity)).

set_max_inferences(Inferences) :-
    retractall(max_inferences(_)),
    assertz(max_inferences(Inferences)).

%   The list of what is allowed

%!  set_preloaded(+Names)
%
%   Load the libraries that every engine has.

set_preloaded(Names) :-
    forall(member(Name, Names), assertz(kb_allowed:preloaded(Name))),
    forall(member(Name, Names), allow_library(Name, _)).

%!  set_listed(+Names)
%
%   Take the libraries that may be loaded beside those.

set_listed(Names) :-
    retractall(kb_allowed:listed(_)),
    forall(member(Name, Names), assertz(kb_allowed:listed(Name))).

allow_builtins :-
    forall(( builtin(Names), member(Name/Arity, Names) ),
           (   functor(Head, Name, Arity),
               ( judged(Name/Arity, _) ; is_safe(Head) )
           ->  allow(Name, Arity)
           ;   true
           )),
    forall(judged(Name/Arity, _), allow(Name, Arity)),
    forall(( not_everywhere(Some), member(Name/Arity, Some) ), assertz(of_other_engine(Name, Arity))),
    forall(library_names(Library, Which, Exports),
           forall(member(Name/Arity, Exports), assertz(library_export(Name, Arity, Library, Which)))).

%   Two libraries may export the same name: what can be had comes first.

library_names(Library, offered, Names) :-
    offered(Library, Names),
    \+ only_when_loaded(Library).
library_names(Library, withheld, Names) :-
    withheld(Library, Names),
    \+ only_when_loaded(Library).
library_names(Library, unlisted, Names) :- unlisted(Library, Names).

allow(Name, Arity) :-
    (   allowed(Name, Arity)
    ->  true
    ;   assertz(allowed(Name, Arity))
    ).

is_safe(Head) :-
    catch(sandbox:safe_goal(workspace:Head), _, fail), !.

allow_library(Name, Outcome) :-
    (   loaded_library(Name)
    ->  Outcome = loaded
    ;   \+ library_name(Name)
    ->  Outcome = not_listed
    ;   catch(load_library(Name, Module), _, fail)
    ->  allow_exports(Name, Module),
        share_operators,
        assertz(loaded_library(Name)),
        Outcome = loaded
    ;   Outcome = missing
    ).

load_library(Name, Module) :-
    absolute_file_name(library(Name), File, [file_type(prolog), access(read), file_errors(fail)]),
    findall(Known, current_module(Known), Before),
    kb_guarded:use_module(library(Name), []),
    file_name_extension(Base, _, File),
    module_property(Module, file(Loaded)),
    file_name_extension(Base, _, Loaded), !,
    findall(New, ( current_module(New), \+ memberchk(New, Before) ), Added),
    maplist(supply, [Module|Added]).

%   The predicates of the system that read or write a text know the operators of the module `user`.

share_operators :-
    forall(( current_op(Priority, Type, workspace:Name), \+ current_op(Priority, Type, user:Name) ),
           op(Priority, Type, user:Name)).

%   Autoloading is off, and some libraries call these without naming them.

supply(Module) :-
    forall(member(Library, [lists, apply, error, pairs, ordsets, random, terms]), Module:use_module(library(Library))).

%   Only what is allowed is imported: all else that a library exports is as if it were not there, since another version
%   may not have it. Libraries that are loaded first are imported before there is any goal. When another one is loaded there
%   may be goals that name its exports and were not rewritten, since nothing had these names. So an export that calls goals
%   gets a predicate in front of it then that rewrites its arguments.

allow_exports(Library, Module) :-
    module_property(Module, exports(Exports)),
    (   offered(Library, Offered)
    ->  true
    ;   Offered = []
    ),
    findall(One, ( member(One, Exports), memberchk(One, Offered) ), Known),
    partition(calls_arguments(Module), Known, Calling, Plain),
    (   meta_export(Library, Metas)
    ->  true
    ;   Metas = []
    ),
    (   pure_export(Library, Pure)
    ->  true
    ;   Pure = []
    ),
    findall(One, ( member(One, Calling), memberchk(One, Metas) ), AllowedCalling),
    findall(One, ( member(One, Plain), ( memberchk(One, Pure) ; is_safe_export(Module, One) ) ), AllowedPlain),
    (   preloaded(Library)
    ->  append(AllowedPlain, AllowedCalling, Imported)
    ;   Imported = AllowedPlain,
        maplist(guard_export(Module), AllowedCalling)
    ),
    workspace:use_module(library(Library), [op(_, _, _)|Imported]),
    forall(( member(Name/Arity, AllowedCalling) ; member(Name/Arity, AllowedPlain) ), allow(Name, Arity)),
    forall(( only_when_loaded(Library), withheld(Library, Names), member(Name/Arity, Names) ),
           assertz(library_export(Name, Arity, Library, withheld))).

calls_arguments(Module, Name/Arity) :-
    functor(Head, Name, Arity),
    predicate_property(Module:Head, meta_predicate(Spec)),
    calls_any(Spec).

is_safe_export(Module, Name/Arity) :-
    functor(Head, Name, Arity),
    catch(sandbox:safe_goal(Module:Head), _, fail), !.

guard_export(Module, Name/Arity) :-
    functor(Head, Name, Arity),
    assertz(kb_guarded:(Head :- kb_guard:guarded(Module, Head))),
    kb_guarded:export(Name/Arity),
    workspace:import(kb_guarded:Name/Arity).

guarded(Module, Goal) :-
    predicate_property(Module:Goal, meta_predicate(Spec)), !,
    Goal =.. [Name|Arguments],
    Spec =.. [_|Specs],
    maplist(argument, Specs, Arguments, Rewritten),
    T =.. [Name|Rewritten],
    @(Module:T, workspace).

calls_any(Spec) :-
    arg(_, Spec, One),
    ( goal_spec(One) ; One == (:) ), !.

declared_graph(Name, Arity) :-
    (   graph_predicate(Name, Arity)
    ->  true
    ;   assertz(graph_predicate(Name, Arity))
    ).

undeclared_graph(Name, Arity) :-
    retractall(graph_predicate(Name, Arity)).

graph_name(Name/Arity) :- graph_predicate(Name, Arity).

%   The predicates that a goal may call beside those of the workspace and of the graph

known_name(Name/Arity) :- allowed(Name, Arity).
known_name(Name/Arity) :- wrapped(Name, Arity, _).
