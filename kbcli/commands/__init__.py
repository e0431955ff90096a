"""One module a command: each has ``run``, or ``app`` where it has subcommands."""
