"""The input of a command: changesets in JSON and YAML, and thresholds. Every fault names file and line."""
