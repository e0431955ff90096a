"""Owns what KB does with its own process: it ends what takes too long or is stopped, and keeps to limits of the system.

Offers steps that are interrupted when their time is over, calls that nobody waits for at the end, and what the limits
leave to a database.
Never starts a process, and knows nothing of stores.
"""
