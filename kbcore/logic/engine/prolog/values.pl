/*  Terms as JSON, for what a program sends: dicts are objects, strings and atoms are texts. */
:- module(kb_values, [json_value/2, value_text/2, named_text/3]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(guard).
:- use_module(answers).

%!  json_value(+Term, -Value)
%
%   The value that answers:write_json/2 writes for a term. The atoms true, false and null are those of JSON; a term that JSON
%   does not have is its text. Refused are a variable, a cyclic term, a number that is none or has too many digits, and
%   what is nested too deeply.

max_nesting(200).

max_number(Most) :- Most is 10 ** 4000.

json_value(Term, _) :-
    \+ acyclic_term(Term), !,
    raise(kb_refused(value, cyclic_value)).
json_value(Term, Value) :-
    (   ground(Term)
    ->  true
    ;   is_dict(Term)                   % its tag is a variable as a rule
    ->  true
    ;   is_list(Term)
    ->  true
    ;   raise(kb_refused(Term, unbound_value))
    ),
    max_nesting(Most),
    value(Term, Most, Value).

value(Term, _, _) :-
    var(Term), !,
    raise(kb_refused(Term, unbound_value)).
value(Term, _, Term) :- string(Term), !.
value(Term, _, json(Term)) :- memberchk(Term, [true, false, null]), !.
value(Term, _, Term) :-
    integer(Term), !,
    (   max_number(Most),
        abs(Term) < Most
    ->  true
    ;   raise(kb_refused(value, large_number))
    ).
value(Term, _, Value) :-
    float(Term), !,
    (   Term - Term =:= 0.0
    ->  Value = Term
    ;   raise(kb_refused(Term, not_finite))
    ).
value(Term, Most, _) :-
    Most =:= 0,
    ( is_list(Term), Term \== [] ; is_dict(Term) ), !,
    raise(kb_refused(value, nested_value)).
value(Term, Most, Values) :-
    is_list(Term), !,
    Less is Most - 1,
    maplist(inner_value(Less), Term, Values).
value(Term, Most, object(Pairs)) :-
    is_dict(Term), !,
    dict_pairs(Term, _, Pairs0),
    Less is Most - 1,
    maplist(pair_value(Less), Pairs0, Pairs).
value(Term, _, Term) :- atom(Term), !.
value(Term, _, Text) :-
    (   ground(Term)
    ->  format(string(Text), "~q", [Term])
    ;   raise(kb_refused(Term, unbound_value))
    ).

inner_value(Most, Term, Value) :- value(Term, Most, Value).

pair_value(Most, Key-Term, Name-Value) :-
    (   atom(Key)
    ->  Name = Key
    ;   atom_number(Name, Key)
    ),
    value(Term, Most, Value).

%!  value_text(+Term, -Text)
%
%   The text of a value where a text is expected: texts and numbers as they are, lists and dicts as JSON.

value_text(Term, Text) :-
    string(Term), !,
    Text = Term.
value_text(Term, Text) :-
    Term \== [],
    atom(Term), !,
    atom_string(Term, Text).
value_text(Term, Text) :-
    number(Term), !,
    format(string(Text), "~w", [Term]).
value_text(Term, Text) :-
    json_value(Term, Value),
    (   string(Value)
    ->  Text = Value
    ;   with_output_to(string(Text), ( current_output(Out), write_json(Out, Value) ))
    ).

%!  named_text(+Name, +Term, -Text)
%
%   The text of the value of a variable with this name.

named_text(Name, Term, Text) :-
    catch(value_text(Term, Text), error(kb_refused(_, unbound_value), _), raise(kb_refused(Name, unbound_name))).
