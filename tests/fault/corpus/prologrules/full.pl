% Rules of a project.
rule('no-owner', "Somebody answers for every requirement.", warning, "State an owner.").
rule(loops,
     "Nothing depends on itself.").

violation('no-owner', Id, Message) :-
    entity(Id, req, Title, _),
    \+ attr(Id, owner, _),
    format(string(Message), "~w has no owner", [Title]).
violation(loops, Id, "depends on itself", error) :- depends_on(Id, Id).
