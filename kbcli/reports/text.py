"""A report as lines for people: the place first, as compilers write it, and a summary at the end."""

from __future__ import annotations

from typing import Literal

from kbcli.render import Output
from kbcli.reports.told import Told, summary
from kbcli.words.violations import violation_line
from kbcore.phrases import counted
from kbcore.visible import visible


def tell(output: Output, told: Told) -> None:
    """Write the report; rules that could not run are warnings on standard error."""
    output.is_paged = True
    for one in told.report.violations:
        colour: Literal["red", "yellow"] = "red" if one.severity == "error" else "yellow"
        line = 0 if one.message.startswith(one.source) else told.lines.get(one, 0)
        output.data(output.flowed(f"{output.styled(one.severity, colour)} {violation_line(one, line)}") + "\n")
    warn_of_rules(output, told)
    output.say(visible(summary(told)))


def warn_of_rules(output: Output, told: Told) -> None:
    """Warn of each rule that could not run; note which took long, and which had nothing to look at, by reason."""
    idle: dict[str, list[str]] = {}
    for run in told.report.rules:
        if run.status == "not_run":
            output.warn(visible(f"the rule {run.id} could not run: {run.reason}"))
        elif run.status == "not_applicable":
            idle.setdefault(run.reason, []).append(run.id)
    slow = sorted((run for run in told.report.rules if run.is_slow), key=lambda run: -run.seconds)
    if slow:
        output.note(visible(f"Rules that took longest: {', '.join(f'{run.id} {run.seconds:.1f} s' for run in slow)}."))
    for reason, names in idle.items():
        which = f"The rule {names[0]}" if len(names) == 1 else counted(len(names), "rule")
        output.note(visible(f"{which} did not apply: {reason}"))
