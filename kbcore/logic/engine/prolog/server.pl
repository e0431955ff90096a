/*  The engine of the Prolog workspace: reads requests from standard input, writes one line of JSON for each.

    A request is a term that ends with a full stop. Texts are strings. handle/2 has all requests. What a goal prints
    never reaches the stream of replies.
*/
:- module(kb_server, [serve/0, prepare/1, save/1]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(library(solution_sequences), [call_nth/2, limit/2]).
:- use_module(guard).
:- use_module(reading).
:- use_module(answers).
:- use_module(graph).
:- use_module(rules).
:- use_module(program).
:- use_module(program_check).

:- dynamic loaded_clause/3,             % Id, Reference, Name/Arity
           noted/3,                     % Name, Arity, `defined`, `taken` or `library`: of the clauses of a request
           accepted/3,                  % Name, Arity, their text: of heads of the clauses of a request
           loaded_directive/2,          % Id, Directive
           open_query/1,                % query(Mode, Engine or Number, Goal, Names)
           protocol/2.                  % In, Out

%!  prepare(+Libraries)
%
%   Make the module of the workspace and load what every engine has. It is done before a state is saved.

prepare(Libraries) :-
    set_prolog_flag(autoload, explicit),
    set_prolog_flag(verbose, silent),
    forall(member(Module, [workspace, kb_typed, kb_guarded, kb_edges]), set_module(Module:base(system))),
    set_prolog_flag(workspace:unknown, error),
    allow_builtins,
    set_preloaded(Libraries),
    forall(member(Name/Arity, [entity/4, attr/3, edge/3, edge/4]),
           ( workspace:import(kb_graph:Name/Arity), declared_graph(Name, Arity) )),
    retractall(kb_graph:load_graph),
    assertz((kb_graph:load_graph :- kb_server:load_graph)).

%!  save(+File)
%
%   Write a saved state that serves when it is started. Call prepare/1 before.

save(File) :-
    use_module(library(qsave)),
    qsave_program(File, [goal(kb_server:serve), toplevel(halt), foreign(no_save), stand_alone(false)]).

%!  serve
%
%   Answer requests until standard input ends; then end the process.

serve :-
    open_streams(In, Out),
    retractall(protocol(_, _)),
    assertz(protocol(In, Out)),
    repeat,
    catch(read_term(In, Request, []), Error, true),
    (   nonvar(Error)
    ->  error_reply(Error, Reply),
        send(Out, Reply),
        fail
    ;   Request == end_of_file
    ->  !,
        halt(0)
    ;   answer(Request, Reply),
        send(Out, Reply),
        fail
    ).

open_streams(In, Out) :-
    stream_property(In, alias(user_input)),
    stream_property(Out, alias(user_output)), !,
    set_stream(In, encoding(utf8)),
    set_stream(In, newline(posix)),
    set_stream(Out, encoding(utf8)),
    set_stream(Out, newline(posix)),
    set_stream(Out, buffer(full)),
    open_null_stream(Null),
    set_stream(Null, alias(kb_null)),
    open_string("", Empty),
    set_stream(Empty, alias(user_input)),
    set_input(Empty),
    set_stream(Null, alias(user_output)),
    set_stream(Null, alias(user_error)),
    set_output(Null).

answer(Request, Reply) :-
    catch(handle(Request, Reply), Error, error_reply(Error, Reply)), !.
answer(Request, object(["status"-"error", "kind"-"protocol", "message"-Message])) :-
    functor(Request, Name, Arity),
    format(string(Message), "the engine cannot do ~q", [Name/Arity]).

error_reply(Error, object(["status"-"error"|Members])) :-
    error_members(Error, Members).

ok(object(["status"-"ok"])).

%   Requests

handle(hello(Listed, Inferences, Characters, Arity), object(["status"-"ok", "version"-Version])) :-
    set_listed(Listed),
    set_limits(Inferences, Characters, Arity),
    current_prolog_flag(version, Version).
handle(libraries(Names), object(["status"-"ok", "libraries"-Outcomes])) :-
    maplist(library_outcome, Names, Outcomes).
handle(parse(Texts, unchecked), Reply) :-
    describe_texts(Texts, unchecked, []),
    ok(Reply).
handle(parse(Texts, checked), Reply) :-
    describe_texts(Texts, checked, []),
    (   loads_libraries
    ->  describe_texts(Texts, checked, [])
    ;   true
    ),
    noted_names(defined, Names),
    describe_with(Texts, [], Names),
    ok(Reply).
handle(load(Items, Length), object(["status"-"ok", "failed"-Failed])) :-
    protocol(In, _),
    skip(In, 0':),
    whole(( read_string(In, Length, Text), while_loading(load_all(Items, Text, 0, Failed)) )).
handle(alike(Texts), object(["status"-"ok", "ids"-Ids])) :-
    findall(Id, ( member(Text, Texts), like_loaded(Text, Id) ), Ids).
handle(unload(Ids), Reply) :-
    forall(member(Id, Ids), unload(Id)),
    ok(Reply).
handle(query(Text, Mode), object(["status"-"ok"])) :-
    close_query,
    query_term(Text, Goal0, Names),
    checked_with_names(Names, checked_goal(Goal0, Goal)),
    open_goal(Mode, Goal, Names).
handle(next, Reply) :-
    (   open_query(Query)
    ->  reset_output,
        forget_errors,
        next_answer(Query, Reply0),
        taken_output(Output0),
        new_output(Query, Output0, Output),
        with_output(Output, Reply0, Reply)
    ;   Reply = object(["status"-"closed"])
    ).
handle(close, object(["status"-Status])) :-
    (   open_query(_)
    ->  close_query,
        Status = "ok"
    ;   Status = "closed"
    ).
handle(known, object(["status"-"ok", "own"-Own, "others"-Others])) :-
    findall(Name, ( defined_name(Name) ; graph_name(Name) ), Own0),
    findall(Name, known_name(Name), Others0),
    maplist(sorted_texts, [Own0, Others0], [Own, Others]).
handle(edges(Types), Reply) :-
    forall(member(Type, Types), declare_edge(Type)),
    ok(Reply).
handle(graph(Removed, Count), Reply) :-
    protocol(In, _),
    (   graph_loaded
    ->  forall(member(Fact, Removed), remove_facts(Fact)),
        whole(read_facts(Count, In))
    ;   whole(skip_facts(Count, In))
    ),
    ok(Reply).
handle(forget_graph, Reply) :-
    forget_graph,
    ok(Reply).
handle(load_graph, Reply) :-
    loaded,
    ok(Reply).
handle(rules(Text, EdgeTypes), Reply) :-
    close_query,
    load_rules(Text, EdgeTypes, Reply).
handle(program(Text), Reply) :-
    load_program(Text, Reply).
handle(check(Text), Reply) :-
    check_program(Text, Reply).
handle(run(Arguments, Params, Gas), Reply) :-
    run_program(Arguments, Params, Gas, Reply).
handle(violations(Rule, Most, Length), object(["status"-"ok", "violations"-Found])) :-
    max_inferences(Inferences),
    reset_output,
    forget_errors,
    call_cleanup(violations(Rule, Most, Length, Inferences, Found), reset_output).

sorted_texts(Terms, Texts) :-
    sort(Terms, Sorted),
    maplist(quoted_text, Sorted, Texts).

quoted_text(Term, Text) :-
    format(string(Text), "~q", [Term]).

library_outcome(Name, Outcome) :-
    allow_library(Name, Word),
    format(string(Outcome), "~w", [Word]).

%   Clauses

%   A clause may call a predicate that another clause of the request defines, unless that one is refused itself. Only names
%   that a library has as well make a difference: most texts are described once.

describe_with(_, Names, Names) :- !.
describe_with(Texts, _, Names) :-
    describe_texts(Texts, checked, Names),
    noted_names(taken, Left),
    describe_with(Texts, Names, Left).

%!  describe_texts(+Texts, +Checks, +Names)
%
%   Send a part of the reply for each clause of some texts, in place of all parts that were sent before, where these names
%   are defined; note what the clauses define.

describe_texts(Texts, Checks, Names) :-
    protocol(_, Out),
    send_start(Out),
    retractall(noted(_, _, _)),
    retractall(accepted(_, _, _)),
    while_adding(Names,
                 forall(( nth0(At, Texts, Text), text_item(Text, Item, Variables) ),
                        ( described(Checks, Item, Variables, Described), send_part(Out, At, Described), note(Item, Described) ))).

note(unread(_, _, _, _), _).
note(read(_, _, _, Term, _), Described) :-
    forall(defined_by(Term, Name/Arity), note_name(Name, Arity, defined)),
    (   Described = clause(_, _, _, _, _, _, _)
    ->  forall(defined_by(Term, Name/Arity), note_name(Name, Arity, taken))
    ;   true
    ),
    (   nonvar(Term),
        Term = (:- Directive),
        is_use_module(Directive)
    ->  arg(1, Directive, library(Library)),
        note_name(Library, 0, library)
    ;   true
    ).

note_name(Name, Arity, How) :-
    (   noted(Name, Arity, How)
    ->  true
    ;   assertz(noted(Name, Arity, How))
    ).

%   The predicates that were noted, of those that have the name of a predicate of a library.

noted_names(How, Names) :-
    findall(Name/Arity, noted(Name, Arity, How), All),
    names_of_libraries(All, Names).

names_of_libraries(All, Names) :-
    sort(All, Different),
    include(may_be_of_library, Different, Names).

%!  defined_by(+Term, -Name/Arity)
%
%   The predicates that a clause defines or declares.

defined_by(Term, _) :-
    var(Term), !,
    fail.
defined_by((:- Directive), Indicator) :- !,
    nonvar(Directive),
    Directive = dynamic(Names),
    catch(indicators(Names, List), _, fail),
    member(Indicator, List).
defined_by((Head --> _), Name/Arity) :- !,
    nonvar(Head),
    (   Head = (Plain, _)
    ->  true
    ;   Plain = Head
    ),
    defined_by(Plain, Name/Arity0),
    Arity is Arity0 + 2.
defined_by((Head :- _), Indicator) :- !,
    defined_by(Head, Indicator).
defined_by(Module:Head, Indicator) :- !,
    Module == workspace,
    defined_by(Head, Indicator).
defined_by(Head, Name/Arity) :-
    (   atom(Head)
    ->  Name = Head,
        Arity = 0
    ;   compound(Head),
        compound_name_arity(Head, Name, Arity)
    ).

%   Load the libraries that the directives name, so that the other clauses may use their predicates and operators; fail
%   where all of them are loaded. A caller that does not record the clauses starts another engine.

loads_libraries :-
    findall(Library, ( noted(Library, _, library), \+ kb_guard:loaded_library(Library) ), Libraries),
    Libraries \== [],
    forall(member(Library, Libraries), allow_library(Library, _)).

described(_, unread(Start, End, Line, Error), _, Described) :- !,
    undescribed(Start, End, Line, Error, Described).
described(Checks, read(Start, End, Line, Term, Stop), Variables, Described) :-
    catch(checked_with_names(Variables, described_term(Checks, Term, Kind, Key, Name)), Error, true),
    (   var(Error)
    ->  Described = clause(Start, End, Line, Kind, Key, Name, Stop)
    ;   undescribed(Start, End, Line, Error, Described)
    ).

undescribed(Start, End, Line, Error, object(["start"-Start, "end"-End, "line"-Line|Members])) :-
    error_members(Error, Members).

described_term(_, Term, _, _, _) :-
    var(Term), !,
    throw(error(instantiation_error, _)).
described_term(unchecked, Term, "clause", Key, "") :- !,
    clause_key(Term, Key).
described_term(checked, Term, "clause", Key, Name) :-
    Term \= (:- _), !,
    (   callable(Term),
        \+ without_arguments(Term),
        functor(Term, Functor, Arity),
        accepted(Functor, Arity, Name)
    ->  true
    ;   checked_clause(Term, _, Own/OwnArity),
        quoted_text(Own/OwnArity, Name),
        note_accepted(Own, OwnArity, Name)
    ),
    clause_key(Term, Key).
described_term(checked, (:- Directive), "directive", Key, Name) :-
    honoured(Directive, Kind),
    format(string(Name), "~w", [Kind]),
    clause_key((:- Directive), Key).

%   The head of a fact is checked once for its predicate.

note_accepted(Name, Arity, Text) :-
    (   accepted(Name, Arity, _)
    ->  true
    ;   assertz(accepted(Name, Arity, Text))
    ).

is_use_module(Directive) :-
    catch(honoured(Directive, use_module), _, fail).

%   Directives: use_module of a listed library, and dynamic

honoured(Directive, _) :-
    var(Directive), !,
    throw(error(instantiation_error, _)).
honoured(use_module(library(Library)), use_module) :- !,
    is_listed(Library).
honoured(use_module(library(Library), Imports), use_module) :- !,
    is_listed(Library),
    plain_imports(Imports).
honoured(dynamic(Names), Kind) :-
    indicators(Names, List),
    forall(member(Name/Arity, List),
           ( functor(Head, Name, Arity), checked_clause(Head, _, _) )), !,
    maplist(quoted_text, List, Texts),      % none has a line break, which is written as its escape
    atomic_list_concat([dynamic|Texts], '\n', Kind).
honoured(Directive, _) :-
    callable(Directive),
    \+ without_arguments(Directive), !,
    functor(Directive, Name, Arity),
    raise(kb_refused(Name/Arity, directive)).
honoured(Directive, _) :-
    throw(error(type_error(callable, Directive), _)).

is_listed(Library) :-
    (   ground(Library),
        kb_allowed:library_name(Library)
    ->  true
    ;   raise(kb_refused(library(Library), not_listed))
    ).

%   A library is loaded as a whole, whatever a directive names of it: what would change its names is refused.

plain_imports(Imports) :-
    (   Imports == all
    ->  true
    ;   is_list(Imports)
    ->  forall(member(One, Imports), plain_import(One))
    ;   raise(kb_refused(Imports, import))
    ).

plain_import(One) :-
    (   ground(One),
        memberchk(One, [_/_, _//_, op(_, _, _)])
    ->  true
    ;   raise(kb_refused(One, import))
    ).

indicators(Names, _) :-
    var(Names), !,
    throw(error(instantiation_error, _)).
indicators((A, B), List) :- !,
    indicators(A, LA),
    indicators(B, LB),
    append(LA, LB, List).
indicators(List, All) :-
    is_list(List), !,
    maplist(indicators, List, Lists),
    append(Lists, All).
indicators(Name/Arity, [Name/Arity]) :-
    atom(Name),
    integer(Arity),
    Arity >= 0, !,
    check_arity(Name, Arity).
indicators(Name//Arity0, [Name/Arity]) :-
    atom(Name),
    integer(Arity0),
    Arity0 >= 0, !,
    Arity is Arity0 + 2,
    check_arity(Name, Arity).
indicators(Other, _) :-
    throw(error(type_error(predicate_indicator, Other), _)).

%   load_all(+Items, +Text, +Start, -Failed)
%
%   Load the clauses of a text, from one of its characters on. Items has c(Id, Kind, Name, Length) for each, and a line break
%   follows each. They are read one after the other, which takes a third of the time of reading each by itself. Where one does
%   not end where it should, or has any other fault, it is loaded by itself, and the reading begins again after it.

load_all([], _, _, []) :- !.
load_all(Items, Text, Start, Failed) :-
    sub_string(Text, Start, _, 0, Rest),
    setup_call_cleanup(
        open_string(Rest, Stream),
        load_next(Items, Stream, none, 0, Left, Offset),
        close(Stream)),
    (   Left = [c(Id, Kind, Name, Length)|More]
    ->  From is Start + Offset,
        sub_string(Text, From, Length, _, Own),
        catch(( load_one(Id, Kind, Name, Own), Failed = Others ),
              Error,
              ( error_members(Error, Members), Failed = [object(["id"-Id|Members])|Others] )),
        Next is From + Length + 1,
        load_all(More, Text, Next, Others)
    ;   Failed = []
    ).

%   Last is Name-Indicator of the clause before, whose head was checked: facts of one predicate are checked once.

load_next([c(Id, clause, Name, Length)|More], Stream, Last, Start, Left, LeftStart) :-
    End is Start + Length,
    catch(( read_clause(Stream, End, Last, Name, Checked, Indicator),
            add_clause(Checked, Reference),
            assertz(loaded_clause(Id, Reference, Indicator)) ),
          _, fail), !,
    Next is End + 1,
    load_next(More, Stream, Name-Indicator, Next, Left, LeftStart).
load_next(Left, _, _, Start, Left, Start).

read_clause(Stream, End, Last, Name, Checked, Indicator) :-
    read_term(Stream, Term, [module(workspace), syntax_errors(error)]),
    character_count(Stream, After),
    ( After =:= End ; After =:= End + 1 ), !,   % with the line break, which some versions of the system read
    callable(Term),
    \+ without_arguments(Term),
    check_notation(Term),
    functor(Term, Functor, Arity),
    (   Last = Name-(Functor/Arity)
    ->  Checked = checked(Term, true, true),
        Indicator = Functor/Arity
    ;   Term \= (:- _),
        Term \== end_of_file,
        checked_clause(Term, Checked, Indicator),
        quoted_text(Indicator, Defined),
        check_name(Name, Defined)
    ).

%   A record may say otherwise of a clause than its text: it was written without an engine then.

load_one(Id, Kind, Name, Text) :-
    term_of(Text, Term, Variables),
    checked_with_names(Variables, load_term(Id, Kind, Name, Term)).

load_term(Id, Kind, Name, Term) :-
    check_notation(Term),
    (   ( nonvar(Term), Term = (:- _) -> Read = directive ; Term == end_of_file -> Read = none ; Read = clause ),
        Read \== Kind
    ->  raise(kb_refused(Kind, kind))
    ;   Kind == directive
    ->  Term = (:- Directive),
        honoured(Directive, Defined),
        check_name(Name, Defined),
        do_directive(Directive),
        assertz(loaded_directive(Id, Directive))
    ;   checked_clause(Term, Checked, Indicator),
        quoted_text(Indicator, Defined),
        check_name(Name, Defined),
        add_clause(Checked, Reference),
        assertz(loaded_clause(Id, Reference, Indicator))
    ).

check_name(Name, Defined) :-
    (   (   Name == Defined
        ;   atom_string(Name, Defined)
        ;   Name == (dynamic),              % as records have it that do not say what is declared
            sub_atom(Defined, 0, _, _, 'dynamic\n')
        )
    ->  true
    ;   raise(kb_refused(Name, name))
    ).

%!  like_loaded(+Text, -Id)
%
%   On backtracking each loaded clause whose head is a variant of that of the clause in a text, and each loaded directive that
%   is a variant of it. The bodies are not compared: what the engine has of one is not what was typed.

like_loaded(Text, Id) :-
    catch(term_of(Text, Term, _), _, fail),
    nonvar(Term),
    (   Term = (:- Directive)
    ->  loaded_directive(Id, Loaded),
        Loaded =@= Directive
    ;   catch(while_loading(checked_clause(Term, checked(Head, _, _), _)), _, fail),
        copy_term(Head, Like),
        clause(workspace:Like, _, Reference),
        clause(workspace:Loaded, _, Reference),
        Loaded =@= Head,
        loaded_clause(Id, Reference, _)
    ).

do_directive(use_module(library(Library))) :- allow_library(Library, _).
do_directive(use_module(library(Library), _)) :- allow_library(Library, _).
do_directive(dynamic(Names)) :-
    indicators(Names, List),
    forall(member(Name/Arity, List), dynamic(workspace:Name/Arity)).

unload(Id) :-
    (   retract(loaded_clause(Id, Reference, Indicator))
    ->  remove_clause(Reference),
        tidy(Indicator)
    ;   retract(loaded_directive(Id, Directive)),
        ( Directive = dynamic(Names) -> indicators(Names, List), forall(member(PI, List), tidy(PI)) ; true )
    ->  true
    ;   true
    ).

%   A predicate without clauses is unknown, unless a directive declares it.

tidy(Name/Arity) :-
    functor(Head, Name, Arity),
    (   clause(workspace:Head, _)       % number_of_clauses is counted at each call after a removal
    ->  true
    ;   declared(Name/Arity)
    ->  true
    ;   abolish(workspace:Name/Arity)
    ).

declared(Indicator) :-
    loaded_directive(_, dynamic(Names)),
    indicators(Names, List),
    memberchk(Indicator, List), !.

defined_name(Name/Arity) :-
    current_predicate(workspace:Name/Arity),
    functor(Head, Name, Arity),
    '$get_predicate_attribute'(workspace:Head, (dynamic), 1).

%   Queries

query_term(Text, Goal, Names) :-
    findall(Item-Read, limit(2, text_item(Text, Item, Read)), Items),
    (   Items = [read(_, _, _, Goal0, _)-Names]
    ->  (   nonvar(Goal0),
            Goal0 = (?- Goal)
        ->  true
        ;   Goal = Goal0
        )
    ;   Items = [unread(_, _, _, Error)-_|_]
    ->  (   Error = error(syntax_error(end_of_file), _)
        ->  string_concat(Text, "\n .", Full),
            catch(term_of(Full, _, _), Wrong, at_end(Text, Wrong))
        ;   true
        ),
        throw(Error)
    ;   Items == []
    ->  throw(error(syntax_error(query_expected), _))
    ;   throw(error(syntax_error(one_query_expected), _))
    ).

%   Throw what is wrong with a text that lacks its full stop but for that: where it is at the end, the text goes on.

at_end(Text, error(syntax_error(_), stream(_, _, _, At))) :-
    string_length(Text, Length),
    At >= Length, !,
    throw(error(syntax_error(text_ends), _)).
at_end(_, Error) :-
    throw(Error).

open_goal(engine, Goal, Names) :-
    max_inferences(Inferences),
    engine_create(Answer, kb_server:solution(Goal, Names, Inferences, Answer), Engine),
    assertz(open_query(query(engine, Engine))).
open_goal(standard, Goal, Names) :-
    assertz(open_query(query(standard, 1, 0, Goal, Names))).

solution(Goal, Names, Inferences, Answer) :-
    set_null_output,
    begin_goal,
    call_with_inference_limit(workspace:Goal, Inferences, Result),
    (   Result == inference_limit_exceeded
    ->  raise(kb_limit(inference))
    ;   true
    ),
    max_characters(Most),
    bindings(Names, Most, Pairs, Residual, IsTruncated),
    (   Result == !
    ->  IsLast = true
    ;   IsLast = false
    ),
    Answer = answer(Pairs, Residual, IsTruncated, IsLast).

set_null_output :-
    stream_property(Null, alias(kb_null)), !,
    set_output(Null).

next_answer(query(engine, Engine), Reply) :-
    engine_next_reified(Engine, Outcome),
    outcome(Outcome, Reply, IsOpen),
    (   IsOpen == true
    ->  true
    ;   retractall(open_query(_)),
        catch(engine_destroy(Engine), _, true)
    ).
next_answer(query(standard, Number, _, Goal, Names), Reply) :-
    max_inferences(Inferences),
    setup_call_cleanup(
        engine_create(Answer, call_nth(kb_server:solution(Goal, Names, Inferences, Answer), Number), Engine),
        engine_next_reified(Engine, Outcome),
        catch(engine_destroy(Engine), _, true)),
    outcome(Outcome, Reply, IsOpen),
    (   IsOpen == true
    ->  true
    ;   retractall(open_query(_))
    ).

%   In standard mode the goal runs again from its start, and prints again what it printed for the solutions before.

new_output(query(engine, _), Output, Output).
new_output(query(standard, Number, Before, Goal, Names), Output, New) :-
    string_length(Output, Length),
    (   retract(open_query(query(standard, Number, Before, Goal, Names)))
    ->  Next is Number + 1,
        assertz(open_query(query(standard, Next, Length, Goal, Names)))
    ;   true
    ),
    (   Length >= Before
    ->  sub_string(Output, Before, _, 0, New)
    ;   New = Output
    ).

outcome(the(answer(Pairs, Residual, IsTruncated, IsLast)), object(Members), true) :-
    Members0 = ["status"-"success", "bindings"-object(Pairs), "is_last"-json(IsLast)],
    (   Residual == []
    ->  Members1 = Members0
    ;   append(Members0, ["residual"-Residual], Members1)
    ),
    (   IsTruncated == true
    ->  append(Members1, ["truncated"-json(true)], Members)
    ;   Members = Members1
    ).
outcome(no, object(["status"-"done"]), false).
outcome(exception(Error), Reply, false) :- !,
    error_reply(Error, Reply).
outcome(throw(Error), Reply, false) :-
    error_reply(Error, Reply).

with_output("", Reply, Reply) :- !.
with_output(Output, object(Members), object(All)) :-
    append(Members, ["output"-Output], All).

close_query :-
    forall(retract(open_query(Query)),
           (   Query = query(engine, Engine)
           ->  catch(engine_destroy(Engine), _, true)
           ;   true
           )).

%   What follows a request is read whole: the rest would be taken for requests. Where that fails, the process ends.

whole(Goal) :-
    (   catch(Goal, _, fail)
    ->  true
    ;   halt(1)
    ).

%   The graph

load_graph :-
    protocol(In, Out),
    send(Out, object(["status"-"need_graph"])),
    read_term(In, facts(Count), []),
    read_facts(Count, In),
    assertz(kb_graph:graph_loaded).

read_facts(0, _) :- !.
read_facts(Count, In) :-
    read(In, Fact),
    add_fact(Fact),
    Next is Count - 1,
    read_facts(Next, In).

skip_facts(0, _) :- !.
skip_facts(Count, In) :-
    read(In, _),
    Next is Count - 1,
    skip_facts(Next, In).
