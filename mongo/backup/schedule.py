"""Makes a backup each day: `python -m mongo.backup.schedule --at 03:00 ADDRESS ...`.

The other words are those of `python -m mongo.backup make`, which it runs: what a backup takes of
memory is free in between.
"""

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from common import backup_report
from common.backup_report import Report

# So often it looks at the clock, which may jump.
LOOK_SECONDS = 30
# After a failure.
AGAIN = timedelta(minutes=15)


def main() -> None:
    """Run until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m mongo.backup.schedule", description=__doc__)
    parser.add_argument("--at", type=_time_of_day, required=True, help="HH:MM, UTC")
    parser.add_argument("--report", type=Path, required=True, help="folder that tells of the last")
    options, words = parser.parse_known_args()
    command = [sys.executable, "-m", "mongo.backup", "make", *words]
    command += [f"--report={options.report}", "--scheduled"]
    while True:
        report = backup_report.read(options.report / backup_report.FILE_NAME)
        if is_due(datetime.now(UTC), options.at, report):
            subprocess.run(command, check=False)  # it tells of what fails
        time.sleep(LOOK_SECONDS)


def is_due(now: datetime, at: timedelta, last: Report | None) -> bool:
    """Tell whether a backup is due, each day at a time of UTC.

    Also when it was not made because nothing ran, and a while after one that failed or was killed.
    """
    if last is None:
        return True
    started = datetime.fromtimestamp(last.started, UTC)
    if started > now:  # the clock was ahead then, or is behind now
        return True
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    due = midnight + at if midnight + at <= now else midnight + at - timedelta(days=1)
    ended_well = last.finished is not None and last.finished >= last.started
    return started < due or (not ended_well and now - started >= AGAIN)


def _time_of_day(text: str) -> timedelta:
    try:
        at = datetime.strptime(f"{text} +0000", "%H:%M %z")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"HH:MM, not {text!r}") from error
    return timedelta(hours=at.hour, minutes=at.minute)


if __name__ == "__main__":
    main()
