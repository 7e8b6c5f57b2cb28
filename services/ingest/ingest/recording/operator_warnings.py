"""What an operator has to see to: on System, in `./scripts/status`, and what to do then.

Looked for in the background, so that who asks never waits for it.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ingest.errors import StoreUnavailable
from ingest.recording.spool import Spool
from ingest.recording.steady_clock import SteadyClock
from ingest.storage.database.data_name import DataName
from ingest.tasks.repeated import Repeated, Rest

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
# What a detection takes in the spool (SPOOL_MAX_DETECTIONS in docs/configuration.md).
SPOOLED_BYTES = 300
# Beside the spools: which database was the last.
KNOWN_FILE = "database.name"
_RUNBOOK = "docs/runbook.md"


class OperatorWarning(NamedTuple):
    """What is wrong, and what to do: two texts that stay the same while it is so."""

    what: str
    todo: str


class OperatorWarnings:
    """Looks for them again and again, in a thread."""

    def __init__(
        self,
        clock: SteadyClock,
        spool: Spool,
        folder: Path,
        read_name: Callable[[], DataName | None],
    ) -> None:
        """`folder`: where the spools are; `read_name` of the database."""
        self._clock = clock
        self._spool = spool
        self._folder = folder
        self._read_name = read_name
        self.current: tuple[OperatorWarning, ...] = ()
        failure = "it is not known whether anything has to be seen to"
        self._looks = Repeated("warnings", self.look, failure, LOOK_SECONDS)

    def start(self) -> None:
        """Begin."""
        self._looks.start()

    def close(self) -> None:
        """End soon."""
        self._looks.close()

    def look(self) -> Rest:
        """Look once, and log what is new."""
        before = self.current
        every = (self._wrong_clock(), self._little_room(), self._other_database())
        self.current = tuple(filter(None, every))
        for warning in self.current:
            if warning not in before:
                log.warning("%s. %s", *warning)
        return Rest(LOOK_SECONDS)

    def _wrong_clock(self) -> OperatorWarning | None:
        if said := self._clock.warning():
            return OperatorWarning(
                f"This machine's clock {said}",
                "Nothing old is deleted or sealed meanwhile. Set the clock, then restart what "
                f"was started before ({_RUNBOOK}, “A clock is wrong”).",
            )
        return None

    def _little_room(self) -> OperatorWarning | None:
        """Tell of a spool that cannot take what it may have to."""
        if not self._spool.room:
            return OperatorWarning(
                "The spool is full",
                "Phones have to keep what they hear until the database answers "
                f"({_RUNBOOK}, “A disk is full”).",
            )
        needed_bytes = self._spool.room * SPOOLED_BYTES
        if shutil.disk_usage(self._folder).free < needed_bytes:
            return OperatorWarning(
                "The disk of the spools is nearly full",
                f"It could not take {needed_bytes // 10**6} MB more, which an outage of the "
                f"database may need. Make room ({_RUNBOOK}, “A disk is full”).",
            )
        return None

    def _other_database(self) -> OperatorWarning | None:
        """Tell of a database that was made after the one that was here before.

        A restored one is older again, and has the name that it had.
        """
        try:
            name = self._read_name()
        except StoreUnavailable:
            return None
        file = self._folder / KNOWN_FILE
        known = _known(file)
        if name is None or name == known:
            return None
        if known is None or name < known:
            _write(file, name)
            return None
        return OperatorWarning(
            "The database is a new one, and not that which was here",
            f"It was made at {name.made_at:%Y-%m-%d %H:%M} UTC, and what was stored before is "
            "missing. Mount its data again, or restore a backup; if it is meant, delete "
            f"{file.name} beside the spools ({_RUNBOOK}, “A volume is lost”).",
        )


def _known(file: Path) -> DataName | None:
    try:
        return DataName.known(file.read_text().strip())
    except (OSError, ValueError):
        return None  # the first time; what is damaged is written anew


def _write(file: Path, name: DataName) -> None:
    """Write it, whole or not at all; two services may do so at once."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.{name.text}.new")
    try:
        fresh.write_text(name.text)
        fresh.replace(file)
    except OSError as error:
        log.warning("%s cannot be written: %s", file, error)
