"""Prolog on the command line: goals and statements, their answers, and the prompt at which they are typed."""
