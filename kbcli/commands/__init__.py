"""One module a command: each has ``run``, or ``app`` where commands stand below it."""
