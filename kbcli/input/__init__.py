"""What a command is given to read: changesets in JSON and YAML, and thresholds. Every fault names file and line."""
