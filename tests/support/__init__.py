"""Code that tests share, by room; ``schemas`` has schemas of formats that others own.

- ``repository``: Git repositories with a KB, and single stores: how tests make and drive them.
- ``disk``: file systems that misbehave, and stores that are damaged.
- ``processes``: programs as processes of their own: starting, talking to, limiting and ending them.
- ``crowd``: many processes on one repository at once, and what must be true afterwards.
- ``generators``: random inputs that mean something: histories, trees of documents, KIP.
- ``views``: views in memory for tests of rules and queries.
- ``oracles``: what the right answer is, computed slowly and obviously, or frozen by a release.
- ``models``: language models, as servers on loopback that answer from a script.
- ``dml``: runs of programs, and a model that follows a script.
- ``fuzz``: hostile inputs, and a guarded process that parses them.
- ``guards``: programs with one guard taken out, and which test misses it.
- ``docs``: the documentation as it is run and generated.
- ``effort``: how much of a test is run: a slice every day, all of it in ``make fault``, without end in a soak.
"""
