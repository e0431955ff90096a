"""The command line of KB: reads arguments and the environment, calls the core, and writes what it answers."""
