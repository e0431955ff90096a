/*  What a program says, clause by clause, for its check: its goals with their places, and what they name.

    The program is loaded as for a run, and nothing of it is run. Each clause is read again with the places of its parts.
    A part of a clause that is worth a word is an object with its `kind` and its place; the caller judges.
*/
:- module(kb_program_check, [check_program/2]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(library(assoc)).
:- use_module(library(pairs), [pairs_keys_values/3]).
:- use_module(guard).
:- use_module(reading).
:- use_module(answers).
:- use_module(interpolation).
:- use_module(program).

:- dynamic defined/2,                   % Name, Arity: a clause of the program, or declared, or added by a goal
           defined_name/1,
           adds_any/0,                  % a goal adds clauses that are not known before it is called
           known_verdict/3,             % Name, Arity, Verdict
           seen_clause/2,               % Digest, Start
           named/3.                     % `calls` or `mentions`, Name, Arity: of the present clause

%!  check_program(+Text, -Reply)
%
%   The reply has what load_program/2 says. `changed` has the predicates that goals may add clauses to, and `adds_any` says
%   whether those are all. Where a predicate is unknown, `own` and `others` have those that there are. Before it come the
%   clauses, so that no more than one of them is held: first the parts of each, then its place and its predicate (`name`,
%   `arity`), of the kind `clause`, `directive` or `unread`.

check_program(Text, object(["status"-"ok", "changed"-Changed, "adds_any"-json(Any), "own"-Own, "others"-Others|Loaded])) :-
    read_quotations,
    read_clauses(Text, Read),
    load_clauses(Read, object([_|Loaded])),
    findall(Name, ( member(read(_, _, _, Term, _)-_, Read), kb_server:defined_by(Term, Name) ), Defined),
    maplist(note_defined, Defined),
    findall(Name, added_by(Text, Read, Name), Added),
    maplist(note_defined, Added),
    findall(Name, ( member(read(_, _, _, (:- Directive), _)-_, Read), kb_server:defined_by((:- Directive), Name) ), Dynamic),
    append(Added, Dynamic, Changed0),
    sort(Changed0, Changed1),
    maplist(pair, Changed1, Changed),
    ( adds_any -> Any = true ; Any = false ),
    kb_server:names_of_libraries(Defined, Names),
    kb_server:protocol(_, Out),
    send_start(Out),
    while_adding(Names, forall(nth0(At, Read, Item-_), send_clause(Out, At, Text, Item))),
    known_names(Own, Others).

note_defined(Name/Arity) :-
    (   defined(Name, Arity)
    ->  true
    ;   assertz(defined(Name, Arity)),
        ( defined_name(Name) -> true ; assertz(defined_name(Name)) )
    ).

pair(Name/Arity, [Text, Arity]) :- atom_string(Name, Text).

%   The predicates that goals add clauses to

added_by(Text, Read, Name) :-
    once(( member(Word, ["assert", "retractall"]), sub_string(Text, _, _, _, Word) )),
    member(read(_, _, _, Term, _)-_, Read),
    part_of([Term], Goal),
    nonvar(Goal),
    (   memberchk(Goal, [assert, asserta, assertz])
    ->  note_any,
        fail
    ;   compound(Goal),
        compound_name_arguments(Goal, Kind, [Clause]),
        memberchk(Kind, [assert, asserta, assertz, retractall]),
        (   nonvar(Clause),
            \+ ( Clause = (Head :- _), var(Head) )
        ->  kb_server:defined_by(Clause, Name)
        ;   note_any,
            fail
        )
    ).

note_any :- ( adds_any -> true ; assertz(adds_any) ).

known_names(Own, Others) :-
    (   known_verdict(_, _, unknown)
    ->  findall(Name/Arity, ( defined(Name, Arity) ; own_goal(Name, Arity) ), Own0),
        findall(Name, known_name(Name), Others0),
        maplist(kb_server:sorted_texts, [Own0, Others0], [Own, Others])
    ;   Own = [],
        Others = []
    ).

own_goal(task, 1).
own_goal(Name, Arity) :- kb_program:special(Name, Arity, _).
own_goal(Name, Arity) :- kb_program_files:file_goal(Name, Arity, _).

%   Clauses

send_clause(Out, At, _, unread(Start, End, _, Error)) :- !,
    (   Error = error(_, Context),
        nonvar(Context),
        Context = stream(_, _, _, Offset),
        integer(Offset),
        Offset >= Start,
        Offset < End
    ->  Place = Offset
    ;   Place = Start
    ),
    send_part(Out, At, object(["kind"-"unread", "start"-Start, "end"-End, "at"-Place])).
send_clause(Out, At, Text, read(Start, End, _, _, Stop)) :-
    (   catch(read_again(Text, Start, End, Stop, Term, Names, Singles, Position), _, fail)
    ->  true
    ;   Term = (:- true)                % a library that it loads has changed how it reads
    ),
    (   ( var(Term) ; Term = (:- _) ; Term = (?- _) )
    ->  Kind = "directive",
        Members = []
    ;   Kind = "clause",
        send_parts(Out, At, Term, Names, Singles, Position, Start, Members)
    ),
    send_part(Out, At, object(["kind"-Kind, "start"-Start, "end"-End|Members])).

read_again(Text, Start, End, Stop, Term, Names, Singles, Position) :-
    Length is End - Start,
    sub_string(Text, Start, Length, _, Slice),
    string_concat(Slice, Stop, Full),
    setup_call_cleanup(
        open_string(Full, Stream),
        read_term(Stream, Term,
                  [ module(workspace), variable_names(Names), singletons(Singles), subterm_positions(Position),
                    syntax_errors(error), cycles(false), dotlists(false)
                  ]),
        close(Stream)).

send_parts(Out, At, Term, Names, Singles, Position, Start,
           ["name"-Name, "arity"-Arity, "tool"-Tool, "head"-[HeadStart, HeadEnd], "same"-Same, "cuts"-json(Cuts),
            "calls"-Calls, "mentions"-Mentions]) :-
    split(Term, Position, Head, HeadPosition, Body, BodyPosition, Translation),
    (   callable(Head),
        Head \= _:_
    ->  name_and_arity(Head, Functor, Given),
        Arity is Given + Translation,
        atom_string(Functor, Name)
    ;   Name = "",
        Arity = 0
    ),
    tool_name(Head, Tool),
    place(HeadPosition, Start, HeadStart, HeadEnd),
    same_before(Term, Start, Same),
    (   Translation =:= 0,
        always_cuts(Head, Body)
    ->  Cuts = true
    ;   Cuts = false
    ),
    maplist(name_variable, Names, Pairs),
    list_to_assoc(Pairs, Index),
    first_places([Term-Position]),
    retractall(named(_, _, _)),
    forall(clause_part(Head, Singles, Translation, Body, BodyPosition, Index, Part), send_or_note(Out, At, Start, Part)),
    maplist(named_pairs, [calls, mentions], [Calls, Mentions]).

clause_part(_, Singles, _, _, _, _, Part) :- singleton_part(Singles, Part).
clause_part(Head, _, _, _, _, _, Part) :- head_part(Head, Part).
clause_part(_, _, Translation, Body, Position, Index, Part) :-
    body_goal(Translation, Body, Position, Goal),
    goal_part(Goal, Index, Part).

send_or_note(Out, At, Start, part(Kind, Position, Members)) :- !,
    place(Position, Start, From, To),
    send_part(Out, At, object(["kind"-Kind, "start"-From, "end"-To|Members])).
send_or_note(_, _, _, Named) :-
    Named =.. [How, Name, Arity],
    (   named(How, Name, Arity)
    ->  true
    ;   assertz(named(How, Name, Arity))
    ).

named_pairs(How, Pairs) :-
    findall(Name/Arity, named(How, Name, Arity), Found),
    sort(Found, Sorted),
    maplist(pair, Sorted, Pairs).

tool_name(Head, Name) :-
    (   compound(Head),
        compound_name_arguments(Head, tool, [Call|_]),
        callable(Call)
    ->  name_and_arity(Call, Functor, _),
        atom_string(Functor, Name)
    ;   Name = json(null)
    ).

%   The first character of the first clause before that says the same

same_before(Term, Start, Same) :-
    variant_sha1(Term, Digest),
    (   seen_clause(Digest, Same)
    ->  true
    ;   assertz(seen_clause(Digest, Start)),
        Same = json(null)
    ).

%   The parts of a clause, and how many arguments a translation adds to its head.

split((Head :- Body), Position, Head, HeadPosition, Body, BodyPosition, 0) :- !,
    positions(Position, (Head :- Body), [HeadPosition, BodyPosition]).
split((Head0 --> Body), Position, Head, HeadPosition, Body, BodyPosition, 2) :- !,
    positions(Position, (Head0 --> Body), [HeadPosition0, BodyPosition]),
    (   nonvar(Head0),
        Head0 = (Head, _)
    ->  positions(HeadPosition0, Head0, [HeadPosition, _])
    ;   Head = Head0,
        HeadPosition = HeadPosition0
    ).
split(Head, Position, Head, Position, true, none, 0).

name_variable(Name=Variable, Name-Variable) :-
    put_attr(Variable, kb_name, Name).

%   A clause that cuts whatever it is called with: the clauses after it are never tried.

always_cuts(Head, Body) :-
    (   compound(Head)
    ->  compound_name_arguments(Head, Name, Arguments)
    ;   atom(Head),
        Arguments = []
    ),
    Name \== tool,
    maplist(var, Arguments),
    sort(Arguments, Different),
    length(Arguments, Count),
    length(Different, Count),
    reaches_cut(Body).

reaches_cut(Body) :- var(Body), !, fail.
reaches_cut(!).
reaches_cut((Goal, Body)) :-
    nonvar(Goal),
    (   Goal == !
    ->  true
    ;   name_and_arity(Goal, Name, Arity),
        memberchk(Name/Arity, [true/0, push_context/0, pop_context/0, log/1, output/1, yield/1, system/1, user/1]),
        reaches_cut(Body)
    ).

%   Places

%!  positions(+Position, +Term, -Positions)
%
%   The places of the arguments of a term; a part without a place of its own has that of the term.

positions(parentheses_term_position(_, _, Position), Term, Positions) :- !,
    positions(Position, Term, Positions).
positions(term_position(_, _, _, _, Positions), _, Positions) :- !.
positions(brace_term_position(_, _, Position), _, [Position]) :- !.
positions(list_position(From, To, [First|Rest], Tail), _, [First, Left]) :- !,
    (   Rest \== []
    ->  Left = list_position(From, To, Rest, Tail)
    ;   Tail == none
    ->  Left = From-To
    ;   Left = Tail
    ).
positions(Position, Term, Positions) :-
    compound_name_arity(Term, _, Arity),
    length(Positions, Arity),
    maplist(=(Position), Positions).

place(none, Offset, Offset, Offset) :- !.
place(Position, Offset, Start, End) :-
    arg(1, Position, From),
    arg(2, Position, To),
    Start is Offset + From,
    End is Offset + To.

%!  sub(+Term, +Position, -Sub, -SubPosition)
%
%   On backtracking each part of a term with its place, in the order of the text. What is left to do is a list: a term may be
%   nested too deeply for calls inside of calls.

sub(Term, Position, Sub, SubPosition) :-
    sub_of([Term-Position], Sub, SubPosition).

sub_of([Term-Position|_], Term, Position).
sub_of([Term-Position|Left], Sub, SubPosition) :-
    inner_parts(Term, Position, Left, Next),
    sub_of(Next, Sub, SubPosition).

inner_parts(Term, _, Left, Left) :-
    \+ compound(Term), !.
inner_parts((A, B), term_position(_, _, _, _, [PA, PB]), Left, [A-PA, B-PB|Left]) :- !.  % there may be 500,000: little garbage
inner_parts(Term, Position0, Left, Next) :-
    plain(Position0, Position),
    (   Position = dict_position(_, _, _, _, Places)
    ->  findall(Key-Place, member(key_value_position(_, _, _, _, Key, _, Place), Places), Keys),
        maplist(dict_part(Term), Keys, Parts)
    ;   positions(Position, Term, Positions),
        compound_name_arguments(Term, _, Arguments),
        pairs_keys_values(Parts, Arguments, Positions)
    ),
    append(Parts, Left, Next).

dict_part(Dict, Key-Place, Value-Place) :- get_dict(Key, Dict, Value).

%   The parts of a term without their places

part_of([Term|_], Term).
part_of([Term|Left], Part) :-
    (   compound(Term)
    ->  compound_name_arguments(Term, _, Arguments),
        append(Arguments, Left, Next)
    ;   Next = Left
    ),
    part_of(Next, Part).

plain(Position0, Position) :-
    (   Position0 = parentheses_term_position(_, _, Inner)
    ->  plain(Inner, Position)
    ;   Position = Position0
    ).

%!  first_places(+Parts)
%
%   Note in each variable of these terms, each with its place, where it occurs first.

first_places([]).
first_places([Term-Position|Left]) :-
    (   var(Term),
        \+ get_attr(Term, kb_first, _)
    ->  arg(1, Position, From),
        put_attr(Term, kb_first, From)
    ;   true
    ),
    inner_parts(Term, Position, Left, Next),
    first_places(Next).

kb_first:attr_unify_hook(_, _).

%   Goals

%!  body_goal(+Translation, +Body, +Position, -Goal)
%
%   On backtracking each goal that a body calls, as goal(Goal, Position, Mode, More): it is called with More further
%   arguments. Mode is `data` for what a predicate of the program is given and may call, and `goal` otherwise.

body_goal(0, Body, Position, Goal) :- called(Body, Position, goal, 0, Goal).
body_goal(2, Body, Position, Goal) :- called_by_rule(Body, Position, goal, Goal).

called(Goal, Position0, Mode, More, Called) :-
    plain(Position0, Position),
    called_at(Goal, Position, Mode, More, Called).

called_at(Goal, _, _, _, _) :-
    var(Goal), !,
    fail.
called_at(Goal, Position, Mode, 0, Called) :-
    ( Goal = (A, B) ; Goal = (A ; B) ; Goal = (A -> B) ; Goal = (A *-> B) ; Goal = '|'(A, B) ), !,
    positions(Position, Goal, [PA, PB]),
    (   called(A, PA, Mode, 0, Called)
    ;   called(B, PB, Mode, 0, Called)
    ).
called_at(\+ Goal, Position, Mode, 0, Called) :- !,
    positions(Position, \+ Goal, [Inner]),
    called(Goal, Inner, Mode, 0, Called).
called_at(_^Goal, Position, Mode, 0, Called) :- !,
    positions(Position, _^Goal, [_, Inner]),
    called(Goal, Inner, Mode, 0, Called).
called_at(Parameters>>Body, Position, Mode, More, Called) :- !,
    positions(Position, Parameters>>Body, [_, Inner]),
    parameter_count(Parameters, Count),
    Left is max(0, More - Count),
    called(Body, Inner, Mode, Left, Called).
called_at(Free/Lambda, Position, Mode, More, Called) :- !,
    positions(Position, Free/Lambda, [_, Inner]),
    called(Lambda, Inner, Mode, More, Called).
called_at(Module:Goal, Position, Mode, More, Called) :- !,
    (   Called = goal(Module:Goal, Position, Mode, More)
    ;   positions(Position, Module:Goal, [_, Inner]),
        ( Module == workspace -> Own = Mode ; Own = data ),
        called(Goal, Inner, Own, More, Called)
    ).
called_at(Goal, Position, Mode, More, goal(Goal, Position, Mode, More)).
called_at(Goal, Position, Mode, More, Called) :-
    compound(Goal),
    compound_name_arguments(Goal, Name, Arguments),
    Arguments \== [],
    \+ is_dict(Goal),
    positions(Position, Goal, Positions),
    length(Arguments, Given),
    Arity is Given + More,
    (   goal_specs(Name, Arity, Specs)
    ->  argument_at(Arguments, Positions, Specs, Argument, Inner, Spec),
        called_argument(Spec, Argument, Inner, Mode, Called)
    ;   argument_at(Arguments, Positions, Positions, Argument, Inner, _),
        given_goal(Argument),
        called(Argument, Inner, data, 0, Called)
    ).

argument_at([Argument|_], [Position|_], [Spec|_], Argument, Position, Spec).
argument_at([_|Arguments], [_|Positions], [_|Specs], Argument, Position, Spec) :-
    argument_at(Arguments, Positions, Specs, Argument, Position, Spec).

called_argument(Spec, Argument, Position, Mode, Called) :-
    integer(Spec), !,
    called(Argument, Position, Mode, Spec, Called).
called_argument(^, Argument, Position, Mode, Called) :- !,
    called(Argument, Position, Mode, 0, Called).
called_argument(//, Argument, Position, Mode, Called) :-
    called_by_rule(Argument, Position, Mode, Called).

parameter_count(Parameters, Count) :-
    (   nonvar(Parameters),
        Parameters = _/Formal
    ->  true
    ;   Formal = Parameters
    ),
    (   is_list(Formal)
    ->  length(Formal, Count)
    ;   Count = 0
    ).

%   What the texts of a program are filled in for, as interpolation.pl has it.

given_goal(Argument) :-
    compound(Argument),
    compound_name_arity(Argument, Name, _),
    (   memberchk(Name, [task, exec])
    ->  true
    ;   control(Argument),
        Argument \= _:_
    ).

goal_specs(Name, Arity, Specs) :-
    \+ defined(Name, Arity),
    functor(Goal, Name, Arity),
    predicate_property(workspace:Goal, meta_predicate(Spec)),
    \+ predicate_property(workspace:Goal, dynamic),
    Spec =.. [_|Specs],
    member(One, Specs),
    ( integer(One) ; One == ^ ; One == // ), !.

%   The body of a rule with `-->`

called_by_rule(Body, Position0, Mode, Called) :-
    plain(Position0, Position),
    called_by_rule_at(Body, Position, Mode, Called).

called_by_rule_at(Body, _, _, _) :-
    ( var(Body) ; Body == ! ; Body == [] ; Body == {} ; string(Body) ; is_list(Body) ), !,
    fail.
called_by_rule_at(Body, Position, Mode, Called) :-
    ( Body = (A, B) ; Body = (A ; B) ; Body = '|'(A, B) ; Body = (A -> B) ; Body = (A *-> B) ), !,
    positions(Position, Body, [PA, PB]),
    (   called_by_rule(A, PA, Mode, Called)
    ;   called_by_rule(B, PB, Mode, Called)
    ).
called_by_rule_at(\+ Body, Position, Mode, Called) :- !,
    positions(Position, \+ Body, [Inner]),
    called_by_rule(Body, Inner, Mode, Called).
called_by_rule_at({Goal}, Position, Mode, Called) :- !,
    positions(Position, {Goal}, [Inner]),
    called(Goal, Inner, Mode, 0, Called).
called_by_rule_at(Body, Position, Mode, Called) :-
    called(Body, Position, Mode, 2, Called).

%   Parts

%!  goal_part(+Goal, +Names, -Part)
%
%   On backtracking what there is to say of a goal: calls(Name, Arity) and mentions(Name, Arity) of predicates of the program,
%   and part(Kind, Position, Members).

goal_part(goal(Goal, Position, Mode, More), Names, Part) :-
    (   callable(Goal),
        \+ is_dict(Goal)
    ->  name_and_arity(Goal, Name, Given),
        Arity is Given + More,
        (   Mode == goal,
            verdict_part(Goal, Name, Arity, Position, Part)
        ;   special_part(Name, Arity, Goal, Position, Mode, Names, Part)
        ;   mention_part(Goal, Name, Arity, Part)
        )
    ;   Mode == goal,
        Part = part("no_goal", Position, [])
    ).

name_and_arity(Goal, Name, Arity) :-
    (   compound(Goal)
    ->  compound_name_arity(Goal, Name, Arity)
    ;   Name = Goal,
        Arity = 0
    ).

verdict_part(Module:Goal, _, _, Position, Part) :- !,
    callable(Goal),
    name_and_arity(Goal, Name, Arity),
    functor(Plain, Name, Arity),
    catch(( checked_goal(Module:Plain, _), fail ), Error, true),
    nonvar(Error),
    error_members(Error, Members),
    Part = part("refused", Position, ["error"-object(Members)]).
verdict_part(Goal, Name, Arity, Position, Part) :-
    (   compound(Goal),
        compound_name_arity(Goal, _, 0)
    ->  Part = part("no_goal", Position, [])
    ;   verdict(Name, Arity, Verdict),
        (   Verdict = refused(Members)
        ->  Part = part("refused", Position, ["error"-object(Members)])
        ;   Verdict == unknown
        ->  quoted_indicator(Name, Arity, Text),
            Part = part("unknown", Position, ["name"-Text])
        ;   defined(Name, Arity)
        ->  Part = calls(Name, Arity)
        )
    ).

quoted_indicator(Name, Arity, Text) :- format(string(Text), "~q", [Name/Arity]).

verdict(Name, Arity, Verdict) :-
    known_verdict(Name, Arity, Verdict), !.
verdict(Name, Arity, Verdict) :-
    functor(Goal, Name, Arity),
    catch(checked_goal(Goal, _), Error, true),
    (   nonvar(Error)
    ->  error_members(Error, Members),
        Verdict = refused(Members)
    ;   is_known(Name, Arity)
    ->  Verdict = known
    ;   Verdict = unknown
    ),
    assertz(known_verdict(Name, Arity, Verdict)).

is_known(Name, Arity) :- defined(Name, Arity).
is_known(Name, Arity) :- known_name(Name/Arity).
is_known(Name, Arity) :- graph_name(Name/Arity).
is_known(Name, Arity) :- kb_program:reserved(Name, Arity).
is_known(call, Arity) :- Arity > 0.
is_known(Name, Arity) :-
    memberchk(Name/Arity, [(!)/0, (',')/2, (;)/2, ('|')/2, (->)/2, (*->)/2, (\+)/1, (^)/2, (:)/2]).

%   The predicates of KB

special_part(task, Arity, Goal, Position, _, _, Part) :-
    Arity > 0,
    compound(Goal),
    compound_name_arguments(Goal, _, [Text0|Outputs]),
    positions(Position, Goal, [_|Positions]),
    (   ( is_literal(Text0) -> atom_string(Text0, Text) ; Text = json(null) ),
        Part = part("task", Position, ["text"-Text])
    ;   argument_at(Outputs, Positions, Positions, Output, OutputPosition, _),
        output_part(Output, OutputPosition, Part)
    ).
special_part(exec, 2, Goal, Position, _, _, Part) :-
    compound(Goal),
    arg(1, Goal, Tool),
    callable(Tool),
    \+ is_dict(Tool),
    Tool \= _:_,
    positions(Position, Goal, [Inner|_]),
    name_and_arity(Tool, Name, Count),
    atom_string(Name, Text),
    Part = part("exec", Inner, ["tool"-Text, "arguments"-Count]).
special_part(param, Arity, Goal, Position, _, _, Part) :-
    memberchk(Arity, [2, 3]),
    (   compound(Goal),
        arg(1, Goal, Key0),
        is_literal(Key0)
    ->  kb_program:key_text(Key0, Key, _)
    ;   Key = json(null)
    ),
    Part = part("param", Position, ["key"-Key]).
special_part(Name, Arity, Goal, Position, Mode, Names, Part) :-
    text_argument(Name, Arity, Goal, Position, Literal, LiteralPosition),
    is_literal(Literal),
    once(sub_string(Literal, _, 1, _, "{")),
    text_part(Mode, Literal, LiteralPosition, Position, Names, Part).

text_argument(exec, 2, Goal, Position, Literal, LiteralPosition) :- !,
    compound(Goal),
    arg(1, Goal, Tool),
    positions(Position, Goal, [Inner|_]),
    sub(Tool, Inner, Literal, LiteralPosition).
text_argument(Name, Arity, Goal, Position, Literal, LiteralPosition) :-
    (   Name == task
    ->  Arity > 0
    ;   Name == wait_for_input
    ->  Arity =:= 2
    ;   text_goal(Name, Arity)
    ),
    compound(Goal),
    arg(1, Goal, Literal),
    positions(Position, Goal, [LiteralPosition|_]).

text_part(Mode, Literal, LiteralPosition, GoalPosition, Names, part("text", LiteralPosition, Members)) :-
    text_names(Literal, All),
    sort(All, Different),
    member(Name, Different),
    atom_string(Name, Text),
    Members = ["name"-Text, "known"-json(Known), "bound"-json(Bound)],
    (   get_assoc(Name, Names, Variable)
    ->  Known = true,
        (   Mode == goal,
            get_attr(Variable, kb_first, First),
            arg(1, GoalPosition, From),
            First >= From
        ->  Bound = false
        ;   Bound = true
        )
    ;   Known = false,
        Bound = false
    ).

%   An output of a task: the variable with its type. What is neither a variable nor a value of JSON fits no result.

output_part(Term, Position, part("output", Position, ["name"-Name, "type"-Type, "fits"-json(Fits)])) :-
    output_type(Term, Type, Variable, Fits),
    (   name_of(Variable, Name0)
    ->  atom_string(Name0, Name)
    ;   Name = json(null)
    ).

output_type(Term, "any", Term, true) :- var(Term), !.
output_type(Term, Type, Variable, Fits) :-
    compound(Term),
    compound_name_arguments(Term, Kind, [Inner]),
    memberchk(Kind, [string, integer, number, boolean, object, list]), !,
    output_type(Inner, Of, Variable, InnerFits),
    ( atom(Inner) -> Fits = false ; Fits = InnerFits ),
    (   Kind == list
    ->  format(string(Type), "list(~s)", [Of])
    ;   atom_string(Kind, Type)
    ).
output_type(Term, "any", none, Fits) :-
    (   compound(Term),
        \+ is_list(Term),
        \+ is_dict(Term)
    ->  Fits = false
    ;   Fits = true
    ).

%   What a clause names without calling it: a name of its data may be called by what is given it.

head_part(Head, Part) :-
    compound(Head),
    compound_name_arguments(Head, Name, Arguments),
    (   Name == tool,
        Arguments = [Call|_]
    ->  compound(Call),
        compound_name_arguments(Call, _, Named)
    ;   Named = Arguments
    ),
    member(Argument, Named),
    mentioned(Argument, Part).

mention_part(Goal, Name, Arity, Part) :-
    compound(Goal),
    \+ control(Goal),
    compound_name_arguments(Goal, _, Arguments),
    (   Name == exec,
        Arguments = [Tool|_],
        compound(Tool)
    ->  compound_name_arguments(Tool, _, Named),
        member(Argument, Named)
    ;   goal_specs(Name, Arity, Specs)
    ->  argument_at(Arguments, Arguments, Specs, Argument, _, Spec),
        \+ integer(Spec),
        Spec \== (^)
    ;   member(Argument, Arguments)
    ),
    mentioned(Argument, Part).

mentioned(Argument, mentions(Name, Arity)) :-
    part_of([Argument], Term),
    callable(Term),
    name_and_arity(Term, Name, Arity),
    atom(Name),
    once(defined_name(Name)).

singleton_part(Singles, part("singleton", Position, ["name"-Text])) :-
    member(Name=Variable, Singles),
    \+ sub_atom(Name, 0, _, _, '_'),
    get_attr(Variable, kb_first, First),
    atom_length(Name, Length),
    End is First + Length,
    Position = First-End,
    atom_string(Name, Text).
