"""Hostile inputs, and a guarded process that parses them.

It offers mutated corpora, texts of attackers and SQL that must be refused.
"""
