"""``kb check``: what is asked for, what is judged, and the report of it.

Owns: the options that belong together, the run over files or records, the formats. Offers: ``request``, ``run``,
``report``. Never: decides what is a violation.
"""
