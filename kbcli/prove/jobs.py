"""The jobs, in their order."""

from __future__ import annotations

from typing import Final

from kbcli.prove import reading_jobs, writing_jobs

JOBS: Final = (*reading_jobs.JOBS, *writing_jobs.JOBS)
