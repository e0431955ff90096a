/*  What is sent back: one line of JSON for each reply, and terms and errors as text. */
:- module(kb_answers, [send/2, write_json/2, send_start/1, send_part/3, bindings/5, error_members/2, without_backticks/2]).
:- use_module(library(lists)).
:- use_module(library(apply)).
:- use_module(guard).
:- if(\+ predicate_property(system:write_length(_, _, _), defined)).
:- use_module(library(backcomp), [write_length/3]).
:- endif.

%!  send(+Stream, +Value)
%
%   Write a value as one line of JSON, as write_json/2 does.

send(Stream, Value) :-
    write_json(Stream, Value),
    nl(Stream),
    flush_output(Stream).

%!  send_start(+Stream)
%
%   Begin a reply whose parts come before it: those that were sent for the same request count no more.

send_start(Stream) :-
    write(Stream, '{"status":"start"}\n').

%!  send_part(+Stream, +At, +Value)
%
%   Write a part of the reply that follows; At is the number of the text that it is about, from 0.

send_part(Stream, At, clause(Start, End, Line, Kind, Key, Name, "")) :-
    is_plain(Key),
    is_plain(Name), !,
    format(Stream,
           '{"status":"part","at":~d,"clause":{"start":~d,"end":~d,"line":~d,"kind":"~w","key":"~w","name":"~w","stop":""}}\n',
           [At, Start, End, Line, Kind, Key, Name]).
send_part(Stream, At, Value) :-
    format(Stream, '{"status":"part","at":~d,"clause":', [At]),
    write_json(Stream, Value),
    write(Stream, '}\n').

%!  write_json(+Stream, +Value)
%
%   Write a value as JSON: object(Pairs) with Name-Value, a list, a string or an atom (both as text), a number,
%   and the atoms true, false and null inside json(_). A Name that is a string needs no escaping.
%   clause(Start, End, Line, Kind, Key, Name, Stop) is an object with these members: a reply may have a million.

write_json(Stream, object(Pairs)) :- !,
    put_char(Stream, '{'),
    members(Pairs, Stream),
    put_char(Stream, '}').
write_json(Stream, clause(Start, End, Line, Kind, Key, Name, Stop)) :- !,
    format(Stream, '{"start":~d,"end":~d,"line":~d,"kind":"~w","key":', [Start, End, Line, Kind]),
    write_json(Stream, Key),
    write(Stream, ',"name":'),
    write_json(Stream, Name),
    write(Stream, ',"stop":'),
    write_json(Stream, Stop),
    put_char(Stream, '}').
write_json(Stream, json(Word)) :- !,
    write(Stream, Word).
write_json(Stream, List) :- is_list(List), !,
    put_char(Stream, '['),
    elements(List, Stream),
    put_char(Stream, ']').
write_json(Stream, Number) :- number(Number), !,
    write(Stream, Number).
write_json(Stream, Text) :-
    (   is_plain(Text)
    ->  format(Stream, '"~w"', [Text])
    ;   string_codes(Text, Codes),
        put_char(Stream, '"'),
        maplist(escaped(Stream), Codes),
        put_char(Stream, '"')
    ).

%   No character of a text has to be escaped. split_string/4 looks at no separator after a NUL, and takes a NUL away from both
%   ends of a text.

is_plain(Text) :-
    split_string(Text, "\"\\\n\r\t\b\f\v\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f\u2028\u2029", "", [_]),
    \+ sub_string(Text, _, 1, _, "\u0000").

members([], _).
members([Name-Value|More], Stream) :-
    (   string(Name)
    ->  format(Stream, '"~w":', [Name])
    ;   write_json(Stream, Name),
        put_char(Stream, ':')
    ),
    write_json(Stream, Value),
    (   More == []
    ->  true
    ;   put_char(Stream, ','),
        members(More, Stream)
    ).

elements([], _).
elements([Value|More], Stream) :-
    write_json(Stream, Value),
    (   More == []
    ->  true
    ;   put_char(Stream, ','),
        elements(More, Stream)
    ).

escaped(Stream, 0'") :- !, write(Stream, '\\"').
escaped(Stream, 0'\\) :- !, write(Stream, '\\\\').
escaped(Stream, Code) :-
    (   Code < 32
    ;   Code == 0x2028
    ;   Code == 0x2029
    ), !,
    format(Stream, '\\u~|~`0t~16r~4+', [Code]).
escaped(Stream, Code) :-
    put_char_code(Stream, Code).

put_char_code(Stream, Code) :-
    char_code(Char, Code),
    put_char(Stream, Char).

%!  bindings(+Names, +MaxCharacters, -Pairs, -Residual, -IsTruncated)
%
%   The answer of a query as texts: Name-Text for each variable with a name that does not begin with `_` and that is bound
%   or shares its value with another one, and the constraints that are left. Names is the list of Name=Value. A cyclic term
%   is shown as Name = Term, where the term contains the name; it is among the constraints where no variable has it.

bindings(Names, Most, Pairs, Residual, IsTruncated) :-
    values(Names, Values),
    without_attributes(Values, Copies0, Goals0),
    maplist(original, Goals0, Goals1),
    without_cycles(Copies0-Goals1, Copies1-Goals2, Cycles0),
    plain_goals(Goals2, Goals3),
    length(Names, Count),
    Share is max(1000, Most // max(1, Count)),
    maplist(bounded(Share, Count), Copies1, Copies, Cut0),
    maplist(bounded(Most, Count), Goals3, Goals, Cut1),
    maplist(bounded(Most, Count), Cycles0, Cycles1, Cut2),
    renamed(Names, Copies, Own),
    shown_names(Own, Copies-Goals-Cycles1, Shown),
    partition(has_pair(Shown), Cycles1, Cycles, Others),
    maplist(pair(Shown, Share, Cycles), Own, Pairs0, Cut3),
    exclude(==(none), Pairs0, Pairs),
    append(Goals, Others, Plain),
    maplist(shown(Shown, Most, 999), Plain, Residual, Cut4),
    append([Cut0, Cut1, Cut2, Cut3, Cut4], Cuts),
    (   memberchk(true, Cuts)
    ->  IsTruncated = true
    ;   IsTruncated = false
    ).

%   A copy takes room, and only constraints need one.

without_attributes(Values, Copies, Goals) :-
    (   term_attvars(Values, [])
    ->  Copies = Values,
        Goals = []
    ;   copy_term(Values, Copies, Goals)
    ).

%   bounded(+Most, +Count, +Term, -Part, -IsCut)
%
%   The part of a term of which anything is shown. One with more variables than so many characters can hold is cut before its
%   variables get names, which takes long. Of the names that shown_names/3 makes, 26 have 2 characters, 234 have 3, 2,340 have
%   4, 23,400 have 5, and all others have more; each is followed by another character. Count variables may have other names.

bounded(Most, Count, Term, Part, IsCut) :-
    term_variables(Term, Variables),
    length(Variables, Number),
    Limit is (Most + 28_886) // 7 + Count,
    (   Number > Limit
    ->  part_of(Term, 110, Limit, _, Part),     % somewhat deeper than what is shown of a cut term
        IsCut = true
    ;   Part = Term,
        IsCut = false
    ).

%   part_of(+Term, +Depth, +Left0, -Left, -Part): Left counts the parts that may follow.

part_of(Term, _, Left0, Left, Term) :-
    \+ compound(Term), !,
    Left is Left0 - 1.
part_of(Term, Depth, Left0, Left, Part) :-
    (   Depth > 0,
        \+ is_dict(Term)
    ->  compound_name_arity(Term, Name, Arity),
        parts_of(1, Arity, Term, Depth, Left0, Left, Parts),
        compound_name_arguments(Part, Name, Parts)
    ;   Part = '...',
        Left = Left0
    ).

parts_of(At, Arity, Term, Depth, Left0, Left, Parts) :-
    (   At > Arity
    ->  Parts = [],
        Left = Left0
    ;   Left0 =< 0
    ->  Parts = ['...'],
        Left = Left0
    ;   arg(At, Term, Argument),
        Deeper is Depth - 1,
        part_of(Argument, Deeper, Left0, Left1, Part),
        Parts = [Part|More],
        Next is At + 1,
        parts_of(Next, Arity, Term, Depth, Left1, Left, More)
    ).

%   Cycles are Variable=Term, where Term contains the variable.

without_cycles(Term, Term, []) :-
    acyclic_term(Term), !.
without_cycles(Term, Plain, Cycles) :-
    '$factorize_term'(Term, Plain, Shared),
    only_cycles(Shared, Cycles).

%   Other terms that occur twice go back to their places.

only_cycles([], []).
only_cycles([One|More], Cycles) :-
    (   One = (Variable=Value),
        Variable = Value,
        acyclic_term(Value)
    ->  Cycles = Rest
    ;   Cycles = [One|Rest]
    ),
    only_cycles(More, Rest).

has_pair(Shown, Variable=_) :-
    name_shown(Shown, Variable, Name), !,
    \+ sub_atom(Name, 0, _, _, '_').

values([], []).
values([_=Value|More], [Value|Values]) :- values(More, Values).

renamed([], [], []).
renamed([Name=_|More], [Value|Values], [Name=Value|Own]) :- renamed(More, Values, Own).

%   Each variable is shown by the first name that it has; one without a name is called _A, _B, ..., _A1, ...: there may be
%   many of them. Shown is shown(Names, Others): the names in Others have characters that are not of ASCII.

shown_names(Own, Terms, Shown) :-
    first_names(Own, [], Named),
    term_variables(Terms, Variables),
    without_name(Variables, Named, Anonymous),
    pairs_names(Own, Taken),
    fresh_names(Anonymous, 0, Taken, Fresh),
    ascii_first(Named, Fresh, Shown).

ascii_first(Named, Fresh, shown(Names, Others)) :-
    partition(is_ascii_name, Named, Plain, Others),
    append(Plain, Fresh, Names).

name_shown(shown(Names, Others), Variable, Name) :-
    (   member(Name=Other, Others)
    ;   member(Name=Other, Names)
    ),
    Other == Variable, !.

pairs_names([], []).
pairs_names([Name=_|More], [Name|Names]) :- pairs_names(More, Names).

first_names([], Named, Named).
first_names([Name=Value|More], Before, Named) :-
    (   var(Value),
        \+ ( member(_=Other, Before), Other == Value )
    ->  append(Before, [Name=Value], Next)
    ;   Next = Before
    ),
    first_names(More, Next, Named).

without_name([], _, []).
without_name([Variable|More], Named, Anonymous) :-
    (   member(_=Other, Named), Other == Variable
    ->  Anonymous = Rest
    ;   Anonymous = [Variable|Rest]
    ),
    without_name(More, Named, Rest).

fresh_names([], _, _, []).
fresh_names([Variable|More], N, Taken, Fresh) :-
    Letter is N mod 26 + 0'A,
    Round is N // 26,
    (   Round =:= 0
    ->  format(atom(Name), '_~c', [Letter])
    ;   format(atom(Name), '_~c~d', [Letter, Round])
    ),
    Next is N + 1,
    (   memberchk(Name, Taken)
    ->  fresh_names([Variable|More], Next, Taken, Fresh)
    ;   Fresh = [Name=Variable|Rest],
        fresh_names(More, Next, Taken, Rest)
    ).

pair(Shown, Most, Cycles, Name=Value, Pair, IsCut) :-
    (   sub_atom(Name, 0, _, _, '_')
    ->  Pair = none,
        IsCut = false
    ;   var(Value),
        name_shown(Shown, Value, First)
    ->  (   First \== Name
        ->  Pair = Name-First,
            IsCut = false
        ;   member(Variable=Term, Cycles),
            Variable == Value
        ->  Pair = Name-Text,
            shown(Shown, Most, 699, Term, Text, IsCut)
        ;   Pair = none,
            IsCut = false
        )
    ;   Pair = Name-Text,
        shown(Shown, Most, 699, Value, Text, IsCut)
    ).

%   A value has the priority of an argument of `=`, as in Name = (a :- b).

shown(Shown0, Most, Priority, Term0, Text, IsCut) :-
    with_names(Shown0, Term0, Mark, Shown, Term),
    (   Mark == none
    ->  Hook = []
    ;   Hook = [portray_goal(kb_answers:write_name(Mark))]
    ),
    Options = [module(workspace), quoted(true), spacing(next_argument), variable_names(Shown), cycles(true),
               priority(Priority)|Hook],
    (   catch(write_length(Term, _, [max_length(Most)|Options]), error(domain_error(_, _), _), fail)
    ->  format(string(Text0), "~W", [Term, Options]),     % with_output_to/2 takes 0.1 ms in a new engine
        without_nul(Text0, Text),
        IsCut = false
    ;   format(string(Long), "~W", [Term, [max_depth(100)|Options]]),
        string_length(Long, Length),
        (   Length > Most
        ->  sub_string(Long, 0, Most, _, Text0)
        ;   Text0 = Long
        ),
        without_nul(Text0, Text),
        IsCut = true
    ).

%   The names and the term to be written with them. Where a name has characters that are not of ASCII, its variable is a term
%   that has the Mark, which is `none` otherwise.

with_names(shown(Names0, Others), Term0, Mark, Names, Term) :-
    (   ground(Term0)
    ->  Term = Term0,
        Names = [],
        Mark = none
    ;   Others == []
    ->  Term = Term0,
        Names = Names0,
        Mark = none
    ;   copy_term_nat(Term0-Names0-Others, Term-Names-Named),
        Random is random(1 << 62),
        atom_concat('$kb_name_', Random, Mark),
        maplist(name_variable(Mark), Named)
    ).

%   A quoted text has the escape of a NUL: the WebAssembly build writes the character itself.

without_nul(Text, Plain) :-
    (   sub_string(Text, _, 1, _, "\u0000")
    ->  string_codes(Text, Codes),
        phrase(nul_escaped(Codes), Escaped),
        string_codes(Plain, Escaped)
    ;   Plain = Text
    ).

nul_escaped([]) --> [].
nul_escaped([0|More]) --> !, `\\u0000`, nul_escaped(More).
nul_escaped([Code|More]) --> [Code], nul_escaped(More).

%   The WebAssembly build takes no name with other characters for a variable: it is written in place of a term then.

is_ascii_name(Name=_) :-
    atom_codes(Name, Codes),
    forall(member(Code, Codes), Code < 128).

%   No goal can have made the mark, which is another one each time.

name_variable(Mark, Name=Variable) :-
    compound_name_arguments(Variable, Mark, [Name]).

write_name(Mark, Term, _) :-
    compound(Term),
    compound_name_arguments(Term, Mark, [Name]),
    write(Name).

plain_goals([], []).
plain_goals([Goal|More], Plain) :-
    plain_goal(Goal, One),
    append(One, Rest, Plain),
    plain_goals(More, Rest).

plain_goal(Goal, [Goal]) :- var(Goal), !.
plain_goal(_:Goal, Plain) :- !, plain_goal(Goal, Plain).
plain_goal((A, B), Plain) :- !,
    plain_goal(A, PA),
    plain_goal(B, PB),
    append(PA, PB, Plain).
plain_goal(true, []) :- !.
plain_goal(Goal, [Goal]).

%!  error_members(+Error, -Pairs)
%
%   The members of a reply that tells of an error: kind, message, and for some kinds others. What a term says in a message is
%   always a part: a goal may throw any term, and a message of the system would show it as it is.

error_members(Thrown, ["kind"-Kind, "message"-Message|More]) :-
    own_error(Thrown, Error),
    kind(Error, Kind, More),
    message(Error, Message).

kind(Error, "exception", []) :-
    ( var(Error) ; Error = error(Formal, _), var(Formal) ), !.
kind(Error, "refused", ["name"-Name, "reason"-Text|More]) :-
    Error = error(kb_refused(Indicator, Reason), _),
    is_raised(Error), !,
    refusal_reason(Reason, Text, More),
    part(Indicator, Name).
kind(Error, Kind, []) :-
    Error = error(kb_limit(Limit), _),
    is_raised(Error), !,
    format(string(Kind), "~w_limit", [Limit]).
kind(error(Formal, _), "model_error", []) :-
    subsumes_term(model_error(_), Formal), !.
kind(error(existence_error(Type, PI), _), "unknown_predicate", ["name"-Name]) :-
    Type == procedure, !,
    own_part(PI, Name).
kind(Error, Kind, More) :-
    Error = error(resource_error(What), _), !,
    (   is_thrown(Error)
    ->  Kind = "exception",
        More = []
    ;   Kind = "memory",
        ( What == c_stack -> More = ["of"-"c_stack"] ; More = [] )
    ).
kind(Error, "memory", ["of"-"engine"]) :-
    Error = error(io_error(_, _), context(_, Why)),
    Why == 'Cannot allocate memory',    % of a text in memory: the address space of the process is used up
    \+ is_thrown(Error), !.
kind(error(syntax_error(What), _), "syntax_error", ["name"-Name]) :-
    callable(What), !,
    functor(What, Functor, _),
    part(Functor, Name).
kind(error(Formal, _), Kind, []) :-
    known_error(Formal), !,
    functor(Formal, Name, _),
    format(string(Kind), "~w", [Name]).
kind(_, "exception", []).

refusal_reason(library(Library), "library", ["library"-From]) :- !,
    part(Library, From).
refusal_reason(Reason, Text, []) :-
    atom_string(Reason, Text).

known_error(Formal) :-
    callable(Formal),
    functor(Formal, Name, Arity),
    memberchk(Name/Arity, [type_error/2, domain_error/2, instantiation_error/0, uninstantiation_error/1,
                           existence_error/2, existence_error/3, permission_error/3, representation_error/1,
                           evaluation_error/1, resource_error/1, syntax_error/1, system_error/0, system_error/1]).

message(Error, "") :-
    nonvar(Error),
    is_raised(Error), !.
message(error(Formal, Context), Said) :-
    nonvar(Formal),
    nonvar(Context),
    Context = context(_, Said),
    string(Said),                       % what the caller says; the system says atoms
    known_error(Formal), !.
message(error(Formal, _), Message) :-
    nonvar(Formal),
    formal_message(Formal, Format, Terms), !,
    maplist(quoted_part, Terms, Parts),
    format(string(Message), Format, Parts).
message(Error, Message) :-
    without_context(Error, Plain),
    quoted_part(Plain, Part),
    string_concat("uncaught exception: ", Part, Message).

%   The context of an error names predicates that a goal called, those of KB as well.

without_context(Error, error(Formal, _)) :-
    nonvar(Error),
    Error = error(Formal, Context),
    nonvar(Context),
    Context = context(_, _), !.
without_context(Error, Error).

%   The text of an error of the standard, with ~w for each term that it names

formal_message(model_error(Text), "the model could not be asked: ~w", [Text]).
formal_message(instantiation_error, "arguments are not sufficiently instantiated", []).
formal_message(uninstantiation_error(Term), "an unbound argument is expected, found ~w", [Term]).
formal_message(type_error(Type, Name), "arithmetic: ~w is not a function", [Name]) :- Type == evaluable, !.
formal_message(type_error(Type, Term), Format, [Type, Term]) :-
    sort_of(Term, Sort),
    format(string(Format), "type error: ~~w expected, found ~~w (~w)", [Sort]).
formal_message(domain_error(Domain, Term), "domain error: ~w expected, found ~w", [Domain, Term]).
formal_message(existence_error(Type, Name), "unknown predicate ~w", [unquoted(Name)]) :- Type == procedure, !.
formal_message(existence_error(Type, Term), "there is no ~w ~w", [Type, Term]).
formal_message(existence_error(Type, Term, In), "there is no ~w ~w in ~w", [Type, Term, In]).
formal_message(permission_error(Action, Type, Term), "no permission to ~w ~w ~w", [Action, Type, Term]).
formal_message(representation_error(What), "a limit of the engine is exceeded: ~w", [What]).
formal_message(evaluation_error(What), "arithmetic: evaluation error: ~w", [What]).
formal_message(resource_error(What), "not enough resources: ~w", [What]).
formal_message(system_error, "error of the system", []).
formal_message(system_error(What), "error of the system: ~w", [What]).
formal_message(syntax_error(What), Format, Terms) :-
    (   syntax_message(What, Format)
    ->  Terms = []
    ;   Format = "~w",
        Terms = [What]
    ).

syntax_message(What, _) :-
    var(What), !,
    fail.
syntax_message(query_expected, "a query is expected, and there is none").
syntax_message(one_query_expected, "one query is expected, and there are several").
syntax_message(one_term_expected, "one clause is expected, and there are several").
syntax_message(text_ends, "the text ends before the term does").
syntax_message(glued_full_stop, "the full stop is a part of the symbol before it; put a space between them").
syntax_message(further_full_stop, "full stops without a space between them are one symbol; a single one ends a clause or a query").
syntax_message(functional_notation, "a full stop needs a space or the end of the line after it, and the functional notation of dicts is not evaluated; use get_dict/3").
syntax_message(unknown_quasi_quotation_syntax(_, _), "the only quasi quotation is {|string(Name, ...)||text|}").
syntax_message(What, Message) :-
    atom(What),
    catch(phrase('$messages':syntax_error(What), [Format]), _, fail),
    atom(Format),                       % a name that the system does not know is a format with an argument
    \+ sub_atom(Format, _, _, _, ~),
    atom_string(Format, Message).
syntax_message(undefined_char_escape(Char), Message) :-
    atom(Char),
    char_type(Char, graph),
    format(string(Message), "unknown character escape in quoted text: `\\~w`", [Char]).
syntax_message(end_of_file_in_quoted(Mark), Message) :-
    memberchk(Mark-Type, ['\''-"an atom", '"'-"a text in double quotes", '`'-"a text in back quotes"]),
    format(string(Message), "end of file in ~w", [Type]).

sort_of(Term, "a variable") :- var(Term), !.
sort_of(Term, "an integer") :- integer(Term), !.
sort_of(Term, "a number") :- number(Term), !.
sort_of(Term, "a string") :- string(Term), !.
sort_of(Term, "a dict") :- is_dict(Term), !.
sort_of(Term, "a list") :- is_list(Term), !.
sort_of(Term, "an atom") :- atom(Term), !.
sort_of(Term, "a compound") :- compound(Term), !.
sort_of(_, "a reference").

%   A term as it is read, on one line, with a bound for its length, and without addresses. In a message it is between
%   backticks, and has none itself; a module of KB, which no user has named, is left out.

quoted_part(unquoted(Name), Part) :- !,
    own_part(Name, Part).
quoted_part(Term, Part) :-
    own_part(Term, Part0),
    format(string(Part), "`~w`", [Part0]).

own_part(Term, Part) :-
    without_module(Term, Plain),
    part(Plain, Part).

max_part(300).

part(Term0, Part) :-
    max_part(Most),
    own_names(Term0, Shown),
    with_names(Shown, Term0, Mark, Named, Term),
    (   Mark == none                    % the goal is called for references alone then
    ->  Options0 = [blobs(portray)]
    ;   Options0 = []
    ),
    Options = [module(workspace), quoted(true), max_depth(30), portray_goal(kb_answers:write_special(Mark)),
               variable_names(Named)|Options0],
    format(string(Written), "~W", [Term, Options]),
    without_nul(Written, Whole),
    replaced(Whole, "\u2026", '...', Text0),        % newer versions of the system mark by one character what they cut
    (   string_length(Text0, Length),
        Length > Most
    ->  sub_string(Text0, 0, Most, _, Text1),
        string_concat(Text1, "...", Text)
    ;   Text = Text0
    ),
    without_backticks(Text, Part).

%   The variables of a term with their names: those that they carry, and _A, _B, ... for others.

own_names(Term, Shown) :-
    term_variables(Term, Variables),
    partition(carries_name, Variables, Carriers, Others),
    carried_names(Carriers, Carried),
    pairs_names(Carried, Taken),
    fresh_names(Others, 0, Taken, Fresh),
    ascii_first(Carried, Fresh, Shown).

carries_name(Variable) :- name_of(Variable, _).

carried_names([], []).
carried_names([Variable|More], [Name=Variable|Names]) :-
    name_of(Variable, Name),
    carried_names(More, Names).

%!  without_backticks(+Text0, -Text)
%
%   A text with escapes in place of backticks, which would end the quotes of a message.

without_backticks(Text0, Text) :-
    replaced(Text0, "`", '\\x60\\', Text).

replaced(Text0, Char, By, Text) :-
    split_string(Text0, Char, "", Parts),
    atomic_list_concat(Parts, By, Atom),
    atom_string(Atom, Text).

without_module(Term, Plain) :-
    nonvar(Term),
    Term = Module:Own,
    atom(Module),
    (   memberchk(Module, [workspace, system, user])
    ;   sub_atom(Module, 0, _, _, kb_)
    ), !,
    without_module(Own, Plain).
without_module(Term, Term).

write_special(Mark, Term, Options) :-
    (   write_name(Mark, Term, Options)
    ->  true
    ;   write_reference(Term)
    ).

write_reference(Term) :-
    blob(Term, Type),
    \+ memberchk(Type, [text, reserved_symbol]),
    format("<~w>", [Type]).
