"""Redaction of records, facts and changes: what is taken out, and what is left in its place. Pure.

Owns: what a person means by a secret (``target``), texts and ids without it (``texts``), changes without it
(``changes``), and records and facts without it (``redactor``). Never: reads or writes anything.
"""
