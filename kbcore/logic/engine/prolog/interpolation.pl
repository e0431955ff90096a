/*  `{Name}` in the texts of a program: found when a clause is read, filled in when its goal is called.

    A text that has names becomes '$kb_text'(Parts), where a part is a string or Name=Variable. An output of a task that is
    a variable becomes '$kb_output'(Name, Variable). Both are terms, so that they survive copying (findall/3, lambdas).

    A quasi quotation `{|string(Name, ...)||text|}` is such a text wherever it is: the names in the parentheses are filled in.
    Where its goal takes no texts, the text is made right before the goal.
*/
:- module(kb_interpolation, [with_texts/3, filled/2, text_goal/2, has_text/1, read_quotations/0, is_literal/1, text_names/2,
                             control/1]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(library(strings), [dedent_lines/3]).
:- use_module(library(quasi_quotations)).
:- use_module(guard).
:- use_module(values).

%!  with_texts(+Body0, +Names, -Body)
%
%   Mark the texts and outputs in the body of a clause that was read with these names, as Name=Variable.

with_texts(Body0, Names, Body) :-
    goal_texts(Body0, Names, Body).

%!  text_goal(?Name, ?Arity)
%
%   The goals whose arguments are texts.

text_goal(system, 1).
text_goal(user, 1).
text_goal(answer, 1).
text_goal(yield, 1).
text_goal(output, 1).
text_goal(log, 1).

goal_texts(Goal, _, Goal) :-
    \+ compound(Goal), !.
goal_texts(Goal0, Names, Goal) :-
    control(Goal0), !,
    Goal0 =.. [Name|Goals0],
    maplist(goal_texts_with(Names), Goals0, Goals),
    Goal =.. [Name|Goals].
goal_texts(Goal0, Names, Goal) :-
    marked(Goal0, 0, Names, Goal), !.
goal_texts(Goal0, Names, Goal) :-
    has_text(Goal0), !,
    quoted_texts(Goal0, Names, Goal).
goal_texts(Goal0, Names, Goal) :-
    plain_texts(Goal0, Names, Goal).

plain_texts(Goal0, Names, Goal) :-
    compound_name_arity(Goal0, Name, Arity),
    lambda_body(Name, Arity, At), !,
    changed_argument(At, Goal0, Names, Goal).
plain_texts(Goal0, Names, Goal) :-
    called_arguments(Goal0, Specs), !,
    Goal0 =.. [Name|Arguments0],
    maplist(argument_texts(Names), Specs, Arguments0, Arguments),
    Goal =.. [Name|Arguments].
plain_texts(Goal0, Names, Goal) :-          % a predicate of the program may call what it is given
    compound_name_arguments(Goal0, Name, Arguments0),
    maplist(data_texts(Names), Arguments0, Arguments),
    compound_name_arguments(Goal, Name, Arguments).

goal_texts_with(Names, Goal0, Goal) :- goal_texts(Goal0, Names, Goal).

control((_, _)).
control((_ ; _)).
control('|'(_, _)).
control((_ -> _)).
control((_ *-> _)).
control(\+ _).
control(_^_).
control(_:_).

%   Quasi quotations in the arguments that the goal does not call: each becomes a variable, which is bound before.

quoted_texts(Goal0, Names, Goal) :-
    (   called_arguments(Goal0, Specs)
    ->  true
    ;   compound_name_arity(Goal0, _, Arity),
        length(Specs, Arity),
        maplist(=(?), Specs)
    ),
    compound_name_arguments(Goal0, Name, Arguments0),
    foldl(without_quotations, Specs, Arguments0, Arguments, Texts, []),
    compound_name_arguments(Goal1, Name, Arguments),
    plain_texts(Goal1, Names, Goal2),
    foldl(text_before_goal, Texts, Goal2, Goal).

text_before_goal(Text=Variable, Goal, ('$kb_filled'(Text, Variable), Goal)).

without_quotations(Spec, Argument0, Argument, Texts0, Texts) :-
    (   ( integer(Spec) ; Spec == ^ ; Spec == // )
    ->  Argument = Argument0,
        Texts0 = Texts
    ;   without_texts(Argument0, Argument, Texts0, Texts)
    ).

without_texts(Term, Term, Texts, Texts) :-
    \+ has_text(Term), !.
without_texts('$kb_text'(Parts), Variable, ['$kb_text'(Parts)=Variable|Texts], Texts) :- !.
without_texts(Term0, Term, Texts0, Texts) :-
    is_dict(Term0), !,
    dict_pairs(Term0, Tag, Pairs0),
    without_texts(Pairs0, Pairs, Texts0, Texts),
    dict_pairs(Term, Tag, Pairs).
without_texts(Term0, Term, Texts0, Texts) :-
    compound_name_arguments(Term0, Name, Arguments0),
    foldl(without_texts, Arguments0, Arguments, Texts0, Texts),
    compound_name_arguments(Term, Name, Arguments).

%!  has_text(+Term)
%
%   A part of the term is a text with names.

has_text(Term) :-
    compound(Term),
    (   Term = '$kb_text'(_)
    ->  true
    ;   compound_name_arguments(Term, _, Arguments),
        member(Argument, Arguments),
        has_text(Argument)
    ), !.

%!  read_quotations
%
%   Read quasi quotations in terms of the workspace from here.

read_quotations :-
    workspace:import(kb_interpolation:string/4).

:- quasi_quotation_syntax(string).

%   string(+Content, +Shown, +Names, -Text): called by the reader. As with library(strings), a first line that is empty is left out, and so
%   is the indentation of all lines, up to `|`.

string(Content, Shown, Names, Text) :-
    with_quasi_quotation_input(Content, Stream, read_string(Stream, _, String0)),
    (   string_concat("\n", Lines, String0)
    ->  dedent_lines(Lines, String, [tab(8), chars("\s\t|")])
    ;   String = String0
    ),
    (   Shown == []
    ->  Text = String
    ;   include(is_shown(Shown), Names, Known),
        string_codes(String, Codes),
        phrase(parts(Parts0, []), Codes),
        (   member(name(Name), Parts0),
            \+ memberchk(Name=_, Known)
        ->  raise(kb_refused(Name, unlisted_name))
        ;   joined(Parts0, Known, Parts)
        ),
        Text = '$kb_text'(Parts)
    ).

is_shown(Shown, _=Variable) :-
    member(One, Shown),
    One == Variable, !.

lambda_body(>>, Arity, 2) :- Arity >= 2.
lambda_body(/, Arity, 2) :- Arity >= 2.
lambda_body(call, Arity, 1) :- Arity >= 1.

changed_argument(At, Goal0, Names, Goal) :-
    Goal0 =.. [Name|Arguments0],
    nth1(At, Arguments0, Argument0, Others),
    goal_texts(Argument0, Names, Argument),
    nth1(At, Arguments, Argument, Others),
    Goal =.. [Name|Arguments].

called_arguments(Goal, Specs) :-
    predicate_property(workspace:Goal, meta_predicate(Spec)),
    \+ predicate_property(workspace:Goal, dynamic),
    Spec =.. [_|Specs].

argument_texts(Names, Spec, Argument0, Argument) :-
    (   integer(Spec),
        compound(Argument0),
        marked(Argument0, Spec, Names, Argument)
    ->  true
    ;   ( integer(Spec) ; Spec == ^ ; Spec == // )
    ->  goal_texts(Argument0, Names, Argument)
    ;   Argument = Argument0
    ).

data_texts(Names, Argument0, Argument) :-
    (   compound(Argument0),
        compound_name_arity(Argument0, Name, _),
        (   memberchk(Name, [task, exec])
        ->  marked(Argument0, 0, Names, Argument)
        ;   control(Argument0),
            \+ Argument0 = _:_
        ->  goal_texts(Argument0, Names, Argument)
        )
    ->  true
    ;   Argument = Argument0
    ).

%   marked(+Goal0, +More, +Names, -Goal): a goal that has texts, or a closure that is called with More further arguments.

marked(Goal0, More, Names, Goal) :-
    compound_name_arguments(Goal0, Name, Arguments0),
    length(Arguments0, Given),
    Arity is Given + More,
    marked_arguments(Name, Arity, Arguments0, Names, Arguments),
    compound_name_arguments(Goal, Name, Arguments).

marked_arguments(task, Arity, [Text0|Outputs0], Names, [Text|Outputs]) :-
    Arity >= 1, !,
    marked_text(Names, Text0, Text),
    maplist(marked_output(Names), Outputs0, Outputs).
marked_arguments(exec, 2, [Tool0|Outputs], Names, [Tool|Outputs]) :- !,
    marked_parts(Names, Tool0, Tool).
marked_arguments(wait_for_input, 2, [Text0|Outputs], Names, [Text|Outputs]) :- !,
    marked_text(Names, Text0, Text).
marked_arguments(Name, 1, [Text0], Names, [Text]) :-
    text_goal(Name, 1),
    marked_text(Names, Text0, Text).

marked_output(Names, Output0, Output) :-
    (   var(Output0)
    ->  (   member(Name=Variable, Names),
            Variable == Output0
        ->  Output = '$kb_output'(Name, Output0)
        ;   Output = Output0
        )
    ;   compound(Output0),
        Output0 =.. [Type, Inner0],
        memberchk(Type, [string, integer, number, boolean, list, object])
    ->  marked_output(Names, Inner0, Inner),
        Output =.. [Type, Inner]
    ;   Output = Output0
    ).

%   The texts in the arguments of a tool, at any depth.

marked_parts(Names, Term0, Term) :-
    (   is_literal(Term0)
    ->  marked_text(Names, Term0, Term)
    ;   is_dict(Term0)
    ->  dict_pairs(Term0, Tag, Pairs0),
        maplist(marked_pair(Names), Pairs0, Pairs),
        dict_pairs(Term, Tag, Pairs)
    ;   compound(Term0),
        compound_name_arguments(Term0, Name, Arguments0),
        Arguments0 \== []
    ->  maplist(marked_parts(Names), Arguments0, Arguments),
        compound_name_arguments(Term, Name, Arguments)
    ;   Term = Term0
    ).

marked_pair(Names, Key-Term0, Key-Term) :- marked_parts(Names, Term0, Term).

is_literal(Term) :- string(Term), !.
is_literal(Term) :- atom(Term), Term \== [].

marked_text(Names, Text0, Text) :-
    (   is_literal(Text0),
        sub_string(Text0, _, 1, _, "{")
    ->  string_codes(Text0, Codes),
        phrase(parts(Parts0, []), Codes),
        joined(Parts0, Names, Parts),
        (   Parts = [Whole],
            string(Whole)
        ->  ( atom(Text0) -> atom_string(Text, Whole) ; Text = Whole )
        ;   Text = '$kb_text'(Parts)
        )
    ;   Text = Text0
    ).

%!  text_names(+Text, -Names)
%
%   The names in a text, in their order.

text_names(Text, Names) :-
    string_codes(Text, Codes),
    phrase(parts(Parts, []), Codes),
    findall(Name, member(name(Name), Parts), Names).

%   parts(-Parts, +Codes): the text up to here is in Codes, in reverse.

parts(Parts, Before) -->
    "{{", name(Name), "}}", !,
    { atom_codes(Name, Codes),
      append([0'{|Codes], [0'}], Plain),
      reverse(Plain, Reversed),
      append(Reversed, Before, Next) },
    parts(Parts, Next).
parts([Text, name(Name)|Parts], Before) -->
    "{", name(Name), "}", !,
    { text_before(Before, Text) },
    parts(Parts, []).
parts(Parts, Before) -->
    [Code], !,
    parts(Parts, [Code|Before]).
parts([Text], Before) -->
    { text_before(Before, Text) }.

text_before(Reversed, Text) :-
    reverse(Reversed, Codes),
    string_codes(Text, Codes).

%   A name of a variable, which is more than `_`.

name(Name) -->
    [First],
    { code_type(First, prolog_var_start) },
    name_rest(Rest),
    { [First|Rest] \== [0'_],
      atom_codes(Name, [First|Rest]) }.

name_rest([Code|Rest]) -->
    [Code],
    { code_type(Code, prolog_identifier_continue) }, !,
    name_rest(Rest).
name_rest([]) --> [].

joined([], _, []).
joined([name(Name)|Parts], Names, [Name=Variable|Joined]) :- !,
    (   memberchk(Name=Variable, Names)
    ->  true
    ;   raise(kb_refused(Name, unknown_name))
    ),
    joined(Parts, Names, Joined).
joined([""], _, []) :- !.
joined(["", Part|Parts], Names, Joined) :- !,
    joined([Part|Parts], Names, Joined).
joined([Text|Parts], Names, [Text|Joined]) :-
    joined(Parts, Names, Joined).

%!  filled(+Term0, -Term)
%
%   Fill in the texts of a term: '$kb_text'(Parts) becomes a string. What is filled in is not looked at again.

filled(Term, _) :-
    \+ acyclic_term(Term), !,
    raise(kb_refused(value, cyclic_value)).
filled(Term0, Term) :-
    filled_term(Term0, Term).

filled_term(Term, Term) :-
    \+ compound(Term), !.
filled_term('$kb_text'(Parts), Text) :- !,
    maplist(part_text, Parts, Texts),
    atomics_to_string(Texts, Text).
filled_term('$kb_output'(_, Variable), Term) :- !,
    Term = Variable.
filled_term(Term0, Term) :-
    is_dict(Term0), !,
    dict_pairs(Term0, Tag, Pairs0),
    maplist(filled_pair, Pairs0, Pairs),
    dict_pairs(Term, Tag, Pairs).
filled_term(Term0, Term) :-
    compound_name_arguments(Term0, Name, Arguments0),
    maplist(filled_term, Arguments0, Arguments),
    compound_name_arguments(Term, Name, Arguments).

filled_pair(Key-Term0, Key-Term) :- filled_term(Term0, Term).

part_text(Name=Value, Text) :- !,
    named_text(Name, Value, Text).
part_text(Text, Text).
