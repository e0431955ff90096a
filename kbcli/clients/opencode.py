"""The plugin of OpenCode, which has no lists of hooks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from string import Template
from typing import Final

_PLUGIN: Final = Template("""\
// Gives what KB knows to OpenCode: at the start of a session, when it is compacted, and with a file that is read.
import { spawnSync } from "node:child_process"

const ask = (event, directory, input) => {
  const done = spawnSync($program, [...$words, event], {
    cwd: directory, input: JSON.stringify(input), encoding: "utf8", timeout: 10000,
  })
  return done.status === 0 && done.stdout ? done.stdout : ""
}

export const KB = async ({ directory }) => {
  const known = new Map()
  return {
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID ?? ""
      if (!known.has(session)) known.set(session, ask("session-start", directory, {}))
      if (known.get(session)) output.system.push(known.get(session))
    },
    "experimental.session.compacting": async (input, output) => {
      known.delete(input.sessionID ?? "")
      const text = ask("pre-compact", directory, {})
      if (text) output.context.push(text)
    },
    "tool.execute.after": async (input, output) => {
      if (input.tool !== "read" || typeof output.output !== "string") return
      const text = ask("on-read", directory, { tool_name: input.tool, tool_input: input.args ?? {} })
      if (text) output.output += "\\n\\n" + text
    },
  }
}
""")


def opencode_plugin(command: Sequence[str]) -> str:
    """Return the plugin for OpenCode, which runs ``command`` with an event after it."""
    program, *words = command
    return _PLUGIN.substitute(program=json.dumps(program), words=json.dumps(words))
