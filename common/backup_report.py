"""What became of the last backup: a file beside the data, `backup.json`, which anybody may read.

A backup writes it; System and whoever watches read it. It names nobody. Where no backup was ever
made, there is none.
"""

import json
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "backup.json"
# With a schedule there is one a day.
LATE_AFTER = timedelta(days=2)
_MAX_BYTES = 4096


class Report(NamedTuple):
    """The last backups. Times are unix seconds."""

    started: int  # the last try
    finished: int | None = None  # the last whole one
    error: str | None = None  # why the last try failed
    scheduled: bool = False  # whether a schedule makes them

    def is_late(self, now: float) -> bool:
        """Tell whether a schedule should have made one since."""
        since = self.started if self.finished is None else self.finished
        return self.scheduled and now - since > LATE_AFTER.total_seconds()


def read(file: Path) -> Report | None:
    """Return what a file tells; None where there is none, or it is damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        with file.open("rb") as source:
            values = json.loads(source.read(_MAX_BYTES))
        finished, error = values["finished"], values["error"]
        return Report(
            int(values["started"]),
            None if finished is None else int(finished),
            None if error is None else str(error),
            bool(values["scheduled"]),
        )
    return None


def write(file: Path, report: Report) -> None:
    """Replace the file as a whole. Raises OSError."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)  # of one that was killed
    # Root may write into a folder of others: it follows no link.
    at = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(at, "w") as target:
        json.dump(report._asdict() | {"error": report.error and report.error[:1000]}, target)
        target.flush()
        os.fsync(at)
    new.replace(file)
