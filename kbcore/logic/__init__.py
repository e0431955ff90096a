"""The Prolog workspace: clauses as facts of a branch, queries of them and of the graph, and rules of ``kb check``.

Owns: the clauses and their changes (``clauses``, ``pool``), the engines (``engine``), the open query (``workspace``),
and the rules in Prolog (``rules``). Offers each of them to front ends and to ``kbcore.checks``. Never: reads Prolog
itself, which the engine does, or keeps in an engine what is in no record.
"""
