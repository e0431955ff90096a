"""Programs of DML on the command line: what they are given, their tools, and how their events are shown."""
