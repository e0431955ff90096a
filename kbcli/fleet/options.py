"""Options that several commands of ``kb fleet`` have."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kbcli.invocation.options import TABLE_FORMAT

Texts = list[str] | None
Where = Annotated[
    str | None,
    typer.Option("--place", metavar="PLACE", help="A folder or a URL. [default: KB_FLEET, else `fleet.place`]"),
]
Repos = Annotated[
    Texts, typer.Option("--repo", metavar="GLOB", help="Only these repositories, as acme/*; may be repeated.")
]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="As everything was then.")]
Format = Annotated[
    Literal["table", "tsv", "json", "jsonl", "csv", "markdown"] | None, typer.Option("--format", help=TABLE_FORMAT)
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="What asks: this process, or workers of Ray.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Workers of Ray. [default: one for each processor]")
]
Address = Annotated[
    str | None, typer.Option("--address", metavar="ADDRESS", help="A cluster of Ray, in place of workers here.")
]
Shard = Annotated[
    int | None, typer.Option("--shard", metavar="N", help="At most so many branches a worker. [default: 200]")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="At most so many rows.")]
