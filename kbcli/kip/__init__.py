"""KIP on the command line: requests, answers as tables, and the prompt at which commands are typed."""
