"""``kb fleet``: the place that is meant, what is in it, and asking it by an engine.

Owns: the options that its commands share, and how a question becomes one answer. Offers: ``options``, ``asking``.
Never: decides what a question means, or how an answer looks.
"""
