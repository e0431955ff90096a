/*  Rules of `kb check`: a file of rules is loaded into an empty workspace, and each of its rules is asked by itself. */
:- module(kb_rules, [load_rules/3, violations/5]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(library(solution_sequences), [distinct/2, limit/2]).
:- use_module(guard).
:- use_module(reading).
:- use_module(answers).
:- use_module(graph).

%!  load_rules(+Text, +EdgeTypes, -Reply)
%
%   Forget all clauses, and load those of a file in their order. The reply has what could not be loaded (`failed`), the
%   facts that state rules (`rules`), the heads that give violations (`heads`), each with its line, and whether a library was
%   loaded, which no later file may see (`loads`).

load_rules(Text, EdgeTypes, object(["status"-"ok", "failed"-Failed, "rules"-Rules, "heads"-Heads, "loads"-json(Loads)])) :-
    forget_edges,
    forget_clauses,
    read_clauses(Text, Items),
    forall(( member(read(_, _, _, (:- Directive), "")-_, Items), kb_server:is_use_module(Directive) ),
           kb_server:do_directive(Directive)),
    findall(Name, ( member(read(_, _, _, Term, _)-_, Items), kb_server:defined_by(Term, Name) ), Defined),
    kb_server:names_of_libraries(Defined, Names),
    while_adding(Names, maplist(loaded, Items, Outcomes)),
    findall(One, member(failed(One), Outcomes), Failed),
    findall(One, member(rule(One), Outcomes), Rules),
    findall(One, member(head(One), Outcomes), Heads),
    (   memberchk(use_module, Outcomes)
    ->  Loads = true
    ;   Loads = false
    ),
    forall(member(Type, EdgeTypes), declare_edge(Type)).

%   Libraries come first: a clause above the directive may use what they define.

forget_clauses :-
    findall(Name/Arity,
            (   current_predicate(workspace:Name/Arity),
                functor(Head, Name, Arity),
                '$get_predicate_attribute'(workspace:Head, (dynamic), 1),
                \+ '$get_predicate_attribute'(workspace:Head, imported, _)
            ),
            Own),
    forall(member(Indicator, Own), abolish(workspace:Indicator)),
    forget_typed.

loaded(unread(_, _, Line, Error)-_, failed(object(["line"-Line|Members]))) :-
    error_members(Error, Members).
loaded(read(_, _, Line, Term, Stop)-Names, Outcome) :-
    catch(checked_with_names(Names, once(load(Term, Stop, Line, Outcome))),
          Error,
          ( error_members(Error, Members), Outcome = failed(object(["line"-Line|Members])) )).

load(_, Stop, _, _) :-
    Stop \== "",
    throw(error(syntax_error(end_of_clause_expected), _)).
load(Term, _, _, _) :-
    var(Term),
    throw(error(instantiation_error, _)).
load((:- Directive), "", _, Outcome) :- !,
    kb_server:honoured(Directive, Kind),
    kb_server:do_directive(Directive),
    Outcome = Kind.
load(Term, "", Line, rule(Object)) :-
    stated_rule(Term, Rule), !,
    named(Rule, Line, Object).
load(Term, "", Line, Outcome) :-
    once(checked_clause(Term, Checked, Name/Arity)),
    add_clause(Checked, _),
    arg(1, Checked, Head),
    described(Name, Arity, Line, Head, Outcome).

%   rule/2 and rule/3 are predicates of SWI-Prolog: the facts that state rules are read and not loaded.

stated_rule(Term, _) :-
    var(Term), !,
    fail.
stated_rule((Rule :- _), Rule) :- !,
    stated_rule(Rule, Rule).
stated_rule(Rule, Rule) :-
    callable(Rule),
    functor(Rule, rule, Arity),
    memberchk(Arity, [2, 3, 4]).

described(violation, Arity, Line, Head, head(Object)) :-
    memberchk(Arity, [3, 4]), !,
    named(Head, Line, Object).
described(_, _, _, _, none).

%   The first argument: its text; nothing where it is a variable or no atom.

named(Head, Line, object(["line"-Line|Members])) :-
    arg(1, Head, Name),
    (   var(Name)
    ->  Members = ["name"-"", "is_any"-json(true)]
    ;   atom(Name)
    ->  Members = ["name"-Name, "is_any"-json(false)]
    ;   quoted(Name, Text),
        Members = ["name"-Text, "is_any"-json(false)]
    ).

%!  violations(+Rule, +Most, +Length, +Inferences, -Found)
%
%   The different violations of a rule, at most so many, each with a message of at most so many characters. One whose parts
%   are no texts is `wrong` instead.

violations(Rule, Most, Length, Inferences, Found) :-
    begin_goal,
    call_with_inference_limit(
        findall(Object, ( limit(Most, distinct(One, violation(Rule, Length, One))), member_object(One, Object) ), Found),
        Inferences, Result),
    (   Result == inference_limit_exceeded
    ->  raise(kb_limit(inference))
    ;   true
    ).

member_object(v(Id, Message, Severity), object(["id"-Id, "message"-Message, "severity"-Severity])).
member_object(wrong(What, Text), object(["wrong"-What, "term"-Text])).

violation(Rule, Length, One) :-
    (   '$get_predicate_attribute'(workspace:violation(_, _, _), defined, 1),
        workspace:violation(Rule, Id, Message),
        Severity = error
    ;   '$get_predicate_attribute'(workspace:violation(_, _, _, _), defined, 1),
        workspace:violation(Rule, Id, Message, Severity)
    ),
    (   text(Id, Length, IdText)
    ->  (   text(Message, Length, MessageText)
        ->  (   memberchk_eq(Severity, [error, warning])
            ->  One = v(IdText, MessageText, Severity)
            ;   quoted(Severity, Text),
                One = wrong("severity", Text)
            )
        ;   quoted(Message, Text),
            One = wrong("message", Text)
        )
    ;   quoted(Id, Text),
        One = wrong("id", Text)
    ).

memberchk_eq(Term, List) :-
    member(One, List),
    One == Term, !.

text(Term, Length, Text) :-
    (   atom(Term)
    ;   string(Term)
    ), !,
    string_length(Term, All),
    (   All > Length
    ->  sub_string(Term, 0, Length, _, Text)
    ;   atom_string(Term, Text)
    ).

quoted(Term, Text) :-
    copy_term_nat(Term, Copy),
    numbervars(Copy, 0, _, [singletons(true)]),
    with_output_to(string(Long),
                   write_term(Copy, [quoted(true), numbervars(true), max_depth(10), spacing(next_argument)])),
    without_backticks(Long, Safe),
    (   string_length(Safe, Length),
        Length > 100
    ->  sub_string(Safe, 0, 100, _, Text)
    ;   Text = Safe
    ).
