"""The input of a command: changesets in JSON and YAML, thresholds, and the proposals that a person takes."""
