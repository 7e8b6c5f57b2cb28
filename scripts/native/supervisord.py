"""supervisord that lives through a full disk: what its logs cannot take is dropped.

As it ships, a line of log that meets a full disk ends it and every part: it prints the error to a
file on the same disk, and nobody handles that error. And a log that could not be rotated there is
never written again.
"""

import contextlib

from supervisor import loggers, process, supervisord

# Also after days without room, a part is back soon after there is room again.
MAX_PAUSE_SECONDS = 5


class DroppingLog(loggers.RotatingFileHandler):  # type: ignore[misc]  # without types
    """A log file that never fails: it drops what the disk does not take."""

    def emit(self, record: loggers.LogRecord) -> None:
        """Write one record."""
        with contextlib.suppress(OSError):
            if self.stream.closed:  # by a rotation that failed halfway
                self.closed = True
                self.reopen()
            super().emit(record)

    def handleError(self) -> None:  # noqa: N802  # its name there
        """Drop the record that could not be written."""


class PatientProcess(process.Subprocess):  # type: ignore[misc]  # without types
    """A process that is tried again for ever; supervisord waits a second longer each time."""

    backoff: int  # the last pause, in seconds

    def change_state(self, new_state: int, **more: bool) -> object:
        """Take another state; the one after a failed start makes the pause longer."""
        self.backoff = min(self.backoff, MAX_PAUSE_SECONDS - 1)
        return super().change_state(new_state, **more)


def main() -> None:
    """Be supervisord, with its own command line."""
    loggers.RotatingFileHandler = DroppingLog
    process.Subprocess = PatientProcess
    supervisord.main()


if __name__ == "__main__":
    main()
