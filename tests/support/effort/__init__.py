"""The part of a test that is run: a slice every day, all of it in ``make fault``, without end in a soak.

It offers ``tries`` and the tally of what was tried.
"""
