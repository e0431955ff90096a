"""``kb fleet``: the place that is meant, what is in it, and asking it by an engine.

Owns: how a question becomes one answer, by which engine. Offers: ``asking``.
Never: decides what a question means, or how an answer looks.
"""
